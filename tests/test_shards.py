"""Parts of a run: together they are the whole, to the letter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Lint, write

from torchcopylint.project.settings import FORMATS
from torchcopylint.project.shards import Shard

FAULT = "import torch\nw = torch.ones(2, requires_grad=True)\nw.data.zero_()\n"


@pytest.fixture
def many(project: Path) -> Path:
    """Files with and without findings, in directories whose names sort in other ways than paths do."""
    for number in range(9):
        directory = project / ("a", "a-b", "a.b")[number % 3]
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}.py").write_text(FAULT * (number % 2) + "x = 1  # torchcopylint: ignore[TCL104]\n")
    write(project, broken_py="x = (\n")
    return project


def parts(lint: Lint, count: int, *options: str) -> list[str]:
    """Run all parts, and the names of what they wrote."""
    names = []
    for number in range(1, count + 1):
        name = f"part{number}.json"
        done = lint("--shard", f"{number}/{count}", "--output-format", "shard", "-o", name, *options)
        assert done.stderr == ""
        names.append(name)
    return names


@pytest.mark.parametrize("output_format", FORMATS)
def test_merged_parts_are_what_a_whole_run_prints(many: Path, lint: Lint, output_format: str) -> None:
    options = ("--output-format", output_format, "--statistics")
    whole = lint(*options, ".")
    names = parts(lint, 4, ".")
    merged = lint("merge", *options, *reversed(names))
    assert (merged.returncode, merged.stdout, merged.stderr) == (whole.returncode, whole.stdout, whole.stderr)
    assert whole.returncode == 1


def test_every_file_belongs_to_one_part(many: Path, lint: Lint) -> None:
    shown = [lint("--shard", f"{number}/3", "--show-files", ".").stdout.splitlines() for number in (1, 2, 3)]
    assert sorted(name for names in shown for name in names) == sorted(lint("--show-files", ".").stdout.splitlines())
    assert all(shown)


def test_a_file_stays_where_it_is_when_others_come() -> None:
    names = [f"src/module_{number}.py" for number in range(1000)]
    sizes = [sum(Shard(number, 8).has(name) for name in names) for number in range(1, 9)]
    assert sum(sizes) == 1000
    assert min(sizes) > 80
    # A name decides alone, so the answer is one for ever.
    assert [n for n in range(1, 9) if Shard(n, 8).has("src/train.py")] == [8]


def test_a_part_of_one_is_the_whole(many: Path, lint: Lint) -> None:
    assert lint("--shard", "1/1", ".").stdout == lint(".").stdout


def test_a_part_without_files_finds_nothing(project: Path, lint: Lint) -> None:
    write(project, a_py="x = 1\n")
    done = [lint("--shard", f"{number}/50", "--output-format", "concise", ".") for number in range(1, 4)]
    assert {(run.returncode, run.stderr) for run in done} == {(0, "")}


def test_exit_codes_of_the_whole(many: Path, lint: Lint) -> None:
    names = parts(lint, 2, ".")
    assert lint("merge", *names).returncode == 1
    assert lint("merge", "--exit-zero", *names).returncode == 0
    names = parts_with_missing(lint)
    merged = lint("merge", "--exit-zero", *names)
    assert merged.returncode == 2


def parts_with_missing(lint: Lint) -> list[str]:
    for number in (1, 2):
        lint("--shard", f"{number}/2", "--output-format", "shard", "-o", f"m{number}.json", ".", "nowhere.py")
    return ["m1.json", "m2.json"]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "1/2/3", "-1/3", "1/0"])
def test_a_part_that_is_none_is_wrong_use(project: Path, lint: Lint, text: str) -> None:
    done = lint("--shard", text, ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`{text}` is not of the form I/N" in done.stderr


def test_standard_input_has_no_parts(project: Path, lint: Lint) -> None:
    done = lint("--shard", "1/2", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input cannot be divided" in done.stderr


class TestWhatCannotBeMerged:
    def refused(self, lint: Lint, *names: str) -> str:
        done = lint("merge", *names)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    def test_parts_are_missing(self, many: Path, lint: Lint) -> None:
        names = parts(lint, 4, ".")
        assert "shard 2, 4 of 4 is missing" in self.refused(lint, names[0], names[2])

    def test_a_part_comes_twice(self, many: Path, lint: Lint) -> None:
        names = parts(lint, 2, ".")
        assert "more than one shard 1 of 2" in self.refused(lint, *names, names[0])

    def test_parts_of_different_divisions(self, many: Path, lint: Lint) -> None:
        (two, _), three = parts(lint, 2, "."), "three.json"
        lint("--shard", "2/3", "--output-format", "shard", "-o", three, ".")
        assert "numbers of shards 2, 3" in self.refused(lint, two, three)

    def test_parts_of_different_trees(self, many: Path, lint: Lint) -> None:
        first, second = parts(lint, 2, ".")
        write(many, new_py="x = 1\n")
        lint("--shard", "2/2", "--output-format", "shard", "-o", second, ".")
        assert "numbers of files 10, 11" in self.refused(lint, first, second)

    def test_other_files(self, many: Path, lint: Lint) -> None:
        (many / "list.json").write_text("[]")
        (many / "text.json").write_text("{")
        assert "list.json: it was not written by `--output-format shard`" in self.refused(lint, "list.json")
        assert "text.json: it is not JSON" in self.refused(lint, "text.json")
        assert "absent.json: no such file" in self.refused(lint, "absent.json")
        (name,) = parts(lint, 1, ".")
        data = json.loads((many / name).read_text())
        data["report"][3] = "many"
        (many / name).write_text(json.dumps(data))
        assert f"{name}: it is damaged: int expected, not str" in self.refused(lint, name)
