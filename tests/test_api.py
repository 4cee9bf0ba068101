"""The public functions."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from conftest import UNUSED
from example_findings import ScriptedAnalysis, finding

import torchcopylint
from torchcopylint.base.finding import Severity


def codes(findings: list[torchcopylint.Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_what_is_exported() -> None:
    assert torchcopylint.__all__ == ["Finding", "__version__", "check_paths", "check_source"]
    assert all(hasattr(torchcopylint, name) for name in torchcopylint.__all__)


def test_it_is_typed() -> None:
    assert files("torchcopylint").joinpath("py.typed").is_file()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'torchcopylint' has no attribute 'nope'"):
        torchcopylint.nope  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_is_light() -> None:
    program = "import sys; before = set(sys.modules); import torchcopylint; print(*sorted(set(sys.modules) - before))"
    out = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert set(out) <= {"__future__", "torchcopylint"}


def test_checking_a_text_returns_findings() -> None:
    (found,) = torchcopylint.check_source(UNUSED, "a.py")
    assert isinstance(found, torchcopylint.Finding)
    assert (found.code, found.filename, found.span.start.row, found.span.start.column) == ("TCL002", "a.py", 1, 32)


def test_the_name_is_optional() -> None:
    assert torchcopylint.check_source(UNUSED)[0].filename == "<string>"


def test_a_clean_text_has_no_findings() -> None:
    assert torchcopylint.check_source("x = 1\n") == []


@pytest.mark.parametrize("text", ["x = '\0'", "def f(:\n"])
def test_a_text_that_is_no_python_is_a_finding(text: str) -> None:
    assert codes(torchcopylint.check_source(text)) == ["TCL000"]


def test_the_working_directory_has_no_influence_on_a_text(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torchcopylint]\nignore = ["TCL002"]\n')
    assert codes(torchcopylint.check_source(UNUSED, "a.py")) == ["TCL002"]


def test_a_selection_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    made = (finding("TCL104"), finding("TCL105", severity=Severity.INFO))
    monkeypatch.setattr("torchcopylint.project.examined.analyse", ScriptedAnalysis({"<string>": made}))
    assert codes(torchcopylint.check_source("x")) == ["TCL104"]
    assert codes(torchcopylint.check_source("x", preset="strict")) == ["TCL104", "TCL105"]
    assert codes(torchcopylint.check_source("x", select=["TCL105"])) == ["TCL105"]
    assert codes(torchcopylint.check_source("x", select=[])) == []
    assert codes(torchcopylint.check_source("x", extend_select=["grad-data"])) == ["TCL104", "TCL105"]
    assert codes(torchcopylint.check_source("x", ignore=["TCL1"])) == []
    assert codes(torchcopylint.check_source("x", preset="bugs", min_confidence="low")) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "strct"}, "`preset` cannot be `strct`; did you mean `strict`?"),
        ({"select": ["TCL140"]}, "`select`: there is no rule `TCL140`; did you mean `TCL104`?"),
        ({"min_confidence": "hihg"}, "`min-confidence` cannot be `hihg`; did you mean `high`?"),
    ],
)
def test_a_wrong_argument_is_a_value_error(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        torchcopylint.check_source("x", **given)  # type: ignore[arg-type]


def test_checking_paths_finds_configuration_as_the_command_line_does(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "a.py").write_text(UNUSED)
    (project / "b.py").write_text(UNUSED)
    (project / "sub" / "pyproject.toml").write_text('[tool.torchcopylint]\nignore = ["TCL002"]\n')
    assert [found.filename for found in torchcopylint.check_paths([Path()])] == ["b.py"]
    assert [found.filename for found in torchcopylint.check_paths(["."], isolated=True)] == ["b.py", "a.py"]
    assert torchcopylint.check_paths(["b.py"], config="sub/pyproject.toml") == []


def test_a_missing_path_is_an_exception(project: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file or directory: nope.py"):
        torchcopylint.check_paths(["nope.py"])


def test_wrong_configuration_is_a_value_error(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.torchcopylint]\nselct = []\n")
    with pytest.raises(ValueError, match=r"has no key `selct`; did you mean `select`\?"):
        torchcopylint.check_paths(["."])


def test_a_fault_of_the_analysis_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchcopylint.project.examined.analyse", ScriptedAnalysis({"<string>": KeyError("lost")}))
    assert codes(torchcopylint.check_source("x")) == ["TCL005"]


def test_the_documented_example_runs() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    out = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert out.startswith("TCL001 2 this suppression names no rule")


@pytest.mark.parametrize("function", [torchcopylint.check_source, torchcopylint.check_paths])
def test_the_documented_signatures_are_right(function: Callable[..., object]) -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    bare = str(inspect.Signature(plain)).replace("'", '"')
    assert f"## `{function.__name__}{bare}`\n" in text
