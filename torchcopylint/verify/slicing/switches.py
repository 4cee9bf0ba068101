"""Statements that switch the graph of something on or off: what is left out of a program does so no more."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from torchcopylint.verify.slicing.source import FunctionNode, children, free_in, walked

_SWITCHING = frozenset({"requires_grad_", "detach_"})
_BLOCKS = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try)
"""Blocks whose statements run whenever they do."""


def switched(statement: ast.stmt) -> set[str]:
    """What a statement without blocks switches on or off: names, of `self` the fields."""
    return {name for name, _ in _switches(statement)}


def sets_mode(statement: ast.stmt) -> bool:
    """Whether a statement sets for all that follows if autograd records."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).endswith("set_grad_enabled")


def gone_through(loops: Iterable[ast.stmt]) -> dict[str, set[str]]:
    """For the names that loops go by, what they go through: names, of `self` the fields."""
    found: dict[str, set[str]] = {}
    for node in loops:
        if isinstance(node, ast.For | ast.AsyncFor):
            for name in walked(node.target):
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, set()).update(_roots(node.iter))
    return found


def frozen(body: Iterable[ast.stmt]) -> dict[str, int]:
    """The last names of what some statements and the functions among them switch off whenever they run, and never on
    again, with the row."""
    off: dict[str, int] = {}
    back: set[str] = set()
    for statement, through, always in _plain(body, {}):
        for name, turned_off in _switches(statement):
            names = {part.rpartition(".")[2] for part in through.get(name, {name})}
            if turned_off and always:
                off |= {part: statement.lineno for part in names if part not in off}
            elif not turned_off:
                back |= names
    return {name: row for name, row in off.items() if name not in back}


def _switches(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """What a statement switches, and whether off."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Assign):
        off = isinstance(statement.value, ast.Constant) and not statement.value.value
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                yield from ((name, off) for name in _roots(target.value))
    elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SWITCHING:
        given = [*call.args, *(word.value for word in call.keywords)]
        off = any(isinstance(value, ast.Constant) and not value.value for value in given)
        yield from ((name, off) for name in _roots(call.func.value))


def _roots(node: ast.expr) -> set[str]:
    """What an expression is a part of: the name that it begins with, of `self` the field."""
    while True:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return {f"self.{node.attr}"}
        if isinstance(node, ast.Call):
            wrapped = isinstance(node.func, ast.Name) and node.args
            if wrapped:
                return set[str]().union(*map(_roots, node.args))
            node = node.func
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        else:
            return {node.id} if isinstance(node, ast.Name) else set()


def _plain(
    body: Iterable[ast.stmt], through: Mapping[str, set[str]], *, always: bool = True
) -> Iterator[tuple[ast.stmt, Mapping[str, set[str]], bool]]:
    """The statements without blocks in some, with what the loops around them go through, and whether all run."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _plain(node.body, {}, always=always)
        elif isinstance(node, ast.If | ast.While):
            yield from _plain((*node.body, *node.orelse), through, always=False)
        elif isinstance(node, _BLOCKS):
            inner = {**through, **gone_through([node])}
            yield from _plain((*node.body, *getattr(node, "orelse", ())), inner, always=always)
        else:
            yield node, through, always


_OFF = ("no_grad", "inference_mode", "set_grad_enabled")


def called_at_top(tree: ast.Module) -> set[str]:
    """The names that a file calls at module level, or in what it calls there, outside of blocks that say whether
    autograd records."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found: set[str] = set()
    pending: list[ast.AST] = [node for node in tree.body if not isinstance(node, _DEFINITIONS)]
    while pending:
        node = pending.pop()
        if isinstance(node, _DEFINITIONS) or (isinstance(node, ast.With) and _says(node.items)):
            continue
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name not in found and name in functions and not _says(functions[name].decorator_list):
                pending += functions[name].body
            found.add(name)
        pending += children(node)
    return found


def takes_nothing(function: FunctionNode) -> bool:
    """Whether a function is given nothing, and, if it is a method, asks nothing of its object."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {item.arg for item in given if item is not None}
    asked = set[str]().union(*map(free_in, function.body))
    return names <= {"self", "cls"} and not names & asked


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _says(parts: Iterable[ast.AST]) -> bool:
    """Whether contexts or decorators say whether autograd records."""
    return any(word in ast.unparse(part) for part in parts for word in _OFF)
