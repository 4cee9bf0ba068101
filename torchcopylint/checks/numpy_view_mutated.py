"""TCL402: a tensor and the array taken from it: one is written, the other is still wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.report import Report
from torchcopylint.checks import _arrays
from torchcopylint.flow.facts import UnitFacts
from torchcopylint.flow.model import How

OF_GUESTS = True

INTO_HELPERS = True
FIELDS_ONCE = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes on either side of `.numpy()` and its like."""
    return _arrays.reports(unit, How.NUMPY)


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report where both are fields of one object, and a method edits one of them."""
    return _arrays.of_fields(methods, How.NUMPY)
