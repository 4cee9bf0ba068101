"""One file as a whole: its imports, classes, functions, and in which order they are run.

The module body runs first, so that functions know its imports and globals; then the `__init__` of every class, so that
methods know the fields; then every other function, callees before callers, so that callers know what they call. A unit
is run once more if what is known of its parameters is not what it was run with. The first time the module body only
glances at its loops; it is run to the end if it has any, or wants to know anything that running others has shown.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torchcopylint.flow import custom, giving, idioms, imports, kinds
from torchcopylint.flow import tape as t
from torchcopylint.flow.index import UnitIndex
from torchcopylint.flow.machine import Machine
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    CONTAINERS,
    EXPANDED,
    GLOBAL,
    OTHERWISE,
    PINNED,
    PLACEHOLDER,
    TENSORS,
    WRITES_INPUT,
    Cell,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.modes import GRAD_MODES
from torchcopylint.flow.outside import Foreign, Outside
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.state import Mode, State
from torchcopylint.flow.summaries import Summary, summarise
from torchcopylint.flow.tape import Annotation, Dotted
from torchcopylint.knowledge import table

SELF = "self"
MAX_ELEMENTS = 16
"""So many elements of a container that a field holds are looked at."""
BUILTINS = frozenset(dir(builtins))
_BARE = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "object"})
"""Bases that hold nothing themselves."""
_MODES = frozenset({"no_grad", "inference_mode", "enable_grad", "set_grad_enabled"})
MAX_NESTED_RUNS = 8
"""So many units may wait for one another to be run."""


class Export(NamedTuple):
    """What a name of a module or function is to the functions inside it: a constant, or an object of its own."""

    value: Value
    obj: Object | None
    element: Object | None = None


class World:
    """See the module."""

    def __init__(self, program: t.Program, outside: Outside | None = None) -> None:
        self.program = program
        self.outside = outside or Outside()
        self.outside.number_from(len(program.units), len(program.classes))
        self.star_imports: list[Dotted] = []
        self.imports_torch = False
        self._imports_another = False
        self._leaves_off = False
        self.steps = 0
        self.machines: dict[int, Machine] = {}
        self.used_up: dict[int, set[str]] = {}
        self.call_modes: dict[int, list[tuple[int, Mode]]] = {}
        self.roles: dict[int, set[str]] = {}
        self._exports: dict[int, dict[str, Export]] = {}
        self._fields: dict[int, dict[str, Object]] = {}
        self._elements: dict[tuple[int, str], Object] = {}
        self._element_parts: dict[tuple[int, str], dict[str, Object]] = {}
        self._registered: dict[int, dict[str, bool]] = {}
        self._summaries: dict[int, Summary] = {}
        self._running: set[int] = set()
        self._setters: dict[str, frozenset[int]] | None = None
        self._too_early: dict[int, set[int]] = {}
        self._indexes: dict[int, UnitIndex] = {}
        self._arguments: dict[int, dict[str, Object]] = {}
        self._given: dict[int, dict[str, bool]] = {}
        self._seen_arguments: dict[int, dict[str, Object]] = {}
        self._bound_to: dict[int, list[tuple[t.Parameter, Object]]] = {}
        self._current = -1
        self._module_asked = False
        self._decorators = _decorators_of(program)
        self._defaults: dict[int, dict[str, Object]] = {}
        self._passed_elements: dict[tuple[int, str], Object] = {}
        self._parents = {unit.parent for unit in program.units if unit.kind in ("function", "lambda", "class")}
        self._bases: dict[int, list[tuple[int | None, str]]] = {}
        self._lineages: dict[int, list[int]] = {}
        self._class_kinds: dict[int, tuple[Kind, Sure]] = {}
        self._class_names = {info.name: info.number for info in program.classes}

    # -- running

    def run(self) -> None:
        """Run every unit of the file."""
        self.run_unit(0, glancing=len(self.program.units) > 1)
        helpers = self._helpers()
        for info in self.program.classes:
            initial = info.methods.get("__init__")
            if initial is not None:
                for helper in self._called_by(initial, helpers):
                    self.run_unit(helper)
                self.run_unit(initial)
        for unit in self._in_order():
            if unit.number not in self.machines and unit.kind != "module":
                self.run_unit(unit.number)
        callers: set[int] = set()
        for number in sorted(self._too_early):
            # Instances are called by no name that tells the order: `augment(image)`.
            if any(callee in self._summaries for callee in self._too_early[number] - {number}):
                callers |= self._run_again(number)
        for number in sorted(self._arguments):
            if self._arguments[number] != self._seen_arguments.get(number, {}) and self._bound_otherwise(number):
                callers |= self._run_again(number)
        for number in sorted(callers):
            self.run_unit(number)
        if self._module_asked or self.machines[0].cut_short:
            self.run_unit(0)

    def _run_again(self, number: int) -> set[int]:
        """Run a unit once more; returns who calls it, if what it does is not what it was known to do."""
        before = self._summaries.get(number)
        self.run_unit(number)
        if self._summaries.get(number) == before:
            return set()
        return {caller for caller, _ in self.call_modes.get(number, ()) if caller > 0}

    def _helpers(self) -> dict[str, list[int]]:
        """The functions of the module, by name, that make nothing of a class of this file: they may be run before the
        constructors, which then know what they return."""
        if not self.program.classes:
            return {}
        found: dict[str, list[int]] = {}
        for unit in self.program.units:
            if unit.kind == "function" and unit.parent == 0 and unit.owner < 0:
                makes = any(isinstance(e, t.Load) and e.name in self._class_names for e in unit.definitions)
                if not makes:
                    found.setdefault(unit.name, []).append(unit.number)
        return found

    def _called_by(self, initial: int, helpers: dict[str, list[int]]) -> list[int]:
        called = dict.fromkeys(_callees(self.program.units[initial], helpers))
        return [number for number in called if number not in self.machines]

    def run_unit(self, number: int, *, glancing: bool = False) -> None:
        """Run one unit and keep its summary. `glancing` runs each loop once, to learn what names it binds."""
        unit = self.program.units[number]
        if unit.parent > 0 and unit.parent not in self.machines and unit.parent not in self._running:
            self.run_unit(unit.parent)
        self._running.add(number)
        outer, self._current = self._current, number
        machine = Machine(self, unit, State(self._entry_mode(unit)))
        machine.glancing = glancing
        self._seen_arguments[number] = dict(self._arguments.get(number, {}))
        self._bind_parameters(machine)
        machine.run_unit()
        self._note_export_elements(machine)
        if unit.kind != "class" and machine.state.alive and machine.state.mode.recording is Fact.NO:
            self._leaves_off |= self._entry_mode(unit).recording > 0
        if unit.name == "forward" and unit.owner >= 0 and self.is_function_class(unit.owner):
            custom.conclude(machine)
        self._running.discard(number)
        self._current = outer
        self.machines[number] = machine
        self.steps += machine.steps
        if unit.kind in ("function", "lambda"):
            self._summaries[number] = summarise(machine)

    def index(self, unit: t.Unit) -> UnitIndex:
        """What is looked up on a unit's tape."""
        if unit.number not in self._indexes:
            self._indexes[unit.number] = UnitIndex(unit)
        return self._indexes[unit.number]

    def machine_of(self, number: int) -> Machine | None:
        """The machine of a unit, which is run now if it has not been; `None` if it is running, or too deep, or of
        another file."""
        if not self.is_own(number):
            return None
        self._note_asked()
        if number not in self.machines and number not in self._running and len(self._running) < MAX_NESTED_RUNS:
            self.run_unit(number)
        return self.machines.get(number)

    def _bound_otherwise(self, number: int) -> bool:
        """Whether what is known by now of a unit's parameters is not what it was run with."""
        m = self.machines[number]
        return any(self._parameter_object(m, parameter) != obj for parameter, obj in self._bound_to[number])

    def _in_order(self) -> list[t.Unit]:
        """Callees before callers, as far as names tell; otherwise source order."""
        functions: dict[str, list[int]] = {}
        for unit in self.program.units:
            if unit.kind == "function":
                functions.setdefault(unit.name, []).append(unit.number)
        done: dict[int, None] = {}
        for unit in self.program.units:
            stack = [unit.number]
            entered: set[int] = set()
            while stack:
                number = stack[-1]
                if number in done:
                    stack.pop()
                    continue
                callees = [] if number in entered else _callees(self.program.units[number], functions)
                entered.add(number)
                waiting = [callee for callee in callees if callee not in done and callee not in entered]
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    done[number] = None
                    stack.pop()
        return [self.program.units[number] for number in done]

    def _entry_mode(self, unit: t.Unit) -> Mode:
        for name in self._decorators.get(unit.number, ()):
            resolved = table.canonical(self.resolve_name(name.partition("(")[0]))
            if resolved in GRAD_MODES:
                return GRAD_MODES[resolved]
            if resolved == "torch.set_grad_enabled":
                return Mode(Fact.NO if "False" in name else Fact.UNKNOWN)
            if self._sets_mode(name.partition("(")[0]):
                return Mode(Fact.UNKNOWN)
        if unit.owner >= 0 and unit.kind == "function" and self.is_function_class(unit.owner):
            return Mode(Fact.NO)
        if unit.kind in ("module", "class"):
            return Mode(Fact.YES)
        # Somebody has switched recording off and left it so, such as a constructor: the others find it so, or not.
        return Mode(Fact.UNKNOWN if self._leaves_off else Fact.YES, Fact.NO, True)

    def _sets_mode(self, decorator: str) -> bool:
        """Whether a decorator of this file has to do with grad mode."""
        inside = [unit for unit in self.program.units if unit.qualname.partition(".")[0] == decorator]
        events = (event for unit in inside for event in unit.definitions)
        return any(isinstance(event, t.Attribute | t.Invoke) and event.name in _MODES for event in events)

    def _bind_parameters(self, m: Machine) -> None:
        unit = m.unit
        self._bound_to[unit.number] = []
        static = "staticmethod" in self.decorators(unit.number)
        for position, parameter in enumerate(unit.parameters):
            name = parameter.name
            if position == 0 and unit.owner >= 0 and unit.kind == "function" and not static:
                self._bind_self(m, name)
                continue
            ref = m.number("argument", name)
            obj = self._parameter_object(m, parameter)
            self._bound_to[unit.number].append((parameter, obj))
            if obj.kind in TENSORS and self._arguments.get(unit.number, {}).get(name, Object()).kind is obj.kind:
                m.note_evidence(Value((ref,)), frozenset({"what is passed"}))
            m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=name, owner=ARGUMENT))
            m.state.put_cell(name, Cell((ref,), obj.kind, None, site=-1))
            self._bind_element(m, ref, parameter.annotation)

    def _bind_self(self, m: Machine, name: str) -> None:
        if "classmethod" in self.decorators(m.unit.number) or m.unit.name in ("__new__", "__init_subclass__"):
            m.state.put_cell(name, Cell((), Kind.CLASS, ClassReference(m.unit.owner), site=-1))
            return
        ref = m.number("argument", name)
        obj = self.instance(m.unit.owner)
        m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=name, owner=SELF))
        m.state.put_cell(name, Cell((ref,), obj.kind, None, site=-1))

    def _parameter_object(self, m: Machine, parameter: t.Parameter) -> Object:
        if parameter.kind == "star":
            return Object(Kind.TUPLE, Sure.PROVEN)
        if parameter.kind == "stars":
            return Object(Kind.DICT, Sure.PROVEN)
        declared = kinds.from_annotation(m, parameter.annotation)
        if declared is not None:
            return declared
        if parameter.annotation is not None and parameter.annotation.name not in ("|", "typing.Any", "Any"):
            return Object()
        default = self.default(m.unit.number, parameter.name)
        if default is not None:
            return Object(Kind.TENSOR, default.sure, dtype=default.dtype)
        if "backward" in self.roles_of(m.unit) and parameter != m.unit.parameters[0]:
            return Object(Kind.TENSOR, Sure.PROVEN)
        uses = m.unit.uses.get(parameter.name, frozenset())
        kind, sure = (Kind.UNKNOWN, Sure.NOT) if self.is_of_another_framework else kinds.from_uses(uses)
        called = self._arguments.get(m.unit.number, {}).get(parameter.name, Object())
        if called.kind is not Kind.UNKNOWN and kind in (Kind.UNKNOWN, called.kind):
            return called
        if kind is Kind.UNKNOWN and self._is_index(m.unit, parameter):
            return Object(Kind.NUMBER, Sure.LIKELY)
        if kind is Kind.UNKNOWN and not self.is_of_another_framework:
            kind, sure = kinds.from_name(parameter.name)
            if kind is Kind.TENSOR:
                kind, sure = Kind.UNKNOWN, Sure.NOT
        other = kind is Kind.UNKNOWN and kinds.used_otherwise(uses)
        return Object(kind, sure, flags=frozenset({OTHERWISE}) if other else frozenset())

    def _is_index(self, unit: t.Unit, parameter: t.Parameter) -> bool:
        """The index that a sequence or a dataset is asked for is a number."""
        if unit.owner < 0 or unit.name != "__getitem__" or len(unit.parameters) != 2:
            return False
        return parameter is unit.parameters[1] and self.method(unit.owner, "__len__") is not None

    def _bind_element(self, m: Machine, ref: int, annotation: Annotation | None) -> None:
        """`list[Tensor]`, `dict[str, Tensor]`: what the elements are."""
        if m.state.object(ref).kind not in CONTAINERS:
            return
        passed = self._passed_elements.get((m.unit.number, m.state.object(ref).text))
        if annotation is None and passed is not None:
            self._bind_any(m, ref, passed, ARGUMENT)
        if annotation is None or not annotation.arguments:
            return
        known = [kinds.from_annotation(m, argument) for argument in annotation.arguments]
        if m.state.object(ref).kind is Kind.TUPLE and len({obj.kind if obj else None for obj in known}) > 1:
            self._bind_each(m, ref, known)
        elif known[-1] is not None:
            self._bind_any(m, ref, known[-1], ARGUMENT)

    def _bind_each(self, m: Machine, ref: int, known: Sequence[Object | None]) -> None:
        """`tuple[int, Tensor]`: what each element is."""
        for position, obj in enumerate(known):
            slot = (ref, f"[{position}]")
            inner = m.number("slot", slot)
            text = f"{m.state.object(ref).text}[{position}]"
            shares = (Share(inner, How.OWN, -1, inner),)
            m.state.set_object(inner, (obj or Object())._replace(shares=shares, text=text, owner=ARGUMENT))
            m.state.put_cell(slot, Cell((inner,), obj.kind if obj else Kind.UNKNOWN, None, site=-1))

    def _bind_any(self, m: Machine, ref: int, obj: Object, owner: str) -> None:
        """Whatever element of a container is looked at is such an object."""
        inner = m.number("slot", (ref, ANY_ELEMENT))
        text = f"{m.state.object(ref).text}[...]"
        shares = (Share(inner, How.OWN, -1, inner),)
        flags = frozenset({PLACEHOLDER})
        m.state.set_object(inner, obj._replace(shares=shares, text=text, owner=owner, flags=flags))
        m.state.put_cell((ref, ANY_ELEMENT), Cell((inner,), obj.kind, None, site=-1))

    def _note_asked(self) -> None:
        """Somebody wants to know what running other units has shown: for the module body, too early."""
        self._module_asked = self._module_asked or self._current == 0

    # -- what is of this file, and what of others

    def is_own(self, unit: int) -> bool:
        """Whether a function is one of this file."""
        return unit < len(self.program.units)

    def unit(self, number: int) -> t.Unit:
        """A unit; without a body, if it is a function of another file."""
        return self.program.units[number] if self.is_own(number) else self.outside.unit(number)

    def is_own_class(self, number: int) -> bool:
        """Whether a class is one of this file."""
        return number < len(self.program.classes)

    # -- names

    @property
    def is_of_another_framework(self) -> bool:
        """Whether the file imports another framework and no torch: what looks like a tensor or model is that one's."""
        return self._imports_another and not self.imports_torch

    def bound(self, m: Machine, name: str) -> None:
        """A name of a unit that others stand in was bound: they may see this value."""
        number = m.unit.number
        cell = m.state.cell(name) if number == 0 or number in self._parents else None
        if cell is None:
            return
        if number == 0 and isinstance(cell.const, Dotted):
            package = cell.const.partition(".")[0]
            self.imports_torch |= package == "torch"
            self._imports_another |= package in kinds.OTHER_FRAMEWORKS
        if number not in self._parents:
            return
        obj = m.state.object(cell.refs[0]) if len(cell.refs) == 1 else None
        exports = self._exports.setdefault(number, {})
        before = exports.get(name)
        value = Value((), cell.kind, cell.const)
        if before is not None and before.value != value:
            value = Value()
        if before is not None and before.obj is not None and obj is not None:
            obj = join_objects(before.obj, _template(obj))
        exports[name] = Export(value, _template(obj) if obj is not None else None)

    def _note_export_elements(self, m: Machine) -> None:
        """What stands in the containers that the functions inside a unit see, when it has been run."""
        exports = self._exports.get(m.unit.number, {})
        for name, export in exports.items():
            if export.obj is not None and export.obj.kind in CONTAINERS:
                exports[name] = export._replace(element=_element(m, m.state.refs_of(name)))

    def outer(self, m: Machine, name: str) -> Value:
        """The value of a name that is not a unit's own."""
        number = m.unit.parent
        while number >= 0:
            unit = self.program.units[number]
            export = self._exports.get(number, {}).get(name) if unit.kind != "class" else None
            if export is not None:
                if export.obj is None:
                    return export.value
                ref = m.number("outer", name)
                shares = (Share(ref, How.OWN, -1, ref),)
                m.state.set_object(ref, export.obj._replace(shares=shares, text=name, owner=GLOBAL))
                if export.element is not None and m.state.cell((ref, ANY_ELEMENT)) is None:
                    self._bind_any(m, ref, export.element, GLOBAL)
                return Value((ref,), export.obj.kind)
            number = unit.parent
        for star in reversed(self.star_imports):
            if isinstance(star, Foreign):
                target = self.outside.star(star, name) if name not in BUILTINS else None
                if target is not None:
                    self.imports_torch |= target.dotted.partition(".")[0] == "torch"
                    return imports.of_target(m, target, f"{star} * {name}")
                continue
            dotted = Dotted(f"{star}.{name}")
            if table.function(dotted) is not None or table.module_class(dotted) is not None:
                return Value(kind=Kind.IMPORTED, const=dotted)
        return Value()

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

    # -- classes

    def class_named(self, dotted: str) -> int | None:
        """The number of a class of this file by its plain name, or of another by the name that it is imported by."""
        if isinstance(dotted, Foreign):
            return self.outside.as_class(self.outside.target(dotted), dotted)[0]
        return self._class_names.get(dotted)

    def local_class(self, type_name: str) -> int | None:
        """The number of the class that an object's type names, if it is one of this file or of the project's others."""
        return int(type_name[6:]) if type_name.startswith("class#") else None

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

    def setters(self, name: str) -> frozenset[int]:
        """The functions of this file, other than constructors, that set an attribute of that name.

        What is augmented in place stays what it is, and of numbers nobody asks.
        """
        if self._setters is None:
            found: dict[str, set[int]] = {}
            for unit in self.program.units:
                for event in t.events(unit.tape) if unit.name != "__init__" else ():
                    if isinstance(event, t.StoreAttribute) and not event.augmented:
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
                return Kind.TENSOR, Sure.PROVEN
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
        if unit.name in ("forward", "backward") and unit.owner >= 0 and self.is_function_class(unit.owner):
            return roles | {unit.name}
        return roles

    def is_function_class(self, number: int) -> bool:
        """Whether a class is a `torch.autograd.Function`."""
        names = {name for current in self.lineage(number) for _, name in self.bases(current)}
        return bool(names & {"torch.autograd.Function", "torch.autograd.function.Function"})

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
        if local is None or owner.owner != SELF:
            return
        if value.kind is Kind.NONE and not value.refs:
            return
        obj = Object(value.kind, Sure.PROVEN if value.kind is not Kind.UNKNOWN else Sure.NOT)
        if value.refs:
            found = [m.state.object(ref) for ref in value.refs]
            obj = found[0]
            for other in found[1:]:
                obj = join_objects(obj, other)
        if m.unit.name == "__init__":
            registered = self._registered.setdefault(local, {})
            registered[name] = obj.kind is Kind.PARAMETER and registered.get(name, True)
        if obj.kind in CONTAINERS:
            self._note_elements(m, local, name, value)
        fields = self._fields.setdefault(local, {})
        before = fields.get(name)
        template = _template(obj)._replace(graph=frozenset(), flags=obj.flags & {EXPANDED, PINNED, WRITES_INPUT})
        if template.kind in TENSORS and template.kind is not Kind.PARAMETER:
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
                    obj = _passed(m.state.object(held))._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
                    self._elements[local, name] = join_objects(self._elements.get((local, name), obj), obj)
                    parts = {}
                    for inner in m.state.slot_names(held) if obj.kind is Kind.TUPLE else ():
                        one = _joined([m.state.object(ref) for ref in m.state.refs_of(inner)])
                        if one is not None:
                            parts[inner[1]] = one._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
                    before = self._element_parts.get((local, name), parts)
                    self._element_parts[local, name] = {
                        key: join_objects(before[key], one) for key, one in parts.items() if key in before
                    }

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

    # -- calls

    def called(self, unit: int, caller: int, mode: Mode) -> None:
        """A function of this file is called in a grad mode by another."""
        modes = self.call_modes.setdefault(unit, [])
        if (caller, mode) not in modes:
            modes.append((caller, mode))

    def note_arguments(self, m: Machine, unit: int, bound: dict[str, Value], site: int = -1) -> None:
        """A function of this file is called with such arguments: evidence for what its parameters are."""
        if not self.is_own(unit):
            return
        known = self._arguments.setdefault(unit, {})
        for name, value in bound.items():
            if value.kind is Kind.NONE and not value.refs:
                continue
            self._given.setdefault(unit, {}).setdefault(name, True)
            if self._given[unit][name]:
                self._given[unit][name] = giving.is_nobody_elses(m, value, site)
            obj = Object(value.kind)
            for number, ref in enumerate(value.refs):
                template = _passed(m.state.object(ref))
                obj = template if number == 0 else join_objects(obj, template)
            known[name] = join_objects(known.get(name, obj), obj)
            if known[name].kind in CONTAINERS:
                element = _element(m, value.refs) or Object()
                self._passed_elements[unit, name] = join_objects(
                    self._passed_elements.get((unit, name), element), element
                )

    def given_away(self, unit: int) -> frozenset[str]:
        """The parameters for which every call in the file passes what nobody else holds, or looks at again:
        `f(x.clone())`."""
        return frozenset(name for name, fresh in self._given.get(unit, {}).items() if fresh)

    def note_default(self, m: Machine, unit: int, name: str, value: Value) -> None:
        """A parameter has a default, which is made when the function is defined."""
        if len(value.refs) == 1 and m.state.object(value.refs[0]).kind in TENSORS:
            self._defaults.setdefault(unit, {})[name] = m.state.object(value.refs[0])

    def default(self, unit: int, name: str) -> Object | None:
        """The tensor that is the default of a parameter."""
        return self._defaults.get(unit, {}).get(name)

    def summary(self, unit: int) -> Summary | None:
        """The summary of a function, if it has been run already."""
        if not self.is_own(unit):
            return self.outside.summary(unit)
        self._note_asked()
        if unit not in self._summaries and self._current > 0:
            self._too_early.setdefault(self._current, set()).add(unit)
        return self._summaries.get(unit)

    def converts(self, m: Machine) -> bool:
        """Whether a unit, by its name, converts modules: what it takes over is dropped elsewhere."""
        unit: t.Unit | None = m.unit
        while unit is not None and unit.kind in ("function", "lambda"):
            if idioms.converts(unit.name):
                return True
            unit = self.program.units[unit.parent] if unit.parent >= 0 else None
        return False

    def context(self, m: Machine) -> str:
        """In which idiom a unit stands, for `.data`: see `idioms`."""
        unit: t.Unit | None = m.unit
        while unit is not None and unit.kind in ("function", "lambda"):
            owner = self.program.classes[unit.owner] if unit.owner >= 0 else None
            kind = self.class_kind(unit.owner)[0] if unit.owner >= 0 else Kind.UNKNOWN
            found = idioms.context_of(unit.name, owner.name if owner is not None else "", kind)
            if found or unit.owner >= 0:
                return found
            unit = self.program.units[unit.parent] if unit.parent >= 0 else None
        return ""


def _registers(event: t.Event | None) -> bool:
    return isinstance(event, t.Invoke) and event.name.startswith(("register_", "add_module", "__setattr__"))


def _element(m: Machine, refs: Iterable[int]) -> Object | None:
    """What all elements of some containers are, those that are looked at."""
    element: Object | None = None
    for ref in refs:
        for slot in m.state.slot_names(ref)[:MAX_ELEMENTS]:
            for held in m.state.refs_of(slot) if slot[1].startswith("[") else ():
                obj = _passed(m.state.object(held))
                element = obj if element is None else join_objects(element, obj)
    if element is None or element.kind is Kind.UNKNOWN:
        return None
    # Somebody may switch it on later: only what does require grad is sure to.
    return element if element.requires_grad > 0 else element._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)


def _joined(objects: Sequence[Object]) -> Object | None:
    """What all of some objects are; `None` if there is none."""
    found: Object | None = None
    for obj in map(_passed, objects):
        found = obj if found is None else join_objects(found, obj)
    return found


def _template(obj: Object) -> Object:
    return obj._replace(shares=(), saved=frozenset(), owner="")


def _passed(obj: Object) -> Object:
    """What a parameter may be taken to be when such an object is passed for it."""
    sure = min(obj.sure, Sure.LIKELY)
    return Object(obj.kind, sure, leaf=obj.leaf, requires_grad=obj.requires_grad, type=obj.type, dtype=obj.dtype)


def _callees(unit: t.Unit, functions: dict[str, list[int]]) -> list[int]:
    found: list[int] = []
    for event in unit.definitions:
        if isinstance(event, t.Load | t.Invoke) and event.name in functions:
            found += functions[event.name]
    return found


def _decorators_of(program: t.Program) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for unit in program.units:
        for event in unit.definitions:
            if isinstance(event, t.Function) and event.decorators:
                found[event.unit] = tuple(_decorator(unit, register) for register in event.decorators)
    return found


def _decorator(unit: t.Unit, register: int) -> str:
    event = unit.definitions[register]
    if isinstance(event, t.Load):
        return event.name
    if isinstance(event, t.Attribute):
        return f"{_decorator(unit, event.base)}.{event.name}"
    if isinstance(event, t.Const):
        return repr(event.value)
    if isinstance(event, t.Call):
        inner = ", ".join(_decorator(unit, a.register) for a in event.arguments)
        return f"{_decorator(unit, event.function)}({inner})"
    if isinstance(event, t.Invoke):
        inner = ", ".join(_decorator(unit, a.register) for a in event.arguments)
        return f"{_decorator(unit, event.base)}.{event.name}({inner})"
    return "..."


_ = FunctionReference
