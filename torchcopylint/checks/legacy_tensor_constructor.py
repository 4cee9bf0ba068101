"""TCL405: a constructor from before `torch.tensor` is given a tensor or an array."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Constructed, UnitFacts
from torchcopylint.flow.model import TENSORS, Fact, Kind

OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `torch.Tensor(x)`, `torch.FloatTensor(x)` and `t.new(x)` where they share memory, or may.

    What only the call itself holds, or nobody holds when the function ends, is shared with nobody, and an array of
    another dtype is always converted. What is made in the same function is shared with nobody who does not see the
    call, or, if it is a tensor that is not used again, with nobody. Where nobody is seen to write either of the two,
    who asks for it is told.
    """
    for fact in unit.facts:
        if not isinstance(fact, Constructed) or not _is_legacy(fact.function) or fact.temporary:
            continue
        variant = _variant(fact)
        if variant is None:
            continue
        phrase = "shared.tensor" if variant == "shares" else "shared.legacy"
        points = [Point(Role.SHARED, fact.site, phrase, {"source": fact.name})]
        if variant != "local":
            points.append(Point(Role.WRITTEN, fact.written, "written.side", {"name": fact.name}))
        yield Report(
            site=fact.site,
            points=tuple(points),
            values={"name": fact.name, "op": fact.op},
            confidence=confidence(fact.sure),
            variant=variant,
        )


def _variant(fact: Constructed) -> str | None:
    variant = _sharing(fact)
    return "local" if variant is not None and fact.written < 0 else variant


def _sharing(fact: Constructed) -> str | None:
    hidden = fact.unseen and not fact.outside
    if fact.kind in TENSORS and not hidden:
        return "" if fact.function == "torch.Tensor.new" else "shares"
    if fact.kind not in (*TENSORS, Kind.ARRAY) or (fact.kind is Kind.ARRAY and fact.matches is Fact.NO):
        return None
    if not fact.outside:
        return "local"
    return "shares" if fact.matches is Fact.YES else ""


def _is_legacy(function: str) -> bool:
    return function == "torch.Tensor.new" or function.endswith("Tensor")
