"""Operators: arithmetic, comparisons, augmented assignment, `and`, `or`, `not`, `is` and `in`."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads, refusals, saving
from torchcopylint.flow.graphs import addends, gathered, runs
from torchcopylint.flow.library import containers, indexing, operations, subscripts
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    COMPARISONS,
    CONTAINERS,
    DIMENSIONS,
    FIELD,
    INFERENCE,
    LONE,
    NDARRAY,
    NO_TENSOR,
    OTHERWISE,
    OUTPUT,
    PART,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.networks import making
from torchcopylint.flow.program import wholes
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import collecting, own_entries, reading, repeating, slots, writing
from torchcopylint.flow.tapes import numbers, uses
from torchcopylint.flow.values import array_dtypes, memory, naming
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.flow.values.state import kind_of, written_kind
from torchcopylint.knowledge import table

_OF_NUMBERS = frozenset({"-", "/", "//", "**", "@"})
"""Operators that lists, tuples and texts do not have."""
_UNARY = {"-": "-x", "+": "+x", "~": "~"}


@handles(t.Operate)
def _operate(m: Machine, event: t.Operate) -> None:
    # What a name held is computed with as it is when all operands have been computed: `x + self.branch(x)`.
    values = [_as_it_is(m, m.value(register)) for register in event.operands]
    m.set(event.out, operate(m, event.symbol, values, event, event.operands))


def _as_it_is(m: Machine, value: Value) -> Value:
    cell = m.state.cell(value.root) if value.root is not None else None
    changed = cell is not None and cell.marks != value.marks and cell.refs == value.refs
    return value._replace(marks=cell.marks) if cell is not None and changed else value


def operate(m: Machine, symbol: str, values: list[Value], event: t.Operate, operands: tuple[int, ...]) -> Value:
    """The result of an arithmetic operator or a comparison."""
    for value in values if symbol in _OF_NUMBERS else ():
        if _is_output(m, value):
            memory.refine(m, value, Kind.TENSOR, Sure.LIKELY)
    if symbol == "@" and len(values) == 2 and _is_tensor(m, values[1]):
        # Numbers have no such product, and an array on the left side is refused.
        memory.evidence_tensor(m, values[0])
    kinds = [kind_of(value, m.state) for value in values]
    tensor = next((i for i, kind in enumerate(kinds) if kind in TENSORS), -1)
    # A tensor beside a list says how often it is repeated: `[[0]] * lengths.max()`.
    if tensor >= 0 and not (symbol == "*" and any(kind in (Kind.LIST, Kind.TUPLE) for kind in kinds)):
        return _on_tensor(m, symbol, values, tensor, event, operands)
    for value in values:
        reading.read(m, value, event.site, "operand", symbol)
        slots.field_read(m, value.root, event.site, "operand", symbol)
    if Kind.ARRAY in kinds and not _may_be_tensor(m, values, kinds):
        made = Object(Kind.ARRAY, min(m.state.object(r).sure for v in values for r in v.refs[:1]), text="...")
        if any(NDARRAY in m.state.object(r).flags for v in values for r in v.refs):
            made = made._replace(flags=frozenset({NDARRAY}))
        elif not any(_is_surely_array(m.state.object(ref)) for v in values for ref in v.refs):
            made = made._replace(flags=frozenset({LONE}))
        dtype = "bool" if symbol in COMPARISONS else array_dtypes.arithmetic(m, symbol, values)
        return memory.fresh(m, event.site, made._replace(dtype=dtype))
    if symbol == "*" and any(kind in (Kind.LIST, Kind.TUPLE) for kind in kinds):
        return _repeat(m, values, kinds, event, operands)
    if symbol == "*" and len(values) == 2 and Kind.MODULE in kinds:
        chain = _repeated_chain(m, values, event, operands)
        if chain is not None:
            return chain
    if symbol == "+" and (all(kind in _ROWS for kind in kinds) or _lengthens(m, values, kinds)):
        return _concatenate(m, values, event)
    if symbol == "|" and kinds == [Kind.DICT, Kind.DICT] and all(len(value.refs) == 1 for value in values):
        return _united(m, values, event)
    if all(kind is Kind.NUMBER for kind in kinds):
        number = values[0].const if symbol == "-" and len(values) == 1 else None
        return Value(kind=Kind.NUMBER, const=-number if isinstance(number, int | float) else None)
    if all(kind in (Kind.STRING, Kind.NUMBER, Kind.OTHER) for kind in kinds) and Kind.STRING in kinds:
        return Value(kind=Kind.STRING)
    if symbol in COMPARISONS and not any(value.refs for value in values):
        return Value(kind=Kind.NUMBER)
    return _unknown_result(m, values, event, symbol)


def _united(m: Machine, values: list[Value], event: t.Operate) -> Value:
    """`first | second`: a new dictionary of what the two hold, the second before the first."""
    made = memory.fresh(m, event.site, Object(Kind.DICT, Sure.PROVEN, text="..."))
    for value in values:
        containers.copy_elements(m, value.refs[0], made.refs[0], event.site)
    second = m.unit.definitions[event.operands[1]]
    if isinstance(second, t.Make) and not any(second.stars):
        # What stands there is told, so that all other keys are those of the first.
        containers.note_copy(m, made.refs[0], values[0].refs[0])
    return made


def _may_be_tensor(m: Machine, values: list[Value], kinds: list[Kind]) -> bool:
    """Whether one operand is unknown, and what NumPy has made of something unknown stands beside it: either may be a
    tensor, since of a tensor NumPy makes one."""
    arrays = [
        m.state.object(ref)
        for value, kind in zip(values, kinds, strict=True)
        for ref in value.refs
        if kind is Kind.ARRAY
    ]
    unknown = any(kind is Kind.UNKNOWN and value.refs for value, kind in zip(values, kinds, strict=True))
    return unknown and all(LONE in obj.flags and NDARRAY not in obj.flags for obj in arrays)


def _is_surely_array(obj: Object) -> bool:
    """Whether an array is no number: neither what NumPy has made of something unknown, nor an element of an array."""
    return obj.kind is Kind.ARRAY and LONE not in obj.flags and any(share.sure for share in obj.shares)


def _is_tensor(m: Machine, value: Value) -> bool:
    """Whether a value is surely a tensor, whichever of its objects it is."""
    objects = [m.state.object(ref) for ref in value.refs]
    return bool(objects) and all(obj.kind in TENSORS and obj.sure is Sure.PROVEN for obj in objects)


def _is_output(m: Machine, value: Value) -> bool:
    """Whether something is all that a network returned: with that, nobody can compute who was given no tensor."""
    obj = m.state.object(value.refs[0]) if len(value.refs) == 1 else None
    return obj is not None and OUTPUT in obj.flags and PART not in obj.flags


def _unknown_result(m: Machine, values: list[Value], event: t.Operate, symbol: str) -> Value:
    # Whatever it is, arithmetic makes a new one. If one side needs a gradient for all we know, so may the result.
    inputs = [m.state.object(r) for v in values for r in v.refs]
    made = Object(text="...")
    if symbol not in COMPARISONS:
        graph = frozenset[int]().union(*(obj.graph for obj in inputs))
        kept = {PART, INFERENCE} if m.state.mode.inference > 0 else {PART}
        flags = frozenset[str]().union(*(obj.flags & kept for obj in inputs))
        made = made._replace(graph=graph, flags=flags)
        if m.state.mode.recording > 0 and any(obj.requires_grad > 0 for obj in inputs):
            made = made._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO)
    return memory.fresh(m, event.site, made, "arithmetic " + symbol)


def _on_tensor(
    m: Machine, symbol: str, values: list[Value], tensor: int, event: t.Operate, operands: tuple[int, ...]
) -> Value:
    if len(values) == 1:
        op = table.operator(_UNARY[symbol])
        arguments = Arguments(values, {})
    elif tensor == 0:
        op = table.operator(symbol)
        arguments = Arguments(values, {})
    else:
        # The tensor stands on the right; the row speaks of it as argument 0.
        op = table.operator(symbol, reflected=symbol not in COMPARISONS)
        arguments = Arguments([values[1], values[0]], {})
    name = naming.text_of(m, operands[tensor])
    return operations.apply(m, op, arguments, Site(event.site, name, symbol, "operator"))


def _repeat(m: Machine, values: list[Value], kinds: list[Kind], event: t.Operate, operands: tuple[int, ...]) -> Value:
    side = 0 if kinds[0] in (Kind.LIST, Kind.TUPLE) else 1
    container, count = values[side], values[1 - side]
    made = memory.fresh(m, event.site, Object(kinds[side], Sure.PROVEN, text="[...]"))
    for ref in container.refs:
        for slot in m.state.slot_names(ref):
            cell = m.state.cell(slot)
            if cell is None:
                continue
            held = Value(cell.refs, cell.kind, cell.const, cell.marks)
            slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held, event.site, weak=True)
            if count.const not in (0, 1) and not uses.is_flag(m, operands[1 - side]):
                if repeating.is_layer(m, held, event.out):
                    memory.refine(m, held, Kind.MODULE, Sure.LIKELY)
                place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
                repeating.note_repeated(m, held, event.site, "multiplied", place, event.out)
    return made


def _repeated_chain(m: Machine, values: list[Value], event: t.Operate, operands: tuple[int, ...]) -> Value | None:
    """`nn.Sequential(layer) * 3`: another chain, in which each layer stands several times."""
    side = 0 if kind_of(values[0], m.state) is Kind.MODULE else 1
    chain, count = values[side], values[1 - side]
    if kind_of(count, m.state) in TENSORS or not all(m.state.object(ref).type in _CHAINS for ref in chain.refs):
        return None
    if count.const not in (0, 1) and not uses.is_flag(m, operands[1 - side]):
        place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
        repeating.note_repeated(m, chain, event.site, "multiplied", place, event.out)
    return making.wrap(m, chain, event.site, naming.text_of(m, event.out))


_CHAINS = frozenset({"torch.nn.Sequential"})
_ROWS = (Kind.LIST, Kind.TUPLE)


def _lengthens(m: Machine, values: list[Value], kinds: list[Kind]) -> bool:
    """Whether something of which nothing is known is added to a list of tensors, as only a list is: `[x] + others`."""
    if sorted(kind in _ROWS for kind in kinds) != [False, True] or Kind.UNKNOWN not in kinds:
        return False
    known = next(value for value, kind in zip(values, kinds, strict=True) if kind in _ROWS)
    held = [ref for ref in known.refs for slot in m.state.slot_names(ref) for ref in m.state.refs_of(slot)]
    return bool(held) and all(m.state.object(ref).kind in TENSORS for ref in held)


def _concatenate(m: Machine, values: list[Value], event: t.Operate) -> Value:
    kinds = {kind_of(value, m.state) for value in values} - {Kind.UNKNOWN}
    made = memory.fresh(m, event.site, Object(kinds.pop() if len(kinds) == 1 else Kind.LIST, Sure.PROVEN, text="[...]"))
    for value in values:
        for ref in value.refs:
            for slot in m.state.slot_names(ref):
                cell = m.state.cell(slot)
                if cell is not None and not own_entries.is_from_end(slot[1]):
                    held = Value(cell.refs, cell.kind, cell.const, cell.marks)
                    slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held, event.site, weak=True)
    wholes.note_taken(m, values, made)
    return made


@handles(t.Augment)
def _augment(m: Machine, event: t.Augment) -> None:
    target, value = m.value(event.target), m.value(event.value)
    if _is_sample(m, target) and _has_dimensions(m, value):
        memory.refine(m, target, Kind.TENSOR, Sure.LIKELY)
    sums = event.symbol == "+=" and _is_sum(m, event, target, value)
    result = augment(m, event, target, value)
    if sums:
        runs.mark_sum(m, event.site, result)
    m.set(event.out, result)


def _is_sample(m: Machine, value: Value) -> bool:
    """Whether a value is an element of what a dataset keeps, of which nothing else says what it is."""
    fetching = m.unit.owner >= 0 and m.unit.name == "__getitem__"
    objects = [m.state.object(ref) for ref in value.refs]
    return fetching and bool(objects) and all(obj.kind is Kind.UNKNOWN and obj.owner == FIELD for obj in objects)


def _has_dimensions(m: Machine, value: Value) -> bool:
    """Whether a value is surely a tensor with dimensions: added to a number, it would make a tensor of that."""
    objects = [m.state.object(ref) for ref in value.refs]
    return bool(objects) and all(obj.kind in TENSORS and DIMENSIONS in obj.flags for obj in objects)


def _is_sum(m: Machine, event: t.Augment, target: Value, value: Value) -> bool:
    name, source = naming.text_of(m, event.target), naming.spelling(m, event.value)
    if isinstance(m.unit.definitions[event.target], t.Item) and m.world.has_sums_of_its_own:
        # What stands in the container may be of that class.
        return False
    form = "collected" if kind_of(target, m.state) in CONTAINERS else "sum"
    if form == "collected":
        value = slots.join_values([slots.slot_value(m, slot) for ref in value.refs for slot in m.state.slot_names(ref)])
    if form == "sum" and m.state.mode.recording is Fact.NO:
        # The sum has no graph behind it, whatever is added to it.
        return False
    if form == "sum":
        gathered.note(m, event.site, event.target, value, source)
        value = addends.of_loss(m, event.value)
    lasting = runs.stands_in_field(m, event.target)
    return runs.accumulate(m, event.site, target, value, name, source, form, lasting=lasting)


def augment(m: Machine, event: t.Augment, target: Value, value: Value) -> Value:
    """`target op= value`: in place for tensors and arrays, a new value for numbers, an extension for lists."""
    memory.evidence_array(m, target)
    target = target._replace(plain=target.plain or _may_be_number(m, event, target))
    kind = written_kind(target, m.state)
    name = naming.text_of(m, event.target)
    if kind in BUFFERS and event.symbol != "@=" and not target.plain:
        reading.read(m, value, event.site, "operand", event.symbol)
        slots.field_read(m, value.root, event.site, "operand", event.symbol)
        item = m.unit.definitions[event.target]
        if isinstance(item, t.Item) and indexing.is_stored_back(m, item, target):
            if subscripts.is_advanced(m, item.subscript) is Fact.YES:
                numbers.note_accumulated(m, item, event.symbol, event.site, name, event.value)
            indexing.write_back(m, item, value, Site(event.site, name, event.symbol, "augmented"))
            return target
        at = Site(event.site, name, event.symbol, "augmented")
        if kind in TENSORS or not isinstance(item, t.Item):
            numbers.note_arithmetic(m, target, value, event.symbol, event.site, name)
        before = saving.needs_gradient(m, target)
        operations.write_through(m, target, [value], at, reads_old=True, versioned=kind in TENSORS)
        if kind in TENSORS:
            op = table.inplace_operator(event.symbol)
            saving.note_saved(m, op, Arguments([target, value], {}), target, at, before)
        return writing.current(m, target)
    if kind in CONTAINERS and event.symbol == "+=":
        wholes.note_grown(m, target, value, event.site)
        _extend(m, target, value, event.site)
        return target
    binary = event.symbol.rstrip("=")
    shadow = t.Operate(event.out, binary, (event.target, event.value), event.site)
    if (kind is Kind.UNKNOWN or target.plain) and target.refs and kind is not Kind.NUMBER:
        # A tensor is changed in place, a number is not, and nobody knows which this is: whatever held it may be stale.
        reading.read(m, value, event.site, "operand", event.symbol)
        reading.read(m, target, event.site, "operand", event.symbol)
        # A number has not been made in inference mode; what is divided or multiplied is no list either.
        shown = Sure.NOT if event.symbol == "+=" and kind_of(value, m.state) is not Kind.NUMBER else Sure.LIKELY
        refusals.check_inference(m, target, Site(event.site, name, event.symbol, "augmented"), shown)
        inference = {INFERENCE} & frozenset[str]().union(*(m.state.object(ref).flags for ref in target.refs))
        kinds = {m.state.object(ref).kind for ref in value.refs}
        graph = frozenset[int]().union(*(m.state.object(r).graph for r in (*target.refs, *value.refs)))
        made = Object(text=name, graph=graph, flags=frozenset(inference))
        if target.plain and kind in BUFFERS:
            made = made._replace(kind=kind, sure=Sure.LIKELY)
        if kinds & TENSORS and kinds <= TENSORS:
            made = grads.result_of(m, made, [target, value], True)
        return memory.fresh(m, event.site, made, "augmented")
    return operate(m, binary, [target, value], shadow, (event.target, event.value))


def _may_be_number(m: Machine, event: t.Augment, target: Value) -> bool:
    """Whether what `+=` is for may be a number: what NumPy has made of what nobody knows (`np.exp(x)`), what is
    compared as one (`while a != 0:`), or an element of a list that is one of the elements of an array, which are
    numbers if that has one dimension.

    `counts = list(x.numpy()); counts[i] += 1` then puts another number into the list.
    """
    if target.refs and all(LONE in m.state.object(ref).flags for ref in target.refs):
        return True
    if target.refs and all(numbers.is_of_a_rate(m, m.state.object(ref)) for ref in target.refs):
        return True
    if target.refs and numbers.is_asked_alone(m, event.target, target):
        return True
    item = m.unit.definitions[event.target] if event.target >= 0 else None
    if not isinstance(item, t.Item) or kind_of(m.value(item.base), m.state) is not Kind.LIST:
        return False
    objects = [m.state.object(ref) for ref in target.refs]
    return any(
        obj.kind is Kind.ARRAY and any(s.how is How.ROW and not s.sure and not s.when for s in obj.shares)
        for obj in objects
    )


def _extend(m: Machine, target: Value, value: Value, site: int) -> None:
    for ref in target.refs:
        for source in value.refs:
            repeating.note_extended_again(m, ref, source, site)
            for slot in m.state.slot_names(source):
                cell = m.state.cell(slot)
                if cell is not None:
                    # In `layers += [hidden, act]` each item is short for a name, as it would be in `append(hidden)`.
                    held = Value(cell.refs, cell.kind, cell.const, cell.marks, cell.origin)
                    collecting.put(m, (ref, ANY_ELEMENT), held, site, "append")


@handles(t.Logic)
def _logic(m: Machine, event: t.Logic) -> None:
    values = [m.value(register) for register in event.operands]
    if event.symbol in ("and", "or"):
        m.set(event.out, slots.join_values(values)._replace(root=None))
        return
    if event.symbol in ("is", "is not") and values[-1].kind is Kind.NONE and not values[-1].refs:
        _note_otherwise(m, event.operands[0])
    if event.symbol in ("in", "not in"):
        _note_container(m, values[-1])
        # In a set things are looked for by what they are: of a tensor or a module, that is the object.
        by_identity = kind_of(values[-1], m.state) is Kind.SET
        for value in () if by_identity else values:
            # Of a dictionary, the keys are compared.
            if kind_of(value, m.state) not in (Kind.DICT, Kind.STATE_DICT):
                reading.read(m, value, event.site, "operand", event.symbol)
    m.set(event.out, Value(kind=Kind.NUMBER))


def _note_container(m: Machine, value: Value) -> None:
    """Somebody asks whether something is in what only a name takes for a tensor: it is a container."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind in TENSORS and obj.sure <= Sure.HINT:
            m.state.set_object(ref, obj._replace(kind=Kind.UNKNOWN, sure=Sure.NOT, flags=obj.flags | {NO_TENSOR}))


def _note_otherwise(m: Machine, register: int) -> None:
    """Somebody asks whether some `.data` is `None`, as that of a tensor never is."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Attribute) and made.name == "data":
        for ref in m.value(made.base).refs:
            obj = m.state.object(ref)
            if obj.kind is Kind.UNKNOWN:
                m.state.set_object(ref, obj._replace(flags=obj.flags | {OTHERWISE}))
