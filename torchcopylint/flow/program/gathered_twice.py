"""Parameters that a loop gathers for an optimizer, one module after another, some of them more than once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterTwice
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_CHAINS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_ALL = frozenset({"modules", "named_modules"})
_GROWING = frozenset({"append", "extend"})
MAX_STEPS = 6


def found(m: Machine) -> Iterator[ParameterTwice]:
    """The optimizers of a unit that are given the parameters of every module of a row in which one stands twice."""
    for number in sorted(m.owners.optimizers):
        site = m.owners.optimizers[number].site
        event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
        if not isinstance(event, t.Call | t.Invoke) or not event.arguments:
            continue
        for put, across in _put_in(m, event.arguments[0].register, site):
            name = _twice(m, put) if not _is_chosen(m, put) else ""
            if name:
                yield ParameterTwice(site, f"{name}.parameters()", f"{name}.parameters()", across, Sure.LIKELY)
                break


def _is_chosen(m: Machine, register: int) -> bool:
    """Whether the loops around a value ask something of what they go through, or leave some of it out."""
    made = m.unit.definitions[register] if register >= 0 else None
    site = made.site if made is not None else -1
    around = [loop for loop in m.index.of(t.Loop) if any(site == e.site for e in t.events(loop.body))]
    return any(isinstance(e, t.Assume | t.Continue | t.Break) for loop in around for e in t.events(loop.body))


def _put_in(m: Machine, register: int, site: int) -> Iterator[tuple[int, bool]]:
    """What loops put into what an optimizer is given, on every turn, and whether each is a group of its own."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load):
        bound = m.index.binds.get(made.name, ())
        first = m.unit.definitions[bound[0].value] if bound and bound[0].value >= 0 else None
        if not isinstance(first, t.Make) or first.kind != "list":
            return
        yield from _collected(m, first.out)
        for event in m.index.of(t.Invoke):
            grows = event.name in _GROWING and len(event.arguments) == 1 and naming.text_of(m, event.base) == made.name
            if grows and event.site < site and event.site not in m.index.on_arms:
                yield event.arguments[0].register, _is_group(m, event.arguments[0].register)
        for added in m.index.of(t.Augment):
            target = m.unit.definitions[added.target]
            own = isinstance(target, t.Load) and target.name == made.name
            if own and added.symbol == "+=" and added.site < site and added.site not in m.index.on_arms:
                yield added.value, False
    elif isinstance(made, t.Make) and made.kind == "list":
        yield from _collected(m, made.out)


def _collected(m: Machine, container: int) -> Iterator[tuple[int, bool]]:
    """What a comprehension collects on every turn."""
    for collect in m.index.of(t.Collect):
        if collect.container == container and collect.site not in m.index.on_arms:
            yield collect.item, _is_group(m, collect.item)


def _is_group(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Make) and made.kind == "dict"


def _twice(m: Machine, register: int) -> str:
    """The module that a loop comes upon twice whose parameters a register holds, or a dictionary with them."""
    asked = _asked(m, register)
    module = m.unit.definitions[asked.base] if asked is not None and not asked.arguments else None
    if asked is None or not isinstance(module, t.Load):
        return ""
    over = _row(m, module)
    if isinstance(over, t.Invoke) and over.name in _ALL and not over.arguments:
        # A module is among its own modules, and so is each one in it.
        return naming.text_of(m, asked.base)
    items = _items(m, over)
    held = Counter(m.value(item).refs[0] for item in items if len(m.value(item).refs) == 1)
    doubled = [item for item in items if held.get(next(iter(m.value(item).refs), -1), 0) > 1 and _has_own(m, item)]
    return naming.text_of(m, doubled[0]) if doubled else ""


def _asked(m: Machine, register: int) -> t.Invoke | None:
    """The call of `parameters()` that a register comes from: as it is, in a list or group, or one by one."""
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Invoke) and made.name == "parameters":
            return made
        if isinstance(made, t.Call) and m.dotted_of(made) in _LISTS and len(made.arguments) == 1:
            register = made.arguments[0].register
        elif isinstance(made, t.Make) and made.kind == "dict":
            named = [item for key, item in zip(made.keys, made.items, strict=True) if m.value(key).const == "params"]
            register = named[0] if named else t.NO_REGISTER
        elif isinstance(made, t.Load):
            each = _one_of(m, made)
            register = each.iterable if each is not None else t.NO_REGISTER
        else:
            break
    return None


def _one_of(m: Machine, load: t.Load) -> t.Iterate | None:
    """The head of the loop that has bound a name, if nothing else has where it is looked at: loops may share a name."""
    bound = uses.bindings_before(m, load)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if isinstance(made, t.Unpack):
        made = m.unit.definitions[made.value]
    return made if isinstance(made, t.Iterate) else None


def _row(m: Machine, load: t.Load) -> t.Event | None:
    """What a loop goes through that binds a name, as it was made."""
    each = _one_of(m, load)
    made = m.unit.definitions[each.iterable] if each is not None and each.iterable >= 0 else None
    if isinstance(made, t.Load):
        bound = m.index.binds.get(made.name, ())
        made = m.unit.definitions[bound[0].value] if len(bound) == 1 and bound[0].value >= 0 else None
    return made


def _items(m: Machine, row: t.Event | None) -> tuple[int, ...]:
    """What stands in a list, or in a chain or list of modules, that is written out."""
    if isinstance(row, t.Call | t.Invoke) and m.dotted_of(row) in _CHAINS:
        given = tuple(one.register for one in row.arguments if not one.keyword and not one.stars)
        listed = m.unit.definitions[given[0]] if len(given) == 1 else None
        return listed.items if isinstance(listed, t.Make) and listed.kind in ("list", "tuple") else given
    return row.items if isinstance(row, t.Make) and row.kind in ("list", "tuple") else ()


def _has_own(m: Machine, register: int) -> bool:
    """Whether a register holds a module that is known to have parameters."""
    objects = [m.state.object(ref) for ref in m.value(register).refs]
    rows = [table.module_class(obj.type) if obj.kind is Kind.MODULE and obj.type else None for obj in objects]
    return bool(rows) and all(row is not None and bool(row.parameters or row.nested) for row in rows)
