"""Summaries of earlier runs: what a change lets stand, what it does not, and what may happen to the file."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from functools import partial
from pathlib import Path

import pytest

from torchcopylint.analysis import Followed, Limits
from torchcopylint.base.finding import Finding
from torchcopylint.pages import load_pages
from torchcopylint.project import modules, store
from torchcopylint.project.callers import Callers
from torchcopylint.project.dependencies import Question
from torchcopylint.project.discover import Found, discover
from torchcopylint.project.engine import ChooseEngine, engine_for, serial
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.settings import Layer
from torchcopylint.project.store import SHELF_SUFFIX, SUFFIX, Stores, clean

INDEX = RuleIndex(load_pages())
FILES = {
    "pkg/__init__.py": "",
    "pkg/deep.py": "def wipe(x):\n    x.zero_()\n",
    "pkg/middle.py": "from pkg.deep import wipe\n\n\ndef clear(x):\n    wipe(x)\n",
    "pkg/aside.py": "import torch\n\n\ndef make():\n    return torch.ones(3)\n",
    "pkg/use.py": (
        "from pkg.aside import make\nfrom pkg.middle import clear\n\nx = make()\ny = x\nclear(y)\nprint(x, y)\n"
    ),
}


class Project:
    """A project on the disk, a cache for it, and which files the last run had to follow."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = top / "project"
        self.cache = top / "cache"
        self.followed: list[str] = []
        self.notes: tuple[str, ...] = ()
        for name, text in FILES.items():
            self.change(name, text)
        before = modules.followed

        def counting(text: str, limits: Limits | None, view: modules.View) -> Followed:
            self.followed.append(os.path.relpath(view.path, self.root))
            return before(text, limits, view)

        monkeypatch.setattr(modules, "followed", counting)

    def change(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # Long past, since what has changed just now is not trusted by its date.
        os.utime(path, (time.time() - 3600, time.time() - 3600))

    def check(self, *names: str, cached: bool = True, engine: ChooseEngine = serial) -> list[tuple[str, int, str]]:
        """The findings in some files, or in all."""
        self.followed.clear()
        stores = Stores(str(self.cache)) if cached else None
        paths = [str(self.root / name) for name in names] or [str(self.root)]
        run = Checker(INDEX, stores=stores, choose_engine=engine).check(discover(paths, self._resolver()))
        self.notes = stores.notes if stores else ()
        return sorted(map(_place, (finding for file in run.files for finding in file.findings)))

    def check_text(self, name: str, text: str) -> list[tuple[str, int, str]]:
        """The findings in a text that stands for a file."""
        self.followed.clear()
        path = str(self.root / name)
        found = Found(path, self._resolver().settings_for(os.path.dirname(path)))
        result = Checker(INDEX, stores=Stores(str(self.cache))).check_bytes(text.encode(), found, name)
        return sorted(map(_place, result.findings))

    def _resolver(self) -> Resolver:
        layer = Layer(base=str(self.root), select=("ALL",))
        return Resolver(INDEX, cwd=str(self.root), command_line=layer, isolated=True)

    @property
    def file(self) -> Path:
        (path,) = self.cache.glob(f"*{SHELF_SUFFIX}")
        return path


def _place(finding: Finding) -> tuple[str, int, str]:
    return finding.filename, finding.span.start.row, finding.code


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def test_what_a_changed_file_uses_is_not_followed_again(project: Project) -> None:
    before = project.check()
    assert before == [("pkg/use.py", 6, "TCL501")]
    project.change("pkg/use.py", "\n" + FILES["pkg/use.py"])
    assert project.check() == [("pkg/use.py", 7, "TCL501")]
    assert set(project.followed) == {"pkg/use.py"}


def test_what_depends_on_a_changed_file_is_followed_again_and_nothing_else(project: Project) -> None:
    assert project.check()
    project.change("pkg/deep.py", "def wipe(x):\n    return x.sum()\n")
    assert project.check() == []
    assert set(project.followed) == {"pkg/use.py", "pkg/middle.py", "pkg/deep.py"}


def test_a_summary_does_not_hold_if_what_it_rests_on_was_followed_anew_meanwhile(project: Project) -> None:
    found = project.check()
    project.change("pkg/deep.py", "def wipe(x):\n    return x.sum()\n")
    # Of the three, only this one is told of: `middle` is still kept as it was with the earlier one.
    project.check("pkg/deep.py")
    assert project.check("pkg/use.py") == []
    project.change("pkg/deep.py", FILES["pkg/deep.py"])
    assert project.check("pkg/use.py") == found


def test_a_name_that_leads_elsewhere_makes_a_summary_out_of_date(project: Project) -> None:
    assert project.check()
    project.change("pkg/deep/__init__.py", "def wipe(x):\n    return x.sum()\n")
    assert project.check() == project.check(cached=False) == []


def test_files_in_a_circle_are_followed_together(project: Project) -> None:
    project.change("pkg/deep.py", "import pkg.use\n\n\ndef wipe(x):\n    x.zero_()\n")
    assert project.check() == project.check(cached=False)
    project.change("pkg/middle.py", "\n" + FILES["pkg/middle.py"])
    assert project.check() == project.check(cached=False)
    project.change("pkg/aside.py", "\n" + FILES["pkg/aside.py"])
    assert project.check() == project.check(cached=False)


def test_a_text_that_is_no_file_yet_uses_what_is_known_of_others_and_leaves_it_as_it_is(project: Project) -> None:
    changed = FILES["pkg/use.py"].replace("clear(y)", "print(y.sum())")
    found = project.check_text("pkg/use.py", FILES["pkg/use.py"])
    assert found
    assert set(project.followed) == {f"pkg/{name}.py" for name in ("use", "deep", "middle", "aside")}
    assert project.check_text("pkg/use.py", changed) == []
    assert project.followed == ["pkg/use.py"]
    assert project.check("pkg/use.py") == found
    # What is on the disk is known by now, and the text is the same.
    assert project.check_text("pkg/use.py", FILES["pkg/use.py"]) == found
    assert project.followed == []


def test_what_workers_find_out_is_kept_too(project: Project) -> None:
    found = project.check(engine=partial(engine_for, 2))
    assert found == project.check(cached=False)
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n")
    assert project.check() == found
    assert set(project.followed) == {"pkg/use.py"}


def test_changes_at_random_come_to_the_same_with_and_without_it(project: Project) -> None:
    """Five files that use one another at random, and change at random: the findings do not depend on earlier runs."""
    chance = random.Random(7)
    names = [f"m{number}" for number in range(5)]
    shown = 0
    for turn in range(40):
        name = chance.choice(names) if turn >= len(names) else names[turn]
        used = chance.choice(names)
        does = chance.choice(("x.zero_()", "return x", "return x.clone()", f"return {used}.f(x)", f"{used}.f(x)"))
        project.change(
            f"{name}.py",
            f"import torch\nimport {used}\n\n\ndef f(x):\n    {does}\n\n\nx = torch.ones(2)\n"
            f"y = x\n{used}.f(y)\nprint(x, y)\n",
        )
        there = [f"{one}.py" for one in names if (project.root / f"{one}.py").exists()]
        checked = chance.sample(there, chance.randint(1, len(there)))
        found = project.check(*checked)
        assert found == project.check(*checked, cached=False), f"turn {turn}: {checked}"
        shown += len(found)
    assert shown > 20


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + bytes(200)], ids=len)
def test_a_damaged_file_is_made_anew(project: Project, damage: bytes) -> None:
    found = project.check()
    project.file.write_bytes(damage)
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n")
    assert project.check() == found
    assert bool(project.notes) == bool(damage)
    project.change("pkg/use.py", FILES["pkg/use.py"])
    assert project.check() == found
    assert not project.notes
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n\n")
    assert project.check() == found
    assert set(project.followed) == {"pkg/use.py"}


@pytest.mark.parametrize("column", ["uses", "summary", "state", "digest"])
def test_a_damaged_row_is_made_anew(project: Project, column: str) -> None:
    found = project.check()
    connection = sqlite3.connect(project.file)
    with connection:
        connection.execute(f"UPDATE files SET {column} = 'nonsense'")
    connection.close()
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n")
    assert project.check() == found
    assert len(set(project.followed)) == 4


def test_one_of_another_version_is_made_anew(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    found = project.check()
    monkeypatch.setattr("torchcopylint.project.store.identity", lambda: "another")
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n")
    assert project.check() == found
    assert len(set(project.followed)) == 4


def test_one_that_another_process_holds_is_done_without(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    found = project.check()
    monkeypatch.setattr("torchcopylint.project.shelf._PATIENCE", 0)
    connection = sqlite3.connect(project.file, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    project.change("pkg/use.py", FILES["pkg/use.py"] + "\n")
    assert project.check() == found
    assert not project.notes
    connection.close()


def test_cleaning_removes_it(project: Project) -> None:
    project.check()
    assert project.file.exists()
    assert len(list(project.cache.glob(f"*{SUFFIX}"))) == 1
    assert clean(str(project.cache)) == 1
    assert not project.cache.exists()


class TestCallers:
    """Whether recording is on where a function is called is asked of the whole project, and is part of what is kept."""

    LAYERS = (
        "import torch\n\n\ndef load(scale):\n    layer = torch.nn.Linear(1, 2)\n    layer.bias.copy_(scale)\n"
        "    return layer\n"
    )
    OFF = "import torch\nfrom pkg.layers import load\n\nwith torch.no_grad():\n    load(torch.ones(2))\n"
    ON = "import torch\nfrom pkg.layers import load\n\nload(torch.ones(2))\n"
    FOUND = ("pkg/layers.py", 6, "TCL201")

    @pytest.fixture
    def project(self, project: Project) -> Project:
        project.change("pkg/layers.py", self.LAYERS)
        project.change("pkg/run.py", self.OFF)
        return project

    def test_a_changed_caller_makes_another_result(self, project: Project) -> None:
        assert self.FOUND not in project.check()
        project.change("pkg/run.py", self.ON)
        assert self.FOUND in project.check()
        assert set(project.followed) == {"pkg/layers.py", "pkg/run.py"}
        project.change("pkg/run.py", self.OFF)
        assert project.check() == project.check(cached=False)

    def test_a_new_caller_does_and_one_that_goes_does(self, project: Project) -> None:
        assert self.FOUND not in project.check("pkg/layers.py")
        project.change("pkg/other.py", self.ON)
        assert self.FOUND in project.check("pkg/layers.py")
        (project.root / "pkg/other.py").unlink()
        assert self.FOUND not in project.check("pkg/layers.py")
        (project.root / "pkg/run.py").unlink()
        assert self.FOUND in project.check("pkg/layers.py")

    def test_a_change_that_says_the_same_of_callers_lets_others_stand(self, project: Project) -> None:
        found = project.check()
        project.change("pkg/run.py", f"{self.OFF}print(1)\n")
        assert project.check() == found
        assert project.followed == ["pkg/run.py"]

    def test_where_nothing_has_changed_no_file_is_read(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        before = Callers.answer

        def counting(callers: Callers, question: Question) -> bool:
            read.append(question.callee.name)
            return before(callers, question)

        # What has changed just now is not trusted, but for this.
        monkeypatch.setattr(store, "_RACY", -(10**12))
        found = project.check()
        monkeypatch.setattr(Callers, "answer", counting)
        assert project.check() == found
        assert read == []

    def test_it_does_not_matter_who_examines(self, project: Project) -> None:
        found = project.check(cached=False)
        assert project.check(engine=partial(engine_for, 2)) == found
        assert project.check() == found
        assert project.followed == []
        assert self.FOUND not in project.check_text("pkg/layers.py", self.LAYERS)
        changed = f"{self.LAYERS}\n\nload(torch.ones(2))\n"
        assert self.FOUND in project.check_text("pkg/layers.py", changed)
