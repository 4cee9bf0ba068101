"""What is not run, or not run again, since nothing comes of it: and, beside each, what is like it and still is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.test_verify_hostile import children, settled
from tests.test_verify_scouts import Open
from torchcopylint.base.finding import Role, Severity
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import load_pages
from torchcopylint.verify.examples import mark_at
from torchcopylint.verify.judge import Outcome, leaves_open, rule_of
from torchcopylint.verify.observed import Raised, Run
from torchcopylint.verify.predicates import Case
from torchcopylint.verify.slicing.conditions import Wanted
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.sizes import Setting, Sizes
from torchcopylint.verify.slicing.skipping import Skipper
from torchcopylint.verify.slicing.source import children as parts_of
from torchcopylint.verify.slicing.source import cloned, walked
from torchcopylint.verify.slicing.standins import helpers
from torchcopylint.verify.slicing.things import Thing
from torchcopylint.verify.slicing.tries import Heard, ends_before

SETTING = Setting(4, 2, 0)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Open]:
    with Open(timeout=20.0, memory=1 << 28) as started:
        yield started


def ended(message: str, *, kind: str = "ValueError", passes: tuple[tuple[int, ...], ...] = ((),)) -> Run:
    error = Raised((kind,), message, 3, frozenset(), 1, in_backward=False)
    return Run(ended=kind, raised=(error,), passes=passes)


def test_what_ends_as_another_way_did_at_the_same_statement_is_tried_once() -> None:
    heard = Heard()
    for size in range(4):
        heard.add("a call", ended(f"expected {size}"), 1, 7)
    heard.add("a part", ended("expected 9"), 1, 7)
    assert heard.spent == {"a call", "a part"}


@pytest.mark.parametrize(("message", "row"), [("expected 9", 8), ("too many", 7), ("expected 9", 0)])
def test_another_statement_or_exception_is_tried_with_other_inputs(message: str, row: int) -> None:
    heard = Heard()
    for size in range(4):
        heard.add("a call", ended(f"expected {size}"), 1, 7)
    heard.add("a part", ended(message), 1, row)
    assert heard.spent == {"a call"}


@pytest.mark.parametrize(
    ("run", "before"),
    [
        (ended("not enough values to unpack"), True),
        (ended("a leaf Variable that requires grad"), False),
        (ended("'NoneType' object has no attribute 'add_'"), False),
        (ended("not enough values to unpack", passes=((1,),)), False),
        (Run(passes=((),)), False),
    ],
)
def test_a_graph_helps_nothing_where_a_run_ends_before_any_step_for_something_else(run: Run, before: bool) -> None:
    assert ends_before(run) is before


@pytest.mark.parametrize(
    ("verdict", "severity", "branch", "is_left"),
    [
        (Verdict.INCONCLUSIVE, Severity.ERROR, "", True),
        (Verdict.INCONCLUSIVE, Severity.WARNING, "", False),
        (Verdict.INCONCLUSIVE, Severity.ERROR, "copies", False),
        (Verdict.NOT_TRIGGERED, Severity.ERROR, "", False),
        (Verdict.REFUTED, Severity.ERROR, "", False),
    ],
)
def test_no_other_seed_closes_what_an_error_leaves_open(
    verdict: Verdict, severity: Severity, branch: str, is_left: bool
) -> None:
    rule = replace(rule_of(load_pages()["TCL501"], ""), conditional=severity is Severity.WARNING)
    assert leaves_open(Outcome(verdict, (), "", branch=branch), rule) is is_left


def test_the_alteration_that_told_before_comes_first_and_all_others_after_it() -> None:
    asked: list[str] = []

    def ask(kind: str, marks: tuple[int, ...]) -> Run:
        asked.append(kind)
        return Run(passes=((1,),))

    case = Case(Run(passes=((1,),)), (mark_at(Role.HERE, 1),), Role.HERE, (), (), ask, "skipped")
    for _ in case.altered((("operands", (0,)), ("copies", (0,)), ("skipped", (0,)))):
        pass
    assert asked == ["skipped", "operands", "copies"]


def test_a_size_that_is_a_multiple_of_itself_is_a_size_like_others() -> None:
    size, other = Thing("dim_hidden"), Thing("heads")
    size.formula = ("Mult", size, other)
    around = Thing("half")
    around.formula = ("Mult", other, around)
    through = Thing("width")
    through.formula = ("Add", around, other)
    assert [Sizes(SETTING).number(thing) for thing in (size, around)] == [4, 4]
    plain = Thing("wide")
    plain.formula = ("Mult", other, Thing("channels_of_it"))
    assert Sizes(SETTING).number(plain) == Sizes(SETTING).number(other) * 4


def test_an_array_of_what_stands_in_ends(verifier: Open) -> None:
    text = helpers({"Anything"}, SETTING, Wanted())
    script = (
        f"import numpy as np\nimport torch\n{text}\nprint(np.unique(Anything('x').y).ndim, len(list(Anything('x'))))\n"
    )
    run = verifier.alone(script)
    assert run.printed == "1 2\n", run


def test_what_is_only_tried_and_what_is_judged_share_a_process_if_neither_leaves_something(verifier: Open) -> None:
    assert verifier.scouted("import torch\nprint(1)\n").printed == "1\n"
    shared = settled(verifier.process_id, 1)
    assert verifier.alone("import torch\nprint(2)\n").printed == "2\n"
    assert children(verifier.process_id) == shared
    assert verifier.scouted("import torch\ntorch.mark_of_a_script = 1\n").ended == ""
    assert settled(verifier.process_id, 1) != shared
    assert verifier.alone("import torch\nprint(hasattr(torch, 'mark_of_a_script'))\n").printed == "False\n"


def test_what_is_left_out_again_is_the_same_statement_of_which_all_is_known() -> None:
    tree = ast.parse("def f():\n    a()\n    b()\n\n\ndef g():\n    c()\n    d()\n")
    skipper = Skipper({3})
    plan = Plan("a call", tuple(tree.body))
    rows = {row: row for row in range(1, 9)}
    for row, of in ((7, 1), (2, 0)):
        error = Raised(("ValueError",), "", row, frozenset(), 1, in_backward=False, rows=(row,))
        before = skipper.plan(plan).kept
        assert skipper.learns(Run(ended="ValueError", raised=(error,), passes=((),)), rows)
        after = skipper.plan(plan).kept
        assert [one is two for one, two in zip(before, after, strict=True)] == [index != of for index in range(2)]
        assert skipper.plan(plan).kept == after
    assert [ast.unparse(node) for node in skipper.plan(plan).kept] == ["def f():\n    b()", "def g():\n    d()"]


def test_a_copy_of_a_tree_can_be_changed_and_is_walked_as_python_walks() -> None:
    tree = ast.parse("class A:\n    def f(self, x=1):\n        self.y += x if x else -x\n        pass\n")
    copy = cloned(tree)
    assert ast.dump(copy, include_attributes=True) == ast.dump(tree, include_attributes=True)
    mine = {id(node) for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)}
    assert not mine & {id(node) for node in ast.walk(copy)}
    plain = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert walked(tree) == plain
    assert parts_of(tree) == list(ast.iter_child_nodes(tree))
