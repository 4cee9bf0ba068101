"""What the `copy` module does to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd.unknowns import BACKWARD_NAMES
from torchcopylint.flow.facts import TensorCopied
from torchcopylint.flow.graphs import figures
from torchcopylint.flow.library import reparametrised
from torchcopylint.flow.model import ANY_ELEMENT, COMPUTES, CONTAINERS, LOCAL, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.program import hollow
from torchcopylint.flow.tapes import after_turns, uses
from torchcopylint.flow.values import kinds, memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_BY_ITSELF = ("__deepcopy__", "__getstate__", "__reduce__", "__reduce_ex__")
"""Methods by which an object says itself what is copied of it."""
_HOLDING = CONTAINERS - {Kind.STATE_DICT, Kind.ITERATOR} | {Kind.MODULE, Kind.INSTANCE}
"""What may stand in a field, and is copied with all that it holds."""
MAX_DEPTH = 2
"""How deep what a container or an object holds is looked at."""
_ASKED_FOR_PARAMETERS = frozenset({"parameters()", "named_parameters()"})


def note_copy(m: Machine, value: Value, call: t.Call | t.Invoke, name: str) -> None:
    """`copy.copy` gets a tensor, whichever of its objects the value is. A copy of which only the numbers are taken has
    no use for a graph: `copy.copy(x).cpu().data.numpy()`."""
    found = [m.state.object(ref) for ref in value.refs]
    if all(obj.kind in TENSORS for obj in found):
        looks = figures.Looks(m.unit, m)
        number = looks.ends(call.out) and looks.looked and not looks.returned
        computed = not number and all(_is_computed(obj) for obj in found)
        sure = min(obj.sure for obj in found)
        m.fact(TensorCopied(call.site, name, "copy", found[0].site if computed else -1, sure))


def refine_source(m: Machine, source: Value, out: int) -> None:
    """What is done with the copy `out` shows that a tensor was copied, `noisy = copy.copy(x)`, `noisy.add_(...)`, or a
    network, `local = copy.copy(server)`, `local.parameters()`, also where methods ask that of a field."""
    bound = m.consumer_of(out)
    if isinstance(bound, t.StoreAttribute):
        mine = m.unit.owner >= 0 and naming.text_of(m, bound.base) == m.unit.first
        if mine and m.world.is_called_module(m.world.instance(m.unit.owner).type, bound.name):
            memory.refine(m, source, Kind.MODULE, Sure.LIKELY)
        return
    used = m.unit.uses.get(f"{bound.name}@{bound.site}") if isinstance(bound, t.Bind) else None
    shown = kinds.from_uses(used)[0] if used is not None else Kind.UNKNOWN
    if used is not None and shown is Kind.UNKNOWN and used & _ASKED_FOR_PARAMETERS:
        # Whatever holds a network is copied no deeper than that.
        shown = Kind.MODULE
    if shown in (Kind.TENSOR, Kind.MODULE):
        memory.refine(m, source, shown, Sure.LIKELY)


def note_deepcopy(m: Machine, value: Value, site: int, name: str) -> None:
    """`copy.deepcopy` gets a computed tensor, or something that holds one: it refuses."""
    if m.blocks.on_purpose or m.blocks.guards:
        return
    found = [_computed_in(m, ref, name, MAX_DEPTH, site) for ref in value.refs]
    if found and found[0] is not None and all(one is not None for one in found):
        held, obj = found[0]
        m.fact(TensorCopied(site, held, "deepcopy", obj.site, _sure(m, obj)))


def _sure(m: Machine, obj: Object) -> Sure:
    if _may_be_frozen(m):
        return Sure.HINT
    if obj.requires_grad is Fact.YES:
        return obj.sure
    return min(obj.sure, Sure.LIKELY if hollow.comes_through_known(m, obj) else Sure.HINT)


def _may_be_frozen(m: Machine) -> bool:
    """Whether a method of a module works with its parameters, and nobody in the file runs backward: others decide which
    of them require grad."""
    if m.unit.owner < 0 or m.world.class_kind(m.unit.owner)[0] is not Kind.MODULE:
        return False
    events = (event for unit in m.world.program.units for event in unit.definitions)
    return not any(isinstance(event, t.Invoke) and event.name in BACKWARD_NAMES for event in events)


def _is_computed(obj: Object) -> bool:
    return obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0


def _computed_in(m: Machine, ref: int, name: str, depth: int, site: int) -> tuple[str, Object] | None:
    obj = m.state.object(ref)
    if _is_computed(obj):
        return name, obj
    if obj.kind in (Kind.MODULE, Kind.INSTANCE) and any(
        m.world.method_of(obj, name) is not None for name in _BY_ITSELF
    ):
        return None
    if COMPUTES in obj.flags and not reparametrised.is_as_left(m, ref, site):
        return None
    left = _left_by_constructor(m, obj, ref, site)
    if left is not None:
        return f"{name}.{left[0]}", left[1]
    if depth and obj.kind in (*CONTAINERS, Kind.MODULE, Kind.INSTANCE) and obj.kind is not Kind.STATE_DICT:
        for slot in m.state.slot_names(ref):
            cell = m.state.cell(slot)
            refs = after_turns.of_turns(m, cell) if cell is not None else ()
            held = [m.state.object(r) for r in refs]
            if len(held) == 1 and held[0].kind in _HOLDING and slot[1].startswith("."):
                inner = _computed_in(m, refs[0], name + slot[1], depth - 1, site)
                if inner is not None:
                    return inner
            if obj.kind is Kind.MODULE and slot[1].startswith("[") and reparametrised.is_as_left(m, ref, site):
                # What stands for several parts of a chain is each of them.
                parts = [r for r in refs if COMPUTES in m.state.object(r).flags]
                inners = [_computed_in(m, r, f"{name}[...]", depth - 1, site) for r in parts]
                if (found := next((one for one in inners if one is not None), None)) is not None:
                    return found
            if not held or not all(_is_computed(one) for one in held):
                continue
            if slot[1] != ANY_ELEMENT:
                return f"{name}{slot[1]}", held[0]
            # What stands for several elements may be on some paths only, unless it was put in last on every path.
            if cell is not None and cell.site >= 0 and not uses.on_some_paths(m, cell.site):
                return f"{name}[...]", held[0]
    return None


def _left_by_constructor(m: Machine, obj: Object, ref: int, site: int) -> tuple[str, Object] | None:
    """A field of an instance in which its constructor, which nobody overrides, leaves something computed."""
    number = m.world.local_class(obj.type) if obj.kind in (Kind.MODULE, Kind.INSTANCE) else None
    constructor = m.world.method(number, "__init__") if number is not None else None
    initial = m.world.machines.get(constructor) if constructor is not None else None
    if number is None or initial is None or initial.unit.owner != number:
        return None
    for slot in initial.state.slot_names(initial.number("argument", initial.unit.first)):
        cell, field = initial.state.cell(slot), slot[1][1:]
        if cell is None or len(cell.refs) != 1 or cell.site < 0 or m.world.setters(field):
            continue
        held = initial.state.object(cell.refs[0])
        if COMPUTES in held.flags and not uses.on_some_paths(initial, cell.site):
            inner = _computed_in(initial, cell.refs[0], field, 1, -1)
            if inner is not None and reparametrised.is_as_left(m, ref, site):
                return inner[0], inner[1]._replace(site=-1)
        if held.owner in ("", LOCAL) and _is_computed(held) and not uses.on_some_paths(initial, cell.site):
            # Its site is the constructor's.
            return field, held._replace(site=-1)
    return None
