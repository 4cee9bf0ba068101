"""What a unit does when nobody passes anything for its optional parameters: the arms that it does not run then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ARGUMENT, Kind, Sure
from torchcopylint.flow.tapes import constants

if TYPE_CHECKING:
    from torchcopylint.flow.model import Object, Value
    from torchcopylint.flow.running.machine import Machine

_COPYING = frozenset({"clone", "copy", "deepcopy"})


def others(m: Machine, refs: tuple[int, ...]) -> tuple[int, ...]:
    """The objects among several that a name may hold, without those that are made on arms that nobody runs by default:
    `adv = x`, and `if start: adv = x + noise(x)`, where `start` is `False` unless it is passed.

    Who asks whether to copy (`if keep: y = x.clone()`) has thought of what happens otherwise.
    """
    if len(refs) < 2:
        return refs
    off = _off(m)
    made = [m.state.object(ref).site for ref in refs] if off else []
    kept = tuple(ref for ref, site in zip(refs, made, strict=False) if site not in off)
    if not kept or len(kept) == len(refs):
        return refs
    events = (m.unit.definitions[m.index.calls[site]] for site in made if site in off and site in m.index.calls)
    return refs if any(isinstance(event, t.Invoke) and event.name in _COPYING for event in events) else kept


def _off(m: Machine) -> frozenset[int]:
    """The sites on arms that are not run if every optional parameter has its default."""
    if m.index.off_by_default is None:
        m.index.off_by_default = _found(m)
    return m.index.off_by_default


def _found(m: Machine) -> frozenset[int]:
    branches = m.index.of(t.Branch)
    known = _defaults(m) if branches else {}
    off: set[int] = set()
    for branch in branches if known else ():
        run = constants.only_arm(m.unit, branch, known)
        off |= {event.site for arm in branch.arms if run is not None and arm is not run for event in t.events(arm)}
    return frozenset(off)


def layer_of(m: Machine, value: Value) -> Value:
    """What a field gets where a layer is made if nobody passes one (`self.act = act or nn.ReLU()`, or `act = nn.ReLU()`
    where that is `None`), and nobody in the file does: the layer, as it is by default."""
    optional = [ref for ref in value.refs if _is_optional(m, m.state.object(ref))]
    layers = tuple(ref for ref in value.refs if m.state.object(ref).kind is Kind.MODULE)
    if not optional or not layers or len(optional) + len(layers) < len(value.refs):
        return value
    for ref in layers:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(sure=min(obj.sure, Sure.LIKELY)))
    return value._replace(refs=layers, kind=Kind.MODULE, const=None)


def _is_optional(m: Machine, obj: Object) -> bool:
    """Whether something is a parameter that is `None` if nothing is passed, and for which nothing is in the file."""
    default = m.world.defaults.get(m.unit.number, {}).get(obj.text)
    unknown = obj.owner == ARGUMENT and obj.kind is Kind.UNKNOWN and default is not None and default.value is None
    return unknown and not m.world.may_be_handed(m.unit, obj.text)


def holds(m: Machine, register: int) -> bool | None:
    """Whether a register holds something true if every optional parameter has its default; `None` if nobody knows."""
    return constants.holds(m.unit, register, _defaults(m))


def _defaults(m: Machine) -> dict[str, t.Const]:
    """The parameters that have a constant for their default, and that the unit does not bind anew."""
    unit = m.unit
    outer = m.world.program.units[unit.parent].definitions if unit.kind == "function" and unit.parent >= 0 else ()
    made = next((e for e in outer if isinstance(e, t.Function) and e.unit == unit.number), None)
    defaults = {name: outer[register] for name, register in made.defaults if register >= 0} if made is not None else {}
    return {name: value for name, value in defaults.items() if isinstance(value, t.Const) and name not in m.index.binds}
