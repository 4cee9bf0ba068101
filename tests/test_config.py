"""`[tool.torchcopylint]`: where it is found, what it may say, and how a mistake in it is answered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from torchcopylint.base.finding import Confidence
from torchcopylint.pages import load_pages
from torchcopylint.project.config import KEYS, ConfigError, read_named, read_nearest
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.settings import Layer, PerFileIgnore, Settings

INDEX = RuleIndex(load_pages())


def configure(directory: Path, body: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "pyproject.toml"
    path.write_text(f"[tool.torchcopylint]\n{body}\n", encoding="utf-8")
    return path


def layer(project: Path, body: str) -> Layer:
    configure(project, body)
    found = read_nearest(str(project), INDEX)
    assert found is not None
    return found.layer


def mistake(project: Path, body: str) -> str:
    """The message that a table is answered with, after the path of the file."""
    path = configure(project, body)
    with pytest.raises(ConfigError) as caught:
        read_nearest(str(project), INDEX)
    return str(caught.value).removeprefix(str(path))


def settings(project: Path, directory: str = ".", **how: Any) -> Settings:
    return Resolver(INDEX, cwd=str(project), **how).settings_for(os.path.normpath(project / directory))


def test_every_key_can_be_read(project: Path) -> None:
    body = """
        exclude = ["legacy/", "!build"]
        extend-select = ["TCL105"]
        fail-on = "error"
        force-exclude = true
        ignore = ["data-read"]
        max-chain = 1
        max-file-size = 2
        max-nesting = 3
        max-patterns = 7
        max-strings = 8
        max-terms = 4
        min-confidence = "low"
        output-format = "concise"
        preset = "strict"
        respect-gitignore = false
        select = ["TCL1", "TCL7"]
        [tool.torchcopylint.per-file-ignores]
        "tests/*" = ["TCL104"]
    """
    assert layer(project, body) == Layer(
        base=str(project),
        exclude=("legacy/", "!build"),
        extend_select=("TCL105",),
        fail_on="error",
        force_exclude=True,
        ignore=("data-read",),
        limits={
            "max_file_size": 2,
            "max_nesting": 3,
            "max_patterns": 7,
            "max_strings": 8,
            "max_terms": 4,
            "max_chain": 1,
        },
        min_confidence=Confidence.LOW,
        output_format="concise",
        preset="strict",
        respect_gitignore=False,
        select=("TCL1", "TCL7"),
        per_file_ignores=(PerFileIgnore("tests/*", ("TCL104",)),),
    )
    assert all(key in body for key in KEYS)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("selct = []", ": [tool.torchcopylint] has no key `selct`; did you mean `select`?"),
        (
            "per_file_ignores = {}",
            ": [tool.torchcopylint] has no key `per_file_ignores`; did you mean `per-file-ignores`?",
        ),
        ("colour = 1", ": [tool.torchcopylint] has no key `colour`; its keys are exclude, extend-select,"),
        ('select = ["TCL140"]', ": `select`: there is no rule `TCL140`; did you mean `TCL104`?"),
        ('ignore = ["data-raed"]', ": `ignore`: there is no rule `data-raed`; did you mean `data-read`?"),
        ('preset = "strct"', ": `preset` cannot be `strct`; did you mean `strict`?"),
        ('fail-on = "always"', ": `fail-on` cannot be `always`; it is one of error, warning, info, never"),
        ('select = "TCL1"', ": `select` must be a list of strings, not a string"),
        ("select = [1]", ": `select` must be a list of strings; it contains a number"),
        ("force-exclude = 1", ": `force-exclude` must be true or false, not a number"),
        ("max-nesting = true", ": `max-nesting` must be a whole number, not a boolean"),
        ("max-nesting = 0", ": `max-nesting` must be at least 1, not 0"),
        ("max-nesting = 1979-05-27", ": `max-nesting` must be a whole number, not a date or time"),
        ("per-file-ignores = []", ": `per-file-ignores` must be a table of patterns and lists of rules, not a list"),
        (
            'per-file-ignores = {"a.py" = ["TCL7777"]}',
            ': `per-file-ignores`, "a.py": there is no rule `TCL7777`',
        ),
        ('exclude = ["!"]', ": `exclude`: Invalid git pattern: '!'"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_right_word(project: Path, body: str, message: str) -> None:
    assert mistake(project, body).startswith(message)


def test_a_table_that_is_no_table(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool]\ntorchcopylint = 1\n")
    with pytest.raises(ConfigError, match=r"\[tool.torchcopylint\] must be a table, not a number"):
        read_nearest(str(project), INDEX)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("select = [\n'TCL1'\n= 3", ":4:1: not valid TOML: "),
        ("select = ", ":2:10: not valid TOML: "),
        ("select = 1\nselect = 2", ":3:11: not valid TOML: "),
        ("x = [", ":3:1: not valid TOML: "),
    ],
)
def test_a_toml_error_is_named_with_its_line_and_column(project: Path, body: str, place: str) -> None:
    assert mistake(project, body).startswith(place)


def test_a_file_in_another_encoding_is_named_with_its_place(project: Path) -> None:
    (project / "pyproject.toml").write_bytes(b"[tool.torchcopylint]\n# \xff\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml:2:3: byte 0xff is not valid UTF-8"):
        read_nearest(str(project), INDEX)


def test_a_broken_file_that_is_not_about_this_tool_does_no_harm(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = {{ cookiecutter.name }}\n")
    assert read_nearest(str(project), INDEX) is None


def test_without_a_table_there_is_no_configuration(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torchcopylint"]\n')
    assert read_nearest(str(project), INDEX) is None


def test_the_nearest_file_with_a_table_holds(project: Path) -> None:
    configure(project, 'fail-on = "error"')
    configure(project / "inner", 'fail-on = "never"')
    (project / "inner" / "deep").mkdir()
    (project / "inner" / "deep" / "pyproject.toml").write_text("[project]\n")
    assert settings(project, "other").fail_on == "error"
    assert settings(project, "inner/deep").fail_on == "never"
    assert settings(project, "inner/deep").source == str(project / "inner" / "pyproject.toml")


def test_isolated_uses_no_file(project: Path) -> None:
    configure(project, 'fail-on = "error"')
    assert settings(project, isolated=True).fail_on == "warning"
    assert settings(project, isolated=True).source is None


def test_isolated_is_not_troubled_by_a_broken_file(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.torchcopylint\n")
    assert settings(project, isolated=True).root == str(project)


def test_a_named_file_holds_everywhere(project: Path) -> None:
    configure(project, 'fail-on = "error"')
    (project / "ci.toml").write_text('fail-on = "info"\nexclude = ["gen"]\n')
    chosen = settings(project, config="ci.toml")
    assert chosen.fail_on == "info"
    assert chosen.exclude.match(str(project / "gen"), is_directory=True)


def test_a_named_pyproject_is_read_from_its_table(project: Path) -> None:
    configure(project / "conf", 'fail-on = "info"')
    assert settings(project, config="conf/pyproject.toml").fail_on == "info"


def test_a_named_pyproject_without_the_table_is_an_error(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml: has no table \[tool.torchcopylint\]"):
        settings(project, config="pyproject.toml")


def test_a_named_file_that_is_not_there_is_an_error(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope.toml: cannot be read: No such file or directory"):
        read_named("nope.toml", str(project), INDEX)


def test_the_command_line_is_stronger_than_the_file(project: Path) -> None:
    configure(project, 'fail-on = "error"\nexclude = ["a"]\nper-file-ignores = {"x.py" = ["TCL1"]}')
    command_line = Layer(
        base=str(project), fail_on="never", exclude=("b",), per_file_ignores=(PerFileIgnore("y.py", ("TCL7",)),)
    )
    chosen = settings(project, command_line=command_line)
    assert chosen.fail_on == "never"
    assert chosen.exclude.match(str(project / "a"))
    assert chosen.exclude.match(str(project / "b"))
    assert chosen.ignored_in(str(project / "x.py")) == frozenset()
    assert "TCL701" in chosen.ignored_in(str(project / "y.py"))


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("tests/*", "tests/a.py", True),
        ("tests/*", "tests/deep/a.py", True),
        ("tests/*", "src/tests/a.py", False),
        ("tests/", "src/tests/a.py", True),
        ("**/conftest.py", "a/b/conftest.py", True),
        ("conftest.py", "a/b/conftest.py", True),
        ("/conftest.py", "a/b/conftest.py", False),
        ("*.pyi", "a/b.pyi", True),
        ("*.pyi", "a/b.py", False),
    ],
)
def test_per_file_ignores_match_as_gitignore_does(project: Path, pattern: str, path: str, ignored: bool) -> None:
    configure(project, f'per-file-ignores = {{"{pattern}" = ["TCL104"]}}')
    assert (settings(project).ignored_in(str(project / path)) == {"TCL104"}) is ignored


def test_the_root_is_the_nearest_directory_with_the_table(project: Path) -> None:
    configure(project, "")
    (project / "inner" / ".git").mkdir(parents=True)
    (project / "inner" / "pyproject.toml").write_text("[project]\n")
    assert settings(project, "inner").root == str(project)


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_without_a_table_the_root_is_the_nearest_marked_directory(project: Path, mark: str) -> None:
    (project / "inner" / "deep").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "inner" / mark).touch()
    assert settings(project, "inner/deep").root == str(project / "inner")


def test_without_a_mark_the_root_is_the_working_directory(project: Path) -> None:
    assert settings(project, "inner/deep").root == str(project)


def test_outside_the_working_directory_it_is_the_directory_that_was_named(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    resolver = Resolver(INDEX, cwd=str(project))
    assert resolver.settings_for(str(elsewhere / "deep"), str(elsewhere)).root == str(elsewhere)


def test_files_outside_the_working_directory_have_the_root_that_their_package_stands_in(
    project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for package in ("pkg", "pkg/inner"):
        (elsewhere / package).mkdir(parents=True)
        (elsewhere / package / "__init__.py").touch()
    resolver = Resolver(INDEX, cwd=str(project))
    for directory in ("pkg/inner", "pkg", "."):
        assert resolver.settings_for(str((elsewhere / directory).resolve())).root == str(elsewhere)


def test_the_root_does_not_depend_on_isolation(project: Path) -> None:
    configure(project / "inner", "")
    assert settings(project, "inner", isolated=True).root == settings(project, "inner").root
