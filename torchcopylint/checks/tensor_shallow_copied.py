"""TCL310: `copy.copy` of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, written_point
from torchcopylint.flow.facts import ReadAfter, TensorCopied, UnitFacts, Write
from torchcopylint.flow.model import How

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each `copy.copy` of a tensor that loses a graph, or of which one side is written.

    A copy that is only read is like any second name, and comes to no harm.
    """
    written = _written(unit)
    for fact in unit.facts:
        if not isinstance(fact, TensorCopied) or fact.op != "copy":
            continue
        computed, write = fact.made >= 0, written.get(fact.site)
        if not computed and write is None:
            continue
        names = {"name": fact.name}
        phrase = "shared.copied_graph" if computed else "shared.copied"
        changed = (written_point(write),) if write is not None and not computed else ()
        yield Report(
            site=fact.site,
            points=(Point(Role.SHARED, fact.site, phrase, names), *changed),
            values=names,
            confidence=confidence(fact.sure),
            variant="graph" if computed else "",
        )


def _written(unit: UnitFacts) -> dict[int, Write]:
    """For each shallow copy, the first write of it, or of its source while it is still read."""
    found: dict[int, Write] = {}
    reads = [fact for fact in unit.facts if isinstance(fact, ReadAfter)]
    chains = [(write, write.chain) for write in unit.writes.values()]
    chains += [(unit.writes[read.write], read.links) for read in reads]
    for write, links in sorted(chains, key=lambda pair: pair[0].site):
        for link in links:
            if link.how is How.COPY:
                found.setdefault(link.site, write)
    return found
