"""Views that come upon one element several times: windows that overlap, and dimensions that stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments
    from torchcopylint.knowledge.table import Op


def stand_still(m: Machine, arguments: Arguments) -> bool:
    """Whether some dimension of what `as_strided` makes stays at one element: its stride is 0."""
    return 0 in _numbers(m, arguments.keywords.get("stride", arguments.at(2)))


def overlap(m: Machine, op: Op, arguments: Arguments) -> bool:
    """Whether the windows that `unfold` or `as_strided` makes of a tensor have elements in common.

    Of a step of 1 it is enough that the size is no number that is known to be 1: nobody makes windows of one element.
    """
    if op.short == "unfold" and op.name != "torch.nn.functional.unfold":
        size = arguments.keywords.get("size", arguments.at(2)).const
        step = arguments.keywords.get("step", arguments.at(3)).const
        if size.__class__ is int and step.__class__ is int:
            return 0 < step < size
        return step == 1 and step.__class__ is int and size is None
    if op.short == "as_strided":
        sizes = _numbers(m, arguments.keywords.get("size", arguments.at(1)))
        strides = _numbers(m, arguments.keywords.get("stride", arguments.at(2)))
        return len(sizes) == len(strides) and _meet(sizes, strides)
    return False


def _numbers(m: Machine, shape: Value) -> list[int]:
    """The numbers of a tuple or list, those that are known."""
    cells = (m.state.cell(slot) for ref in shape.refs for slot in m.state.slot_names(ref))
    return [cell.const for cell in cells if cell is not None and cell.const.__class__ is int]


def _meet(sizes: list[int], strides: list[int]) -> bool:
    """Whether two elements of such a view are one: a dimension takes no step over all that the smaller ones reach."""
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1 and 0 < stride <= reach:
            return True
        reach += stride * (size - 1)
    return False
