"""`load_state_dict(...)` of what is the module's already, and `load_state_dict(..., assign=True)`: a module takes over
the tensors of a state dict instead of their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import LoadedByAssignment
from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, LOCAL, How, Kind, Share, Slot, Sure, Value
from torchcopylint.flow.program import ownership
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def take_over(m: Machine, base: Value, source: Value, site: int, text: str) -> None:
    """The parameters of the module `text` are now the tensors of `source`; nothing is written."""
    if len(base.refs) != 1:
        return
    late = ownership.note_taken_over(m, base.refs[0], text, site)
    if len(source.refs) != 1:
        return
    taken = next((s for s in m.state.object(source.refs[0]).shares if s.how is How.STATE), None) or _entries(m, source)
    # What is read from a file, say: nothing else has entries to load.
    memory.refine(m, source, Kind.STATE_DICT, Sure.LIKELY)
    if taken is not None and not _is_free(m, taken, site):
        _note_other(m, base.refs[0], taken, site, text)
    elif not late and m.state.object(source.refs[0]).kind in CONTAINERS:
        # A snapshot that was a copy, or that nobody else had any more, is none from here on: the next module that
        # takes it over shares it with this one.
        _join(m, base.refs[0], source.refs[0], site)


def _entries(m: Machine, source: Value) -> Share | None:
    """Where the tensors of a dictionary are from that was made of the entries of a state dict, as they are."""
    if m.state.object(source.refs[0]).kind is not Kind.DICT:
        return None
    held = [m.state.object(ref) for ref in m.state.refs_of((source.refs[0], ANY_ELEMENT))]
    shares = [share for obj in held for share in obj.shares if share.how is How.STATE and share.sure]
    return shares[0] if len(shares) == len(held) and len({share.storage for share in shares}) == 1 else None


def _is_free(m: Machine, taken: Share, site: int) -> bool:
    """Whether the module that the tensors of a state dict are from was let go of: nobody looks at it behind `site`."""
    return not _lives_on(m, _owner(m, taken), site)


def _owner(m: Machine, taken: Share) -> int:
    # Of the entries of a state dict, or of a copy of it, that is what they were taken of.
    return taken.of if m.state.object(taken.of).kind is Kind.MODULE else taken.storage


def _note_other(m: Machine, ref: int, taken: Share, site: int, text: str) -> None:
    other = _owner(m, taken)
    mine = {share.storage | 1 for share in m.state.object(ref).shares}
    if taken.when or taken.storage | 1 in mine or m.world.converts(m):
        return
    source = m.state.object(other).text
    sure = max(Sure.LIKELY, min(m.state.object(ref).sure, m.state.object(other).sure))
    m.fact(LoadedByAssignment(site, text, source, taken.site, sure))


def _lives_on(m: Machine, ref: int, site: int) -> bool:
    """Whether a module is held by somebody else, or used by its name after `site`, if only on a loop's next turn."""
    if m.state.object(ref).owner not in ("", LOCAL):
        return True
    for key in sorted(m.state.holders.get(ref, ()), key=repr):
        cell = m.state.cell(key)
        if cell is None or ref not in cell.refs:
            continue
        if not isinstance(key, str):
            if isinstance(key, tuple) and m.state.object(key[0]).kind not in CONTAINERS:
                return True
            continue
        loads = [use for use in uses.of_name(m, key) if use.loads]
        if any(use.site > site for use in loads) or uses.seen_from_inside(m, key):
            return True
    return False


def _join(m: Machine, module: int, snapshot: int, site: int) -> None:
    obj = m.state.object(snapshot)
    if obj.kind not in (Kind.DICT, Kind.STATE_DICT):
        return
    shares = [s._replace(how=How.STATE, site=site, of=module) for s in m.state.object(module).shares]
    m.state.set_object(snapshot, obj._replace(shares=(*shares, *obj.shares)))


def own_values(m: Machine, source: Value) -> list[Slot]:
    """The elements of a dictionary that may be a module's own tensors, each under its own name: to load it writes them
    onto themselves."""
    slots = [(ref, ANY_ELEMENT) for ref in source.refs if m.state.object(ref).kind is not Kind.STATE_DICT]
    held = [(slot, inner) for slot in slots for inner in m.state.refs_of(slot)]
    return [slot for slot, ref in held if any(share.how is How.STATE for share in m.state.object(ref).shares)]
