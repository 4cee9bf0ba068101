"""Iterating over something: what one element is."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural import applying
from torchcopylint.flow.library import containers, datasets, indexing
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    BUFFERS,
    BY_OTHERS,
    CONTAINERS,
    OUTPUT,
    PART,
    Fact,
    How,
    Kind,
    Mark,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.networks import layer_loops
from torchcopylint.flow.program import generators
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import renewing, slots
from torchcopylint.flow.tapes import turns, uses
from torchcopylint.flow.values import kinds, memory, naming


@handles(t.Loop)
def _loop(m: Machine, event: t.Loop) -> None:
    m.loop(event)
    renewing.after(m, event)
    layer_loops.check(m, event)


@handles(t.Iterate)
def _iterate(m: Machine, event: t.Iterate) -> None:
    iterable = m.value(event.iterable)
    generators.start_loop(m, event.iterable, iterable, event.site)
    m.set(event.out, iterate(m, iterable, event.site, naming.text_of(m, event.iterable)))


def iterate(m: Machine, iterable: Value, site: int, text: str, tag: str = "") -> Value:
    """An element of something that is iterated over; `tag` keeps several iterables of one call apart."""
    if not iterable.refs:
        if iterable.kind is Kind.STRING:
            return Value(kind=Kind.STRING)
        return memory.unknown(m, site, f"{text}[...]", f"element{tag}")
    iterable = slots.filled(m, iterable)
    value = slots.join_values([_element_of(m, iterable, ref, site, text, tag) for ref in m.each(iterable.refs)])
    if value.marks:
        value = value._replace(marks=_of_other_turns(m, value.marks, iterable, site))
    if site in m.index.put_back:
        mine = turns.put_back(m, site)
        kept = tuple(ref for ref in value.refs if ref | 1 not in mine)
        if kept != value.refs:
            return value._replace(refs=kept) if kept else memory.unknown(m, site, f"{text}[...]", f"element{tag}")
    return value


def _of_other_turns(m: Machine, marks: frozenset[Mark], iterable: Value, site: int) -> frozenset[Mark]:
    """The marks of an element of an iterable that a loop, by the site of its `Iterate`, comes upon: without those of
    what another turn has written by way of its own element, which is another one, unless an outer loop has come round
    since."""
    noted = m.hits.before.get(site, {})
    before = frozenset[int]().union(*(noted.get(ref, ()) for ref in iterable.refs)) if noted else ()
    return frozenset(k for k in marks if k.own or k.write in before or not _is_by_element(m, k.write, site))


def _is_by_element(m: Machine, write: int, site: int) -> bool:
    """Whether a write went through a name that is bound to what a loop has taken out, or to something made of it."""
    name = m.hits.root_keys.get(write)
    if not isinstance(name, str) or write not in m.hits.roots:
        return False
    bound = (bind.value for bind in m.index.binds.get(name, ()) if bind.site == m.hits.roots[write][0])
    made = (part for register in bound for part in uses.expression(m, register, ""))
    return any(isinstance(part, t.Iterate) and part.site == site for part in made)


def _element_of(m: Machine, iterable: Value, ref: int, site: int, text: str, tag: str) -> Value:
    obj = m.state.object(ref)
    single = Value((ref,), obj.kind, None, iterable.marks, iterable.root)
    handed = _is_handed_in(m, ref, obj)
    guessed = kinds.named_parameters(text) and (obj.kind is Kind.UNKNOWN or handed)
    guessed = guessed or (obj.kind is Kind.UNKNOWN and site in m.index.asked_for_gradient)
    if guessed or (obj.kind is Kind.PARAMETER and obj.sure is Sure.HINT):
        # What is only called parameters may be groups of them: a guess that is iterated over was a group.
        sure = Sure.LIKELY if handed else Sure.HINT
        made = Object(Kind.PARAMETER, sure, leaf=Fact.YES, requires_grad=Fact.LIKELY, text=f"{text}[...]")
        return memory.alias(m, single, site, How.PARAMETERS, made, tag=f"parameter{tag}")
    if obj.kind in BUFFERS:
        # The rows are views, made when the loop begins: their content is read where the body reads it.
        return indexing.row(m, single, obj, site, f"{text}[...]", f"row{tag}")
    if obj.kind is Kind.STATE_DICT or obj.kind is Kind.DICT or obj.type in slots.DICTIONARIES:
        return Value(kind=Kind.STRING)
    number = m.world.method_of(obj, "__iter__") if obj.kind is Kind.INSTANCE else None
    summary = m.world.summary(number) if number is not None else None
    if summary is not None and summary.yields is not None and number is not None:
        bound = {m.world.unit(number).first: single}
        parts = applying.handed_out(m, summary, bound, site, text)
        if parts is not None:
            return slots.element(m, parts, None, site, f"{text}[...]")
    if number is not None and (field := _gone_through(m, number)) and m.state.cell((ref, f".{field}")) is not None:
        return iterate(m, slots.slot_value(m, (ref, f".{field}")), site, f"{text}.{field}", tag)
    if obj.kind is Kind.MODULE:
        return slots.child_module(m, ref, site, f"{text}[...]", f"child{tag}")
    if obj.type in (containers.ZIP, containers.NUMBERED, containers.NAMED):
        return _tuple_of(m, ref, obj.type, site, text, tag)
    if obj.type == containers.VALUES:
        source = slots.slot_value(m, (ref, ".0"))
        return containers.element_of(m, source, source.refs[0], site, f"{text}[...]")
    if obj.type == datasets.OF_TENSORS:
        return datasets.sample(m, single, site, f"sample{tag}")
    if obj.kind in CONTAINERS:
        return slots.element(m, single, None, site, f"{text}[...]")
    slot = (ref, ANY_ELEMENT)
    if m.state.cell(slot) is not None:
        return slots.slot_value(m, slot)
    made = Object(text=f"{text}[...]", flags=obj.flags & {OUTPUT})
    if made.flags:
        # Each of the outputs of a network hangs on its graph.
        flags = made.flags | {PART} | (obj.flags & {BY_OTHERS})
        made = made._replace(requires_grad=obj.requires_grad, graph=obj.graph, flags=flags)
    return memory.fresh(m, site, made, f"element{tag}")


def _gone_through(m: Machine, number: int) -> str:
    """The field that an `__iter__` hands out one by one: `return iter(self.items)`, `yield from self.items`."""
    if not m.world.is_own(number):
        return ""
    unit = m.world.unit(number)
    index = m.world.index(unit)
    handed = [event.value for event in index.of(t.Return)] + [event.value for event in index.of(t.Yield)]
    made = [unit.definitions[register] for register in handed if register >= 0]
    if len(made) != 1:
        return ""
    event = made[0]
    if isinstance(event, t.Call) and len(event.arguments) == 1:
        function = unit.definitions[event.function]
        called = isinstance(function, t.Load) and function.name == "iter"
        event = unit.definitions[event.arguments[0].register] if called else None
    elif isinstance(event, t.Iterate):
        event = unit.definitions[event.iterable]
    base = unit.definitions[event.base] if isinstance(event, t.Attribute) and event.base >= 0 else None
    own = isinstance(base, t.Load) and base.name == unit.first
    return event.name if own and isinstance(event, t.Attribute) else ""


def _is_handed_in(m: Machine, ref: int, obj: Object) -> bool:
    """Whether somebody handed in an iterator over parameters of which nothing more is known."""
    if obj.kind is not Kind.ITERATOR or obj.owner != ARGUMENT:
        return False
    held = [held for slot in m.state.slot_names(ref) for held in m.state.refs_of(slot)]
    # `params: Iterable[Tensor]` says as little as a name would have to say.
    return bool(held) and all(m.state.object(held).kind in (Kind.PARAMETER, Kind.TENSOR) for held in held)


def _tuple_of(m: Machine, ref: int, form: str, site: int, text: str, tag: str) -> Value:
    """This turn's tuple of a lazy iterator."""
    sources = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref)]
    # Each source in a lane of its own: elements of two lists of which nothing is known are not one object.
    lanes = m.each(enumerate(sources))
    items = [iterate(m, source, site, _text_of(m, source), f"{tag}{i}") for i, source in lanes]
    if form != containers.ZIP:
        items.insert(0, Value(kind=Kind.NUMBER if form == containers.NUMBERED else Kind.STRING))
    pair = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text="..."), f"pair{tag}")
    for position, item in enumerate(items):
        slots.bind_slot(m, (pair.refs[0], f"[{position}]"), item, site)
    return pair


def _text_of(m: Machine, source: Value) -> str:
    return naming.key_text(m, source.root) if isinstance(source.root, str) else _object_text(m, source)


def _object_text(m: Machine, source: Value) -> str:
    return m.state.object(source.refs[0]).text if source.refs else "..."
