"""The register of functions that have a meaning of their own, by their canonical dotted names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import PLACEHOLDER, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.sites import Arguments

Handler: TypeAlias = "Callable[[Machine, Arguments, t.Call | t.Invoke, str], Value]"
SPECIAL: dict[str, Handler] = {}
EACH = frozenset({PLACEHOLDER})
"""The flag of what stands for each of several things."""


def special(*names: str) -> Callable[[Handler], Handler]:
    """Register the meaning of some functions by their canonical dotted names."""

    def register(function: Handler) -> Handler:
        for name in names:
            SPECIAL[name] = function
        return function

    return register


def receiver_text(m: Machine, event: t.Call | t.Invoke) -> str:
    """The first positional argument of a call as the user wrote it; `...` if there is none."""
    first = next((a.register for a in event.arguments if not a.keyword and not a.stars), -1)
    return naming.text_of(m, first) if first >= 0 else "..."
