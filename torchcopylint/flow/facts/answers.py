"""Answers to questions: what is known of a name."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow.facts.memory import Link
from torchcopylint.flow.model import Fact, Kind, Sure


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
