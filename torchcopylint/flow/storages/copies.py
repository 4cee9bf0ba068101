"""Copies of copies: what is done to a value that an operation just before has done already."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Redundant
from torchcopylint.flow.model import ADVANCED, TENSORS, Fact, How, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import conversions
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op

METHODS = frozenset({"detach", "clone", "item", "tolist"})
_PASSING = frozenset({"cpu", "squeeze", "view", "reshape", "flatten"})
"""Methods that leave it at that: what is detached before them is detached after them."""


def method(m: Machine, name: str, arguments: Arguments, event: t.Invoke, text: str) -> None:
    """A method of a tensor is called on what the expression before it has made."""
    before = m.unit.definitions[event.base]
    if before is None or event.arguments:
        return
    if name == "clone":
        _clone(m, before, arguments.positional[0], event, text)
        return
    while name != "detach" and isinstance(before, t.Invoke) and before.name in _PASSING:
        before = m.unit.definitions[before.base]
    if not isinstance(before, t.Invoke):
        return
    base = m.value(before.base)
    sure = min((m.state.object(ref).sure for ref in arguments.positional[0].refs), default=Sure.NOT)
    form = ""
    if before.name == "detach" and not before.arguments:
        form = "detach" if name == "detach" else "item"
    elif before.name == "clone" and name == "detach" and _records(m, base):
        form = "order"
    if form:
        m.fact(Redundant(event.site, naming.text_of(m, before.base), name, before.name, form, sure))


def deepcopy(m: Machine, source: Value, event: t.Call | t.Invoke, name: str) -> None:
    """`copy.deepcopy` is called on a value: a copy made by the expression in its brackets?"""
    before = m.unit.definitions[event.arguments[0].register] if event.arguments else None
    if isinstance(before, t.Invoke) and before.name == "clone" and source.root is None and _own(m, source):
        text = naming.text_of(m, before.base)
        m.fact(Redundant(event.site, text, name, before.name, "copy", _sure(m, source)))


def _clone(m: Machine, before: t.Event, value: Value, event: t.Invoke, text: str) -> None:
    """A clone of something that nobody else holds."""
    conversions.let_go(m, before)
    if value.root is not None or not _own(m, value):
        return
    if isinstance(before, t.Item):
        if all(ADVANCED in m.state.object(ref).flags for ref in value.refs):
            m.fact(Redundant(event.site, text, "clone", naming.text_of(m, event.base), "copy", _sure(m, value)))
        return
    op = _operation(m, before)
    # Backward keeps the output of `relu`: writing to it takes a copy, though it has no name.
    if op is not None and not op.writes and op.shares == "fresh" and "output" not in op.saves:
        said = before.name if isinstance(before, t.Invoke) else op.short
        m.fact(Redundant(event.site, text, "clone", said, "copy", _sure(m, value)))


def _operation(m: Machine, event: t.Event) -> Op | None:
    """The operation of the table that made a value, if it is one."""
    if isinstance(event, t.Operate):
        return table.operator(event.symbol) if len(event.operands) == 2 else None
    if isinstance(event, t.Invoke):
        base = m.value(event.base)
        if isinstance(base.const, Dotted):
            return table.function(table.canonical(f"{base.const}.{event.name}"))
        return table.tensor_method(event.name)
    if isinstance(event, t.Call):
        dotted = m.value(event.function).const
        return table.function(dotted) if isinstance(dotted, Dotted) else None
    return None


def _records(m: Machine, value: Value) -> bool:
    """Whether an operation on a value adds to the graph, for all that is known."""
    if m.state.mode.recording is Fact.NO or m.state.mode.inference > 0:
        return False
    return not value.refs or any(m.state.object(ref).requires_grad is not Fact.NO for ref in value.refs)


def _own(m: Machine, value: Value) -> bool:
    """Whether a value's memory is surely its own, and it is a tensor."""
    objects = [m.state.object(ref) for ref in value.refs]
    return bool(objects) and all(
        obj.kind in TENSORS and len(obj.shares) == 1 and obj.shares[0].how is How.OWN and not obj.saved
        for obj in objects
    )


def _sure(m: Machine, value: Value) -> Sure:
    return min(m.state.object(ref).sure for ref in value.refs)
