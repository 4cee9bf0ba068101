"""Parameters for whose gradient a function asks, and that it is therefore given with one to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import only_source
from torchcopylint.flow.model import TENSORS, Fact, Kind, Object, Sure
from torchcopylint.flow.values import imports

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_GRAD = "torch.autograd.grad"
_SWITCHING = frozenset({"requires_grad", "requires_grad_()"})


def as_asked(m: Machine, name: str, obj: Object) -> Object:
    """What a parameter is: if `torch.autograd.grad` is asked for its gradient, or nothing else can be what backward
    runs for, a tensor that requires one.

    torch refuses any other ("One of the differentiated Tensors does not require grad"). Who switches it on in the
    function itself is given something else.
    """
    if obj.kind not in (*TENSORS, Kind.UNKNOWN) or obj.requires_grad is not Fact.UNKNOWN:
        return obj
    asked = name in _asked(m) or (obj.kind in TENSORS and only_source.is_trained(m, name))
    if not asked or m.unit.uses.get(name, frozenset()) & _SWITCHING:
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


def has_gradient(m: Machine, name: str, *, spelt: bool = False) -> bool:
    """Whether `backward` gives an input of `forward` a gradient, on every path that can be seen: a buffer has none.

    `spelt` is whether a tuple that is put together elsewhere (`(None,) + gradients`) says nothing of the first one.
    """
    number = m.world.method(m.unit.owner, "backward")
    if number is None or not m.world.is_own(number):
        return False
    first = 0 if m.world.method(m.unit.owner, "setup_context") is not None else 1
    names = [parameter.name for parameter in m.unit.parameters[first:]]
    position = names.index(name) if name in names else len(names)
    unit = m.world.unit(number)
    returned = [unit.definitions[event.value] for event in m.world.index(unit).of(t.Return) if event.value >= 0]
    given = [_item(made, position, len(names)) if isinstance(made, t.Make) else t.NO_REGISTER for made in returned]
    whole = position == 0 and bool(returned) and not any(isinstance(made, t.Make | t.Const) for made in returned)
    whole = whole and not (spelt and len(names) > 1)
    return whole or (bool(given) and all(_is_something(unit, register) for register in given))


def _item(made: t.Make, position: int, wanted: int) -> int:
    """What stands at a position of a tuple that has as many parts as are wanted; nothing that is known if it is part of
    what is unpacked there: `(*pair, None, g)`."""
    starred = [number for number, star in enumerate(made.stars) if star]
    if not starred or position < starred[0]:
        return made.items[position] if position < len(made.items) else t.NO_REGISTER
    from_end = wanted - position
    return made.items[-from_end] if from_end < len(made.items) - starred[-1] else t.NO_REGISTER


def _is_something(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return made is not None and not (isinstance(made, t.Const) and made.value is None)
