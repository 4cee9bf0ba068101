"""Facts about what objects keep in their fields, and about elements that methods and datasets hand out."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow.facts.memory import Link
from torchcopylint.flow.model import How, Sure


class EditedAlone(NamedTuple):
    """The write at `site` makes of the old content, by arithmetic, what hangs on nothing but itself and numbers.

    `parameter` is what a module keeps that is written so, if it is. `goes_on` is whether the name that is written is
    bound to something else then, which is computed from it, or noise is added to some rows; `item` whether a number is
    put into a part of it.
    """

    site: int
    parameter: str = ""
    goes_on: bool = False
    item: bool = False


class ScratchEdited(NamedTuple):
    """The write at `site` makes arithmetic of all of a view that a name holds, from itself and numbers alone, where the
    base has no graph, and the unit has made it or was handed it."""

    site: int


class StillExpected(NamedTuple):
    """The assertion at `site`, which looks at `name` at `sites`, says that it holds what it did at the site `since`."""

    site: int
    name: str
    since: int
    sites: tuple[int, ...]


class PartHandedOut(NamedTuple):
    """The write at `site` goes through a part of something that a function of the user's has returned, or, with
    `whole`, through just what a method or property has returned."""

    site: int
    whole: bool = False


class FieldIsGlobal(NamedTuple):
    """The constructor leaves in `field`, at `site`, what the name `source` of the module holds, on some paths.

    Nobody else in the file sets the field.
    """

    site: int
    field: str
    source: str
    sure: Sure


class FieldsTwins(NamedTuple):
    """At `site`, the constructor has given to the field `other` the very tensor that it gives to `field`, or a method
    the one that `field` has held before.

    Nobody else in the file sets either. `met` is whether they are operands of one operation somewhere in the class,
    unless one statement sets both, or something else says that they were to be two. `made` is whether the method has
    made the tensor: what it does to it before is no sign of anything.
    """

    site: int
    field: str
    other: str
    met: bool
    sure: Sure
    made: bool = False


class FieldsShare(NamedTuple):
    """The constructor leaves in the fields `one` and `other`, in the latter at `site`, an array and a tensor over one
    memory, that of `source`, which it was handed in.

    `links` say how they came to share, `how` which of NumPy's ways it is, and nobody else in the file sets either.
    `looks` are the fields and sites where other methods of the class do something with what stands there.
    """

    site: int
    one: str
    other: str
    source: str
    how: How
    links: tuple[Link, ...]
    looks: tuple[tuple[str, int], ...]
    sure: Sure


class FieldOver(NamedTuple):
    """The constructor leaves in `field` a tensor over the memory of an array, or an array over that of a tensor, `how`,
    as `links` say, and computes what it knows by another name anew in place after that, at `site`.

    It keeps that name nowhere; `read` is where others in the file look at the field.
    """

    site: int
    field: str
    how: How
    links: tuple[Link, ...]
    read: int
    sure: Sure


class Kept(NamedTuple):
    """When `method` ends, `field` of `self`, set at `site`, shares memory with `source`, which lives on elsewhere.

    `how`, since `shared`; `shallow` if it is a new container of the same tensors, or an element that was put into one.
    `storages` are those of what is shared; `whole` is whether `source` is a module. `sources` are the names that other
    methods may have for it: fields that hold it, or its own, if it is handed in. `calls` are the methods of `self` that
    `method` goes through itself, and those that these go through. `record` is whether that happens where one number is
    less than another, for nobody in the file. `when` is the condition on which nothing was copied, if there is one.
    `appended` is whether each call adds one more view of the same parameter, or state dict of the same model, to a
    list. `counted` is whether the method counts, on another path, how often it does not happen, for a reader that is
    not in the file. `lasting` is whether it is the state of a model that the object goes on with, `optimizer` whether
    it is that of an optimizer. `renewed` are the methods that come to the field only where `method` has just set it
    anew.
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
    calls: frozenset[str] = frozenset()
    record: bool = False
    when: str = ""
    appended: bool = False
    counted: bool = False
    lasting: bool = False
    optimizer: bool = False
    renewed: frozenset[str] = frozenset()


class FieldMet(NamedTuple):
    """At `site`, in `method`, what `field` of `self` has held since before meets the parameters of the module `source`.

    `form` is `operand` (`op` takes both), `averaged` (it is mixed with them in place), `restored` (it is put into a
    parameter) or `loaded` (as a state dict). `earlier` is whether `method` sets the field itself, but not on the way
    here: it holds what an earlier call has put there.
    """

    site: int
    field: str
    method: str
    form: str
    source: str
    op: str
    earlier: bool = False


class EntriesEdited(NamedTuple):
    """At `site`, `op` writes what the container `name` holds; at `read`, something is computed of what `other` holds.

    One of them, `copied`, was made at `made` as a new container of what `source` holds.
    """

    site: int
    name: str
    other: str
    op: str
    source: str
    copied: str
    made: int
    read: int
    sure: Sure


class EntryWritten(NamedTuple):
    """At `site`, `op` writes through `name` what stands in a dictionary as `entry`, and at `put` it then becomes
    an entry of another key as well, `other`; at `read`, the dictionary is handed on with both of them.

    Where a function of the file writes it for whoever has the dictionary, `site` is in that function. Or at `put` it
    got the name `other`, and at `read` one call is passed both. `consumer` is what reads.
    """

    site: int
    name: str
    op: str
    entry: str
    other: str
    put: int
    read: int
    sure: Sure
    consumer: str = "return"


class FieldCollected(NamedTuple):
    """At `site`, `method` puts what `field` of `self` has held since before into `container`, another field of it.

    `lasting` is whether only constructors set the field: it goes on to hold the same tensor or array. By `links` an
    alias of the field comes of it, if it is one that is put in; `whole` is whether that sees all of it. `callers`
    are the methods of the same object that go through `method`. `after` are the sites of the writes that hit it behind
    that, in the same call. `dated` is whether a number is put in with it, as when it stands in a tuple with a counter,
    `anew` whether the method sets the field to something else as well.
    """

    site: int
    field: str
    container: str
    method: str
    lasting: bool
    sure: Sure
    whole: bool = True
    links: tuple[Link, ...] = ()
    callers: frozenset[str] = frozenset()
    storage: int = -1
    after: frozenset[int] = frozenset()
    dated: bool = False
    anew: bool = False


class SumScaled(NamedTuple):
    """At `site`, a method scales all of `field` by its second name `name`, bound at `shared`, for what it goes on to
    compute; at `added`, another method adds to the field."""

    site: int
    name: str
    field: str
    op: str
    shared: int
    added: int
    sure: Sure
