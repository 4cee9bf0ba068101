"""The structure that docs/architecture.md states: who may import whom, and what is absent where."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchcopylint.pages import load_pages
from torchcopylint.registry import load_rules

PACKAGE = Path(__file__).resolve().parent.parent / "torchcopylint"
FILES = sorted(PACKAGE.rglob("*.py"))

MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "source": {"base"},
    "knowledge": set(),
    "flow": {"base", "knowledge"},
    "pages": {"base"},
    "checks": {"base", "flow"},
    "registry": {"base", "flow", "checks", "pages"},
    "narrate": {"base", "pages"},
    "report": {"base", "pages"},
    "screen": {"flow"},
    "analysis": {"base", "source", "flow", "registry", "narrate"},
    "closeup": {"base", "source", "flow", "narrate", "analysis"},
    "verify": {"base", "pages", "source"},
    "project": {"base", "source", "knowledge", "pages", "screen", "analysis", "closeup", "report", "verify"},
    "cli": {"base", "pages", "analysis", "project", "report"},
    "api": {"base", "pages", "project"},
    "__init__": {"base", "api"},
    "__main__": {"cli"},
}
"""What each part may import of the others, lowest first. A part may always import from itself."""

FLOW_LAYERS: tuple[set[str], ...] = (
    *(
        {"model", "tape", "references", "light"},
        {"facts", "lower", "regions"},
        {"values"},
        {"tapes"},
        {"program"},
        {"graphs"},
    ),
    *({"running"}, {"storages"}, {"autograd"}, {"library"}, {"interprocedural"}, {"networks"}, {"files"}, {"events"}),
    *({"asking"}, {"examine", "signs"}),
)
"""The engine from the bottom up: each module and package in it may import those of the layers before its own."""

LIBCST_FILES = {"source/tree.py", "source/positions.py", "source/rows.py"}
TORCH_PACKAGES = {"knowledge/generate", "verify/child"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> Iterator[str]:
    """The dotted names that a file imports, wherever in the file, those for type checkers alone left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_parts(path: Path) -> set[str]:
    parts = {name.split(".")[1] for name in imported(path) if name.startswith("torchcopylint.")}
    return {part for part in parts if part in MAY_IMPORT} - {part_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    assert own_parts(path) <= MAY_IMPORT[part_of(path)]


def test_the_allowed_imports_have_no_cycle() -> None:
    done: set[str] = set()
    waiting = dict(MAY_IMPORT)
    while waiting:
        free = {part for part, needs in waiting.items() if needs <= done}
        assert free, f"a cycle among {sorted(waiting)}"
        done |= free
        waiting = {part: needs for part, needs in waiting.items() if part not in free}


def places_in_flow(path: Path) -> set[str]:
    """The modules of the engine that a file imports, as dotted names below `flow`."""
    names = {
        name.removeprefix("torchcopylint.flow.") for name in imported(path) if name.startswith("torchcopylint.flow.")
    }
    return {module for name in names if (module := _module_of(name))}


def _module_of(name: str) -> str:
    """The module that a dotted name below `flow` leads to, or empty: the rest of it is a name in the module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = PACKAGE.joinpath("flow", *parts[:length])
        if path.is_dir() or path.with_suffix(".py").is_file():
            return ".".join(parts[:length])
    return ""


FLOW = {
    ".".join(path.relative_to(PACKAGE / "flow").with_suffix("").parts): path
    for path in (PACKAGE / "flow").rglob("*.py")
}


@pytest.mark.parametrize("name", sorted(FLOW.keys() - {"__init__"}))
def test_packages_of_the_engine_import_those_before_them(name: str) -> None:
    own = name.partition(".")[0]
    before = set().union(*FLOW_LAYERS[: next(i for i, layer in enumerate(FLOW_LAYERS) if own in layer)])
    assert {other.partition(".")[0] for other in places_in_flow(FLOW[name])} - {own} <= before


def test_no_cycle_among_the_modules_of_the_engine() -> None:
    """Those that descend into the tree are left out: a function holds statements, and a statement functions."""
    modules = {name: path for name, path in FLOW.items() if not name.startswith("lower.")}
    needs = {name: (places_in_flow(path) & modules.keys()) - {name} for name, path in modules.items()}
    assert sum(map(len, needs.values())) > 500
    done: set[str] = set()
    while len(done) < len(needs):
        free = {name for name, wanted in needs.items() if name not in done and wanted <= done}
        assert free, f"a cycle among {sorted(set(needs) - done)}"
        done |= free


def test_libcst_is_imported_where_trees_are_and_nowhere_else() -> None:
    users = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        if any(name == "libcst" or name.startswith("libcst.") for name in imported(path))
    }
    assert users == LIBCST_FILES


def test_torch_and_numpy_are_imported_by_the_generator_and_the_child_that_runs_scripts_alone() -> None:
    users = {
        str(path.relative_to(PACKAGE).parent)
        for path in FILES
        if any(name.partition(".")[0] in ("torch", "numpy") for name in imported(path))
    }
    assert users <= TORCH_PACKAGES


def test_checks_see_facts_and_never_the_tree() -> None:
    allowed = (
        "torchcopylint.base.",
        "torchcopylint.flow.facts.",
        "torchcopylint.flow.model.",
        "torchcopylint.flow.regions.",
        "torchcopylint.checks",
    )
    for path in (PACKAGE / "checks").glob("*.py"):
        own = [name for name in imported(path) if name.startswith("torchcopylint")]
        assert all(name.startswith(allowed) for name in own), path.name


def test_report_modules_do_no_input_or_output() -> None:
    for path in (PACKAGE / "report").glob("*.py"):
        names = {name.partition(".")[0] for name in imported(path)}
        assert not names & {"pathlib", "io", "subprocess", "shutil"}, path.name
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"open", "print"}, path.name


def test_every_rule_is_a_page_and_a_check_of_one_stem() -> None:
    stems = {path.stem for path in (PACKAGE / "checks").glob("*.py") if not path.stem.startswith("_")}
    rules = load_rules()
    assert {rule.page.name.replace("-", "_") for rule in rules} == stems
    without = {page.family for code, page in load_pages().items() if code not in {rule.page.code for rule in rules}}
    assert without == {"TCL0"}


def test_a_run_of_the_linter_never_imports_torch(tmp_path: Path) -> None:
    target = tmp_path / "example.py"
    target.write_text("import torch\nx = torch.ones(2)\ny = x\ny += 1\nprint(x, y)\n", encoding="utf-8")
    program = (
        "import sys; from torchcopylint import check_paths; "
        f"found = check_paths([{str(target)!r}], isolated=True); "
        "assert [f.code for f in found] == ['TCL501'], found; "
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
