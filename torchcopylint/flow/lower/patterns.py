"""Patterns of `match`: what they bind."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower.builder import UnitBuilder
from torchcopylint.flow.lower.node import Node, kind


def always_matches(case: Node) -> bool:
    """Whether a case catches everything that is left: `case _:` or `case name:` without a guard."""
    pattern = case.pattern
    return case.guard is None and kind(pattern) == "MatchAs" and pattern.pattern is None


def lower_pattern(b: UnitBuilder, pattern: Node, subject: int) -> None:
    """Bind the names of a pattern. A name for the whole subject is the subject; parts are its elements."""
    if kind(pattern) == "MatchAs":
        if pattern.pattern is not None:
            lower_pattern(b, pattern.pattern, subject)
        if pattern.name is not None:
            b.bind(pattern.name.value, subject, pattern.name)
    elif kind(pattern) == "MatchOr":
        for option in pattern.patterns:
            lower_pattern(b, option.pattern, subject)
    elif kind(pattern) in ("MatchList", "MatchTuple"):
        for item in pattern.patterns:
            if kind(item) == "MatchStar":
                if item.name is not None:
                    b.bind(item.name.value, subject, item.name)
            else:
                lower_pattern(b, item.value, b.define(t.Iterate, item.value, subject))
    elif kind(pattern) == "MatchMapping":
        for element in pattern.elements:
            lower_pattern(b, element.pattern, b.define(t.Iterate, element.pattern, subject))
        if pattern.rest is not None:
            b.bind(pattern.rest.value, b.define(t.Const, pattern.rest, None), pattern.rest)
    elif kind(pattern) == "MatchClass":
        parts = [item.value for item in pattern.patterns] + [item.pattern for item in pattern.kwds]
        for part in parts:
            lower_pattern(b, part, b.define(t.Const, part, None))
