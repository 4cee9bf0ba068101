"""TCL902: a tensor is given to a constructor that is made for other data."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Constructed, UnitFacts
from torchcopylint.flow.model import TENSORS, Fact, Sure

OF_GUESTS = True

CONSTRUCTORS = frozenset({"torch.tensor", "torch.Tensor.new_tensor"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `torch.tensor(t)` and `x.new_tensor(t)`.

    An annotation is no evidence here: most functions that say `x: Tensor` and call `torch.tensor(x)` are given numbers.
    """
    for fact in unit.facts:
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
            confidence=confidence(Sure.HINT if fact.declared else sure),
            variant="graph" if cut else "",
        )
