"""What is built and installed: sdist, wheel, editable install and plain checkout, each asked for its rules.

The wheel is built from the sdist, once, and installed with its real dependencies into an environment without torch.
"""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest
from examples_marks import EXAMPLES, ROOT

from torchcopylint import __version__
from torchcopylint.pages import load_pages

IN_CHECKOUT = ("torchcopylint", "rules", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
"""What a build needs of the checkout."""
NO_CACHES = shutil.ignore_patterns("__pycache__")


class Built(NamedTuple):
    sdist: Path
    wheel: Path


class Environment:
    """A fresh virtual environment."""

    def __init__(self, directory: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        self.scripts = directory / ("Scripts" if os.name == "nt" else "bin")
        self.directory = directory

    def install(self, *arguments: str | Path) -> None:
        """Install with pip, dependencies from the index that pip is set up with."""
        self._call(self.scripts / "python", "-m", "pip", "install", "--quiet", *arguments)

    def python(self, program: str) -> str:
        """What a program prints."""
        return self._call(self.scripts / "python", "-c", program).stdout.strip()

    def linter(self, *arguments: str | Path, code: int = 0) -> str:
        """What the installed command prints; it must exit with `code`."""
        return self._call(self.scripts / "torchcopylint", *arguments, code=code).stdout

    def _call(self, *command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = call(*command, cwd=self.directory)
        assert done.returncode == code, done.stdout + done.stderr
        return done


def call(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command without the variables that would let it see this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return subprocess.run(
        command, cwd=cwd, env=kept | environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build needs, without what a working directory collects."""
    directory = tmp_path_factory.mktemp("checkout")
    for name in IN_CHECKOUT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name, ignore=NO_CACHES)
        else:
            shutil.copy(ROOT / name, directory / name)
    return directory


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of the checkout, and the wheel that is built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    done = call(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, checkout, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="module")
def environment(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel in a fresh environment, with its dependencies and nothing else."""
    fresh = Environment(tmp_path_factory.mktemp("fresh"))
    fresh.install(built.wheel)
    return fresh


@pytest.fixture(scope="module")
def contents(built: Built) -> set[str]:
    """Names of the files in the wheel."""
    with zipfile.ZipFile(built.wheel) as wheel:
        return set(wheel.namelist())


@pytest.fixture(scope="module")
def metadata(built: Built) -> Message:
    """The metadata of the wheel."""
    with zipfile.ZipFile(built.wheel) as wheel:
        return email.message_from_bytes(wheel.read(f"torchcopylint-{__version__}.dist-info/METADATA"))


class TestWheel:
    def test_it_is_named_by_the_version_of_the_package(self, built: Built) -> None:
        assert built.wheel.name == f"torchcopylint-{__version__}-py3-none-any.whl"
        assert built.sdist.name == f"torchcopylint-{__version__}.tar.gz"

    def test_it_has_every_rule_page(self, contents: set[str]) -> None:
        pages = {f"torchcopylint/rules/{path.name}" for path in (ROOT / "rules").glob("*.md")}
        assert pages
        assert {name for name in contents if "/rules/" in name} == pages

    def test_it_has_every_module_and_table_of_the_package(self, contents: set[str]) -> None:
        package = ROOT / "torchcopylint"
        files = {path.relative_to(ROOT).as_posix() for path in package.rglob("*") if path.suffix in {".py", ".md"}}
        assert "torchcopylint/knowledge/tensor.md" in files
        assert files <= contents

    def test_it_says_that_it_is_typed(self, contents: set[str]) -> None:
        assert "torchcopylint/py.typed" in contents

    def test_it_has_nothing_but_the_package(self, contents: set[str]) -> None:
        tops = {name.split("/")[0] for name in contents}
        assert tops == {"torchcopylint", f"torchcopylint-{__version__}.dist-info"}
        assert not [name for name in contents if name.endswith((".pyc", ".orig", "~"))]

    def test_it_requires_neither_torch_nor_numpy(self, metadata: Message) -> None:
        required = metadata.get_all("Requires-Dist", [])
        assert {line.split(">")[0] for line in required if "extra ==" not in line} == {
            "click",
            "libcst",
            "pathspec",
            "platformdirs",
        }
        assert [line for line in required if line.startswith("torch>") and line.endswith("extra == 'verify'")]

    def test_it_has_its_licence_and_the_readme(self, metadata: Message, contents: set[str]) -> None:
        assert f"torchcopylint-{__version__}.dist-info/licenses/LICENSE" in contents
        assert str(metadata.get_payload()).startswith("# torchcopylint\n")


class TestSdist:
    def test_it_has_what_the_wheel_is_built_from_and_the_changelog(self, built: Built) -> None:
        with tarfile.open(built.sdist) as sdist:
            names = {name.split("/", 1)[1] for name in sdist.getnames()}
        assert {"rules/state-dict-by-reference.md", "CHANGELOG.md", "LICENSE", "README.md"} <= names
        assert {name.split("/")[0] for name in names} == {*IN_CHECKOUT, "PKG-INFO"} | ({".gitignore"} & names)


class TestInstalledWheel:
    def test_there_is_no_torch(self, environment: Environment) -> None:
        find = "import importlib.util as u; print([u.find_spec(name) for name in ('torch', 'numpy')])"
        assert environment.python(find) == "[None, None]"

    def test_the_command_knows_its_version(self, environment: Environment) -> None:
        assert environment.linter("--version") == f"torchcopylint {__version__}\n"

    def test_it_lists_every_rule(self, environment: Environment) -> None:
        assert [line.split()[0] for line in environment.linter("rules").splitlines()] == list(load_pages())

    def test_it_explains_a_rule(self, environment: Environment) -> None:
        assert "## Why it matters" in environment.linter("explain", "TCL701")

    def test_it_finds_in_the_examples_what_the_checkout_finds(self, environment: Environment) -> None:
        """Without torch and numpy: the linter never needs them."""
        arguments = ("check", "--isolated", "--output-format", "json", str(EXAMPLES))
        here = call(sys.executable, "-m", "torchcopylint", *arguments, cwd=environment.directory)
        installed = json.loads(environment.linter(*arguments, code=1))
        assert installed == json.loads(here.stdout)
        assert len(installed) > 20

    def test_it_uses_its_own_pages_and_no_stray_directory(self, environment: Environment) -> None:
        package = Path(environment.python("import torchcopylint as t; print(t.__file__)")).parent
        stray = package.parent / "rules"
        shutil.copytree(ROOT / "rules", stray)
        (stray / "stray.md").write_text("no page")
        try:
            where = environment.python("from torchcopylint.pages import pages_directory as p; print(p())")
            assert Path(where).resolve() == (package / "rules").resolve()
            assert len(environment.linter("rules").splitlines()) == len(load_pages())
        finally:
            shutil.rmtree(stray)


@pytest.mark.parametrize("manifest", [None, '[project]\nname = "another"\n'])
def test_a_stray_directory_is_not_taken_even_if_the_pages_are_missing(tmp_path: Path, manifest: str | None) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(ROOT / "torchcopylint", site / "torchcopylint", ignore=NO_CACHES)
    shutil.copytree(ROOT / "rules", site / "rules")
    if manifest is not None:
        (site / "pyproject.toml").write_text(manifest)
    done = call(sys.executable, "-m", "torchcopylint", "rules", cwd=tmp_path, PYTHONPATH=str(site))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "the rule pages are missing" in done.stderr


def test_an_editable_install_reads_the_checkout(checkout: Path, tmp_path: Path) -> None:
    fresh = Environment(tmp_path / "environment")
    fresh.install("--editable", checkout)
    where = fresh.python("from torchcopylint.pages import pages_directory as p; print(p())")
    assert Path(where).resolve() == (checkout / "rules").resolve()
    assert [line.split()[0] for line in fresh.linter("rules").splitlines()] == list(load_pages())
    fresh.linter("check", "--isolated", EXAMPLES / "faulty", code=1)


def test_a_plain_checkout_runs_from_the_path(checkout: Path, tmp_path: Path) -> None:
    show = "import torchcopylint.pages as p; print(p.__file__); print(p.pages_directory()); print(len(p.load_pages()))"
    done = call(sys.executable, "-c", show, cwd=tmp_path, PYTHONPATH=str(checkout))
    module, pages, count = done.stdout.splitlines()
    assert Path(module).is_relative_to(checkout.resolve())
    assert Path(pages) == checkout.resolve() / "rules"
    assert int(count) == len(load_pages())
    done = call(sys.executable, "-m", "torchcopylint", "explain", "TCL701", cwd=tmp_path, PYTHONPATH=str(checkout))
    assert done.stdout.startswith("# state-dict-by-reference\n")
