"""What the analysis found out about one unit: relations, each a named tuple that reads as a sentence.

Rules see these and nothing else. Sites are ordinals of the program's table of sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from torchcopylint.flow.model import Fact, How, Kind, Region, Sure


class Link(NamedTuple):
    """Since `site`, `result` sits on the memory of `source`: `how`, and `when` if that depends on something."""

    how: How | None
    site: int
    source: str
    result: str
    when: str = ""
    sure: bool = True


class Write(NamedTuple):
    """At `site`, memory was written through `name`, by `op`.

    `form` is `method`, `augmented`, `item`, `out`, `call`, `activation` (told to by `inplace=True`), `statistics` (what
    an operation writes beside its result, unseen by autograd), `step` or `load`; of an activation, `result` is what its
    result is bound to (empty: dropped, `...`: used on) at `used`. `root` is the name or slot that the expression
    started from, `derived` whether it went on from there (`x[0].zero_()`, not `x.zero_()`). `chain` leads from what was
    written to the owner of the memory. `owner` says who else can see that memory: an empty text for nobody. `named` is
    whether a name was bound to an alias on the way there, so that it is not all one expression. `reads_old` is whether
    the old content mattered. `recording` is grad mode. `copied` says how sure it is that what was written is the copy
    that an advanced index made, and that no other holder has it; `dropped` whether the value of the writing call is
    thrown away. `bound` is the site where the root was bound, or -1. `held` is the element of a field that the root was
    taken out of, if it was.
    """

    site: int
    name: str
    op: str
    form: str
    root: str
    derived: bool
    chain: tuple[Link, ...]
    owner: str
    owner_name: str
    reads_old: bool
    partial: bool
    versioned: bool
    recording: Fact
    blank: bool
    named: bool
    sure: Sure
    kind: Kind
    storages: tuple[int, ...]
    cause: str = ""
    copied: Sure = Sure.NOT
    dropped: bool = False
    bound: int = -1
    result: str = ""
    used: int = -1
    held: str = ""


class ReadAfter(NamedTuple):
    """At `site`, `name` was read after `write` had changed its memory.

    `own` is whether it was written through that very name. Otherwise `below_written` and `below_read` lead from the
    nearest common object down to what was written and to what is read; two names of one object have one link between
    them, without a `how`, in `below_read`. `consumer` says what reads: `operand`, `look` (an operation that keeps no
    graph), `argument`, `return`, `store`, `swap` (stored into the very memory it is a view of), `text`, `test`,
    `yield`, `load_state_dict`, by `target`. `element` is whether `name` is an element of a container. `certain` is
    whether the two surely share what was written, `conditional` whether they do so where a conversion on the way had
    nothing to convert, `partly` whether they do on one of the paths on which `name` got what it holds.
    `place` is the storage that was written and the part of it that is read, `bound` the site where `name` was bound, or
    -1.
    """

    write: int
    name: str
    own: bool
    site: int
    consumer: str
    target: str
    below_written: tuple[Link, ...]
    below_read: tuple[Link, ...]
    element: bool
    certain: bool
    sure: Sure
    kind: Kind
    flags: frozenset[str]
    conditional: bool = False
    place: tuple[int, Region] = (-1, ())
    bound: int = -1
    partly: bool = False

    @property
    def links(self) -> tuple[Link, ...]:
        """How the two came to share, in the order of the program."""
        return tuple(sorted({*self.below_written, *self.below_read}, key=lambda link: link.site))

    @property
    def hows(self) -> frozenset[How | None]:
        """The ways in which the two came to share."""
        return frozenset(link.how for link in self.links)


class Saved(NamedTuple):
    """At `site`, the operation `op` kept `name` for backward: its `what` (`input`, `output`, `other`)."""

    site: int
    op: str
    what: str
    name: str


class Clobbered(NamedTuple):
    """A saved value was changed by `write`, and at `site` (`consumer`: `backward`, `return`) backward still needs it.

    `links` lead from what was saved to the name that was written through. `certain` is whether the write surely meets
    what was saved: not one of several objects, not an alias on a condition, not an optimizer that nobody knows.
    """

    saved: Saved
    write: int
    site: int
    consumer: str
    links: tuple[Link, ...]
    sure: Sure
    certain: bool = True


class DataAccess(NamedTuple):
    """At `site`, `.data` of `name` is used: `form` is `read`, `method`, `augmented`, `item` or `assign`, `op` how.

    `op` is `[0]` for a read that goes on so. `gradient` is whether `name` is a `.grad`, `scalar` whether it has no
    dimensions, `context` the idiom that it stands in (see `idioms`).
    """

    site: int
    name: str
    form: str
    op: str
    gradient: bool
    scalar: Fact
    kind: Kind
    sure: Sure
    context: str
    named_loss: bool


class DataShared(NamedTuple):
    """At `site`, `target` was put on the storage of `source`, which lives on. `form`: `assign`, `parameter`, `call`.

    `context` is the idiom that it stands in (see `idioms`). `handed` is whether it is a part of what the unit makes and
    returns, while the source belongs to the caller: a conversion of one module into another.
    """

    site: int
    target: str
    source: str
    form: str
    sure: Sure
    first: int = -1
    context: str = ""
    handed: bool = False


class LeafWritten(NamedTuple):
    """At `site`, a leaf that requires grad (or, with `view`, a view of it) is written while autograd records.

    `made` is the site where it came to require grad, or -1. `assumed` is whether grad mode was only assumed to be on,
    `local` whether the leaf was made in this unit, or belongs to a module that was. `asked` is whether its gradient has
    been asked for.
    """

    site: int
    name: str
    leaf: str
    op: str
    view: bool
    out: bool
    made: int
    viewed: int
    assumed: bool
    local: bool
    sure: Sure
    asked: bool = False


class DetachedInPlace(NamedTuple):
    """At `site`, `name.detach_()` cuts the object itself. `consumer` is what happens to the result: `statement`,
    `bound`, `same`, `argument`, `return` ... `view` is the site where `name` became a view, or -1."""

    site: int
    name: str
    result: str
    consumer: str
    view: int
    base: str
    held: bool
    sure: Sure


class ReadAfterCut(NamedTuple):
    """At `site`, `name` is used by `consumer` (see `ReadAfter`) after `detach_()` at `cut` removed its history.

    `own` is whether it was cut through that very name; otherwise `links` say how the two names came to be one object.
    """

    cut: int
    name: str
    own: bool
    site: int
    consumer: str
    links: tuple[Link, ...]


class GradientRead(NamedTuple):
    """At `site`, `.grad` of `name` is read, which is not a leaf and retains no grad; made at `made` by `op`."""

    site: int
    name: str
    made: int
    op: str
    sure: Sure


class Discarded(NamedTuple):
    """At `site`, the result of the out-of-place operation `op` on `name` is dropped."""

    site: int
    name: str
    op: str
    method: bool
    guarded: bool
    sure: Sure


class GradModeUnused(NamedTuple):
    """At `site`, `name` is built and dropped (`statement`) or entered without being called (`with`)."""

    site: int
    name: str
    form: str


class AttributeSet(NamedTuple):
    """At `site`, the attribute `attribute` of `name` is set, which does not do what it seems to do."""

    site: int
    name: str
    attribute: str
    value: str
    kind: Kind
    sure: Sure


class Repeated(NamedTuple):
    """At `site`, one object (`name`, made at `made`, on `storages`) is put into a container several times over.

    `chosen` is whether that is one of two ways to fill the container, under a test.
    """

    site: int
    name: str
    made: int
    kind: Kind
    stateful: bool
    form: str
    container: str
    sure: Sure
    storages: frozenset[int] = frozenset()
    chosen: bool = False


class Kept(NamedTuple):
    """When `method` ends, `field` of `self`, set at `site`, shares memory with `source`, which lives on elsewhere.

    `how`, since `shared`; `shallow` if it is a new container of the same tensors, or an element that was put into one.
    `storages` are those of what is shared; `whole` is whether `source` is a module. `sources` are the names that other
    methods may have for it: fields that hold it, or its own, if it is handed in.
    """

    field: str
    site: int
    shared: int
    how: How
    source: str
    shallow: bool
    sure: Sure
    method: str
    storages: frozenset[int] = frozenset()
    whole: bool = False
    sources: frozenset[str] = frozenset()


class FieldRead(NamedTuple):
    """At `site`, `field` of `self` is read by `consumer` in `method`, as it was when the method began."""

    field: str
    site: int
    consumer: str
    method: str
    target: str


class FieldMet(NamedTuple):
    """At `site`, in `method`, what `field` of `self` has held since before meets the parameters of the module `source`.

    `form` is `operand` (`op` takes both), `restored` (it is put into a parameter) or `loaded` (as a state dict).
    """

    site: int
    field: str
    method: str
    form: str
    source: str
    op: str


class Known(NamedTuple):
    """One object that a name may hold. `memory` has, for each storage that it sits on, the name of the owner (empty for
    the object's own) and what it depends on whether it does (empty if nothing)."""

    kind: Kind
    sure: Sure
    type: str
    leaf: Fact
    requires_grad: Fact
    scalar: Fact
    dtype: str
    memory: tuple[tuple[str, str], ...]


class Sharer(NamedTuple):
    """`name` sits on memory of the one asked about; `links` say how and since when, `overlap` whether their parts
    overlap."""

    name: str
    links: tuple[Link, ...]
    overlap: Fact
    sure: bool


class Revealed(NamedTuple):
    """At `site`, somebody asks about `name`: `objects` are what it may hold, `plain` the constant or other thing
    without memory that it holds. `reached` is whether the place is, `bound` whether there is such a name there.

    `writes` are the sites of the writes since which it has not been bound anew.
    """

    site: int
    name: str
    reached: bool = False
    bound: bool = False
    plain: str = ""
    objects: tuple[Known, ...] = ()
    sharers: tuple[Sharer, ...] = ()
    writes: tuple[int, ...] = ()
    recording: Fact = Fact.UNKNOWN
    assumed: bool = False
    inference: Fact = Fact.UNKNOWN


class ParameterRebound(NamedTuple):
    """At `bound`, `name` was bound to a new tensor, and at `site` that is seen to be a mistake.

    `form` is `loop` (the variable of a loop, over `source` if that is known; nobody looks at the new tensor) or
    `gradient` (`.grad` is read of the new tensor, which is computed from the leaf that had the name before).
    """

    site: int
    name: str
    form: str
    source: str
    bound: int
    sure: Sure


class NonleafKept(NamedTuple):
    """At `site`, `name`, which requires grad and is computed (at `made`), is kept as if it were a parameter.

    It is given to the optimizer that `optimizer` calls, or set as a field of a module, computed from `source`, a leaf
    that nobody else has. `when` is the condition under which nothing is computed.
    """

    site: int
    name: str
    made: int
    source: str
    when: str
    optimizer: str
    sure: Sure


class OptimizerStale(NamedTuple):
    """At `stored`, `name` was set, a part of what an optimizer in use had been built over at `built`.

    `optimizer` is the use at `site`, such as `optimizer.step()`; an empty text if it is returned, or, where `site` is
    `stored`, kept in a field. `loaded` is whether `name` is a whole module, whose parameters were exchanged by loading.
    """

    site: int
    name: str
    stored: int
    built: int
    optimizer: str
    sure: Sure
    loaded: bool = False


class MappedWrite(NamedTuple):
    """At `site`, in a function that is given to `vmap`, `op` writes into `name`, which is not mapped, what is computed
    from the mapped parameter `source`."""

    site: int
    name: str
    op: str
    source: str
    sure: Sure


class LoadedByAssignment(NamedTuple):
    """At `site`, the module `name` takes over the tensors of `source`, a module that lives on; taken at `taken`."""

    site: int
    name: str
    source: str
    taken: int
    sure: Sure


class ParameterTwice(NamedTuple):
    """At `site`, an optimizer is given `name`, whose parameters are among those of `source` (`across` two groups)."""

    site: int
    name: str
    source: str
    across: bool
    sure: Sure


class StateItemLost(NamedTuple):
    """At `site`, an item of `name` is set, the state dict of `source` taken at `taken`, which nobody reads (`held`: it
    has a name)."""

    site: int
    name: str
    source: str
    taken: int
    held: bool
    sure: Sure


class ParameterOverwritten(NamedTuple):
    """At `site`, `name`, a registered parameter, is set to `source`, a plain tensor unless `when`."""

    site: int
    name: str
    source: str
    when: str
    sure: Sure


class RequiresGradRefused(NamedTuple):
    """At `site`, `requires_grad` of `name` is switched, which torch refuses.

    `form` is `nonleaf` (computed at `made`) or `integer` (its dtype is `dtype`).
    """

    site: int
    name: str
    form: str
    made: int
    dtype: str
    sure: Sure


class GeneratorReused(NamedTuple):
    """At `site`, `name` is gone through, a generator of parameters made at `made` and gone through at `first` before.

    Where it is not `local`, `name` is a field, and both happened in `__init__`.
    """

    site: int
    name: str
    made: int
    first: int
    local: bool


class Truncated(NamedTuple):
    """At `site`, `op` writes fractions into `name`, whose dtype has been `dtype` since `made`.

    They are cut off (`form` is `stored`), or torch refuses (`raises`).
    """

    site: int
    name: str
    op: str
    dtype: str
    made: int
    form: str
    sure: Sure


class AccumulatedOnce(NamedTuple):
    """At `site`, `op` accumulates in `name`, which picks by `chosen`, which names some elements more than once."""

    site: int
    name: str
    chosen: str
    op: str
    sure: Sure


class Constructed(NamedTuple):
    """At `site`, a constructor of tensors was given `name`, which is of `kind`.

    `function` is its dotted name, `op` the call as the user would name it. `arrays` is whether it is a list of nothing
    but arrays. `requires_grad`, `history` (whether it is no leaf) and `scalar` are those of `name`; `traced` is whether
    the result requires grad because the call says so. `declared` is whether only the signature or a caller says what
    `name` is, `temporary` whether its memory, or the result, is let go of at once, `outside` whether it is memory that
    others hold, `matches` whether its dtype is that of the result. `flags` are keywords that are switched on.
    """

    site: int
    function: str
    op: str
    name: str
    kind: Kind
    arrays: bool
    requires_grad: Fact
    history: Fact
    scalar: Fact
    recording: Fact
    traced: bool
    declared: bool
    temporary: bool
    outside: bool
    matches: Fact
    flags: frozenset[str]
    sure: Sure


class VolatileUsed(NamedTuple):
    """At `site`, the attribute `name` (`x.volatile`) of a tensor is read or set, which torch ignores."""

    site: int
    name: str
    sure: Sure


class NumpyRefused(NamedTuple):
    """At `site`, `op` asks for an array of `name`, which requires grad.

    `assumed` is whether it does only if autograd recorded, which was assumed.
    """

    site: int
    name: str
    op: str
    assumed: bool
    sure: Sure


class LayoutRefused(NamedTuple):
    """At `site`, `op` makes a tensor of the array `name`, which is laid out as no tensor can be.

    `form` is `negative` (a stride is) or `readonly` (the memory is), since `since`, or -1.
    """

    site: int
    name: str
    op: str
    form: str
    since: int
    sure: Sure


class Redundant(NamedTuple):
    """At `site`, `op` is applied to what `before` has just made of `name`, which makes it superfluous.

    `form` is `order` (`clone` before `detach`), `detach`, `copy` or `item` (a number has no graph to detach from).
    """

    site: int
    name: str
    op: str
    before: str
    form: str
    sure: Sure


class ReadInFlight(NamedTuple):
    """At `site`, `name` is read, which the copy of `source` that was started at `copy` may not have filled yet."""

    copy: int
    source: str
    name: str
    site: int


class ConditionalWrite(NamedTuple):
    """The write at `site` reaches `source` as well `when` a conversion on the way (`links`) had nothing to convert.

    `owner` says who else sees `source`, whose memory is `storage`: see `Write`. `own` is whether `source` is a field of
    the method's own object.
    """

    site: int
    name: str
    source: str
    owner: str
    storage: int
    when: str
    links: tuple[Link, ...]
    own: bool
    sure: Sure


class OverlappingWrite(NamedTuple):
    """At `site`, `op` writes `name` while it reads `source`, another part of the same memory that overlaps with it.

    `links` lead from what both are parts of down to `source`, if that has a name; else it is made on the spot.
    """

    site: int
    name: str
    source: str
    op: str
    links: tuple[Link, ...]
    sure: Sure


class ViewImpossible(NamedTuple):
    """At `site`, `view` of `name` joins dimensions that lie apart in memory since they were reordered at `made`."""

    site: int
    name: str
    made: int
    sure: Sure


class ViewRefused(NamedTuple):
    """At `site`, `op` writes `name`, a view of `base` since `viewed` that autograd does not let be written.

    `why` is `multi` (one of several views that one operation made), `no_grad` (made while grad mode was off), `custom`
    (returned by a custom Function, or by a module with a full backward hook) or `hook` (the input of such a module).
    For `assumed` and `local`, see `LeafWritten`.
    """

    site: int
    name: str
    op: str
    why: str
    base: str
    viewed: int
    assumed: bool
    local: bool
    sure: Sure


class Resized(NamedTuple):
    """At `site`, `op` resizes `name`, whose memory is shared with `other` since `since`, `how`.

    Without a `how`, `name` requires grad.
    """

    site: int
    name: str
    other: str
    op: str
    how: How | None
    since: int
    sure: Sure


class ViewStored(NamedTuple):
    """At `site`, `name` is written to a file: a part of `source` only, since `taken`, but stored with all of it."""

    site: int
    name: str
    source: str
    taken: int
    how: How
    sure: Sure


class DefaultWritten(NamedTuple):
    """At `site`, `op` writes the parameter `name`, whose default is a tensor that is made once, at `made`."""

    site: int
    name: str
    op: str
    made: int
    sure: Sure


class CallerSuffers(NamedTuple):
    """At `site`, `op` writes the parameter `name`, for which the call at `call` in another unit passes `passed`.

    The function returns that memory, and at `read` the caller still uses `passed` beside what was returned.
    """

    site: int
    name: str
    op: str
    call: int
    passed: str
    read: int
    sure: Sure


class ModulePaired(NamedTuple):
    """At `site`, one module meets itself: `name`, bound at `bound`, and `source` both hold it.

    `form` is `load` (its own state is loaded into it) or `zip` (its parameters are paired with themselves).
    """

    site: int
    name: str
    source: str
    bound: int
    form: str
    sure: Sure


class ModuleKept(NamedTuple):
    """At `site`, `consumer` uses the module `name`, which has been put aside on a condition at `bound`: it is `source`,
    and `write` came in between."""

    site: int
    name: str
    source: str
    bound: int
    write: int
    consumer: str
    sure: Sure


class ModuleShallow(NamedTuple):
    """At `site`, `consumer` uses the module `name`, which was made at `made` by a shallow copy of `source`.

    `write` came in between.
    """

    site: int
    name: str
    source: str
    made: int
    write: int
    consumer: str
    sure: Sure


class FieldAliased(NamedTuple):
    """When `method` ends, `field` of `self`, set at `site`, is the module that the field `source` holds.

    `record` is whether that happens where one number is less than another, and `source` holds one module for good.
    """

    field: str
    source: str
    site: int
    sure: Sure
    method: str
    record: bool = False


class FieldsPaired(NamedTuple):
    """At `site`, the modules that two fields of `self` have held since before the method meet: see `ModulePaired`."""

    site: int
    field: str
    other: str
    form: str


class Collected(NamedTuple):
    """At `site`, `name` is put into `container`, which holds the same memory already: `write` came in between.

    `source` owns the memory, which is `storage`, and `links` lead from `name` up to it. `put` are the sites where the
    elements were put in, `outside` is whether others than this unit see the container. `form`: `append`, `item` or
    `yield`.
    """

    site: int
    name: str
    source: str
    container: str
    outside: bool
    write: int
    links: tuple[Link, ...]
    storage: int
    put: frozenset[int]
    form: str
    kind: Kind
    sure: Sure


class FieldCollected(NamedTuple):
    """At `site`, `method` puts what `field` of `self` has held since before into `container`, another field of it.

    `lasting` is whether only constructors set the field: it goes on to hold the same tensor or array.
    """

    site: int
    field: str
    container: str
    method: str
    lasting: bool
    sure: Sure


class FunctionInput(NamedTuple):
    """A custom Function's `forward` writes its input `name` by `op`, and breaks the rules for that at `site`.

    `why` is `unmarked` (returned, but not given to `mark_dirty`), `lost` (marked, but not returned; `other` is the
    write) or `view` (a view, since `other`, of `op`, goes into a Function with several outputs).
    """

    site: int
    name: str
    op: str
    why: str
    other: int
    sure: Sure


class OutAliases(NamedTuple):
    """At `site`, `op` writes its result into `name`, which is one of the operands that it still reads."""

    site: int
    name: str
    op: str
    sure: Sure


class ExpandedWritten(NamedTuple):
    """At `site`, `op` writes `name`, which was expanded at `made`; `part` is whether it writes a part of it alone."""

    site: int
    name: str
    op: str
    made: int
    part: bool
    sure: Sure


class InferenceMisused(NamedTuple):
    """At `site`, outside of inference mode, `op` writes (`what`: `written`) or keeps for backward (`saved`) `name`,
    which was made at `made` in inference mode."""

    site: int
    name: str
    op: str
    made: int
    what: str
    sure: Sure


class Accumulated(NamedTuple):
    """At `site`, `source` and the graph behind it is added to `name`, turn after turn of a loop, or call after call of
    a method, in which backward runs over that graph, at `ran`. `form` is `sum`, `collected`, or `item` where it is
    written into a part of `name`."""

    site: int
    name: str
    source: str
    form: str
    ran: int
    sure: Sure


class FieldKeepsGraph(NamedTuple):
    """At `site`, `name`, a field of `self` that outlives the call, comes to hold what carries a graph.

    `source` is what it is set to, or what is written into it. `form` is `update` (it is computed from what the field
    held before, so that each call's graph hangs on the one of the call before) or `written` (the tensor had no graph,
    and something that has one is written into it). `ran` is where backward runs over that graph in the same method, or
    -1; for `assumed`, see `LeafWritten`.
    """

    site: int
    name: str
    source: str
    form: str
    ran: int
    assumed: bool
    sure: Sure


class BackwardAgain(NamedTuple):
    """At `site`, backward runs over the graph of `name`, of which backward at `freed` has freed what was saved.

    `carrier` is the name that took the graph into the loop's next turn, bound at `kept`; empty outside of loops.
    """

    site: int
    name: str
    freed: int
    sure: Sure
    carrier: str
    kept: int


class RetainedForNothing(NamedTuple):
    """At `site`, in a loop, backward over `name` retains the graph, and no other backward of the loop needs it.

    `carried` is whether backward itself runs over it again in the next turn.
    """

    site: int
    name: str
    carried: bool


class GraphLost(NamedTuple):
    """At `site`, backward is called on `name`, which has no graph: what carried one, `source`, lost it at `cut`.

    `op` is what cut it; `wrapped` is whether the value requires grad by itself, as a leaf.
    """

    site: int
    name: str
    source: str
    cut: int
    op: str
    wrapped: bool
    sure: Sure


class TensorCopied(NamedTuple):
    """At `site`, `copy.copy` or `copy.deepcopy` (`op`) gets `name`, a tensor, or something that holds it.

    `made` is the site where the tensor was computed, if it is no leaf, else -1.
    """

    site: int
    name: str
    op: str
    made: int
    sure: Sure


class ContextKept(NamedTuple):
    """At `site`, `forward` of an autograd `Function` keeps the tensor `name` in an attribute of its context."""

    site: int
    attribute: str
    name: str
    sure: Sure


Relation: TypeAlias = (
    "ReadAfter | Clobbered | DataAccess | DataShared | LeafWritten | DetachedInPlace | ReadAfterCut"
    " | GradientRead | Discarded | GradModeUnused | AttributeSet | Repeated | Kept | FieldRead | Revealed"
    " | ParameterRebound | NonleafKept | OptimizerStale | ParameterTwice | StateItemLost | ParameterOverwritten"
    " | RequiresGradRefused | GeneratorReused | Truncated | AccumulatedOnce | Constructed | VolatileUsed"
    " | NumpyRefused | LayoutRefused | Redundant | ReadInFlight | ConditionalWrite | OverlappingWrite"
    " | DefaultWritten | ViewRefused | ViewImpossible | Resized | ViewStored | CallerSuffers | Collected"
    " | ModulePaired | ModuleKept | ModuleShallow | FieldAliased | FieldsPaired | FunctionInput | OutAliases"
    " | ExpandedWritten | InferenceMisused | Accumulated | BackwardAgain | RetainedForNothing | GraphLost"
    " | TensorCopied | ContextKept | FieldKeepsGraph"
    " | LoadedByAssignment | MappedWrite | FieldMet | FieldCollected"
)


class UnitFacts(NamedTuple):
    """Everything found out about one unit, in source order.

    `class_number` is -1 outside of classes. `returns_sources` are the storages that it returns itself, not as a view;
    `returns_value` whether it returns anything at all, `takes_inplace` whether its caller decides by a parameter
    `inplace` if it writes. `trains` is whether it calls `backward()`, `has_no_grad` whether it switches grad mode off
    for a part of itself, or one beside it does so to write a parameter. `called_without_grad` is whether every call of
    it in the file runs without grad (`UNKNOWN` if there is no call, or nobody knows). `roles` is as what autograd calls
    it: `forward` or `backward` of a `Function`, `gradient hook`, `pack hook`; `mapped x` where `vmap` maps its
    parameter `x`. `given_away` are the parameters for which every call in the file passes what nobody else holds.
    `feeds_backward` is whether a function of the file that runs backward calls it while autograd records.
    """

    qualname: str
    name: str
    kind: str
    class_number: int
    class_name: str
    class_kind: Kind
    facts: tuple[Relation, ...]
    writes: dict[int, Write]
    returns_sources: frozenset[int]
    returns_value: bool
    trains: bool
    has_no_grad: bool
    called_without_grad: Fact
    roles: frozenset[str]
    takes_inplace: bool = False
    given_away: frozenset[str] = frozenset()
    feeds_backward: bool = False


class Place(NamedTuple):
    """Where another file writes: in which function, by which operation, at which of that file's sites."""

    path: str
    site: int
    function: str
    op: str


class FileFacts(NamedTuple):
    """Everything found out about one file. `gaps` pair a reason with a site; `steps` counts the events run, in every
    run of every unit.

    `elsewhere` says, for calls of functions of other files that write what they are given, where those do so.
    """

    units: tuple[UnitFacts, ...]
    gaps: tuple[tuple[str, int], ...]
    steps: int
    elsewhere: Mapping[int, tuple[Place, ...]]
