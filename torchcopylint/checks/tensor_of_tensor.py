"""TCL902: a tensor is given to a constructor that is made for other data."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Constructed, TermCopied, UnitFacts
from torchcopylint.flow.model import TENSORS, Fact, Sure

OF_GUESTS = True
INTO_HELPERS = True
ACROSS_CALLS = True
WHERE_MADE = True

CONSTRUCTORS = frozenset({"torch.tensor", "torch.Tensor.new_tensor"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `torch.tensor(t)` and `x.new_tensor(t)`.

    An annotation is no evidence here: most functions that say `x: Tensor` and call `torch.tensor(x)` are given numbers.
    """
    for fact in unit.facts:
        if isinstance(fact, TermCopied):
            if not fact.loss:
                yield _term(fact)
            continue
        if not isinstance(fact, Constructed) or fact.function not in CONSTRUCTORS or fact.kind not in TENSORS:
            continue
        cut = fact.requires_grad > 0 and fact.recording > 0 and not fact.traced
        sure = fact.sure if not cut or fact.requires_grad is Fact.YES else min(fact.sure, Sure.LIKELY)
        name = fact.name if fact.name != "..." else "(...)"
        step = Point(Role.CUT, fact.site, "cut.copy", {"name": name})
        yield Report(
            site=fact.site,
            points=(step if cut else Point(Role.HERE, fact.site, "here.copy", {}),),
            values={"name": name, "op": fact.op},
            confidence=confidence(Sure.HINT if fact.declared and not cut else sure),
            variant="graph" if cut else "",
        )


def _term(fact: TermCopied) -> Report:
    """A term of a loss is a copy of numbers, and trains nothing."""
    names = {"name": fact.name, "op": f"{fact.op}({fact.name})"}
    points = (Point(Role.CUT, fact.site, "cut.copy", names), Point(Role.DISCARDED, fact.ran, "discarded.term", names))
    return Report(fact.site, points, names, confidence(fact.sure), "term")
