"""Named tuples as text and back: what is packed, and what a text from elsewhere cannot do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from test_flow import CASES, Case

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.base.packed import NotPacked, pack, unpack
from torchcopylint.flow.model import Fact, Kind, Sure
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values.outside import Base, Name
from torchcopylint.project.modules import Modules

FLOW = "torchcopylint.flow"


class Elsewhere(NamedTuple):
    item: int


def same(one: object, other: object) -> bool:
    """Whether two values are equal and of the same types throughout, which equality of tuples does not ask."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return same(tuple(one.items()), tuple(other.items()))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return Counter(map(type, one)) == Counter(map(type, other)) and one == other
    return one == other


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, 0.5, "text", "\ud800", (), ((),), frozenset({"a", "b"}), frozenset({("a", 1)})),
        *(b"\0\xff", 1j, complex("-inf"), float("inf"), -0.0, ..., 10**40, ({1: b"a"}, (1j, ...))),
        *({}, {1: "a", "b": (2,)}, Fact.YES, (Kind.TENSOR, Kind.TENSOR, Sure.HINT), Dotted("torch.ones")),
        *(Name(Kind.TENSOR, const=Dotted("a.b")), {"f": Base("A", path="/a.py"), "g": (Base("B"), "b", 1)}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_packed_is_unpacked(value: object) -> None:
    assert same(unpack(pack(value), FLOW), value)


@pytest.mark.parametrize("value", [object(), [1], {1, 2}, int, (print,), range(3)], ids=lambda one: type(one).__name__)
def test_other_values_are_not_packed(value: object) -> None:
    with pytest.raises(TypeError):
        pack(value)


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "subprocess:Popen", "torchcopylint.flowers:Name", "torchcopylint.base:finding"),
        *(f"{FLOW}.outside:NamedTuple", f"{FLOW}.outside:Nothing", f"{FLOW}.nowhere:Name", f"{FLOW}.outside:Outside"),
        *(f"{FLOW}.kinds:from_name", f"{FLOW}.outside:Name._make", "", ":", "test_packed:Elsewhere"),
    ],
)
def test_a_text_makes_nothing_but_data_of_the_package(name: str) -> None:
    with pytest.raises(NotPacked):
        unpack(json.dumps([[name], [6, "echo"]]), FLOW)
    with pytest.raises(NotPacked):
        unpack(pack(Elsewhere(1)), FLOW)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "null", "[]", "[[], []]", "[[], [9]]", "[[], [-1]]", "[[], [true]]", "[[], [2, 1]]", "[[], [6, 1]]"),
        *('[["torchcopylint.flow.values.outside:Base"], [6]]', '[["torchcopylint.flow.model:Fact"], [6, "?"]]'),
        *('[["torchcopylint.flow.values.outside:Base"], [6, 1, 2, 3, 4, 5, 6, 7]]', "[" * 5000),
    ],
)
def test_a_damaged_text_is_an_error(text: str) -> None:
    with pytest.raises(NotPacked):
        unpack(text, FLOW)


ODD = """
import torch
A, B, C, D = b"abc", 1j, ..., {"a": b"x", 1: 2j}
E = (1, b"x", ..., 1j, None, 1e400, -0.0, 10**30, "\\ud800")


class Q:
    z = b"a"

    def __init__(self, a=..., b=b"x", c=1j, *, d=(1j,)):
        self.a, self.k = ..., {"a": 1j}


def f(x, y=b"x", z=..., w=1j):
    x.add_(1j)
    return (x, b"x", 1j, ...)
"""


def test_whatever_a_file_defines_can_be_packed(tmp_path: Path) -> None:
    """Else a run would end over it: the programs of the tests, and constants of all kinds."""
    programs = [one.code if isinstance(one, Case) else one.values[0].code for one in CASES]
    for number, text in enumerate([ODD, *programs]):
        modules = Modules(str(tmp_path), DEFAULT_LIMITS, recall=lambda path, waiting: None)
        modules.prepare(str(tmp_path / f"m{number}.py"), text)
        ((_, packed),) = modules.summarised()
        facts = unpack(packed, FLOW)
        assert facts is not None
        assert same(unpack(pack(facts), FLOW), facts)
