"""Commands that print rule pages, what the documentation says of the command line, and what starting it costs."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import Lint, write

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.cli.check import check
from torchcopylint.pages import load_pages
from torchcopylint.project.config import KEYS
from torchcopylint.project.patterns import DEFAULT_EXCLUDES


class TestExplain:
    @pytest.mark.parametrize("rule", ["TCL104", "tcl104", "data-read"])
    def test_a_page_by_code_or_name_is_markdown_when_piped(self, lint: Lint, rule: str) -> None:
        done = lint("explain", rule)
        assert done.stdout.startswith("# data-read\n\nTCL104 · warning · on by default · confidence ")
        assert "\n```python bad\n" in done.stdout
        assert "\n## Why it matters\n" in done.stdout

    def test_several_pages(self, lint: Lint) -> None:
        headings = [line for line in lint("explain", "TCL000", "TCL001").stdout.splitlines() if line.startswith("# ")]
        assert headings == ["# unreadable-file", "# blanket-suppression"]

    def test_on_a_terminal_it_is_readable(self, lint: Lint) -> None:
        out = lint("explain", "TCL104", "--color", "always").stdout
        assert "```" not in out
        assert "## " not in out
        assert "\x1b[1mWhy it matters\x1b[0m" in out

    def test_variants_are_named(self, lint: Lint) -> None:
        assert "variant idiom: info" in lint("explain", "TCL103").stdout

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            ("TCL140", "there is no rule `TCL140`; did you mean `TCL104`?"),
            ("data-raed", "there is no rule `data-raed`; did you mean `data-read`?"),
            (
                "TCL00",
                "`TCL00` stands for several rules: "
                "TCL000, TCL001, TCL002, TCL003, TCL004, TCL005, TCL006; name one of them",
            ),
        ],
    )
    def test_an_unknown_rule_is_2_and_names_the_nearest(self, lint: Lint, rule: str, message: str) -> None:
        done = lint("explain", rule)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"Error: {message}\n")


class TestRules:
    def test_every_rule_is_a_line(self, lint: Lint) -> None:
        lines = lint("rules").stdout.splitlines()
        assert [line.split()[:2] for line in lines] == [[page.code, page.name] for page in load_pages().values()]

    def test_as_json(self, lint: Lint) -> None:
        entries = {entry["code"]: entry for entry in json.loads(lint("rules", "--output-format", "json").stdout)}
        assert list(entries) == list(load_pages())
        entry = entries["TCL103"]
        assert (entry["name"], entry["severity"], entry["default"]) == ("data-write", "warning", "on")
        assert entry["variants"]["idiom"] == {"severity": "info", "default": "off"}
        assert entry["summary"]


class TestDocumentation:
    DOCS = Path(__file__).resolve().parent.parent / "docs"

    def test_every_option_is_documented_and_every_documented_option_exists(self) -> None:
        text = (self.DOCS / "usage.md").read_text(encoding="utf-8")
        table = text.partition("## Options of `check`\n")[2].partition("\n## ")[0]
        documented = {
            name for row in re.findall(r"^\| (.*?) \| ", table, re.M) for name in re.findall(r"--?[a-z][\w-]*", row)
        }
        declared = {name for parameter in check.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert documented == {name for name in declared if name.startswith("-")}

    def test_every_key_is_documented_and_every_documented_key_exists(self) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        table = text.partition("## Keys\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.M)) == set(KEYS)

    def test_documented_limits_are_those_of_the_analysis(self) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(max-[a-z-]+)` \|.*\| `(\d+)` \|$", text, re.MULTILINE)
        limits = dataclasses.asdict(DEFAULT_LIMITS)
        assert {name.replace("-", "_"): int(value) for name, value in rows} == limits

    def test_every_default_exclude_is_documented(self) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        listed = text.partition("which are always left out: ")[2].partition(".\n\n")[0]
        assert tuple(re.findall(r"`([^`]+)`", listed)) == DEFAULT_EXCLUDES

    def test_the_documented_configuration_is_accepted(self, project: Path, lint: Lint) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        (project / "pyproject.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
        assert lint("--show-settings").returncode == 0

    @pytest.mark.parametrize("page", ["ci.md", "pre-commit.md"])
    def test_documented_calls_are_accepted(self, project: Path, lint: Lint, page: str) -> None:
        write(project, a_py="x = 1\n")
        text = (self.DOCS / page).read_text(encoding="utf-8")
        calls = re.findall(r"(?:- run: |`)torchcopylint ((?:check )?--[^`\n]+)", text)
        assert calls
        for call in calls:
            assert lint(*call.split()).returncode == 0

    def test_documented_workflows_are_yaml_with_a_job(self) -> None:
        blocks = re.findall(r"```yaml\n(.*?)```", (self.DOCS / "ci.md").read_text(encoding="utf-8"), re.S)
        workflows = [yaml.safe_load(block) for block in blocks]
        assert [list(workflow["jobs"]) for workflow in workflows] == [["torchcopylint"], ["torchcopylint"]]


class TestStartUp:
    def imported(self, *arguments: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "torchcopylint", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}

    def test_the_version_needs_nothing(self) -> None:
        modules = self.imported("--version")
        assert "torchcopylint" in modules
        assert modules.isdisjoint({"torch", "numpy", "libcst", "click", "pathspec", "dataclasses", "typing", "json"})

    def test_help_needs_neither_torch_nor_libcst(self) -> None:
        modules = self.imported("check", "--help")
        assert "click" in modules
        assert modules.isdisjoint({"torch", "numpy", "libcst", "pathspec"})

    def test_a_run_never_imports_torch(self, project: Path) -> None:
        write(project, a_py="import torch\nx = torch.ones(1).data\n")
        assert self.imported("a.py", "--exit-zero").isdisjoint({"torch", "numpy"})

    def test_a_run_over_a_named_file_without_patterns_needs_no_pathspec(self, project: Path) -> None:
        write(project, a_py="x = 1\n")
        assert "pathspec" not in self.imported("a.py")

    def test_a_file_through_standard_input_needs_what_analyses_it_and_little_else(self, project: Path) -> None:
        """Nothing that is slow to load, LibCST included, as nothing is found; and one command does not load another."""
        write(project, a_py="import torch\nx = torch.ones(1)\nx.add_(1)\n")
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "torchcopylint", "-"],
            input=(project / "a.py").read_text(),
            capture_output=True,
            text=True,
            check=True,
        )
        modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
        assert "torchcopylint.flow.files.world" in modules
        slow = {"asyncio", "distributed", "libcst", "multiprocessing", "platformdirs", "pathspec", "tomllib"}
        assert modules.isdisjoint(slow)
        own = {name.removeprefix("torchcopylint.") for name in modules if name.startswith("torchcopylint.")}
        others = {"cli.clean", "cli.explain", "cli.merge", "cli.rules", "cli.show", "closeup", "project.explaining"}
        assert own.isdisjoint(others | {"project.cluster", "project.processes", "project.worker", "report.sarif"})
        assert len(own) < 450
