"""What a file imports from its project is run with it, under names of its own, and is not stood in for."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from torchcopylint import check_paths
from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Evidence, Verdict
from torchcopylint.pages import load_pages
from torchcopylint.project.neighbours import Neighbours
from torchcopylint.project.verdicts import key_of
from torchcopylint.verify.model import Slice
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing import linking
from torchcopylint.verify.slicing.linking import Linked
from torchcopylint.verify.slicing.slicer import slice_of, texts_of_others
from torchcopylint.verify.told import as_told


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def written(root: Path, files: Mapping[str, str]) -> Neighbours:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return Neighbours(str(root))


def link(root: Path, files: Mapping[str, str], name: str = "main.py") -> Linked:
    project = written(root, files)
    text = project.text(name)
    assert text is not None
    return linking._linked(text, name, project, ())


def code(whole: Linked) -> str:
    return ast.unparse(whole.source.tree)


def run(whole: Linked) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "main"}
    exec(code(whole), names)
    return names


CHAINS = {
    "main.py": """
        import math
        import tools
        import pkg.deep as deep
        from pkg import made as build, LIMIT
        from pkg.inner import *
        from .sibling import late

        scale = 7

        def used():
            return tools.scaled(2), deep.deepest(3), build(4), LIMIT, starred(1), late()

        answer = used()
        """,
    "sibling.py": """
        import math

        def late():
            return math.floor(2.5)
        """,
    "tools.py": """
        from functools import reduce as math

        scale = 10

        def scaled(value, math=1):
            return value * scale * math

        def never():
            raise SystemExit

        if __name__ == "__main__":
            never()
        """,
    "pkg/__init__.py": """
        from .inner import build as made
        from . import inner

        LIMIT = inner.LIMIT + 1
        """,
    "pkg/inner.py": """
        LIMIT = 5
        scale = 100

        def starred(value):
            scale = 3
            return [scale * value for scale in (scale, 4)]

        def build(value):
            global scale
            scale = scale + 1
            return value + scale
        """,
    "pkg/deep.py": """
        from pkg.inner import build

        class Deep:
            build = staticmethod(build)
            scale = 2

        def deepest(value):
            return Deep.build(value) + Deep.scale
        """,
}


def test_names_lead_to_what_they_stand_for_whatever_else_is_called_so(tmp_path: Path) -> None:
    whole = link(tmp_path, CHAINS)
    assert run(whole)["answer"] == (20, 106, 106, 6, [3, 4], 2)
    assert run(whole)["scale"] == 7
    assert "SystemExit" not in code(whole)
    assert "import tools" not in code(whole)
    assert set(whole.above) == {"sibling.py", "tools.py", "pkg/__init__.py", "pkg/inner.py", "pkg/deep.py"}


def test_every_row_is_told_by_its_file(tmp_path: Path) -> None:
    whole = link(tmp_path, CHAINS)
    for node in whole.source.tree.body:
        name = getattr(node, "name", "")
        if name.startswith(("deepest", "build", "late")):
            file, row = whole.place(node.lineno)
            assert (tmp_path / file).read_text(encoding="utf-8").splitlines()[row - 1].startswith("def ")
            line = whole.source.lines[node.lineno - 1]
            assert line == (tmp_path / file).read_text(encoding="utf-8").splitlines()[row - 1]
    assert whole.place(3) == ("", 3)


def test_what_is_only_passed_on_or_is_nowhere_stays_as_it_was(tmp_path: Path) -> None:
    files = {
        "main.py": """
            import tools
            from tools import absent, present
            from elsewhere import thing

            def call(function=tools):
                return absent, thing, present, getattr(tools, "present")
            """,
        "tools.py": "present = 1\n",
    }
    text = code(link(tmp_path, files))
    assert "import tools" in text
    assert "from tools import absent\n" in text
    assert "from elsewhere import thing" in text
    assert text.startswith("present = 1")


def test_files_that_import_each_other(tmp_path: Path) -> None:
    files = {
        "main.py": "from a import one\n\ndef base():\n    return 1\n\nanswer = one(2)\n",
        "a.py": "from b import two\n\ndef one(n):\n    return two(n) if n else 5\n",
        "b.py": "import a\nfrom main import base\n\ndef two(n):\n    return a.one(n - 1) + base()\n",
    }
    assert run(link(tmp_path, files))["answer"] == 7


def test_there_is_a_limit_to_what_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "_MOST_ROWS", 4)
    long = "def long():\n" + "    pass\n" * 10
    whole = link(
        tmp_path, {"main.py": "from tools import long, short\n\nlong, short\n", "tools.py": f"{long}\nshort = 1\n"}
    )
    assert "def long" not in code(whole)
    assert "from tools import long\n" in code(whole)


def found(root: Path, wanted: str, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.chdir(root)
    return next(finding for finding in check_paths(["main.py"], isolated=True) if finding.code == wanted)


TRAINING = {
    "main.py": """
        import torch
        from models import Net
        from steps import train

        model = Net(4)
        best = model.state_dict()
        train(model, [torch.randn(2, 4) for _ in range(2)])
        model.load_state_dict(best)
        """,
    "models.py": """
        import torch.nn as nn

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.head = nn.Linear(width, 1)

            def forward(self, x):
                return self.head(x)
        """,
    "steps.py": """
        import torch.optim as optim

        def train(model, batches):
            optimizer = optim.SGD(model.parameters(), lr=0.1)
            for x in batches:
                optimizer.zero_grad()
                model(x).mean().backward()
                optimizer.step()
        """,
}


def test_a_finding_with_a_step_in_another_file_is_confirmed(
    tmp_path: Path, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = written(tmp_path, TRAINING)
    finding = found(tmp_path, "TCL701", monkeypatch)
    text = project.text("main.py")
    assert text is not None
    page = load_pages()[finding.code]
    alone = verifier.verify(slice_of(text, finding, page), page)
    answer = verifier.verify(slice_of(text, finding, page, project=project), page)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert not [item for item in answer.evidence if item.kind == "stand-in"]
    assert any(step.filename == "steps.py" for step in finding.steps)
    assert alone.verdict is Verdict.UNSUPPORTED


def test_evidence_tells_rows_of_other_files_by_their_names(tmp_path: Path) -> None:
    whole = link(tmp_path, TRAINING)
    row = 8 + whole.above["steps.py"]
    piece = Slice("TCL701", "", (), place=whole.place)
    told = as_told([Evidence("reason", f"line 3, {row} did not run", row), Evidence("reason", "line 4", 4)], piece)
    assert told == (Evidence("reason", "line 3, line 8 of steps.py did not run"), Evidence("reason", "line 4", 4))


def test_a_verdict_depends_on_the_files_that_were_run_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = written(tmp_path, TRAINING)
    finding = found(tmp_path, "TCL701", monkeypatch)
    text, page = project.text("main.py"), load_pages()[finding.code]
    assert text is not None
    before = key_of(text, finding, page, "cpu", 5.0, texts_of_others(text, finding, project))
    (tmp_path / "unrelated.py").write_text("x = 1\n", encoding="utf-8")
    project = Neighbours(str(tmp_path))
    assert key_of(text, finding, page, "cpu", 5.0, texts_of_others(text, finding, project)) == before
    (tmp_path / "models.py").write_text("Net = None\n", encoding="utf-8")
    project = Neighbours(str(tmp_path))
    assert key_of(text, finding, page, "cpu", 5.0, texts_of_others(text, finding, project)) != before
