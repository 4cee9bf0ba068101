"""What the analysis knows at one point of a program: values, objects, storages, and how two such states join.

A *value* is what a register or a name holds: some abstract objects (`refs`), or a plain constant. An *object* is one
Python object, named by the site that made it; a *storage* is named by the object that first owned it. A `Share` says
that an object sits on a storage, how, since where, and taken from which object, so that every alias can tell its story.

Inside a loop, one site makes many objects. The newest has an even number; all older ones together have the odd number
above it (`older`), so that what this turn made is never mixed up with what earlier turns left behind.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from torchcopylint.base.tuples import replace_quickly, whole


class Kind(Enum):
    """What an object is."""

    # There is one object a member; `Enum` would hash its name, in Python code, tens of thousands of times a file.
    __hash__ = object.__hash__

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    PARAMETER = "parameter"
    ARRAY = "array"
    BYTES = "bytes"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    STATE_DICT = "state dict"
    LIST = "list"
    TUPLE = "tuple"
    DICT = "dict"
    SET = "set"
    ITERATOR = "iterator"
    NUMBER = "number"
    STRING = "string"
    NONE = "none"
    FUNCTION = "function"
    CLASS = "class"
    INSTANCE = "instance"
    IMPORTED = "imported"
    MODE = "grad mode"
    OTHER = "other"


TENSORS = frozenset({Kind.TENSOR, Kind.PARAMETER})
BUFFERS = TENSORS | {Kind.ARRAY, Kind.BYTES}
CONTAINERS = frozenset({Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SET, Kind.ITERATOR, Kind.STATE_DICT})
PARTED = frozenset({Kind.TUPLE, Kind.DICT})
"""Containers in which each place has a meaning of its own, the same in all that are made alike."""


class Sure(IntEnum):
    """How well something is known. `PROVEN`: a constructor or an annotation says so; `LIKELY`: its use says so;
    `HINT`: its name says so."""

    NOT = 0
    HINT = 1
    LIKELY = 2
    PROVEN = 3


class Fact(IntEnum):
    """A three-valued fact, with "yes" in two strengths."""

    NO = -1
    UNKNOWN = 0
    LIKELY = 1
    YES = 2


def join_facts(a: Fact, b: Fact) -> Fact:
    """What is known where two paths meet."""
    if a == b:
        return a
    return Fact.LIKELY if a > 0 and b > 0 else Fact.UNKNOWN


class How(Enum):
    """How an object came to sit on a storage that another object sits on as well."""

    __hash__ = object.__hash__

    OWN = "own"
    VIEW = "view"
    INDEX = "index"
    ROW = "row"
    DETACH = "detach"
    DATA = "data"
    NUMPY = "numpy"
    FROM_NUMPY = "from_numpy"
    COPY = "copy"
    CONDITIONAL = "conditional"
    STATE = "state"
    PARAMETERS = "parameters"
    PARAMETER = "parameter"
    ASSIGNED = "assigned"
    FIELD = "field"


UNVERSIONED = frozenset({How.DATA, How.NUMPY, How.FROM_NUMPY, How.COPY, How.ASSIGNED})
"""Aliases through which a write goes unnoticed by autograd: the version counter is not shared."""


class Bound(Enum):
    """A bound of a slice that is neither a number nor made of names and numbers: it equals no other, nor itself."""

    UNTOLD = "..."


class Part(NamedTuple):
    """One step into a storage: `kind` is `int`, `slice`, `stride`, `name` (of an index), `field`, `all`, `each`,
    `component` or `?`.

    `each` is one of many in a loop that visits all of them: what holds for one turn holds for every part. A `stride`
    has the bounds of a slice as its value, and its step behind them. A `?` for `...` has the parts that follow it. A
    `component` is the real or the imaginary part of each element.
    """

    kind: str
    value: object = None
    upper: object = None


WHOLE = frozenset({"all", "each"})
Region: TypeAlias = "tuple[Part, ...]"
"""Which part of a storage an object covers; empty for all of it."""


class Share(NamedTuple):
    """An object sits on `storage`: `how`, since `site`, taken from object `of` (itself, for the owner).

    `sure` is false where it holds on some paths only, or depends on `when` (dtype, device, layout, shape, mode).
    """

    storage: int
    how: How
    site: int
    of: int
    region: Region = ()
    when: str = ""
    sure: bool = True

    def is_among(self, others: tuple[Share, ...]) -> bool:
        """Whether one of these surely sits on the same part of a storage, or on another of the parts that a loop visits
        one by one."""
        return any(
            other.sure and other.storage == self.storage and are_alike(other.region, self.region) for other in others
        )


def are_alike(one: Region, two: Region) -> bool:
    """Whether two parts are one, or two of those that a loop visits one by one."""
    return one == two or (
        len(one) == len(two) and [_any_turn(part) for part in one] == [_any_turn(part) for part in two]
    )


def _any_turn(part: Part) -> Part:
    return part._replace(value=older(part.value)) if part.kind == "each" and isinstance(part.value, int) else part


class Object(NamedTuple):
    """What is known of one object. Storage facts (`blank`, `saved`) are those of the storage it owns."""

    kind: Kind = Kind.UNKNOWN
    sure: Sure = Sure.NOT
    shares: tuple[Share, ...] = ()
    leaf: Fact = Fact.UNKNOWN
    requires_grad: Fact = Fact.UNKNOWN
    graph: frozenset[int] = frozenset()
    scalar: Fact = Fact.UNKNOWN
    dtype: str = ""
    type: str = ""
    config: tuple[tuple[str, object], ...] = ()
    text: str = ""
    site: int = -1
    owner: str = ""
    flags: frozenset[str] = frozenset()
    saved: frozenset[int] = frozenset()


UNKNOWN_OBJECT = Object()

NAMELESS = "..."
"""The text of an object that has no name of its own (yet)."""

# Owners: who else can see an object that is not made here.
LOCAL = "local"
ARGUMENT = "argument"
FIELD = "field"
GLOBAL = "global"
MEMO = "memo"

# Flags of objects.
BLANK = "blank"
"""Allocated to be filled: `torch.empty`, `np.zeros`."""
EITHER = "array or tensor"
"""An array as far as anybody can see, and maybe a tensor: it has dimensions, where a file deals in both."""
OUTPUT = "module output"
PART = "part of a module output"
"""One of several things that a module returns, of which some are losses and others numbers for the log."""
HANDED = "handed to a forward hook"
"""What a layer computes, called by whomever, with recording on or off."""
RETAINS = "retains grad"
REGISTERED = "a buffer of a module"
LISTS = "lists"
"""A dictionary that begins with an empty list wherever nothing is: `defaultdict(list)`."""
EMPTY = "begins empty"
"""A list or dictionary that was written as an empty one."""
PARTS = "parts"
"""A tuple whose elements are parts of one tensor: `x.chunk(2)`."""
CUSTOM_VIEW = "view returned by a custom Function"
WRITES_INPUT = "starts with an activation in place"
HOOKED = "has a full backward hook"
COMPUTES = "computes a weight"
"""A module that keeps in a field what it computes of its parameters, with its graph."""
COMPUTES_ANEW = "computes a weight at each look"
"""A module of which a field is computed of its parameters whenever somebody asks for it (`parametrize`)."""
COMPUTED_AT = "computed since"
"""Where a module was told to compute a weight of its own: of the module, and of that weight."""
EXPANDED = "expanded"
"""Repeats one memory along a dimension: `x.expand(4, -1)`."""
WINDOWS = "windows that overlap"
"""Comes upon one element several times: `x.unfold(0, 4, 1)`."""
NO_GRAD_VIEW = "view made without grad"
KEPT = "backward keeps it"
"""What a function returned, as its last operation computed it: backward needs that result as it is."""
SPENT = "backward has run over it"
INFERENCE = "inference tensor"
BY_OTHERS = "by a network from elsewhere"
"""What a function returned that only networks have computed of which its file does not know what they are."""
FROZEN = "frozen"
SWITCHED = "parameters switched off"
"""A loop over its parameters has switched off what they require: of some or of all, nobody knows."""
STEPS = "steps"
PICKED = "picked"
"""A part of something, as a function has been asked for it: `self.rows[i]`, for whatever `i` it is called with."""
INDEX_COPY = "index copy"
"""What an advanced index copied."""
INDEX_COPY_LIKELY = "likely index copy"
"""The same, unless the index is a number in a tensor, which takes a view."""
REPEATS = "repeats"
"""Integers among which some surely come more than once: random ones, or a literal."""
REPEATS_LIKELY = "likely repeats"
"""The same, for what usually does: the classes of a batch."""
DIMENSIONS = "has dimensions"
"""Surely not a single number in a tensor."""
ITSELF = "may be a parameter itself"
"""What a function returned: a conversion of a parameter that it made, and the parameter where there was nothing to
convert."""
MIXED = "with a graph or without"
"""What a function returned: on some paths something computed with gradients, on others what surely has none."""
PERHAPS_CUT = "with a graph if it is asked for"
"""What a function returned that has computed gradients: `grad(y, x, create_graph=asked)`."""
SECOND_ORDER = "gradient with a graph"
"""What `grad(y, x, create_graph=True)` has returned: the operations that made it have saved something for backward."""
OPTIMIZER_STATE = "optimizer state"
PLACEHOLDER = "placeholder"
"""Stands for any element of a container that nobody has looked into: every look finds another one."""

ADVANCED = "advanced index"
"""Taken by a mask or by numbers: a copy."""
PINNED = "pinned"
"""Memory of the host that a device can fill by itself: `pin_memory=True`."""
NDARRAY = "an array"
"""Not one of NumPy's numbers, which have all methods of an array."""
LONE = "a number or an array"
"""What NumPy has computed of what nobody knows: if that is a number, so is this."""
TESTED = "tested"
"""A test has just said what it is."""
NO_TENSOR = "no tensor here"
"""A test has just said that it is no tensor, whatever else says that it is one."""
FOREIGN = "of another framework"
"""Another framework has made it: its methods say nothing of torch."""
_BY_ITSELF = ("sqrt", "rsqrt", "exp", "log", "log1p", "log2", "log10", "neg", "negative", "sigmoid", "square")
_BY_ANOTHER = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow", "cumsum", "cumprod")
ARITHMETIC = frozenset(f"{name}_" for name in (*_BY_ITSELF, "reciprocal", *_BY_ANOTHER))
"""What done twice gives something else again. To clamp, to round or to fill a state is to keep it in order."""
CROSSWISE = "crosswise"
"""The target of what is stored where the same statement has overwritten it before, by the name it was taken under."""
LISTED = "in a list"
"""It stands in what is surely a list, and so is there again at the next look."""
FETCHING = "fetches"
"""What is asked of it by a key is read from a file then, and belongs to who asked: an `h5py.File`."""
ARCHIVE = "may be an archive"
"""The same, if it is asked by a name: `numpy.load` of several arrays."""
GRADLESS = "no grad here"
"""A test has just said that it requires no grad, whatever else says that it does."""
GRADED = "has a gradient here"
"""A test has just said that its `.grad` is not `None`."""
OTHERWISE = "used otherwise"
"""Its name is used with attributes or methods that no tensor has, whatever its `.data` may be."""
PASSED = "what is passed"
"""Evidence for a kind: what the calls in the file pass is of that kind by its use."""
SURELY_PASSED = "what is surely passed"
"""The same, where it is proven to be of that kind; also a flag of what a call passes."""
REVERSED = "reversed"
"""An array with a negative stride where what it was taken from has none: `a[::-1]`, `np.flip(a)`."""
DETACHED = "detached in place"
"""`detach_()` has cut it."""
OF_STATISTICS = "statistics"
"""What stands in a state dict under the name of running statistics: `state["bn.running_mean"]`."""
READ_ONLY = "read-only"
"""An array that is made to be read only: `np.broadcast_to(a, shape)`."""
SEALED = "sealed"
"""An array that has been made read-only since: `a.setflags(write=False)`."""


class Mark(NamedTuple):
    """A holder's memory was written at site `write`, through itself (`own`) or through another holder.

    `late` is for what was derived from such a holder after the write: it is no keepsake from before.
    """

    write: int
    own: bool
    late: bool = False


class Value(NamedTuple):
    """What a register holds. `root` is the place it was loaded through in this expression, if any.

    `plain` is whether it may, on another path, be a number or a text as well as one of its objects.
    """

    refs: tuple[int, ...] = ()
    kind: Kind = Kind.UNKNOWN
    const: object = None
    marks: frozenset[Mark] = frozenset()
    root: Key | None = None
    plain: bool = False


class Cell(NamedTuple):
    """What a name, a field or an element holds, and where it was bound.

    `origin` is the place that an element was put in from: an element of a container without a name of its own is that.
    """

    refs: tuple[int, ...] = ()
    kind: Kind = Kind.UNKNOWN
    const: object = None
    marks: frozenset[Mark] = frozenset()
    site: int = -1
    origin: Key | None = None
    plain: bool = False


Slot: TypeAlias = "tuple[int, str]"
"""A field or element of an object: `.weight`, `['w']`, `[*]` for elements that are not told apart."""
Key: TypeAlias = "str | int | Slot"
"""What a state maps: a name, an object's number, a slot; `@mode` and other `@` names are the state's own."""

UNKNOWN = Value()
NO_MARKS: frozenset[Mark] = frozenset()
ASKED = "[="
"""Begins the slot of what a method hands out of a container under a key, if its arguments alone tell which that is."""
BY_NAME = "[~"
"""Begins the same, where a name of the unit that has called it tells."""
ANY_ELEMENT = "[*]"
LAZY_FORMS = ("zip", "numbered", "named", "values")
"""Forms of lazy iterators: tuples of an item of each source, with a number or a name before them; a dict's values."""
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
"""The symbols of operators whose result, for tensors, is a mask."""
GENERATOR = "generator"
"""The type of what a call of a generator gives that hands out one thing."""
PARTIAL, PARTIAL_OF = "functools.partial", ".func"
"""The type of an object that `functools.partial` has made, and its slot for what that calls."""
MAX_REFS = 8
MAX_SHARES = 24
MAX_MARKS = 12
MAX_TURNS = 12
"""After so many turns a loop's head that still changes becomes unknown. Two or three are usual."""


def older(ref: int) -> int:
    """The object that stands for everything a site made before the newest."""
    return ref | 1


def join_kinds(a: Kind, b: Kind) -> Kind:
    """What is known of the kind where two paths meet; `None` on one path says nothing about the other."""
    if a == b or b is Kind.NONE:
        return a
    if a is Kind.NONE:
        return b
    if a in TENSORS and b in TENSORS:
        return Kind.TENSOR
    return Kind.UNKNOWN


EARLIER = 1 << 60
"""The bit that tells the number of what a loop's earlier turns have saved from that of what the same site saves in this
one; no site's number comes near it."""


def join_graphs(a: frozenset[int], b: frozenset[int]) -> frozenset[int]:
    """What backward may need on either path. What it has run over (see `runs`) it must have run over on both: an object
    of an earlier turn, which one path leaves alone, is not the one that the other path makes anew."""
    joined = a | b
    if a == b or not joined or min(joined) >= 0 or (_has_run(a) and _has_run(b)):
        return joined
    both = min(a, default=0) < 0 and min(b, default=0) < 0
    return frozenset(number for number in joined if number >= 0 or (both and -number % 5 not in _RUNS))


_RUNS = (1, 2)
"""Of the negative numbers of a graph, those that say that backward has run; see `runs`."""


def _has_run(graph: frozenset[int]) -> bool:
    return any(number < 0 and -number % 5 in _RUNS for number in graph)


ANY_RECURRENT = "torch.nn.RNNBase"
"""What a recurrent layer is of which nobody knows which it is."""
RECURRENT = frozenset({ANY_RECURRENT, "torch.nn.RNN", "torch.nn.GRU", "torch.nn.LSTM"})


IDENTITY = "torch.nn.Identity"
"""The layer that hands on what it is given, as an empty chain does, too."""
IDENTITY_OR_OTHER = "torch.nn.Identity or another module"
"""What a module is that is an identity on some path, and something else on another one."""
IF_IDENTITY = "when the layer is an identity"
"""On what it depends whether such a module returns what it was given."""


ONE_OF = "one of"
"""In what a function returns: the classes of which its module is one, by their types."""


def _join_types(a: str, b: str) -> str:
    if a in RECURRENT and b in RECURRENT:
        return ANY_RECURRENT
    return IDENTITY_OR_OTHER if {a, b} & {IDENTITY, IDENTITY_OR_OTHER} else ""


def join_objects(a: Object, b: Object) -> Object:
    """One object on two paths."""
    if a == b:
        return a
    kind = join_kinds(a.kind, b.kind)
    return whole_object(
        (
            kind,
            min(a.sure, b.sure) if kind is not Kind.UNKNOWN else Sure.NOT,
            join_shares(a.shares, b.shares),
            join_facts(a.leaf, b.leaf),
            join_facts(a.requires_grad, b.requires_grad),
            join_graphs(a.graph, b.graph),
            join_facts(a.scalar, b.scalar),
            a.dtype if a.dtype == b.dtype else "",
            a.type if a.type == b.type else _join_types(a.type, b.type) if kind is Kind.MODULE else "",
            a.config if a.config == b.config else tuple(one for one in a.config if one in b.config),
            a.text,
            a.site,
            a.owner if a.owner == b.owner else "",
            a.flags & b.flags | (a.flags | b.flags) & {RETAINS},
            a.saved | b.saved,
        )
    )


def join_shares(a: tuple[Share, ...], b: tuple[Share, ...]) -> tuple[Share, ...]:
    """The storages that an object may sit on; those of one path only are not sure."""
    if a == b:
        return a
    both = set(a) & set(b)
    if len(both) < len(a) or len(both) < len(b):
        both |= {share for share in a if share.is_among(b)} | {share for share in b if share.is_among(a)}
    joined = {share if share in both else share._replace(sure=False) for share in {*a, *b}}
    return bounded(tuple(sorted(joined, key=_share_order)))


def bounded(shares: tuple[Share, ...]) -> tuple[Share, ...]:
    """Shares of which there are too many, as parts of parts by way of every arm of many conditions: of each storage,
    some part that nobody knows."""
    if len(shares) <= MAX_SHARES:
        return shares
    first = {(share.storage, share.when): share for share in reversed(shares)}
    return tuple(share._replace(region=(Part("?"),), sure=False) for share in reversed(first.values()))


def _share_order(share: Share) -> tuple[int, str, int, int, str, bool]:
    return (share.storage, share.how.value, share.site, share.of, repr(share.region), share.sure)


for _class in (Share, Object, Value, Cell):
    replace_quickly(_class)

whole_share, whole_object, whole_value, whole_cell = whole(Share), whole(Object), whole(Value), whole(Cell)
