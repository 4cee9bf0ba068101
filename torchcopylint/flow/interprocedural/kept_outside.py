"""The best state so far that a function leaves where its caller finds it, by reference, and trains on.

`record.best = net.state_dict()` and `record["best"] = ...` of an argument, and `self.record.best = ...`: whoever reads
it afterwards finds the last state. Fields of `self` itself are told by what the methods of the class do with them. So
it is with gradients that are put into a container there, and overwritten in place before the function ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import GLOBAL, Cell, How, Mark, Slot, Value
from torchcopylint.flow.storages import aliasing, reading
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 3
"""So many fields or elements are followed from an argument: `self.observed.models.best`."""


def note(m: Machine) -> None:
    """Read, where it was put there, what an argument holds when all of a function has been run."""
    for slot, cell in _left(m):
        states = [share.how is How.STATE for ref in cell.refs for share in m.state.object(ref).shares]
        best = uses.loops_around(m, cell.site) and aliasing.is_on_record(m, cell.site)
        if cell.marks and states and all(states) and best and not _is_saved(m, slot):
            reading.read(m, Value(cell.refs, marks=cell.marks, root=slot), cell.site, "kept")
        marks = frozenset(mark for mark in cell.marks if _overwrites_gradient(m, mark))
        if marks and slot[1].startswith("["):
            # What was put aside in a container is what stands in `.grad`, and that is overwritten by now.
            reading.read(m, Value(cell.refs, marks=marks, root=slot), cell.site, "kept")


def _overwrites_gradient(m: Machine, mark: Mark) -> bool:
    """Whether a gradient has been filled or added to where it stands: `w.grad.zero_()`."""
    write = m.writes.get(mark.write)
    in_place = write is not None and write.form in ("method", "augmented") and write.root.endswith(".grad")
    return write is not None and not mark.own and (write.form == "gradient" or (in_place and not write.reads_old))


def _left(m: Machine) -> Iterator[tuple[Slot, Cell]]:
    """What this function has put into its arguments and the containers of its module, and what these hold."""
    me = m.number("argument", m.unit.first) if m.unit.owner >= 0 and m.unit.parameters else None
    pending = [(m.number("argument", one.name), 0) for one in m.unit.parameters]
    if m.unit.number:
        loaded = dict.fromkeys(ref for event in m.index.of(t.Load) for ref in m.value(event.out).refs)
        pending += [(ref, 0) for ref in loaded if m.state.object(ref).owner == GLOBAL]
    seen: set[int] = set()
    while pending:
        ref, depth = pending.pop()
        if ref in seen:
            continue
        seen.add(ref)
        for slot in m.state.slot_names(ref):
            cell = m.state.cell(slot)
            if cell is None:
                continue
            if cell.site >= 0 and ref != me:
                yield slot, cell
            elif cell.site < 0 and depth < MAX_DEPTH:
                pending += [(inner, depth + 1) for inner in cell.refs]


def _is_saved(m: Machine, slot: Slot) -> bool:
    """Whether what holds a state is handed to something that saves: what stands in a file stays as it is."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for event in calls:
        name = m.dotted_of(event) if isinstance(event, t.Call) else event.name
        given = {ref for one in event.arguments for ref in m.value(one.register).refs}
        if slot[0] in given and ("save" in name or "dump" in name):
            return True
    return False
