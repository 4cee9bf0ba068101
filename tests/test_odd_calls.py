"""Calls that lack what they need, or hide it behind stars: Python takes them until it runs them, so must the linter."""

from __future__ import annotations

import ast

import pytest
from test_flow import CASES, Case

from torchcopylint import check_source


def nothing(call: ast.Call) -> None:
    call.args, call.keywords = [], []


def starred(call: ast.Call) -> None:
    call.args = [ast.Starred(argument, ast.Load()) for argument in call.args]


def doubly_starred(call: ast.Call) -> None:
    call.args, call.keywords = [], [ast.keyword(None, argument) for argument in call.args]


def by_a_strange_name(call: ast.Call) -> None:
    call.keywords = [ast.keyword(f"strange{i}", argument) for i, argument in enumerate(call.args)]
    call.args = []


def far_too_many(call: ast.Call) -> None:
    call.args = call.args * 9


CHANGES = (nothing, starred, doubly_starred, by_a_strange_name, far_too_many)


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=[change.__name__ for change in CHANGES])
def test_a_call_may_have_any_arguments(number: int) -> None:
    """Without arguments in every program; each of the other changes in a quarter of them."""
    programs = [one.code if isinstance(one, Case) else one.values[0].code for one in CASES]
    assert len(programs) > 1000
    change = CHANGES[number]
    for code in programs if number == 0 else programs[number - 1 :: len(CHANGES) - 1]:
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and not any(isinstance(one, ast.Starred) for one in node.args):
                change(node)
        changed = ast.unparse(tree)
        assert "TCL005" not in {finding.code for finding in check_source(changed, filename="example.py")}, changed
