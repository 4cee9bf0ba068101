"""A field that a constructor fills from the other side of NumPy, before it computes with that side in place.

`self.x = torch.from_numpy(x)`, then `x -= x.mean()`: what the field holds has changed, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldOver
from torchcopylint.flow.model import BUFFERS, How, Object, Share, Sure
from torchcopylint.flow.storages import keeping, reading

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_ACROSS = frozenset({How.NUMPY, How.FROM_NUMPY})
_IN_PLACE = frozenset({"method", "augmented", "out"})


def found(m: Machine) -> Iterator[FieldOver]:
    """Such fields, if the old content mattered to the write, and nobody sets them anew.

    Who keeps both sides in fields, or puts items into an array, fills the one by the other.
    """
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return
    me = m.number("argument", m.unit.first)
    writes = [write for write in m.writes.values() if write.form in _IN_PLACE and write.reads_old]
    for slot in m.state.slot_names(me) if writes else ():
        cell = m.state.cell(slot)
        if cell is None or len(cell.refs) != 1 or cell.site < 0 or cell.plain or not slot[1].startswith("."):
            continue
        obj = m.state.object(cell.refs[0])
        if obj.kind not in BUFFERS or keeping.is_reset(m, slot[1][1:]):
            continue
        for share in obj.shares:
            links = [link for _, link in reading.chain_of(m, cell.refs[0], share) if link.how is not None]
            across = [link for link in links if link.how in _ACROSS]
            if len(across) != 1 or any(link.when or not link.sure for link in links):
                continue
            site, how = across[0].site, across[0].how
            later = [one for one in writes if one.site > site and _is_by_other_side(m, one, share, site)]
            read = _look(m, slot[1][1:]) if later and how is not None and not _is_kept(m, me, share, site) else None
            if read is not None and how is not None:
                sure = min(max(obj.sure, Sure.LIKELY), later[0].sure)
                yield FieldOver(later[0].site, slot[1][1:], how, tuple(reversed(links)), read, sure)


def _is_by_other_side(m: Machine, write: Write, share: Share, site: int) -> bool:
    """Whether a write goes surely into that memory, under a plain name, and not by what was made of it at a site."""
    through = {link.site for link in write.chain if link.how is not None}
    plain = write.root.isidentifier() and write.root != m.unit.first
    surely = len(write.storages) == 1 and all(link.sure and not link.when for link in write.chain)
    return plain and surely and share.storage | 1 in {one | 1 for one in write.storages} and site not in through


def _is_kept(m: Machine, me: int, share: Share, site: int) -> bool:
    """Whether another field holds that memory, and not by what was made of it at a site: both sides are wanted."""
    held = [m.state.object(ref) for slot in m.state.slot_names(me) for ref in m.state.refs_of(slot)]
    return any(_is_beside(m, obj, share, site) for obj in held)


def _is_beside(m: Machine, obj: Object, share: Share, site: int) -> bool:
    """Whether an object shares that memory otherwise than by what was made of it at a site."""
    if obj.kind not in BUFFERS:
        return False
    same = [one for one in obj.shares if one.storage | 1 == share.storage | 1]
    return any(site not in {link.site for _, link in reading.chain_of(m, one.of, one)} | {one.site} for one in same)


def _look(m: Machine, field: str) -> int | None:
    """Where another unit of the file looks at a field of that name, other than to set a part of it."""
    for unit in m.world.program.units:
        if unit.number == m.unit.number:
            continue
        index = m.world.index(unit)
        for event in index.of(t.Attribute):
            user = index.consumers.get(event.out) if event.name == field else None
            if user is not None and not isinstance(user, t.StoreItem | t.Augment):
                return user.site
    return None
