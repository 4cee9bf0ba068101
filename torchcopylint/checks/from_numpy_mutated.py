"""TCL401: an array and the tensor made over its memory: one is written, the other is still wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.report import Report
from torchcopylint.checks import _arrays
from torchcopylint.flow.facts import UnitFacts
from torchcopylint.flow.model import How

ACROSS_CALLS = True
FIELDS_ONCE = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes on either side of `from_numpy` and its like."""
    return _arrays.reports(unit, How.FROM_NUMPY)


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report where both are fields of one object, and a method edits one of them."""
    return _arrays.of_fields(methods, How.FROM_NUMPY)
