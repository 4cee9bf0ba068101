"""Facts across files and notebooks, by every way that a run can take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Lint

UTILS = "def touch(x):\n    x.zero_()\n"
HARMLESS = "def touch(x):\n    return x.sum()\n"
TRAIN = """\
import torch
from utils import touch

x = torch.ones(3)
kept = x
touch(x)
print(kept, x)
"""
PLAIN = "from parts import build, spoil\n\nv = build()\nkept = v\nspoil(v)\nprint(kept, v)\n"
PARTS = "import torch\n\n\ndef build():\n    return torch.ones(3)\n\n\ndef spoil(x):\n    x.zero_()\n"
LINE = "train.py:6:1: warning[TCL501]"
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A title"]},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": TRAIN[: TRAIN.index("touch(x)")],
        },
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": "touch(x)\nprint(kept, x)",
        },
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "x = (\n"},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
OPTIONS = ("--output-format", "concise", "--cache-dir", "../cache", ".")


@pytest.fixture
def several(project: Path) -> Path:
    """A project with a file that spoils what others keep, some of them notebooks."""
    for name, text in {"utils": "from deep import touch\n", "deep": UTILS, "train": TRAIN, "alone": "x = 1\n"}.items():
        (project / f"{name}.py").write_text(text)
    (project / "study.ipynb").write_text(json.dumps(NOTEBOOK))
    return project


def cached(lint: Lint) -> str:
    """What a run with a cache prints."""
    return lint(*OPTIONS, TORCHCOPYLINT_NO_CACHE="").stdout


class TestTheCache:
    def test_what_is_replayed_is_what_was_found(self, several: Path, lint: Lint) -> None:
        fresh = lint("--output-format", "json", ".").stdout
        ways = [
            lint("--output-format", "json", "--cache-dir", "../cache", ".", TORCHCOPYLINT_NO_CACHE="").stdout
            for _ in range(2)
        ]
        assert ways == [fresh, fresh]
        found = [(finding["filename"], finding["code"]) for finding in json.loads(fresh)]
        assert found == [("study.ipynb", "TCL501"), ("study.ipynb", "TCL000"), ("train.py", "TCL501")]

    def test_a_changed_file_counts_for_all_that_use_it(self, several: Path, lint: Lint) -> None:
        assert LINE in cached(lint)
        (several / "deep.py").write_text(HARMLESS)
        assert "TCL501" not in cached(lint)
        (several / "deep.py").write_text(UTILS)
        out = cached(lint)
        assert LINE in out
        assert "study.ipynb" in out

    def test_a_file_that_goes_and_comes_counts(self, several: Path, lint: Lint) -> None:
        (several / "deep.py").unlink()
        assert LINE not in cached(lint)
        (several / "deep.py").write_text(UTILS)
        assert LINE in cached(lint)
        (several / "deep.py").unlink()
        assert LINE not in cached(lint)

    def test_a_package_that_takes_the_place_of_a_module_counts(self, several: Path, lint: Lint) -> None:
        assert LINE in cached(lint)
        (several / "deep").mkdir()
        (several / "deep" / "__init__.py").write_text(HARMLESS)
        assert LINE not in cached(lint)

    def test_a_spared_file_is_looked_at_again_when_what_it_imports_appears(self, project: Path, lint: Lint) -> None:
        (project / "work.py").write_text(PLAIN)
        assert "TCL501" not in cached(lint)
        (project / "parts.py").write_text(PARTS)
        assert "work.py:5:1: warning[TCL501]" in cached(lint)

    def test_no_other_file_is_examined_again(self, several: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
        from torchcopylint.pages import load_pages
        from torchcopylint.project import engine
        from torchcopylint.project.discover import discover
        from torchcopylint.project.pipeline import Checker
        from torchcopylint.project.resolver import Resolver
        from torchcopylint.project.select import RuleIndex
        from torchcopylint.project.store import Stores

        index = RuleIndex(load_pages())
        asked: list[str] = []
        examine = engine.examine_file

        def noted(request, *rest):  # type: ignore[no-untyped-def]
            asked.append(request.filename)
            return examine(request, *rest)

        monkeypatch.setattr(engine, "examine_file", noted)

        def run() -> list[str]:
            asked.clear()
            stores = Stores(str(several.parent / "kept"))
            Checker(index, stores=stores).check(discover(["."], Resolver(index, cwd=str(several), isolated=True)))
            return sorted(asked)

        assert run() == ["alone.py", "deep.py", "study.ipynb", "train.py", "utils.py"]
        assert run() == []
        (several / "alone.py").write_text("x = 2\n")
        assert run() == ["alone.py"]
        (several / "deep.py").write_text(HARMLESS)
        assert run() == ["deep.py", "study.ipynb", "train.py"]
        assert run() == []

    def test_what_many_depend_on_is_kept_once(self, project: Path, lint: Lint) -> None:
        """The cache of files that import one another through many others grows with their number, not its square."""
        sizes = []
        for count in (20, 40):
            for number in range(count):
                below = f"from m{number - 1} import f as g\n\n\ndef f(x):\n    g(x)\n" if number else UTILS
                (project / f"m{number}.py").write_text(below.replace("touch", "f"))
            lint("--cache-dir", f"../cache{count}", ".", TORCHCOPYLINT_NO_CACHE="")
            (path,) = (project.parent / f"cache{count}").glob("*-cache")
            sizes.append(path.stat().st_size)
        assert sizes[1] < 2.3 * sizes[0]

    def test_a_file_is_examined_again_if_what_it_uses_came_to_other_neighbours(self, several: Path, lint: Lint) -> None:
        """A run over a part learns that `middle.py` is as it was, and `deep.py` another; `train.py` must not take that
        for its own."""
        (several / "middle.py").write_text("import deep\n\n\ndef touch(x):\n    deep.touch(x)\n")
        (several / "train.py").write_text(TRAIN.replace("utils", "middle"))
        assert LINE in cached(lint)
        (several / "deep.py").write_text(HARMLESS)
        lint("--cache-dir", "../cache", "middle.py", "deep.py", TORCHCOPYLINT_NO_CACHE="")
        assert LINE not in cached(lint)


class TestOtherWays:
    @pytest.mark.parametrize("output_format", ["concise", "full", "json", "sarif"])
    def test_processes_find_the_same(self, several: Path, lint: Lint, output_format: str) -> None:
        whole = lint("--output-format", output_format, "--jobs", "1", ".").stdout
        assert lint("--output-format", output_format, "--jobs", "3", ".").stdout == whole
        assert "TCL501" in whole

    @pytest.mark.parametrize("output_format", ["concise", "full", "json", "sarif"])
    def test_parts_find_the_same(self, several: Path, lint: Lint, output_format: str) -> None:
        whole = lint("--output-format", output_format, ".").stdout
        names = []
        for number in (1, 2, 3):
            names.append(f"../part{number}.json")
            lint("--shard", f"{number}/3", "--output-format", "shard", "-o", names[-1], "--exit-zero", ".")
        assert lint("merge", "--output-format", output_format, *names).stdout == whole
        assert "TCL501" in whole

    def test_the_screen_changes_no_finding(self, several: Path, lint: Lint) -> None:
        (several / "plain.py").write_text(PLAIN)
        (several / "parts.py").write_text(PARTS)
        out = lint("--output-format", "concise", ".").stdout
        assert "plain.py:5:1: warning[TCL501]" in out
        assert lint("--output-format", "concise", "--no-screen", ".").stdout == out
