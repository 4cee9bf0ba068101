"""Events in another place: their registers, names and sites there, and a tape in which nothing follows a `return`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from torchcopylint.flow import tape as t

_REGISTERS = frozenset(
    {"out", "base", "function", "container", "key", "item", "value", "iterable", "manager", "register", "target"}
)
_NAMED = (t.Load, t.Bind, t.Delete)
_NO_NAMES: Mapping[str, str] = {}
_Change: TypeAlias = "Callable[[Any, int, Mapping[str, str]], Any]"


def shifted(event: t.Event, shift: int, names: Mapping[str, str]) -> dict[str, Any]:
    """What changes in an event whose registers are numbered from `shift` on and whose names have other names."""
    kind = event.__class__
    if kind not in _CHANGING:
        _CHANGING[kind] = _changing(kind)
    return {name: change(event[place], shift, names) for place, name, change in _CHANGING[kind]}


_CHANGING: dict[type[Any], tuple[tuple[int, str, _Change], ...]] = {}
"""What `_changing` says, by types of events."""


def _changing(kind: type[Any]) -> tuple[tuple[int, str, _Change], ...]:
    """Which fields of a type of event change, and how."""
    found = []
    for place, name in enumerate(kind._fields):
        change = _CHANGES.get(name)
        if name == "name" and kind in _NAMED:
            change = _name
        if change is not None and (kind is not t.Const or name == "out"):
            found.append((place, name, change))
    return tuple(found)


def _register(register: int, shift: int, names: Mapping[str, str] = _NO_NAMES) -> int:
    return register + shift if register >= 0 else register


def _several(registers: tuple[int, ...], shift: int, names: Mapping[str, str]) -> tuple[int, ...]:
    return tuple([register + shift if register >= 0 else register for register in registers])


def _defaults(pairs: tuple[tuple[str, int], ...], shift: int, names: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    return tuple([(parameter, _register(register, shift)) for parameter, register in pairs])


def _arguments(arguments: tuple[t.Argument, ...], shift: int, names: Mapping[str, str]) -> tuple[t.Argument, ...]:
    return tuple([one._replace(register=_register(one.register, shift)) for one in arguments])


def _subscript(index: t.Index, shift: int, names: Mapping[str, str]) -> t.Index:
    return tuple([_index(part, shift) for part in index])


def _name(name: str, shift: int, names: Mapping[str, str]) -> str:
    return names.get(name, name)


_CHANGES: dict[str, _Change] = {
    **dict.fromkeys(_REGISTERS, _register),
    **dict.fromkeys(("operands", "keys", "items", "parts", "decorators"), _several),
    "defaults": _defaults,
    "arguments": _arguments,
    "subscript": _subscript,
}
"""By the names of fields: what they hold in another place."""


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
        if event.__class__ is t.Return:
            return (*tape[:position], event, *_exits(tape[position + 1 :])), True
        if event.__class__ is t.Raise:
            return tape[: position + 1], True
        if event.__class__ is t.Branch and _returns(event.arms):
            rest = tape[position + 1 :]
            exits = _exits(rest)
            arms: list[t.Tape] = []
            made = [_tail(arm) for arm in event.arms]
            going_on = [arm for arm, ended in made if not ended]
            if len(going_on) > 1 and rest:
                raise ValueError
            after, ended = _tail(rest) if going_on else ((), True)
            for arm, over in made:
                arms.append((*arm, *exits) if over else (*arm, *after))
            return (*tape[:position], event._replace(arms=tuple(arms))), ended
        if (event.__class__ is t.Loop or event.__class__ is t.Try) and _returns(t.inner_tapes(event)):
            raise ValueError
    return tape, False


def _exits(tape: t.Tape) -> t.Tape:
    return tuple(event for event in tape if isinstance(event, t.Exit))


def _returns(tapes: Iterable[t.Tape]) -> bool:
    return any(event.__class__ is t.Return for tape in tapes for event in t.events(tape))


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
