"""Which checks there are: every module of `checks` that has a page of the same stem.

Nothing is registered by hand. `rules/state-dict-by-reference.md` and `checks/state_dict_by_reference.py` are one rule.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from torchcopylint import checks
from torchcopylint.base.report import Report
from torchcopylint.flow.facts import UnitFacts
from torchcopylint.pages import Page, load_pages

Check: TypeAlias = "Callable[[UnitFacts], Iterator[Report]]"


class Rule(NamedTuple):
    """A page and the check that goes with it."""

    page: Page
    check: Check


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule that has a check, in order of code."""
    modules = {name for _, name, _ in pkgutil.iter_modules(checks.__path__) if not name.startswith("_")}
    found = []
    for page in load_pages().values():
        stem = page.name.replace("-", "_")
        if stem in modules:
            module = importlib.import_module(f"torchcopylint.checks.{stem}")
            found.append(Rule(page, module.check))
    return tuple(found)
