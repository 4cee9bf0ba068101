"""Which files a run checks, and that odd ones neither stop nor hang it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from conftest import Answer

from torchcopylint.pages import load_pages
from torchcopylint.project.discover import Discovery, discover
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex

INDEX = RuleIndex(load_pages())


def write(project: Path, *names: str) -> None:
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def search(project: Path, *paths: str) -> Discovery:
    return discover(paths or (".",), Resolver(INDEX, cwd=str(project)))


def files(project: Path, *paths: str) -> list[str]:
    return [os.path.relpath(found.path, project).replace(os.sep, "/") for found in search(project, *paths).files]


def configure(project: Path, body: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.torchcopylint]\n{body}\n")


def test_a_directory_is_searched_for_python_and_notebooks(project: Path) -> None:
    write(project, "a.py", "b.pyi", "c.txt", "d.ipynb", "e.pyx", "deep/down/f.py", ".hidden.py")
    assert files(project) == [".hidden.py", "a.py", "b.pyi", "d.ipynb", "deep/down/f.py"]


def test_what_macos_leaves_beside_a_file_is_taken_only_by_its_name(project: Path) -> None:
    write(project, "a.py", "._a.py", "deep/._b.ipynb", "._c/d.py")
    assert files(project) == ["._c/d.py", "a.py"]
    assert files(project, "._a.py") == ["._a.py"]


def test_a_named_file_is_taken_whatever_its_name(project: Path) -> None:
    write(project, "script", "a.txt")
    assert files(project, "script", "a.txt") == ["a.txt", "script"]


def test_each_file_comes_once(project: Path) -> None:
    write(project, "src/a.py")
    assert files(project, "src/a.py", "src", ".", "./src/../src/a.py") == ["src/a.py"]


def test_the_order_of_the_paths_does_not_matter(project: Path) -> None:
    write(project, "b.py", "a.py", "a/c.py", "a-b.py")
    expected = ["a/c.py", "a-b.py", "a.py", "b.py"]
    assert files(project, "b.py", "a.py", "a", "a-b.py") == files(project) == expected


def test_a_missing_path_is_named_and_the_others_are_taken(project: Path) -> None:
    write(project, "a.py")
    found = search(project, "nope.py", "a.py", "nope.py", "", "a\0b")
    assert found.missing == ("nope.py", "", "a\0b")
    assert len(found.files) == 1


@pytest.mark.parametrize("name", [".git", ".venv", "venv", "build", "node_modules", "site-packages", "__pycache__"])
def test_usual_directories_are_left_out(project: Path, name: str) -> None:
    write(project, "a.py", f"{name}/b.py", f"deep/{name}/c.py")
    assert files(project) == ["a.py"]


def test_a_directory_that_is_left_out_can_be_named(project: Path) -> None:
    write(project, "build/a.py", "build/deep/b.py", "build/venv/c.py")
    assert files(project, "build") == ["build/a.py", "build/deep/b.py"]


def test_patterns_are_added_to_the_usual_ones(project: Path) -> None:
    configure(project, 'exclude = ["legacy", "src/gen/*.py", "*_pb2.py"]')
    write(project, "legacy/a.py", "src/gen/b.py", "src/gen/deep/c.py", "gen/d.py", "x_pb2.py", "venv/e.py")
    assert files(project) == ["gen/d.py", "src/gen/deep/c.py"]


def test_a_negated_pattern_takes_back_a_usual_one(project: Path) -> None:
    configure(project, 'exclude = ["!build"]')
    write(project, "build/a.py", "dist/b.py")
    assert files(project) == ["build/a.py"]


def test_a_named_file_is_taken_though_a_pattern_matches_it(project: Path) -> None:
    configure(project, 'exclude = ["legacy"]')
    write(project, "legacy/a.py")
    assert files(project, "legacy/a.py") == ["legacy/a.py"]


@pytest.mark.parametrize("path", ["legacy/a.py", "legacy", "venv/b.py", "venv", "gen/c.py"])
def test_forced_patterns_leave_out_named_paths_as_well(project: Path, path: str) -> None:
    configure(project, 'exclude = ["legacy", "gen/*.py"]\nforce-exclude = true')
    write(project, "legacy/a.py", "venv/b.py", "gen/c.py")
    assert files(project, path) == []


def test_gitignore_is_respected(project: Path) -> None:
    write(project, "a.py", "out/b.py", "c_gen.py", "sub/out/d.py", "sub/local.py", "local.py")
    (project / ".gitignore").write_text("# comment\nout/\n*_gen.py\n/local.py\n")
    assert files(project) == ["a.py", "sub/local.py"]


def test_nested_gitignore_files_override_outer_ones(project: Path) -> None:
    write(project, "a.gen.py", "sub/a.gen.py", "sub/b.py", "sub/deep/b.py")
    (project / ".gitignore").write_text("*.gen.py\n")
    (project / "sub" / ".gitignore").write_text("!a.gen.py\n/b.py\n")
    assert files(project) == ["sub/a.gen.py", "sub/deep/b.py"]


def test_nothing_below_an_ignored_directory_comes_back(project: Path) -> None:
    write(project, "out/keep.py")
    (project / ".gitignore").write_text("out/\n!out/keep.py\n")
    assert files(project) == []


def test_gitignore_files_above_count_inside_a_repository(project: Path) -> None:
    write(project, "src/a.py", "src/gen/b.py", "src/local.py")
    (project / ".gitignore").write_text("/src/gen/\n")
    assert files(project, "src") == ["src/a.py", "src/gen/b.py", "src/local.py"]
    (project / ".git" / "info").mkdir(parents=True)
    (project / ".git" / "info" / "exclude").write_text("local.py\n")
    assert files(project, "src") == ["src/a.py"]


def test_an_ignored_directory_can_be_named(project: Path) -> None:
    (project / ".git").mkdir()
    write(project, "out/a.py", "out/b.tmp.py")
    (project / ".gitignore").write_text("out/\n*.tmp.py\n")
    assert files(project, "out") == ["out/a.py"]


def test_gitignore_can_be_disregarded(project: Path) -> None:
    configure(project, "respect-gitignore = false")
    write(project, "out/a.py")
    (project / ".gitignore").write_text("out/\n")
    assert files(project) == ["out/a.py"]


def test_a_line_of_gitignore_that_is_no_pattern_is_left_out(project: Path) -> None:
    write(project, "a.py", "b.py")
    (project / ".gitignore").write_bytes(b"!\n\xff\nb.py\n")
    assert files(project) == ["a.py"]


def test_an_inner_project_has_its_own_settings(project: Path) -> None:
    configure(project, 'exclude = ["a.py"]')
    write(project, "a.py", "inner/a.py", "inner/b.py")
    configure(project / "inner", 'exclude = ["b.py"]')
    assert files(project) == ["inner/a.py"]
    assert search(project).files[0].settings.root == str(project / "inner")


def test_a_directory_named_like_a_module_is_searched(project: Path) -> None:
    write(project, "pkg.py/a.py")
    assert files(project) == ["pkg.py/a.py"]


def test_a_broken_link_is_taken_so_that_it_is_reported(project: Path) -> None:
    (project / "broken.py").symlink_to("nowhere")
    assert files(project) == ["broken.py"]
    assert files(project, "broken.py") == ["broken.py"]


def test_links_to_files_are_taken_and_links_to_directories_not_followed(project: Path) -> None:
    write(project, "src/a.py")
    (project / "link.py").symlink_to("src/a.py")
    (project / "src" / "loop").symlink_to("..")
    assert files(project) == ["link.py", "src/a.py"]


def test_a_link_to_a_directory_can_be_named(project: Path) -> None:
    write(project, "src/a.py")
    (project / "link").symlink_to("src")
    assert files(project, "link") == ["link/a.py"]


def test_pipes_and_sockets_in_a_directory_are_no_files(project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        assert files(project) == []


def test_a_directory_that_cannot_be_listed_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "a.py", "locked/b.py")
    listing = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = search(project)
    assert [os.path.basename(item.path) for item in found.files] == ["a.py"]
    assert [(os.path.basename(item.path), item.reason) for item in found.unlisted] == [("locked", "permission denied")]


def test_reading_gives_the_bytes(project: Path) -> None:
    (project / "a.py").write_bytes(b"x\r\n")
    assert read_file("a.py", 3) == b"x\r\n"


def test_reading_stops_at_the_limit(project: Path) -> None:
    (project / "a.py").write_bytes(b"1234")
    with pytest.raises(TooLarge) as caught:
        read_file("a.py", 3)
    assert caught.value.size == 4


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.py", "no such file or directory"),
        ("broken.py", "it is a link to a file that does not exist"),
        ("directory.py", "it is a directory"),
        ("pipe.py", "it is a named pipe; standard input is read with `-`"),
        (os.devnull, "it is a device"),
        ("circle.py", "too many levels of symbolic links"),
        ("x" * 300 + ".py", "file name too long"),
    ],
)
def test_what_is_no_readable_file_is_refused_at_once(project: Path, name: str, reason: str) -> None:
    (project / "broken.py").symlink_to("nowhere")
    (project / "circle.py").symlink_to("circle.py")
    (project / "directory.py").mkdir()
    os.mkfifo(project / "pipe.py")
    with pytest.raises(CannotRead, match=reason):
        read_file(name, 100)


def test_what_may_not_be_read_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CannotRead, match="permission denied"):
        read_file("a.py", 100)


def test_a_named_pipe_is_reported_and_the_rest_is_checked(project: Path, answer: Answer) -> None:
    os.mkfifo(project / "pipe")
    write(project, "a.py")
    done = answer("pipe", "a.py")
    assert done.code == 1
    assert "pipe:1:1: error[TCL000]: the file cannot be read or parsed: it is a named pipe" in done.out
    assert "in 1 of 2 files" in done.out


def test_a_file_that_vanishes_during_the_run_is_reported(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "a.py", "b.py")

    def vanish(*arguments: object) -> Discovery:
        found = discover(*arguments)  # type: ignore[arg-type]
        (project / "a.py").unlink()
        return found

    monkeypatch.setattr("torchcopylint.cli.check.discover", vanish)
    done = answer(".")
    assert done.code == 1
    assert "a.py:1:1: error[TCL000]: the file cannot be read or parsed: no such file or directory" in done.out
