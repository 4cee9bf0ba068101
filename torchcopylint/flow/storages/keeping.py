"""What a field goes on to hold with its graph, from one call of a method to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldKeepsGraph
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import exclusion, uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

MAX_EXPRESSION = 60
_ENDS = frozenset({"detach", "item", "tolist", "numpy", "data", "shape", "dtype", "device", "size", "dim", "argmax"})
"""Methods and attributes through which no graph goes."""
_TRAINED = frozenset({"forward", "__call__", "training_step", "update", "step", "loss", "compute_loss"})
_TRAINED |= {"train", "fit", "learn"}
"""Methods that run as a rule while grad mode is on."""


def note_stored(m: Machine, event: t.StoreAttribute, ref: int, value: Value) -> None:
    """A field of `self` is set to something that was computed from what it held: a running average, say."""
    owner = m.state.object(ref)
    if event.augmented or owner.owner != "self" or not value.refs or _is_made_here(m):
        return
    carrying = [m.state.object(ref) for ref in value.refs]
    if any(obj.requires_grad <= 0 or obj.leaf > 0 or obj.kind not in TENSORS for obj in carrying):
        return
    if is_reset(m, event.name) or not _comes_from(m, event.value, ref, event.name):
        return
    if _begins_as_number(m, event.name) and _is_of_arguments(m, event.value):
        # What a meter sums up is told of those that hand it over.
        return
    sure = min(*(obj.sure for obj in carrying), _known(m, owner, event.name), _recorded(m))
    name = f"{m.unit.first}.{event.name}"
    m.fields.kept[event.site] = (
        FieldKeepsGraph(event.site, name, naming.spelling(m, event.value), "update", -1, m.state.mode.assumed, sure),
        value,
    )


def note_written(m: Machine, target: Value, source: str, site: int) -> None:
    """What carries a graph is written into a tensor that had none, and that a field has held since before."""
    root = target.root
    if not runs.is_field_from_before(m, root) or _is_made_here(m):
        return
    assert isinstance(root, tuple)
    name = root[1][1:]
    if is_reset(m, name):
        return
    sure = min(_recorded(m), _known(m, m.state.object(root[0]), name), *(m.state.object(r).sure for r in target.refs))
    text = naming.key_text(m, root)
    m.fields.kept[site] = (FieldKeepsGraph(site, text, source, "written", -1, m.state.mode.assumed, sure), target)


def found(m: Machine) -> list[Relation]:
    """What fields still hold with a graph once a unit has been run, and whether backward has run over it by then."""
    relations: list[Relation] = []
    for fact, value in (m.fields.kept[site] for site in sorted(m.fields.kept)):
        objects = [m.state.object(ref) for ref in value.refs]
        kept = all(obj.requires_grad > 0 for obj in objects) or _is_written_in_training(m, fact, objects)
        if kept and _still_held(m, fact.name, value) and fact.sure > Sure.NOT:
            ran = sorted({where for obj in objects for where in runs.ran_at(obj.graph)})
            if ran and _begins_as_number(m, fact.name.rpartition(".")[2]):
                # A sum of losses is told as such.
                continue
            relations.append(fact._replace(ran=ran[0] if ran else -1))
    return relations


def _is_written_in_training(m: Machine, fact: FieldKeepsGraph, objects: list[Object]) -> bool:
    """Whether a field was written by the arm for training, and the one for evaluation, which looks at it, is why nobody
    knows of a graph behind both."""
    if fact.form != "written" or any(obj.requires_grad is not Fact.UNKNOWN for obj in objects):
        return False
    cuts = (event for event in m.index.of(t.Invoke) if event.name in ("detach_", "requires_grad_"))
    return (
        uses.on_some_paths(m, fact.site)
        and not exclusion.is_aside(m, fact.site)
        and not any(naming.text_of(m, event.base) == fact.name for event in cuts)
        and not m.index.stores.get(fact.name.rpartition(".")[2])
    )


def _is_made_here(m: Machine) -> bool:
    return m.unit.owner < 0 or m.unit.name == "__init__" or not m.unit.parameters


def _still_held(m: Machine, name: str, value: Value) -> bool:
    """Whether the field holds at the end of the method what it was set to."""
    first, _, rest = name.partition(".")
    cell = m.state.cell(first)
    held = {ref | 1 for own in (cell.refs if cell is not None else ()) for ref in m.state.refs_of((own, f".{rest}"))}
    return bool(held & {ref | 1 for ref in value.refs})


def _known(m: Machine, owner: Object, name: str) -> Sure:
    """How sure it is that a field is a tensor that nobody trains, from what the class sets it to."""
    local = m.world.local_class(owner.type)
    if local is None or m.world.is_parameter(local, name):
        return Sure.NOT
    known = m.world.field_of(owner.type, name)
    if known is not None and known.kind is Kind.TENSOR:
        return known.sure
    if not _begins_as_number(m, name):
        return Sure.NOT
    # What a network sums up for others, these may set to zero again in a file of their own.
    network = m.world.class_kind(local)[0] is Kind.MODULE
    return Sure.LIKELY if not network or _is_read_by_others(m, name) else Sure.NOT


def _is_read_by_others(m: Machine, name: str) -> bool:
    """Whether something else in the file looks at a field of that name."""
    others = (m.world.index(unit) for unit in m.world.program.units if unit.number != m.unit.number)
    return any(event.name == name for index in others for event in index.of(t.Attribute))


def _begins_as_number(m: Machine, name: str) -> bool:
    """Whether constructors alone set a field, beside this unit, and that to numbers: `self.total = 0.0`."""
    units = [unit for unit in m.world.program.units if unit.name == "__init__" and unit.owner >= 0]
    values = [
        unit.definitions[store.value] if store.value >= 0 else None
        for unit in units
        if unit.owner == m.unit.owner
        for store in m.world.index(unit).stores.get(name, ())
    ]
    numbers = all(isinstance(made, t.Const) and isinstance(made.value, int | float) for made in values)
    return bool(values) and numbers and len(m.index.stores.get(name, ())) == 1


def _recorded(m: Machine) -> Sure:
    """How sure it is that a method runs while grad mode is on: who only calls it from elsewhere, as after training, may
    have switched that off."""
    if not m.state.mode.assumed or m.unit.name in _TRAINED:
        return Sure.PROVEN
    units = m.world.program.units
    called = any(isinstance(e, t.Invoke) and e.name == m.unit.name for unit in units for e in unit.definitions)
    return Sure.PROVEN if called else Sure.HINT


def is_reset(m: Machine, name: str, *, updates: bool = True) -> bool:
    """Whether something in the file sets a field of that name, or cuts it, other than a constructor and this unit.

    `updates` is whether it counts that something sets it to what is computed from itself: `self.x = self.x + dx`.
    """
    for unit in m.world.program.units:
        if unit.number == m.unit.number or _takes_the_place_of(m, unit):
            continue
        index = m.world.index(unit)
        for store in index.stores.get(name, ()) if unit.name != "__init__" else ():
            # A field of the same name of another class is another one.
            if store.augmented or is_strangers(m, unit, store.base):
                continue
            if updates or not _is_update(unit, store.value, name):
                return True
        if any(event.name == "detach_" and _field(unit, event.base) == name for event in index.of(t.Invoke)):
            return True
    return _is_set_by_others(m, name)


def _is_set_by_others(m: Machine, name: str) -> bool:
    """Whether a class of another file that this one inherits from sets a field of that name in a method of its own."""
    ancestors = m.world.lineage(m.unit.owner) if m.unit.owner >= 0 else []
    facts = [m.world.outside.class_facts(one) for one in ancestors if not m.world.is_own_class(one)]
    return any(one is not None and name in one.sets for one in facts)


def is_lazily_made(m: Machine, name: str) -> bool:
    """Whether what sets a field, beside constructors, does so on some paths only, and hands it out."""
    setters = [m.world.program.units[number] for number in m.world.setters(name)]
    return bool(setters) and all(
        store.site in m.world.index(unit).on_arms for unit in setters for store in m.world.index(unit).stores[name]
    )


def _is_update(unit: t.Unit, register: int, name: str) -> bool:
    """Whether a value is an expression, as it stands, in which a field of that name occurs."""
    pending, seen = [register], 0
    while pending and seen < MAX_EXPRESSION:
        register = pending.pop()
        made = unit.definitions[register] if register >= 0 else None
        seen += 1
        if isinstance(made, t.Attribute) and made.name == name:
            return True
        pending += t.operands(made) if made is not None else ()
    return False


def _takes_the_place_of(m: Machine, unit: t.Unit) -> bool:
    """Whether a method overrides this unit, or is overridden by it: on one object, only one of them is called."""
    if unit.name != m.unit.name or unit.owner < 0 or m.unit.owner < 0 or unit.owner == m.unit.owner:
        return False
    return m.unit.owner in m.world.lineage(unit.owner) or unit.owner in m.world.lineage(m.unit.owner)


def is_strangers(m: Machine, unit: t.Unit, register: int) -> bool:
    """Whether a register holds the `self` of a class that has nothing to do with the class of this unit."""
    made = unit.definitions[register] if register >= 0 else None
    if unit.owner < 0 or not unit.parameters or not isinstance(made, t.Load) or made.name != unit.first:
        return False
    return m.unit.owner not in m.world.lineage(unit.owner) and unit.owner not in m.world.lineage(m.unit.owner)


def _field(unit: t.Unit, register: int) -> str:
    made = unit.definitions[register] if register >= 0 else None
    return made.name if isinstance(made, t.Attribute) else ""


def _comes_from(m: Machine, register: int, owner: int, name: str) -> bool:
    """Whether a value is computed from the field itself, by arithmetic and operations that keep the graph."""
    way = WayBack(m, register, MAX_EXPRESSION)
    begun = _begins_as_number(m, name)
    for event in way:
        if isinstance(event, t.Attribute):
            # What the method itself has just put there is nothing that the call before left.
            before = m.number("slot", (owner, f".{name}"))
            mine = begun and naming.text_of(m, event.base) == m.unit.first
            if event.name == name and (mine or before in m.value(event.out).refs):
                return True
        if isinstance(event, t.Load):
            way.go_on(uses.bindings_before(m, event))
        elif isinstance(event, t.Operate | t.Augment | t.Attribute | t.Item):
            way.go_on(() if isinstance(event, t.Attribute) and event.name in _ENDS else t.operands(event))
        elif isinstance(event, t.Call | t.Invoke) and keeps_graph(m, event):
            way.go_on(t.operands(event))
    return False


def _is_of_arguments(m: Machine, register: int) -> bool:
    """Whether a value is computed, by arithmetic and operations of torch, from an argument that requires grad."""
    way = WayBack(m, register, MAX_EXPRESSION)
    given = {parameter.name for parameter in m.unit.parameters[1:]}
    for event in way:
        if isinstance(event, t.Load):
            needs = any(m.state.object(ref).requires_grad > 0 for ref in m.value(event.out).refs)
            if event.name in given and event.name not in m.index.binds and needs:
                return True
            way.go_on(uses.bindings_before(m, event))
        elif isinstance(event, t.Operate | t.Augment) or (
            isinstance(event, t.Call | t.Invoke) and keeps_graph(m, event)
        ):
            way.go_on(t.operands(event))
    return False


def keeps_graph(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether an operation is one of torch's: what a module or a function of somebody else's does, nobody knows."""
    if m.dotted_of(event).startswith("torch."):
        return True
    if isinstance(event, t.Call) or event.name in _ENDS:
        return False
    value = m.value(event.base)
    return bool(value.refs) and all(m.state.object(ref).kind in TENSORS for ref in value.refs)
