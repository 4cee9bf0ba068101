"""What the receiver of a method is, of which nothing is known: what has such a method."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.library import sliced
from torchcopylint.flow.model import ARCHIVE, EITHER, OTHERWISE, OUTPUT, PART, Fact, How, Kind, Object, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import kinds, memory
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table

OF_DATA = frozenset({"cpu", "cuda", "numpy", "clone", "float", "long", "item", "to", "size", "dim"})
"""Methods of a `.data` that no list, text or array has, though modules and others may."""
OF_COMPUTED = frozenset({"cpu", "cuda", "float", "long", "half", "double", "numpy", "to", "requires_grad_"})
"""Methods of the result of an operator that no array, number or text has, and modules are no operands."""
_OF_MODULES = OF_COMPUTED - {"numpy"} | {"apply", "bfloat16", "cpu", "share_memory_", "to_empty", "type", "xpu"}
"""Methods of tensors that modules have as well."""


def _is_no_table(m: Machine, base: Value) -> bool:
    """Whether something is no table or formula, since the file deals in tensors alone, and nothing else shows that it
    is one."""
    plain = not any(OTHERWISE in m.state.object(ref).flags for ref in base.refs)
    return plain and m.world.deals_in_tensors_only


def receiver(m: Machine, base: Value, event: t.Invoke) -> Object:
    """A method that only one kind of object has shows what its receiver is."""
    name, made = event.name, m.unit.definitions[event.base]
    found = kinds.evidence(name, called=True)
    by_name = {"tensor": Kind.TENSOR, "module": Kind.MODULE, "optimizer": Kind.OPTIMIZER, "array": Kind.ARRAY}
    if found:
        if any(EITHER in m.state.object(ref).flags for ref in base.refs):
            # It has several dimensions: with that, one method of tensors is not all there is to show what it is.
            m.note_evidence(base, frozenset({sliced.SEVERAL_PARTS}))
        memory.refine(m, base, by_name[found], Sure.LIKELY, by=name)
        m.note_evidence(base, frozenset({name}))
    elif _is_computed_output(m, base, name) or (kinds.is_of_tables(name) and _is_no_table(m, base)):
        memory.refine(m, base, Kind.TENSOR, Sure.LIKELY, by=name)
    elif m.holding.flights and name not in _OF_MODULES and any(mark.write in m.holding.flights for mark in base.marks):
        # What was sent to the host without waiting is a tensor or a module.
        if table.tensor_method(name) is not None:
            memory.refine(m, base, Kind.TENSOR, Sure.LIKELY, by=name)
    elif table.array_method(name) is not None and ARCHIVE in m.state.object(base.refs[0]).flags:
        # An archive of several arrays has none of their methods.
        memory.evidence_array(m, base)
    elif isinstance(made, t.Invoke) and kinds.are_tensors_alone(frozenset({made.name, name})):
        # `x.float().abs()`: what the one gives has the other.
        memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
        if kind_of(source := m.value(made.base), m.state) is Kind.UNKNOWN and source.refs:
            memory.refine(m, source, Kind.TENSOR, Sure.LIKELY)
    else:
        obj = m.state.object(base.refs[0])
        computed = isinstance(made, t.Operate) and name in OF_COMPUTED
        if (computed or (name in OF_DATA and any(share.how is How.DATA for share in obj.shares))) and not _is_otherwise(
            m, event.out
        ):
            memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
        if name == "backward" and (obj.graph or obj.requires_grad is Fact.YES):
            # Computed from what a network returned: an engine or a handle has no graph of its own.
            memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
        kind, sure = kinds.from_name(obj.text)
        if (name == "step" and kind is Kind.OPTIMIZER) or (
            name in ("state_dict", "load_state_dict", "eval", "train", "to") and kind in (Kind.MODULE, Kind.OPTIMIZER)
        ):
            memory.refine(m, base, kind, sure)
    return m.state.object(base.refs[0])


def _is_computed_output(m: Machine, base: Value, name: str) -> bool:
    """Whether something is all that a network returned, and has a method that arrays and tensors have to compute
    with, or the one that networks have themselves: a network returns neither."""
    obj = m.state.object(base.refs[0])
    if obj.kind is not Kind.UNKNOWN or OUTPUT not in obj.flags or PART in obj.flags:
        return False
    tensor = table.tensor_method(name)
    computes = tensor is not None and tensor.result == "tensor" and table.array_method(name) is not None
    return computes or name == "requires_grad_"


def _is_otherwise(m: Machine, register: int) -> bool:
    """Whether what a method returns is used at once as no tensor can be: `weights.data.to(device).to_module(model)`."""
    use = m.consumer_of(register)
    if not isinstance(use, t.Invoke | t.Attribute) or use.base != register:
        return False
    return kinds.used_otherwise(frozenset({use.name}))
