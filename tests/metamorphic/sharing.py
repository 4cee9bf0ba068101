"""Copies where memory comes to be shared, copies that do not matter, and writes moved behind the last read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .programs import Program, Variant, header, statements, tagged

WRAPPERS = frozenset({"Parameter", "from_pretrained", "register_buffer", "append"})
"""Calls that keep their argument: what is copied is the last positional argument, not what the call returns."""

_PROBE = """\
def _probe(place, value):
    print("kind of", place, type(value).__module__ + "." + type(value).__name__)
    return value


"""


class Shared(NamedTuple):
    """An expression whose value shares memory with something: a piece of one line. Columns count from 0."""

    row: int
    start: int
    end: int

    @property
    def place(self) -> str:
        """A name for it, without spaces."""
        return f"{self.row}:{self.start}"


def shared_expressions(program: Program) -> tuple[Shared, ...]:
    """The values of the statements that are marked `shared`, in order of the text."""
    found = []
    for statement in statements(ast.parse(program.code)):
        if header(statement)[0] in program.rows("shared"):
            found += [_piece(part) for value in _values(statement) for part in _parts(value)]
    return tuple(sorted(set(found)))


def probed(program: Program, places: Sequence[Shared]) -> str:
    """The program with a line printed for the value of each place, for `kinds`."""
    code = _replaced(program.code, {place: f"_probe({place.place!r}, {{}})" for place in places})
    return _PROBE + code


def kinds(printed: str) -> Mapping[str, str]:
    """The type of the value at each place, from what the probed program printed."""
    lines = [line.split() for line in printed.splitlines() if line.startswith("kind of ")]
    return {place: kind for _, _, place, kind in lines}


def copied(program: Program, places: Sequence[Shared], kinds: Mapping[str, str]) -> Variant:
    """The program with a copy of the value at each place, of the sort that one would write for the value's type."""
    return _variant(_with_copies(program, places, kinds))


def copied_in_turn(program: Program, place: Shared) -> Variant | None:
    """`[x] * n` as `[copy of x for _ in range(n)]`; `None` where the place is no such repetition."""
    line = program.code.splitlines()[place.row - 1]
    node = ast.parse(line[place.start : place.end], mode="eval").body
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List)):
        return None
    element, count = ast.unparse(node.left.elts[0]), ast.unparse(node.right)
    text = f"[copy.deepcopy({element}) for _ in range({count})]"
    return _variant(_replaced(tagged(program.code), {place: text}))


def named_shares(program: Program) -> list[tuple[ast.Assign, str, Shared]]:
    """The statements that bind a name to nothing but a value that shares, with the name and the value's place."""
    places = shared_expressions(program)
    return [
        (statement, statement.targets[0].id, _piece(statement.value))
        for statement in statements(ast.parse(program.code))
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and _piece(statement.value) in places
    ]


def with_spare_copy(program: Program, kinds: Mapping[str, str]) -> Variant:
    """A copy of each name in `named_shares` right after it is bound, which nobody uses."""
    lines = tagged(program.code).splitlines()
    for statement, name, place in reversed(named_shares(program)):
        copy = _copy(kinds[place.place]).replace("{}", name)
        lines.insert(statement.lineno, f"{' ' * statement.col_offset}spare = {copy}")
    return _variant("\n".join(lines) + "\n")


class Moved(NamedTuple):
    """A program whose writes stand behind the last read, and two that say whether any read still sees them.

    `copied` has copies at the shares besides; `deleted` lacks the writes.
    """

    program: Variant
    copied: Variant
    deleted: Variant


def can_move(program: Program) -> bool:
    """Whether the program has a write that `write_moved_back` moves.

    A write can move if it binds no name, if a marked read follows it in its block, and if nothing leaves the block but
    a `return` at its end: then what that returns is computed before the write.
    """
    return next(_moves(program), None) is not None


def write_moved_back(program: Program, places: Sequence[Shared], kinds: Mapping[str, str]) -> Moved:
    """Each marked write that can move, moved behind the last statement of its block."""
    moves = list(_moves(program))
    plain = tagged(program.code)
    return Moved(
        _variant(_apply(plain, moves)),
        _variant(_apply(_with_copies(program, places, kinds), moves)),
        _variant(_apply(plain, moves, delete=True)),
    )


def _moves(program: Program) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """The writes that can move, each with the last statement of its block."""
    for block in _blocks(ast.parse(program.code)):
        last = block[-1]
        for statement in block[:-1]:
            behind = range(statement.lineno + 1, (last.end_lineno or last.lineno) + 1)
            marked = statement.lineno in program.rows("written") + program.rows("cut")
            if marked and not _binds(statement) and any(row in behind for row in program.rows("read")):
                yield statement, last


def _binds(statement: ast.stmt) -> bool:
    """Whether what follows needs a statement for more than its effect."""
    if isinstance(statement, ast.Assign):
        return isinstance(statement.targets[0], ast.Name | ast.Tuple)
    return not isinstance(statement, ast.Expr | ast.AugAssign)


def _apply(code: str, moves: Sequence[tuple[ast.stmt, ast.stmt]], *, delete: bool = False) -> str:
    """The tagged text with the moves made, or with the statements deleted."""
    lines = code.splitlines()
    behind: dict[int, list[str]] = {}
    for statement, last in moves:
        row = (last.end_lineno or last.lineno) - 1
        behind.setdefault(row, []).append(lines[statement.lineno - 1])
        lines[statement.lineno - 1] = ""
        if isinstance(last, ast.Return) and not delete and "result = " not in lines[row]:
            lines[row] = lines[row].replace("return ", "result = ", 1)
            behind.setdefault(-row, []).append(" " * last.col_offset + "return result")
    if not delete:
        for row, texts in behind.items():
            lines[abs(row)] += "".join("\n" + text for text in texts)
    return "\n".join(lines) + "\n"


def without_copies(program: Program) -> Iterator[tuple[str, Variant]]:
    """One copy left out at a time: `x` for `x.clone()`, `x.copy()` and `copy.deepcopy(x)`; named by its place."""
    for node in ast.walk(ast.parse(program.code)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("clone", "copy") and not node.args:
            inner = node.func.value
        elif ast.unparse(node.func) in ("copy.deepcopy", "deepcopy"):
            inner = node.args[0]
        else:
            continue
        source = ast.get_source_segment(program.code, inner) or ""
        code = _replaced(tagged(program.code), {_piece(node): source})
        yield f"copy left out in row {node.lineno}, column {node.col_offset}", _variant(code)


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    bodies = [getattr(node, name, None) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody")]
    return [body for body in bodies if isinstance(body, list) and body]


def _values(statement: ast.stmt) -> list[ast.expr]:
    """The expressions whose value a statement keeps under another name."""
    if isinstance(statement, ast.For):
        return [statement.iter]
    if isinstance(statement, ast.Assign | ast.Return | ast.Expr) and statement.value is not None:
        return [statement.value]
    raise NotImplementedError(f"a share in a statement of type {type(statement).__name__}")


def _parts(value: ast.expr) -> list[ast.expr]:
    """Where in an expression the sharing value stands."""
    if isinstance(value, ast.Tuple | ast.List):
        return [part for element in value.elts for part in _parts(element)]
    if isinstance(value, ast.Dict):
        return [part for element in value.values for part in _parts(element)]
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return _parts(value.elt)
    if isinstance(value, ast.DictComp):
        return _parts(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute | ast.Name):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else value.func.id
        if name in WRAPPERS | {"ModuleList", "Sequential"}:
            last = value.args[-1]
            return _parts(last.value if isinstance(last, ast.Starred) else last)
        if name == "detach_" and isinstance(value.func, ast.Attribute):
            return _parts(value.func.value)
    return [value]


def _piece(node: ast.expr) -> Shared:
    assert node.lineno == node.end_lineno
    assert node.end_col_offset is not None
    return Shared(node.lineno, node.col_offset, node.end_col_offset)


def _replaced(code: str, templates: Mapping[Shared, str]) -> str:
    lines = code.splitlines()
    for place, template in sorted(templates.items(), reverse=True):
        line = lines[place.row - 1]
        text = template.replace("{}", line[place.start : place.end])
        lines[place.row - 1] = line[: place.start] + text + line[place.end :]
    return "\n".join(lines) + "\n"


def _copy(kind: str) -> str:
    if kind.startswith("torch.") and kind.rpartition(".")[2] in ("Tensor", "Parameter"):
        return "({}).clone()"
    if kind == "numpy.ndarray":
        return "({}).copy()"
    return "copy.deepcopy({})"


def _with_copies(program: Program, places: Sequence[Shared], kinds: Mapping[str, str]) -> str:
    return _replaced(tagged(program.code), {place: _copy(kinds[place.place]) for place in places})


def _variant(code: str) -> Variant:
    needs_copy = "copy.deepcopy(" in code and "import copy" not in code
    return Variant.of("import copy\n" * needs_copy + code)
