"""What is known of the fields of a file's classes: what methods put there and into containers, and what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.contents import Contents, Place
from torchcopylint.flow.interprocedural.lineage import Lineages
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    CONTAINERS,
    DIMENSIONS,
    EXPANDED,
    FETCHING,
    FOREIGN,
    HANDED,
    IDENTITY,
    INFERENCE,
    LISTS,
    PARTED,
    PINNED,
    PLACEHOLDER,
    READ_ONLY,
    REGISTERED,
    SEALED,
    TENSORS,
    WRITES_INPUT,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.program import chain_layers, children, factories, held_functions, training_fields
from torchcopylint.flow.program.ties import Tie
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values.outside import Outside
from torchcopylint.flow.values.templates import as_passed, joined, unplaced
from torchcopylint.knowledge import table

SELF = "self"
MAX_ELEMENTS = 16
"""So many elements of a container that a field holds are looked at."""
APPENDED = "[...]"
"""Behind the name of a field: what methods put into the list there after the constructor has made it."""
_BARE = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "nn.Module", "object"})
"""Bases that hold nothing themselves."""


_LASTING = frozenset(
    [
        DIMENSIONS,
        EXPANDED,
        FOREIGN,
        HANDED,
        FETCHING,
        ARCHIVE,
        PINNED,
        REGISTERED,
        WRITES_INPUT,
        INFERENCE,
        READ_ONLY,
        SEALED,
        LISTS,
    ]
)
"""What holds of what is in a field for all methods, whichever has put it there."""


class Classes(Lineages):
    """The classes of a file, and those of others that it uses. What they set is learnt while units are run."""

    def __init__(self, program: t.Program, outside: Outside) -> None:
        super().__init__(program, outside)
        self._fields = Contents()
        self._elements = Contents()
        self._element_parts: dict[tuple[int, str], dict[str, Object]] = {}
        self._traced: dict[tuple[int, str], bool] = {}
        self._set_in_inference: dict[tuple[int, str], bool] = {}
        self._switched: set[tuple[int, str]] = set()
        self._hooked: set[tuple[int, str]] = set()
        self._children: dict[int, Mapping[str, children.Child]] = {}
        self._common_layers: dict[int, list[Tie]] = {}
        self.held_functions: held_functions.Held = {}
        self._registered: dict[int, dict[str, bool]] = {}
        self._filled_anew: dict[tuple[int, int, str], bool] = {}
        self._makers: dict[int, tuple[tuple[str, str], ...]] = {}
        self._trained_by: dict[int, training_fields.Trained] = {}
        self.frozen_fields: set[tuple[int, str]] = set()
        """Fields, by their classes, for which all who make an instance pass frozen networks."""

    def instance(self, number: int) -> Object:
        """An instance of a class."""
        kind, sure = self.class_kind(number)
        return Object(kind, sure, type=f"class#{number}")

    def field_of(self, type_name: str, name: str) -> Object | None:
        """What is known of a field of a class."""
        local = self.local_class(type_name)
        if local is None:
            return None
        self._note_asked()
        for current in self.lineage(local):
            own = self.is_own_class(current)
            known = self._fields.of(current).get(name) if own else self.outside.field(current, name)
            if known is not None:
                if current != local and self._is_made_anew(local, current, name):
                    # What an heir makes is another thing of that kind.
                    return Object(known.kind, min(known.sure, Sure.LIKELY), requires_grad=known.requires_grad)
                if self._set_in_inference.get((current, name)) and known.kind is Kind.TENSOR:
                    # The constructor has put something there that is to be replaced.
                    return known._replace(flags=known.flags | {INFERENCE}, sure=min(known.sure, Sure.LIKELY))
                return known
        return None

    def by_layers(self, unit: t.Unit, uses: frozenset[str]) -> frozenset[str]:
        """The uses of a name, with what layers in fields of `self` say that take it: those of torch.nn take tensors.

        A container (`Sequential`) takes what the first module in it takes, which may be anything.
        """
        calling = t.HANDED_TO + t.OF_FIELD
        for use in uses if unit.owner >= 0 else ():
            if use.startswith(calling):
                field = self.field_of(f"class#{unit.owner}", use.removeprefix(calling))
                row = table.module_class(field.type) if field is not None and field.type else None
                if row is not None and not row.container and row.takes and row.name != IDENTITY:
                    return uses | {t.HANDED_TO + t.OF_TENSOR}
        return uses

    def _is_made_anew(self, heir: int, base: int, name: str) -> bool:
        """Whether a field that a base sets to what a method makes is set by another method in an heir."""
        makers = (maker for field, maker in self.makers(base) if field == name)
        return any(self.method(heir, maker) != self.method(base, maker) for maker in makers)

    def makers(self, number: int) -> tuple[tuple[str, str], ...]:
        """The fields of a class that it sets to what methods of its object make, each with such a method."""
        if not self.is_own_class(number):
            facts = self.outside.class_facts(number)
            return facts.makers if facts is not None else ()
        if number not in self._makers:
            self._makers[number] = factories.of(self, number)
        return self._makers[number]

    def fields(self, number: int) -> Mapping[str, Object]:
        """What is known of the fields that a class of this file sets itself."""
        return self._fields.of(number)

    def stored(self, m: Machine, owner: Object, name: str, value: Value) -> None:
        """A field of an object was set: what other methods of its class may know of it."""
        local = self.local_class(owner.type)
        if local is None or owner.owner != SELF or (value.kind is Kind.NONE and not value.refs):
            return
        held_functions.note(m, self.held_functions, local, name, value)
        obj = Object(value.kind, Sure.PROVEN if value.kind is not Kind.UNKNOWN else Sure.NOT)
        if value.refs:
            obj = reduce(join_objects, (m.state.object(ref) for ref in value.refs))
        if m.unit.name == "__init__":
            registered = self._registered.setdefault(local, {})
            registered[name] = obj.kind is Kind.PARAMETER and registered.get(name, True)
        elif obj.kind is not Kind.NONE:
            always = self._set_in_inference.get((local, name), True)
            self._set_in_inference[local, name] = always and INFERENCE in obj.flags
        if obj.kind in CONTAINERS:
            self._note_elements(m, local, name, value)
        template = unplaced(obj)._replace(graph=frozenset(), flags=obj.flags & _LASTING)
        if (
            template.kind in TENSORS
            and template.kind is not Kind.PARAMETER
            and not training_fields.stays_as_made(m, obj, name)
            and not (HANDED in obj.flags and obj.leaf is Fact.NO)
        ):
            # What a method leaves behind says what kind it is, not which gradient another method will find.
            template = template._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
        self._fields.note(m, local, name, template)

    def put_by(self, unit: int) -> list[tuple[Place, Object]]:
        """What a method has put into fields of its object, and into the containers in them, when it was last run."""
        return [*self._fields.put_by(unit).items(), *self._elements.put_by(unit).items()]

    def take_back(self, unit: int) -> None:
        """A method is to be run again: see `Contents`."""
        self._fields.take_back(unit)
        for place in self._elements.take_back(unit):
            self._element_parts.pop(place, None)

    def sealed(self, owner: Object, name: str, closed: bool) -> None:
        """A constructor has said of the array in a field of its object that nobody is to write it, or that one may."""
        local = self.local_class(owner.type)
        if local is not None and owner.owner == SELF and name in self._fields.of(local):
            flag = frozenset({SEALED}) if closed else frozenset[str]()
            self._fields.amend(local, name, lambda o: o._replace(flags=o.flags - {SEALED, READ_ONLY} | flag))

    def element_of(self, type_name: str, name: str) -> Object | None:
        """What is known of the elements of a container that a class of this file keeps in a field."""
        self._note_asked()
        local = self.local_class(type_name)
        for current in self.lineage(local) if local is not None else ():
            known = self._elements.of(current).get(name)
            if known is not None:
                if local is not None and current != local and self._is_filled_anew(local, current, name):
                    return Object(known.kind, min(known.sure, Sure.LIKELY), requires_grad=known.requires_grad)
                return known
        return None

    def parts_of_element(self, type_name: str, name: str) -> Mapping[str, Object]:
        """Where a container in a field of a class of this file holds tuples or dictionaries: what their parts are, by
        their slots."""
        local = self.local_class(type_name)
        for current in self.lineage(local) if local is not None else ():
            if name in self._elements.of(current):
                anew = local is not None and current != local and self._is_filled_anew(local, current, name)
                return {} if anew else self._element_parts.get((current, name), {})
        return {}

    def _is_filled_anew(self, heir: int, base: int, name: str) -> bool:
        """Whether an heir has a say in what a base puts into the container in a field: see `factories`."""
        key = heir, base, name.removesuffix(APPENDED)
        if key not in self._filled_anew:
            self._filled_anew[key] = self.is_own_class(base) and factories.filled_anew(self, *key)
        return self._filled_anew[key]

    def _note_elements(self, m: Machine, local: int, name: str, value: Value) -> None:
        for ref in value.refs:
            for slot in m.state.slot_names(ref)[:MAX_ELEMENTS]:
                for held in m.state.refs_of(slot) if slot[1].startswith("[") else ():
                    obj = as_passed(m.state.object(held))
                    if not training_fields.element_stays_as_made(m, obj, name):
                        leaf = obj.leaf if HANDED in obj.flags else Fact.UNKNOWN
                        obj = obj._replace(requires_grad=Fact.UNKNOWN, leaf=leaf)
                    self._elements.note(m, local, name, obj)
                    parts = {}
                    for inner in m.state.slot_names(held)[:MAX_ELEMENTS] if obj.kind in PARTED else ():
                        one = joined([m.state.object(ref) for ref in m.state.refs_of(inner)])
                        if one is not None:
                            parts[inner[1]] = one._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
                    before = self._element_parts.get((local, name), parts)
                    self._element_parts[local, name] = {
                        key: join_objects(before[key], one) for key, one in parts.items() if key in before
                    }

    def appended(self, m: Machine) -> None:
        """A method has been run: what it has put into containers that fields held before, other methods find there."""
        for name, slot in m.fields.initial.items():
            owner = m.state.object(slot[0])
            local = self.local_class(owner.type) if owner.owner == SELF else None
            for ref in m.state.refs_of(slot) if local is not None else ():
                grown = m.state.object(ref).kind in (Kind.LIST, Kind.DICT)
                cell = m.state.cell((ref, ANY_ELEMENT)) if grown else None
                if cell is None or cell.site < 0 or local is None:
                    continue
                put = [m.state.object(held) for held in cell.refs if PLACEHOLDER not in m.state.object(held).flags]
                traced = bool(put) and not cell.plain and all(obj.requires_grad > 0 for obj in put)
                self._traced[local, name] = traced and self._traced.get((local, name), True)
                self._note_elements(m, local, name + APPENDED, Value((ref,)))
        self._filled(m)

    def _filled(self, m: Machine) -> None:
        """A constructor has been run: what it has put into the lists and dictionaries that it has made for fields."""
        me = m.number("argument", m.unit.first) if m.unit.name == "__init__" and m.unit.parameters else -1
        for slot in m.state.slot_names(me):
            cell = m.state.cell(slot)
            refs = cell.refs if cell is not None and cell.site >= 0 else ()
            made = [ref for ref in refs if m.state.object(ref).kind in (Kind.LIST, Kind.DICT)]
            if made and any(m.state.cell((ref, ANY_ELEMENT)) is not None for ref in made):
                self._note_elements(m, m.unit.owner, slot[1][1:], Value(tuple(made)))

    def _note_trained(self, number: int, found: training_fields.Trained) -> None:
        self._trained_by[number] = found
        fields = self._fields.of(number)
        for name in {field for parts in found.values() for field, _ in parts}:
            if name in fields and fields[name].kind is Kind.UNKNOWN:
                # The constructor has shown what it is after it was put there.
                self._fields.amend(number, name, lambda o: o._replace(kind=Kind.MODULE, sure=Sure.LIKELY))

    def note_switched_off(self, m: Machine) -> None:
        """A constructor has been run: what is known of the parameters that it has switched off in fields of `self`
        (`self.grid.requires_grad = False`) if nobody else in the file switches on what goes by that name."""
        me = m.number("argument", m.unit.first) if m.unit.parameters else -1
        fields = self._fields.of(m.unit.owner)
        for slot in m.state.slot_names(me):
            held = m.state.refs_of(slot)
            known = fields.get(name := slot[1][1:])
            if known is None or known.kind is not Kind.PARAMETER or not held:
                continue
            off = all(ref | 1 in m.switches.tensors and m.state.object(ref).requires_grad is Fact.NO for ref in held)
            others = [unit for unit in self.program.units if unit is not m.unit] if off else []
            of_class = m.unit.owner
            if off and not any(
                training_fields.is_switched_on(m, unit, name, anything=unit.owner == of_class) for unit in others
            ):
                self._fields.amend(of_class, name, lambda o: o._replace(requires_grad=Fact.NO, leaf=Fact.YES))

    def note_chains(self, m: Machine) -> None:
        """A constructor has been run: the chains in fields of `self` have the layers that they have by its end."""
        me = m.number("argument", m.unit.first) if m.unit.parameters else -1
        for name, known in self._fields.of(m.unit.owner).items():
            refs = m.state.refs_of((me, f".{name}")) if known.type == chain_layers.SEQUENTIAL else ()
            if refs:
                layers = chain_layers.joined(map(m.state.object, refs))
                self._fields.amend(m.unit.owner, name, partial(chain_layers.with_layers, layers=layers))

    def note_children(self, number: int, found: Mapping[str, children.Child]) -> None:
        """What a constructor puts into the lists of modules of its object: see `children`."""
        self._children[number] = found

    def children_of(self, number: int) -> Mapping[str, children.Child]:
        """What the modules are in lists that a class of this file keeps in fields, by the fields' names."""
        return self._children.get(number, {})

    def note_common_layers(self, number: int, found: list[Tie]) -> None:
        """Which fields a constructor leaves with a layer in common: see `common_layers`."""
        self._common_layers[number] = found

    def common_layers(self, number: int) -> list[Tie]:
        """The fields of a class of this file whose networks have a layer in common."""
        return self._common_layers.get(number, [])

    def trained_by(self, number: int) -> training_fields.Trained:
        """Which fields of a class of this file hold what the optimizers in its other fields train."""
        return self._trained_by.get(number, {})

    def holds_traced(self, type_name: str, name: str) -> bool:
        """Whether what methods put into the list in a field carries a graph, all that has been seen of it."""
        local = self.local_class(type_name)
        found = [self._traced.get((current, name)) for current in self.lineage(local)] if local is not None else []
        return True in found and False not in found

    def note_switched(self, m: Machine) -> None:
        """A method has been run: the modules in fields of `self` whose parameters it has switched off in a loop; of an
        `__init__` that switches off all that `self` has by then, and adds nothing that trains, the module itself."""
        me = m.number("argument", m.unit.first) if m.unit.parameters else -1
        if m.unit.name == "__init__" and me | 1 in m.switches.frozen:
            self._switched.add((m.unit.owner, ""))
        for slot in m.state.slot_names(me):
            if any(ref | 1 in m.switches.parameters for ref in m.state.refs_of(slot)):
                self._switched.add((m.unit.owner, slot[1][1:]))

    def note_hooked(self, m: Machine) -> None:
        """A constructor has been run: the modules in fields of `self` to which it has given a full backward hook."""
        me = m.number("argument", m.unit.first) if m.unit.parameters else -1
        for slot in m.state.slot_names(me):
            if any(ref in m.holding.hooks for ref in m.state.refs_of(slot)):
                self._hooked.add((m.unit.owner, slot[1][1:]))

    def is_hooked(self, type_name: str, name: str) -> bool:
        """Whether the constructor of a class gives a module in a field a full backward hook, and nobody sets it."""
        local = self.local_class(type_name) if self._hooked else None
        lineage = self.lineage(local) if local is not None else ()
        return any((current, name) in self._hooked for current in lineage) and not self.setters(name)

    def switched(self, number: int) -> frozenset[str]:
        """The fields of a class whose parameters a method of it switches off, see `is_switched`; empty text: all."""
        if self.is_own_class(number):
            return frozenset(name for owner, name in self._switched if owner == number)
        facts = self.outside.class_facts(number)
        return facts.switched if facts is not None else frozenset()

    def is_switched(self, type_name: str, name: str) -> bool:
        """Whether a method of a class switches off, in a loop, the parameters of the module in one of its fields; with
        no name, whether its constructor does so with all parameters."""
        local = self.local_class(type_name) if type_name else None
        for current in self.lineage(local) if local is not None else ():
            if name in self.switched(current):
                return True
            if name == "" and self._own_method(current, "__init__") is not None:
                break
        return False

    def is_parameter(self, number: int, name: str, *, above: bool = False) -> bool:
        """Whether the `__init__` of a class, or of one above it, sets a field to a parameter and nothing else.

        With `above`, only the classes above it are asked.
        """
        self._note_asked()
        lineage = [current for current in self.lineage(number) if not above or current != number]
        found = [self.registered(current).get(name) for current in lineage]
        return True in found and False not in found

    def registered(self, number: int) -> Mapping[str, bool]:
        """For each field that the `__init__` of a class sets itself: whether to a parameter and nothing else."""
        if self.is_own_class(number):
            return self._registered.get(number, {})
        facts = self.outside.class_facts(number)
        return facts.registered if facts is not None else {}

    def holds_nothing(self, number: int) -> bool:
        """Whether the instances of a module class of this file surely have neither parameters nor buffers.

        All that is set in them is numbers, texts and modules like that, and nothing is registered by name.
        """
        for current in self.lineage(number):
            known = all(base is not None or name in _BARE for base, name in self.bases(current))
            if not known or not self.is_own_class(current):
                return False
            if not all(self._is_bare(obj) for obj in self.fields(current).values()):
                return False
            units = (self.program.units[unit] for unit in self.program.classes[current].methods.values())
            if any(_registers(event) for unit in units for event in unit.definitions):
                return False
        return True

    def _is_bare(self, obj: Object) -> bool:
        row = table.module_class(obj.type) if obj.type else None
        return obj.kind in (Kind.NUMBER, Kind.STRING) or (row is not None and not row.container and not row.stateful)


def _registers(event: t.Event | None) -> bool:
    return event.__class__ is t.Invoke and event.name.startswith(("register_", "add_module", "__setattr__"))
