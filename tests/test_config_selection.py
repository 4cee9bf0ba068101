"""Which rules are reported: presets, selectors, and which of them wins."""

from __future__ import annotations

import pytest
from example_findings import finding

from torchcopylint.base.finding import Confidence, Severity
from torchcopylint.pages import load_pages
from torchcopylint.project.select import RuleIndex, Selection, UnknownSelector, choose
from torchcopylint.project.settings import Layer

PAGES = load_pages()
INDEX = RuleIndex(PAGES)


def selection(*layers: dict[str, object]) -> Selection:
    """From sources of settings, the weakest first."""
    return choose([Layer(base="", **layer) for layer in layers], INDEX)  # type: ignore[arg-type]


def shows(chosen: Selection, code: str, variant: str = "", confidence: Confidence = Confidence.HIGH) -> bool:
    return chosen.shows(finding(code, severity=PAGES[code].severity(variant), variant=variant, confidence=confidence))


def enabled(chosen: Selection, *codes: str) -> set[str]:
    return {code for code in codes if chosen.enabled(code)}


def test_a_selector_is_a_code_a_prefix_or_a_name_in_any_case() -> None:
    assert INDEX.expand("TCL104") == INDEX.expand("tcl104") == INDEX.expand("Data-Read") == {"TCL104"}
    assert INDEX.expand("TCL10") == {code for code in PAGES if code.startswith("TCL10")}
    assert INDEX.expand("TCL") == INDEX.expand("all") == set(PAGES)


@pytest.mark.parametrize("selector", ["", "TC", "TCL9999", "TCL10x", "data", "104", "TCL-1", "E501"])
def test_nothing_else_is_a_selector(selector: str) -> None:
    assert INDEX.expand(selector) == frozenset()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("TCL140", "TCL104"), ("TLC104", "TCL104"), ("data-raed", "data-read"), ("data_read", "data-read")],
)
def test_an_unknown_selector_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(UnknownSelector, match=f"there is no rule `{wrong}`; did you mean `{right}`?"):
        INDEX.require(wrong)


def test_a_code_that_resembles_none_names_the_code_with_the_nearest_number() -> None:
    with pytest.raises(UnknownSelector, match="there is no rule `TCL9999`; the nearest code is `TCL"):
        INDEX.require("TCL9999")


def test_a_word_that_resembles_no_rule_says_where_they_are_listed() -> None:
    with pytest.raises(UnknownSelector, match="there is no rule `E501`; `torchcopylint rules` lists them"):
        INDEX.require("E501")


def test_the_default_shows_errors_and_warnings_that_are_on() -> None:
    chosen = selection()
    assert shows(chosen, "TCL701")
    assert shows(chosen, "TCL104")
    assert not shows(chosen, "TCL105")
    assert not shows(chosen, "TCL103", variant="idiom")


def test_the_default_shows_high_and_medium_confidence() -> None:
    chosen = selection()
    assert shows(chosen, "TCL701", confidence=Confidence.MEDIUM)
    assert not shows(chosen, "TCL701", confidence=Confidence.LOW)


def test_bugs_shows_sure_errors_only() -> None:
    chosen = selection({"preset": "bugs"})
    assert shows(chosen, "TCL701")
    assert not shows(chosen, "TCL701", confidence=Confidence.MEDIUM)
    assert not shows(chosen, "TCL104")


def test_strict_shows_everything() -> None:
    chosen = selection({"preset": "strict"})
    assert shows(chosen, "TCL105", confidence=Confidence.LOW)
    assert shows(chosen, "TCL103", variant="idiom")


def test_selecting_shows_all_variants_and_nothing_else() -> None:
    chosen = selection({"select": ("TCL103",)})
    assert shows(chosen, "TCL103", variant="idiom")
    assert not shows(chosen, "TCL701")


def test_extending_adds_to_the_default() -> None:
    chosen = selection({"extend_select": ("TCL105",)})
    assert shows(chosen, "TCL105")
    assert shows(chosen, "TCL701")


def test_selecting_nothing_shows_only_what_is_always_shown() -> None:
    chosen = selection({"select": ()})
    assert enabled(chosen, *PAGES) == {"TCL000", "TCL004", "TCL005", "TCL006"}


@pytest.mark.parametrize("layer", [{"select": ("TCL7",)}, {"ignore": ("TCL",)}])
def test_files_that_were_not_checked_are_always_reported(layer: dict[str, object]) -> None:
    chosen = selection(layer)
    assert shows(chosen, "TCL000")
    assert shows(chosen, "TCL005")


def test_a_skipped_file_is_reported_unless_that_is_ignored_expressly() -> None:
    assert shows(selection({"select": ("TCL7",)}), "TCL004")
    assert shows(selection({"preset": "bugs"}), "TCL004")
    assert not shows(selection({"ignore": ("TCL004",)}), "TCL004")


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        (("TCL10",), ("TCL104",), {"TCL103"}),
        (("TCL104",), ("TCL10",), {"TCL104"}),
        (("data-read",), ("TCL1",), {"TCL104"}),
        (("TCL1", "TCL104"), ("TCL10",), {"TCL104"}),
        (("TCL104",), ("data-read",), set()),
        (("ALL",), ("TCL104",), {"TCL103"}),
        (("TCL103",), ("ALL",), {"TCL103"}),
    ],
)
def test_the_most_specific_selector_wins_and_ignore_among_equals(
    select: tuple[str, ...], ignore: tuple[str, ...], expected: set[str]
) -> None:
    assert enabled(selection({"select": select, "ignore": ignore}), "TCL103", "TCL104") == expected


def test_a_stronger_selection_forgets_the_weaker_source() -> None:
    chosen = selection({"select": ("TCL7",), "ignore": ("TCL104",)}, {"select": ("TCL1",)})
    assert enabled(chosen, "TCL104", "TCL701") == {"TCL104"}


def test_a_stronger_preset_keeps_what_the_weaker_source_ignores_and_adds() -> None:
    chosen = selection({"select": ("TCL7",), "ignore": ("TCL104",), "extend_select": ("TCL105",)}, {"preset": "bugs"})
    assert enabled(chosen, "TCL104", "TCL105", "TCL201") == {"TCL105", "TCL201"}


def test_a_stronger_addition_takes_back_a_weaker_ignore() -> None:
    assert enabled(selection({"ignore": ("TCL104",)}, {"extend_select": ("TCL1",)}), "TCL104") == {"TCL104"}


def test_a_stronger_preset_brings_its_own_confidence() -> None:
    chosen = selection({"min_confidence": Confidence.LOW}, {"preset": "bugs"})
    assert chosen.floor is Confidence.HIGH


def test_confidence_can_be_set_beside_a_preset() -> None:
    assert selection({"preset": "bugs", "min_confidence": Confidence.LOW}).floor is Confidence.LOW


def test_a_rule_of_which_only_one_variant_is_shown_can_report() -> None:
    assert enabled(selection(), "TCL103", "TCL105") == {"TCL103"}


def test_severity_of_the_finding_counts_not_that_of_the_rule() -> None:
    chosen = selection({"preset": "bugs"})
    assert not chosen.shows(finding("TCL301", severity=Severity.WARNING, variant="bound"))
