"""Builtins, `itertools` and `collections`: functions of Python with a meaning of their own."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads
from torchcopylint.flow.events import default_entries
from torchcopylint.flow.events.iteration import iterate
from torchcopylint.flow.interprocedural import attributes, class_bodies, partials
from torchcopylint.flow.library import containers
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    CONTAINERS,
    EMPTY,
    LISTS,
    LOCAL,
    TENSORS,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import generators, wholes
from torchcopylint.flow.references import FunctionReference, Super
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import EACH, SPECIAL, Handler, receiver_text, special
from torchcopylint.flow.storages import aliasing, collecting, collectives, reading, repeating, slots
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of

PROGRESS = (
    *(
        f"tqdm.{name}"
        for name in ("tqdm", "auto.tqdm", "notebook.tqdm", "autonotebook.tqdm", "tqdm_notebook", "std.tqdm")
    ),
    *("tqdm.rich.tqdm", "rich.progress.track", "fastprogress.progress_bar", "alive_progress.alive_it"),
)
"""Functions that show how far a loop has come, and hand out what they are given."""


@special("builtins.isinstance", "builtins.hasattr", "builtins.callable", "builtins.issubclass", "builtins.id")
def _metadata(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.NUMBER)


@special("builtins.len", "torch.is_tensor", "torch.numel")
def _length(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.NUMBER)


@special("builtins.type")
def _type(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return class_bodies.of_instance(m, arguments.at(0)) if len(arguments.positional) == 1 else Value(kind=Kind.OTHER)


@special("builtins.int", "builtins.float", "builtins.bool", "builtins.round", "builtins.abs", "builtins.hash")
def _number(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
    if name in ("abs", "round") and arguments.positional and kind_of(arguments.positional[0], m.state) in BUFFERS:
        obj = m.state.object(arguments.positional[0].refs[0])
        return memory.fresh(m, event.site, grads.result_of(m, Object(obj.kind, obj.sure), arguments.positional, True))
    return Value(kind=Kind.NUMBER)


@special("builtins.slice")
def _slice(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.OTHER)


@special("builtins.str", "builtins.repr", "builtins.format")
def _string(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
    return Value(kind=Kind.STRING)


@special("builtins.range")
def _range(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for bound in arguments.positional:
        memory.refine(m, bound, Kind.NUMBER, Sure.LIKELY)
    return containers.iterator(m, event.site, Value(kind=Kind.NUMBER))


@special("typing.cast", "typing_extensions.cast")
def _cast(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return arguments.at(1)


@special("builtins.enumerate", "builtins.reversed", *PROGRESS)
def _enumerate(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    if name.rpartition(".")[2] == "enumerate":
        generators.note_taken(m, arguments.at(0), event.site)
        return containers.lazily(m, event.site, containers.NUMBERED, arguments.at(0))
    return arguments.at(0)


@special("builtins.zip", "itertools.product")
def _zip(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for source in arguments.positional:
        generators.note_taken(m, source, event.site)
    aliasing.note_zip(m, arguments.positional, event.site)
    return containers.lazily(m, event.site, containers.ZIP, *arguments.positional)


@special("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.iter", "builtins.set")
def _list(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    kind = {"tuple": Kind.TUPLE, "set": Kind.SET, "iter": Kind.ITERATOR}.get(name, Kind.LIST)
    if not arguments.positional:
        return memory.fresh(m, event.site, Object(kind, Sure.PROVEN, text="...", flags=frozenset({EMPTY})))
    source = arguments.positional[0]
    if len(source.refs) == 1 and name != "sorted" and _is_sequence(m, source.refs[0]):
        made = memory.fresh(m, event.site, Object(kind, Sure.PROVEN, text="..."))
        _copy_in_order(m, source.refs[0], made.refs[0], event.site)
        return made
    generators.note_taken(m, source, event.site)
    item = iterate(m, source, event.site, receiver_text(m, event))
    made = containers.iterator(m, event.site, item, "list", kind)
    wholes.note_taken(m, [source], made)
    return made


@special("random.sample", "random.choices")
def _drawn(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """Some of what a sequence holds, in a list of their own."""
    item = iterate(m, arguments.first("population"), event.site, receiver_text(m, event))
    return containers.iterator(m, event.site, item, "list", Kind.LIST)


def _is_sequence(m: Machine, ref: int) -> bool:
    """Whether something has its elements in places. What views of one tensor an operation has made (`x.split(2)`) are
    made of that tensor when somebody takes them out, as its rows are."""
    obj = m.state.object(ref)
    return obj.kind in (Kind.LIST, Kind.TUPLE) and (not obj.shares or bool(m.state.slot_names(ref)))


def _copy_in_order(m: Machine, source: int, target: int, site: int) -> None:
    for slot in m.state.slot_names(source):
        cell = m.state.cell(slot)
        if cell is not None:
            held = Value(cell.refs, cell.kind, cell.const, cell.marks)
            slots.bind_slot(m, (target, slot[1]), held, site, weak=slot[1] == ANY_ELEMENT)


@special("itertools.chain")
def _chain(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    given = [value for value in arguments.positional if not _is_empty(m, value)]
    items = [iterate(m, value, event.site, "...", str(i)) for i, value in enumerate(given)]
    made = containers.iterator(m, event.site, _alike(m, items) or slots.join_values(items))
    if any(ref | 1 in m.owners.wholes for value in arguments.positional for ref in value.refs):
        generators.note_made(m, made, event.site)
    wholes.note_taken(m, arguments.positional, made)
    return made


def _is_empty(m: Machine, value: Value) -> bool:
    """Whether a value is a list or tuple into which nobody has put anything."""
    objects = [m.state.object(ref) for ref in value.refs]
    made = all(obj.kind in (Kind.LIST, Kind.TUPLE) and obj.owner in ("", LOCAL) for obj in objects)
    return bool(objects) and made and not any(m.state.slot_names(ref) for ref in value.refs)


@special("itertools.chain.from_iterable")
def _chain_of(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    inner = iterate(m, arguments.at(0), event.site, "...", "inner")
    made = containers.iterator(m, event.site, iterate(m, inner, event.site, "...", "item"))
    wholes.note_taken(m, [inner], made)
    return made


def _alike(m: Machine, items: list[Value]) -> Value | None:
    """Parameters of several modules, one after the other, of which as much is known: what holds for one of them holds
    for each."""
    objects = [m.state.object(item.refs[0]) if len(item.refs) == 1 else None for item in items]
    known = {(obj.kind, obj.requires_grad, obj.leaf) if obj is not None else None for obj in objects}
    same = len(items) > 1 and len(known) == 1 and objects[0] is not None and objects[0].kind is Kind.PARAMETER
    return items[0] if same else None


@special("itertools.repeat")
def _repeat(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    use = m.consumer_of(event.out)
    if isinstance(use, t.Call | t.Invoke) and m.dotted_of(use) in _HOLDING and len(arguments.positional) > 1:
        repeating.note_repeated(m, arguments.at(0), event.site, "multiplied", naming.text_of(m, event.out), event.out)
    return containers.iterator(m, event.site, arguments.at(0))


_HOLDING = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "builtins.list"})
"""What keeps all that it is given."""


@special("builtins.filter", "builtins.map")
def _filter(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    if name == "filter":
        source = arguments.at(1)
        if not any(ref | 1 in m.owners.wholes for ref in source.refs):
            return source
        # Some of a module's parameters: no longer every one of them.
        made = containers.iterator(m, event.site, iterate(m, source, event.site, "..."), "filtered")
        generators.note_made(m, made, event.site)
        return made
    return containers.iterator(m, event.site, memory.fresh(m, event.site, Object(text="...", flags=EACH), "mapped"))


@special("builtins.next")
def _next(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return iterate(m, arguments.at(0), event.site, receiver_text(m, event))


@special("builtins.dict", "collections.OrderedDict")
def _dict(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    if len(source.refs) == 1 and m.state.object(source.refs[0]).kind is Kind.STATE_DICT:
        return containers.shallow_copy(m, source, event.site, naming.text_of(m, event.out))
    flags = frozenset() if arguments.positional or arguments.keywords else frozenset({EMPTY})
    made = memory.fresh(m, event.site, Object(Kind.DICT, Sure.PROVEN, text="...", flags=flags))
    for ref in source.refs:
        obj = m.state.object(ref)
        if len(source.refs) == 1 and obj.kind in (Kind.UNKNOWN, Kind.DICT):
            containers.note_copy(m, made.refs[0], ref)
        if obj.kind is Kind.DICT:
            containers.copy_elements(m, ref, made.refs[0], event.site)
        elif obj.kind in (Kind.LIST, Kind.ITERATOR):
            # Pairs of a key and a value, as in `dict(model.named_parameters())`.
            pairs = iterate(m, Value((ref,)), event.site, "...").refs
            for pair in (pair for pair in pairs if m.state.object(pair).kind is Kind.TUPLE):
                held = slots.slot_value(m, (pair, "[1]"))
                slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held._replace(root=None), event.site, weak=True)
    for key, value in arguments.keywords.items():
        if key != "**":
            slots.bind_slot(m, (made.refs[0], f"[{key!r}]"), value, event.site)
    repeating.note_twice(m, arguments.keywords.values(), event.site, event.out)
    return made


@special("types.SimpleNamespace", "argparse.Namespace")
def _namespace(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """An object that has under its names what it is given by them."""
    made = memory.fresh(m, event.site, Object(text=naming.text_of(m, event.out)))
    for key, value in arguments.keywords.items():
        if key != "**":
            slots.bind_slot(m, (made.refs[0], f".{key}"), value, event.site)
    repeating.note_twice(m, arguments.keywords.values(), event.site, event.out)
    return made


@special("queue.Queue", "queue.LifoQueue", "queue.SimpleQueue")
def _queue(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A queue between threads is a list: what is put there is what is taken out."""
    return memory.fresh(m, event.site, Object(Kind.LIST, Sure.PROVEN, type=kinds.OF_THREADS, text="..."))


@special("collections.deque")
def _deque(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return _list(m, arguments, event, "list")


@special("heapq.heappush", "bisect.insort", "bisect.insort_left", "bisect.insort_right")
def _put_in_order(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A list gets one item more, wherever in it."""
    for ref in arguments.at(0).refs:
        if m.state.object(ref).kind is Kind.LIST:
            collecting.put(m, (ref, ANY_ELEMENT), arguments.at(1), event.site, "append")
    return Value(kind=Kind.NONE)


@special("heapq.heappushpop", "heapq.heapreplace")
def _exchange(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A list gets one item more, and gives one back: another one, or the same."""
    _put_in_order(m, arguments, event, name)
    held = arguments.at(0)
    return slots.element(m, held, None, event.site, receiver_text(m, event)) if len(held.refs) == 1 else Value()


@special("collections.defaultdict")
def _defaultdict(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    factory = arguments.at(0).const
    flags = frozenset({LISTS}) if factory == "builtins.list" else frozenset[str]()
    made = memory.fresh(m, event.site, Object(Kind.DICT, Sure.PROVEN, text="...", flags=flags))
    default_entries.note(m, made, arguments.at(0), event.site)
    if isinstance(factory, FunctionReference) and m.world.is_own(factory.unit):
        # `lambda: zeros` hands out the one object that `zeros` is, `lambda: torch.zeros(2)` makes one for each key.
        returned = [held for held in m.world.unit(factory.unit).tape if isinstance(held, t.Return)]
        loaded = [m.world.unit(factory.unit).definitions[held.value] for held in returned if held.value >= 0]
        outer = m.state.cell(loaded[0].name) if len(loaded) == 1 and isinstance(loaded[0], t.Load) else None
        if outer is not None:
            place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
            held = Value(outer.refs, outer.kind)
            repeating.note_repeated(m, held, event.site, "fromkeys", place)
            slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held, event.site)
    return made


@special("builtins.dict.fromkeys", "collections.OrderedDict.fromkeys")
def _fromkeys(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
    repeating.note_repeated(m, arguments.at(1), event.site, "fromkeys", place)
    return containers.iterator(m, event.site, arguments.at(1), "fromkeys", Kind.DICT)


@special("builtins.sum", "builtins.max", "builtins.min")
def _sum(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "argument", name)
    summed = [_of_values(m, value) for value in arguments.positional]
    one = len(arguments.positional) == 1
    if name in ("max", "min") and one and ("key" in arguments.keywords or _holds_tuples(m, arguments.at(0))):
        # The first items decide, or what `key` makes of each.
        return iterate(m, arguments.at(0), event.site, receiver_text(m, event))
    if name == "sum" and len(summed) == 2 and _is_empty(m, summed[1]):
        # `sum(lists, [])`
        inner = iterate(m, summed[0], event.site, "...", "inner")
        return containers.iterator(m, event.site, iterate(m, inner, event.site, "...", "item"), "sum", Kind.LIST)
    inputs = [obj for obj in grads.tensors_in(m, summed) if obj.kind in TENSORS or obj.requires_grad > 0]
    if inputs:
        # Numbers, for all one knows, where the one thing that is summed may be something else than a tensor.
        either = len(summed) == 1 and len({_has_tensors(m, ref) for ref in summed[0].refs}) > 1
        known = all(obj.kind in TENSORS for obj in inputs) and not either
        made = Object(text=f"{name}(...)")
        made = made._replace(kind=Kind.TENSOR, sure=min(obj.sure for obj in inputs)) if known else made
        return memory.fresh(m, event.site, grads.result_of(m, made, summed, True))
    if summed and all(_is_of_numbers(m, value) for value in summed):
        return Value(kind=Kind.NUMBER)
    return memory.unknown(m, event.site, f"{name}(...)")


def _has_tensors(m: Machine, ref: int) -> bool:
    """Whether an object is a tensor, or holds some."""
    return any(obj.kind in TENSORS for obj in grads.tensors_in(m, [Value((ref,))]))


def _is_of_numbers(m: Machine, value: Value) -> bool:
    """Whether a value is a number, or holds nothing but numbers."""
    if not value.refs:
        return value.kind is Kind.NUMBER
    cells = [m.state.cell(slot) for ref in value.refs for slot in m.state.slot_names(ref)]
    held = [cell is not None and cell.kind is Kind.NUMBER and not cell.refs for cell in cells]
    return bool(held) and all(held) and all(m.state.object(ref).kind in CONTAINERS for ref in value.refs)


def _holds_tuples(m: Machine, value: Value) -> bool:
    """Whether a list or tuple is known to hold nothing but tuples."""
    held = [
        m.state.object(one) for ref in value.refs for slot in m.state.slot_names(ref) for one in m.state.refs_of(slot)
    ]
    known = len(value.refs) == 1 and m.state.object(value.refs[0]).kind in (Kind.LIST, Kind.TUPLE)
    return known and bool(held) and all(obj.kind is Kind.TUPLE for obj in held)


def _of_values(m: Machine, value: Value) -> Value:
    """The dictionary whose values an iterator goes through, in its place: `sum(losses.values())`."""
    lazy = len(value.refs) == 1 and m.state.object(value.refs[0]).type == containers.VALUES
    return slots.slot_value(m, (value.refs[0], ".0")) if lazy else value


@special("builtins.super")
def _super(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    if m.unit.owner < 0:
        # A function that is to become a method of a class, whose body it does not stand in.
        return memory.unknown(m, event.site, f"{name}(...)")
    return Value(kind=Kind.OTHER, const=Super(m.unit.owner))


@special("builtins.getattr")
def _getattr(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    base, attribute = arguments.at(0).const, arguments.at(1).const
    if isinstance(attribute, str) and (arguments.at(0).refs or isinstance(base, t.Dotted)):
        return attributes.attribute(m, arguments.at(0), attribute, event.site, receiver_text(m, event))
    if kinds.are_optimizers(base):
        return kinds.ANY_OPTIMIZER
    made = m.consumer_of(event.out)
    if isinstance(made, t.Call) and made.function == event.out and len(event.arguments) > 1:
        keywords = [argument.keyword for argument in made.arguments if argument.keyword]
        if kinds.is_recurrent(base, naming.spelling(m, event.arguments[1].register), keywords):
            return kinds.ANY_RECURRENT
    level = attributes.numbered(m, arguments.at(0), event.site, f"{name}(...)")
    return level or memory.unknown(m, event.site, f"{name}(...)")


@special("builtins.print")
def _print(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
        slots.field_read(m, value.root, event.site, "look", name)
    return Value(kind=Kind.NONE)


def _collective(function: str) -> Handler:
    return lambda m, arguments, event, name: collectives.fill(m, function, arguments, event.site, name)


for _name in collectives.FILLED:
    SPECIAL[_name] = _collective(_name)


@special("functools.partial")
def _partial(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return partials.make(m, arguments, event.site, name)
