"""Frozen data to JSON and back: nothing is lost, and what is of another form is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
from example_findings import snapshot_finding

from torchcopylint.base.finding import Finding
from torchcopylint.base.plain import NotPlain, from_plain, to_plain


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    colour: Colour
    pairs: tuple[Pair, ...]
    two: tuple[int, bool]
    names: Mapping[str, Pair]
    share: float = 0.5


WHOLE = Whole(Colour.RED, (Pair(1, None), Pair(2, "x")), (1, True), {"a": Pair(3, "y")})


@pytest.mark.parametrize("value", [WHOLE, snapshot_finding()], ids=["every form", "a finding"])
def test_what_is_written_is_what_is_read(value: object) -> None:
    again = from_plain(type(value), json.loads(json.dumps(to_plain(value))))
    assert again == value
    assert repr(again) == repr(value)


def test_every_field_of_a_finding_can_be_written() -> None:
    """A new field of a finding is of a type that the cache can keep, or this fails."""
    plain = to_plain(snapshot_finding())
    assert len(plain) == len(dataclasses.fields(Finding))


PLAIN = ["red", [[1, None]], [1, True], {}, 0.5]


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: None,
        lambda plain: {},
        lambda plain: plain[:-1],
        lambda plain: [*plain, 1],
        lambda plain: ["blue", *plain[1:]],
        lambda plain: [["red"], *plain[1:]],
        lambda plain: [plain[0], [[1]], *plain[2:]],
        lambda plain: [plain[0], [["1", None]], *plain[2:]],
        lambda plain: [plain[0], [[True, None]], *plain[2:]],
        lambda plain: [plain[0], "", *plain[2:]],
        lambda plain: [*plain[:2], [1, 1], *plain[3:]],
        lambda plain: [*plain[:3], [], plain[4]],
        lambda plain: [*plain[:3], {"a": 1}, plain[4]],
    ],
)
def test_another_form_is_refused(change: Callable[[list[Any]], Any]) -> None:
    assert from_plain(Whole, PLAIN) == Whole(Colour.RED, (Pair(1, None),), (1, True), {})
    with pytest.raises(NotPlain):
        from_plain(Whole, change(list(PLAIN)))


@pytest.mark.parametrize("value", [object(), {1, 2}, b"", [1]])
def test_what_is_no_plain_data_cannot_be_written(value: object) -> None:
    with pytest.raises(TypeError):
        to_plain(value)


@pytest.mark.parametrize("kind", [object, int | str, list[int], Any])
def test_what_is_no_plain_data_cannot_be_read(kind: Any) -> None:
    with pytest.raises(TypeError):
        from_plain(kind, None)
