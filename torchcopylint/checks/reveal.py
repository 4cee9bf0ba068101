"""TCL006: the answer to a question that a comment asked."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import shared_points, written_point
from torchcopylint.flow.facts import Known, Revealed, Sharer, UnitFacts
from torchcopylint.flow.model import TENSORS, Fact, Kind, Sure

_FACTS = {Fact.YES: "yes", Fact.LIKELY: "likely", Fact.NO: "no", Fact.UNKNOWN: "unknown"}
_SURES = {
    Sure.PROVEN: "proven",
    Sure.LIKELY: "likely, by its use",
    Sure.HINT: "a guess, by its name",
    Sure.NOT: "unproven",
}


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report what is known of each name that was asked about, with the places where it came to be so."""
    for fact in unit.facts:
        if isinstance(fact, Revealed):
            shared = [point for sharer in fact.sharers for point in shared_points(sharer.links)]
            written = [written_point(unit.writes[site]) for site in fact.writes]
            points = {(point.site, point.role, point.names["source"], point.names["result"]): point for point in shared}
            yield Report(
                site=fact.site,
                points=(
                    *sorted([*points.values(), *written], key=lambda point: point.site),
                    Point(Role.HERE, fact.site, "here.reveal", {"name": fact.name}),
                ),
                values={"name": fact.name or "reveal", "value": _answer(fact)},
                confidence=Confidence.HIGH,
            )


def _answer(fact: Revealed) -> str:
    if not fact.reached:
        return "never looked at: this place is not reached"
    if not fact.bound:
        named = fact.name and all(part.isidentifier() for part in fact.name.split("."))
        how = "not bound" if named else "no name or dotted path; ask as in reveal[x], reveal[self.weight]"
        return f"{how}; grad mode: {_mode(fact)}"
    things = list(dict.fromkeys([*map(_thing, fact.objects), *((fact.plain,) if fact.plain else ())]))
    parts = [" or ".join(things)]
    if fact.sharers:
        parts.append(f"shared with {', '.join(_sharer(sharer) for sharer in fact.sharers)}")
    elif fact.objects:
        parts.append("no other name here holds its memory")
    return "; ".join([*parts, f"grad mode: {_mode(fact)}"])


def _thing(known: Known) -> str:
    """One object, in one phrase."""
    if known.kind is Kind.UNKNOWN:
        return "unknown"
    article = "an" if known.kind.value[0] in "aeio" else "a"
    parts = [f"{article} {known.kind.value} ({_SURES[known.sure]})"]
    if known.kind in (Kind.MODULE, Kind.OPTIMIZER) and known.type and not known.type.startswith("class#"):
        parts = [f"{article} {known.kind.value} `{known.type.rpartition('.')[2]}` ({_SURES[known.sure]})"]
    if known.kind in TENSORS:
        parts += [f"leaf: {_FACTS[known.leaf]}", f"requires grad: {_FACTS[known.requires_grad]}"]
    parts += [f"dtype: {known.dtype}"] if known.dtype else []
    return ", ".join([*parts, f"memory: {' or '.join(_memory(*place) for place in known.memory) or 'unknown'}"])


def _memory(owner: str, when: str) -> str:
    place = f"that of `{owner}`" if owner else "its own"
    return f"{place} ({when})" if when else place


def _sharer(sharer: Sharer) -> str:
    parts = ["another part"] if sharer.overlap is Fact.NO else []
    parts += [] if sharer.sure else ["not surely"]
    return f"`{sharer.name}`" + (f" ({', '.join(parts)})" if parts else "")


def _mode(fact: Revealed) -> str:
    if fact.inference > 0:
        return "inference"
    mode = {Fact.YES: "on", Fact.LIKELY: "likely on", Fact.NO: "off", Fact.UNKNOWN: "unknown"}[fact.recording]
    return f"{mode}, assumed" if fact.assumed else mode
