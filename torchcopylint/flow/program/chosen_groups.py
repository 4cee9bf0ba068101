"""Optimizers that are given all parameters of a module in one group, and some of them in another one: those that a
condition has chosen (`[p for name, p in net.named_parameters() if "head" in name]`), or those of a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterTwice
from torchcopylint.flow.model import Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_HANDING_OUT = frozenset({"parameters", "named_parameters"})
MAX_STEPS = 6


class Taken(NamedTuple):
    """Parameters of the module in the register `module`: all of them, or those that a condition has `chosen`."""

    module: int
    chosen: bool


def found(m: Machine) -> Iterator[ParameterTwice]:
    """The optimizers of a unit with such a pair of groups."""
    for number in sorted(m.owners.optimizers):
        site = m.owners.optimizers[number].site
        event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
        told = any(isinstance(fact, ParameterTwice) for fact in m.facts.get(site, ()))
        if isinstance(event, t.Call | t.Invoke) and event.arguments and not event.arguments[0].stars and not told:
            taken = [one for group in _groups(m, event.arguments[0].register) if (one := _taken(m, group)) is not None]
            wholes = [one for one in taken if not one.chosen]
            pairs = ((whole, part) for whole in wholes for part in taken if _is_part(m, part, whole))
            for whole, part in pairs:
                name = f"{naming.text_of(m, part.module)}.parameters()"
                some = f"some of {name}" if part.chosen else name
                yield ParameterTwice(site, f"{naming.text_of(m, whole.module)}.parameters()", some, True, Sure.LIKELY)
                break


def _made(m: Machine, register: int) -> t.Event | None:
    """What has made a value, also by way of a name that is bound once."""
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Unpack):
            # `head, body = [], []`
            whole = m.unit.definitions[made.value] if made.value >= 0 else None
            if not isinstance(whole, t.Make) or any(whole.stars) or not 0 <= made.position < len(whole.items):
                return made
            register = whole.items[made.position]
            continue
        if not isinstance(made, t.Load):
            return made
        bound = m.index.binds.get(made.name, ())
        register = bound[0].value if len(bound) == 1 else t.NO_REGISTER
    return None


def _groups(m: Machine, register: int) -> list[int]:
    """What stands under `params` in the groups that a list names one by one."""
    made = _made(m, register)
    groups = [_made(m, item) for item in made.items] if isinstance(made, t.Make) and made.kind == "list" else []
    found = []
    for group in groups:
        if isinstance(group, t.Make) and group.kind == "dict":
            named = [item for key, item in zip(group.keys, group.items, strict=True) if m.value(key).const == "params"]
            found += named[:1]
    return found


def _taken(m: Machine, register: int) -> Taken | None:
    """The parameters that a group is given, if they are those of one module."""
    chosen = False
    for _ in range(MAX_STEPS):
        made = _made(m, register)
        if isinstance(made, t.Invoke) and made.name == "parameters" and not made.arguments:
            return Taken(made.base, chosen)
        if isinstance(made, t.Call) and m.dotted_of(made) in _LISTS and len(made.arguments) == 1:
            register = made.arguments[0].register
        elif isinstance(made, t.Call) and m.dotted_of(made) == "builtins.filter" and len(made.arguments) == 2:
            register, chosen = made.arguments[1].register, True
        elif isinstance(made, t.Make) and made.kind == "list" and not made.items:
            gathered = _gathered(m, made)
            return gathered if gathered is None else gathered._replace(chosen=chosen or gathered.chosen)
        else:
            break
    return None


def _gathered(m: Machine, made: t.Make) -> Taken | None:
    """The parameters that a comprehension, or the loop that fills an empty list, takes out one by one."""
    puts = [(one.item, one.site) for one in m.index.of(t.Collect) if one.container == made.out]
    for event in m.index.of(t.Invoke):
        if event.name in ("append", "extend", "insert") and made is _made(m, event.base):
            alone = event.name == "append" and len(event.arguments) == 1
            puts.append((event.arguments[0].register if alone else t.NO_REGISTER, event.site))
    head = _head(m, *puts[0]) if len(puts) == 1 else None
    over = _made(m, head.iterable) if head is not None else None
    if head is None or not isinstance(over, t.Invoke) or over.name not in _HANDING_OUT or over.arguments:
        return None
    around = [loop for loop in m.index.of(t.Loop) if any(event.site == puts[0][1] for event in t.events(loop.body))]
    # What a comprehension asks stands on the way to what it collects; a branch of a loop, beside what it fills.
    asks = any(isinstance(event, t.Assume) for loop in around for event in loop.body)
    asks = asks or any(isinstance(e, t.Continue | t.Break) for loop in around for e in t.events(loop.body))
    return Taken(over.base, asks or puts[0][1] in m.index.on_arms)


def _head(m: Machine, register: int, site: int) -> t.Iterate | None:
    """The head of the one loop around a site, if what it takes out, or the second half of that, is in a register."""
    made = _made(m, register)
    if isinstance(made, t.Unpack) and made.position == 1:
        made = _made(m, made.value)
    return made if isinstance(made, t.Iterate) and len(uses.loops_around(m, site)) == 1 else None


def _is_part(m: Machine, part: Taken, whole: Taken) -> bool:
    """Whether some parameters are surely among those of another module: of a part of it, or chosen of its own."""
    register, steps = part.module, 0 if part.chosen else 1
    for step in range(MAX_STEPS):
        refs = m.value(register).refs
        alike = naming.text_of(m, register) == naming.text_of(m, whole.module)
        if step >= steps and alike and len(refs) == 1 and refs == m.value(whole.module).refs:
            return True
        made = m.unit.definitions[register] if register >= 0 else None
        if not isinstance(made, t.Attribute):
            return False
        register = made.base
    return False
