"""Bytes become text as Python reads it, or it is said why not and where."""

from __future__ import annotations

import pytest

from torchcopylint.base.finding import Position
from torchcopylint.source.text import LineIndex, SourceText, Undecodable, decode, refuse_null, split_lines


def refused(data: bytes) -> tuple[str, tuple[int, int]]:
    with pytest.raises(Undecodable) as caught:
        decode(data)
    return caught.value.reason, (caught.value.position.row, caught.value.position.column)


def test_utf8_is_the_default() -> None:
    assert decode("é = 1\n".encode()) == SourceText("é = 1\n", "utf-8", bom=False)


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert decode(b"\xef\xbb\xbfx = 1") == SourceText("x = 1", "utf-8", bom=True)


@pytest.mark.parametrize(
    "head",
    [
        b"# -*- coding: latin-1 -*-\n",
        b"# vim: set fileencoding=iso-8859-1 :\n",
        b"#!/usr/bin/python\n# coding=latin1\n",
        b"\r\n \t\f# coding: l1\r\n",
    ],
)
def test_the_first_two_lines_may_declare_an_encoding(head: bytes) -> None:
    source = decode(head + b"x = '\xe9'")
    assert source.text.endswith("x = 'é'")
    assert source.encoding == "iso8859-1"


def test_the_third_line_declares_nothing() -> None:
    assert decode("#\n#\n# coding: latin-1\né".encode()).encoding == "utf-8"


def test_the_second_line_declares_nothing_after_code() -> None:
    assert decode("x = 1\n# coding: latin-1\né".encode()).encoding == "utf-8"


def test_newlines_are_kept() -> None:
    assert decode(b"a\r\nb\rc\n").text == "a\r\nb\rc\n"


def test_an_invalid_byte_is_named_with_its_place() -> None:
    assert refused("x = 1\né = '".encode() + b"\xff'\n") == (
        "byte 0xff is not valid UTF-8, and no other encoding is declared",
        (2, 6),
    )


def test_an_invalid_byte_of_a_declared_encoding_is_named() -> None:
    assert refused(b"# coding: ascii\n\xe9") == ("byte 0xe9 is not valid ASCII", (2, 1))


def test_an_unknown_encoding_is_named() -> None:
    assert refused(b"\n# coding: utf-9\n") == ("it declares the unknown encoding `utf-9`", (2, 1))


def test_an_encoding_of_bytes_to_bytes_is_refused() -> None:
    assert refused(b"# coding: rot13\n") == ("it declares `rot-13`, which is no encoding of text", (1, 1))


def test_a_mark_and_another_encoding_contradict() -> None:
    assert refused(b"\xef\xbb\xbf# coding: latin-1\n") == (
        "it declares iso8859-1 but starts with the byte order mark of UTF-8",
        (1, 1),
    )


@pytest.mark.parametrize(("encoding", "name"), [("utf-16", "UTF-16"), ("utf-32", "UTF-32")])
def test_wide_encodings_are_recognised(encoding: str, name: str) -> None:
    reason, _ = refused("x = 1".encode(encoding))
    assert f"it is {name}" in reason


def test_a_null_byte_is_refused_even_in_a_string() -> None:
    assert refused(b"x = 1\ny = '\0'\n") == ("it contains a null byte", (2, 6))


def test_a_null_character_of_a_text_is_refused() -> None:
    with pytest.raises(Undecodable):
        refuse_null("\0")


def test_lines_end_at_lf_crlf_and_cr_only() -> None:
    assert split_lines("a\nb\r\nc\rd\fe\x0bf\u2028g\x85h\x1ci") == ["a", "b", "c", "d\fe\x0bf\u2028g\x85h\x1ci"]


@pytest.mark.parametrize(
    ("offset", "place"), [(0, (1, 1)), (1, (1, 2)), (3, (2, 1)), (4, (2, 2)), (5, (3, 1)), (6, (4, 1))]
)
def test_offsets_and_places_correspond(offset: int, place: tuple[int, int]) -> None:
    index = LineIndex("a\r\nb\r\r")
    assert index.position(offset) == Position(*place)
    assert index.offset(Position(*place)) == offset
