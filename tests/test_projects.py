"""What is known across files, as small projects: every heading in `projects/*.md` is a statement, shown by the files
under it.

The first line of a fence names the file. Marks are those of `flow/*.md`: the codes of findings, and the roles of steps
where a project tells any. Each project is checked as a directory and file by file, from the first to the last and
back, with the same result; and it is run, so that its own assertions hold.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from torchcopylint import check_paths
from torchcopylint.base.finding import Finding, Role
from torchcopylint.pages import load_pages

ROLES = {role.value for role in Role}
Mark = tuple[str, int, str]


class Project(NamedTuple):
    heading: str
    files: dict[str, str]
    marks: frozenset[Mark]

    def write(self, directory: Path) -> list[Path]:
        """Write the project into an empty directory; returns the paths of its files."""
        (directory / "pyproject.toml").touch()
        for name, text in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return [directory / name for name in self.files]

    def marked(self, what: set[str]) -> set[Mark]:
        return {mark for mark in self.marks if mark[2] in what}


def _projects() -> Iterator[object]:
    for path in sorted((Path(__file__).parent / "projects").glob("*.md")):
        for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, rest = section.partition("\n")
            fences = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
            files = {name: f"# {name}\n{text}" for name, text in fences}
            assert len(files) == rest.count("```python"), f"{path.name}: a file without a name: {heading}"
            marks = frozenset(mark for name, text in files.items() for mark in _marks(name, text))
            yield pytest.param(Project(heading, files, marks), id=f"{path.stem}: {heading}")


def _marks(name: str, text: str) -> Iterator[Mark]:
    for row, line in enumerate(text.splitlines(), start=1):
        for what in line.partition("# <- ")[2].split(", ") if "# <- " in line else []:
            assert what in {*ROLES, *load_pages()}, f"no such mark: {line}"
            yield name, row, what


PROJECTS = list(_projects())


@pytest.mark.parametrize("project", PROJECTS)
class TestEachProject:
    def test_it_is_judged_as_marked(self, project: Project, tmp_path: Path) -> None:
        paths = project.write(tmp_path)
        findings = check_paths(paths, isolated=True)
        assert {(f.filename, f.span.start.row, f.code) for f in findings} == project.marked(set(load_pages()))
        if project.marked(ROLES):
            assert _steps(findings) == project.marked(ROLES)

    def test_it_does_not_matter_which_files_are_named(self, project: Project, tmp_path: Path) -> None:
        paths = project.write(tmp_path)
        together = check_paths([tmp_path], isolated=True)
        alone = [finding for path in paths for finding in check_paths([path], isolated=True)]
        inside = [finding for finding in alone if "site-packages" not in finding.filename]
        assert sorted(inside, key=_order) == sorted(together, key=_order)


def _steps(findings: list[Finding]) -> set[Mark]:
    steps = {(step.filename, step.span.start.row, step.role.value) for finding in findings for step in finding.steps}
    return {step for step in steps if step[2] != Role.HERE}


def _order(finding: Finding) -> tuple[str, int, str]:
    return (finding.filename, finding.span.start.row, finding.code)


RUN_ALL = """
import importlib, os, runpy, sys

import torch

own = set(sys.modules)
sys.path[:1] = ["", ""]
for script in sys.argv[1:]:
    os.chdir(os.path.dirname(script))
    sys.path[:2] = [os.path.dirname(script), os.path.dirname(os.path.dirname(script))]
    for name in set(sys.modules) - own:
        module = sys.modules[name]
        places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        if any(place.startswith(os.environ["PROJECTS"]) for place in places):
            del sys.modules[name]
    importlib.invalidate_caches()
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as error:
        print(script, repr(error))
"""


def test_their_own_assertions_hold(tmp_path: Path) -> None:
    scripts = []
    for number, parameters in enumerate(PROJECTS):
        (project,) = parameters.values  # type: ignore[attr-defined]
        directory = tmp_path / str(number)
        directory.mkdir()
        project.write(directory)
        if "not searched" not in project.heading:
            scripts += [str(path) for path in directory.rglob("train.py")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN_ALL, *scripts],
        capture_output=True,
        text=True,
        env={"PROJECTS": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "PATH": ""},
        timeout=120,
        check=True,
    )
    assert not done.stdout
