"""What is known of the classes of a file: their bases, methods and fields, and what their instances are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, reduce
from typing import NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    ARGUMENT,
    CONTAINERS,
    DIMENSIONS,
    EXPANDED,
    FETCHING,
    FOREIGN,
    HANDED,
    INFERENCE,
    LISTS,
    PINNED,
    PLACEHOLDER,
    READ_ONLY,
    REGISTERED,
    TENSORS,
    WRITES_INPUT,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.program import children, decorating, held_functions, training_fields
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes.index import UnitIndex
from torchcopylint.flow.values import kinds, packages
from torchcopylint.flow.values.outside import Foreign, Outside
from torchcopylint.flow.values.templates import as_passed, joined, unplaced
from torchcopylint.knowledge import table

SELF = "self"
MAX_ELEMENTS = 16
"""So many elements of a container that a field holds are looked at."""
APPENDED = "[...]"
"""Behind the name of a field: what methods put into the list there after the constructor has made it."""
_BARE = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "nn.Module", "object"})
"""Bases that hold nothing themselves."""


class Export(NamedTuple):
    """What a name of a module or function is to the functions inside it: a constant, or an object of its own."""

    value: Value
    obj: Object | None
    element: Object | None = None


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
        LISTS,
    ]
)
"""What holds of what is in a field for all methods, whichever has put it there."""


class Classes:
    """The classes of a file, and those of others that it uses. What they set is learnt while units are run."""

    def __init__(self, program: t.Program, outside: Outside) -> None:
        self.program = program
        self.outside = outside
        self.imports_torch = False
        self.machines: dict[int, Machine] = {}
        self.roles: dict[int, set[str]] = {}
        self.roles_of_parameters: dict[tuple[int, str], str] = {}
        self.passed_functions: dict[tuple[int, str], set[int]] = {}
        self._imports_another = False
        self._exports: dict[int, dict[str, Export]] = {}
        self._fields: dict[int, dict[str, Object]] = {}
        self._elements: dict[tuple[int, str], Object] = {}
        self._element_parts: dict[tuple[int, str], dict[str, Object]] = {}
        self._traced: dict[tuple[int, str], bool] = {}
        self._switched: set[tuple[int, str]] = set()
        self._children: dict[int, Mapping[str, children.Child]] = {}
        self.held_functions: held_functions.Held = {}
        self._registered: dict[int, dict[str, bool]] = {}
        self._trained_by: dict[int, training_fields.Trained] = {}
        self._setters: dict[str, frozenset[int]] | None = None
        self.frozen_fields: set[tuple[int, str]] = set()
        """Fields, by their classes, for which all who make an instance pass frozen networks."""
        self._indexes: dict[int, UnitIndex] = {}
        self._current = -1
        self._module_asked = False
        self._decorators = decorating.written(program)
        self._bases: dict[int, list[tuple[int | None, str]]] = {}
        self._lineages: dict[int, list[int]] = {}
        self._overriding: dict[int, tuple[int, ...]] = {}
        self._method_names: set[str] = set()
        self._class_kinds: dict[int, tuple[Kind, Sure]] = {}
        self._class_names = {info.name: info.number for info in program.classes}

    def _note_asked(self) -> None:
        """Somebody wants to know what running other units has shown: for the module body, too early."""
        self._module_asked = self._module_asked or self._current == 0

    def is_own(self, unit: int) -> bool:
        """Whether a function is one of this file."""
        return unit < len(self.program.units)

    def unit(self, number: int) -> t.Unit:
        """A unit; without a body, if it is a function of another file."""
        return self.program.units[number] if self.is_own(number) else self.outside.unit(number)

    def is_own_class(self, number: int) -> bool:
        """Whether a class is one of this file."""
        return number < len(self.program.classes)

    @property
    def is_of_another_framework(self) -> bool:
        """Whether the file imports another framework and no torch: what looks like a tensor or model is that one's."""
        return self._imports_another and not self.imports_torch

    @cached_property
    def deals_in_tensors_only(self) -> bool:
        """Whether nothing that the file names hands out arrays or frames: see `packages`."""
        return packages.deals_in_tensors_only(self.program)

    @cached_property
    def has_sums_of_its_own(self) -> bool:
        """Whether a class of the file says itself what adding something to one of its objects does."""
        return any(unit.name in ("__iadd__", "__add__") for unit in self.program.units if unit.owner >= 0)

    @cached_property
    def deals_in_memory(self) -> bool:
        """Whether nothing that the file names hands out what looks like an array and is none: see `packages`."""
        return packages.deals_in_memory(self.program)

    def resolve_name(self, dotted: str) -> str:
        """A dotted name as written, resolved by the module's imports."""
        first, _, rest = dotted.partition(".")
        export = self._exports.get(0, {}).get(first)
        if export is not None and isinstance(export.value.const, Dotted):
            name = export.value.const + ("." + rest if rest else "")
            if isinstance(export.value.const, Foreign):
                target = self.outside.target(name)
                return table.canonical(target.dotted) if target is not None and target.dotted else Foreign(name)
            return table.canonical(name)
        return dotted

    @property
    def imports(self) -> Mapping[str, Dotted]:
        """The names of the module that stand for what is imported, but for what the project may define."""
        values = {name: export.value.const for name, export in self._exports.get(0, {}).items()}
        return {name: const for name, const in values.items() if const.__class__ is Dotted}

    def is_method(self, name: str) -> bool:
        """Whether some class of this file has a method, or a property, of a name."""
        if not self._method_names:
            self._method_names = {unit.name for unit in self.program.units if unit.owner >= 0} | {""}
        return name in self._method_names

    def class_named(self, dotted: str) -> int | None:
        """The number of a class of this file by its plain name, or of another by the name that it is imported by."""
        if isinstance(dotted, Foreign):
            return self.outside.as_class(self.outside.target(dotted), dotted)[0]
        return self._class_names.get(dotted)

    def local_class(self, type_name: str) -> int | None:
        """The number of the class that an object's type names, if it is one of this file or of the project's others.

        A unit that stands in no class has the class -1, which is none.
        """
        return int(type_name[6:]) if type_name.startswith("class#") and type_name[6] != "-" else None

    def bases(self, number: int) -> list[tuple[int | None, str]]:
        """The bases of a class: their numbers, where they are known classes, and the names that they go by."""
        if number not in self._bases:
            found = self._own_bases(number) if self.is_own_class(number) else self.outside.bases(number)
            if 0 not in self.machines:
                # The imports are not all known yet.
                return found
            self._bases[number] = found
        return self._bases[number]

    def _own_bases(self, number: int) -> list[tuple[int | None, str]]:
        found: list[tuple[int | None, str]] = []
        for base in self.program.classes[number].bases:
            local = self._class_names.get(base.name)
            if local is not None:
                found.append((local, base.name))
                continue
            name = self.resolve_name(base.name)
            found.append((self.class_named(name) if isinstance(name, Foreign) else None, table.canonical(name)))
        return found

    def parents(self, number: int) -> list[int]:
        """The bases of a class that are known classes."""
        return [parent for parent, _ in self.bases(number) if parent is not None and parent != number]

    def lineage(self, number: int) -> list[int]:
        """A class and the known classes that it inherits from, nearest first."""
        if number in self._lineages:
            return self._lineages[number]
        order: dict[int, None] = {}
        pending = [number]
        while pending:
            current = pending.pop(0)
            if current not in order:
                order[current] = None
                pending += self.parents(current)
        if 0 in self.machines:
            self._lineages[number] = list(order)
        return list(order)

    def method(self, number: int, name: str) -> int | None:
        """The unit of a method, own or inherited."""
        self._note_asked()
        for current in self.lineage(number):
            unit = self._own_method(current, name)
            if unit is not None:
                return unit
        return None

    def method_of(self, obj: Object, name: str) -> int | None:
        """The unit of the method that an object has, if it is known which one it is.

        What is handed in is said to be of a class, and may be of one that overrides the method.
        """
        number = self.local_class(obj.type)
        if number is None or (obj.owner == ARGUMENT and self._is_overridden(number, name)):
            return None
        return self.method(number, name)

    def _is_overridden(self, number: int, name: str) -> bool:
        heirs = (one.number for one in self.program.classes if one.number != number and name in one.methods)
        return any(number in self.lineage(heir) for heir in heirs)

    def overriding(self, unit: int) -> tuple[int, ...]:
        """The methods of this file's classes that override a method."""
        if unit not in self._overriding:
            found = self.program.units[unit] if self.is_own(unit) else None
            heirs = self.program.classes if found is not None and found.owner >= 0 and found.name != "__init__" else ()
            self._overriding[unit] = tuple(
                heir.methods[found.name]
                for heir in heirs
                if found is not None
                and heir.number != found.owner
                and found.name in heir.methods
                and found.owner in self.lineage(heir.number)
            )
        return self._overriding[unit]

    def _own_method(self, number: int, name: str) -> int | None:
        if self.is_own_class(number):
            return self.program.classes[number].methods.get(name)
        return self.outside.method(number, name)

    def reads_field(self, number: int, name: str) -> bool:
        """Whether a class's own code reads a field of that name, so that setting it is of some use."""
        lineage = self.lineage(number)
        others = [self.outside.class_facts(current) for current in lineage if not self.is_own_class(current)]
        return any(facts is not None and name in facts.reads for facts in others) or any(
            isinstance(event, t.Attribute) and event.name == name
            for unit in self.program.units
            if unit.owner in lineage
            for event in unit.definitions
        )

    def index(self, unit: t.Unit) -> UnitIndex:
        """What is looked up on a unit's tape."""
        if unit.number not in self._indexes:
            self._indexes[unit.number] = UnitIndex(unit)
        return self._indexes[unit.number]

    def setters(self, name: str) -> frozenset[int]:
        """The functions of this file, other than constructors, that set an attribute of that name.

        What is augmented in place stays what it is, and of numbers nobody asks.
        """
        if self._setters is None:
            found: dict[str, set[int]] = {}
            for unit in self.program.units:
                for event in self.index(unit).of(t.StoreAttribute) if unit.name != "__init__" else ():
                    if not event.augmented:
                        found.setdefault(event.name, set()).add(unit.number)
            self._setters = {attribute: frozenset(units) for attribute, units in found.items()}
        return self._setters.get(name, frozenset())

    def class_kind(self, number: int) -> tuple[Kind, Sure]:
        """What the instances of a class are."""
        if number not in self._class_kinds:
            self._class_kinds[number] = (Kind.INSTANCE, Sure.PROVEN)
            self._class_kinds[number] = self._kind_by_bases(number)
        return self._class_kinds[number]

    def _kind_by_bases(self, number: int) -> tuple[Kind, Sure]:
        for local, name in self.bases(number):
            if local is not None and local != number:
                kind, sure = self.class_kind(local)
                if kind is not Kind.INSTANCE:
                    return kind, sure
                continue
            if name in kinds.MODULE_BASES or table.module_class(name) is not None:
                return Kind.MODULE, Sure.PROVEN
            if name.startswith("torch.optim.") and "lr_scheduler" not in name:
                return Kind.OPTIMIZER, Sure.PROVEN
            if name in ("torch.Tensor", "torch.nn.Parameter"):
                return (Kind.TENSOR if name == "torch.Tensor" else Kind.PARAMETER), Sure.PROVEN
        if self._own_method(number, "forward") is not None and self._is_of_unknown_kind(number):
            return Kind.MODULE, Sure.LIKELY
        return Kind.INSTANCE, Sure.PROVEN

    def _is_of_unknown_kind(self, number: int) -> bool:
        """Whether a class inherits from something that nobody knows, and is no autograd function."""
        bases = [base for current in self.lineage(number) for base in self.bases(current)]
        known = ("object", "abc.ABC", "ABC")
        unknown = any(local is None and name not in kinds.OTHER_BASES and name not in known for local, name in bases)
        return unknown and not self.is_function_class(number)

    def roles_of(self, unit: t.Unit) -> frozenset[str]:
        """As what autograd calls a function: see `callbacks`."""
        roles = frozenset(self.roles.get(unit.number, ()))
        for place, role in self.roles_of_parameters.items():
            if unit.number in self.passed_functions.get(place, ()):
                roles |= {role}
        if unit.name in ("forward", "backward") and unit.owner >= 0 and self.is_function_class(unit.owner):
            return roles | {unit.name}
        return roles

    def is_function_class(self, number: int) -> bool:
        """Whether a class is a `torch.autograd.Function`."""
        return bool(self.base_names(number) & {"torch.autograd.Function", "torch.autograd.function.Function"})

    def base_names(self, number: int) -> set[str]:
        """The full names of all that a class inherits from, at any distance."""
        return {name for current in self.lineage(number) for _, name in self.bases(current)}

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
            known = self._fields.get(current, {}).get(name) if own else self.outside.field(current, name)
            if known is not None:
                return known
        return None

    def fields(self, number: int) -> Mapping[str, Object]:
        """What is known of the fields that a class of this file sets itself."""
        return self._fields.get(number, {})

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
        if obj.kind in CONTAINERS:
            self._note_elements(m, local, name, value)
        fields = self._fields.setdefault(local, {})
        before = fields.get(name)
        template = unplaced(obj)._replace(graph=frozenset(), flags=obj.flags & _LASTING)
        if (
            template.kind in TENSORS
            and template.kind is not Kind.PARAMETER
            and not training_fields.stays_as_made(m, obj, name)
            and not (HANDED in obj.flags and obj.leaf is Fact.NO)
        ):
            # What a method leaves behind says what kind it is, not which gradient another method will find.
            template = template._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
        fields[name] = template if before is None else join_objects(before, template)

    def element_of(self, type_name: str, name: str) -> Object | None:
        """What is known of the elements of a container that a class of this file keeps in a field."""
        self._note_asked()
        local = self.local_class(type_name)
        for current in self.lineage(local) if local is not None else ():
            known = self._elements.get((current, name))
            if known is not None:
                return known
        return None

    def parts_of_element(self, type_name: str, name: str) -> Mapping[str, Object]:
        """Where a container in a field of a class of this file holds tuples: what their parts are, by their slots."""
        local = self.local_class(type_name)
        for current in self.lineage(local) if local is not None else ():
            if (current, name) in self._elements:
                return self._element_parts.get((current, name), {})
        return {}

    def _note_elements(self, m: Machine, local: int, name: str, value: Value) -> None:
        for ref in value.refs:
            for slot in m.state.slot_names(ref)[:MAX_ELEMENTS]:
                for held in m.state.refs_of(slot) if slot[1].startswith("[") else ():
                    obj = as_passed(m.state.object(held))
                    if not training_fields.element_stays_as_made(m, obj, name):
                        leaf = obj.leaf if HANDED in obj.flags else Fact.UNKNOWN
                        obj = obj._replace(requires_grad=Fact.UNKNOWN, leaf=leaf)
                    self._elements[local, name] = join_objects(self._elements.get((local, name), obj), obj)
                    parts = {}
                    for inner in m.state.slot_names(held) if obj.kind is Kind.TUPLE else ():
                        one = joined([m.state.object(ref) for ref in m.state.refs_of(inner)])
                        if one is not None:
                            parts[inner[1]] = one._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
                    before = self._element_parts.get((local, name), parts)
                    self._element_parts[local, name] = {
                        key: join_objects(before[key], one) for key, one in parts.items() if key in before
                    }

    def appended(self, m: Machine) -> None:
        """A method has been run: what it has put into containers that fields held before, other methods find there."""
        for name, slot in m.initial_fields.items():
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

    def _note_trained(self, number: int, found: training_fields.Trained) -> None:
        self._trained_by[number] = found
        fields = self._fields.get(number, {})
        for name in {name for names in found.values() for name in names}:
            if name in fields and fields[name].kind is Kind.UNKNOWN:
                # The constructor has shown what it is after it was put there.
                fields[name] = fields[name]._replace(kind=Kind.MODULE, sure=Sure.LIKELY)

    def note_children(self, number: int, found: Mapping[str, children.Child]) -> None:
        """What a constructor puts into the lists of modules of its object: see `children`."""
        self._children[number] = found

    def children_of(self, number: int) -> Mapping[str, children.Child]:
        """What the modules are in lists that a class of this file keeps in fields, by the fields' names."""
        return self._children.get(number, {})

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
        if m.unit.name == "__init__" and me | 1 in m.frozen:
            self._switched.add((m.unit.owner, ""))
        for slot in m.state.slot_names(me):
            if any(ref | 1 in m.switched for ref in m.state.refs_of(slot)):
                self._switched.add((m.unit.owner, slot[1][1:]))

    def is_switched(self, type_name: str, name: str) -> bool:
        """Whether a method of a class switches off, in a loop, the parameters of the module in one of its fields; with
        no name, whether its constructor does so with all parameters."""
        local = self.local_class(type_name) if self._switched else None
        for current in self.lineage(local) if local is not None else ():
            if (current, name) in self._switched:
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

    def decorators(self, unit: int) -> tuple[str, ...]:
        """The decorators of a function as written."""
        return self._decorators.get(unit, ()) if self.is_own(unit) else self.outside.decorators(unit)


def _registers(event: t.Event | None) -> bool:
    return isinstance(event, t.Invoke) and event.name.startswith(("register_", "add_module", "__setattr__"))
