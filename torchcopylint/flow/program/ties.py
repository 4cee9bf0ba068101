"""What the constructor of a class ties: `self.head.weight = self.embedding.weight`, `self.target = self.source`, or two
networks that it builds over one layer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes
    from torchcopylint.flow.tapes.index import UnitIndex

SOME = "..."
"""In the place of a parameter's name: some parameters of what the one field holds are those of the other."""


class Tie(NamedTuple):
    """The parameter `name` of what the field `field` holds is the parameter `other_name` of what `other` holds.

    Without names, the two fields hold the same; with `SOME`, two networks with a layer in common. If the constructor is
    given something true for its parameter `when`, unless that is empty.
    """

    field: str
    name: str
    other: str
    other_name: str
    when: str


def of(world: Classes, number: int) -> list[Tie]:
    """The ties that the constructor of a class makes, whichever way it goes or as a parameter says; of a class of
    another file, those that it makes in any case."""
    initial = world.method(number, "__init__")
    if initial is None:
        return []
    if not world.is_own(initial):
        if world.is_own_class(number):
            return []
        known = world.outside.class_facts(number)
        return [Tie(*names, "") for names in known.ties] if known is not None else []
    found = _made_by(world, world.unit(initial)) + world.common_layers(world.unit(initial).owner)
    for method in _called_surely(world, number, initial):
        found += [tie for tie in _made_by(world, world.unit(method)) if not tie.when]
    return found


def _called_surely(world: Classes, number: int, initial: int) -> list[int]:
    """The methods that a constructor calls on its object on all paths: `self.tie_weights()`."""
    unit = world.unit(initial)
    index = world.index(unit)
    calls = [call for call in index.of(t.Invoke) if call.site not in index.on_arms]
    bases = ((call, unit.definitions[call.base]) for call in calls if call.base >= 0)
    named = [call.name for call, base in bases if isinstance(base, t.Load) and base.name == unit.first]
    methods = (world.method(number, name) for name in named)
    return [method for method in methods if method is not None and world.is_own(method) and method != initial]


def _made_by(world: Classes, unit: t.Unit) -> list[Tie]:
    index = world.index(unit)
    found = [tie for tie in _same_fields(unit, index) if not world.setters(tie.field) | world.setters(tie.other)]
    for store in index.of(t.StoreAttribute):
        one = _field(unit, store.base)
        value = unit.definitions[store.value] if store.value >= 0 else None
        other = _field(unit, value.base) if isinstance(value, t.Attribute) else ""
        if one and other and isinstance(value, t.Attribute):
            when = _condition(unit, store.site) if store.site in index.on_arms else ""
            found += [Tie(one, store.name, other, value.name, when)] if when is not None else []
    return found


def _same_fields(unit: t.Unit, index: UnitIndex) -> list[Tie]:
    """Two fields that are set to one thing, and to nothing else here: `self.target = self.source`, or both to one name
    that is bound once."""
    own = [store for store in index.of(t.StoreAttribute) if _is_own(unit, store.base)]
    sets = Counter(store.name for store in own)
    once = {store.name: store for store in own if sets[store.name] == 1 and store.site not in index.on_arms}
    given: dict[str, str] = {}
    found = []
    for name, store in once.items():
        made = unit.definitions[store.value] if store.value >= 0 else None
        other = _field(unit, store.value)
        if isinstance(made, t.Load) and not any(parameter.name == made.name for parameter in unit.parameters):
            bound = sum(isinstance(e, t.Bind) and e.name == made.name for e in t.events(unit.tape))
            other = given.setdefault(made.name, name) if bound == 1 else ""
        if other and other != name and other in once:
            found.append(Tie(name, "", other, "", ""))
    return found


def holds(world: Classes, number: int, tie: Tie, caller: t.Unit, call: t.Event | None) -> bool:
    """Whether a call in some unit that makes an instance of a class makes a tie as well."""
    if not tie.when:
        return True
    initial = world.method(number, "__init__")
    if initial is None or not isinstance(call, t.Call | t.Invoke) or any(one.stars for one in call.arguments):
        return False
    names = [parameter.name for parameter in world.unit(initial).parameters[1:]]
    given = dict(zip(names, (one.register for one in call.arguments if not one.keyword), strict=False))
    given |= {one.keyword: one.register for one in call.arguments if one.keyword}
    if tie.when in given:
        return _is_true(caller, given[tie.when])
    body = world.program.units[world.program.classes[world.unit(initial).owner].body]
    made = (event for event in body.definitions if isinstance(event, t.Function) and event.unit == initial)
    return any(_is_true(body, register) for event in made for name, register in event.defaults if name == tie.when)


def _is_true(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Const) and bool(made.value)


def _condition(unit: t.Unit, site: int) -> str | None:
    """The parameter on whose truth alone it depends whether something is done, if it is that (`if tied:`)."""
    around = [event for event in t.events(unit.tape) if isinstance(event, t.Branch | t.Loop | t.Try)]
    around = [event for event in around if any(e.site == site for tape in t.inner_tapes(event) for e in t.events(tape))]
    if len(around) != 1 or not isinstance(around[0], t.Branch):
        return None
    arm = next(arm for arm in around[0].arms if any(event.site == site for event in t.events(arm)))
    for assumed in arm:
        loaded = unit.definitions[assumed.register] if isinstance(assumed, t.Assume) else None
        if isinstance(assumed, t.Assume) and isinstance(loaded, t.Load) and assumed.truth:
            named = any(parameter.name == loaded.name for parameter in unit.parameters)
            return loaded.name if named and not _binds(unit, loaded.name) else None
    return None


def _binds(unit: t.Unit, name: str) -> bool:
    return any(isinstance(event, t.Bind) and event.name == name for event in t.events(unit.tape))


def _field(unit: t.Unit, register: int) -> str:
    """The field of `self` that a register was loaded from."""
    made = unit.definitions[register] if register >= 0 else None
    return made.name if isinstance(made, t.Attribute) and _is_own(unit, made.base) else ""


def _is_own(unit: t.Unit, register: int) -> bool:
    base = unit.definitions[register] if register >= 0 else None
    return isinstance(base, t.Load) and bool(unit.parameters) and base.name == unit.first
