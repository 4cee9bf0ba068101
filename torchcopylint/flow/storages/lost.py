"""Writes that are accepted and reach nobody: items of a state dict, parameters given away to a plain tensor."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterOverwritten, StateItemLost
from torchcopylint.flow.model import ITSELF, Kind, Object, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

_LOOKS = frozenset({"keys", "items", "values"})
UPDATE = "update"
_REPARAMETRISING = frozenset(
    ["register_parametrization", "weight_norm", "spectral_norm", "_parameters", "delattr", "__delattr__", "parametrize"]
)
"""Names in a file that say that parameters are taken off modules, after which anything can be put in their place."""


def note_state_item(m: Machine, event: t.StoreItem | t.Invoke, obj: Object) -> None:
    """Items of a state dict are set, by an assignment or by `update`, and nobody gets to see the dict."""
    made = m.unit.definitions[event.base]
    text = naming.text_of(m, event.base)
    if isinstance(made, t.Load):
        if not _is_private(m, made.name) or (
            isinstance(event, t.Invoke) and _is_gone_through(m, made.name, event.site)
        ):
            return
    elif not isinstance(made, t.Invoke | t.Call):
        return
    source = obj.text if obj.text.endswith(".state_dict()") else ""
    m.fact(StateItemLost(event.site, text, source, obj.site, isinstance(made, t.Load), obj.sure))


def _is_private(m: Machine, name: str) -> bool:
    """Whether a name is bound once, and only its items are looked at and set."""
    if uses.seen_from_inside(m, name):
        return False
    found = uses.of_name(m, name)
    bound = [use for use in found if not use.loads]
    if len(bound) != 1 or not isinstance(m.unit.definitions[bound[0].register], t.Invoke | t.Call):
        return False
    return all(_is_item_use(m, use.register) for use in found if use.loads)


def _is_gone_through(m: Machine, name: str, site: int) -> bool:
    """Whether what stands under a name is looked at behind a site: each entry, and not just the keys."""
    later = [m.consumer_of(use.register) for use in uses.of_name(m, name) if use.loads and use.site > site]
    return any(isinstance(one, t.Item | t.Iterate) or _looks(one) for one in later)


def _looks(event: t.Event | None) -> bool:
    return isinstance(event, t.Invoke) and event.name in _LOOKS - {"keys"}


def _is_item_use(m: Machine, register: int) -> bool:
    event = m.consumer_of(register)
    if isinstance(event, t.Invoke):
        return event.base == register and (event.name in _LOOKS or event.name == UPDATE)
    if isinstance(event, t.Item | t.StoreItem):
        return event.base == register
    if isinstance(event, t.Logic):
        return event.symbol in ("in", "not in")
    return isinstance(event, t.Iterate | t.Discard)


def note_parameter(m: Machine, event: t.StoreAttribute, ref: int, obj: Object, value: Value) -> None:
    """A module's field that is a parameter is set to something: torch takes nothing but a parameter or `None` there."""
    if event.augmented or not value.refs:
        return
    new = [m.state.object(held) for held in value.refs]
    if any(one.kind is not Kind.TENSOR or one.sure < Sure.LIKELY or ITSELF in one.flags for one in new):
        return
    if any(held | 1 in m.shown.evidence for held in value.refs):
        # Known by its use, which is that of a parameter as well.
        return
    sure = min(_is_registered(m, ref, obj, event), *(one.sure for one in new))
    if sure is Sure.NOT or _taken_off(m, event.name) or _is_of_another_way(m, obj, event):
        return
    when = next((s.when for one in new for s in one.shares if s.when and _is_parameter(m, s.of)), "")
    text = naming.text_of(m, event.base)
    if when and _is_made_of_others(m, event, text):
        return
    m.fact(ParameterOverwritten(event.site, f"{text}.{event.name}", naming.text_of(m, event.value), when, sure))


def _is_made_of_others(m: Machine, event: t.StoreAttribute, owner: str) -> bool:
    """Whether what is stored is a new parameter, computed of what the same object has, and so where that is: sending it
    there converts nothing. `self.std = nn.Parameter((self.sq - self.mean ** 2).sqrt()).to(self.device)`."""
    sent = m.unit.definitions[event.value] if event.value >= 0 else None
    made = m.unit.definitions[sent.base] if isinstance(sent, t.Invoke) and sent.base >= 0 else None
    known = isinstance(made, t.Call | t.Invoke) and made.arguments and m.dotted_of(made) == "torch.nn.Parameter"
    if not isinstance(made, t.Call | t.Invoke) or not known:
        return False
    parts = uses.expression(m, made.arguments[0].register, "")
    return any(isinstance(part, t.Attribute) and naming.text_of(m, part.base) == owner for part in parts)


def _is_parameter(m: Machine, ref: int) -> bool:
    return m.state.object(ref).kind is Kind.PARAMETER


def _is_registered(m: Machine, ref: int, obj: Object, event: t.StoreAttribute) -> Sure:
    name = event.name
    cell = m.state.cell((ref, f".{name}"))
    local = m.world.local_class(obj.type)
    # What this event has put there on an earlier turn stands in the field of another one.
    of_another = cell is not None and cell.site == event.site and uses.is_of_each_turn(m, event.base)
    if cell is not None and cell.site >= 0 and not of_another:
        held = [m.state.object(one) for one in cell.refs]
        known = bool(held) and all(one.kind is Kind.PARAMETER and one.sure is Sure.PROVEN for one in held)
        return min(obj.sure, Sure.PROVEN) if known else Sure.NOT
    if local is not None:
        # What `__init__` sets on another branch is not set on this one; what those above set, is.
        above = m.unit.name == "__init__" and m.unit.owner == local
        if _may_be_nothing(m, local, name):
            # Where it is nothing, anything can be put there.
            return Sure.NOT
        return Sure.PROVEN if m.world.is_parameter(local, name, above=above) else Sure.NOT
    row = table.module_class(obj.type) if obj.type else None
    return obj.sure if row is not None and name in row.parameters else Sure.NOT


def _is_of_another_way(m: Machine, obj: Object, event: t.StoreAttribute) -> bool:
    """Whether a field is a parameter under one condition, and is set under one: `if not self.factorised:`."""
    local = m.world.local_class(obj.type)
    if local is None or not uses.on_some_paths(m, event.site):
        return False
    for current in m.world.lineage(local):
        number = m.world.method(current, "__init__") if m.world.is_own_class(current) else None
        index = m.world.index(m.world.unit(number)) if number is not None and m.world.is_own(number) else None
        stores = [one.site for one in index.of(t.StoreAttribute) if one.name == event.name] if index else []
        if index and stores:
            return len(stores) == 1 and stores[0] in index.on_arms
    return False


def _may_be_nothing(m: Machine, local: int, name: str) -> bool:
    """Whether a constructor of this file sets a field of a class to `None` under some condition."""
    lineage = m.world.lineage(local)
    for unit in m.world.program.units:
        if unit.name == "__init__" and unit.owner in lineage:
            index = m.world.index(unit)
            for event in index.stores.get(name, ()):
                if event.site in index.on_arms and _is_nothing(unit, event.value):
                    return True
    return False


def _is_nothing(unit: t.Unit, register: int) -> bool:
    """Whether a register holds `None`, alone or as its part of `self.u, self.w = None, None`."""
    made = unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Unpack) and made.position >= 0:
        several = unit.definitions[made.value]
        items = several.items if isinstance(several, t.Make) else ()
        made = unit.definitions[items[made.position]] if made.position < len(items) else None
    return isinstance(made, t.Const) and made.value is None


def _taken_off(m: Machine, name: str) -> bool:
    """Whether the file takes parameters off modules."""
    for unit in m.world.program.units:
        for event in m.world.index(unit).events:
            if isinstance(event, t.DeleteItem) and event.name == name:
                return True
            if isinstance(event, t.Load | t.Attribute | t.Invoke) and event.name in _REPARAMETRISING:
                return True
            if isinstance(event, t.Import) and event.dotted.rpartition(".")[2] in _REPARAMETRISING:
                return True
    return False
