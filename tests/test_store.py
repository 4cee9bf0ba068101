"""The cache: what is replayed, what is examined anew, and what may happen to the file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from conftest import Lint, write
from example_findings import ScriptedAnalysis, finding

from torchcopylint import __version__
from torchcopylint.analysis import Limits
from torchcopylint.pages import load_pages
from torchcopylint.project import store as store_module
from torchcopylint.project.dependencies import NOTHING, Dependencies, Dependency, Used
from torchcopylint.project.discover import discover
from torchcopylint.project.pipeline import Checker, RunResult
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.settings import FORMATS, Layer
from torchcopylint.project.store import SUFFIX, Store, Stores, clean, default_directory

FAULT = "import torch\nw = torch.ones(2, requires_grad=True)\nw.data.zero_()\n"
HOUR = 3600


def age(*paths: Path) -> None:
    """Give files a date long past: what has changed just now is not trusted by its date."""
    for path in paths:
        os.utime(path, (time.time() - HOUR, time.time() - HOUR))


class Runs:
    """Runs over `project` with a cache and a scripted analysis that tells what it was asked."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.directory = str(project.parent / "cache")
        self.analysis = ScriptedAnalysis({})
        self.index = RuleIndex(load_pages())
        self.notes: tuple[str, ...] = ()
        self.used: tuple[Used, ...] = ()
        monkeypatch.setattr("torchcopylint.project.examined.analyse", lambda *a, **k: self.analysis(*a, **k))
        monkeypatch.setattr("torchcopylint.project.examined.Projects.news", lambda projects: self.used)

    def __call__(self, **settings: object) -> RunResult:
        layer = Layer(base=str(self.project), **settings)  # type: ignore[arg-type]
        resolver = Resolver(self.index, cwd=str(self.project), command_line=layer, isolated=True)
        stores = Stores(self.directory)
        self.analysis.asked.clear()
        run = Checker(self.index, stores=stores).check(discover(["."], resolver))
        self.notes = stores.notes
        return run

    @property
    def asked(self) -> list[str]:
        """What the last run had to examine."""
        return sorted(self.analysis.asked)

    @property
    def file(self) -> Path:
        (path,) = Path(self.directory).glob(f"*{SUFFIX}")
        return path


@pytest.fixture
def runs(project: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    write(project, a_py="a = 1\n", b_py="b = 2\n", c_py="c = 3\n")
    age(*project.glob("*.py"))
    return Runs(project, monkeypatch)


def shown(run: RunResult) -> list[tuple[str, str]]:
    return [(item.filename, item.code) for file in run.files for item in file.findings]


def test_an_unchanged_file_is_not_examined_again(runs: Runs) -> None:
    runs()
    assert runs.asked == ["a.py", "b.py", "c.py"]
    runs()
    assert runs.asked == []


def test_a_changed_file_is_examined_and_no_other(runs: Runs) -> None:
    runs()
    write(runs.project, b_py="b = 4\n")
    runs()
    assert runs.asked == ["b.py"]


def test_a_new_date_alone_changes_nothing(runs: Runs) -> None:
    runs()
    (runs.project / "b.py").touch()
    runs()
    assert runs.asked == []


def test_a_change_within_the_grain_of_the_clock_is_seen(runs: Runs) -> None:
    """The size is the same, and the date is set back to what it was: only the content tells."""
    path = runs.project / "b.py"
    path.write_text("b = 2\n")
    runs()
    before = path.stat()
    path.write_text("b = 5\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    runs()
    assert runs.asked == ["b.py"]


def test_findings_are_replayed_as_they_were(runs: Runs) -> None:
    runs.analysis = ScriptedAnalysis({"a.py": (finding(filename="a.py", advice="do not"),)})
    first = runs()
    second = runs()
    assert runs.asked == []
    assert shown(first) == [("a.py", "TCL104")]
    assert second == RunResult(second.files, first.missing)
    assert [(f.findings, f.text, f.suppressed, f.gaps) for f in second.files] == [
        (f.findings, f.text, f.suppressed, f.gaps) for f in first.files
    ]


def test_another_selection_needs_no_examination(runs: Runs) -> None:
    runs.analysis = ScriptedAnalysis({"a.py": (finding(filename="a.py"),)})
    runs()
    assert shown(runs(ignore=("TCL104",))) == []
    assert shown(runs(select=("TCL1",))) == [("a.py", "TCL104")]
    assert runs.asked == []


def test_comments_count_in_a_replay(runs: Runs) -> None:
    write(runs.project, a_py="a = 1  # torchcopylint: ignore[TCL104]\n", b_py="b = 1  # torchcopylint: ignore\n")
    runs.analysis = ScriptedAnalysis({"a.py": (finding(filename="a.py"),)})
    first, second = runs(), runs()
    assert runs.asked == []
    assert shown(first) == shown(second) == [("b.py", "TCL001"), ("b.py", "TCL002")]
    assert [file.suppressed for file in second.files] == [1, 0, 0]


def test_other_limits_are_another_question(runs: Runs) -> None:
    runs()
    runs(limits={"max_chain": 5})
    assert runs.asked == ["a.py", "b.py", "c.py"]


def test_a_failure_is_not_remembered(runs: Runs) -> None:
    runs.analysis = ScriptedAnalysis({"a.py": KeyError("lost")})
    assert shown(runs()) == [("a.py", "TCL005")]
    runs()
    assert runs.asked == ["a.py"]


def test_a_file_that_cannot_be_parsed_is_remembered(project: Path, lint: Lint) -> None:
    write(project, a_py="x = (\n")
    options = ("--cache-dir", "../cache", "--statistics", ".")
    first = lint(*options, TORCHCOPYLINT_NO_CACHE="")
    assert "TCL000" in first.stdout
    assert lint(*options, TORCHCOPYLINT_NO_CACHE="").stdout == first.stdout


@pytest.mark.parametrize("change", ["changed", "removed", "appeared"])
def test_a_file_is_examined_again_if_what_it_depends_on_is_not_as_it_was(runs: Runs, change: str) -> None:
    needed = runs.project.parent / "needed.txt"
    if change != "appeared":
        needed.write_text("1")
    digest = store_module.digest_of(b"1") if change != "appeared" else ""
    runs.analysis = ScriptedAnalysis({"a.py": Dependencies((Dependency(str(needed), digest),), ())})
    runs.used = (Used(str(needed), digest, NOTHING),)
    runs()
    runs()
    assert runs.asked == []
    if change == "removed":
        needed.unlink()
    else:
        needed.write_text("2")
    runs()
    assert runs.asked == ["a.py"]


def test_another_linter_starts_anew_without_a_word(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs()
    monkeypatch.setattr(store_module, "identity", lambda: "another")
    runs()
    assert (runs.asked, runs.notes) == (["a.py", "b.py", "c.py"], ())


def test_the_identity_is_of_version_rules_python_and_libcst(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = store_module.identity()
    assert __version__ in before
    assert ".".join(map(str, sys.version_info[:3])) in before
    assert "unknown" not in before
    (tmp_path / "a-rule.md").write_text("---\n")
    monkeypatch.setattr(store_module, "pages_directory", lambda: tmp_path)
    other = store_module.identity()
    assert other != before
    (tmp_path / "a-rule.md").write_text("--- \n")
    assert store_module.identity() != other


DAMAGE = {
    "empty": lambda data: b"",
    "no JSON": lambda data: b"\x00\xff" * 40,
    "cut off": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "a list without an end": lambda data: b"[" * 100_000,
    "another thing": lambda data: b'{"a": 1}\n[]',
    "a header alone": lambda data: data.partition(b"\n")[0],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_made_anew_with_a_note(runs: Runs, damage: str) -> None:
    runs()
    runs.file.write_bytes(DAMAGE[damage](runs.file.read_bytes()))
    runs()
    assert runs.asked == ["a.py", "b.py", "c.py"]
    (note,) = runs.notes
    assert "is made anew" in note
    runs()
    assert (runs.asked, runs.notes) == ([], ())


def test_an_entry_that_is_well_formed_json_and_no_examination_is_made_anew(runs: Runs) -> None:
    runs()
    head, _, body = runs.file.read_bytes().partition(b"\n")
    entries, files, graph = json.loads(body)
    entries["a.py"][3][2] = [["TCL104"]]
    entries["b.py"] = 7
    body = json.dumps([entries, files, graph]).encode()
    runs.file.write_bytes(json.dumps([*json.loads(head)[:-1], zlib.crc32(body)]).encode() + b"\n" + body)
    assert shown(runs()) == []
    assert runs.asked == ["a.py", "b.py"]
    assert len(runs.notes) == 2


@pytest.mark.parametrize("needed", [[[999], []], [[], [999]], [["0"], []], [None, []], 7])
def test_an_entry_that_depends_on_what_there_is_not_is_made_anew(runs: Runs, needed: object) -> None:
    runs()
    head, _, body = runs.file.read_bytes().partition(b"\n")
    entries, files, graph = json.loads(body)
    entries["a.py"][2] = needed
    body = json.dumps([entries, files, graph]).encode()
    runs.file.write_bytes(json.dumps([*json.loads(head)[:-1], zlib.crc32(body)]).encode() + b"\n" + body)
    runs()
    assert runs.asked == ["a.py"]
    (note,) = runs.notes
    assert "an entry of the cache is damaged and is made anew" in note
    runs()
    assert (runs.asked, runs.notes) == ([], ())


def test_two_processes_keep_what_the_other_found(runs: Runs) -> None:
    root, pages = str(runs.project), load_pages()
    from torchcopylint.project.examined import Projects, Request, examine_file

    first, second = Store(runs.directory, root), Store(runs.directory, root)
    for store, name in ((first, "a.py"), (second, "b.py")):
        request = Request(os.path.join(root, name), name, Limits(), root)
        store.recall(request)
        seen = examine_file(request, pages, Projects())
        store.keep(request, seen)
    first.save()
    second.save()
    runs()
    assert runs.asked == ["c.py"]


def test_processes_that_write_at_once_leave_a_whole_file(project: Path) -> None:
    write(project, a_py=FAULT, b_py="b = 1\n")
    environment = os.environ | {"TORCHCOPYLINT_NO_CACHE": "", "TORCHCOPYLINT_CACHE_DIR": str(project.parent / "cache")}
    command = [sys.executable, "-m", "torchcopylint", "--output-format", "concise", "."]
    started = [
        subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    answers = {process.communicate(timeout=120) for process in started}
    assert len(answers) == 1
    assert next(iter(answers))[1] == b""
    (path,) = (project.parent / "cache").glob(f"*{SUFFIX}*")
    assert set(json.loads(path.read_bytes().partition(b"\n")[2])[0]) == {"a.py", "b.py"}


def test_deleted_files_are_forgotten(runs: Runs) -> None:
    runs()
    (runs.project / "a.py").unlink()
    write(runs.project, b_py="b = 9\n")
    runs()
    assert set(json.loads(runs.file.read_bytes().partition(b"\n")[2])[0]) == {"b.py", "c.py"}


def test_a_directory_that_cannot_be_written_costs_a_note(runs: Runs) -> None:
    """A file in the place of the directory: nobody can write there, whatever rights the user has."""
    Path(runs.directory).write_text("")
    runs()
    runs()
    assert runs.asked == ["a.py", "b.py", "c.py"]
    assert any("cannot be written" in note for note in runs.notes)


def test_a_full_disk_costs_a_note_and_leaves_nothing_behind(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs()
    before = runs.file.read_bytes()
    write(runs.project, a_py="a = 2\n")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.os, "replace", full)
    runs()
    assert runs.notes == (
        f"the cache cannot be written, so the next run starts anew: {runs.file}: no space left on device",
    )
    assert runs.file.read_bytes() == before
    assert {path.name for path in Path(runs.directory).iterdir()} == {runs.file.name, ".gitignore", "CACHEDIR.TAG"}


def test_an_interrupted_run_keeps_what_it_found(runs: Runs) -> None:
    runs.analysis = ScriptedAnalysis({"c.py": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        runs()
    runs.analysis = ScriptedAnalysis({})
    runs()
    assert runs.asked == ["c.py"]


class TestTheCommandLine:
    @pytest.fixture(autouse=True)
    def _allowed(self, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
        monkeypatch.delenv("TORCHCOPYLINT_NO_CACHE")
        monkeypatch.setenv("TORCHCOPYLINT_CACHE_DIR", str(project.parent / "default"))

    @pytest.mark.parametrize("output_format", FORMATS)
    def test_a_warm_run_prints_what_a_cold_one_prints(self, project: Path, lint: Lint, output_format: str) -> None:
        write(project, a_py=FAULT, b_py="x = (\n", c_py="y = 1  # torchcopylint: ignore[TCL104]\n")
        options = ("--output-format", output_format, "--statistics", ".")
        cold, warm = lint(*options), lint(*options)
        assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)
        assert cold.returncode == 1
        assert lint("--no-cache", *options).stdout == cold.stdout

    def test_a_warm_run_loads_neither_the_parser_nor_the_engine(self, project: Path) -> None:
        write(project, a_py=FAULT)
        program = (
            "import sys; from torchcopylint.cli.main import run; run(sys.argv[1:]); "
            "heavy = ('libcst', 'torchcopylint.flow', 'torchcopylint.registry'); "
            "print([name for name in heavy if name in sys.modules])"
        )
        command = [sys.executable, "-c", program, "--quiet", "--output-format", "concise", "."]
        done = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)]
        assert [run.stdout.splitlines()[-1] for run in done] == [
            "['torchcopylint.flow', 'torchcopylint.registry']",
            "[]",
        ]

    def test_no_cache_leaves_no_trace(self, project: Path, lint: Lint) -> None:
        write(project, a_py="x = 1\n")
        lint("--no-cache", ".")
        lint("--no-cache", "--cache-dir", "here", ".")
        assert not (project.parent / "default").exists()
        assert not (project / "here").exists()

    def test_cache_dir_wins_over_the_environment_and_is_marked(self, project: Path, lint: Lint) -> None:
        write(project, a_py="x = 1\n")
        lint("--cache-dir", "here", ".")
        assert not (project.parent / "default").exists()
        assert {path.name for path in (project / "here").iterdir()} > {".gitignore", "CACHEDIR.TAG"}

    def test_clean_removes_caches_and_nothing_else(self, project: Path, lint: Lint) -> None:
        write(project, a_py="x = 1\n")
        lint(".")
        directory = project.parent / "default"
        (directory / "mine.txt").write_text("")
        assert lint("clean").stdout == f"Removed 1 cache from {directory}.\n"
        assert (directory / "mine.txt").exists()
        (directory / "mine.txt").unlink()
        lint(".")
        lint("clean")
        assert not directory.exists()
        assert lint("clean").stdout == "No cache.\n"

    def test_standard_input_is_not_remembered(self, project: Path, lint: Lint) -> None:
        lint("-", "--stdin-filename", "a.py", stdin=FAULT)
        assert not (project.parent / "default").exists()


def test_without_a_word_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    assert default_directory({}) == platformdirs.user_cache_dir("torchcopylint", appauthor=False)


def test_cleaning_a_directory_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        clean(str(tmp_path / "file"))
