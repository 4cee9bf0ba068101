"""Whether what a name holds at one place of a tape may be looked at behind it, on any way that leads on from there."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow import tape as t


class _Way(NamedTuple):
    """What may happen on the ways through a tape: the name is loaded; the end is reached, or the loop around it is left
    or goes on, and nothing has bound it anew."""

    loads: bool = False
    ends: bool = True
    jumps: bool = False


def is_looked_at_again(unit: t.Unit, name: str, register: int) -> bool:
    """Whether the unit may load a name behind the event that makes `register`, before it is bound anew: in the same
    statement, on what follows, or on the next turn of a loop around it."""
    around = _path(unit.tape, register)
    inner: t.Tape = ()
    for tape, position in reversed(around):
        bracket = tape[position]
        behind = _beside(bracket, inner, name) if inner else _Way()
        if behind.loads:
            return True
        if behind.ends:
            rest = _through(tape[position + 1 :], name)
            if rest.loads:
                return True
            behind = _Way(ends=rest.ends, jumps=rest.jumps or behind.jumps)
        if not behind.ends and not behind.jumps:
            return False
        inner = tape
    return False


def _path(tape: t.Tape, register: int) -> list[tuple[t.Tape, int]]:
    """The tapes around the event that makes a register, outermost first, and where in each it stands."""
    for position, event in enumerate(tape):
        if getattr(event, "out", -1) == register:
            return [(tape, position)]
        for part in t.inner_tapes(event):
            found = _path(part, register)
            if found:
                return [(tape, position), *found]
    return []


def _beside(bracket: t.Event, inner: t.Tape, name: str) -> _Way:
    """What may happen behind one of the tapes of a bracket until the bracket is left."""
    if isinstance(bracket, t.Loop):
        if inner is bracket.orelse:
            return _Way()
        turn = _through((*bracket.test, *bracket.body), name)
        return _Way(turn.loads or _through(bracket.orelse, name).loads)
    if isinstance(bracket, t.Try):
        parts = (bracket.final,) if inner in bracket.handlers else (*bracket.handlers, bracket.orelse, bracket.final)
        return _Way(any(_through(part, name).loads for part in parts if part is not inner))
    return _Way()


def _through(tape: t.Tape, name: str) -> _Way:
    jumps = False
    for event in tape:
        match event:
            case t.Load(name=loaded) if loaded == name:
                return _Way(loads=True)
            case t.Bind(name=bound) | t.Delete(name=bound) if bound == name:
                return _Way(ends=False, jumps=jumps)
            case t.Return() | t.Raise():
                return _Way(ends=False, jumps=jumps)
            case t.Break() | t.Continue():
                return _Way(ends=False, jumps=True)
            case t.Branch() | t.Loop() | t.Try():
                inside = _through_bracket(event, name)
                jumps = jumps or inside.jumps
                if inside.loads or not inside.ends:
                    return _Way(inside.loads, ends=False, jumps=jumps)
            case _:
                pass
    return _Way(jumps=jumps)


def _through_bracket(event: t.Branch | t.Loop | t.Try, name: str) -> _Way:
    ways = [_through(part, name) for part in t.inner_tapes(event)]
    loads = any(way.loads for way in ways)
    if isinstance(event, t.Branch):
        return _Way(loads, any(way.ends for way in ways), any(way.jumps for way in ways))
    if isinstance(event, t.Loop):
        test, body, _ = ways
        # What its test binds is bound before its first turn.
        loads = test.loads or (test.ends and loads)
        return _Way(loads, ends=test.ends and (not event.endless or body.jumps))
    attempt, *handlers, orelse, final = ways
    goes_on = (attempt.ends and orelse.ends) or any(way.ends for way in handlers)
    return _Way(loads, goes_on and final.ends, any(way.jumps for way in ways))
