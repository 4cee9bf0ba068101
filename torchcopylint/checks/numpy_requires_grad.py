"""TCL403: an array is made of a tensor that requires grad."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, mode_is_on
from torchcopylint.flow.facts import NumpyRefused, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each `.numpy()` and `np.array(...)` of such a tensor, where some evidence says that autograd records."""
    for fact in unit.facts:
        if not isinstance(fact, NumpyRefused):
            continue
        mode = mode_is_on(unit, fact.assumed, local=False, reads=True)
        if mode is None:
            continue
        if fact.beside and mode is Confidence.LOW:
            mode = Confidence.MEDIUM
        name = fact.name if fact.name != "..." else "(...)"
        yield Report(
            site=fact.site,
            points=(Point(Role.READ, fact.site, "read.numpy", {"name": name}),),
            values={"name": name, "op": fact.op},
            confidence=at_most(mode, confidence(fact.sure)),
        )
