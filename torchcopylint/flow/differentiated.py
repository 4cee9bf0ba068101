"""Parameters for whose gradient a function asks, and that it is therefore given with one to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import imports
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import TENSORS, Fact, Kind, Object, Sure

if TYPE_CHECKING:
    from torchcopylint.flow.index import UnitIndex
    from torchcopylint.flow.machine import Machine

_GRAD = "torch.autograd.grad"
_SWITCHING = frozenset({"requires_grad", "requires_grad_()"})


def as_asked(m: Machine, name: str, obj: Object) -> Object:
    """What a parameter is: if `torch.autograd.grad` is asked for its gradient, a tensor that requires one.

    torch refuses any other ("One of the differentiated Tensors does not require grad"). Who switches it on in the
    function itself is given something else.
    """
    if obj.kind not in (*TENSORS, Kind.UNKNOWN) or obj.requires_grad is not Fact.UNKNOWN:
        return obj
    if name not in _asked(m) or m.unit.uses.get(name, frozenset()) & _SWITCHING:
        return obj
    if any(bind.name == name for bind in m.index.of(t.Bind)):
        return obj
    obj = obj if obj.kind in TENSORS else obj._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    return obj._replace(requires_grad=Fact.LIKELY)


def _asked(m: Machine) -> frozenset[str]:
    return frozenset(name for call, name in m.index.asked_gradients if imports.ahead(m, call) == _GRAD)


def saved_for_backward(index: UnitIndex) -> frozenset[str]:
    """The names that a `forward` gives to `ctx.save_for_backward(...)` as they are."""
    given = [
        argument.register
        for event in index.of(t.Invoke)
        if event.name == "save_for_backward"
        for argument in event.arguments
    ]
    made = [index.unit.definitions[register] for register in given]
    return frozenset(event.name for event in made if isinstance(event, t.Load))
