"""Jupyter notebooks: the code cells as one Python text, in which every cell stands under a line that names it.

    # %% cell 3
    best = model.state_dict()

The lines of a cell stay lines, one for one, so that a row of the text is a row of a cell. What IPython understands and
Python does not is replaced by something harmless that is as long in lines.

A cell shows the value of its last statement if that is an expression, so the value is not dropped. A comma behind it
makes it part of something, and the line that names the cell says where that comma is: `# %% cell 3 shows 1:31`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any, NamedTuple

from torchcopylint.base.finding import Position
from torchcopylint.source.limits import measure
from torchcopylint.source.text import START, Undecodable, split_lines

SUFFIX = ".ipynb"
_MARKER = re.compile(r"^# %% cell (\d+)(?: shows (\d+):(\d+))?$")
_PYTHON = ("python", "ipython", "pyspark")
_SAFE_NESTING, _SAFE_CHAIN, _SAFE_PATTERNS = 200, 2_000, 8
"""What LibCST surely survives; a cell beyond it is left to the limits of the analysis."""

_TIMED = r"time|timeit|prun"
_BODY_KEPT = frozenset({*_TIMED.split("|"), "capture"})
_CELL_MAGIC = re.compile(r"%%(\w+)")
_TIMING = re.compile(rf"(%%?(?:{_TIMED})\b[ \t]*(?:-[nrpslDT][ \t]*\S+[ \t]+|-\w+[ \t]+)*)(.*)")
_ASSIGNED = re.compile(r"(?P<target>[^\W\d][^=!%#\"']*=[ \t]*)(?P<magic>%(?=[^\W\d])|!)(?P<rest>.*)", re.DOTALL)
_ESCAPE = re.compile(r"!|%{1,2}[ \t]*[^\W\d]|\?|[,;/](?=[^\W\d])")
_HELP = re.compile(r"%{0,2}[^\W\d][\w.*]*(?:\[[^\]]*\][\w.*]*)*\?{1,2}[ \t;]*(?:#.*)?|\*[\w.*]+\?{1,2}")
_AUTOMAGIC = re.compile(
    r"(?:pip3?|conda|mamba|uv) +(?:install|uninstall|list|freeze|show|update)\b|cd +\S"
    r"|(?:ls|ll|cat|cp|mv|rm|rmdir|mkdir|less|more|man) +(?!(?:in|is|not|and|or|if|else)\b|[-+*/.%@]?=)[-\w./~*$\"'{]"
)
_TOKEN = re.compile(r"'''|\"\"\"|'(?:\\.|[^'\\])*'?|\"(?:\\.|[^\"\\])*\"?|#.*|[()\[\]{}]")
_UNKNOWN = "get_ipython()"
_BINDING = re.compile(
    r"(?:(?:async[ \t]+)?(?:def|class|for)|with\b.*\bas)[ \t]+"
    r"(?P<bound>[^\W\d][\w, \t]*?)(?:[ \t]+in\b|[ \t]*[(:])"
    r"|(?P<target>[^\W\d*][\w, \t*]*?)[ \t]*(?::[^=]*)?(?:[-+*/@%&|^]|//|\*\*|<<|>>)?=(?!=)"
)
"""A line that binds names, of a cell that cannot be parsed."""
_IMPORT = re.compile(r"(?:import|from)[ \t]+[\w.]")


class Fault(NamedTuple):
    """A cell that is no Python and was left out. `position` is in the text, `line` is what the cell has there."""

    reason: str
    position: Position
    line: str


class Notebook(NamedTuple):
    """The Python of a notebook, and the cells that it lacks because they are none."""

    text: str
    faults: tuple[Fault, ...]


def is_notebook(filename: str) -> bool:
    """Whether a file of this name is taken for a notebook."""
    return filename.endswith(SUFFIX)


def convert(text: str) -> Notebook:
    """The Python of a notebook's decoded JSON (nbformat 3 or 4); nothing of one in another language.

    Raises `Undecodable` if the text is no notebook, with the place in the JSON.
    """
    document = _document(text)
    if not _is_python(document):
        return Notebook("", ())
    parts: list[str] = []
    faults = []
    row = 1
    for number, source in _code_cells(document):
        python = _python(source)
        if python is None:
            continue
        reason, position = _refusal(python)
        if reason:
            lines = split_lines(source)
            line = lines[position.row - 1] if position.row <= len(lines) else ""
            # The line with the name stands in the row above the first one of the cell.
            faults.append(Fault(reason, Position(row + position.row, position.column), line))
            python = "\n".join(_stand_in(lines))
        # A comment at the end of a cell does not reach into the next: an empty line keeps them apart.
        python, shown = _showing(python)
        parts.append(f"# %% cell {number}{shown}\n{python}\n\n")
        row += len(split_lines(parts[-1])) - 1
    return Notebook("".join(parts), tuple(faults))


def cells(text: str) -> tuple[tuple[int, int], ...]:
    """Of a text that `convert` made: each cell's number, from 1 and counting cells of every kind, and the row of the
    line that names it. Row r of the cell is r rows below."""
    found = ((_MARKER.match(line), row) for row, line in enumerate(split_lines(text), start=1))
    return tuple((int(match[1]), row) for match, row in found if match)


def lines_of(text: str) -> list[str]:
    """The lines of a text that `convert` made, as they are to be shown: without the commas that it put there."""
    lines = split_lines(text)
    for index, line in enumerate(lines):
        match = _MARKER.match(line)
        if match and match[2]:
            row, column = index + int(match[2]), int(match[3])
            lines[row] = lines[row][: column - 1] + lines[row][column:]
    return lines


def cell_at(row: int, starts: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The cell that a row of a text lies in and the row that names it, out of what `cells` returned; `None` outside."""
    index = bisect_left(starts, row, key=lambda start: start[1]) - 1
    return starts[index] if index >= 0 else None


def row_called(row: int, starts: Sequence[tuple[int, int]]) -> str:
    """A row of a text in words: `line 12`, or `line 2 of cell 3` with the cells of a notebook."""
    found = cell_at(row, starts)
    return f"line {row - found[1]} of cell {found[0]}" if found else f"line {row}"


def _document(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"it is no notebook: a notebook is JSON, and here is none ({error.msg}); save it again with Jupyter"
        if not text.strip():
            reason = "it is no notebook: it is empty; save it again with Jupyter"
        raise Undecodable(reason, Position(error.lineno, error.colno)) from None
    except (RecursionError, ValueError) as error:
        raise Undecodable(f"it is no notebook: its JSON cannot be read ({error})", START) from None
    listed = isinstance(document, dict) and isinstance(document.get("cells", document.get("worksheets")), list)
    if not listed:
        raise Undecodable("it is no notebook: its JSON has no list of cells; save it again with Jupyter", START)
    return dict(document)


def _table(value: object, key: str) -> Mapping[str, Any]:
    """The object under a key, empty if there is none."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _is_python(document: Mapping[str, Any]) -> bool:
    metadata = _table(document, "metadata")
    language = _table(metadata, "language_info").get("name") or _table(metadata, "kernelspec").get("language")
    return not isinstance(language, str) or language.lower().startswith(_PYTHON)


def _code_cells(document: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The number and the source of every code cell in Python."""
    listed = document.get("cells")
    if not isinstance(listed, list):
        sheets = (_listed(sheet) for sheet in document["worksheets"])
        listed = [cell for sheet in sheets for cell in sheet]
    for number, cell in enumerate(listed, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        language = _table(_table(cell, "metadata"), "vscode").get("languageId") or cell.get("language")
        if isinstance(language, str) and not language.lower().startswith(_PYTHON):
            continue
        source = cell.get("source", cell.get("input"))
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        if isinstance(source, str) and source.strip():
            yield number, source


def _listed(sheet: object) -> list[Any]:
    inner = sheet.get("cells") if isinstance(sheet, dict) else None
    return inner if isinstance(inner, list) else []


def _python(source: str) -> str | None:
    """A cell as Python, row for row, or `None` if its magic says that it is something else."""
    lines = split_lines(source)
    head = next(index for index, line in enumerate(lines) if line.strip())
    magic = _CELL_MAGIC.match(lines[head])
    if magic and magic[1] not in _BODY_KEPT:
        return None
    if not magic and _accepted(source):
        return _unmarked(lines)
    if magic:
        lines[head] = "pass" if magic[1] == "capture" else _timed(lines[head], "")
    indent = lines[head][: len(lines[head]) - len(lines[head].lstrip())]
    # IPython takes the indentation of the first line off all lines.
    return _unmarked(_without_magics([line.removeprefix(indent) for line in lines]))


def _unmarked(lines: Sequence[str]) -> str:
    """The lines as text, in which none is taken for the name of a cell."""
    return "\n".join(f"{line} " if _MARKER.match(line) else line for line in lines)


def _without_magics(lines: Sequence[str]) -> list[str]:
    """The lines with what only IPython understands replaced. It stands where a statement starts: in a bracket, in a
    string or after a backslash, `%` and `!` are Python's."""
    found: list[str] = []
    depth, quote, continued, replaced = 0, "", False, False
    for line in lines:
        if replaced:
            replaced = line.endswith("\\")
            found.append("")
            continue
        if not depth and not quote and not continued:
            harmless = _harmless(line)
            if harmless is not None:
                replaced = line.endswith("\\")
                found.append(harmless)
                continue
        depth, quote = _after(line, depth, quote)
        continued = line.endswith("\\")
        found.append(line)
    return found


def _harmless(line: str) -> str | None:
    """What stands for a line of IPython, or `None` if it is no such line. What goes on behind keeps its column."""
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    if code.startswith(("%", "!")) and _ESCAPE.match(code):
        return _timed(code, indent)
    if _ESCAPE.match(code) or _HELP.fullmatch(code.rstrip()) or _AUTOMAGIC.match(code):
        return f"{indent}pass"
    assigned = _ASSIGNED.fullmatch(code)
    if not assigned:
        return None
    timing = _TIMING.match(assigned["magic"] + assigned["rest"])
    if timing and _accepted(timing[2]):
        return f"{indent}{assigned['target']}{' ' * len(timing[1])}{timing[2]}"
    return f"{indent}{assigned['target']}{_UNKNOWN}"


def _timed(code: str, indent: str) -> str:
    """What stands for a magic: the statement that it runs in order to time it, or nothing."""
    timing = _TIMING.match(code)
    if timing and timing[2].strip() and _accepted(f"pass; {timing[2]}"):
        tree = _tree(timing[2].strip())
        # What is run to be timed is not run for its result: nobody drops that.
        begin = "_ = " if tree and tree.body and isinstance(tree.body[0], ast.Expr) else "pass; "
        return f"{indent}{begin.ljust(len(timing[1]))}{timing[2]}"
    return f"{indent}pass"


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open after a line, and the triple quote that is, if one is."""
    position = 0
    while position < len(line):
        if quote:
            end = re.compile(rf"(?:\\.|(?!{quote}).)*{quote}").match(line, position)
            if not end:
                break
            position, quote = end.end(), ""
            continue
        match = _TOKEN.search(line, position)
        if not match:
            break
        position = match.end()
        if match[0] in ("'''", '"""'):
            quote = match[0]
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth = max(depth - 1, 0)
    return depth, quote


def _stand_in(lines: Sequence[str]) -> list[str]:
    """As many lines in the place of a cell that is no Python: its imports, and its names bound to nobody knows what.

    Who runs the notebook has put the cell right, and what stood under these names before is not what stands there then.
    """
    kept = [""] * len(lines)
    names: dict[str, None] = {}
    depth, quote, continued = 0, "", False
    for index, line in enumerate(lines):
        code = line.strip()
        if not depth and not quote and not continued:
            match = _BINDING.match(code)
            if line == line.lstrip() and _IMPORT.match(line) and _accepted(line):
                kept[index] = line
            elif match:
                bound = re.split(r"[,\s*]+", match["bound"] or match["target"])
                if not any(iskeyword(name) for name in bound):
                    names.update(dict.fromkeys(name for name in bound if name.isidentifier()))
        depth, quote = _after(line, depth, quote)
        continued = line.endswith("\\")
    if names and kept[0]:
        kept[0] += "; "
    kept[0] += f"{', '.join(names)}, = {_UNKNOWN}" if names else ""
    return kept


def _showing(python: str) -> tuple[str, str]:
    """A cell with a comma behind the expression that it shows, and what its line says of that; `;` shows nothing."""
    tree = _tree(python)
    last = tree.body[-1] if tree and tree.body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        return python, ""
    lines = split_lines(python)
    if last.end_lineno > len(lines):
        return python, ""
    line = lines[last.end_lineno - 1]
    # Python counts bytes.
    column = len(line.encode()[: last.end_col_offset].decode(errors="ignore"))
    if line[column:].lstrip().startswith(";") or line[:column].endswith(","):
        # What ends with a comma is part of something already.
        return python, ""
    lines[last.end_lineno - 1] = f"{line[:column]},{line[column:]}"
    return "\n".join(lines), f" shows {last.end_lineno}:{column + 1}"


def _accepted(code: str) -> bool:
    """Whether the running Python parses the code."""
    return _tree(code) is not None


def _tree(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _refusal(python: str) -> tuple[str, Position]:
    """Why a cell's code is no Python, whichever Python runs this, and where in the cell; empty if it is."""
    if "\0" in python:
        row, column = next((r, line.index("\0")) for r, line in enumerate(split_lines(python), 1) if "\0" in line)
        return "it contains a null byte", Position(row, column + 1)
    try:
        python.encode()
    except UnicodeEncodeError as error:
        before = split_lines(python[: error.start])
        return "it contains half of a surrogate pair", Position(len(before), len(before[-1]) + 1)
    if _accepted(python):
        return "", START
    size = measure(python)
    longest = max(size.chain.value, size.terms.value, size.strings.value)
    if size.nesting.value > _SAFE_NESTING or size.patterns.value > _SAFE_PATTERNS or longest > _SAFE_CHAIN:
        return "", START
    # LibCST takes its time to be imported, and most runs meet no notebook.
    from torchcopylint.source.tree import ParseError, parse

    try:
        parse(python)
    except ParseError as error:
        return error.reason, error.position or START
    return "", START
