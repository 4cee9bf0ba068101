"""Events in another place: their registers, names and sites there, and a tape in which nothing follows a `return`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torchcopylint.flow import tape as t

_REGISTERS = frozenset(
    {"out", "base", "function", "container", "key", "item", "value", "iterable", "manager", "register", "target"}
)
_SEVERAL = frozenset({"operands", "keys", "items", "parts", "decorators"})
_NAMED = (t.Load, t.Bind, t.Delete)


def shifted(event: t.Event, shift: int, names: Mapping[str, str]) -> dict[str, Any]:
    """What changes in an event whose registers are numbered from `shift` on and whose names have other names."""
    changes: dict[str, Any] = {}
    for name in event._fields:
        value = getattr(event, name)
        if name in _REGISTERS:
            if not isinstance(event, t.Const) or name == "out":
                changes[name] = _register(value, shift)
        elif name in _SEVERAL:
            changes[name] = tuple(_register(register, shift) for register in value)
        elif name == "defaults":
            changes[name] = tuple((parameter, _register(register, shift)) for parameter, register in value)
        elif name == "arguments":
            changes[name] = tuple(one._replace(register=_register(one.register, shift)) for one in value)
        elif name == "subscript":
            changes[name] = tuple(_index(part, shift) for part in value)
        elif name == "name" and isinstance(event, _NAMED):
            changes[name] = names.get(value, value)
    return changes


def _register(register: int, shift: int) -> int:
    return register + shift if register >= 0 else register


def _index(part: int | t.Slice, shift: int) -> int | t.Slice:
    if isinstance(part, t.Slice):
        return t.Slice(*[_register(bound, shift) for bound in part])
    return _register(part, shift)


def ending(tape: t.Tape, site: int) -> t.Tape | None:
    """A tape on which nothing comes behind a `return` but the ends of `with` blocks; `None` if that cannot be."""
    try:
        made, ended = _tail(tape)
    except ValueError:
        return None
    return made if ended else (*made, t.Return(t.NO_REGISTER, site))


def _tail(tape: t.Tape) -> tuple[t.Tape, bool]:
    """A tape whose rest stands on the arms that go on, and whether it always returns."""
    for position, event in enumerate(tape):
        rest = tape[position + 1 :]
        exits = tuple(later for later in rest if isinstance(later, t.Exit))
        if isinstance(event, t.Return):
            return (*tape[:position], event, *exits), True
        if isinstance(event, t.Raise):
            return tape[: position + 1], True
        if isinstance(event, t.Branch) and _returns(event.arms):
            arms: list[t.Tape] = []
            made = [_tail(arm) for arm in event.arms]
            going_on = [arm for arm, ended in made if not ended]
            if len(going_on) > 1 and rest:
                raise ValueError
            after, ended = _tail(rest) if going_on else ((), True)
            for arm, over in made:
                arms.append((*arm, *exits) if over else (*arm, *after))
            return (*tape[:position], event._replace(arms=tuple(arms))), ended
        if isinstance(event, t.Loop | t.Try) and _returns(t.inner_tapes(event)):
            raise ValueError
    return tape, False


def _returns(tapes: Iterable[t.Tape]) -> bool:
    return any(isinstance(event, t.Return) for tape in tapes for event in t.events(tape))


def placed(tape: t.Tape, ranks: Mapping[int, int], definitions: list[t.Event | None]) -> t.Tape:
    """A tape with its sites in order."""
    found: list[t.Event] = []
    for event in tape:
        inside = t.changed_inside(event, lambda inner: placed(inner, ranks, definitions))
        moved = event._replace(site=ranks.get(event.site, event.site), **inside)
        out = getattr(moved, "out", t.NO_REGISTER)
        if out >= 0:
            definitions[out] = moved
        found.append(moved)
    return tuple(found)


def placed_use(use: str, ranks: Mapping[int, int]) -> str:
    """The key of what is known of a binding; those of parameters have no site."""
    name, at, site = use.rpartition("@")
    return f"{name}@{ranks[int(site[:-1])]}" if at and site.endswith("!") else use
