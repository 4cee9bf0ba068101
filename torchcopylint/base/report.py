"""What a rule's check hands out: a finding by sites and names, before lines, columns and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchcopylint.base.finding import Confidence, Role


class Point(NamedTuple):
    """One step of a narration: its role, its site, the key of its phrase and the names that the phrase needs."""

    role: Role
    site: int
    phrase: str
    names: Mapping[str, str]


class Report(NamedTuple):
    """One finding of one rule. `site` is the blamed one; `values` fill the page's placeholders. `instead` is the step
    where it stands if the blamed one happens in a helper of whom it is not wrong, and this one does not."""

    site: int
    points: tuple[Point, ...]
    values: Mapping[str, str]
    confidence: Confidence
    variant: str = ""
    instead: Point | None = None
