"""What was put aside under a name is put back in its place, where it has been all the time: `saved = self.x`,
`self.x *= 0.5`, `self.x = saved`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import BUFFERS
from torchcopylint.flow.storages import reading

if TYPE_CHECKING:
    from torchcopylint.flow.model import Slot, Value
    from torchcopylint.flow.running.machine import Machine

_RESTORING = "restore"


def note(m: Machine, slot: Slot, value: Value, site: int, text: str) -> None:
    """A value is stored in a place that holds it already. If that was written in place since the value was taken from
    it, the value is read as if it were what was there before."""
    cell = m.state.cell(slot)
    if cell is None or cell.refs != value.refs or len(value.refs) != 1 or not isinstance(value.root, str):
        return
    written = {mark.write for mark in value.marks if not mark.own}
    put_aside = m.state.object(value.refs[0]).kind in BUFFERS
    if put_aside and any(m.hits.root_keys.get(write) == slot for write in written):
        reading.read(m, value, site, _RESTORING, text)
