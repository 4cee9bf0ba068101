"""124 faults of copying in PyTorch, each with a twin that is right, in the order of how much they cost.

`semantics/*.md` has a section for each: its number, the codes of the rules one of which is to report it, a sentence.
The bad program is to be found as soon as one of those rules has a page; until then nothing is asked of it. A line
`missed: ...` names a fault that the rules do not find yet, and why; one that is found after all fails. `partial: ...`
says that the right program is not silent yet. Both programs are executed, and assert what happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from running.runner import Runner

from torchcopylint import check_source
from torchcopylint.pages import load_pages

PRELUDE = """\
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
"""What every program starts with; the fences leave it out."""

_HEADING = re.compile(r"(?P<number>\d+) (?P<codes>TCL\d{3}(?:, TCL\d{3})*) (?P<sentence>[A-Z`].*[^.])")


class Entry(NamedTuple):
    """One fault and its twin. `missed` and `partial` are the reasons that stand under the heading, or empty."""

    number: int
    codes: tuple[str, ...]
    sentence: str
    bad: str
    good: str
    missed: str
    partial: str

    @property
    def due(self) -> set[str]:
        """The codes that have a rule by now."""
        return set(self.codes) & load_pages().keys()


def entries() -> Iterator[Entry]:
    for path in sorted((Path(__file__).parent / "semantics").glob("*.md")):
        for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, rest = section.partition("\n")
            match = _HEADING.fullmatch(heading)
            assert match, f"{path.name}: {heading}"
            fences = re.findall(r"^```python (\w+)\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
            assert [kind for kind, _ in fences] == ["bad", "good"], heading
            noted = dict(re.findall(r"^(missed|partial): (.+)$", rest, re.MULTILINE))
            bad, good = (PRELUDE + code for _, code in fences)
            yield Entry(
                int(match["number"]),
                tuple(match["codes"].split(", ")),
                match["sentence"],
                bad,
                good,
                noted.get("missed", ""),
                noted.get("partial", ""),
            )


ENTRIES = list(entries())
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=[f"{e.number}: {e.sentence}" for e in ENTRIES])


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def reported(code: str) -> set[str]:
    return {finding.code for finding in check_source(code, "example.py", preset="strict")}


@every_entry
def test_the_fault_is_found_if_its_rule_is_there(entry: Entry) -> None:
    found = entry.due & reported(entry.bad)
    if entry.missed:
        assert entry.due, "a rule that is not there yet misses nothing"
        assert not found, "found after all: remove `missed`"
    else:
        assert found or not entry.due


@every_entry
def test_the_right_program_is_silent(entry: Entry) -> None:
    found = check_source(entry.good, "example.py")
    if entry.partial:
        assert found, "silent after all: remove `partial`"
    else:
        assert [f"{f.span.start.row}: {f.code} {f.message}" for f in found] == []


@every_entry
def test_torch_does_what_the_programs_say(entry: Entry, runner: Runner) -> None:
    raising = {row for row, line in enumerate(entry.bad.splitlines(), start=1) if line.endswith("# <- raises")}
    raised = runner.run(entry.bad).raised
    assert ({raised.line} if raised else set()) == raising, raised
    assert runner.run(entry.good).raised is None


def test_the_entries_are_numbered_in_order() -> None:
    assert [entry.number for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
