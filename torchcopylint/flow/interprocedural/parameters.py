"""What the parameters of functions are: by annotations, by use, and by what the calls in the file pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from torchcopylint.base.lazily import kept_property
from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import differentiated
from torchcopylint.flow.interprocedural import partials
from torchcopylint.flow.interprocedural.classes import MAX_ELEMENTS, SELF, Classes
from torchcopylint.flow.interprocedural.newest import Newest
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    ARGUMENT,
    CONTAINERS,
    EXPANDED,
    HANDED,
    INFERENCE,
    LOCAL,
    OTHERWISE,
    OUTPUT,
    PASSED,
    PLACEHOLDER,
    SURELY_PASSED,
    TENSORS,
    Cell,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Slot,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.program import bare_losses, likely_classes
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages.conversions import LEGACY
from torchcopylint.flow.tape import Annotation
from torchcopylint.flow.tapes import giving
from torchcopylint.flow.values import devices, dtypes, kinds
from torchcopylint.flow.values.outside import Outside
from torchcopylint.flow.values.templates import as_passed, unplaced


class Parameters(Classes):
    """The parameters of the functions of a file. What is passed for them is learnt while units are run."""

    def __init__(self, program: t.Program, outside: Outside) -> None:
        super().__init__(program, outside)
        self._arguments: dict[int, dict[str, Object]] = {}
        self._newest: dict[tuple[int, str], Newest] = {}
        self._given: dict[int, dict[str, bool]] = {}
        self._held: dict[int, set[str]] = {}
        self._bound_to: dict[int, list[tuple[t.Parameter, Object]]] = {}
        self._defaults: dict[int, dict[str, Object]] = {}
        self._layers: dict[int, dict[str, Object]] = {}
        self._calling: dict[int, dict[str, partials.Default]] = {}
        self._passed_elements: dict[tuple[int, str], Object] = {}
        self._passed_entries: dict[tuple[int, str], dict[str, Object]] = {}
        self.frozen_arguments: set[tuple[int, str]] = set()
        """Parameters, by their units, for which all callers in the project pass frozen networks."""
        self._passed: dict[tuple[int, str], dict[tuple[int, int], frozenset[int]]] = {}
        self._standing_in = -1
        """While an inherited method is run for a class that inherits it: that class."""

    def _bind_parameters(self, m: Machine) -> None:
        unit = m.unit
        self._bound_to[unit.number] = []
        static = "staticmethod" in self.decorators(unit.number)
        for position, parameter in enumerate(unit.parameters):
            name = parameter.name
            if position == 0 and unit.owner >= 0 and unit.kind == "function" and not static:
                self._bind_self(m, name)
                continue
            if position == 0 and unit.owner >= 0 and self.is_function_class(unit.owner):
                # A context is autograd's, whatever class of the file it is said to look like.
                parameter = parameter._replace(annotation=None)
            calling = self._calling.get(unit.number, {}).get(name)
            if calling is not None and not partials.may_be_passed(self, self._calls, unit, position):
                value = partials.from_default(m, calling, name)
                m.state.put_cell(name, Cell(value.refs, value.kind, value.const, site=-1))
                continue
            ref = m.number("argument", name)
            layer = self._layers.get(unit.number, {}).get(name)
            if layer is not None and not partials.may_be_passed(self, self._calls, unit, position):
                obj = layer._replace(sure=min(layer.sure, Sure.LIKELY))
            else:
                obj = differentiated.as_asked(m, name, self._parameter_object(m, parameter))
            self._bound_to[unit.number].append((parameter, obj))
            if (unit.number, name) in self.frozen_arguments:
                obj = obj._replace(requires_grad=Fact.NO)
            if not obj.dtype and dtypes.named_integers(name):
                obj = obj._replace(dtype=dtypes.INTEGRAL)
            sure = SURELY_PASSED in obj.flags
            obj = obj._replace(flags=obj.flags - {SURELY_PASSED}) if sure else obj
            passed = self._arguments.get(unit.number, {}).get(name, Object()).kind
            if obj.kind is Kind.TENSOR and obj.sure is Sure.LIKELY:
                m.note_evidence(Value((ref,)), kinds.telling(unit.uses.get(name, frozenset())))
            if obj.kind in TENSORS and passed is obj.kind:
                m.note_evidence(Value((ref,)), frozenset({SURELY_PASSED if sure else PASSED}))
            m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=name, owner=ARGUMENT))
            m.state.put_cell(name, Cell((ref,), obj.kind, None, site=-1))
            self._bind_element(m, ref, parameter.annotation)
        bare_losses.note_given(m)

    def may_be_handed(self, unit: t.Unit, text: str) -> bool:
        """Whether something in the file may pass what a unit calls `text`: one of its parameters, or a field that its
        constructor sets."""
        if "." not in text:
            positions = [place for place, parameter in enumerate(unit.parameters) if parameter.name == text]
            return any(partials.may_be_passed(self, self._calls, unit, place) for place in positions)
        return any(info.name in self._calls for info in self.program.classes if unit.owner in self.lineage(info.number))

    @kept_property
    def _calls(self) -> partials.Calls:
        return partials.calls_of(self)

    def _bind_self(self, m: Machine, name: str) -> None:
        if "classmethod" in self.decorators(m.unit.number) or m.unit.name in ("__new__", "__init_subclass__"):
            m.state.put_cell(name, Cell((), Kind.CLASS, ClassReference(m.unit.owner), site=-1))
            return
        ref = m.number("argument", name)
        obj = self.instance(self._standing_in if self._standing_in >= 0 else m.unit.owner)
        m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=name, owner=SELF))
        m.state.put_cell(name, Cell((ref,), obj.kind, None, site=-1))

    def _parameter_object(self, m: Machine, parameter: t.Parameter) -> Object:
        if parameter.kind == "star":
            return Object(Kind.TUPLE, Sure.PROVEN)
        if parameter.kind == "stars":
            return Object(Kind.DICT, Sure.PROVEN)
        called = self._arguments.get(m.unit.number, {}).get(parameter.name, Object())
        declared = kinds.from_annotation(m, parameter.annotation)
        if declared is not None and declared.kind is called.kind is Kind.TENSOR:
            declared = declared._replace(flags=declared.flags | called.flags & {EXPANDED})
        returned = declared is not None and declared.kind is Kind.TENSOR and OUTPUT in called.flags
        if (
            declared is not None
            and (declared.kind is called.kind is Kind.TENSOR or returned)
            and called.requires_grad > 0
        ):
            declared = declared._replace(requires_grad=called.requires_grad, leaf=called.leaf)
        if declared is not None and declared.kind is Kind.MODULE and declared.type in ("", *kinds.MODULE_BASES):
            return self._network_object(m, parameter, declared, called)
        if declared is not None:
            return declared
        if parameter.annotation is not None and parameter.annotation.name not in ("|", "typing.Any", "Any"):
            return Object()
        default = self.default(m.unit.number, parameter.name)
        if default is not None:
            return Object(Kind.TENSOR, default.sure, dtype=default.dtype)
        if "backward" in self.roles_of(m.unit) and parameter != m.unit.parameters[0]:
            return Object(Kind.TENSOR, Sure.PROVEN)
        if "forward" in self.roles_of(m.unit):
            # A context saves tensors only, and what has a gradient is one.
            name = parameter.name
            if name in differentiated.saved_for_backward(m.index) or differentiated.has_gradient(m, name, spelt=True):
                return Object(Kind.TENSOR, Sure.PROVEN)
        uses = self.by_layers(m.unit, m.unit.uses.get(parameter.name, frozenset()))
        kind, sure = Kind.UNKNOWN, Sure.NOT
        if not self.is_of_another_framework:
            kind, sure = kinds.from_uses(uses, alone=self.deals_in_tensors_only)
        if called.kind is not Kind.UNKNOWN and kind in (Kind.UNKNOWN, called.kind):
            return called
        if called.kind is Kind.PARAMETER and kind is Kind.TENSOR:
            return called
        if called.kind is Kind.INSTANCE and SURELY_PASSED in called.flags and kind is Kind.TENSOR:
            # Calls tell more than the use: a class of the project may have `data` and `requires_grad`, too.
            return called
        if kind is Kind.UNKNOWN and self._is_index(m.unit, parameter):
            return Object(Kind.NUMBER, Sure.LIKELY)
        likely = likely_classes.class_of(self, m.unit, parameter) if self.program.classes else None
        if likely is not None and kind in (Kind.UNKNOWN, self.class_kind(likely)[0]) and called.kind is Kind.UNKNOWN:
            return self.instance(likely)._replace(sure=Sure.LIKELY)
        if kind is Kind.UNKNOWN and not self.is_of_another_framework:
            kind, sure = kinds.from_name(parameter.name)
            if kind is Kind.TENSOR:
                kind, sure = Kind.UNKNOWN, Sure.NOT
        if kind is Kind.UNKNOWN and ARCHIVE in called.flags:
            # What `numpy.load` returned, and a method of arrays would show that it is one.
            return Object(flags=frozenset({ARCHIVE}))
        if kind is Kind.UNKNOWN and OUTPUT in called.flags:
            # What a network returned, and what is done to it here may show that it is a tensor.
            return Object(requires_grad=called.requires_grad, leaf=called.leaf, flags=called.flags & {HANDED, OUTPUT})
        other = kind is Kind.UNKNOWN and kinds.used_otherwise(uses)
        return Object(kind, sure, flags=frozenset({OTHERWISE}) if other else frozenset())

    def passed_dtype(self, m: Machine, parameter: str) -> str:
        """The dtype of what the calls of the file pass for a parameter of a unit, if they agree and it is known."""
        return self._arguments.get(m.unit.number, {}).get(parameter, Object()).dtype

    def _network_object(self, m: Machine, parameter: t.Parameter, declared: Object, called: Object) -> Object:
        """What a parameter is that is declared as any module (`net: nn.Module`): of the class that calls pass, or, if
        no call of the file shows that, of the one that it is likely to be of."""
        if called.kind is Kind.MODULE and self.local_class(called.type) is not None:
            return called._replace(sure=declared.sure)
        likely = likely_classes.class_of(self, m.unit, parameter) if called.kind is Kind.UNKNOWN else None
        return self.instance(likely)._replace(sure=declared.sure) if likely is not None else declared

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
        if annotation is None and (passed is None or passed.kind is Kind.UNKNOWN):
            entries = self._passed_entries.get((m.unit.number, m.state.object(ref).text), {})
            for key, obj in entries.items():
                if obj.kind is not Kind.UNKNOWN:
                    self._bind_slot(m, (ref, key), obj)
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
            self._bind_slot(m, (ref, f"[{position}]"), obj or Object())

    def _bind_slot(self, m: Machine, slot: Slot, obj: Object) -> None:
        """What stands in one place of a container that is passed."""
        inner = m.number("slot", slot)
        text = m.state.object(slot[0]).text + slot[1]
        shares = (Share(inner, How.OWN, -1, inner),)
        m.state.set_object(inner, obj._replace(shares=shares, text=text, owner=ARGUMENT))
        m.state.put_cell(slot, Cell((inner,), obj.kind, None, site=-1))

    def _bind_any(self, m: Machine, ref: int, obj: Object, owner: str) -> None:
        """Whatever element of a container is looked at is such an object."""
        inner = m.number("slot", (ref, ANY_ELEMENT))
        text = f"{m.state.object(ref).text}[...]"
        shares = (Share(inner, How.OWN, -1, inner),)
        flags = frozenset({PLACEHOLDER}) | obj.flags & {INFERENCE}
        m.state.set_object(inner, obj._replace(shares=shares, text=text, owner=owner, flags=flags))
        m.state.put_cell((ref, ANY_ELEMENT), Cell((inner,), obj.kind, None, site=-1))

    def note_arguments(self, m: Machine, unit: int, bound: dict[str, Value], site: int = -1) -> None:
        """A function of this file is called with such arguments: evidence for what its parameters are.

        A method may be any of those that override it.
        """
        if not self.is_own(unit):
            return
        for called in (unit, *self.overriding(unit)):
            self._note_arguments(m, called, bound, site)
            self.note_passed(m, called, bound, site)

    @kept_property
    def _makes_by_constructor(self) -> bool:
        """Whether the file may call a constructor of old: nothing else asks what calls pass."""
        names = {name.rpartition(".")[2] for name in (*LEGACY, "torch.Tensor.new")}
        return any(event.name in names for unit in self.program.units for event in self.index(unit).named)

    def note_passed(self, m: Machine, unit: int, bound: dict[str, Value], site: int) -> None:
        """Which storages the call at a site passes for which parameters."""
        for name, value in bound.items() if site >= 0 and self._makes_by_constructor else ():
            storages = frozenset(share.storage for ref in value.refs for share in m.state.object(ref).shares)
            if storages:
                self._passed.setdefault((unit, name), {})[m.unit.number, site] = storages

    def passed_for(self, unit: int, name: str) -> list[tuple[int, int, frozenset[int]]]:
        """What the calls of the file pass for a parameter: who calls, where, and the storages that it sits on."""
        known = self._passed.get((unit, name), {})
        return [(caller, site, storages) for (caller, site), storages in sorted(known.items())]

    def _note_arguments(self, m: Machine, unit: int, bound: dict[str, Value], site: int) -> None:
        known = self._arguments.setdefault(unit, {})
        for name, value in bound.items():
            if value.kind is Kind.NONE and not value.refs:
                continue
            if value.const.__class__ is FunctionReference:
                self.passed_functions.setdefault((unit, name), set()).add(value.const.unit)
            self._note_given(m, unit, name, value, site)
            obj = Object(value.kind)
            for number, ref in enumerate(_without_own_results(m, value.refs, site)):
                template = as_passed(m.state.object(ref))
                if m.state.mode.inference > 0:
                    # The function runs in that mode as well, where nothing has to be kept.
                    template = template._replace(flags=template.flags - {INFERENCE})
                obj = template if number == 0 else join_objects(obj, template)
            known[name] = self._newest.setdefault((unit, name), Newest()).note(m, site, obj)
            if known[name].kind in CONTAINERS:
                element = common_element(m, value.refs) or Object()
                if m.state.mode.inference > 0:
                    element = element._replace(flags=element.flags - {INFERENCE})
                newest = self._newest.setdefault((unit, f"{name}[...]"), Newest())
                self._passed_elements[unit, name] = newest.note(m, site, element)
            if known[name].kind is Kind.DICT:
                self._note_entries(m, unit, name, value, site)

    def _note_given(self, m: Machine, unit: int, name: str, value: Value, site: int) -> None:
        """Whether a call gives something away. It is asked about only while the answer may change what is known."""
        given, held = self._given.setdefault(unit, {}), self._held.setdefault(unit, set())
        is_given = given.setdefault(name, True)
        on_host = name not in held and _is_made_on_host(m, value)
        if (is_given or on_host) and not giving.is_nobody_elses(m, value, site):
            given[name] = False
            if on_host:
                held.add(name)

    def _note_entries(self, m: Machine, unit: int, name: str, value: Value, site: int) -> None:
        """What a dictionary that is passed holds under keys that are texts: where its entries differ, each is known."""
        held: dict[str, Object] = {}
        for ref in value.refs:
            for slot in m.state.slot_names(ref)[:MAX_ELEMENTS]:
                objects = [as_passed(m.state.object(one)) for one in m.state.refs_of(slot)]
                if slot[1].startswith("['") and objects:
                    before = [held[slot[1]]] if slot[1] in held else []
                    held[slot[1]] = reduce(join_objects, before + objects)
        entries = self._passed_entries.setdefault((unit, name), {})
        for key in sorted(entries.keys() | held.keys()):
            newest = self._newest.setdefault((unit, name + key), Newest())
            one = newest.note(m, site, held.get(key, Object()))
            entries[key] = one if one.requires_grad > 0 else one._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)

    def given_away(self, unit: int) -> frozenset[str]:
        """The parameters for which every call in the file passes what nobody else holds, or looks at again:
        `f(x.clone())`."""
        return frozenset(name for name, fresh in self._given.get(unit, {}).items() if fresh)

    def is_passed(self, unit: int, name: str) -> bool:
        """Whether some call in the file passes something for a parameter."""
        return name in self._given.get(unit, {})

    def held_by_callers(self, unit: int) -> frozenset[str]:
        """The parameters for which some call in the file passes a tensor that it has made, and goes on to hold."""
        return frozenset(self._held.get(unit, ()))

    def note_default(self, m: Machine, unit: int, name: str, value: Value) -> None:
        """A parameter has a default, which is made when the function is defined."""
        made = m.state.object(value.refs[0]) if len(value.refs) == 1 else Object()
        if made.kind in TENSORS:
            self._defaults.setdefault(unit, {})[name] = made
        elif made.kind is Kind.MODULE and not m.state.slot_names(value.refs[0]):
            self._layers.setdefault(unit, {})[name] = unplaced(made)
        calling = partials.default_of(m, value)
        if calling is not None:
            self._calling.setdefault(unit, {})[name] = calling

    def default(self, unit: int, name: str) -> Object | None:
        """The tensor that is the default of a parameter."""
        return self._defaults.get(unit, {}).get(name)


def _without_own_results(m: Machine, refs: Sequence[int], site: int) -> Sequence[int]:
    """What a call passes, but for what it has returned itself in an earlier turn of a loop, if nobody knows what that
    is: `x = scale(x)`."""
    others = [ref for ref in refs if (obj := m.state.object(ref)).kind is not Kind.UNKNOWN or obj.site != site]
    return others or refs


def _is_made_on_host(m: Machine, value: Value) -> bool:
    """Whether a value is a tensor for sure, one that the unit has made, on the host."""
    objects = [m.state.object(ref) for ref in value.refs]
    made = all(obj.kind is Kind.TENSOR and obj.sure is Sure.PROVEN and obj.owner in ("", LOCAL) for obj in objects)
    return made and devices.is_on_host(m, value)


def common_element(m: Machine, refs: Iterable[int]) -> Object | None:
    """What all elements of some containers are, those that are looked at."""
    element: Object | None = None
    for ref in refs:
        for slot in m.state.slot_names(ref)[:MAX_ELEMENTS]:
            for held in m.state.refs_of(slot) if slot[1].startswith("[") else ():
                obj = as_passed(m.state.object(held))
                element = obj if element is None else join_objects(element, obj)
    if element is None or element.kind is Kind.UNKNOWN:
        return None
    # Somebody may switch it on later: only what does require grad is sure to.
    return element if element.requires_grad > 0 else element._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
