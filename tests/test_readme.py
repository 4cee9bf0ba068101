"""The README and the other documents at the top: what they show is what happens, and what they name exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from generated_parts import DOCUMENTS, parts, refreshed
from options import imported

from torchcopylint import __version__
from torchcopylint.pages import load_pages

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text()


def command(name: str) -> str:
    """The one line under `<!-- command: NAME -->`."""
    (fence,) = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (line,) = fence.splitlines()
    return str(line)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_generated_parts_are_fresh(path: Path) -> None:
    """After a change: `python -m tests.generated_parts`."""
    text = path.read_text(encoding="utf-8")
    assert refreshed(text) == text


def test_the_readme_shows_a_finding_and_all_rules() -> None:
    assert parts(README) == ["output", "rules"]
    table = README.partition("<!-- rules -->")[2].partition("<!-- /rules -->")[0]
    assert re.findall(r"^\| (TCL\d+) \|", table, re.MULTILINE) == list(load_pages())


def test_a_part_that_is_not_fresh_is_noticed() -> None:
    assert refreshed(README.replace("| TCL701 |", "| TCL799 |")) == README
    assert README.count("| TCL701 |") == 1


def test_the_first_command_runs_on_the_examples() -> None:
    assert command("try").endswith(" && .venv/bin/torchcopylint --exit-zero examples")


def test_the_second_command_installs_what_is_pinned_and_runs_all_tests() -> None:
    *_, install, run = command("test").split(" && ")
    assert shlex.split(install) == [".venv/bin/pip", "install", "-c", "constraints.txt", "-e", ".[dev]"]
    assert run == ".venv/bin/pytest"


def test_no_command_needs_an_activated_environment() -> None:
    for name in ("try", "test"):
        for part in command(name).split(" && "):
            assert part.split()[0] in ("python3", ".venv/bin/pip", ".venv/bin/pytest", ".venv/bin/torchcopylint")


def test_ci_runs_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert '"$(documented try)"' in script
    assert '"$(documented test)"' in script
    assert "--no-skips" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_what_is_pinned_is_what_the_extras_ask_for() -> None:
    asked = {re.split(r"[>=\[]", entry)[0] for extra in EXTRAS.values() for entry in extra} - {"torchcopylint"}
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", CONSTRAINTS, re.MULTILINE))
    assert pinned["torch"] == "2.13.0"
    required = {"click", "libcst", "pathspec", "platformdirs"}
    assert {name.replace("_", "-") for name in pinned} == asked - {"pyyaml"} | required


def test_what_the_tests_import_is_declared() -> None:
    """What happens to be installed here is not there in a fresh environment."""
    declared = {re.split(r"[>=\[]", entry)[0].replace("-", "_") for extra in EXTRAS.values() for entry in extra}
    # The hostile programs ask for what must not be there.
    programs = [path for path in (ROOT / "tests").rglob("*.py") if "hostile" not in path.parts]
    names = {name.partition(".")[0] for path in programs for name in imported(path)}
    own = {path.stem for path in (ROOT / "tests").iterdir()} | {"benchmarks", "docs_hooks", "tests"}
    assert names - own - sys.stdlib_module_names - declared == {"yaml", "libcst", "platformdirs"}


def test_the_observed_blocks_are_of_the_torch_that_is_pinned() -> None:
    assert {page.keys["torch"] for page in load_pages().values() if page.examples} == {"2.13"}


@pytest.mark.parametrize("path", TOP, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_changelog_has_this_version_and_every_rule() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", text, re.MULTILINE)
    assert [code for code in load_pages() if code not in text] == []


@pytest.mark.parametrize("name", ["ci.yml", "docs.yml"])
def test_workflows_are_yaml_with_jobs(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
    assert workflow["jobs"]


def test_the_workflow_covers_the_supported_pythons() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = {entry.split()[-1] for entry in project["classifiers"] if "Python :: 3." in entry}
    assert {"3.11", *workflow["jobs"]["other-pythons"]["strategy"]["matrix"]["python"]} == supported
