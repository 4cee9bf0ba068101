"""The examples of the rule pages through the verifier: every bad one is confirmed, and no good one is.

A good example has no finding, so one is forced on it: on the lines that are most like the marked ones of the page's bad
examples. Where that is confirmed all the same, the effect is there and is meant; `MEANT` lists these with the reason.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

import pytest

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import Example, Page, load_pages
from torchcopylint.verify.examples import mark_at, slice_with, slices_of
from torchcopylint.verify.judge import rule_of
from torchcopylint.verify.model import Mark, Slice
from torchcopylint.verify.run import Verifier

LIKELY = 2
"""Lines of a good example that are tried for each role."""
MOST_FORCED = 6

MEANT: dict[str, str] = {
    "detach-inplace-assigned-2": "the state is cut on purpose, and nothing else holds it",
    "numpy-view-mutated-4": "the array is there to fill the tensor",
    "legacy-tensor-constructor-3": "a window is asked for by name",
    "conditional-copy-mutated-5": "the function's name says that it writes its argument",
    "model-aliased-2": "a wrapped module is used under its own name",
    "buffer-keeps-graph-3": "the penalty is taken out, with its graph, before the next call",
}
"""Good examples in which the effect happens on purpose: no run can tell a purpose."""


def _pieces(kind: str) -> Iterator[tuple[Page, Example, str]]:
    for page in load_pages().values():
        examples = [example for example in page.examples if example.kind == kind]
        for number, example in enumerate(examples, start=1):
            yield page, example, f"{page.name}-{number}"


def _verifiable(page: Page, variant: str) -> bool:
    return bool(rule_of(page, variant).words)


BAD = [
    pytest.param(page, piece, id=f"{name}-{piece.variant}" if piece.variant else name)
    for page, example, name in _pieces("bad")
    for piece in slices_of(page, example)
    if _verifiable(page, piece.variant)
]
GOOD = [
    pytest.param(page, example, id=name)
    for page, example, name in _pieces("good")
    if any(_verifiable(page, variant) for variant in ("", *page.variants))
]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.mark.parametrize(("page", "piece"), BAD)
def test_a_bad_example_is_confirmed(page: Page, piece: Slice, verifier: Verifier) -> None:
    verification = verifier.verify(piece, page)
    told = [item.text for item in verification.evidence]
    if page.keys.get("needs"):
        assert verification.verdict is Verdict.UNSUPPORTED, told
        needed = {"cuda": "needs a CUDA device", "processes": "needs sockets between processes"}
        assert told == [needed[page.keys["needs"]]]
    else:
        assert verification.verdict is Verdict.CONFIRMED, told


@pytest.mark.parametrize(("page", "example"), GOOD)
def test_a_good_example_is_not_confirmed(
    page: Page, example: Example, verifier: Verifier, request: pytest.FixtureRequest
) -> None:
    confirmed = confirmed_by_force(page, example, verifier)
    assert bool(confirmed) == (request.node.callspec.id in MEANT), confirmed


def confirmed_by_force(
    page: Page, example: Example, verifier: Verifier
) -> set[tuple[str, tuple[tuple[str, int], ...]]]:
    """The findings that are forced on an example and are confirmed: variant, and role and row of each mark."""
    return {
        (variant, tuple((mark.role.value, mark.row) for mark in marks))
        for variant, marks in itertools.islice(forced(page, example), MOST_FORCED)
        if verifier.verify(slice_with(page, example.code, marks, variant), page).verdict is Verdict.CONFIRMED
    }


def test_what_is_meant_is_an_example() -> None:
    assert MEANT.keys() <= {str(case.id) for case in GOOD}


def forced(page: Page, example: Example) -> Iterator[tuple[str, tuple[Mark, ...]]]:
    """Findings on the likeliest lines of an example: for each variant, one line for each role that it has."""
    for variant, lines in sorted(_marked_lines(page).items()):
        if not _verifiable(page, variant):
            continue
        rows = [[(role, row) for row in _likeliest(example, texts)] for role, texts in sorted(lines.items())]
        for chosen in itertools.product(*rows):
            yield variant, tuple(mark_at(role, row) for role, row in chosen)


def _marked_lines(page: Page) -> dict[str, dict[Role, list[str]]]:
    """The marked lines of the bad examples, by variant and role."""
    found: dict[str, dict[Role, list[str]]] = {}
    for example in page.examples:
        if example.kind == "bad":
            lines = example.code.splitlines()
            for piece in slices_of(page, example):
                for attempt in piece.groups[0].attempts:
                    for mark in attempt.marks:
                        of_variant = found.setdefault(piece.variant, {})
                        of_variant.setdefault(mark.role, []).append(lines[mark.row - 1])
    return found


def _likeliest(example: Example, texts: list[str]) -> list[int]:
    """The rows whose words are most like those of one of `texts`."""
    wanted = [_words(text) for text in texts]
    likeness = {
        row: max(len(words & other) / len(words | other) for other in wanted)
        for row, words in ((row, _words(line)) for row, line in _statements(example.code))
        if words
    }
    return sorted(likeness, key=lambda row: (-likeness[row], row))[:LIKELY]


def _statements(code: str) -> Iterator[tuple[int, str]]:
    lines = code.splitlines()
    for node in ast.walk(ast.parse(code)):
        untouched = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.With)
        if isinstance(node, ast.stmt) and not isinstance(node, untouched):
            yield node.lineno, lines[node.lineno - 1]


def _words(line: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*|[-+*/@]?=|\[", line.partition("# <-")[0]))
