"""`setattr`: a field that is set by name, and a module that is given all parameters of another one."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.events import attribute_stores
from torchcopylint.flow.model import How, Kind, Part, Value
from torchcopylint.flow.program import ownership
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.storages import aliasing, sharing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory, naming
from torchcopylint.flow.values.sites import Arguments


@special("builtins.setattr")
def _setattr(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    attribute = arguments.at(1).const
    if len(event.arguments) != 3 or any(argument.stars or argument.keyword for argument in event.arguments):
        return Value(kind=Kind.NONE)
    base, key, value = (argument.register for argument in event.arguments)
    if isinstance(attribute, str):
        attribute_stores.store(m, t.StoreAttribute(base, attribute, value, False, event.site))
    else:
        sharing.set_anew(m, key)
        _note_replaced(m, m.value(base), (base, key), m.value(value), event.site)
        _note_tied(m, m.value(base), key, value, event.site)
    return Value(kind=Kind.NONE)


def _note_replaced(m: Machine, target: Value, names: tuple[int, int], value: Value, site: int) -> None:
    """`for name, part in model.named_children(): setattr(model, name, nn.Linear(4, 4))`: some part, or each in turn."""
    text = f"{naming.text_of(m, names[0])}.{{{naming.text_of(m, names[1])}}}"
    for single, obj in m.each(memory.by_kind(m, target)):
        if obj.kind is Kind.MODULE:
            ownership.note_replaced(m, single.refs[0], Part("item"), value, text, site)


def _note_tied(m: Machine, target: Value, key: int, register: int, site: int) -> None:
    """`for name, p in net.named_parameters(): setattr(target, name, p)`: from here on the two have one set of
    parameters, as if they were one module."""
    modules = _all_of(m, m.value(register)), aliasing.modules_behind(m, target, 0)
    if any(len(found) != 1 for found in modules) or modules[0] == modules[1] or uses.on_some_paths(m, site):
        return
    if _from_one_pair(m, key, register):
        (source,), (other,) = modules
        m.fields.tied[other, source] = site


def _all_of(m: Machine, value: Value) -> frozenset[int]:
    """The module of which a value is any parameter, or any child."""
    obj = m.state.object(value.refs[0]) if len(value.refs) == 1 else None
    if obj is None or obj.kind is not Kind.MODULE:
        return aliasing.modules_behind(m, value, 0)
    whole = [s.of for s in obj.shares if s.how is How.FIELD and s.sure and s.region[-1:] == (Part("each"),)]
    return frozenset(whole[:1])


def _from_one_pair(m: Machine, key: int, register: int) -> bool:
    """Whether two names are bound by one loop, from the two halves of what it visits, and nowhere else."""
    sources = []
    for made in (m.unit.definitions[key], m.unit.definitions[register]):
        binds = m.index.binds.get(made.name, ()) if isinstance(made, t.Load) else ()
        part = m.unit.definitions[binds[0].value] if len(binds) == 1 and binds[0].value >= 0 else None
        sources.append(part.value if isinstance(part, t.Unpack) else -1)
    return sources[0] == sources[1] >= 0 and isinstance(m.unit.definitions[sources[0]], t.Iterate)
