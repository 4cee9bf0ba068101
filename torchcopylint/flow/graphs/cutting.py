"""Which of its arguments a function takes the values of alone: nothing that it computes has their graph behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_METHODS = frozenset({"detach", "item", "tolist", "size", "dim", "numel", "new_zeros", "new_ones", "new_full"})
_ATTRIBUTES = frozenset({"data", "shape", "device", "dtype", "ndim", "requires_grad", "is_cuda"})


def cut(m: Machine) -> tuple[str, ...]:
    """The parameters of a unit that has been run of which nothing is used but detached values, and their shape:
    `def d_loss(net, real, fake): return net(fake.detach()).mean() - net(real).mean()`."""
    names = [parameter.name for parameter in m.unit.parameters if parameter.kind == "plain"]
    methods = {event.name for event in m.index.of(t.Invoke)}
    attributes = {event.name for event in m.index.of(t.Attribute)}
    if "detach" not in methods and "data" not in attributes:
        return ()
    return tuple(name for name in names if _is_cut(m, name))


def _is_cut(m: Machine, name: str) -> bool:
    loads = [event for event in m.index.of(t.Load) if event.name == name]
    if not loads or uses.seen_from_inside(m, name):
        return False
    for load in loads:
        bound = uses.bindings_before(m, load)
        use = m.consumer_of(load.out)
        if bound:
            # By then it is another value, unless that was bound on some paths only.
            if any(uses.on_some_paths(m, event.site) for event in m.index.binds.get(name, ())):
                return False
        elif isinstance(use, t.Invoke):
            if use.base != load.out or use.name not in _METHODS:
                return False
        elif not isinstance(use, t.Attribute) or use.name not in _ATTRIBUTES:
            return False
    return True
