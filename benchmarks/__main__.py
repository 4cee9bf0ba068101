"""`python -m benchmarks PATH...`: the linter beside parsers and other linters over the same files, as Markdown.

`python -m benchmarks --growth` measures the linter alone over files of more and more lines, and of deeper and deeper
nesting. `python -m benchmarks --verify PATH...` runs the code around what is found there, and says what that costs
beside importing torch. A tool that is to take part is installed into an environment of its own, whose programs
`--tools DIRECTORY` names (repeat it for several); those that are not found are left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import Cost, cost, side_by_side
from benchmarks.verifying import table, times

_EACH = "import sys, {imports}\nfor path in sys.argv[1:]:\n    try: {call}\n    except Exception: pass\n"
PARSERS = {
    "ast.parse": _EACH.format(imports="ast", call="ast.parse(open(path, 'rb').read())"),
    "libcst.parse_module": _EACH.format(imports="libcst", call="libcst.parse_module(open(path, 'rb').read())"),
}
TOOLS = {
    "TorchFix": ("torchfix", "--select", "ALL"),
    "Fixit": ("fixit", "lint"),
    "flake8-bugbear": ("flake8", "--select", "B", "--jobs", "1"),
    "pylint": ("pylint", "--disable=all", "--enable=E,W", "--jobs", "1"),
    "ruff": ("ruff", "check", "--isolated", "--no-cache", "--select", "B"),
}
LINES = (1_000, 3_000, 10_000, 30_000, 100_000)
DEPTHS = (10, 20, 40, 80)
FUNCTION = """
def train_{n}(model, optimizer, batches):
    best = None
    for inputs, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = model.state_dict() if best is None else best
    return best
"""


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("paths", nargs="*", help="files and directories")
    parser.add_argument("--tools", action="append", default=[], metavar="DIRECTORY", help="where other linters are")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    print(_machine())
    if options.verify:
        try:
            print(table(times(options.paths)))
        except ValueError as error:
            sys.exit(str(error))
        return
    if options.growth:
        _growth()
    for path in options.paths:
        _compare(path, options.tools, options.rounds)


def _machine() -> str:
    parts = [f"Python {platform.python_version()}", f"{os.cpu_count()} processors"]
    parts += [f"{name} {version(name)}" for name in ("libcst", "torchcopylint")]
    return ", ".join(parts) + "\n"


def _compare(path: str, tools: Sequence[str], rounds: int) -> None:
    """Print a table of all that can read the files below a path; ratios are of processor time."""
    files = [str(file) for file in sorted(Path(path).rglob("*.py"))] if os.path.isdir(path) else [path]
    lines = sum(Path(file).read_bytes().count(b"\n") for file in files)
    with tempfile.TemporaryDirectory() as cache:
        lint = [sys.executable, "-m", "torchcopylint", "--isolated", "--jobs", "1", "--output-format", "json", path]
        warm = [*lint, "--cache-dir", cache]
        commands: dict[str, Sequence[str]] = {
            **{name: [sys.executable, "-c", program, *files] for name, program in PARSERS.items()},
            "torchcopylint": [*lint, "--no-cache"],
            "torchcopylint --no-screen": [*lint, "--no-cache", "--no-screen"],
            "torchcopylint, warm cache": warm,
            **{name: [program, *rest, path] for name, (program, *rest) in _found(tools).items()},
        }
        cost(warm)
        costs = side_by_side(commands, rounds)
    print(f"\n`{os.path.basename(path.rstrip(os.sep))}`: {len(files)} files, {lines} lines, median of {rounds}\n")
    print("| | CPU s | wall s | peak MB | x parse_module | x ast.parse |\n|---|--:|--:|--:|--:|--:|")
    for name, used in costs.items():
        print(_row(name, used, costs["libcst.parse_module"], costs["ast.parse"]))


def _row(name: str, used: Cost, libcst: Cost, ast: Cost) -> str:
    ratios = f"{used.cpu / libcst.cpu:.2f} | {used.cpu / ast.cpu:.2f}"
    return f"| {name} | {used.cpu:.2f} | {used.wall:.2f} | {used.peak:.0f} | {ratios} |"


def _found(directories: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tools whose programs are there, with their paths."""
    found = {}
    for name, (program, *rest) in TOOLS.items():
        for directory in directories:
            path = os.path.join(directory, program)
            if name not in found and os.access(path, os.X_OK):
                found[name] = (path, *rest)
    return found


def _growth() -> None:
    """Print what longer and deeper files cost; the time of an empty file is taken off."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.py")
        command = [sys.executable, "-m", "torchcopylint", "--isolated", "--no-cache", path]
        Path(path).write_text("import torch\nx = torch.ones(1)\n")
        start = cost(command)
        texts = {f"{count} lines": _long(count) for count in LINES}
        texts |= {f"{depth} nested loops in functions": _deep(depth) for depth in DEPTHS}
        print("| | CPU s | ms a 1,000 lines | peak MB |\n|---|--:|--:|--:|")
        for name, text in texts.items():
            Path(path).write_text(text)
            used = cost(command)
            cpu = used.cpu - start.cpu
            print(f"| {name} | {cpu:.2f} | {cpu * 1e6 / text.count(chr(10)):.0f} | {used.peak:.0f} |")


def _long(lines: int) -> str:
    count = lines // FUNCTION.count("\n")
    return "import torch\n" + "".join(FUNCTION.format(n=number) for number in range(count))


def _deep(depth: int) -> str:
    """Functions in functions with a loop in each, so that Python's limit of 20 nested blocks is not met."""
    lines = ["import torch", "w = torch.ones(2)"]
    for level in range(depth):
        indent = "    " * level
        lines += [f"{indent}def f{level}(batches):" if level % 2 == 0 else f"{indent}for x in batches:"]
    return "\n".join([*lines, "    " * depth + "w.add_(1)"]) + "\n"


if __name__ == "__main__":
    main()
