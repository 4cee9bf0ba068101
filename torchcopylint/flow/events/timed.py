"""Statements that are there for the time that they take."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import imports, naming

_CLOCKS = frozenset(
    {"time.time", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.process_time", "time.time_ns"}
    | {"timeit.default_timer"}
)


def is_timed(m: Machine, event: t.Discard) -> bool:
    """Whether a clock is read before a statement and again right after it, or after a loop that does nothing else: the
    time that it takes is what is wanted."""
    tape = _tape_of(m.unit.tape, event)
    last: t.Event = event
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    if not any(call.site < event.site and _reads_clock(m, call) for call in calls):
        return False
    while tape:
        for after in tape[tape.index(last) + 1 :]:
            if isinstance(after, t.Call | t.Invoke) and _reads_clock(m, after):
                return True
            if isinstance(after, t.Discard | t.Bind | t.Branch | t.Loop | t.Try) and not _waits(m, after):
                return False
        loop = next((one for one in m.index.of(t.Loop) if one.body is tape), None)
        if loop is None or not all(_only_counts(m, one) or one == last for one in tape):
            return False
        tape, last = _tape_of(m.unit.tape, loop), loop
    return False


_EVENTS = frozenset({"torch.cuda.Event", "torch.xpu.Event", "torch.Event", "torch.mps.event.Event"})


def _reads_clock(m: Machine, call: t.Call | t.Invoke) -> bool:
    """Whether a call asks for the time, or has a device take it down: `start.record()` of a `torch.cuda.Event`."""
    if imports.ahead(m, call) in _CLOCKS:
        return True
    base = m.unit.definitions[call.base] if isinstance(call, t.Invoke) and call.name == "record" else None
    if not isinstance(base, t.Load):
        return False
    made = [m.unit.definitions[one.value] for one in m.index.of(t.Bind) if one.name == base.name and one.value >= 0]
    return any(isinstance(one, t.Call | t.Invoke) and imports.ahead(m, one) in _EVENTS for one in made)


def warms_up(m: Machine, event: t.Discard) -> bool:
    """Whether the very same is computed again further down, where it is timed: this is to fill caches."""
    tape = _tape_of(m.unit.tape, event)
    later = [one for one in m.index.of(t.Discard) if one.site > event.site and _tape_of(m.unit.tape, one) is tape]
    return any(_same(m, one.value, event.value) and is_timed(m, one) for one in later)


def _same(m: Machine, one: int, other: int) -> bool:
    """Whether two registers are calls of the same by the same names."""
    a, b = (m.unit.definitions[register] if register >= 0 else None for register in (one, other))
    if isinstance(a, t.Call) and isinstance(b, t.Call):
        inner = [(a.function, b.function)]
    elif isinstance(a, t.Invoke) and isinstance(b, t.Invoke) and a.name == b.name:
        inner = [(a.base, b.base)]
    else:
        return one == other or (
            a.__class__ is b.__class__ and naming.text_of(m, one) == naming.text_of(m, other) != "..."
        )
    if [(x.keyword, x.stars) for x in a.arguments] != [(x.keyword, x.stars) for x in b.arguments]:
        return False
    inner += [(x.register, y.register) for x, y in zip(a.arguments, b.arguments, strict=True)]
    return all(_same(m, x, y) for x, y in inner)


def _only_counts(m: Machine, event: t.Event) -> bool:
    """Whether an event of a loop does nothing that is left behind: it computes, waits, or takes the next number."""
    if isinstance(event, t.Bind):
        made = m.unit.definitions[event.value] if event.value >= 0 else None
        return isinstance(made, t.Iterate)
    return not isinstance(event, t.Discard | t.Branch | t.Loop | t.Try | t.Return) or _waits(m, event)


def _tape_of(tape: t.Tape, event: t.Event) -> t.Tape:
    """The tape that an event stands in itself, of all within one."""
    for bracket in tape:
        if bracket == event:
            return tape
        for part in t.inner_tapes(bracket):
            found = _tape_of(part, event)
            if found:
                return found
    return ()


def _waits(m: Machine, event: t.Event) -> bool:
    """Whether a statement waits for a device: `torch.cuda.synchronize()`."""
    made = m.unit.definitions[event.value] if isinstance(event, t.Discard) else None
    return isinstance(made, t.Call | t.Invoke) and imports.ahead(m, made).endswith(".synchronize")
