"""Predicates and steps that several rules share."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point
from torchcopylint.flow.facts import Link, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import ARGUMENT, Fact, How, Sure

PLAIN_HOWS = frozenset({None, How.VIEW, How.INDEX, How.ROW})
"""Ways to share that keep the version counter and the graph: views and plain second names."""
ARRAY_HOWS = frozenset({How.NUMPY, How.FROM_NUMPY})
DIRECT_FORMS = frozenset({"method", "augmented", "item", "out", "call", "operator", "assign"})
"""Writes that the code spells out, unlike an optimizer's step or the loading of a state dict."""


def confidence(*sures: Sure) -> Confidence:
    """As sure as the least sure of the facts."""
    worst = min(sures)
    if worst is Sure.PROVEN:
        return Confidence.HIGH
    return Confidence.MEDIUM if worst is Sure.LIKELY else Confidence.LOW


def at_most(limit: Confidence, found: Confidence) -> Confidence:
    """A confidence, but not above a limit."""
    return found if found.rank > limit.rank else limit


def shared_point(link: Link) -> Point:
    """The step where two holders came to share."""
    how = link.how.value if link.how is not None else "name"
    return Point(
        Role.SHARED, link.site, f"shared.{how}", {"source": link.source, "result": link.result, "when": link.when}
    )


def shared_points(links: tuple[Link, ...]) -> list[Point]:
    """The steps where two holders came to share; links without a place in the code are left out."""
    return [shared_point(link) for link in links if link.site >= 0]


def written_point(write: Write) -> Point:
    """The step that writes."""
    phrase = "written.cause" if write.cause else "written"
    return Point(Role.WRITTEN, write.site, phrase, {"op": write.op, "name": write.name, "cause": write.cause})


def read_point(read: ReadAfter, write: Write) -> Point:
    """The step that reads; a read that stands before its write happens on the loop's next turn."""
    later = "" if read.site > write.site else ".next"
    return Point(Role.READ, read.site, f"read.{read.consumer}{later}", {"name": read.name, "target": read.target})


def first_reads(unit: UnitFacts, own: bool) -> dict[int, list[ReadAfter]]:
    """For each write, what is read after it: through the written holder itself (`own`) or through another."""
    found: dict[int, list[ReadAfter]] = {}
    for fact in unit.facts:
        if isinstance(fact, ReadAfter) and fact.own is own:
            found.setdefault(fact.write, []).append(fact)
    return found


def once_a_sharing(found: list[tuple[Write, ReadAfter]]) -> list[tuple[Write, ReadAfter]]:
    """Of several writes that hit one sharing, the first in the program: the others are the same fault."""
    first: dict[tuple[object, ...], tuple[Write, ReadAfter]] = {}
    for write, read in sorted(found, key=lambda pair: (pair[0].site, order_of(pair[1]))):
        sharing = tuple(link.site for link in read.links)
        first.setdefault((sharing, write.root, read.name), (write, read))
    return list(first.values())


def order_of(read: ReadAfter) -> tuple[bool, int]:
    """Sorts reads by when they happen: those behind the write first, then those of the loop's next turn."""
    return (read.site <= read.write, read.site)


def writes_of_argument(unit: UnitFacts) -> Iterator[Write]:
    """The writes of a unit that surely reach what it was handed, spelt out and not on condition of anything."""
    for write in unit.writes.values():
        surely = len(write.storages) == 1 and all(link.sure and not link.when for link in write.chain)
        if surely and write.owner == ARGUMENT and write.form in DIRECT_FORMS:
            yield write


def suffers_caller(unit: UnitFacts, write: Write) -> bool:
    """Whether a write reaches memory of the caller's, who gets a value back and not that memory."""
    if write.owner != ARGUMENT or unit.kind != "function" or not unit.returns_value:
        return False
    return not unit.name.endswith("_") and not unit.name.startswith("__")


def mode_is_on(unit: UnitFacts, assumed: bool, local: bool) -> Confidence | None:
    """How sure it is that autograd records in a unit; `None` if callers turn it off, for all one can see.

    Functions that write parameters are usually called under `no_grad` (48 of 48 in public code), so a function needs
    evidence of its own: it calls `backward()`, switches grad mode off for a part of itself, or made the leaf itself.
    """
    if not assumed:
        return Confidence.HIGH
    if unit.called_without_grad is Fact.YES:
        return None
    if unit.trains or unit.called_without_grad is Fact.NO or local:
        return Confidence.HIGH
    if unit.has_no_grad or (unit.class_name and unit.name in ("forward", "__init__", "training_step")):
        return Confidence.MEDIUM
    return Confidence.LOW
