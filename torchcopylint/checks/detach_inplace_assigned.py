"""TCL301: the result of `detach_()` is taken for a detached copy, and the source is cut as well."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, shared_points
from torchcopylint.flow.facts import DetachedInPlace, ReadAfterCut, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True
WHERE_MADE = True

HISTORY_READS = frozenset({"operand", "argument", "backward", "return"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `detach_()` whose source is used later for its history, or whose result gets a name of its own."""
    cuts: dict[int, list[ReadAfterCut]] = {}
    for fact in unit.facts:
        if isinstance(fact, ReadAfterCut) and fact.consumer in HISTORY_READS and fact.site != fact.cut:
            cuts.setdefault(fact.cut, []).append(fact)
    for fact in unit.facts:
        if isinstance(fact, DetachedInPlace):
            # A function that is called a loss makes one for its callers.
            yield from _report(fact, cuts.get(fact.site, []), trains=unit.trains or "loss" in unit.name.lower())


def _report(fact: DetachedInPlace, reads: list[ReadAfterCut], *, trains: bool) -> Iterator[Report]:
    result = fact.result or "its result"
    cut = Point(Role.CUT, fact.site, "cut", {"name": fact.name})
    taken = fact.consumer in ("bound", "argument")
    # The holder that it was cut through knows that it is cut, unless the code took the result for a copy.
    # What is computed on from the result (`x.detach_().softmax(-1)`) tells so only where a loss is made of the source.
    from_copy = taken or (fact.consumer == "chain" and trains)
    later = [r for r in reads if not r.own or (from_copy and r.name != fact.result)]
    later = [r for r in later if r.name != fact.result and not _is_meant(fact, r)]
    # What takes the result itself is no use beside it: `reward + value.detach_()`.
    later = [r for r in later if not (r.own and fact.consumer == "chain" and r.site == fact.used)]
    if fact.spent:
        # Backward has used the history up: whatever goes on from here is to go on without it. Where it has freed it,
        # no other name can have a use for it either.
        later = [r for r in later if not r.own and not (fact.freed and fact.consumer == "statement")]
    if later:
        read = min(later, key=lambda r: (r.site < r.cut, r.site))
        source = fact.name
        if read.links:
            source, result = read.name, fact.name
        points = (*shared_points(read.links), cut, Point(Role.READ, read.site, "read.history", {"name": read.name}))
        values = {"name": result if result != "its result" else fact.name, "source": source}
        yield Report(fact.site, points, values, confidence(fact.sure))
    elif taken and fact.held and not fact.name.endswith(")") and not fact.result.endswith(")"):
        # What a helper returns, and nobody uses beside what it was given, may be there to be cut.
        yield Report(fact.site, (cut,), {"name": result, "source": fact.name}, confidence(fact.sure), "bound")


def _is_meant(fact: DetachedInPlace, read: ReadAfterCut) -> bool:
    """Whether an element of a list or tuple was taken out by name, to be cut where it stands: `h, c = state`."""
    if fact.consumer != "statement" or len(read.links) != 1 or not read.name.endswith("]"):
        return False
    link = read.links[0]
    return link.how is None and link.source == read.name and link.result == fact.name
