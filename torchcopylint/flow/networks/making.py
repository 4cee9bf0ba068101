"""Modules, optimizers and instances of this file's classes: making them."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import statistics
from torchcopylint.flow.interprocedural import applying, handing, passing, records
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    IDENTITY,
    INFERENCE,
    UNKNOWN,
    WRITES_INPUT,
    Fact,
    How,
    Kind,
    Object,
    Region,
    Share,
    Sure,
    Value,
)
from torchcopylint.flow.program import chain_layers, generators, ownership
from torchcopylint.flow.references import ClassReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import aliasing, memory_given, reading, slots
from torchcopylint.flow.tapes import by_default
from torchcopylint.flow.values import dtypes, memory
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.knowledge import losses, table


def make_module(m: Machine, dotted: str, arguments: Arguments, site: int, name: str) -> Value:
    """An instance of a class of `torch.nn`."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, site, "argument", name)
    dtype = dtypes.named(arguments) or ("" if {"dtype", "**"} & set(arguments.keywords) else dtypes.UNCONVERTED)
    config = tuple(
        (key, value.const) for key, value in sorted(arguments.keywords.items()) if isinstance(value.const, int | str)
    )
    row = table.module_class(dotted)
    if row is not None and row.inplace_keyword and arguments.positional and arguments.positional[-1].const is True:
        config = (*config, ("inplace", True))
    elif row is not None and row.inplace_keyword and "inplace" in arguments.keywords and "inplace" not in dict(config):
        config = (*config, ("inplace", _is_told_by_default(m, site) or "told by somebody else"))
    if statistics.renormalises(table.canonical(dotted), arguments):
        config = (*config, (statistics.MAX_NORM, True))
    dotted = IDENTITY if not arguments.positional and _stays_empty(m, dotted, site) else dotted
    obj = Object(
        Kind.MODULE, Sure.PROVEN, type=table.canonical(dotted), config=config, dtype=dtype, text=f"{name}(...)"
    )
    if row is not None and (row.stateful or _of_inference(m, arguments.positional)):
        obj = obj._replace(flags=_mode_of(m))
    made = memory.fresh(m, site, obj)
    hold_children(m, made, arguments, site)
    for field, place in losses.weights_of(table.canonical(dotted)).items():
        given = arguments.keywords.get(field, arguments.at(place))
        # Without one, there is `None`.
        slots.bind_slot(m, (made.refs[0], f".{field}"), given if given.refs else Value(kind=Kind.NONE), site)
    if table.canonical(dotted) == chain_layers.SEQUENTIAL:
        obj = chain_layers.with_layers(m.state.object(made.refs[0]), chain_layers.given(m, arguments.positional))
        flags = {WRITES_INPUT} if _write_input(m, arguments.positional) else set()
        m.state.set_object(made.refs[0], obj._replace(flags=obj.flags | flags))
    return made


_ADDING = frozenset({"add_module", "append", "extend", "insert", "register_module"})


def _stays_empty(m: Machine, dotted: str, site: int) -> bool:
    """Whether a chain that is made without a layer gets none in this file: it hands on what it is given.

    What has a name is likely to be filled by it, or by whom it is handed to; what stands in a field, by another method.
    """
    if table.canonical(dotted) != chain_layers.SEQUENTIAL:
        return False
    made = m.index.calls.get(site)
    named = any(bind.value == made for binds in m.index.binds.values() for bind in binds)
    fields = {store.name for store in m.index.of(t.StoreAttribute) if store.value == made}
    added = any(event.name in _ADDING for event in m.index.of(t.Invoke))
    return not named and not added and not any(_fills(m, unit, fields) for unit in m.world.program.units)


def _fills(m: Machine, unit: t.Unit, fields: set[str]) -> bool:
    """Whether a unit adds something to what stands in a field by one of some names: `self.body.add_module(...)`."""
    adding = (event for event in m.world.index(unit).of(t.Invoke) if event.name in _ADDING and event.base >= 0)
    bases = (unit.definitions[event.base] for event in adding)
    return any(isinstance(base, t.Attribute) and base.name in fields for base in bases)


def _mode_of(m: Machine) -> frozenset[str]:
    """What the parameters of a module are that is made here: inference tensors, in that mode."""
    return frozenset({INFERENCE}) if m.state.mode.inference > 0 else frozenset()


def _of_inference(m: Machine, parts: Sequence[Value]) -> bool:
    return any(INFERENCE in m.state.object(ref).flags for part in parts for ref in part.refs)


def _is_told_by_default(m: Machine, site: int) -> bool:
    """`nn.ReLU(inplace=inplace)`, where that is a parameter which is `True` unless somebody passes something else."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    given = call.arguments if isinstance(call, t.Call | t.Invoke) else ()
    return any(one.keyword == "inplace" and by_default.holds(m, one.register) is True for one in given)


def _write_input(m: Machine, chain: Sequence[Value]) -> bool:
    """Whether a chain of modules overwrites what it is given: the first one does that does not hand it on as it is."""
    for value in chain:
        objects = [m.state.object(ref) for ref in value.refs]
        rows = [table.module_class(obj.type) if obj.type else None for obj in objects]
        if not (objects and all(row is not None and row.shares == "same" and not row.when for row in rows)):
            return bool(objects) and all(
                WRITES_INPUT in obj.flags
                or (row is not None and row.inplace_keyword and dict(obj.config).get("inplace") is True)
                for obj, row in zip(objects, rows, strict=True)
            )
    return False


def hold_children(m: Machine, made: Value, arguments: Arguments, site: int) -> None:
    """A `Sequential`, `ModuleList`, `ParameterList` or the like holds what it is given."""
    ref = made.refs[0]
    numbered = _number_layers(m, ref, arguments.positional, site)
    for place, value in enumerate(arguments.positional):
        for held in value.refs:
            obj = m.state.object(held)
            if obj.kind is Kind.MODULE:
                row = table.module_class(obj.type) if obj.type else None
                trained = row is None or row.parameters or row.nested or row.container
                adopt(m, ref, value, site, place if numbered and trained else "")
            elif obj.kind in CONTAINERS:
                for slot in m.state.slot_names(held):
                    inner = slots.slot_value(m, slot)
                    if any(m.state.object(r).kind in (Kind.MODULE, Kind.PARAMETER) for r in inner.refs):
                        adopt(m, ref, inner, site)


def _number_layers(m: Machine, ref: int, positional: Sequence[Value], site: int) -> bool:
    """Whether the call that makes a chain writes out its layers, each another one: they stand at known places."""
    layers = [value.refs[0] for value in positional if len(value.refs) == 1]
    known = all(m.state.object(held).kind is Kind.MODULE and not held & 1 for held in layers)
    chain = m.state.object(ref).type == chain_layers.SEQUENTIAL
    known = known and chain and len(layers) == len(positional) == len(set(layers))
    slots.keep_layers(m, ref, layers if known else [], site)
    return known


def adopt(m: Machine, parent: int, child: Value, site: int, name: str | int = "") -> None:
    """A module holds another one, or a parameter: at a place, or under a number or a name that is not known."""
    obj = m.state.object(parent)
    known = [held.requires_grad for held in map(m.state.object, child.refs) if held.kind is Kind.PARAMETER]
    if known:
        if m.state.cell((parent, ANY_ELEMENT)) is not None:
            known.append(obj.requires_grad)
        trained = Fact.NO if set(known) == {Fact.NO} else Fact.LIKELY if min(known) > 0 else Fact.UNKNOWN
        obj = obj._replace(requires_grad=trained)
        m.state.set_object(parent, obj)
    slots.register_module(m, parent, obj, name, child, site)
    slots.bind_slot(m, (parent, ANY_ELEMENT), child._replace(root=None), site, weak=True)


def wrap(m: Machine, inner: Value, site: int, name: str) -> Value:
    """A module that holds another one in its field `module` and trains the same parameters."""
    obj = m.state.object(inner.refs[0])
    made = memory.fresh(
        m, site, Object(Kind.MODULE, obj.sure, text=f"{name}(...)", requires_grad=obj.requires_grad), "wrapper"
    )
    if len(inner.refs) == 1:
        slots.register_module(m, made.refs[0], m.state.object(made.refs[0]), "module", inner, site)
    slots.bind_slot(m, (made.refs[0], ".module"), inner._replace(root=None), site)
    return made


def make_optimizer(m: Machine, dotted: str, arguments: Arguments, site: int, name: str) -> Value:
    """An optimizer: it moves what the parameters that it was given sit on."""
    given = arguments.first("params")
    generators.note_taken(m, given, site)
    for ref in parameters_in(m, given):
        # Whatever has parameters to train is a module.
        taken = [s.of for s in m.state.object(ref).shares if s.how is How.PARAMETERS]
        memory.refine(m, Value(tuple(taken)), Kind.MODULE, Sure.LIKELY)
    shares = _moved(m, parameters_in(m, given), site)
    ref = m.made_at(site)
    made = Object(Kind.OPTIMIZER, Sure.PROVEN, (*shares, Share(ref, How.OWN, site, ref)), type=dotted, site=site)
    m.state.make(ref, made._replace(text=f"{name}(...)"))
    ownership.note_built(m, ref, given, parameters_in(m, given), site, name)
    return Value((ref,), Kind.OPTIMIZER)


def add_group(m: Machine, optimizer: int, group: Value, site: int, name: str) -> None:
    """`add_param_group`: from here on, the optimizer moves what is in the group as well."""
    given = parameters_in(m, group)
    obj = m.state.object(optimizer)
    m.state.set_object(optimizer, obj._replace(shares=tuple(dict.fromkeys((*_moved(m, given, site), *obj.shares)))))
    ownership.note_added(m, optimizer, group, given, site, name)


def _moved(m: Machine, parameters: list[int], site: int) -> list[Share]:
    """What an optimizer moves by some parameters: a layer of a chain is no other one."""
    return [
        Share(s.storage, How.PARAMETERS, site, ref, s.region if _is_numbered(s.region) else (), s.when, s.sure)
        for ref in parameters
        for s in m.state.object(ref).shares
    ]


def _is_numbered(region: Region) -> bool:
    return bool(region) and region[0].kind == "int"


def hand_parameters(m: Machine, optimizer: Value, register: int) -> None:
    """What nobody knows has made an optimizer, by its use, of what it was given: of the parameters among that.

    Thus `optimizer = build_optimizer(settings, net.parameters())`.
    """
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Call | t.Invoke) or len(optimizer.refs) != 1:
        return
    ref = optimizer.refs[0]
    obj = m.state.object(ref)
    given = [held for argument in made.arguments for held in parameters_in(m, m.value(argument.register))]
    known = any(share.how is How.PARAMETERS for share in obj.shares)
    shares = [
        Share(s.storage, How.PARAMETERS, made.site, held, (), s.when, s.sure)
        for held in ([] if known else given)
        if any(share.how is How.PARAMETERS for share in m.state.object(held).shares)
        for s in m.state.object(held).shares
    ]
    if shares:
        m.state.set_object(ref, obj._replace(shares=tuple(dict.fromkeys((*shares, *obj.shares)))))


_GROUP = "['params']"


def parameters_in(m: Machine, value: Value, depth: int = 4) -> list[int]:
    """The parameters (or other tensors) in what an optimizer was given: an iterator, a list, groups."""
    found: list[int] = []
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind in CONTAINERS and depth:
            names = list(m.state.slot_names(ref))
            # Besides its parameters a group has settings, such as a learning rate that is passed in.
            for slot in [one for one in names if one[1] == _GROUP] or names:
                found += parameters_in(m, slots.slot_value(m, slot), depth - 1)
        elif obj.kind not in CONTAINERS:
            found.append(ref)
    return found


PACKED = "packed sequence"
AVERAGED = "torch.optim.swa_utils.AveragedModel"


def instantiate(m: Machine, reference: ClassReference, arguments: Arguments, site: int, name: str) -> Value:
    """An instance of a class of this file."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, site, "argument", name)
    initial = m.world.method(reference.number, "__init__")
    given: dict[str, Value] = {}
    if initial is not None:
        bound = Arguments([UNKNOWN, *arguments.positional], arguments.keywords)
        given = passing.bind(m.world.unit(initial), bound)
        known = {name: value for name, value in given.items() if value.refs or value.kind is Kind.NUMBER}
        m.world.note_arguments(m, initial, known)
        m.world.note_passed(m, initial, given, site)
    obj = m.world.instance(reference.number)
    has_some = obj.kind is Kind.MODULE and not m.world.has_no_parameters(reference.number)
    flags = obj.flags | (_mode_of(m) if has_some else frozenset())
    made = memory.fresh(m, site, obj._replace(text=f"{name}(...)", flags=flags))
    summary = m.world.summary(initial) if initial is not None else None
    if summary is not None and initial is not None:
        handing.take(m, initial, summary.kept, {**given, m.world.unit(initial).first: made}, site)
        memory_given.by_call(m, initial, given, site, name)
        aliasing.pair_arguments(m, summary.pairs, given, site)
        applying.do_to_arguments(m, initial, summary, given, site, name)
    if initial is None and obj.kind is Kind.INSTANCE:
        records.fill(m, reference.number, made.refs[0], arguments, site)
    if obj.kind is Kind.OPTIMIZER:
        shares = make_optimizer(m, "", arguments, site, name)
        m.state.set_object(
            made.refs[0], obj._replace(shares=m.state.object(shares.refs[0]).shares, text=f"{name}(...)")
        )
    return made
