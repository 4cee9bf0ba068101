"""TCL202: a versioned write changes what a pending backward saved, so that backward raises."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, returns_to_training, shared_points, written_point
from torchcopylint.flow.facts import Clobbered, LayerSpoils, UnitFacts, Write

INTO_HELPERS = True
ACROSS_CALLS = True
_CACHE = re.compile(r"(?:^|[._])(?:past_key_value|past_state|inference_param|(?:\w+_)?cache(?:_|s?\b))")
"""How it is called what decoding goes on from: `past_key_values`, `cache_params.ssm_states`, `kv_cache`."""


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each versioned write that spoils a saved value which backward reaches afterwards; once per write."""
    seen: set[int] = set()
    for fact in unit.facts:
        if isinstance(fact, LayerSpoils):
            yield _of_layers(fact)
        if not isinstance(fact, Clobbered) or fact.write in seen or not fact.certain or fact.hidden:
            continue
        write = unit.writes[fact.write]
        if not write.versioned or (fact.consumer == "return" and not _is_trained_with(unit, write)):
            continue
        seen.add(fact.write)
        yield _report(fact, write)


def _of_layers(fact: LayerSpoils) -> Report:
    """Whether the chain that they stand in is trained, its caller knows."""
    names = {"name": fact.name, "op": fact.op}
    points = (
        Point(Role.SAVED, fact.kept, "saved.output", names),
        Point(Role.WRITTEN, fact.site, "written.told", {"op": fact.name}),
    )
    return Report(fact.site, points, names, at_most(Confidence.MEDIUM, confidence(fact.sure)), "chain")


def _report(fact: Clobbered, write: Write) -> Report:
    saved = fact.saved
    found = confidence(fact.sure)
    if fact.consumer == "return" or saved.what == "network":
        # Of a network of another file, nobody knows whether it has the two layers that make it need its parameters.
        found = at_most(Confidence.MEDIUM, found)
    variant = "step" if _is_step(write) else "activation" if write.form == "activation" else ""
    read = "read.backward" if fact.consumer == "backward" else "read.pending"
    later = ".next" if fact.consumer == "backward" and fact.site < fact.write else ""
    return Report(
        site=fact.write,
        points=(
            Point(Role.SAVED, saved.site, f"saved.{saved.what}", {"op": saved.op, "name": saved.name}),
            *shared_points(() if _is_step(write) else fact.links),
            written_point(write),
            Point(Role.READ, fact.site, read + later, {"name": saved.name, "target": ""}),
        ),
        values={"name": write.name, "op": write.op, "cause": write.cause},
        confidence=found,
        variant=variant,
    )


def _is_step(write: Write) -> bool:
    return write.form in ("step", "load")


def _is_trained_with(unit: UnitFacts, write: Write) -> bool:
    """Whether backward follows what a unit returns: a function that feeds one in this file does, and `forward`.

    What one step of decoding has left in a cache for the next one, nobody trains with.
    """
    if _CACHE.search(write.root):
        return False
    return not _is_step(write) and ((unit.feeds_backward and unit.kind == "function") or returns_to_training(unit))
