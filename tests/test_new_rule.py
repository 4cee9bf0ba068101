"""`python -m tests.new_rule` makes a rule of the right form: only what its author must write is missing."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import test_pages
from new_rule import TO_WRITE, Refused, main, new_rule
from running.runner import Runner, observed_text
from running.update import with_observed

from torchcopylint.flow.examine import examine
from torchcopylint.flow.lower import lower
from torchcopylint.pages import Page, load_pages, parse_page
from torchcopylint.source.tree import parse

PAGES = load_pages()
FREE = "TCL999"
FORM = {
    name: test
    for name, test in vars(test_pages).items()
    if name.startswith("test_") and set(inspect.signature(test).parameters) in ({"page"}, {"page", "example"})
}
ONLY_TOOL_PAGES = {"test_tool_page_has_the_required_keys_and_no_examples"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for directory in ("rules", "torchcopylint/checks", "tests/flow"):
        (tmp_path / directory).mkdir(parents=True)
    return tmp_path


def failing(page: Page) -> set[str]:
    """The tests of form that a page fails."""
    return {name for name, test in FORM.items() if name not in ONLY_TOOL_PAGES and not _passes(test, page)}


def _passes(test: Callable[..., None], page: Page) -> bool:
    takes_example = "example" in inspect.signature(test).parameters
    try:
        for example in page.examples if takes_example else (None,):
            test(page, example) if takes_example else test(page)
    except AssertionError:
        return False
    return True


def test_the_page_has_the_right_form_but_for_what_is_to_be_written_and_observed(root: Path) -> None:
    page = parse_page(new_rule(root, FREE, "some-new-rule", PAGES)[0])
    assert (page.code, page.name) == (FREE, "some-new-rule")
    assert failing(page) == {"test_nothing_is_left_to_write", "test_every_example_has_an_observed_block"}


def test_observing_and_writing_leave_nothing(root: Path) -> None:
    path = new_rule(root, FREE, "some-new-rule", PAGES)[0]
    with Runner() as runner:
        text = with_observed(path.read_text(), lambda code: observed_text(runner.run(code)))
    path.write_text(text.replace(TO_WRITE, "Written"))
    assert failing(parse_page(path)) == set()


def test_the_check_can_be_run_and_reports_nothing_yet(root: Path) -> None:
    path = new_rule(root, FREE, "some-new-rule", PAGES)[1]
    spec = importlib.util.spec_from_file_location("some_new_rule", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    facts = examine(lower(parse("import torch\nx = torch.ones(2)\nx += 1\n")).program)
    assert [list(module.check(unit)) for unit in facts.units] == [[]]


def test_the_check_is_in_the_style_of_the_house(root: Path) -> None:
    path = new_rule(root, FREE, "some-new-rule", PAGES)[1]
    config = Path(__file__).resolve().parent.parent / "pyproject.toml"
    for command in (["check"], ["format", "--check"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--config", str(config), str(path)], check=True)


def test_a_family_takes_its_next_free_code(root: Path) -> None:
    page = parse_page(new_rule(root, "tcl5", "some-new-rule", PAGES)[0])
    taken = sorted(code for code in PAGES if code.startswith("TCL5"))
    assert int(page.code[3:]) == int(taken[-1][3:]) + 1


@pytest.mark.parametrize(
    ("code", "name", "why"),
    [
        ("TCL701", "some-new-rule", "`TCL701` is the code of `state-dict-by-reference`"),
        ("TCL007", "some-new-rule", "`TCL007` is no code of a rule"),
        ("X1", "some-new-rule", "`X1` is no code of a rule"),
        (FREE, "Some_Rule", "`Some_Rule` is no name of a rule"),
        (FREE, "data-read", "there is a rule `data-read` already"),
    ],
)
def test_what_cannot_be_a_new_rule_is_refused_and_nothing_is_written(
    root: Path, code: str, name: str, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        new_rule(root, code, name, PAGES)
    assert str(refused.value).startswith(why)
    assert not [path for path in root.rglob("*") if path.is_file()]


def test_nothing_is_overwritten(root: Path) -> None:
    (root / "tests" / "flow" / "some-new-rule.md").write_text("mine\n")
    with pytest.raises(Refused, match=r"tests/flow/some-new-rule\.md is there already"):
        new_rule(root, FREE, "some-new-rule", PAGES)
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["some-new-rule.md"]


@pytest.mark.parametrize("arguments", [[], ["TCL5"], ["TCL701", "some-new-rule"]])
def test_wrong_use_is_2(arguments: list[str]) -> None:
    assert main(arguments) == 2
