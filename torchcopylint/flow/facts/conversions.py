"""Relations about making tensors and arrays of one another, and about their layout."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow.model import Fact, Kind, Sure


class Constructed(NamedTuple):
    """At `site`, a constructor of tensors was given `name`, which is of `kind`.

    `function` is its dotted name, `op` the call as the user would name it. `arrays` is whether it is a list of nothing
    but arrays. `requires_grad`, `history` (whether it is no leaf) and `scalar` are those of `name`; `traced` is whether
    the result requires grad because the call says so. `declared` is whether only the signature or a caller says what
    `name` is, `temporary` whether its memory, or the result, is let go of by the end of the unit, `outside` whether
    it is memory that others hold, `unseen` whether it has no other holder than a name that is not looked at again,
    `matches` whether its dtype is that of the result. `flags` are keywords that are switched on. `written` is where the
    memory of one of the two is written by whoever has it, as far as the file shows, or -1.
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
    unseen: bool
    matches: Fact
    flags: frozenset[str]
    sure: Sure
    written: int = -1


class VolatileUsed(NamedTuple):
    """At `site`, the attribute `name` (`x.volatile`) of a tensor is read or set, which torch ignores."""

    site: int
    name: str
    sure: Sure


class NumpyRefused(NamedTuple):
    """At `site`, `op` asks for an array of `name`, which requires grad.

    `assumed` is whether that autograd records was assumed; `beside` whether the same unit cuts something else off on
    its way to an array.
    """

    site: int
    name: str
    op: str
    assumed: bool
    sure: Sure
    beside: bool = False


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
    """At `site`, `name` is read, which the copy of `source` that was started at `copy` may not have filled yet.

    `elsewhere` is whether another method of the class has started it.
    """

    copy: int
    source: str
    name: str
    site: int
    elsewhere: bool = False


class ViewImpossible(NamedTuple):
    """At `site`, `view` of `name` joins dimensions that lie apart in memory since they were reordered at `made`."""

    site: int
    name: str
    made: int
    sure: Sure
