"""The linter's verdict on 58 programs from tutorials, and what torch does with them."""

from __future__ import annotations

import contextlib
import io
import re
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from tutorial_claims import CLAIMS, FIRST_RULES, Claim, Place, Raised
from tutorial_errors import CHAPTERS, Wrong, reported

import torchcopylint
from torchcopylint.base.finding import Severity
from torchcopylint.pages import load_pages

FILENAME = "claim.py"
ADDRESS = re.compile(r" object at 0x[0-9a-f]+")

every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])


@dataclass(frozen=True, slots=True)
class Run:
    """What one program did: its output, its warnings with their rows, and how it ended if it raised."""

    printed: str
    warned: tuple[tuple[int, str], ...]
    raised: Raised | None


def found(program: str) -> list[Place]:
    """Row and code of every finding, in order."""
    findings = torchcopylint.check_source(program, filename=FILENAME)
    return sorted((finding.span.start.row, finding.code) for finding in findings)


def due(claim: Claim) -> list[Place]:
    """What is expected today: `expected`, and of `later` what has a rule by now that is shown by default."""
    shown = {code for code, page in load_pages().items() if page.enabled() and page.severity() is not Severity.INFO}
    return sorted([*claim.expected, *(place for place in claim.later if place[1] in shown)])


def run(program: str) -> Run:
    """Execute a program as `__main__`, seeded with 0, in this process."""
    import torch

    printed = io.StringIO()
    raised = None
    with torch.random.fork_rng(), warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        torch.manual_seed(0)
        try:
            exec(compile(program, FILENAME, "exec"), {"__name__": "__main__"})
        except Exception as error:  # the claim says which one is right
            rows = [
                frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILENAME
            ]
            raised = Raised(rows[-1], type(error).__name__, str(error))
    warned = tuple((warning.lineno, str(warning.message)) for warning in caught)
    return Run(ADDRESS.sub("", printed.getvalue()).strip(), warned, raised)


@every_claim
def test_the_linter_reports_exactly_what_the_claim_expects(claim: Claim) -> None:
    assert found(claim.program) == due(claim), claim.reason


@every_claim
def test_torch_does_what_the_claim_says(claim: Claim) -> None:
    result = run(claim.program)

    assert result.printed == claim.prints
    assert [row for row, _ in result.warned] == [row for row, _ in claim.warns]
    for (_, message), (_, beginning) in zip(result.warned, claim.warns, strict=True):
        assert message.startswith(beginning)
    if claim.raises is None or result.raised is None:
        assert result.raised == claim.raises
    else:
        assert (result.raised.row, result.raised.type) == (claim.raises.row, claim.raises.type)
        assert result.raised.message.startswith(claim.raises.message)


def test_every_claim_is_in_the_table_once_and_in_order() -> None:
    assert [claim.id for claim in CLAIMS] == [f"C{number}" for number in range(1, 59)]


@every_claim
def test_places_are_statements_of_the_program_in_order(claim: Claim) -> None:
    lines = claim.program.splitlines()

    for places in (claim.expected, claim.later):
        assert list(places) == sorted(set(places))
        for row, _ in places:
            assert lines[row - 1].strip()
            assert "import " not in lines[row - 1]


@every_claim
def test_expected_speaks_of_the_first_rules_and_later_of_others(claim: Claim) -> None:
    assert {code for _, code in claim.expected} <= FIRST_RULES
    assert not {code for _, code in claim.later} & FIRST_RULES


@every_claim
def test_the_reason_is_one_sentence(claim: Claim) -> None:
    assert re.fullmatch(r"[A-Z`].*[^.]\.", claim.reason)
    assert ". " not in claim.reason


@pytest.mark.parametrize("wrong", [wrong for entries in CHAPTERS.values() for wrong in entries], ids=lambda w: w.id)
def test_what_is_said_to_be_wrong_is_shown_by_a_program_that_runs_through(wrong: Wrong) -> None:
    """The document shows the program with what it prints, which the tests above hold against torch."""
    claim = next(claim for claim in CLAIMS if claim.id == wrong.id)
    assert claim.prints
    assert claim.raises is None
    assert reported(claim) == due(claim)


def test_every_chapter_is_in_the_document_once() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "what-tutorials-get-wrong.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- tutorials: (\w+) -->", text) == list(CHAPTERS)
