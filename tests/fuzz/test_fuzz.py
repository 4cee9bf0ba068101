"""Whatever the text, it is accounted for: no traceback, no crash, findings that stand in the file.

Bounded and the same in every run; `pytest tests/fuzz --fuzz 5000` tries that many other texts for each test.
"""

from __future__ import annotations

import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.programs import damaged, program
from fuzz.rearranged import rearranged
from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import load_pages
from torchcopylint.project.examined import Examined, Outcome, Projects, Request, examine_bytes
from torchcopylint.screen import spares
from torchcopylint.source.text import split_lines

REQUEST = Request("/nowhere/a.py", "a.py", DEFAULT_LIMITS, "/nowhere")
FULL = REQUEST._replace(screen=False)
BOUND = 150
"""Texts for each test where nobody asks for more."""


def account_for(data: bytes) -> None:
    """Examine a content, and hold what comes out against what is promised of every content."""
    seen = examine_bytes(data, REQUEST, load_pages(), Projects())
    examined, text = seen.examined, seen.text
    assert examined.outcome is not Outcome.FAILED, examined.failure
    assert from_plain(Examined, to_plain(examined)) == examined
    if examined.outcome is not Outcome.ANALYSED:
        assert [finding.code for finding in examined.findings] in (["TCL000"], ["TCL004"])
        return
    assert text is not None
    rows = len(split_lines(text))
    for finding in examined.findings:
        for span in (finding.span, finding.statement, *(step.span for step in finding.steps)):
            assert 1 <= span.start.row <= span.end.row <= rows
            assert span.start < span.end or finding.code == "TCL006"
    if spares(text):
        assert examine_bytes(data, FULL, load_pages(), Projects()).examined.findings == ()


def many(config: pytest.Config, strategy: st.SearchStrategy[bytes]) -> None:
    """Try as many texts as the command line says: the same ones in every run, unless it asks for a number."""
    asked = config.getoption("--fuzz")
    bounded = settings(
        max_examples=asked or BOUND,
        derandomize=not asked,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    bounded(given(strategy)(account_for))()


def test_programs(pytestconfig: pytest.Config) -> None:
    many(pytestconfig, program().map(str.encode))


def test_damaged_files(pytestconfig: pytest.Config) -> None:
    many(pytestconfig, damaged().map(lambda text: text.encode("utf-8", "replace")))


def test_rearranged_programs(pytestconfig: pytest.Config) -> None:
    many(pytestconfig, rearranged().map(str.encode))


def test_real_files(pytestconfig: pytest.Config) -> None:
    """The standard library, with the files of its own tests that are no Python, and torch's sources."""
    torch = find_spec("torch")
    tops = [Path(sysconfig.get_path("stdlib")), *([Path(torch.origin).parent] if torch and torch.origin else [])]
    files = [path for top in tops for path in sorted(top.rglob("*.py")) if "site-packages" not in path.parts]
    step = max(len(files) // (pytestconfig.getoption("--fuzz") or 40), 1)
    assert len(files[::step]) >= 40
    for path in files[::step]:
        account_for(path.read_bytes())


def test_bytes(pytestconfig: pytest.Config) -> None:
    many(pytestconfig, st.binary(max_size=400))


MEMO = b"""from functools import lru_cache
import torch

@lru_cache(maxsize=8)
def mesh(name: str) -> torch.Tensor:
    return torch.load(name)

def centred(name):
    points = mesh(name)
    points -= points.mean()
    return points

def apart(name):
    points = mesh(name).clone()
    points -= points.mean()
    return points

assert apart('a').sum() == 0 and mesh('a').sum() == 3
assert centred('a').sum() == 0 and mesh('a').sum() == 0"""


def test_a_memo_in_a_file_without_a_newline_at_its_end() -> None:
    account_for(MEMO)


ADDED_LATER = b"""import torch
from torch import nn

def __init__(self):
    super().__init__()
    self.linear = nn.Linear(2, 2)

x = torch.tensor([0.0, 1.0], requires_grad=True)
torch.sigmoid(x).sum().backward()
"""


def test_a_constructor_outside_of_its_class() -> None:
    account_for(ADDED_LATER)
