"""TCL210: `backward` or a gradient hook writes the gradient that it is handed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence
from torchcopylint.base.report import Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    PLAIN_HOWS,
    at_most,
    confidence,
    shared_points,
    writes_of_argument,
    written_point,
)
from torchcopylint.flow.facts import ConditionalWrite, UnitFacts, Write
from torchcopylint.flow.model import ARGUMENT, FIELD, How

ACROSS_CALLS = True

HOWS = PLAIN_HOWS | {How.CONDITIONAL}


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write to an argument of `backward` of a `Function`, or of a gradient hook."""
    if unit.roles & {"backward", "gradient hook"}:
        yield from _converted(unit)
        for write in (*writes_of_argument(unit), *_of_several(unit)):
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            yield Report(
                site=write.site,
                points=(*shared_points(links), written_point(write)),
                values={"name": write.owner_name, "op": write.op},
                confidence=at_most(
                    Confidence.MEDIUM if write.owner == FIELD else Confidence.HIGH, confidence(write.sure)
                ),
                variant="hook" if "gradient hook" in unit.roles else "",
            )


def _of_several(unit: UnitFacts) -> Iterator[Write]:
    """The writes of a hook of a module to what stands in the tuples of gradients that it is handed."""
    for write in unit.writes.values() if "gradient hook" in unit.roles else ():
        surely = len(write.storages) == 1 and all(link.sure and not link.when for link in write.chain)
        tuple_, bracket, _ = write.owner_name.partition("[")
        handed = bool(bracket) and tuple_ in unit.parameters - {unit.receiver}
        if surely and handed and write.owner == FIELD and write.form in DIRECT_FORMS:
            yield write


def _converted(unit: UnitFacts) -> Iterator[Report]:
    """Writes to what a conversion made of the gradient, which mostly has nothing to convert: `grad.contiguous()`."""
    for fact in unit.facts:
        if not isinstance(fact, ConditionalWrite) or fact.owner != ARGUMENT or not fact.source.isidentifier():
            continue
        write = unit.writes[fact.site]
        if write.form in DIRECT_FORMS and {link.how for link in fact.links} <= HOWS:
            yield Report(
                site=fact.site,
                points=(*shared_points(tuple(reversed(fact.links))), written_point(write)),
                values={"name": fact.name, "op": write.op, "source": fact.source, "when": fact.when},
                confidence=at_most(Confidence.MEDIUM, confidence(write.sure, fact.sure)),
                variant="converted",
            )
