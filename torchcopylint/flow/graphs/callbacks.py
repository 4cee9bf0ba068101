"""Functions that autograd calls: what each of them is handed belongs to autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ContextKept
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    PARTIAL,
    PARTIAL_OF,
    TENSORS,
    Cell,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import inquiries

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

FORWARD, HOOK, PACK = "forward", "gradient hook", "pack hook"
_SEVERAL = {"register_full_backward_hook": 2, "register_full_backward_pre_hook": 1, "register_backward_hook": 2}
"""Hooks of modules, and how many tuples of gradients they are handed last."""
_PACKING = frozenset({"torch.autograd.graph.saved_tensors_hooks"})


def note_hook(m: Machine, event: t.Invoke, arguments: Arguments) -> None:
    """`tensor.register_hook(function)`: autograd hands the function a gradient. Argument 0 is the receiver.

    The function may be a method, `register_hook(self.scale)`, or an object with a `__call__`. What a node of the graph
    has saved is handed to the first function of `register_hooks(pack, unpack)`.
    """
    if event.name == "register_hooks" and len(arguments.positional) == 3:
        register = event.arguments[0].register
        function = called(m, register, arguments.positional[1])
        _note(m, function, PACK, register)
        _hand_tensor(m, function, event.site)
    many = _SEVERAL.get(event.name, 0)
    if (event.name != "register_hook" and not many) or len(arguments.positional) < 2:
        return
    register = event.arguments[0].register if event.arguments else t.NO_REGISTER
    function = called(m, register, arguments.positional[1]) if event.arguments else Value()
    likely = _likely_methods(m, register) if function.const is None else []
    function = likely[0] if len(likely) == 1 else function
    if many or not _is_weight_of_layer(m, event.base):
        _note(m, function, HOOK, register)
    if isinstance(function.const, FunctionReference) and m.world.is_own(function.const.unit):
        unit = m.world.unit(function.const.unit)
        names = [parameter.name for parameter in unit.parameters[-(many or 1) :]]
        given = m.number("gradient of a hook")
        m.state.set_object(given, Object(Kind.TENSOR, Sure.PROVEN))
        value = Value((given,), Kind.TENSOR)
        if many:
            gathered = m.number("gradients of a hook")
            m.state.set_object(gathered, Object(Kind.TUPLE, Sure.PROVEN))
            m.state.put_cell((gathered, ANY_ELEMENT), Cell((given,), Kind.TENSOR, None, site=event.site))
            value = Value((gathered,), Kind.TUPLE)
        _hand(m, unit.number, dict.fromkeys(names, value), event.site)


def _is_weight_of_layer(m: Machine, register: int) -> bool:
    """Whether a tensor is the weight of what is no class of the file, a layer that is: backward makes the gradient of
    that for it alone, and hands it to no other branch of the graph."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Attribute) or made.name != "weight":
        return False
    base = m.unit.definitions[made.base] if made.base >= 0 else None
    if m.unit.owner >= 0 and isinstance(base, t.Load) and base.name == m.unit.first:
        return False
    types = {m.state.object(ref).type for ref in m.value(made.base).refs}
    return all(m.world.local_class(one) is None for one in types)


def note_pack(m: Machine, dotted: str, event: t.Call | t.Invoke) -> None:
    """`saved_tensors_hooks(pack, unpack)`: autograd hands `pack` what an operation saves."""
    if dotted in _PACKING:
        registers = [one.register for one in event.arguments if one.keyword in ("pack_hook", "")][:1]
        for register in registers:
            function = called(m, register, m.value(register))
            likely = _likely_methods(m, register, *(one.register for one in event.arguments))
            for one in [function] if function.const is not None else likely or [function]:
                _note(m, one, PACK, register)
                _hand_tensor(m, one, event.site)


def _hand(m: Machine, unit: int, given: dict[str, Value], site: int) -> None:
    """Autograd hands a function something. One of another file is run for that: nobody in this one calls it."""
    m.world.note_arguments(m, unit, given, site)
    if not m.world.is_of_file(unit):
        m.world.summary(unit)


def _hand_tensor(m: Machine, function: Value, site: int) -> None:
    """What a pack hook is handed, last of all, is a tensor."""
    if isinstance(function.const, FunctionReference) and m.world.is_own(function.const.unit):
        unit = m.world.unit(function.const.unit)
        saved = m.number("what an operation saves")
        m.state.set_object(saved, Object(Kind.TENSOR, Sure.PROVEN))
        given = {parameter.name: Value((saved,), Kind.TENSOR) for parameter in unit.parameters[-1:]}
        _hand(m, unit.number, given, site)


def hand_module(m: Machine, event: t.Invoke, arguments: Arguments) -> None:
    """`net.apply(function)` hands the function each part of the network, and the network itself."""
    if len(event.arguments) != 1 or len(arguments.positional) != 1:
        return
    function = called(m, event.arguments[0].register, arguments.positional[0])
    if isinstance(function.const, FunctionReference) and m.world.is_own(function.const.unit):
        unit = m.world.unit(function.const.unit)
        given = m.number("part of a module")
        m.state.set_object(given, Object(Kind.MODULE, Sure.PROVEN))
        names = [one.name for one in unit.parameters] if len(unit.parameters) <= 2 else []
        _hand(m, unit.number, {name: Value((given,), Kind.MODULE) for name in names[-1:]}, event.site)


def note_super(m: Machine, event: t.Invoke) -> None:
    """`super().__init__(pack, unpack)` in a class below `saved_tensors_hooks`."""
    bases = m.world.base_names(m.unit.owner) if event.name == "__init__" and m.unit.owner >= 0 else set()
    for dotted in bases & _PACKING:
        note_pack(m, dotted, event)


def _likely_methods(m: Machine, *registers: int) -> list[Value]:
    """The methods that the first of some registers may hold, of an object of which nothing is known: those of the
    classes of the file that have methods by all those names, but of what inherits from another one of these."""
    made = [m.unit.definitions[register] if register >= 0 else None for register in registers]
    names = [event.name for event in made if isinstance(event, t.Attribute)]
    if not names or len(names) != len(made):
        return []
    fitting = [one.number for one in m.world.program.classes if all(m.world.method(one.number, n) for n in names)]
    first = [number for number in fitting if set(m.world.lineage(number)) & set(fitting) == {number}]
    methods = [m.world.method(number, names[0]) for number in first]
    return [Value(const=FunctionReference(number)) for number in methods if number is not None]


def called(m: Machine, register: int, value: Value) -> Value:
    """The function that is called where a value is: itself, that of a `partial`, a method of an object of the file, or
    its `__call__`."""
    if isinstance(value.const, FunctionReference):
        return value
    inner = m.state.cell((value.refs[0], PARTIAL_OF)) if len(value.refs) == 1 else None
    if inner is not None and m.state.object(value.refs[0]).type == PARTIAL:
        # What it is called with comes behind what it has been given.
        return Value(const=inner.const)
    made = m.unit.definitions[register] if register >= 0 else None
    name, owner = "__call__", value
    if isinstance(made, t.Attribute):
        name, owner = made.name, m.value(made.base)
    classes = {m.world.local_class(m.state.object(ref).type) for ref in owner.refs}
    local = classes.pop() if len(classes) == 1 else None
    if local is None and isinstance(made, t.Attribute) and m.unit.owner >= 0 and m.unit.parameters:
        base = m.unit.definitions[made.base]
        local = m.unit.owner if isinstance(base, t.Load) and base.name == m.unit.first else None
    number = m.world.method(local, name) if local is not None else None
    return Value(const=FunctionReference(number)) if number is not None else Value()


def _note(m: Machine, value: Value, role: str, register: int) -> None:
    """A function has a role; or whatever the calls in the file pass for a parameter has it."""
    if isinstance(value.const, FunctionReference):
        for number in (value.const.unit, *m.world.overriding(value.const.unit)):
            m.world.roles.setdefault(number, set()).add(role)
        return
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load) and any(parameter.name == made.name for parameter in m.unit.parameters):
        m.world.roles_of_parameters[m.unit.number, made.name] = role


def note_context(m: Machine, owner: Object, event: t.StoreAttribute) -> None:
    """An attribute of an argument is set in `forward` of an autograd `Function`: its context, perhaps.

    Of a display that is put there, `ctx.saved = (x, w)`, it is what stands in it.
    """
    if owner.owner == ARGUMENT and owner.text == _context(m) and FORWARD in m.world.roles_of(m.unit):
        made = m.unit.definitions[event.value]
        held = made.items if isinstance(made, t.Make) else (event.value,)
        m.custom.kept_in_fields[event.site] = (f"{owner.text}.{event.name}", [m.value(register) for register in held])


def found(m: Machine) -> list[Relation]:
    """What the unit keeps on its context, once it has been run: inputs, and what it returns."""
    relations: list[Relation] = []
    returned = {ref | 1 for one in m.results.returned for ref in one.refs}
    for site, (attribute, values) in sorted(m.custom.kept_in_fields.items()):
        several = [[(ref, m.state.object(ref)) for ref in value.refs] for value in values]
        outside = [held for held in several if held and all(_is_from_outside(*one, returned) for one in held)]
        if outside and _is_read_back(m, attribute.rpartition(".")[2]):
            sure = min(obj.sure for _, obj in outside[0])
            relations.append(ContextKept(site, attribute, outside[0][0][1].text, sure))
    return relations


def _is_from_outside(ref: int, obj: Object, returned: set[int]) -> bool:
    """Whether somebody else has a tensor as well, who handed it in or gets it."""
    return obj.kind in TENSORS and (obj.owner == ARGUMENT or ref | 1 in returned)


def _is_read_back(m: Machine, attribute: str) -> bool:
    """Whether `backward` looks into what an attribute of the context holds, or hands the context on, if it is in sight.

    Who asks for its shape or device alone reads no element.
    """
    number = m.world.method(m.unit.owner, "backward")
    if number is None or not m.world.is_own(number) or not m.world.unit(number).parameters:
        return True
    unit = m.world.unit(number)
    index = m.world.index(unit)
    context = unit.first
    loads = [event.out for event in index.of(t.Load) if event.name == context]
    for register in loads:
        used = index.consumers.get(register)
        if not isinstance(used, t.Attribute | t.StoreAttribute | t.Invoke) or used.base != register:
            return True
        if isinstance(used, t.Attribute) and used.name == attribute:
            asked = index.consumers.get(used.out)
            if not isinstance(asked, t.Attribute | t.Invoke) or not inquiries.asks(asked, used.out):
                return True
        if isinstance(used, t.Invoke) and used.name == attribute:
            return True
    return False


def _context(m: Machine) -> str:
    return m.unit.first
