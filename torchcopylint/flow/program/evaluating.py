"""Methods that Lightning calls with recording off: what its loops for validation, tests and predictions call.

`trainer.fit` validates in between; all of it, hooks included, runs under `no_grad` or in inference mode
(`lightning/pytorch/loops/evaluation_loop.py`, `prediction_loop.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torchcopylint.flow import tape as t

_PACKAGES = frozenset({"lightning", "pytorch_lightning"})
_BASE = "LightningModule"
_CALLED = re.compile(
    r"(?:validation|test|predict)_(?:step|step_end|epoch_end)|"
    r"on_(?:validation|test|predict)_(?:start|end|(?:epoch|batch)_(?:start|end)|model_eval)"
)


def is_called_by_loops(unit: t.Unit, bases: Iterable[str], units: Sequence[t.Unit]) -> bool:
    """Whether such a loop calls a method, of a class with these bases (by their full names), and, as far as the class
    and the functions of the file go, nobody else does."""
    if not _CALLED.fullmatch(unit.name):
        return False
    if not is_lightning(bases):
        return False
    callers = [one for one in units if one.owner in (-1, unit.owner) and not _CALLED.fullmatch(one.name)]
    calls = (event for one in callers for event in one.definitions)
    return not any(isinstance(event, t.Invoke) and event.name == unit.name for event in calls)


def is_lightning(bases: Iterable[str]) -> bool:
    """Whether a class with these bases (by their full names) is one that Lightning's loops call."""
    return any(base.partition(".")[0] in _PACKAGES or base.rpartition(".")[2] == _BASE for base in bases)
