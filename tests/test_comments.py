"""The scanner finds the comments of a text, and nothing that only looks like one."""

from __future__ import annotations

import io
import os
import tokenize
from pathlib import Path

import pytest

from torchcopylint.source.comments import Comment, comments

STANDARD_LIBRARY = sorted(Path(os.__file__).parent.glob("*.py"))


def texts(source: str) -> list[str]:
    return [comment.text for comment in comments(source)]


def test_a_comment_has_its_place_its_text_and_whether_it_stands_alone() -> None:
    assert list(comments("x = 1  # one\n  # two\n")) == [Comment(1, 8, "# one", False), Comment(2, 3, "# two", True)]


def test_columns_count_code_points() -> None:
    assert next(comments("'𝔘é'  # c")).column == 7


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_newline_ends_a_comment(newline: str) -> None:
    found = list(comments(f"# a{newline}# b"))
    assert [(comment.row, comment.text) for comment in found] == [(1, "# a"), (2, "# b")]


def test_a_form_feed_does_not_end_a_line() -> None:
    assert list(comments("x\f# a")) == [Comment(1, 3, "# a", False)]


@pytest.mark.parametrize(
    "string",
    [
        "'# no'",
        '"# no"',
        "'''\n# no\n'''",
        '"""\n# no ""\n"""',
        "'it\\'s # no'",
        "r'\\'  # no'",
        "rb'\\\\'",
        "'a\\\n# no'",
        "'a\\\r\n# no'",
        "f'{x} # no'",
        "f'{x:# no}'",
        "f'{x:{y}# no}'",
        "f'{{# no'",
        "f'}}# no'",
        "f'{a[\"# no\"]}'",
        'f"{a["# no"]}"',
        'f"{f"{f"# no"}"}"',
        "f'{x!r:>{width}} # no'",
        "f'{x:{{1: 2}[1]}} # no'",
        "rf'\\{x} # no'",
        "f'\\{x} # no'",
        "f'\\N{NUMBER SIGN} # no'",
        "rf'\\N{x} # no'",
        "f'{x:\\'}# no'",
        "f'''{\nx} # no\n'''",
        "f'''{x:\n# no\n}'''",
        "Rb'# no'",
        "t'{x} # no'",
        "f'{lambda_(lambda x: \"# no\")}'",
        'f\'{ {"a": "# no"}["a"] }\'',
    ],
)
def test_a_string_hides_what_looks_like_a_comment(string: str) -> None:
    assert texts(f"x = {string}  # yes\n") == ["# yes"]


def test_a_replacement_field_over_several_lines_may_hold_comments() -> None:
    assert texts('x = f"""{  # in the field\n    y  # again\n}# not here"""  # after\n') == [
        "# in the field",
        "# again",
        "# after",
    ]


def test_nested_quotes_of_python_312_need_no_python_312() -> None:
    assert texts('x = f"{", ".join(f"{y["#"]}" for y in z)}"  # yes') == ["# yes"]


def test_a_word_before_a_quote_is_no_prefix() -> None:
    # `if"..."` is a keyword and a plain string: the brace opens no field.
    assert texts('x = 1 if"{"else"}" # yes') == ["# yes"]


def test_an_unterminated_string_ends_with_its_line() -> None:
    assert texts("x = 'oops\ny = 1  # yes\n") == ["# yes"]


def test_an_unterminated_format_ends_with_its_string() -> None:
    assert texts("x = f'{y:>10'\nz = 1  # yes\n") == ["# yes"]


def test_a_text_that_ends_inside_a_string_has_the_comments_before_it() -> None:
    assert texts('# yes\nx = """ # no') == ["# yes"]
    assert texts('# yes\nx = f"""{y:') == ["# yes"]


@pytest.mark.parametrize("path", STANDARD_LIBRARY[::4], ids=lambda path: path.name)
def test_it_agrees_with_tokenize(path: Path) -> None:
    with tokenize.open(path) as file:
        text = file.read()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    expected = [(t.start[0], t.start[1] + 1, t.string) for t in tokens if t.type == tokenize.COMMENT]
    assert [(comment.row, comment.column, comment.text) for comment in comments(text)] == expected
