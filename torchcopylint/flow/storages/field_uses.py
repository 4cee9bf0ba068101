"""Which field of `self` a value was taken out of, and the fields that a method puts back into what it is handed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.tapes import exclusion, passing_by, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 40
"""So many events are gone back over from an operand to the field that it was taken from."""
_PASSING = frozenset(
    {"items", "values", "get", "pop", "view", "flatten", "to", "cpu", "cuda", "detach", "clone", "float"}
)
"""Methods whose result is what the receiver holds, or a value of it."""


_ASKING = frozenset({"parameters", "named_parameters"})


def called_modules(units: Iterable[t.Unit]) -> frozenset[tuple[int, str]]:
    """The fields, by class and name, that methods call like a function and ask for parameters: they hold networks,
    whatever has made them. `self.net = build(dim)`, `self.net(x)`, `SGD(self.net.parameters())`."""
    called: set[tuple[int, str]] = set()
    asked: set[tuple[int, str]] = set()
    for unit in units:
        for event in unit.definitions if unit.owner >= 0 else ():
            if event.__class__ is not t.Invoke:
                continue
            base = unit.definitions[event.base] if event.base >= 0 else None
            if base.__class__ is t.Load and base.name == unit.first:
                called.add((unit.owner, event.name))
            elif base.__class__ is t.Attribute and event.name in _ASKING:
                holder = unit.definitions[base.base] if base.base >= 0 else None
                if isinstance(holder, t.Load) and holder.name == unit.first:
                    asked.add((unit.owner, base.name))
    return frozenset(called & asked)


def put_back(m: Machine) -> tuple[str, ...]:
    """The fields of `self`, as they were before the method, that it loads into a module as a state dict."""
    if m.unit.owner < 0 or not m.fields.initial:
        return ()
    loads = [event for event in m.index.of(t.Invoke) if event.name == "load_state_dict" and event.arguments]
    fields = [
        field_of(m, e.arguments[0].register) or from_earlier_call(m, e.arguments[0].register, e.site) for e in loads
    ]
    return tuple(sorted(set(fields) - {""}))


def read_by_call(m: Machine, fields: tuple[str, ...], owner: Value, site: int, name: str) -> None:
    """A call of a method reads the fields of the object that it is called on, which the method puts back.

    The fields of `self` are a matter of the class.
    """
    for ref in owner.refs:
        if m.state.object(ref).owner == "self":
            continue
        for field in fields:
            if m.state.cell((ref, f".{field}")) is not None:
                reading.read(m, slots.slot_value(m, (ref, f".{field}")), site, "load_state_dict", name)


def from_earlier_call(m: Machine, register: int, site: int) -> str:
    """The field of `self` that a value was taken out of, if the method sets it, but need not have done so on the way
    to a site: then it is as an earlier call has left it."""
    set_here = {name for name, stores in m.index.stores.items() if any(uses.is_self(m, store.base) for store in stores)}
    field = field_of(m, register, set_here) if set_here else ""
    stores = [store.site for store in m.index.stores.get(field, ()) if uses.is_self(m, store.base)]
    way = [
        one for one in stores if not exclusion.exclude(m, one, site) and not passing_by.leaves(m.unit.tape, one, site)
    ]
    return field if stores and (not way or passing_by.passes_by(m, way, site)) else ""


def item_from_earlier_call(m: Machine, field: str, site: int) -> bool:
    """Whether a method that puts items into a container in a field need not have done so on the way to a site."""
    stores = [store.site for store in m.index.of(t.StoreItem) if field_of(m, store.base) == field]
    return bool(stores) and passing_by.passes_by(m, stores, site)


def _is_setting(m: Machine, item: t.Item) -> bool:
    part = item.subscript[0] if len(item.subscript) == 1 else t.NO_REGISTER
    key = m.value(part).const if isinstance(part, int) and part >= 0 else None
    return isinstance(key, str) and key != "params"


def field_of(m: Machine, register: int, set_here: Collection[str] = ()) -> str:
    """The field of `self`, set by another method, that a value was taken out of: by an index, a loop, a name.

    Or one of those that are `set_here`, by this method as well.
    """
    position, setting = -1, False
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if event.__class__ is t.Attribute:
            if setting and event.name == "param_groups":
                # What stands there beside the parameters are numbers: `optimizer.param_groups[0]["lr"]`.
                return ""
            known = event.name in m.fields.initial or event.name in set_here or event.name == "param_groups"
            if known and uses.is_self(m, event.base):
                return event.name
            if event.name not in ("data", "param_groups"):
                return ""
            register = event.base
        elif event.__class__ is t.Item:
            setting = setting or _is_setting(m, event)
            register = event.base
        elif event.__class__ is t.Load:
            bound = uses.bindings_before(m, event)
            if not bound:
                return ""
            register = bound[-1]
        elif event.__class__ is t.Unpack:
            register, position = event.value, event.position
        elif isinstance(event, t.Iterate):
            register = event.iterable
        elif isinstance(event, t.Invoke) and (event.name in _PASSING or event.name.endswith("_")):
            register = event.base
        elif isinstance(event, t.Call) and naming.text_of(m, event.function) in ("zip", "enumerate", "reversed"):
            several = naming.text_of(m, event.function) == "zip"
            place = position if several else 0
            if not 0 <= place < len(event.arguments):
                return ""
            register = event.arguments[place].register
        else:
            return ""
    return ""
