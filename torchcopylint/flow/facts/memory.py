"""Relations about memory: what shares it, who writes it, who reads what was written."""

from __future__ import annotations

from typing import NamedTuple

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
    result is bound to (empty: dropped, `...`: used on), `used` where; of a method, `result` is the name that its result
    gets, if it gets one. `root` is the name or slot that the expression
    started from, `derived` whether it went on from there (`x[0].zero_()`, not `x.zero_()`). `chain` leads from what was
    written to the owner of the memory. `owner` says who else can see that memory: an empty text for nobody. `named` is
    whether a name was bound to an alias on the way there, so that it is not all one expression. `reads_old` is whether
    the old content mattered. `recording` is grad mode. `copied` says how sure it is that what was written is the copy
    that an advanced index made, and that no other holder has it; `dropped` whether the value of the writing call is
    thrown away. `bound` is the site where the root was bound, or -1. `held` is the element of a field that the root was
    taken out of, if it was. `unchanged` is whether an activation has put back what was there: nothing was negative;
    `told` is where the layer was made that it is of, if in this file, or -1.
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
    used: frozenset[int] = frozenset()
    held: str = ""
    unchanged: bool = False
    told: int = -1


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
    -1. `asked` is whether somebody asks if the two are one: see `identity`. `put` is, for a value of a parameter, the
    site of the write that puts what is computed from it into something, or -1. `replaced` is whether all of the part
    that is read is of what was written, and that is a part, too. `second` is whether `name` surely is another plain
    name for what was written (`old = grid`), of whose parts nobody knows which are read. `aside` is whether a loop
    keeps `name` over several turns, on a condition, and an optimizer steps on what it shares with.
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
    asked: bool = False
    put: int = -1
    replaced: bool = False
    second: bool = False
    aside: bool = False

    @property
    def links(self) -> tuple[Link, ...]:
        """How the two came to share, in the order of the program."""
        return tuple(sorted({*self.below_written, *self.below_read}, key=lambda link: link.site))

    def is_parameters_value(self, *, copied: bool) -> bool:
        """Whether what is read is a parameter's value, through `.data` or `detach()`, or for the copy that is made."""
        hows = {link.how for link in self.below_read}
        return How.PARAMETERS in hows and (copied or bool(hows & {How.DETACH, How.DATA}))

    @property
    def hows(self) -> frozenset[How | None]:
        """The ways in which the two came to share."""
        return frozenset(link.how for link in self.links)


class DetachedInPlace(NamedTuple):
    """At `site`, `name.detach_()` cuts the object itself. `consumer` is what happens to the result: `statement`,
    `bound`, `same`, `argument`, `return` ... `view` is the site where `name` became a view, or -1. `spent` is whether
    backward has run over its graph by then, `freed` whether it has freed what was saved there, so that nobody can run
    over it again, `used` the site of what uses the result, or -1."""

    site: int
    name: str
    result: str
    consumer: str
    view: int
    base: str
    held: bool
    sure: Sure
    spent: bool
    used: int
    freed: bool = False


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


class Discarded(NamedTuple):
    """At `site`, the result of the out-of-place operation `op` on `name` is dropped.

    `operator` is whether `op` is a symbol: `old * 0.9 + new * 0.1`.
    """

    site: int
    name: str
    op: str
    method: bool
    guarded: bool
    sure: Sure
    operator: bool = False


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


class ConditionalWrite(NamedTuple):
    """The write at `site` reaches `source` as well `when` a conversion on the way (`links`) had nothing to convert.

    `owner` says who else sees `source`, whose memory is `storage`: see `Write`. `own` is whether `source` is a field of
    the method's own object. `dtype` is that of what is written, as far as it is known.
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
    dtype: str = ""


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


class Resized(NamedTuple):
    """At `site`, `op` resizes `name`, whose memory is shared with `other` since `since`, `how`.

    Without a `how`, `name` requires grad. `array` is whether it is an array.
    """

    site: int
    name: str
    other: str
    op: str
    how: How | None
    since: int
    sure: Sure
    array: bool = False


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


class SampleEdited(NamedTuple):
    """At `site`, `op` of a transform edits `name`, which belongs to the sample that it is given.

    At `handed`, a dataset of the file hands what it keeps, `source`, to whatever transform it has.
    """

    site: int
    name: str
    op: str
    handed: int
    source: str
    sure: Sure


class EditedEachTurn(NamedTuple):
    """The write at `site` edits `name`, which each turn of a loop binds, at `bound`, to what `source` has held since
    before the loop, and uses at `read`."""

    site: int
    name: str
    source: str
    bound: int
    read: int


class SidesAlike(NamedTuple):
    """At `site`, what has been computed from two values in the same way, beginning at `one` and `other`, is compared,
    or subtracted, or divided: `(old != 0).sum() - (new != 0).sum()`."""

    site: int
    one: int
    other: int


class LookedAtAnew(NamedTuple):
    """At `site`, `present` is looked at anew beside `name`, which is the same parameter of a layer:
    `net[0].weight - w0`."""

    site: int
    name: str
    present: str


class CallerSuffers(NamedTuple):
    """At `site`, `op` writes the parameter `name`, for which the call at `call` in another unit passes `passed`.

    The function returns that memory, and at `read` the caller still uses `passed` beside what was returned. Or it has
    given the parameter another name, `second`, and writes through that, whatever it returns. Or (`worked`) it computes
    what it returns from the parameter, into which it writes nothing that comes from elsewhere.
    """

    site: int
    name: str
    op: str
    call: int
    passed: str
    read: int
    sure: Sure
    second: str = ""
    worked: bool = False


class PartSuffers(NamedTuple):
    """At `site`, what was taken out of a parameter, `name`, is written under another name; the call at `call` in
    another unit passes what has `passed` for that part, and at `read` it still uses that."""

    site: int
    name: str
    call: int
    passed: str
    read: int
    sure: Sure


class Collected(NamedTuple):
    """At `site`, `name` is put into `container`, which holds the same memory already: `write` came in between.

    `source` owns the memory, which is `storage`, and `links` lead from `name` up to it. `put` are the sites where the
    elements were put in, `outside` is whether others than this unit see the container. `form`: `append`, `item` or
    `yield`. `when` says when a conversion on the way does not copy, if there is one.
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
    when: str = ""


class SentAndWritten(NamedTuple):
    """The write at `site` changes what was put into `queue`, a queue between processes, as `name` at the site `put`.

    `links` lead from what was put in up to the owner of the memory.
    """

    site: int
    put: int
    name: str
    queue: str
    links: tuple[Link, ...]
    sure: Sure


class OutAliases(NamedTuple):
    """At `site`, `op` writes its result into `name`, which is one of the operands that it still reads."""

    site: int
    name: str
    op: str
    sure: Sure


class ExpandedWritten(NamedTuple):
    """At `site`, `op` writes `name`, which was expanded at `made`; `part` is whether it writes a part of it alone, and
    `windows` whether its rows are windows that overlap."""

    site: int
    name: str
    op: str
    made: int
    part: bool
    windows: bool
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
