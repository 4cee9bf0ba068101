"""The form of the rule pages: keys, closed sets, sections, examples and the expectations marked in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchcopylint.base.finding import Confidence, Effect, Role, Severity
from torchcopylint.pages import REQUIRED_KEYS, RULE_KEYS, SECTIONS, Example, Page, PageError, load_pages, parse_page
from torchcopylint.verify.judge import EFFECTLESS, rule_of
from torchcopylint.verify.predicates import ALTERED, PREDICATES

CHECKS = Path(__file__).resolve().parent.parent / "torchcopylint" / "checks"
PAGES = tuple(load_pages().values())
TOOL_PAGES = tuple(page for page in PAGES if page.family == "TCL0")
RULE_PAGES = tuple(page for page in PAGES if page.family != "TCL0")
EXAMPLES = tuple((page, example) for page in PAGES for example in page.examples)

TOOL_SECTIONS = ("What it finds", "Why it matters", "When it stays silent", "References")
FIXES = {"none", "safe", "unsafe", "display"}
OBSERVATIONS = set(PREDICATES) | EFFECTLESS
"""What can confirm a rule; a page names one or several. `none: reason` says that nothing can."""
PLACEHOLDERS = {
    "name": "the blamed thing as the user wrote it: `w`, `self.best`, `conv.weight`",
    "source": "what it was taken from or shares with, as written; of an assignment, its right side",
    "op": "the operation as the user would name it: `add_`, `+=`, `[...] =`, `torch.no_grad()`",
    "cause": "what writes, as a call: `optimizer.step()`",
    "when": "the condition of a conditional copy: when the dtype already matches",
    "context": "the idiom's context with its article: an initialiser, an EMA update, an optimizer step",
}
"""What the messages of rules are filled from, and what stands for what. Texts only: the backticks are the page's."""
TOOL_PLACEHOLDERS = {"name", "reason", "code", "nearest", "limit", "value", "maximum", "option"}
LONGEST_MESSAGE = 100
SHORTEST_EXAMPLE, LONGEST_EXAMPLE = 8, 30


def by_name(pages: tuple[Page, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=[page.name for page in pages])


every_page = by_name(PAGES)
every_rule_page = by_name(RULE_PAGES)
every_tool_page = by_name(TOOL_PAGES)
every_example = pytest.mark.parametrize(
    ("page", "example"), EXAMPLES, ids=[f"{page.name}:{example.row}" for page, example in EXAMPLES]
)


def messages(page: Page) -> list[str]:
    return [page.get("message", variant) for variant in ("", *page.variants)]


def marked(example: Example, what: str) -> list[int]:
    return [mark.row for mark in example.marks if mark.what == what]


def shown_variants(page: Page) -> set[str]:
    return {mark.variant for example in page.examples for mark in example.marks if mark.what == "finding"}


def test_there_are_pages_of_both_kinds() -> None:
    assert len(TOOL_PAGES) == 7
    assert len(RULE_PAGES) >= 20


@every_page
def test_title_is_the_file_name(page: Page) -> None:
    assert page.title == page.name
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", page.name)


@every_page
def test_code_is_well_formed(page: Page) -> None:
    assert re.fullmatch(r"TCL\d{3}", page.code)


@every_tool_page
def test_tool_page_has_the_required_keys_and_no_examples(page: Page) -> None:
    assert page.keys.keys() >= REQUIRED_KEYS
    assert page.examples == ()


@every_rule_page
def test_rule_page_has_every_key_of_a_rule(page: Page) -> None:
    assert page.keys.keys() >= RULE_KEYS
    assert all(page.keys.values()), "a key without a value"


@every_page
def test_values_are_of_the_closed_sets(page: Page) -> None:
    for variant in ("", *page.variants):
        assert page.get("severity", variant) in set(Severity)
        assert page.get("default", variant) in {"on", "off"}
        assert page.get("effect", variant) in {"", *Effect}
    assert page.keys.get("confidence", "high") in set(Confidence)
    assert page.keys.get("blame", "here") in set(Role)
    assert page.keys.get("fix", "none") in FIXES


@every_rule_page
def test_confirm_names_known_observations(page: Page) -> None:
    for variant in ("", *page.variants):
        confirm = page.get("confirm", variant)
        if confirm.startswith("none: "):
            assert len(confirm) > len("none: ")
        else:
            assert set(confirm.split(", ")) <= OBSERVATIONS


@every_rule_page
def test_what_raises_names_its_exception(page: Page) -> None:
    for variant in ("", *page.variants):
        rule = rule_of(page, variant)
        assert bool(rule.raises) or not {"raises", "raises-later"} & set(rule.words)
        assert all(re.compile(pattern) and kind.isidentifier() for kind, pattern in rule.raises)


@every_rule_page
def test_the_altered_run_is_a_known_one(page: Page) -> None:
    for variant in ("", *page.variants):
        assert set(rule_of(page, variant).against) <= ALTERED.keys()


@every_page
def test_versions_are_versions(page: Page) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", page.keys["since"])
    assert re.fullmatch(r"\d+\.\d+|", page.keys.get("torch", ""))


@every_page
def test_superseded_codes_are_other_rules(page: Page) -> None:
    assert page.supersedes <= load_pages().keys() - {page.code}


@every_page
def test_what_is_info_is_off_by_default(page: Page) -> None:
    for variant in ("", *page.variants):
        assert page.enabled(variant) == (page.severity(variant) is not Severity.INFO)


@every_page
def test_sections_stand_in_order(page: Page) -> None:
    assert tuple(page.sections) == (TOOL_SECTIONS if page.family == "TCL0" else SECTIONS)
    assert all(page.sections.values()), "a section without text"


@every_page
def test_message_is_one_short_sentence(page: Page) -> None:
    for message in messages(page):
        bare = re.sub(r"\{\w+\}", "", message)
        assert len(bare) <= LONGEST_MESSAGE, f"{len(bare)} characters: {message}"
        assert not message.endswith((".", "!", " "))
        assert message.count("`") % 2 == 0


@every_page
def test_message_is_certain_and_names_no_place(page: Page) -> None:
    for message in messages(page):
        assert not re.search(r"\b(may|might|could|possibly|perhaps|probably)\b", message)
        assert not re.search(r"TCL\d|\bat line\b|\bon line \d", message)


@every_page
def test_placeholders_are_known(page: Page) -> None:
    known = TOOL_PLACEHOLDERS if page.family == "TCL0" else PLACEHOLDERS
    for variant in ("", *page.variants):
        assert page.placeholders("message", variant) <= set(known)
        assert page.placeholders("fix_title", variant) <= set(known)
    for text in page.keys.values():
        assert not re.search(r"[{}]", re.sub(r"\{\w+\}|\{\}", "", text)), f"unbalanced braces: {text}"


@every_rule_page
def test_rule_message_names_what_the_user_wrote(page: Page) -> None:
    for message in messages(page):
        assert {"{name}", "{op}"} & set(re.findall(r"\{\w+\}", message))


@every_rule_page
def test_variants_keep_the_placeholders_of_the_unnamed_message(page: Page) -> None:
    for variant in page.variants:
        assert page.placeholders("message", variant) >= page.placeholders("message")


@every_rule_page
def test_there_are_three_bad_and_three_good_examples(page: Page) -> None:
    kinds = [example.kind for example in page.examples]
    assert kinds.count("bad") >= 3
    assert kinds.count("good") >= 3


@every_rule_page
def test_every_variant_is_shown_by_a_bad_example(page: Page) -> None:
    assert shown_variants(page) == {"", *page.variants}


@every_rule_page
def test_examples_stand_in_the_section_of_their_kind(page: Page) -> None:
    for kind, section in (("bad", "Bad"), ("good", "Good")):
        count = sum(example.kind == kind for example in page.examples)
        assert page.sections[section].count(f"```python {kind}") == count


@every_page
def test_links_to_other_pages_lead_somewhere(page: Page) -> None:
    names = {other.name for other in PAGES}
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", page.body)) <= names


@every_page
def test_nothing_is_left_to_write(page: Page) -> None:
    """What `python -m tests.new_rule` left to the author is written, on the page and in the check."""
    check = CHECKS / f"{page.name.replace('-', '_')}.py"
    texts = [page.body, *page.keys.values(), check.read_text(encoding="utf-8") if check.is_file() else ""]
    assert not any(re.search(r"\bWRITE\b", text) for text in texts)


@every_example
def test_bad_examples_mark_findings_and_good_ones_do_not(page: Page, example: Example) -> None:
    assert bool(marked(example, "finding")) == (example.kind == "bad")


@every_example
def test_good_examples_mark_other_rules_at_most(page: Page, example: Example) -> None:
    if example.kind == "good":
        assert {mark.what for mark in example.marks} <= load_pages().keys() - {page.code}


@every_example
def test_marks_are_well_formed(page: Page, example: Example) -> None:
    pages = load_pages()
    for mark in example.marks:
        assert mark.what in {"finding", *Role, *pages}
        owner = page if mark.what == "finding" else pages.get(mark.what)
        assert mark.variant in {"", *(owner.variants if owner else ())}
    assert example.code.count("# <-") == len({mark.row for mark in example.marks}), "an arrow that is no mark"


@every_example
def test_the_blamed_line_also_carries_the_blamed_step(page: Page, example: Example) -> None:
    """`here` alone is not repeated: the mark `finding` says it."""
    for mark in example.marks:
        blame = page.blame(mark.variant)
        if mark.what == "finding" and blame is not Role.HERE:
            assert mark.row in marked(example, blame)
        elif mark.what == "finding":
            assert not marked(example, "here")


@every_example
def test_every_example_has_an_observed_block(page: Page, example: Example) -> None:
    assert example.observed


@every_example
def test_example_is_a_short_whole_program(page: Page, example: Example) -> None:
    compile(example.code, page.name, "exec")
    assert re.search(r"^(import|from) torch\b", example.code, flags=re.MULTILINE)
    assert "print(" in example.code or "raises " in (example.observed or "")
    lines = example.code.splitlines()
    assert SHORTEST_EXAMPLE <= len(lines) <= LONGEST_EXAMPLE
    assert max(map(len, lines)) <= 110


@every_example
def test_good_examples_end_without_an_exception(page: Page, example: Example) -> None:
    if example.kind == "good":
        assert not re.search(r"^(raises|warns) ", example.observed or "", flags=re.MULTILINE)


@every_example
def test_what_raises_is_the_line_of_the_finding(page: Page, example: Example) -> None:
    raising = [mark.row for mark in example.marks if mark.what == "finding" and page.effect(mark.variant) == "raises"]
    # Where a graph is cut or kept, torch raises at the step that reads it.
    reading = [mark.row for mark in example.marks if mark.what == "read" and page.blame() in (Role.CUT, Role.KEPT)]
    for row in (reading or raising) if raising else ():
        assert f" on line {row}: " in (example.observed or "") or _raises_later(page, example)


def _raises_later(page: Page, example: Example) -> bool:
    """Where backward or a caller is what raises, the finding stands at what makes it raise."""
    said = (example.observed or "").startswith("raises RuntimeError on line ")
    variants = {mark.variant for mark in example.marks if mark.what == "finding"}
    return said and any("raises-later" in page.get("confirm", variant).split(", ") for variant in variants)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# no front matter\n", "p.md:1: a page starts with front matter"),
        ("---\ncode: TCL999\nnonsense: x\n---\n", "p.md:3: unknown front matter: nonsense: x"),
        ("---\ncode: TCL999\n---\n\n# p\n\n```python bad\nx = 1\n", "p.md:7: this fence is not closed"),
        ("---\ncode: TCL999\n---\n# p\n\n```observed\nx\n```\n", "p.md:6: an observed block must follow an example"),
    ],
)
def test_what_is_wrong_with_a_page_is_told_with_its_line(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "p.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PageError, match=re.escape(told)):
        _ = parse_page(path).examples
