"""The quick bounds of a text are never below what measuring it says, whatever the text is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from torchcopylint.source.bounds import bounds
from torchcopylint.source.limits import measure

ROOT = Path(__file__).resolve().parents[1]
PIECES = [
    *"()[]{}()[]{}.,;:#\\\"'\n\r+-=x ",
    '"""',
    "'''",
    "\r\n",
    "\\\n",
    "\\\r\n",
    " and ",
    " or ",
    " not ",
    " if ",
    "elif ",
    " else ",
    "lambda:",
    "await ",
    "rb'",
    "a.b",
    "f(x)",
    "[x for x in y]",
    "for",
    "\ncase (",
    "del (",
    "-~-",
    "#'\n",
]


def assert_bounded(text: str) -> bool:
    """Whether there are bounds; fails if one of them is too low."""
    most = bounds(text)
    if most is None:
        return False
    size = measure(text)
    assert most.nesting >= size.nesting.value
    assert most.terms >= size.terms.value
    assert most.chain >= size.chain.value
    assert most.patterns >= size.patterns.value
    assert most.strings >= size.strings.value
    return True


@pytest.mark.parametrize("path", sorted((ROOT / "torchcopylint").rglob("*.py")), ids=lambda path: path.name)
def test_python_has_bounds(path: Path) -> None:
    assert assert_bounded(path.read_text(encoding="utf-8"))


def test_any_text_is_bounded_from_above() -> None:
    chosen = random.Random(20)
    bounded = sum(assert_bounded("".join(chosen.choices(PIECES, k=chosen.randrange(1, 60)))) for _ in range(20_000))
    assert bounded > 1_000


@pytest.mark.parametrize("text", ["x = " + "(" * 30 + ")" * 30, "f(", "f)", "f(\"'"], ids=repr)
def test_what_is_unusual_has_none(text: str) -> None:
    assert bounds(text) is None


def test_a_chain_across_lines_is_one_chain() -> None:
    most = bounds("x = (a\n" + "  + a\n" * 100 + ")\n")
    assert most is not None
    assert most.chain > 100
