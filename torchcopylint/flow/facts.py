"""What the analysis found out about one unit: relations, each a named tuple that reads as a sentence.

Rules see these and nothing else. Sites are ordinals of the program's table of sites.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from torchcopylint.flow.model import Fact, How, Kind, Sure


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

    `form` is `method`, `augmented`, `item`, `out`, `call`, `step` or `load`. `root` is the name or slot that the
    expression started from, `derived` whether it went on from there (`x[0].zero_()`, not `x.zero_()`). `chain` leads
    from what was written to the owner of the memory. `owner` says who else can see that memory: an empty text for
    nobody. `named` is whether a name was bound to an alias on the way there, so that it is not all one expression.
    `reads_old` is whether the old content mattered. `recording` is grad mode.
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


class ReadAfter(NamedTuple):
    """At `site`, `name` was read after `write` had changed its memory.

    `own` is whether it was written through that very name. Otherwise `below_written` and `below_read` lead from the
    nearest common object down to what was written and to what is read; two names of one object have one link between
    them, without a `how`, in `below_read`. `consumer` says what reads: `operand`, `look` (an operation that keeps no
    graph), `argument`, `return`, `store`, `swap` (stored into the very memory it is a view of), `text`, `test`,
    `yield`, `load_state_dict`, by `target`. `element` is whether `name` is an element of a container.
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

    `links` lead from what was saved to the name that was written through.
    """

    saved: Saved
    write: int
    site: int
    consumer: str
    links: tuple[Link, ...]
    sure: Sure


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
    """At `site`, `target` was put on the storage of `source`, which lives on. `form`: `assign`, `parameter`, `call`."""

    site: int
    target: str
    source: str
    form: str
    sure: Sure
    first: int = -1


class LeafWritten(NamedTuple):
    """At `site`, a leaf that requires grad (or, with `view`, a view of it) is written while autograd records.

    `made` is the site where it came to require grad, or -1. `assumed` is whether grad mode was only assumed to be on,
    `local` whether the leaf was made in this unit.
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
    """At `site`, one object (`name`, made at `made`) is put into a container `times` times over."""

    site: int
    name: str
    made: int
    kind: Kind
    stateful: bool
    form: str
    container: str
    sure: Sure


class Kept(NamedTuple):
    """When `method` ends, `field` of `self`, set at `site`, shares memory with `source`, which lives on elsewhere.

    `how`, since `shared`; `shallow` if it is a new container of the same tensors.
    """

    field: str
    site: int
    shared: int
    how: How
    source: str
    shallow: bool
    sure: Sure
    method: str


class FieldRead(NamedTuple):
    """At `site`, `field` of `self` is read by `consumer` in `method`, as it was when the method began."""

    field: str
    site: int
    consumer: str
    method: str
    target: str


class Accumulated(NamedTuple):
    """At `site`, `source` and the graph behind it is added to `name` (`form`: `sum`, `collected`), turn after turn of a
    loop, or call after call of a method, in which backward runs over that graph, at `ran`."""

    site: int
    name: str
    source: str
    form: str
    ran: int
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
    "ReadAfter | Clobbered | DataAccess | DataShared | LeafWritten | DetachedInPlace | ReadAfterCut | GradientRead"
    " | Discarded | GradModeUnused | AttributeSet | Repeated | Kept | FieldRead | Accumulated | BackwardAgain"
    " | RetainedForNothing | GraphLost | TensorCopied | ContextKept"
)


class UnitFacts(NamedTuple):
    """Everything found out about one unit, in source order.

    `class_number` is -1 outside of classes. `returns_sources` are the storages that it returns itself, not as a view;
    `returns_value` whether it returns anything at all. `trains` is whether it calls `backward()`, `has_no_grad` whether
    it switches grad mode off for a part of itself. `called_without_grad` is whether every call of it in the file runs
    without grad (`UNKNOWN` if there is no call). `roles` is as what autograd calls it: `forward` or `backward` of a
    `Function`, `gradient hook`, `pack hook`.
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


class FileFacts(NamedTuple):
    """Everything found out about one file. `gaps` pair a reason with a site; `steps` counts the events run."""

    units: tuple[UnitFacts, ...]
    gaps: tuple[tuple[str, int], ...]
    steps: int
