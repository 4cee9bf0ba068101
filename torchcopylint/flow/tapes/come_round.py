"""What the elements that a loop goes through were marked with when it was entered, on a later turn of an outer loop.

Of what a loop writes by way of its own element, its next turn takes out another one; when an outer loop comes round,
all of them have been written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 3
"""How deep an iterable is looked into: `enumerate(zip(kept, model.parameters()))`."""


def note(m: Machine, loop: t.Loop) -> None:
    """A loop is entered that has been run before: notes the writes that have hit what each container holds by now."""
    head = loop.body[0] if loop.body else None
    if isinstance(head, t.Iterate):
        found: dict[int, frozenset[int]] = {}
        _note_in(m, m.value(head.iterable).refs, m.index.loops.get(head.site, ())[:-1], found, MAX_DEPTH)
        m.hits.before[head.site] = found


def _note_in(
    m: Machine, refs: tuple[int, ...], around: tuple[int, ...], found: dict[int, frozenset[int]], depth: int
) -> None:
    for ref in refs:
        cells = [cell for slot in m.state.slot_names(ref) if (cell := m.state.cell(slot)) is not None]
        if not _is_made_anew(m, m.state.object(ref).site, around):
            found[ref] = frozenset(mark.write for cell in cells for mark in cell.marks)
        for cell in cells if depth else ():
            _note_in(m, cell.refs, around, found, depth - 1)


def _is_made_anew(m: Machine, made: int, around: tuple[int, ...]) -> bool:
    """Whether each turn of the innermost of some loops makes a container anew."""
    return made >= 0 and bool(around) and m.index.loops.get(made, ())[: len(around)] == around
