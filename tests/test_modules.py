"""Files of a project that know one another: what a run reads, keeps and says, beside what `projects/*.md` shows."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from conftest import Lint

from torchcopylint import check_paths, check_source
from torchcopylint.analysis import DEFAULT_LIMITS, Limits, followed, span_of
from torchcopylint.base.finding import Finding, Span
from torchcopylint.cli.main import run
from torchcopylint.flow.values.outside import ModuleFacts
from torchcopylint.pages import load_pages
from torchcopylint.project import modules as modules_module
from torchcopylint.project.dependencies import Dependencies, Dependency, Used
from torchcopylint.project.discover import discover
from torchcopylint.project.engine import one_by_one
from torchcopylint.project.examined import Request
from torchcopylint.project.modules import Modules
from torchcopylint.project.pipeline import Checker, FileResult
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.sources import Sources

UTILS = "def touch(x):\n    x.zero_()\n"
TRAIN = """\
import torch
from utils import touch

x = torch.ones(3)
kept = x
touch(x)
print(kept, x)
"""
FAULT = ("train.py", 6, "TCL501")


def write(directory: Path, **files: str) -> None:
    """Write files below a directory: `lib__utils="..."` is the text of `lib/utils.py`."""
    (directory / "pyproject.toml").touch()
    for name, text in files.items():
        path = directory / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def places(findings: list[Finding]) -> list[tuple[str, int, str]]:
    return [(finding.filename, finding.span.start.row, finding.code) for finding in findings]


def checked(*paths: Path) -> list[tuple[str, int, str]]:
    return places(check_paths(paths, isolated=True))


def results(directory: Path, *paths: Path) -> dict[str, FileResult]:
    index = RuleIndex(load_pages())
    resolver = Resolver(index, cwd=str(directory), isolated=True)
    discovery = discover([str(path) for path in paths or (directory,)], resolver)
    return {result.filename: result for result in Checker(index).check(discovery).files}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are followed, once for each time."""
    found: list[str] = []

    def counted(text: str, limits: Limits | None, around: modules_module.View) -> object:
        found.append(Path(around.path).name)
        return followed(text, limits, around)

    monkeypatch.setattr(modules_module, "followed", counted)
    return found


class TestWhatIsRead:
    def test_each_file_is_followed_once_in_a_run_over_all(self, tmp_path: Path, runs: list[str]) -> None:
        write(tmp_path, utils=UTILS, train=TRAIN, again=TRAIN, alone="import torch\nx = torch.ones(1)\n")
        assert len(checked(tmp_path)) == 2
        assert sorted(runs) == ["again.py", "alone.py", "train.py", "utils.py"]

    def test_a_file_that_nobody_uses_is_not_loaded(self, tmp_path: Path, runs: list[str]) -> None:
        other = "from utils import touch\n"
        unused = "import unused\nfrom handed import on\n"
        write(tmp_path, utils=UTILS, unused=UTILS, handed="on = 1\n", train=unused + TRAIN, other=other)
        assert checked(tmp_path / "train.py") == [("train.py", 8, "TCL501")]
        assert sorted(runs) == ["train.py", "utils.py"]

    def test_summarising_runs_no_rules(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found: list[str] = []
        findings = modules_module.Followed.findings

        def counted(self: modules_module.Followed, filename: str) -> object:
            found.append(filename)
            return findings(self, filename)

        monkeypatch.setattr(modules_module.Followed, "findings", counted)
        write(tmp_path, utils=UTILS, train=TRAIN)
        checked(tmp_path / "train.py")
        assert found == ["train.py"]

    def test_a_circle_costs_no_more_than_three_runs_of_each_of_its_files(self, tmp_path: Path, runs: list[str]) -> None:
        names = [f"m{number}" for number in range(6)]
        files = {
            name: f"import {names[number - 1]}\nimport {names[number - 2]}\n\n\ndef f(x):\n"
            f"    {names[number - 1]}.f(x)\n    {names[number - 2]}.f(x)\n"
            for number, name in enumerate(names)
        }
        write(tmp_path, **files)
        assert checked(tmp_path) == []
        assert max(runs.count(f"{name}.py") for name in names) <= 3

    def test_of_an_installed_package_the_others_beside_it_are_not_followed(
        self, tmp_path: Path, runs: list[str]
    ) -> None:
        """They need not have anything to do with one another, and can be a thousand times as large."""
        site = "lib__site-packages__"
        large = {
            f"{site}large__m{n}": f"from large import m{n + 1}\n\n\ndef f(x):\n    m{n + 1}.f(x)\n" for n in range(40)
        }
        caller = "import torch\nfrom large import m0\nfrom own import utils\n\nx = torch.ones(3)\nkept = x\nm0.f(x)\n"
        files = {
            **large,
            f"{site}large____init__": "",
            f"{site}large__m40": UTILS,
            f"{site}own____init__": "",
            f"{site}own__utils": UTILS,
            f"{site}own__train": f"{caller}utils.touch(x)\nprint(kept, x)\n",
            f"{site}single": f"{caller}print(kept, x)\n",
        }
        write(tmp_path, **files)
        packages = tmp_path / "lib" / "site-packages"
        assert checked(packages / "own" / "train.py") == [("lib/site-packages/own/train.py", 8, "TCL501")]
        assert checked(packages / "single.py") == []
        assert sorted(runs) == ["single.py", "train.py", "utils.py"]
        # In any other directory, packages that stand side by side are one project.
        packages.rename(tmp_path / "lib" / "packages")
        assert len(checked(tmp_path / "lib" / "packages" / "own" / "train.py")) == 1
        assert "m30.py" in runs

    def test_a_long_chain_ends_somewhere(self, tmp_path: Path) -> None:
        files = {f"m{n}": f"import m{n + 1}\n\n\ndef f(x):\n    m{n + 1}.f(x)\n" for n in range(90)}
        write(tmp_path, **files, m90="def f(x):\n    x.zero_()\n")
        caller = "import torch\nimport m{0}\n\nx = torch.ones(3)\nkept = x\nm{0}.f(x)\nprint(kept, x)\n"
        write(tmp_path, near=caller.format(60), far=caller.format(0))
        assert checked(tmp_path / "near.py") == [("near.py", 6, "TCL501")]
        assert checked(tmp_path / "far.py") == []


class TestWhatCannotBeKnown:
    @pytest.mark.parametrize("text", ["def touch(x:\n", "x = '\0'\n", "# coding: nonsense\n"])
    def test_a_file_that_is_no_python_is_unknown_to_others(self, tmp_path: Path, text: str) -> None:
        write(tmp_path, utils=text, train=TRAIN)
        assert checked(tmp_path / "train.py") == []
        assert "TCL000" in [code for _, _, code in checked(tmp_path)]

    def test_a_file_over_a_limit_is_unknown_to_others(self, tmp_path: Path) -> None:
        write(tmp_path, utils=UTILS + "#" * 500, train=TRAIN)
        (tmp_path / "pyproject.toml").write_text("[tool.torchcopylint]\nmax-file-size = 400\n")
        assert places(check_paths([tmp_path / "train.py"])) == []

    def test_a_directory_of_that_name_is_unknown(self, tmp_path: Path) -> None:
        write(tmp_path, train=TRAIN)
        (tmp_path / "utils.py").mkdir()
        (tmp_path / "utils").mkdir()
        assert checked(tmp_path / "train.py") == []

    def test_a_broken_link_is_unknown(self, tmp_path: Path) -> None:
        write(tmp_path, train=TRAIN)
        (tmp_path / "utils.py").symlink_to(tmp_path / "gone.py")
        assert checked(tmp_path / "train.py") == []

    def test_a_package_that_takes_a_name_out_of_its_unknown_module_of_that_name_ends(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`utils.touch` leads to `utils.touch.touch`, and that, by way of the package, to `utils.touch.touch.touch`."""
        package = tmp_path / "utils"
        package.mkdir()
        (package / "__init__.py").write_text("from utils.touch import touch\n")
        (package / "touch.py").write_text("def touch(x:\n")
        write(tmp_path, train=TRAIN.replace("from utils import touch", "from utils.touch import touch"))
        steps: list[str] = []
        places = Sources.places

        def counted(self: Sources, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
            steps.append(dotted)
            assert len(steps) < 500, "names that get longer and longer"
            return places(self, importer, dotted)

        monkeypatch.setattr(Sources, "places", counted)
        assert checked(tmp_path / "train.py") == []
        assert steps

    def test_an_internal_error_in_another_file_is_told_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(text: str, limits: Limits | None, around: modules_module.View) -> object:
            if around.path.endswith("utils.py"):
                raise KeyError("lost")
            return followed(text, limits, around)

        monkeypatch.setattr(modules_module, "followed", failing)
        write(tmp_path, utils=UTILS, train=TRAIN)
        assert checked(tmp_path / "train.py") == []
        assert [code for _, _, code in checked(tmp_path)] == ["TCL005"]

    def test_what_has_changed_between_two_runs_is_read_anew(self, tmp_path: Path) -> None:
        write(tmp_path, utils=UTILS, train=TRAIN)
        assert checked(tmp_path / "train.py") == [FAULT]
        write(tmp_path, utils="def touch(x):\n    return x.sum()\n")
        assert checked(tmp_path / "train.py") == []


def dependencies(directory: Path, *paths: Path) -> dict[str, tuple[Dependencies, dict[str, Used]]]:
    """By the name of each file: what it made use of directly, and all files that the run told of."""
    files = list(paths) or sorted(directory.glob("*.py"))
    requests = [Request(str(path), path.name, DEFAULT_LIMITS, str(directory)) for path in files]
    seen = {requests[number].filename: item for number, item in one_by_one(requests, load_pages(), lambda path: None)}
    used = {Path(item.path).name: item for one in seen.values() for item in one.used}
    return {name: (one.examined.dependencies, used) for name, one in seen.items()}


def names(files: Iterable[Dependency]) -> list[str]:
    return [Path(file.path).name for file in files]


class TestDependencies:
    def test_the_files_that_count_are_named_with_their_digests(self, tmp_path: Path) -> None:
        write(tmp_path, utils="from deep import touch\n", deep=UTILS, train=TRAIN, other="x = 1\n")
        found = dependencies(tmp_path)
        direct, used = found["train.py"]
        assert names(direct.files) == ["deep.py", "utils.py"]
        assert [file.digest for file in direct.files] == [used["deep.py"].digest, used["utils.py"].digest]
        assert all(len(file.digest) == 32 for file in direct.files)
        assert found["other.py"][0].files == ()
        alone, used_alone = dependencies(tmp_path, tmp_path / "train.py")["train.py"]
        assert alone == direct
        assert [used_alone[name] for name in ("deep.py", "utils.py")] == [
            used[name] for name in ("deep.py", "utils.py")
        ]
        write(tmp_path, deep=UTILS + "# changed\n")
        changed, _ = dependencies(tmp_path)["train.py"]
        assert [one == other for one, other in zip(direct.files, changed.files, strict=True)] == [False, True]

    def test_what_a_used_file_uses_itself_is_told_with_it(self, tmp_path: Path) -> None:
        middle = "import deep\n\n\ndef touch(x):\n    deep.touch(x)\n"
        write(tmp_path, utils=middle, deep=UTILS, train=TRAIN)
        direct, used = dependencies(tmp_path, tmp_path / "train.py")["train.py"]
        assert names(direct.files) == ["utils.py"]
        assert names(used["utils.py"].dependencies.files) == ["deep.py"]
        assert used["deep.py"].dependencies.files == ()

    def test_a_file_that_could_not_be_read_has_no_digest(self, tmp_path: Path) -> None:
        write(tmp_path, train=TRAIN)
        (tmp_path / "utils.py").symlink_to(tmp_path / "gone.py")
        direct, used = dependencies(tmp_path, tmp_path / "train.py")["train.py"]
        assert [(Path(file.path).name, file.digest) for file in direct.files] == [("utils.py", "")]
        assert used["utils.py"].digest == ""

    def test_names_that_led_nowhere_are_named_too(self, tmp_path: Path) -> None:
        write(tmp_path, train=TRAIN)
        lookups = dependencies(tmp_path)["train.py"][0].lookups
        assert ("utils.touch", ()) in [(lookup.dotted, lookup.found) for lookup in lookups]
        write(tmp_path, utils=UTILS)
        sources = Sources(str(tmp_path))
        assert any(
            lookup.found != tuple(path for path, _ in sources.places(lookup.importer, lookup.dotted))
            for lookup in lookups
        )

    def test_the_files_of_a_circle_depend_on_one_another(self, tmp_path: Path) -> None:
        one = "import two\n\n\ndef f(x):\n    two.g(x)\n"
        two = "import one\n\n\ndef g(x):\n    one.f(x)\n"
        write(tmp_path, one=one, two=two)
        found = dependencies(tmp_path)
        assert names(found["one.py"][0].files) == ["two.py"]
        assert names(found["two.py"][0].files) == ["one.py"]
        assert names(found["one.py"][1]["two.py"].dependencies.files) == ["one.py"]


class TestSummaries:
    NET = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))


class Net(Base):
    def forward(self, x):
        x.mul_(2)
        return x * self.scale


net = Net()
"""
    USE = """\
import torch
from net import Net, net

x = torch.ones(3)
kept = x
net(x)
print(kept, x)
Net().scale.mul_(2)
"""

    def test_a_pickled_summary_does_as_well(self, tmp_path: Path) -> None:
        write(tmp_path, net=self.NET, use=self.USE)
        fresh = check_paths([tmp_path / "use.py"], isolated=True)
        assert places(fresh) == [("use.py", 6, "TCL501"), ("use.py", 8, "TCL201")]
        modules = Modules(str(tmp_path), DEFAULT_LIMITS)
        modules.analyse(str(tmp_path / "use.py"), self.USE, "use.py")
        stored = pickle.dumps({path: summary for path, summary in modules._summaries.items() if "net" in path})
        (tmp_path / "net.py").write_text("")
        loaded: dict[str, ModuleFacts] = pickle.loads(stored)
        assert next(iter(loaded.values())) == next(s for path, s in modules._summaries.items() if "net" in path)

        class Stored:
            path = str(tmp_path / "use.py")

            def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
                return Sources(str(tmp_path)).places(importer, dotted)

            def facts(self, path: str) -> ModuleFacts | None:
                return loaded.get(path)

            def all_off(self, path: str, owner: str, name: str) -> bool:
                return False

            def step_at(self, path: str, site: int) -> tuple[str, Span] | None:
                span = span_of(TestSummaries.NET, site)
                return (Path(path).name, span) if span is not None else None

        again = followed(self.USE, DEFAULT_LIMITS, Stored()).findings("use.py").findings
        assert [f for f in again if f.code in ("TCL501", "TCL201")] == fresh

    def test_a_summary_holds_no_tree(self, tmp_path: Path) -> None:
        write(tmp_path, net=self.NET, use=self.USE)
        modules = Modules(str(tmp_path), DEFAULT_LIMITS)
        modules.analyse(str(tmp_path / "use.py"), self.USE, "use.py")
        assert b"libcst" not in pickle.dumps(modules._summaries)


class TestWaysToAsk:
    def test_standard_input_with_a_name_has_other_files(self, lint: Lint, project: Path) -> None:
        write(project, utils=UTILS)
        done = lint("-", "--stdin-filename", "train.py", "--output-format", "concise", stdin=TRAIN)
        assert "train.py:6:1: warning[TCL501]" in done.stdout

    def test_standard_input_without_a_name_has_none(self, lint: Lint, project: Path) -> None:
        write(project, utils=UTILS)
        assert lint("-", stdin=TRAIN).returncode == 0

    def test_a_text_with_a_name_has_other_files_and_one_without_has_none(self, project: Path) -> None:
        write(project, utils=UTILS)
        assert places(check_source(TRAIN, "train.py")) == [FAULT]
        assert check_source(TRAIN) == []

    def test_a_line_is_explained_with_what_other_files_do(self, lint: Lint, project: Path) -> None:
        write(project, utils=UTILS, train=TRAIN)
        out = lint("explain", "train.py:6").stdout
        assert "written there, in `touch`: `zero_`" in out
        assert "utils.py:2:5" in out


class TestSteps:
    """A step that lies in another file, in every format."""

    @pytest.fixture
    def told(self, project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
        write(project, lib__helpers__utils=UTILS, train=TRAIN.replace("from utils", "from lib.helpers.utils"))

        def call(output_format: str) -> str:
            assert run(("train.py", "--output-format", output_format)) == 1
            return capsys.readouterr().out

        return call

    def test_for_people(self, told: Callable[[str], str]) -> None:
        assert (
            "  --> lib/helpers/utils.py:2:5\n   2 |     x.zero_()\n     |     --------- 3 written there, in `touch`:"
            in told("full")
        )
        assert told("concise").startswith("train.py:6:1: warning[TCL501]")

    @pytest.mark.parametrize("name", ["json", "jsonl"])
    def test_in_json(self, told: Callable[[str], str], name: str) -> None:
        loaded = json.loads(told(name))
        (entry,) = loaded if name == "json" else [loaded]
        steps = [(step["role"], step["filename"], step["location"]["row"]) for step in entry["related"]]
        assert steps == [
            ("shared", "train.py", 5),
            ("written", "train.py", 6),
            ("written", "lib/helpers/utils.py", 2),
            ("read", "train.py", 7),
        ]

    def test_in_annotations(self, told: Callable[[str], str]) -> None:
        assert "%0A3 lib/helpers/utils.py:2: written there, in `touch`: `zero_`%0A4 train.py:7:" in told("github")

    def test_in_sarif(self, told: Callable[[str], str]) -> None:
        (run,) = json.loads(told("sarif"))["runs"]
        (result,) = run["results"]
        (flow,) = result["codeFlows"][0]["threadFlows"]
        uris = [step["location"]["physicalLocation"]["artifactLocation"]["uri"] for step in flow["locations"]]
        assert uris == ["train.py", "train.py", "lib/helpers/utils.py", "train.py"]
        region = flow["locations"][2]["location"]["physicalLocation"]["region"]
        assert region["snippet"]["text"] == "x.zero_()"
