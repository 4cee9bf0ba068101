"""The order of dimensions in memory: what transposing does to it, and which views it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ViewImpossible
from torchcopylint.flow.model import CONTAINERS, Kind, Object, Region, Sure, Value
from torchcopylint.flow.values.sites import Arguments, Site

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

Order: TypeAlias = "tuple[int | str, ...]"
"""Which dimension of the memory each one is; or `swap` and two of them, `reverse`, or `?` for some other order."""
_TURNED_ROUND = frozenset({(1, 2, 0), (2, 0, 1)})
"""The channels of one picture come last, or first again."""
_KEEPING_ORDER = frozenset(
    ["clone", "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "long", "int", "bool", "type", "type_as"]
)
FIRST = "the first"
PERMUTED, EXPANDED, COUNT, UNIT = "permuted", "expanded", "dimensions", "one of size one"
UNFOLDED = "cut into windows"
LIKE = "like what is permuted"
TURNED = "a matrix, as a rule, that is transposed"
DENSE = "in the order of its dimensions, without gaps"
MOST_DIMENSIONS = 6
_SWAPPING = frozenset({"transpose", "swapaxes", "swapdims"})
_EXPANDING = frozenset({"expand", "expand_as", "broadcast_to"})
_LAST_TWO = frozenset({"mT", "mH", "adjoint"})
_JOINING = frozenset({"reshape", "ravel", "flatten"})
_SIZED = frozenset({"view", "reshape", "expand"})
_SIZED_MAKERS = frozenset({"empty", "ones", "rand", "randn", "zeros"})
_DENSE_MAKERS = _SIZED_MAKERS | {"arange", "eye", "full", "linspace", "randint", "randperm"}
_STAYING_DENSE = frozenset({"view", "reshape", "flatten", "unflatten", "ravel", "unsqueeze"})
"""What these take from a dense block, they take as a dense block."""
_ELEMENTWISE = frozenset(
    {f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "truediv", "pow")}
    | {"__neg__", "add", "sub", "mul", "div", "pow", "clone", "abs", "exp", "log", "sqrt", "neg"}
    | {"clamp", "relu", "sigmoid", "tanh", "where", "masked_fill", "dropout"}
)
_KEEPING = _ELEMENTWISE | {
    *("interpolate", "upsample", "pad", "cat", "stack", "flip", "roll", "normalize", "batch_norm", "group_norm"),
    *(f"conv{each}" for each in ("1d", "2d", "3d", "_transpose1d", "_transpose2d", "_transpose3d")),
    *(f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)),
    *("gelu", "silu", "mish", "leaky_relu", "prelu", "elu", "hardswish", "softplus", "dropout2d", "square", "round"),
    *("lerp", "addcmul", "maximum", "minimum", "double", "float", "half", "bfloat16", "type"),
}
"""Operations whose result lies in memory as what they are given does: its dimensions may be out of order as well.

Each was run on a picture whose channels come last; `layer_norm`, `linear`, `matmul`, `cumsum` and `softmax` are not of
them.
"""
_FILLED = frozenset({"masked_fill", "dropout"})
_OF_SAME_SHAPE = frozenset(
    {"softmax", "log_softmax", "softmin", "cumsum", "matmul", "bmm", "__matmul__", "scaled_dot_product_attention"}
)
"""Operations whose results have as many dimensions as the tensors that they are given, if those have equally many."""
_REORDERING = frozenset(f"torch.nn.{name}" for name in ("Linear", "LayerNorm", "Bilinear", "Softmax", "Embedding"))


def order_of(name: str, arguments: Arguments) -> Order:
    """The order that an operation gives the dimensions of its first argument; empty if it leaves them as they are."""
    if name in ("t", "H"):
        return (1, 0)  # of a matrix: `t()` leaves what has one dimension as it is, see `permuted`
    if name == "T":
        return ("reverse",)
    if name in _LAST_TWO:
        return ("swap", -2, -1)
    if name in _SWAPPING:
        dimensions = _dimensions(arguments, ("dim0", "dim1"))
        if len(dimensions) != 2:
            return ("?",)
        return ("swap", *dimensions) if dimensions[0] != dimensions[1] else ()
    if name == "permute":
        dimensions = _dimensions(arguments, ())
        known = sorted(dimensions) == list(range(len(dimensions))) and bool(dimensions)
        return () if dimensions == tuple(sorted(dimensions)) and known else dimensions if known else ("?",)
    return ("?",) if name in ("movedim", "moveaxis") else ()


def permuted(made: Object, name: str, arguments: Arguments, source: Object) -> Object:
    """The result of a view, with the order of its dimensions, or that some are repeated.

    What is turned twice may be in order again (`_turned_twice`). `t()` turns nothing round unless two dimensions are
    known.
    """
    if name in _EXPANDING:
        return made._replace(config=(*made.config, (EXPANDED, True)))
    known = dict(source.config)
    order = _spelled_out(order_of(name, arguments), known)
    if name == "unfold":
        return _unfolded(made, arguments, UNFOLDED in known)
    if order and COUNT in known:
        made = made._replace(config=(*made.config, (COUNT, known[COUNT]), *(((UNIT, True),) if UNIT in known else ())))
    if order and PERMUTED in known and (again := _turned_twice(known[PERMUTED], order)):
        return made._replace(config=(*made.config, (PERMUTED, again)))
    if order and (PERMUTED in known or LIKE in known):
        return made._replace(config=(*made.config, (LIKE, True)))
    if not order:
        return made
    if name == "t" and known.get(COUNT) != 2:
        # Whoever transposes something has a matrix, though nothing says so.
        return made._replace(config=(*made.config, (TURNED, True))) if known.get(COUNT) is None else made
    if COUNT not in known and _exchanges_batch(order):
        # Between batch first and sequence first one goes there and back: what came in may be the other way round.
        order = ("?",)
    return made._replace(config=(*made.config, (PERMUTED, order)))


def _spelled_out(order: Order, known: Mapping[str, object]) -> Order:
    """The order of all dimensions, where it is known how many there are and none is said to be of size one."""
    count = known.get(COUNT)
    if not isinstance(count, int) or UNIT in known or not order or order[0] not in ("swap", "reverse"):
        return order
    dimensions = list(range(count))
    if order[0] == "reverse":
        return tuple(reversed(dimensions))
    first, second = (int(place) for place in order[1:])
    if not all(-count <= place < count for place in (first, second)):
        return ("?",)
    dimensions[first], dimensions[second] = dimensions[second], dimensions[first]
    return tuple(dimensions)


def _turned_twice(first: object, then: Order) -> Order:
    """The order of what is turned once more; empty if it may be that of the memory again."""
    if not isinstance(first, tuple) or "?" in (first[0], then[0]) or "reverse" in (first[0], then[0]):
        return ()
    if first[0] != "swap":
        dimensions = list(range(len(first)))
        if then[0] == "swap":
            one, other = (number for number in then[1:] if isinstance(number, int))
            if max(one, other) >= len(first) or min(one, other) < -len(first):
                return ()
            dimensions[one], dimensions[other] = dimensions[other], dimensions[one]
        elif len(then) == len(first):
            dimensions = [number for number in then if isinstance(number, int)]
        else:
            return ()
        turned = tuple(first[number] for number in dimensions)
        return () if turned == tuple(range(len(first))) else turned
    if then[0] != "swap":
        return ()
    # Two exchanges undo one another only if they exchange the same two; counted from the other end, these may be any.
    numbers = [number for number in (*first[1:], *then[1:]) if isinstance(number, int)]
    one_way = all(number < 0 for number in numbers) or all(number >= 0 for number in numbers)
    return ("?",) if one_way and set(first[1:]) != set(then[1:]) else ()


def _unfolded(made: Object, arguments: Arguments, again: bool) -> Object:
    """Windows along a dimension stand last; where another one is cut as well, they lie in between in memory."""
    dimension = (arguments.positional[1:2] or [arguments.keywords.get("dimension", Value())])[0].const
    apart = again and isinstance(dimension, int) and dimension != -1
    return made._replace(config=(*made.config, (UNFOLDED, True), *(((PERMUTED, ("?",)),) if apart else ())))


def _exchanges_batch(order: Order) -> bool:
    """Whether the first two of three or more dimensions are exchanged and nothing else: `x.transpose(0, 1)`."""
    if order[0] == "swap":
        return set(order[1:]) == {0, 1}
    return len(order) > 2 and order[:3] == (1, 0, 2) and order == (1, 0, *range(2, len(order)))


def counted(m: Machine, name: str, arguments: Arguments) -> tuple[tuple[str, object], ...]:
    """What is known of the dimensions of an operation's result: how many there are, if one is of size one, and if they
    may be out of order."""
    dense = ((DENSE, True),) if _is_made_dense(m, name, arguments) else ()
    return (*_counted(m, name, arguments), *dense, *_order_kept(m, name, arguments))


def _order_kept(m: Machine, name: str, arguments: Arguments) -> tuple[tuple[str, object], ...]:
    """The order that a copy or a conversion has from what it was made from: that format is preserved by default."""
    if name not in _KEEPING_ORDER or "memory_format" in arguments.keywords or not arguments.positional:
        return ()
    refs = arguments.positional[0].refs
    orders = {dict(m.state.object(ref).config).get(PERMUTED) for ref in refs}
    order = next(iter(orders)) if len(orders) == 1 else None
    return ((PERMUTED, order),) if order else ()


def _is_made_dense(m: Machine, name: str, arguments: Arguments) -> bool:
    if name in _STAYING_DENSE:
        return bool(arguments.positional) and is_dense(m, arguments.positional[0])
    if name in _ELEMENTWISE:
        given = [*arguments.positional, *arguments.keywords.values()]
        dense = [value for value in given if is_dense(m, value)]
        return bool(dense) and all(is_dense(m, value) or _is_number(value) for value in given)
    return (name == "contiguous" and not asks_for_another(arguments)) or (
        name in _DENSE_MAKERS and "memory_format" not in arguments.keywords
    )


def _is_number(value: Value) -> bool:
    return not value.refs and (value.kind is Kind.NUMBER or isinstance(value.const, int | float))


def is_dense(m: Machine, value: Value) -> bool:
    """Whether a value surely lies in memory in the order of its dimensions, without gaps: any shape is a view of it."""
    return bool(value.refs) and all(DENSE in dict(m.state.object(ref).config) for ref in value.refs)


def _counted(m: Machine, name: str, arguments: Arguments) -> tuple[tuple[str, object], ...]:
    if name in _KEEPING:
        like = ((LIKE, True),) if any(_is_like(m, value) for value in arguments.positional) else ()
        return (*like, *_shape_kept(m, name, arguments)) if name in _ELEMENTWISE else like
    if name in _OF_SAME_SHAPE:
        return _shape_kept(m, name, arguments)
    if name == "unsqueeze" or arguments.flag("keepdim") is True:
        return ((UNIT, True),)
    if name in _SIZED:
        given = arguments.positional[1:]
    elif name in _SIZED_MAKERS:
        given = arguments.positional or [v for k, v in arguments.keywords.items() if k == "size"]
    else:
        return ()
    sizes = _sizes(m, given)
    count = None if sizes is None else len(sizes) or None
    ones = [number for number, size in enumerate(sizes or ()) if size.const == 1]
    unit = ((UNIT, FIRST if ones == [0] else True),) if ones else ()
    return unit if count is None else ((COUNT, count), *unit)


def _shape_kept(m: Machine, name: str, arguments: Arguments) -> tuple[tuple[str, object], ...]:
    """How many dimensions all tensors have that are given, and that one of size one may be among them."""
    given = arguments.positional[:1] if name in _FILLED else arguments.positional
    known = [dict(m.state.object(ref).config) for value in given for ref in value.refs]
    counts = {config.get(COUNT) for config in known}
    count = counts.pop() if len(counts) == 1 else None
    unit = ((UNIT, True),) if any(UNIT in config for config in known) else ()
    return ((COUNT, count), *unit) if isinstance(count, int) and count > 1 else unit


def _is_like(m: Machine, value: Value) -> bool:
    """Whether something may lie in memory with its dimensions out of order."""
    return any({PERMUTED, LIKE} & dict(m.state.object(ref).config).keys() for ref in value.refs)


def keep(m: Machine, module: str, arguments: Arguments, result: Value) -> None:
    """A module of a class has been called: what it returns may have its dimensions out of order where its input has."""
    if module in _REORDERING or not any(_is_like(m, value) for value in arguments.positional):
        return
    given = {ref for value in arguments.positional for ref in value.refs}
    for ref in result.refs:
        obj = m.state.object(ref)
        if ref not in given and not {PERMUTED, LIKE} & dict(obj.config).keys():
            m.state.set_object(ref, obj._replace(config=(*obj.config, (LIKE, True))))


def all_grow(m: Machine, values: Sequence[Value]) -> bool:
    """Whether all tensors that are broadcast together have a dimension of size one, so that each is expanded."""
    return all(value.refs and all(UNIT in dict(m.state.object(r).config) for r in value.refs) for value in values)


def is_permuted(obj: Object) -> bool:
    """Whether an object's dimensions are surely not in the order of its memory, sizes of one aside."""
    return PERMUTED in dict(obj.config)


def asks_for_another(arguments: Arguments) -> bool:
    """Whether a call names an order of the dimensions in memory that is not theirs: `memory_format=channels_last`."""
    named = arguments.keywords.get("memory_format")
    return named is not None and isinstance(named.const, t.Dotted) and "channels_last" in named.const


def has_unit(m: Machine, value: Value) -> bool:
    """Whether a value has a dimension of size one that is not the first: such a one lies in memory in any order."""
    return any(dict(m.state.object(ref).config).get(UNIT, FIRST) != FIRST for ref in value.refs)


def is_strided(obj: Object) -> bool:
    """Whether an object is not contiguous, sizes of one aside."""
    return is_permuted(obj) or not {EXPANDED, TURNED}.isdisjoint(dict(obj.config))


def joins_apart(m: Machine, name: str, arguments: Arguments) -> bool:
    """Whether dimensions would have to be joined of which steps have left out parts: `x[::2, ::2, :].reshape(-1, 32)`.
    Those are a copy, unless one of them has a single element."""
    if name not in _JOINING or not arguments.positional:
        return False
    count = _count(m, arguments.positional[1:]) if name == "reshape" else 1 - len(arguments.positional[1:])
    regions = [share.region for ref in arguments.positional[0].refs for share in m.state.object(ref).shares]
    taken = [region for region in regions if any(part.kind == "stride" for part in region)]
    return count is not None and count > 0 and bool(taken) and all(_pieces(region) > count for region in taken)


def _pieces(region: Region) -> int:
    """How many runs of dimensions are left that lie side by side, at the least."""
    kept = [part for part in region if part.kind in ("all", "slice", "stride")]
    steps = [part.upper for part in kept[:-1] if part.kind == "stride"]
    return 1 + sum(isinstance(step, int) and abs(step) > 1 for step in steps)


def is_spread(m: Machine, name: str, source: Value) -> bool:
    """Whether an operation makes something dense of what torch has not made dense in this unit: who asks for that has
    something sparse, of which it is a copy."""
    return name.endswith(".to_dense") and not all(_is_torchs(m, m.state.object(ref).site) for ref in source.refs)


def _is_torchs(m: Machine, site: int) -> bool:
    made = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    dotted = m.dotted_of(made) if isinstance(made, t.Call | t.Invoke) else ""
    return dotted.startswith("torch.") and "sparse" not in dotted


def note_view(m: Machine, arguments: Arguments, at: Site) -> None:
    """`x.view(...)` of a transposed tensor: whether dimensions would have to be joined that do not lie side by side."""
    if m.blocks.on_purpose or m.blocks.guards:
        # It is tried, and what it raises is caught.
        return
    count = _count(m, arguments.positional[1:])
    objects = [m.state.object(ref) for ref in arguments.positional[0].refs]
    if count is None or not objects:
        return
    known = [dict(obj.config).get(PERMUTED) for obj in objects]
    orders = [order for order in known if isinstance(order, tuple)]
    if len(orders) == len(known) and all(_refuses(order, count) for order in orders):
        obj = min(objects, key=lambda obj: obj.sure)
        # `x.transpose(1, 2).view(-1, n)` goes well for a batch of one, and whoever leaves its size open may have that.
        sizes = _sizes(m, arguments.positional[1:]) or [Value()]
        of_one = sizes[0].const == -1 and not all(_refuses(order, count, True) for order in orders)
        # So does `mask.permute(1, 2, 0).view(-1)` of a mask, or of a picture in grey: nobody writes out another one so.
        grey = count == 1 and all(order in _TURNED_ROUND for order in orders)
        m.fact(ViewImpossible(at.site, at.name, obj.site, Sure.HINT if of_one or grey else obj.sure))


def _dimensions(arguments: Arguments, names: tuple[str, ...]) -> tuple[int, ...]:
    values = arguments.positional[1:] or [arguments.keywords[name] for name in names if name in arguments.keywords]
    found = [value.const for value in values]
    return tuple(d for d in found if isinstance(d, int)) if all(isinstance(d, int) for d in found) else ()


def _count(m: Machine, given: Sequence[Value]) -> int | None:
    """How many dimensions a view is asked to have."""
    sizes = _sizes(m, given)
    return None if sizes is None else len(sizes) or None


def _sizes(m: Machine, given: Sequence[Value]) -> Sequence[Value] | None:
    """The sizes that an operation is given, one by one or in a list; `None` if it is not known how many there are."""
    if len(given) != 1 or given[0].kind is Kind.NUMBER:
        return given
    held = [(ref, m.state.slot_names(ref)) for ref in given[0].refs if m.state.object(ref).kind in CONTAINERS]
    if len(held) != 1 or not held[0][1] or any(name != f"[{i}]" for i, (_, name) in enumerate(held[0][1])):
        return None
    cells = [m.state.cell(slot) for slot in held[0][1]]
    return [Value(const=cell.const if cell is not None else None) for cell in cells]


def _refuses(order: Order, count: int, one: bool = False) -> bool:
    """`one` is whether the first dimension, of size one, may be joined with whatever comes next."""
    return all(_joins_apart(candidate, count, one) for candidate in _candidates(order))


def _candidates(order: Order) -> Iterator[Order]:
    """The orders that are meant, for every number of dimensions that is possible."""
    if order[0] == "reverse":
        for size in range(2, MOST_DIMENSIONS + 1):
            yield tuple(reversed(range(size)))
    elif order[0] == "swap":
        first, second = int(order[1]), int(order[2])
        least = max(first + 1, second + 1, -first, -second, 2)
        for size in range(least, MOST_DIMENSIONS + 1):
            dimensions = list(range(size))
            dimensions[first], dimensions[second] = dimensions[second], dimensions[first]
            yield tuple(dimensions)
    else:
        yield order


def _joins_apart(order: Order, count: int, one: bool) -> bool:
    """Whether every way to join neighbours into `count` dimensions joins some that are not neighbours in memory."""
    if order[0] == "?" or count >= len(order):
        return False
    joints = [a + 1 == b for a, b in pairwise(order) if isinstance(a, int) and isinstance(b, int)]
    joints[0] |= one and order[0] == 0
    ways = combinations(range(len(joints)), len(order) - count)
    return not any(all(joints[place] for place in way) for way in ways)
