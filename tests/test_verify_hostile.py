"""Scripts that want to do harm, handed straight to the child: nothing outside changes, and the run goes on.

Each file of `verify/hostile` says in its first line what must be said of it (a regular expression for the evidence).
`VICTIM` stands for a directory with one file that must be as it was.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import load_pages
from torchcopylint.verify.examples import mark_at, slice_with
from torchcopylint.verify.run import Verifier

SCRIPTS = sorted((Path(__file__).parent / "verify" / "hostile").glob("*.py"))
HARMLESS = "import torch\nx = torch.ones(2)\ny = x\ny += 1\nprint(x)\n"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections are those of Linux")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    """One with so much time that a busy machine does not come in between."""
    with Verifier(timeout=20.0, memory=1 << 28) as started:
        yield started


@pytest.fixture(scope="module")
def hurried() -> Iterator[Verifier]:
    """For scripts that do not end by themselves."""
    with Verifier(timeout=3.0, memory=1 << 28) as started:
        yield started


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "kept").write_text("kept", encoding="utf-8")
    return tmp_path


def tree(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8") for path in directory.rglob("*")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_changes_nothing_and_the_verdict_says_what_was_refused(
    script: Path, verifier: Verifier, hurried: Verifier, victim: Path
) -> None:
    text = script.read_text(encoding="utf-8")
    said = re.match(r"# says: (.*)", text)
    assert said
    verifier = hurried if "time was up" in said[1] else verifier
    code = text.replace("VICTIM", str(victim))
    last = len(code.splitlines())
    page = load_pages()["TCL501"]
    marks = (mark_at(Role.SHARED, last), mark_at(Role.WRITTEN, last))
    verification = verifier.verify(slice_with(page, code, marks), page)
    evidence = "\n".join(f"{item.kind}: {item.text}" for item in verification.evidence)
    assert verification.verdict is not Verdict.CONFIRMED
    assert re.search(said[1], evidence), f"{verification.verdict}\n{evidence}"
    assert tree(victim) == {"kept": "kept"}
    assert none_left(verifier.process_id)
    harmless = slice_with(page, HARMLESS, (mark_at(Role.SHARED, 3), mark_at(Role.WRITTEN, 4)))
    assert verifier.verify(harmless, page).verdict is Verdict.CONFIRMED


def settled(process: int, number: int) -> set[int]:
    """The children of a process, once those that have been killed are gone and there are so many."""
    deadline = time.monotonic() + 30
    while len(found := children(process)) != number and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(found) == number
    return found


def none_left(process: int) -> bool:
    """Whether a process has no children, once those that have been killed are gone."""
    return settled(process, 0) == set()


def children(process: int) -> set[int]:
    """The processes that a process has started and that are still there."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == process:
                found.add(int(entry))
    return found


def test_the_protections_that_are_in_force_are_told(verifier: Verifier) -> None:
    page = load_pages()["TCL501"]
    harmless = slice_with(page, HARMLESS, (mark_at(Role.SHARED, 3), mark_at(Role.WRITTEN, 4)))
    told = [item.text for item in verifier.verify(harmless, page).evidence if item.kind == "protection"]
    assert len(told) == 1
    assert {"cleared environment", "own directory", "audit hook", "alarm", "RLIMIT_AS"} <= set(told[0].split(", "))


def test_closing_leaves_no_process(victim: Path) -> None:
    verifier = Verifier(timeout=1.5)
    assert verifier.available() == ""
    number = verifier.process_id
    assert number in children(os.getpid())
    verifier.close()
    assert number not in children(os.getpid())
