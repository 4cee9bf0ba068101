"""The examples of the pages with their values handed about in other ways: through helpers, containers, objects, files.

Torch says that each variant does what the original does. In how many of them the linter says the same is counted, way
by way, in the table of `docs/precision.md`, which `python -m tests.travel_table --write` writes.
"""

from __future__ import annotations

import pytest
from metamorphic.outlining import Rewritten
from metamorphic.torch_runs import runs

from tests.travel_table import DOCUMENT, GROUPS, counted, originals, rows, variants
from torchcopylint.pages import load_pages

# A module that the program imports is made where it looks for it.
_MODULE = """\
import sys as sys_, types as types_
module_ = sys_.modules[{name!r}] = types_.ModuleType({name!r})
exec({text!r}, module_.__dict__)
"""


def _runnable(made: Rewritten) -> str:
    modules = (_MODULE.format(name=name.removesuffix(".py"), text=text) for name, text in made.files.items())
    return "".join(modules) + made.code


@pytest.mark.parametrize("page", load_pages().values(), ids=lambda page: page.name)
def test_a_program_that_hands_its_values_about_in_another_way_is_the_same_program(page) -> None:
    for name, code in originals().items():
        if name.rsplit(" ", 2)[0] != page.name:
            continue
        chosen = list(variants(name, code))
        before, *after = runs([code, *(_runnable(variant.made) for variant in chosen)])
        changed = [(v.program, v.way, v.row) for v, effect in zip(chosen, after, strict=True) if effect != before]
        assert changed == []


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_found_of_such_programs_is_what_the_document_says(group: str) -> None:
    counts, _ = counted(GROUPS[group])
    written = DOCUMENT.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows(group, counts) if row not in written] == [], "python -m tests.travel_table --write"
