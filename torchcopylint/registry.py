"""Which checks there are: every module of `checks` that has a page of the same stem.

Nothing is registered by hand. `rules/state-dict-by-reference.md` and `checks/state_dict_by_reference.py` are one rule.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from torchcopylint import checks
from torchcopylint.base.report import Report
from torchcopylint.flow.facts import UnitFacts
from torchcopylint.pages import Page, load_pages

Check: TypeAlias = "Callable[[UnitFacts], Iterator[Report]]"
ClassCheck: TypeAlias = "Callable[[Sequence[UnitFacts]], Iterator[Report]]"


class Rule(NamedTuple):
    """A page and the check that goes with it.

    `check_class`, if there is one, sees all methods of a class at once, and `check_file` all units of a file.
    """

    page: Page
    check: Check
    check_class: ClassCheck | None
    check_file: ClassCheck | None = None

    def reports(self, units: Sequence[UnitFacts]) -> Iterator[Report]:
        """What the rule reports of a file's units. Of most units nothing is stated, so that no check has to look."""
        for unit in units:
            if unit.facts or unit.writes:
                yield from self.check(unit)
        if self.check_class is not None:
            classes: dict[int, list[UnitFacts]] = {}
            for unit in units:
                if unit.class_number >= 0:
                    classes.setdefault(unit.class_number, []).append(unit)
            for methods in classes.values():
                yield from self.check_class(methods)
        if self.check_file is not None:
            yield from self.check_file(units)


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule that has a check, in order of code."""
    modules = {name for _, name, _ in pkgutil.iter_modules(checks.__path__) if not name.startswith("_")}
    found = []
    for page in load_pages().values():
        stem = page.name.replace("-", "_")
        if stem in modules:
            module = importlib.import_module(f"torchcopylint.checks.{stem}")
            others = (getattr(module, "check_class", None), getattr(module, "check_file", None))
            found.append(Rule(page, module.check, *others))
    return tuple(found)
