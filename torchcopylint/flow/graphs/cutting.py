"""Which of its arguments a function takes the values of alone: nothing that it computes has their graph behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_METHODS = frozenset({"detach", "item", "tolist", "size", "dim", "numel", "new_zeros", "new_ones", "new_full"})
_ATTRIBUTES = frozenset({"data", "shape", "device", "dtype", "ndim", "requires_grad", "is_cuda"})
_BY_SHAPE = frozenset({"zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "len", "range"})
"""Functions that ask what they are given for its shape, or for a whole number."""
MAX_STEPS = 4
"""So many items and names lead from a parameter to where it is used."""


def cut(m: Machine) -> tuple[str, ...]:
    """The parameters of a unit that has been run of which nothing is used but detached values, their shape, and what
    picks elements: `def d_loss(net, real, fake): return net(fake.detach()).mean() - net(real).mean()`. An index is a
    whole number, and has no gradient."""
    names = [parameter.name for parameter in m.unit.parameters if parameter.kind == "plain"]
    loads: dict[str, list[t.Load]] = {}
    for load in m.index.of(t.Load):
        loads.setdefault(load.name, []).append(load)
    return tuple(name for name in names if _is_cut(m, loads, name))


def _is_cut(m: Machine, loads: dict[str, list[t.Load]], name: str) -> bool:
    if uses.seen_from_inside(m, name):
        return False
    for load in loads.get(name, ()):
        if not uses.bindings_before(m, load):
            if not _has_no_graph_of(m, loads, load.out, MAX_STEPS):
                return False
        # By then it is another value, unless that was bound on some paths only.
        elif any(uses.on_some_paths(m, event.site) for event in m.index.binds.get(name, ())):
            return False
    return True


def _has_no_graph_of(m: Machine, loads: dict[str, list[t.Load]], register: int, steps: int) -> bool:
    """Whether what becomes of a value has none of its graph behind it."""
    use = m.consumer_of(register)
    if use is None:
        # It stands in square brackets, or nowhere.
        return True
    if use.__class__ is t.Invoke and use.base == register:
        return use.name in _METHODS
    if use.__class__ is t.Call or use.__class__ is t.Invoke:
        return m.dotted_of(use).rpartition(".")[2] in _BY_SHAPE and use.arguments[0].register == register
    if use.__class__ is t.Attribute:
        return use.name in _ATTRIBUTES
    if (use.__class__ is t.Item or use.__class__ is t.Operate) and steps:
        return _has_no_graph_of(m, loads, use.out, steps - 1)
    if isinstance(use, t.Bind) and steps and len(m.index.binds.get(use.name, ())) == 1:
        return not uses.seen_from_inside(m, use.name) and all(
            _has_no_graph_of(m, loads, load.out, steps - 1) for load in loads.get(use.name, ())
        )
    return False
