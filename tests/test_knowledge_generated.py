"""The generated tables are what the installed torch and numpy show."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from torchcopylint.knowledge import table
from torchcopylint.knowledge.generate import __main__ as command
from torchcopylint.knowledge.generate import arrays, calls, document, modules, operations, probe
from torchcopylint.knowledge.generate.rows import NoRow, cells, observe_all
from torchcopylint.knowledge.generate.samples import BASELINE

FILES = ("tensor.md", "functions.md", "modules.md", "numpy.md", "names.md", "owners.md")


@pytest.fixture(scope="module")
def texts() -> Mapping[str, str]:
    return command.generate()


def test_the_tables_come_from_the_torch_that_is_installed() -> None:
    assert torch.__version__.partition("+")[0] == table.torch_version()


@pytest.mark.parametrize("file", FILES)
def test_a_generated_file_is_fresh(file: str, texts: Mapping[str, str]) -> None:
    on_disk = (Path(document.DIRECTORY) / file).read_text(encoding="utf-8")
    assert on_disk.splitlines() == texts[file].splitlines()


def test_every_generated_file_is_compared(texts: Mapping[str, str]) -> None:
    assert sorted(texts) == sorted(FILES)


@pytest.mark.parametrize("file", FILES)
def test_a_generated_file_says_that_it_is_generated_by_which_command_from_what(file: str) -> None:
    head = (Path(document.DIRECTORY) / file).read_text(encoding="utf-8")[:400]
    assert "python -m torchcopylint.knowledge.generate" in head
    assert "do not edit" in head
    assert f"torch {table.torch_version()}, numpy " in head


def test_check_passes_on_fresh_files_and_writes_nothing(
    texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "generate", lambda: dict(texts))
    monkeypatch.setattr(document, "write", lambda _: pytest.fail("wrote a file"))
    assert command.main(["--check"]) == 0


def test_check_names_the_stale_file_and_shows_what_differs(
    texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "generate", lambda: dict(texts))
    monkeypatch.setattr(document, "DIRECTORY", str(tmp_path))
    document.write({**texts, "numpy.md": texts["numpy.md"].replace("numpy.copyto", "numpy.copyfrom")})
    assert command.main(["--check"]) == 1
    first, *difference = capsys.readouterr().err.splitlines()
    assert first == "numpy.md is stale: run python -m torchcopylint.knowledge.generate"
    row = next(line for line in texts["numpy.md"].splitlines() if "numpy.copyto" in line)
    assert "-" + row.replace("numpy.copyto", "numpy.copyfrom") in difference
    assert "+" + row in difference


def test_check_names_a_missing_file(
    texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "generate", lambda: dict(texts))
    monkeypatch.setattr(document, "DIRECTORY", str(tmp_path))
    document.write({file: text for file, text in texts.items() if file != "numpy.md"})
    assert command.main(["--check"]) == 1
    assert "numpy.md is stale" in capsys.readouterr().err


def test_an_address_that_comes_back_is_not_taken_for_content_that_is_read() -> None:
    holders: dict[int, weakref.ref[torch.Tensor]] = {}
    calls_seen = itertools.count()

    def address(tensor: torch.Tensor) -> int:
        # An allocator with two blocks that it hands out in turn, and more where both are taken. What is held by a cycle
        # only is freed whenever the collector happens to run.
        gc.collect()
        for place in itertools.count(next(calls_seen) % 2):
            holder = holders.get(place)
            if holder is None or holder() is None:
                holders[place] = weakref.ref(tensor)
                return place
        raise AssertionError

    assert not probe.observe(probe.Case(address, "", BASELINE)).reads


def test_without_check_the_files_are_written(
    texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "generate", lambda: dict(texts))
    monkeypatch.setattr(document, "DIRECTORY", str(tmp_path))
    assert command.main([]) == 0
    assert (tmp_path / "tensor.md").read_text(encoding="utf-8") == texts["tensor.md"]


def test_every_public_name_of_a_tensor_has_a_row_or_a_reason() -> None:
    known = {name.rpartition(".")[2] for name in (*table.names("tensor"), *table.names("overlay"))}
    missing = {name for name in dir(torch.Tensor) if not name.startswith("_")} - known
    assert {name for name in missing if not operations.without_row(f"torch.Tensor.{name}")} == set()


@pytest.mark.parametrize("namespace", operations.NAMESPACES)
def test_every_function_of_a_namespace_has_a_row_or_a_reason(namespace: str) -> None:
    known = {*table.names("functions"), *table.names("overlay")}
    module, _ = operations.NAMESPACES[namespace]
    missing = [name for name in operations.functions_of(module) if f"{namespace}.{name}" not in known]
    assert [name for name in missing if not operations.without_row(f"{namespace}.{name}")] == []


def test_every_module_class_has_a_row_or_a_reason() -> None:
    known = {name.rpartition(".")[2] for name in table.names("modules")}
    classes = {name for name, value in vars(torch.nn).items() if modules._is_module(value)}
    assert classes - known == {name for names in modules.NO_ROW for name in names.split()}


@pytest.mark.parametrize("namespace", arrays.NAMESPACES)
def test_every_recipe_names_something_that_exists(namespace: str) -> None:
    module, groups = arrays.NAMESPACES[namespace]
    assert [name for name in operations.by_name(groups) if not hasattr(module, name)] == []


@pytest.mark.parametrize("namespace", operations.NAMESPACES)
def test_every_recipe_for_torch_names_something_that_exists(namespace: str) -> None:
    module, groups = operations.NAMESPACES[namespace]
    assert [name for name in operations.by_name(groups) if not hasattr(module, name)] == []
    methods = operations.by_name((*calls.METHODS, *calls.SPECIAL, *calls.PROPERTIES))
    assert [name for name in methods if not hasattr(torch.Tensor, name) and not hasattr(torch, name)] == []


def test_a_recipe_that_cannot_be_called_stops_the_generator() -> None:
    with pytest.raises(NoRow, match="cannot be called"):
        observe_all(torch.Tensor.add, [("'no tensor'", "any")])


def test_calls_that_disagree_about_the_result_stop_the_generator() -> None:
    def moody(tensor: torch.Tensor) -> object:
        return "text" if tensor.dim() == 1 else tensor + 1

    with pytest.raises(NoRow, match="the results are string, tensor"):
        cells(observe_all(moody, [("", "any")]))


def test_what_only_some_calls_save_is_left_out() -> None:
    def sometimes(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.exp() if tensor.dim() == 1 else tensor + 1

    assert cells(observe_all(sometimes, [("", "any")]))[3] == ""
    assert cells(observe_all(torch.Tensor.exp, [("", "any")]))[3] == "output"


def test_generation_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from torchcopylint.knowledge.generate import names, operations, calls\n"
        "groups = operations.by_name(calls.METHODS)\n"
        "for name in ('max', 'addcdiv', 'clamp'):\n"
        "    import torch\n"
        "    method = getattr(torch.Tensor, name)\n"
        "    print(operations.rows_of(name, method, name, groups[name], names=('self', 'min', 'max')))\n"
        "print(names.name_sections())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
