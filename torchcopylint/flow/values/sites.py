"""What a call brings along: its arguments, and how the user wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torchcopylint.flow.model import UNKNOWN, Kind, Value

STATISTICS = "statistics"
"""The form of a write of what an operation keeps count in, beside its result and behind the version counter."""
WRITING_KEYWORDS = frozenset({"out", "max_norm"})
"""Keywords that make a function write: its output, or the table of an embedding, which `max_norm` renormalises."""


class Arguments(NamedTuple):
    """The arguments of a call: by position (0 is the receiver of a method) and by keyword."""

    positional: Sequence[Value]
    keywords: Mapping[str, Value]

    def at(self, position: int | str) -> Value:
        """The argument at a position or under a keyword; unknown without objects if there is none."""
        if isinstance(position, str):
            return self.keywords.get(position, UNKNOWN)
        return self.positional[position] if 0 <= position < len(self.positional) else UNKNOWN

    def first(self, name: str) -> Value:
        """The first argument, which may be passed by its name; unknown without objects if there is none."""
        return self.positional[0] if self.positional else self.keywords.get(name, UNKNOWN)

    def flag(self, name: str) -> bool | None:
        """A keyword's truth value; `False` if it is absent or `None`, `None` if it is not known."""
        if name not in self.keywords:
            return False
        value = self.keywords[name]
        if value.kind is Kind.NONE and not value.refs:
            return False
        return value.const if isinstance(value.const, bool) else None

    def under_names(self, *names: str, behind: int = 1) -> Arguments:
        """The same, with what stands behind so many places passed by its name: `names` are of the places there."""
        by_place = dict(zip(names, self.positional[behind:], strict=False))
        return Arguments(self.positional[:behind], {**by_place, **self.keywords}) if by_place else self

    def without_none(self) -> Arguments:
        """The same without the keywords that say by `None` that nothing is to be written: `out=None`."""
        kept = {name: value for name, value in self.keywords.items() if not _writes_nothing(name, value)}
        return self if len(kept) == len(self.keywords) else self._replace(keywords=kept)


def _writes_nothing(name: str, value: Value) -> bool:
    return name in WRITING_KEYWORDS and value.kind is Kind.NONE and not value.refs


class Site(NamedTuple):
    """Where an operation stands: its site, the user's text of the receiver, how to name the operation."""

    site: int
    name: str
    op: str
    form: str = "method"
