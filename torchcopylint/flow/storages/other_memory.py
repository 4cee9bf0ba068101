"""What `p.data = ...` reaches: it gives a tensor other memory, and leaves what it had to those who hold that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow.model import Cell, How, Share
from torchcopylint.flow.storages.reading import chain_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

ASSIGN = "assign"
"""The form of such writes."""
_THE_SAME = frozenset({None, How.PARAMETERS, How.FIELD, How.COPY, How.CONDITIONAL})
"""Ways to hold the very tensor: as a part of a module, of a shallow copy of one, or as what a conversion has left as it
is."""


def reaches(m: Machine, written: Sequence[int], share: Share, cell: Cell) -> bool:
    """Whether what a holder has may be one of the tensors that get other memory, or what these are parts of.

    A state dict, a view and what `detach()` and `.data` have returned go on with the memory that there was.
    """
    if any(ref | 1 == other | 1 for ref in written for other in cell.refs):
        return True
    return any(_is_the_same(m, ref, share.storage) for ref in written) and any(
        _is_the_same(m, ref, share.storage) for ref in cell.refs
    )


def _is_the_same(m: Machine, ref: int, storage: int) -> bool:
    shares = [one for one in m.state.object(ref).shares if one.storage | 1 == storage | 1]
    return any(all(link.how in _THE_SAME for _, link in chain_of(m, ref, one)) for one in shares)
