"""TCL903: `torch.autograd.Variable`, which has been a tensor like any other since torch 0.4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Constructed, UnitFacts, VolatileUsed
from torchcopylint.flow.model import TENSORS, Fact


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the calls that do something else than they seem to: no `volatile`, or a loss cut off from its network."""
    for fact in _variables(unit):
        variant = _variant(fact)
        if variant:
            step = Point(Role.CUT, fact.site, "cut.variable", {"name": fact.name})
            here = Point(Role.HERE, fact.site, "here.volatile", {})
            sure = confidence(fact.sure) if variant == "cut" else Confidence.HIGH
            yield Report(fact.site, (step if variant == "cut" else here,), _values(fact), sure, variant)
    for used in unit.facts:
        if isinstance(used, VolatileUsed):
            values = {"name": used.name.removesuffix(".volatile"), "op": used.name}
            points = (Point(Role.HERE, used.site, "here.volatile", {}),)
            yield Report(used.site, points, values, confidence(used.sure), "volatile")


def check_file(units: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report the harmless calls: the first of a file, and all others as its repetitions.

    Old code has hundreds of them. One says all there is to say; the others are shown to whoever asks for them.
    """
    harmless = [fact for unit in units for fact in _variables(unit) if not _variant(fact)]
    for number, fact in enumerate(sorted(harmless, key=lambda fact: fact.site)):
        points = (Point(Role.HERE, fact.site, "here.variable", {}),)
        yield Report(fact.site, points, _values(fact), Confidence.HIGH, "again" if number else "")


def _variables(unit: UnitFacts) -> list[Constructed]:
    return [f for f in unit.facts if isinstance(f, Constructed) and f.function == "torch.autograd.Variable"]


def _variant(fact: Constructed) -> str:
    if fact.recording is Fact.NO:
        return ""
    if "volatile" in fact.flags:
        return "volatile"
    # A new leaf is what an attack on its inputs wants. Of a loss, nobody wants the gradient.
    history = fact.kind in TENSORS and fact.history is Fact.YES and fact.requires_grad > 0
    return "cut" if history and fact.traced and fact.scalar is Fact.YES else ""


def _values(fact: Constructed) -> dict[str, str]:
    return {"name": fact.name if fact.name != "..." else "(...)", "op": fact.op}
