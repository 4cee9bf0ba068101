"""The names of a file that its functions see around them: what is bound to them, and what that is by now."""

from __future__ import annotations

import sys
from functools import cached_property

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import frozen
from torchcopylint.flow.files.bodies import BUILTINS
from torchcopylint.flow.interprocedural.lineage import Export
from torchcopylint.flow.interprocedural.parameters import Parameters, common_element
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    GLOBAL,
    PARTIAL,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Value,
    join_objects,
)
from torchcopylint.flow.program import tables
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports, kinds
from torchcopylint.flow.values.outside import Foreign, Outside
from torchcopylint.flow.values.templates import unplaced
from torchcopylint.knowledge import table


class OuterNames(Parameters):
    """The names that units bind, for the units that stand in them. They are learnt while units are run."""

    def __init__(self, program: t.Program, outside: Outside) -> None:
        super().__init__(program, outside)
        self.star_imports: list[Dotted] = []
        self._parents = {unit.parent for unit in program.units if unit.kind in ("function", "lambda", "class")}
        # What the body of a class binds is seen by way of the class.
        self._parents |= {info.body for info in program.classes}
        self._as_defined: dict[tuple[int, str], Export] = {}
        """What functions of the module find under names that it binds several times, where that is known."""

    def bound(self, m: Machine, name: str) -> None:
        """A name of a unit that others stand in was bound: they may see this value."""
        number = m.unit.number
        if number and name not in m.unit.bound:
            # `global best`, or `nonlocal`
            number = self.binder(number, name)
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
            obj = join_objects(before.obj, unplaced(obj))
        exports[name] = Export(value, unplaced(obj) if obj is not None else None)

    def binder(self, unit: int, name: str) -> int:
        """The unit around a unit that binds a name, as Python looks names up."""
        units = self.program.units
        number = units[unit].parent
        while number > 0 and (units[number].kind == "class" or name not in units[number].bound):
            number = units[number].parent
        return number

    def closed_over(self, m: Machine, unit: int) -> None:
        """A function is defined: what it takes from the names around it may be known better now than as they were bound
        (`image = x.clone(); optimizer = LBFGS([image.requires_grad_()])`), if they are bound once."""
        if m.unit.kind != "function":
            return
        exports = self._exports.setdefault(m.unit.number, {})
        inner = self.program.units[unit]
        for name in {event.name for event in self.index(inner).of(t.Load)} - inner.bound:
            export, cell = exports.get(name), m.state.cell(name)
            if cell is None or len(cell.refs) != 1:
                continue
            obj = unplaced(m.state.object(cell.refs[0]))
            if export is None:
                # A parameter that is never bound to anything else.
                if cell.refs[0] == m.number("argument", name) and name not in m.index.binds:
                    exports[name] = Export(Value((), cell.kind), obj)
            elif export.obj is not None and len(m.index.binds.get(name, ())) == 1:
                exports[name] = export._replace(obj=obj)

    def seen_as_defined(self, m: Machine, event: t.Function) -> None:
        """What a function of the module finds under a name that this binds several times, as notebooks do.

        That is what the name holds where the function is defined, if the module alone speaks of the function, and binds
        the name again behind the last call of it.
        """
        inner = self.program.units[event.unit]
        mentions = uses.of_name(m, inner.name) if m.unit.kind == "module" else []
        binds = [use.site for use in mentions if not use.loads and use.site >= event.site]
        end = binds[1] if len(binds) > 1 else sys.maxsize
        calls = [use for use in mentions if use.loads and event.site < use.site < end]
        if not binds or not calls or inner.name in self._elsewhere:
            return
        turning = {loop for use in calls for loop in use.loops}
        last = max(use.site for use in calls)
        for name in {load.name for load in self.index(inner).of(t.Load)} - inner.bound - self._elsewhere_bound:
            others = [use for use in uses.of_name(m, name) if not use.loads]
            again = any(event.site < use.site < last or not turning.isdisjoint(use.loops) for use in others)
            cell = m.state.cell(name)
            if len(others) > 1 and not again and cell is not None and len(cell.refs) == 1:
                obj = unplaced(m.state.object(cell.refs[0]))
                self._as_defined[event.unit, name] = Export(Value((), cell.kind, cell.const), obj)

    @cached_property
    def _elsewhere(self) -> frozenset[str]:
        """The names that units other than the module load from outside."""
        return frozenset(
            made.name
            for unit in self.program.units[1:]
            for made in unit.definitions
            if isinstance(made, t.Load) and made.name not in unit.bound
        )

    @cached_property
    def _elsewhere_bound(self) -> frozenset[str]:
        """The names of the module that functions bind: `global best`."""
        units = self.program.units[1:]
        return frozenset(e.name for unit in units for e in self.index(unit).of(t.Bind) if e.name not in unit.bound)

    def _note_export_elements(self, m: Machine) -> None:
        """What stands in the containers that the functions inside a unit see, when it has been run."""
        exports = self._exports.get(m.unit.number, {})
        for name, export in exports.items():
            if export.obj is not None and export.obj.kind in CONTAINERS:
                refs = m.state.refs_of(name)
                exports[name] = export._replace(element=common_element(m, refs), called=tables.called_in(m, refs))
            elif export.obj is not None and export.obj.type == PARTIAL:
                exports[name] = export._replace(called=tables.called_in(m, m.state.refs_of(name)))
            elif export.obj is not None and export.obj.kind is Kind.MODULE:
                refs = m.state.refs_of(name)
                if refs and all(frozen.is_frozen(m, ref) for ref in refs):
                    exports[name] = export._replace(obj=export.obj._replace(requires_grad=Fact.NO))

    def left_in(self, unit: int, name: str) -> Object | None:
        """What a unit that has been run leaves in a name, apart from where it is, if that is an object."""
        export = self._exports.get(unit, {}).get(name)
        return export.obj if export is not None else None

    def outer(self, m: Machine, name: str) -> Value:
        """The value of a name that is not a unit's own."""
        number = m.unit.parent
        while number >= 0:
            unit = self.program.units[number]
            if unit.owner >= 0 and unit.first == name:
                return self._own_object(m, unit, name)
            export = self._exports.get(number, {}).get(name) if unit.kind != "class" else None
            if unit.kind == "module":
                export = self._as_defined.get((m.unit.number, name), export)
            if export is not None:
                if export.obj is None:
                    return export.value
                ref = m.number("outer", name)
                shares = (Share(ref, How.OWN, -1, ref),)
                m.state.set_object(ref, export.obj._replace(shares=shares, text=name, owner=GLOBAL))
                if export.element is not None and m.state.cell((ref, ANY_ELEMENT)) is None:
                    self._bind_any(m, ref, export.element, GLOBAL)
                tables.bind(m, ref, export.called)
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

    def _own_object(self, m: Machine, unit: t.Unit, name: str) -> Value:
        """`self` of the method that a function is defined in. What it is that is a module shows by its use."""
        obj = self.instance(unit.owner)
        if obj.kind is not Kind.INSTANCE or "classmethod" in self.decorators(unit.number):
            return Value()
        ref = m.number("outer", name)
        m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=name, owner=GLOBAL))
        return Value((ref,), obj.kind)
