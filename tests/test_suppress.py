"""Suppression comments hide what they name, and are reported where they are blanket, unused or misspelt."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from example_findings import finding, span

from torchcopylint.base.finding import Finding
from torchcopylint.pages import load_pages
from torchcopylint.project.select import RuleIndex
from torchcopylint.source.suppress import Outcome, Suppressions

INDEX = RuleIndex(load_pages())


def apply(text: str, *findings: Finding, enabled: Callable[[str], bool] = lambda code: True) -> Outcome:
    return Suppressions(text, INDEX.expand, INDEX.names).apply(findings, enabled)


def hides(text: str, code: str = "TCL104", row: int = 1, end_row: int | None = None) -> bool:
    """Whether the comments of a text hide a finding whose statement stands on these rows."""
    outcome = apply(text, finding(code, span(row, 1, 2), statement=span(row, 1, 2, end_row)))
    return bool(outcome.suppressed)


def problems(
    text: str, *findings: Finding, enabled: Callable[[str], bool] = lambda code: True
) -> list[tuple[str, str]]:
    """The rules that report, with the code that they name."""
    outcome = apply(text, *findings, enabled=enabled)
    return [(problem.code, problem.values.get("code", "")) for problem in outcome.problems]


@pytest.mark.parametrize(
    "comment",
    [
        "# torchcopylint: ignore[TCL104]",
        "#torchcopylint:ignore[tcl104]",
        "# torchcopylint: ignore [ TCL701 , TCL104 ]",
        "# torchcopylint: ignore[data-read]",
        "# torchcopylint: ignore[TCL1]",
        "# torchcopylint: ignore[TCL104] because the loader owns it",
        "# type: ignore  # torchcopylint: ignore[TCL104]",
        "# TorchCopyLint: Ignore[TCL104]",
        "# noqa: TCL104",
        "# NOQA:E501,TCL104",
        "# noqa: TCL104 E501",
        "# noqa : TCL104 because",
        "# noqa",
        "# noqa because it is old code",
        "# torchcopylint: ignore",
        "# torchcopylint: ignore because",
    ],
)
def test_a_comment_on_the_line_hides_the_finding(comment: str) -> None:
    assert hides(f"y = x.data  {comment}\n")


@pytest.mark.parametrize(
    "comment",
    [
        "# torchcopylint: ignore[TCL701]",
        "# torchcopylint: ignore[TCL7]",
        "# torchcopylint: ignored[TCL104]",
        "# torchcopylint: ignore TCL104",
        "# torchcopylint: ignore[TCL104",
        "# torchcopylint ignore[TCL104]",
        "# noqa: E501",
        "# noqa: because",
        "# noqa:because",
        "# noqable",
        "# flake8: noqa",
        "# ruff: noqa",
        "# see torchcopylint",
        "# do not write torchcopylint: ignore[TCL104]",
    ],
)
def test_another_comment_hides_nothing(comment: str) -> None:
    assert not hides(f"y = x.data  {comment}\n")


def test_a_string_that_looks_like_a_suppression_hides_nothing() -> None:
    assert not hides('y = x.data, "# torchcopylint: ignore[TCL104]"\n')


@pytest.mark.parametrize("row", [2, 3, 4])
def test_it_may_stand_on_any_line_of_the_statement(row: int) -> None:
    lines = ["a = 1", "y = f(", "    x.data,", ")", "b = 2"]
    lines[row - 1] += "  # torchcopylint: ignore[TCL104]"
    assert hides("\n".join(lines), row=2, end_row=4)


@pytest.mark.parametrize("row", [1, 5])
def test_on_a_line_beside_the_statement_it_hides_nothing(row: int) -> None:
    lines = ["a = 1", "y = f(", "    x.data,", ")", "b = 2"]
    lines[row - 1] += "  # torchcopylint: ignore[TCL104]"
    assert not hides("\n".join(lines), row=2, end_row=4)


def test_a_statement_that_ends_at_the_start_of_a_line_does_not_reach_that_line() -> None:
    text = "y = x.data\nz = 1  # torchcopylint: ignore[TCL104]\n"
    outcome = apply(text, finding(statement=span(1, 1, 1, 2)))
    assert not outcome.suppressed


def test_alone_on_the_line_before_it_hides_the_finding() -> None:
    assert hides("# torchcopylint: ignore[TCL104]\ny = x.data\n", row=2)


def test_other_comments_may_stand_in_between() -> None:
    assert hides("    # torchcopylint: ignore[TCL104]\n    # the loader owns it\n    y = x.data\n", row=3)


def test_an_empty_line_may_not() -> None:
    assert not hides("# torchcopylint: ignore[TCL104]\n\ny = x.data\n", row=3)


def test_behind_code_it_does_not_reach_the_next_line() -> None:
    assert not hides("a = 1  # torchcopylint: ignore[TCL104]\ny = x.data\n", row=2)


def test_a_noqa_alone_on_the_line_before_hides_nothing() -> None:
    assert not hides("# noqa: TCL104\ny = x.data\n", row=2)


@pytest.mark.parametrize("row", [1, 2, 99])
def test_for_the_file_it_hides_findings_anywhere(row: int) -> None:
    assert hides("# torchcopylint: ignore-file[TCL1]\n" * 3, row=row)


@pytest.mark.parametrize("code", ["TCL000", "TCL005"])
@pytest.mark.parametrize("verb", ["ignore", "ignore-file"])
def test_what_was_not_checked_cannot_be_hidden(verb: str, code: str) -> None:
    assert not hides(f"# torchcopylint: {verb}[{code}]\n", code)
    assert not hides(f"# torchcopylint: {verb}\n", code)


def test_a_skipped_file_is_hidden_by_its_code_but_not_by_a_blanket() -> None:
    assert hides("# torchcopylint: ignore-file[TCL004]\n", "TCL004")
    assert not hides("# torchcopylint: ignore-file\n", "TCL004")


def test_a_blanket_is_reported_and_hides() -> None:
    outcome = apply("y = x.data  # torchcopylint: ignore\n", finding())
    assert outcome.suppressed
    (problem,) = outcome.problems
    assert problem.code == "TCL001"
    assert problem.span == span(1, 13, 36)


@pytest.mark.parametrize("comment", ["ignore-file", "ignore[]", "ignore[ , ]"])
def test_every_form_without_codes_is_a_blanket(comment: str) -> None:
    assert ("TCL001", "") in problems(f"y = x.data  # torchcopylint: {comment}\n", finding())


def test_a_bare_noqa_is_not_reported() -> None:
    assert problems("y = x.data  # noqa\n", finding()) == []
    assert problems("y = x  # noqa\n") == []


def test_a_blanket_does_not_hide_that_it_is_one_but_a_code_does() -> None:
    text = "y = x.data  # torchcopylint: ignore\n"
    assert problems(text, finding()) == [("TCL001", "")]
    assert problems("# torchcopylint: ignore-file[TCL001]\n" + text, finding(where=span(2, 1, 2))) == []


def test_a_code_that_hides_nothing_is_unused() -> None:
    outcome = apply("y = x  # torchcopylint: ignore[TCL104]\n")
    (problem,) = outcome.problems
    assert (problem.code, problem.values) == ("TCL002", {"code": "TCL104"})
    assert problem.span == span(1, 32, 38)


def test_of_several_codes_only_the_unused_one_is_reported() -> None:
    assert problems("y = x.data  # torchcopylint: ignore[TCL104, data-write]\n", finding()) == [
        ("TCL002", "data-write")
    ]


def test_a_blanket_that_hides_nothing_is_unused_as_well() -> None:
    assert problems("y = x  # torchcopylint: ignore\n") == [("TCL001", ""), ("TCL002", "every rule")]


def test_a_suppression_is_used_if_it_hides_a_finding_that_another_one_hides_too() -> None:
    text = "# torchcopylint: ignore-file[TCL1]\ny = x.data  # torchcopylint: ignore[TCL104]\n"
    assert problems(text, finding(where=span(2, 1, 2))) == []


def test_a_rule_that_cannot_report_in_this_run_is_never_unused() -> None:
    text = "y = x  # torchcopylint: ignore[TCL104, TCL7]\n"
    assert problems(text, enabled=lambda code: code == "TCL701") == [("TCL002", "TCL7")]
    assert problems(text, enabled=lambda code: False) == []


def test_codes_in_a_noqa_are_neither_unused_nor_unknown() -> None:
    assert problems("y = x  # noqa: TCL104, TCL999, F401\n") == []


def test_an_unknown_code_is_reported_with_the_nearest() -> None:
    outcome = apply("y = x  # torchcopylint: ignore[TLC104]\n")
    (problem,) = outcome.problems
    assert (problem.code, problem.values) == ("TCL003", {"code": "TLC104", "nearest": "TCL104"})
    assert problem.span == span(1, 32, 38)


def test_a_code_that_is_near_nothing_has_no_advice() -> None:
    (problem,) = apply("y = x  # torchcopylint: ignore[whatever-this-is]\n").problems
    assert not problem.advised


def test_a_known_code_beside_an_unknown_one_still_counts() -> None:
    assert problems("y = x.data  # torchcopylint: ignore[TCL104, TCL9999]\n", finding()) == [("TCL003", "TCL9999")]


@pytest.mark.parametrize(
    ("comment", "written", "meant"),
    [
        ("ignroe[TCL104]", "ignroe", "ignore"),
        ("ignore-flie[TCL104]", "ignore-flie", "ignore-file"),
        ("disable[TCL104]", "disable", "ignore"),
        ("ignore[TCL104", "ignore[TCL104", "ignore[TCL104]"),
        ("ignore TCL104", "ignore TCL104", "ignore[TCL104]"),
        ("ignore: TCL104", "ignore TCL104", "ignore[TCL104]"),
        ("ignore(TCL104)", "ignore TCL104", "ignore[TCL104]"),
        ("ignore-file data-read", "ignore-file data-read", "ignore-file[data-read]"),
    ],
)
def test_a_misspelt_suppression_hides_nothing_and_is_reported(comment: str, written: str, meant: str) -> None:
    outcome = apply(f"y = x.data  # torchcopylint: {comment}\n", finding())
    assert not outcome.suppressed
    (problem,) = outcome.problems
    assert (problem.code, problem.values) == ("TCL003", {"code": written, "nearest": meant})


def test_a_remark_about_the_tool_is_no_suppression() -> None:
    assert problems("# torchcopylint: see docs/usage.md\n") == []


def test_reports_about_suppressions_can_be_hidden_by_their_codes() -> None:
    assert problems("y = x  # torchcopylint: ignore[TCL104, TCL002]\n") == []
    assert problems("y = x  # torchcopylint: ignore[TCL9999, TCL003]\n") == []


def test_hiding_unused_suppressions_where_there_are_none_is_unused() -> None:
    assert problems("y = x  # torchcopylint: ignore[TCL002]\n") == [("TCL002", "TCL002")]
