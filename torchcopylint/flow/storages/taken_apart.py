"""Modules that a unit has made to take their weights out, and that go nowhere else: what was put on the memory of these
has it for itself once the unit is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ANY = -1
"""Any element of a container, as a loop takes it out."""
_PARTS = frozenset({"children", "modules", "parameters", "named_children", "named_modules", "named_parameters"})
"""Methods of a module that hand out its parts."""
_ITSELF = frozenset({"to", "cpu", "cuda", "float", "double", "half", "eval", "train", "requires_grad_"})
"""Methods that hand back a module, or a tensor of it, perhaps converted."""
_VIEWS = frozenset({"view", "reshape", "detach", "contiguous", "squeeze", "unsqueeze", "t", "transpose", "permute"})
_ASKING = frozenset({"size", "dim", "numel", "load_state_dict"})
"""Methods that hand out no part."""
_SAME_ELEMENTS = frozenset({"builtins.list", "builtins.tuple", "builtins.reversed", "builtins.iter"})
_PAIRING = frozenset({"builtins.zip", "builtins.enumerate"})
_LOOKING = frozenset({"builtins.isinstance", "builtins.hasattr", "builtins.len", "builtins.type", "builtins.print"})
_BUILTINS = _SAME_ELEMENTS | _PAIRING | _LOOKING
_TAKING = frozenset({"load_state_dict", "copy_"})
"""Methods that copy what they are given."""


class _Part(NamedTuple):
    """What a register holds, or a part of it: the positions that lead there, one container after the other."""

    register: int
    where: tuple[int, ...] = ()


def is_taken_apart(m: Machine, register: int) -> bool:
    """Whether what a register holds is part of modules alone that the unit has made, and of which it does nothing more
    than to take their weights out: `for a, b in zip(vgg.children(), self.children()): b.weight.data = a.weight.data`.
    """
    roots = _roots(m, register) if m.unit.kind != "module" else None
    return bool(roots) and _go_nowhere(m, roots or set())


def _roots(m: Machine, register: int) -> set[int] | None:
    """The calls that have made what a register holds a part of; nothing if it may come from elsewhere."""
    pending, seen, roots = [_Part(register)], set[_Part](), set[int]()
    given = {parameter.name for parameter in m.unit.parameters}
    while pending:
        part = pending.pop()
        event = m.unit.definitions[part.register] if part.register >= 0 and part not in seen else None
        if part not in seen and event is None:
            return None
        seen.add(part)
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            if not bound or event.name in given:
                return None
            pending += [_Part(value, part.where) for value in bound]
        elif isinstance(event, t.Call | t.Invoke) and _makes_module(m, event):
            roots.add(event.out)
        elif event is not None:
            above = _above(m, event, part.where)
            if above is None:
                return None
            pending += above
    return roots


def _above(m: Machine, event: t.Event, where: tuple[int, ...]) -> list[_Part] | None:
    """What a part of the result of an event is a part of; `None` if nobody knows."""
    if isinstance(event, t.Attribute | t.Item):
        return [_Part(event.base)]
    if isinstance(event, t.Unpack):
        return [_Part(event.value, (event.position, *where))]
    if isinstance(event, t.Iterate):
        return [_Part(event.iterable, (_ANY, *where))]
    if isinstance(event, t.Make) and not event.keys and not any(event.stars):
        items = event.items[where[0] : where[0] + 1] if where and where[0] >= 0 else event.items
        return [_Part(item, where[1:]) for item in items]
    if isinstance(event, t.Call) and event.arguments:
        given = [one.register for one in event.arguments]
        if _dotted(m, event) in _SAME_ELEMENTS:
            return [_Part(given[0], where)]
        if len(where) > 1 and _dotted(m, event) == "builtins.zip" and 0 <= where[1] < len(given):
            return [_Part(given[where[1]], (_ANY, *where[2:]))]
        return [_Part(given[0], (_ANY, *where[2:]))] if len(where) > 1 and where[1] == 1 else None
    if isinstance(event, t.Invoke):
        if event.name in _ITSELF | _VIEWS | _PARTS:
            return [_Part(event.base)]
        return None
    return None


def _dotted(m: Machine, event: t.Call | t.Invoke) -> str:
    """The dotted name of what a call calls, though it may not have been run yet."""
    made = m.unit.definitions[event.function] if isinstance(event, t.Call) and event.function >= 0 else None
    if isinstance(made, t.Load) and f"builtins.{made.name}" in _BUILTINS and made.name not in m.index.binds:
        return f"builtins.{made.name}"
    return imports.ahead(m, event)


def _makes_module(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether a call of a function or class, no method of something else, has made a module."""
    objects = [m.state.object(ref) for ref in m.value(event.out).refs]
    made = bool(objects) and all(obj.kind is Kind.MODULE and obj.site == event.site for obj in objects)
    return made and (isinstance(event, t.Call) or bool(_dotted(m, event)))


def _go_nowhere(m: Machine, roots: set[int]) -> bool:
    """Whether all that is done with some values, and with their parts, is to look at them and to take their data."""
    pending, seen = sorted(roots), set(roots)
    given: dict[str, str] = {}
    while pending:
        register = pending.pop()
        event = m.consumer_of(register)
        if isinstance(event, t.StoreAttribute) and event.value == register:
            # What is given to two shares with both.
            text, place = naming.text_of(m, register), naming.text_of(m, event.base)
            if given.setdefault(text, place) != place:
                return False
        out = _out(m, event, register)
        if out is None:
            return False
        fresh = [one for one in out if one not in seen]
        seen.update(fresh)
        pending += fresh
    return True


def _out(m: Machine, event: t.Event | None, register: int) -> list[int] | None:
    """Where a value goes on in what an event does with it; `None` if it may go anywhere."""
    if isinstance(event, t.Bind):
        if uses.seen_from_inside(m, event.name):
            return None
        return [use.register for use in uses.of_name(m, event.name) if use.loads]
    if isinstance(event, t.Unpack):
        return [one.out for one in m.index.of(t.Unpack) if one.value == register]
    if isinstance(event, t.Attribute | t.Item | t.Iterate | t.Make):
        return [event.out]
    if isinstance(event, t.Call) and event.function != register:
        dotted = _dotted(m, event)
        return [event.out] if dotted in _PAIRING | _SAME_ELEMENTS else [] if dotted in _LOOKING else None
    if isinstance(event, t.Invoke):
        if event.base != register:
            return [] if event.name in _TAKING else None
        if event.name in _ASKING:
            return []
        return [event.out] if event.name in _ITSELF | _VIEWS | _PARTS | {"state_dict"} else None
    if isinstance(event, t.StoreAttribute):
        return [] if event.name == "data" or event.value != register else None
    harmless = (t.Discard, t.Operate, t.Text, t.Test, t.Assume)
    return [] if event is None or isinstance(event, harmless) else None
