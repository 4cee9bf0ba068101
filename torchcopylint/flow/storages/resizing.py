"""What changes where a tensor lies: `resize_`, and what stands in its way (memory that NumPy owns or looks at, and
gradients), and `set_`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import Resized
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import TENSORS, UNVERSIONED, Fact, How, Key, Kind, Object, Sure, Value
from torchcopylint.flow.storages import rooms, sharing, slots
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Site

RESIZING = frozenset({"resize_", "resize_as_"})
ARRAYS = frozenset({How.NUMPY, How.FROM_NUMPY})


def note(m: Machine, value: Value, at: Site) -> None:
    """A tensor is resized in place."""
    if len(value.refs) != 1 or m.state.object(value.refs[0]).kind not in TENSORS:
        return
    obj = m.state.object(value.refs[0])
    if obj.requires_grad > 0 and not any(share.how in UNVERSIONED for share in obj.shares):
        sure = obj.sure if obj.requires_grad is Fact.YES else min(obj.sure, Sure.LIKELY)
        m.fact(Resized(at.site, at.name, "", at.op, None, obj.site, sure))
        return
    for how, site, name in () if rooms.fits(m, at.site) else _windows(m, obj) or _made_over(m, value.root):
        m.fact(Resized(at.site, at.name, name, at.op, how, site, obj.sure))
        return


def note_array(m: Machine, value: Value, at: Site) -> None:
    """An array is resized in place: NumPy refuses that while a tensor over it is held, or if it lies in one itself."""
    if len(value.refs) != 1 or m.state.object(value.refs[0]).kind is not Kind.ARRAY or rooms.stays(m, at.site):
        return
    obj = m.state.object(value.refs[0])
    for share in obj.shares if all(share.sure for share in obj.shares) else ():
        if share.how is How.NUMPY:
            name = m.state.object(share.of).text
            m.fact(Resized(at.site, at.name, name, at.op, How.NUMPY, share.site, obj.sure, array=True))
            return
        for other in sorted(m.state.sharers.get(share.storage, ())):
            over = m.state.object(other)
            taken = [s for s in over.shares if s.how is How.FROM_NUMPY and s.storage == share.storage and s.sure]
            held = [key for key in m.state.holders.get(other, ()) if other in m.state.refs_of(key)]
            if taken and held and over.kind in TENSORS:
                name = naming.key_text(m, held[0])
                m.fact(Resized(at.site, at.name, name, at.op, How.FROM_NUMPY, taken[0].site, obj.sure, array=True))
                return


def _made_over(m: Machine, root: Key | None) -> list[tuple[How, int, str]]:
    """The same of a field that the constructor has set, and nobody else sets."""
    field = root[1][1:] if isinstance(root, tuple) and runs.is_field_from_before(m, root) else ""
    number = m.world.method(m.unit.owner, "__init__") if field and not m.world.setters(field) else None
    made = m.world.machines.get(number) if number is not None else None
    if made is None or not made.unit.parameters:
        return []
    slot = (made.number("argument", made.unit.first), f".{field}")
    refs = made.state.refs_of(slot)
    return _windows(made, made.state.object(refs[0])) if len(refs) == 1 else []


def move(m: Machine, moved: list[Value], sources: list[Value], site: int) -> None:
    """`x.set_(y)` puts tensors on the storage of another; what one knows of them is otherwise as before.

    Nobody else gets to see what was written into the memory that `x` had.
    """
    m.shown.taken_away |= {ref for value in moved for ref in value.refs}
    if len(moved) != 1 or len(moved[0].refs) != 1 or len(sources) != 1 or len(sources[0].refs) != 1:
        return
    (ref,), (source,) = moved[0].refs, sources[0].refs
    shares = m.state.object(source).shares
    live = slots.lives_on(m, sources[0], ref) if m.state.object(ref).kind is Kind.PARAMETER else None
    if live is not None:
        obj = m.state.object(ref)
        text = naming.key_text(m, moved[0].root) if moved[0].root is not None else obj.text
        sharing.note(m, site, ref, sources[0], text, live, "assign", obj.sure)
    if ref != source and m.state.object(source).kind in TENSORS and ref not in {share.storage for share in shares}:
        put = tuple(share._replace(how=How.ASSIGNED, site=site, of=source) for share in shares)
        m.state.set_object(ref, m.state.object(ref)._replace(shares=put))


def _windows(m: Machine, obj: Object) -> list[tuple[How, int, str]]:
    """Where the storage of a tensor was taken from NumPy, or shown to it: it stays as large as it is ever after."""
    found = []
    for share in obj.shares:
        if not share.sure:
            continue
        if share.how is How.FROM_NUMPY:
            found.append((How.FROM_NUMPY, share.site, m.state.object(share.of).text))
        for other in sorted(m.state.sharers.get(share.storage, ())):
            window = m.state.object(other)
            found += [
                (How.NUMPY, s.site, window.text)
                for s in window.shares
                if s.how is How.NUMPY and s.storage == share.storage and s.sure
            ]
    return found
