"""Programs that nobody wrote, run by torch and read by the engine: what it says of them is what happened.

Some seeds each time; others by hand: `pytest tests/fuzz/test_beside_torch.py --fuzz 5000`.
"""

from __future__ import annotations

import re

import pytest
import torch

from fuzz.runnable import Program, program
from torchcopylint import check_source
from torchcopylint.base.finding import Finding
from torchcopylint.pages import Effect, load_pages

SEEDS = 120
SAID = {
    "leaf Variable that requires grad": {"TCL201", "TCL205"},
    "modified by an inplace operation": {"TCL202", "TCL203", "TCL213"},
    "backward through the graph a second time": {"TCL305", "TCL306", "TCL308", "TCL312"},
    "is a view and is being modified inplace": {"TCL205", "TCL206"},
}
"""What torch says when it refuses, and the rules that tell of it. Not of views whose base was written: here that is
through a detached name of it, see `flow/questions-34-q3.md` for the others."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--fuzz") or SEEDS))


def test_each_kind_of_refusal_is_among_the_programs() -> None:
    messages = [program(seed).message for seed in range(SEEDS)]
    assert {said for said in SAID if any(said in message for message in messages)} == set(SAID)


def _raising(found: list[Finding]) -> list[str]:
    pages = load_pages()
    told = [f for f in found if f.code in pages and pages[f.code].effect(f.variant) is Effect.RAISES]
    return [f"{f.code} in line {f.span.start.row}: {f.message}" for f in told]


def test_what_raises_is_told_and_nothing_else(seed: int) -> None:
    made = program(seed)
    found = check_source(made.text, "a.py")
    codes = next((rules for said, rules in SAID.items() if said in made.message), None)
    if codes is not None:
        assert codes & {f.code for f in found}, f"{made.message}\n{made.text}"
    elif not made.message:
        assert not _raising(found), made.text


def test_what_is_known_at_the_end_is_so(seed: int) -> None:
    made = program(seed)
    if made.message:
        return
    asked = made.text + "".join(f"# torchcopylint: reveal[{name}]\n" for name in made.tensors)
    answers = [f.message for f in check_source(asked, "a.py") if f.code == "TCL006"]
    for name, answer in zip(made.tensors, answers, strict=True):
        _agrees(made, name, answer)


def _agrees(made: Program, name: str, answer: str) -> None:
    told, _, sharing = answer.partition("; ")
    tensor = made.tensors[name]
    if " or " in told or " is unknown" in told or _is_refused(tensor):
        return
    for word, what in (("requires grad", tensor.requires_grad), ("leaf", tensor.is_leaf)):
        said = re.search(rf"{word}: (yes|no)", told)
        assert said is None or (said[1] == "yes") is what, f"{answer}\n{made.text}"
    same = {other for other, one in made.tensors.items() if other != name and _share(one, tensor)}
    owner = re.search(r"memory: that of `(\w+)`", told)
    assert owner is None or owner[1] not in made.tensors or owner[1] in same, f"{answer}\n{made.text}"
    if sharing.startswith("no other name"):
        assert not same, f"{answer}\n{made.text}"


def _is_refused(tensor: torch.Tensor) -> bool:
    """Whether torch says nothing of a view since what it is a view of has been written: not even if it is a leaf."""
    try:
        return not isinstance(tensor.is_leaf, bool)
    except RuntimeError:
        return True


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
