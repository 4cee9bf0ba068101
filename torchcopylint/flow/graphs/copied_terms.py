"""Terms of a loss that have lost their graph: `torch.tensor([loss_a, loss_b]).sum()` added to something that has one.

Where nothing of a loss has a graph, backward raises (see `severed`). Beside a term with a graph, one without raises
nothing, and trains nothing. A factor without a graph is another matter: losses may be weighted by what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import TermCopied
from torchcopylint.flow.graphs import severed, terms
from torchcopylint.flow.model import Fact, Kind, Sure
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 12


def note(m: Machine, loss: int, site: int) -> None:
    """Backward runs, at a site, over the value of a register: look for terms of it that are copies of numbers."""
    if m.blocks.on_purpose or all(m.state.object(ref).requires_grad is Fact.NO for ref in m.value(loss).refs):
        return
    for register in terms.of(m, loss):
        copied = _copy_behind(m, register)
        if copied is not None and copied.site not in m.called.muted:
            taken = copied.arguments[0].register
            name, op = naming.spelling(m, taken), m.dotted_of(copied)
            m.fact(TermCopied(copied.site, name, op, site, Sure.LIKELY))


def _copy_behind(m: Machine, register: int) -> t.Call | t.Invoke | None:
    """The call of `torch.tensor` on a list of tensors with graphs whose result alone a term is computed from."""
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if any(m.state.object(ref).requires_grad is not Fact.NO for ref in m.value(register).refs):
            return None
        match event:
            case t.Load() | t.Unpack() | t.Attribute():
                register = terms.bound_to(m, register)
            case t.Operate() if event.symbol in ("*", "/"):
                scaled = [one for one in event.operands if m.value(one).kind is not Kind.NUMBER]
                copies = [one for one in (_copy_behind(m, one) for one in scaled) if one is not None]
                return copies[0] if len(copies) == 1 else None
            case t.Call() | t.Invoke() if event.arguments and m.dotted_of(event) == "torch.tensor":
                taken = event.arguments[0].register
                listed = kind_of(m.value(taken), m.state) in (Kind.LIST, Kind.TUPLE)
                return event if listed and severed.carries(m, taken) else None
            case t.Invoke() if event.name in _REDUCING and m.value(event.base).refs:
                register = event.base
            case t.Call() | t.Invoke() if event.arguments and m.dotted_of(event) in _REDUCING_FUNCTIONS:
                register = event.arguments[0].register
            case _:
                return None
    return None


_REDUCING = frozenset({"sum", "mean", "prod", "norm", "max", "min", "squeeze", "to", "float"})
_REDUCING_FUNCTIONS = frozenset({"torch.sum", "torch.mean", "torch.prod", "torch.norm", "torch.max", "torch.min"})
