"""The script of a program, that is what is neither import nor definition, inside another construct."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .programs import Program, Variant, header, tagged

CONSTRUCTS: Mapping[str, str] = {
    "function": """\
def main():
    {script}


if __name__ == "__main__":
    main()
""",
    "method": """\
class Program:
    def run(self):
        {script}


Program().run()
""",
    "function in a function": """\
def outer():
    def inner():
        {script}

    inner()


outer()
""",
    "loop of one turn": """\
for _ in range(1):
    {script}
""",
    "endless loop left at once": """\
while True:
    {script}
    break
""",
    "if True": """\
if True:
    {script}
""",
    "with a file": """\
import os

with open(os.devnull):
    {script}
""",
    "try finally": """\
try:
    {script}
finally:
    pass
""",
    "try except": """\
try:
    {script}
except KeyboardInterrupt:
    raise
""",
}
"""Where the script stands, at the indentation of `{script}`."""


def wrapped(program: Program, construct: str) -> Variant:
    """The program with its script inside a construct. Imports and definitions stay in front of it."""
    front, script = _split(program.code)
    return Variant.of("\n".join(front) + "\n\n" + _filled(CONSTRUCTS[construct], script))


def enclosed(program: Program) -> Variant:
    """All of the program, imports and definitions as well, inside one function."""
    front, script = _split(program.code)
    return Variant.of(_filled(CONSTRUCTS["function"], [*front, *script]))


def _filled(template: str, script: list[str]) -> str:
    line = next(line for line in template.splitlines() if "{script}" in line)
    indent = line.removesuffix("{script}")
    return template.replace(line, "\n".join(indent + text if text else "" for text in script))


def _split(code: str) -> tuple[list[str], list[str]]:
    """The tagged lines of the imports and definitions, and those of the script."""
    lines = tagged(code).splitlines()
    front: list[str] = []
    script: list[str] = []
    for node in ast.parse(code).body:
        belongs = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        (front if belongs else script).extend(lines[header(node)[0] - 1 : node.end_lineno])
    return front, script
