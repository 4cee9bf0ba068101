"""Options of the test run: `--no-skips` for CI, `--without-torch` for an environment that lacks it, and `--fuzz`.

`conftest.py` takes the hooks from here.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
NEED_TORCH = ("torch", "numpy", "running", "torchcopylint.knowledge.generate")
"""What a test file imports if it needs torch. `running` starts a child that imports it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("torchcopylint")
    group.addoption("--no-skips", action="store_true", help="a test or file that is skipped has failed")
    group.addoption("--fuzz", type=int, default=0, metavar="N", help="try N other texts in each test of tests/fuzz")
    group.addoption("--without-torch", action="store_true", help="leave out the files that need torch or numpy")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the report of a skipped test into a failure under `--no-skips`. An expected failure is no skip."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that skips itself, for example by `pytest.importorskip`."""
    report = yield
    _refuse(report, collector.config)
    return report


def _refuse(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    if report.skipped and config.getoption("--no-skips"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipping is not allowed under --no-skips: {reason}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what needs torch under `--without-torch`."""
    if not config.getoption("--without-torch") or collection_path.suffix != ".py":
        return None
    return True if needs_torch(collection_path) else None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is left out: a run without torch must not look like a whole one."""
    if not config.getoption("--without-torch"):
        return []
    left_out = sorted(path.name for path in TESTS.rglob("test_*.py") if needs_torch(path))
    return [f"without torch, left out: {', '.join(left_out)}"]


@cache
def needs_torch(path: Path) -> bool:
    """Whether a test file, or a module beside it that it imports, imports one of `NEED_TORCH` anywhere."""
    for name in imported(path):
        if any(name == need or name.startswith(f"{need}.") for need in NEED_TORCH):
            return True
        local = TESTS / (name.replace(".", "/") + ".py")
        if local.is_file() and local != path and needs_torch(local):
            return True
    return False


def imported(path: Path) -> Iterator[str]:
    """The absolute names of what a file imports, wherever in it; relative ones are resolved from `TESTS`."""
    parents = path.resolve().parent.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = parents[: len(parents) - node.level + 1] if node.level else ()
            module = ".".join((*package, *([node.module] if node.module else ())))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
