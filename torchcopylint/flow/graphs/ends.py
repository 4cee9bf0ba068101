"""What backward runs over for sure, whichever inputs somebody wants gradients for: the way up to the first fork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import SECOND_ORDER, Fact, How, Object

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PARTS = frozenset({How.VIEW, How.INDEX, How.ROW})
MAX_STEPS = 4
"""So many operations are gone back over from a loss."""


def behind(m: Machine, ref: int) -> list[int]:
    """The tensors that an object is made of, one behind the other, down to the last of them whose operation has saved
    something for backward.

    If it is a view, that is the tensor that it is a view of: `grad(y[0], x)`, `grad(y[1], x)`. If it is what a method
    computes of one tensor alone, that tensor: `y[0].sum()`.
    """
    found, saving = [ref], 0
    pending = [ref]
    for _ in range(MAX_STEPS):
        pending = [base for one in pending for base in _bases(m, one) if base not in found]
        found += pending
        if any(_saves_itself(m, m.state.object(base)) for base in pending):
            saving = len(found)
    return found[1:saving]


def _bases(m: Machine, ref: int) -> list[int]:
    obj = m.state.object(ref)
    bases = [share.of for share in obj.shares if share.how in _PARTS and share.of != ref and share.sure]
    return bases or _only_operand(m, obj)


def _only_operand(m: Machine, obj: Object) -> list[int]:
    """What a method was called on that has computed something from it, and from nothing else that has a graph."""
    register = m.index.calls.get(obj.site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(call, t.Invoke) or obj.leaf is not Fact.NO:
        return []
    others = [m.state.object(ref) for argument in call.arguments for ref in m.value(argument.register).refs]
    receivers = list(m.value(call.base).refs)
    alone = len(receivers) == 1 and all(other.requires_grad is Fact.NO for other in others)
    return receivers if alone and m.state.object(receivers[0]).requires_grad > 0 else []


def _saves_itself(m: Machine, obj: Object) -> bool:
    """Whether the operation, or the network, that made a tensor has saved something for backward."""
    if obj.leaf is not Fact.NO:
        return False
    if SECOND_ORDER in obj.flags:
        return True
    saved = (m.needed.saves[number].site for number in obj.graph if number in m.needed.saves)
    networks = (number for number in obj.graph if number in m.needed.by_modules)
    return any(site == obj.site for site in saved) or any(number == obj.site * 8 + 7 for number in networks)
