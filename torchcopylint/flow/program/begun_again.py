"""A start that each turn of a loop goes back to by a second name alone: `net = base`, `x = image`.

An optimizer that the turn makes for it moves the start itself, so that the next turn begins where this one has ended:
folds of a cross-validation, solvers that are compared, restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import PutAside
from torchcopylint.flow.model import TENSORS, Kind, Sure
from torchcopylint.flow.program.trained_apart import asked_of, source_of
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

RESETTING = ("reset", "load", "restore", "init")
"""Words by which functions and methods begin that put something back to how it was."""
_KEEPING = frozenset({"requires_grad_", "zero_grad", "share_memory_"})


def found(m: Machine) -> Iterator[PutAside]:
    """The names that a loop binds anew on each turn to what stands outside of it, and makes an optimizer for."""
    if m.unit.kind not in ("function", "module"):
        return
    for name, binds in m.index.binds.items():
        bind = binds[0]
        loops = m.index.loops.get(bind.site, ())
        source = source_of(m, bind) if len(binds) == 1 and loops and bind.site not in m.index.on_arms else None
        if source is None or source.name == name or is_bound_in(m, source.name, loops[-1]):
            continue
        value = m.value(source.out)
        objects = [m.state.object(ref) for ref in value.refs]
        kinds = {obj.kind for obj in objects}
        if not kinds or not (kinds == {Kind.MODULE} or kinds <= set(TENSORS)):
            continue
        made = optimizer_for(m, name, bind.site, loops[-1])
        if made < 0 or is_put_back(m, {name, source.name}, loops[-1]):
            continue
        for mark in sorted(value.marks):
            write = m.writes.get(mark.write)
            if write is not None and write.form == "step" and loops[-1] in m.index.loops.get(write.site, ()):
                kind = objects[0].kind
                yield PutAside(source.site, name, source.name, bind.site, mark.write, "start", Sure.LIKELY, kind)
                break


def is_bound_in(m: Machine, name: str, loop: int) -> bool:
    """Whether a loop binds a name."""
    return any(loop in m.index.loops.get(bind.site, ()) for bind in m.index.binds.get(name, ()))


def optimizer_for(m: Machine, name: str, bound: int, loop: int) -> int:
    """Where a loop makes an optimizer for what a name holds, once it has bound the name."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in calls:
        made = any(m.state.object(ref).kind is Kind.OPTIMIZER for ref in m.value(call.out).refs)
        if not made or not call.arguments or call.site < bound or loop not in m.index.loops.get(call.site, ()):
            continue
        given = call.arguments[0].register
        display = m.unit.definitions[given] if given >= 0 else None
        items = display.items if isinstance(display, t.Make) else ()
        if asked_of(m, given) == name or any(naming.text_of(m, item) == name for item in items):
            return call.site
    return -1


def is_put_back(m: Machine, names: set[str], loop: int) -> bool:
    """Whether a loop sets one of the two to how it was: `net.load_state_dict(start)`, `reset(net)`."""
    for call in m.index.of(t.Invoke):
        if loop in m.index.loops.get(call.site, ()) and naming.text_of(m, call.base).partition(".")[0] in names:
            writes = call.name.endswith("_") or call.name == "apply" or call.name.startswith(RESETTING)
            if writes and call.name not in _KEEPING:
                return True
    for event in m.index.of(t.Call):
        given = {naming.text_of(m, argument.register) for argument in event.arguments}
        called = naming.text_of(m, event.function).rpartition(".")[2].lstrip("_")
        if loop in m.index.loops.get(event.site, ()) and given & names and called.startswith(RESETTING):
            return True
    return False
