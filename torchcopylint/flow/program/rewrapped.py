"""Networks that are taken for others of their own: chains of the layers of another one, and what `eval()` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModulePaired
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program.named_apart import FORM
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_CHAINS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
_COPIED = frozenset({"builtins.list", "builtins.tuple"})
_ITSELF = frozenset({"eval", "requires_grad_"})
"""Methods that switch a module and return it."""
MAX_STEPS = 4


def found(m: Machine) -> Iterator[ModulePaired]:
    """The chains over all layers of another network that is called as well, once they are switched off.

    What is a part of the other one, or what alone is used, may well be that (`backbone = Sequential(*net.children())`).
    """
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in calls:
        source = _source(m, call)
        place = _place(m, call.out) if source else None
        if place is None:
            continue
        name, bound = place
        off = [site for site in _switched_off(m, name) if site > bound]
        other = _field_of(m, source)
        used = [
            one.site
            for one in m.index.of(t.Call)
            if one.site > bound and naming.text_of(m, one.function) == source and one.site not in m.called.muted
        ]
        used += _called_together(m, name, other) if other else []
        if off and used:
            yield ModulePaired(off[0], name, source, bound, FORM, Sure.LIKELY)
    yield from _switched(m)


def _switched(m: Machine) -> Iterator[ModulePaired]:
    """`teacher = student.eval()`: what is called by the new name once the other one is back in training mode, or beside
    it in a method, was to be another network."""
    for call in m.index.of(t.Invoke):
        place = _place(m, call.out) if call.name in _ITSELF else None
        if place is None:
            continue
        register = _before(m, call.base)
        source, (name, bound) = naming.text_of(m, register), place
        kinds = {m.state.object(ref).kind for ref in m.value(register).refs}
        if name == source or not kinds or not kinds <= {Kind.MODULE, Kind.UNKNOWN}:
            continue
        back = [
            one.site
            for one in m.index.of(t.Invoke)
            if one.name == "train" and one.site > bound and naming.text_of(m, one.base) == source and not one.arguments
        ]
        called = [one.site for one in m.index.of(t.Call) if naming.text_of(m, one.function) == name]
        used = [site for site in called if back and site > back[0]]
        other = _field_of(m, source)
        used += _called_together(m, name, other) if other else []
        if used:
            yield ModulePaired(used[0], name, source, bound, FORM, Sure.LIKELY)


def _before(m: Machine, register: int) -> int:
    """What was switched, and sent somewhere, before: `student` of `student.eval().to(device)`."""
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if not isinstance(made, t.Invoke) or made.name not in _ITSELF | {"to", "cuda", "cpu", "train"}:
            break
        register = made.base
    return register


def _source(m: Machine, call: t.Call | t.Invoke) -> str:
    """The network all of whose layers a chain is made of: `Sequential(*net)`, `Sequential(*list(net.children()))`."""
    if len(call.arguments) != 1 or call.arguments[0].keyword or m.dotted_of(call) not in _CHAINS:
        return ""
    register = call.arguments[0].register
    if not call.arguments[0].stars and m.dotted_of(call) == "torch.nn.Sequential":
        return ""
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Call) and m.dotted_of(made) in _COPIED and len(made.arguments) == 1:
            register = made.arguments[0].register
        elif isinstance(made, t.Invoke) and made.name == "children" and not made.arguments:
            register = made.base
        elif isinstance(made, t.Load | t.Attribute):
            kinds = {m.state.object(ref).kind for ref in m.value(register).refs}
            return naming.text_of(m, register) if kinds and kinds <= {Kind.MODULE, Kind.UNKNOWN} else ""
        else:
            break
    return ""


def _place(m: Machine, register: int) -> tuple[str, int] | None:
    """The name or field that holds what a register does, and where it was bound."""
    event = m.consumer_of(register)
    if isinstance(event, t.Bind):
        return (event.name, event.site) if len(m.index.binds.get(event.name, ())) == 1 else None
    if isinstance(event, t.StoreAttribute):
        return f"{naming.text_of(m, event.base)}.{event.name}", event.site
    return None


def _switched_off(m: Machine, name: str) -> list[int]:
    """Where all parameters of what a place holds are told not to require grad."""
    sites = []
    for event in m.index.of(t.Invoke):
        value = m.value(event.arguments[0].register).const if len(event.arguments) == 1 else None
        if event.name == "requires_grad_" and value is False and _is_of(m, event.base, name):
            sites.append(event.site)
    for store in m.index.stores.get("requires_grad", ()):
        if m.value(store.value).const is False and _is_of(m, store.base, name):
            sites.append(store.site)
    return sorted(sites)


def _is_of(m: Machine, register: int, name: str) -> bool:
    """Whether a register holds what a place does, or each of its parameters, which a loop goes through."""
    if naming.text_of(m, register) == name:
        return True
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Load):
        return False
    for bind in m.index.binds.get(made.name, ()):
        each = m.unit.definitions[bind.value] if bind.value >= 0 else None
        over = m.unit.definitions[each.iterable] if isinstance(each, t.Iterate) else None
        if isinstance(over, t.Invoke) and over.name == "parameters" and naming.text_of(m, over.base) == name:
            return True
    return False


def _field_of(m: Machine, source: str) -> str:
    """The field that a constructor puts a network into that it has been given, or that it is itself."""
    if m.unit.name != "__init__" or m.unit.owner < 0:
        return ""
    me = f"{m.unit.first}."
    if source.startswith(me):
        return source
    stores = [store for held in m.index.stores.values() for store in held]
    kept = [store.name for store in stores if naming.text_of(m, store.value) == source]
    return f"{me}{kept[0]}" if kept else ""


def _called_together(m: Machine, name: str, other: str) -> list[int]:
    """Where a method calls both of two fields; what is one field, which each of several ways sets, is one network."""
    sites: list[int] = []
    if name == other:
        return sites
    for unit in m.world.program.units:
        if unit.owner != m.unit.owner or unit.kind != "function" or unit.number == m.unit.number:
            continue
        called: dict[str, int] = {}
        for call in m.world.index(unit).of(t.Invoke):
            owner = unit.definitions[call.base] if call.base >= 0 else None
            if isinstance(owner, t.Load) and owner.name == unit.first:
                called.setdefault(f"{m.unit.first}.{call.name}", call.site)
        if name in called and other in called:
            sites.append(called[other])
    return sites
