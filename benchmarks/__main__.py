"""`python -m benchmarks PATH...`: the linter beside parsers and other linters over the same files, as Markdown.

`--peers` installs the other linters, each into an environment of its own in a temporary directory, since some need
another LibCST. `--tools DIRECTORY` names programs that are installed already (repeat it for several); those that are
not found are left out. `--every N` takes each N-th file, for tools that are slow. `python -m benchmarks --growth`
measures the linter alone over files of more and more lines, and of deeper and deeper nesting; `--plot FILE.svg` draws
that. `python -m benchmarks --verify PATH...` runs the code around what is found there, and says what that costs beside
importing torch.
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

from benchmarks.growth import growth
from benchmarks.measure import Cost, cost, side_by_side
from benchmarks.peers import PEERS, installed
from benchmarks.verifying import table, times

_EACH = "import sys, {imports}\nfor path in sys.argv[1:]:\n    try: {call}\n    except Exception: pass\n"
PARSERS = {
    "ast.parse": _EACH.format(imports="ast", call="ast.parse(open(path, 'rb').read())"),
    "libcst.parse_module": _EACH.format(imports="libcst", call="libcst.parse_module(open(path, 'rb').read())"),
}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("paths", nargs="*", help="files and directories")
    parser.add_argument("--tools", action="append", default=[], metavar="DIRECTORY", help="where other linters are")
    parser.add_argument("--peers", action="store_true", help="install other linters first")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--plot", metavar="FILE.svg")
    options = parser.parse_args()
    print(_machine())
    if options.verify:
        try:
            print(table(times(options.paths)))
        except ValueError as error:
            sys.exit(str(error))
        return
    if options.growth:
        growth(options.plot)
    with tempfile.TemporaryDirectory() as directory:
        tools = [*options.tools, *(installed(directory) if options.peers else ())]
        for path in options.paths:
            _compare(path, tools, options.rounds, options.every)


def _machine() -> str:
    parts = [f"Python {platform.python_version()}", f"{os.cpu_count()} processors"]
    parts += [f"{name} {version(name)}" for name in ("libcst", "torchcopylint")]
    return ", ".join(parts) + "\n"


def _compare(path: str, tools: Sequence[str], rounds: int, every: int) -> None:
    """Print a table of all that can read the files below a path; ratios are of processor time."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as sample:
        files = [str(file) for file in sorted(Path(path).rglob("*.py"))][::every] if os.path.isdir(path) else [path]
        if every > 1:
            files = [_copied(file, path, sample) for file in files]
        lines = sum(Path(file).read_bytes().count(b"\n") for file in files)
        lint = [sys.executable, "-m", "torchcopylint", "--isolated", "--jobs", "1", "--output-format", "json", *files]
        warm = [*lint, "--cache-dir", cache]
        commands: dict[str, Sequence[str]] = {
            **{name: [sys.executable, "-c", program, *files] for name, program in PARSERS.items()},
            "torchcopylint": [*lint, "--no-cache"],
            "torchcopylint --no-screen": [*lint, "--no-cache", "--no-screen"],
            "torchcopylint, warm cache": warm,
            **{name: [program, *rest, *files] for name, (program, *rest) in _found(tools).items()},
        }
        cost(warm)
        costs = side_by_side(commands, rounds)
    which = f"1 of {every} files, " if every > 1 else ""
    name = os.path.basename(path.rstrip(os.sep))
    print(f"\n`{name}`: {which}{len(files)} files, {lines} lines, median of {rounds}\n")
    print("| | CPU s | wall s | peak MB | x parse_module | x ast.parse |\n|---|--:|--:|--:|--:|--:|")
    for name, used in costs.items():
        print(_row(name, used, costs["libcst.parse_module"], costs["ast.parse"]))


def _copied(file: str, top: str, sample: str) -> str:
    """A file of a sample, where the files that are not in it are not found: some linters would look into them."""
    copy = Path(sample, os.path.relpath(file, top))
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(Path(file).read_bytes())
    return str(copy)


def _row(name: str, used: Cost, libcst: Cost, ast: Cost) -> str:
    ratios = f"{used.cpu / libcst.cpu:.2f} | {used.cpu / ast.cpu:.2f}"
    return f"| {name} | {used.cpu:.2f} | {used.wall:.2f} | {used.peak:.0f} | {ratios} |"


def _found(directories: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tools whose programs are there, with their paths."""
    found = {}
    for peer in PEERS:
        for directory in directories:
            path = os.path.join(directory, peer.command[0])
            if peer.name not in found and os.access(path, os.X_OK):
                found[peer.name] = (path, *peer.command[1:])
    return found


if __name__ == "__main__":
    main()
