"""How the classes and functions of a file are found: by names, bases and methods, and what kind their instances are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchcopylint.base.lazily import kept_property
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import (
    ARGUMENT,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import decorating, tables
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes.index import UnitIndex
from torchcopylint.flow.values import kinds, packages
from torchcopylint.flow.values.outside import Foreign, Outside
from torchcopylint.knowledge import table


class Export(NamedTuple):
    """What a name of a module or function is to the functions inside it: a constant, or an object of its own; of a list
    or dictionary, what its elements are, and the functions that it has under which keys."""

    value: Value
    obj: Object | None
    element: Object | None = None
    called: tables.Called = ()


class Lineages:
    """The units and classes of a file, and those of others that it uses."""

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
        self._setters: dict[str, frozenset[int]] | None = None
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

    @kept_property
    def deals_in_tensors_only(self) -> bool:
        """Whether nothing that the file names hands out arrays or frames: see `packages`."""
        return packages.deals_in_tensors_only(self.program)

    @kept_property
    def has_sums_of_its_own(self) -> bool:
        """Whether a class of the file says itself what adding something to one of its objects does."""
        return any(unit.name in ("__iadd__", "__add__") for unit in self.program.units if unit.owner >= 0)

    @kept_property
    def asks_what_trains(self) -> bool:
        """Whether something in the file asks, or says, which parameters are trained: others may be frozen."""
        return any(_asks_what_trains(event) for unit in self.program.units for event in t.events(unit.tape))

    @kept_property
    def deals_in_memory(self) -> bool:
        """Whether nothing that the file names hands out what looks like an array and is none: see `packages`."""
        return packages.deals_in_memory(self.program)

    def resolve_name(self, dotted: str) -> str:
        """A dotted name as written, resolved by the module's imports."""
        first, _, rest = dotted.partition(".")
        export = self._exports.get(0, {}).get(first)
        if export is not None and isinstance(export.value.const, Dotted):
            name = export.value.const + ("." + rest if rest else "")
            if export.value.const.__class__ is Foreign:
                target = self.outside.target(name)
                return table.canonical(target.dotted) if target is not None and target.dotted else Foreign(name)
            return table.canonical(name)
        return dotted

    @property
    def imports(self) -> Mapping[str, Dotted]:
        """The names of the module that stand for what is imported, but for what the project may define."""
        values = {name: export.value.const for name, export in self._exports.get(0, {}).items()}
        return {
            name: const
            for name, const in values.items()
            if isinstance(const, Dotted) and not isinstance(const, Foreign)
        }

    def is_method(self, name: str) -> bool:
        """Whether some class of this file has a method, or a property, of a name."""
        if not self._method_names:
            self._method_names = {unit.name for unit in self.program.units if unit.owner >= 0} | {""}
        return name in self._method_names

    def class_named(self, dotted: str) -> int | None:
        """The number of a class of this file by its plain name, or of another by the name that it is imported by."""
        if dotted.__class__ is Foreign:
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

    def method_above(self, number: int, name: str) -> int | None:
        """The unit of the method that `super()` gives in a class."""
        found = (self.method(parent, name) for parent in self.parents(number))
        return next((unit for unit in found if unit is not None), None)

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
        if any(facts is not None and name in facts.reads for facts in others):
            return True
        return any(name in self._attributes_read.get(current, ()) for current in lineage)

    @kept_property
    def _attributes_read(self) -> dict[int, set[str]]:
        """The names of the attributes that the methods of each class look at."""
        found: dict[int, set[str]] = {}
        for unit in self.program.units:
            names = {event.name for event in unit.definitions if event.__class__ is t.Attribute}
            found.setdefault(unit.owner, set()).update(names)
        return found

    @kept_property
    def names_inside(self) -> dict[int, set[str]]:
        """By unit, the names of outside that the functions right inside of it speak of."""
        found: dict[int, set[str]] = {}
        for unit in self.program.units:
            loaded = {event.name for event in unit.definitions if event.__class__ is t.Load}
            found.setdefault(unit.parent, set()).update(loaded - unit.bound)
        return found

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

    def decorators(self, unit: int) -> tuple[str, ...]:
        """The decorators of a function as written."""
        return self._decorators.get(unit, ()) if self.is_own(unit) else self.outside.decorators(unit)


def _asks_what_trains(event: t.Event) -> bool:
    """Whether an event looks at `requires_grad`, sets it, or calls `requires_grad_` with an argument."""
    if isinstance(event, t.Attribute | t.StoreAttribute):
        return event.name == "requires_grad"
    return isinstance(event, t.Invoke) and bool(event.arguments) and event.name == "requires_grad_"
