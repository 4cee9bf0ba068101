"""What the conditions on the way to the steps ask of the names in them, so that inputs can be made that lead there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from types import EllipsisType

from torchcopylint.verify.slicing.source import nodes_of, walked

Value = bool | int | float | str | None
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LISTS = (ast.List, ast.ListComp)
_BODIES = ("body", "orelse", "finalbody")


@dataclass(slots=True)
class Wanted:
    """By the last part of a name: the value it should have (`values`), whether it should count as true (`truths`), the
    numbers that it should reach at least or at most (`least`, `most`); and the names that should not be `None`
    (`made`), or that say how many turns lie between two (`intervals`). `asking` are the functions of the file that say
    whether what they are given is not `None`.
    """

    values: dict[str, Value] = field(default_factory=dict)
    truths: dict[str, bool] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    intervals: set[str] = field(default_factory=set)
    asking: frozenset[str] = frozenset()

    def instead_of(self, name: str, default: ast.expr) -> Value | ast.expr:
        """What a parameter with this name should get; the default where that will do, or where it is no constant."""
        value = _constant(default)
        if value is ...:
            return default
        wanted = self.constant(name, value)
        return default if wanted == value and isinstance(wanted, bool) == isinstance(value, bool) else wanted

    def constant(self, name: str, value: Value) -> Value:
        """A constant like this one that does what is asked of a name; the same if it does already."""
        if name in self.values:
            return self.values[name]
        if isinstance(value, bool):
            return self.truths.get(name, value)
        if isinstance(value, int | float):
            return self.number(name, value)
        return value

    def number(self, name: str, value: float) -> float:
        """A number like this one that does what is asked of a name."""
        value = max(value, self.least.get(name, value))
        value = min(value, self.most.get(name, value))
        if name in self.truths and bool(value) is not self.truths[name]:
            return type(value)(self.truths[name])
        return value


def wanted_for(tree: ast.Module, rows: Collection[int]) -> Wanted:
    """What the way to some rows of a file asks for."""
    found = Wanted(asking=_asking(tree))
    for row in sorted(rows):
        body: list[ast.stmt] = tree.body
        while body:
            at = next((node for node in body if node.lineno <= row <= (node.end_lineno or node.lineno)), None)
            if at is None:
                break
            for before in body[: body.index(at)]:
                # Who leaves before the step must not.
                if isinstance(before, ast.If) and not before.orelse and isinstance(before.body[-1], _LEAVING):
                    _ask(before.test, found, met=False)
            body = _enter(at, row, found)
    if found.intervals:
        _shorten(tree, found)
    return found


def _asking(tree: ast.Module) -> frozenset[str]:
    """The functions of a file that are another name for `is not None`."""
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Return)
        and node.body[0].value is not None
        and ast.unparse(node.body[0].value) in {f"{argument.arg} is not None" for argument in node.args.args[:1]}
    )


def _shorten(tree: ast.Module, found: Wanted) -> None:
    """What happens every so many turns should happen in each, since few are run. What is a part of the number of all
    turns is half of it: few turns are as many."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Assign) and {_last(target) for target in node.targets} & found.intervals:
            value = node.value
            if isinstance(value, ast.Call) and _last(value.func) in ("int", "round") and value.args:
                value = value.args[0]
            divided = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv | ast.Div)
            if isinstance(value, ast.BinOp) and divided and _last(value.right):
                found.values.setdefault(_last(value.right), 2)
    for name in found.intervals:
        found.values.setdefault(name, 1)


def writes_compared(tree: ast.Module, rows: Collection[int]) -> bool:
    """Whether a statement in some rows writes those elements of something that are more, or less, than something."""
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    for node in nodes_of(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and node.lineno in rows:
            compared = (part for part in walked(node.slice) if isinstance(part, ast.Compare))
            if any(isinstance(operator, orders) for part in compared for operator in part.ops):
                return True
    return False


def _enter(node: ast.stmt, row: int, found: Wanted) -> list[ast.stmt]:
    """The block of a statement that a row is in, empty for its head; what the statement asks for that is noted."""
    block = next((part for part in _blocks(node) if part[0].lineno <= row <= _end(part)), [])
    if isinstance(node, ast.If) and block:
        _ask(node.test, found, met=block is node.body)
    elif isinstance(node, ast.For):
        _count(node.iter, found)
    elif not block:
        for part in walked(node):
            if isinstance(part, ast.comprehension):
                _count(part.iter, found)
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and isinstance(part.left, _LISTS):
                _at_least(part.right, found)
    return block


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in _BODIES:
        part = getattr(node, name, None)
        if part:
            yield part
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _end(block: list[ast.stmt]) -> int:
    return block[-1].end_lineno or block[-1].lineno


def _count(iterated: ast.expr, found: Wanted) -> None:
    """What a loop counts should be two at least: of one thing alone, there is nothing to share."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range":
        _at_least(iterated.args[-1 if len(iterated.args) < 3 else 1], found)


def _at_least(node: ast.expr, found: Wanted, least: int = 2) -> None:
    """A name is to be so large that a count that is computed of it is that many at least: `depth`, in `depth + 1`."""
    name = _last(node)
    if name:
        found.least[name] = max(least, found.least.get(name, least))
    elif isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and type(node.right.value) is int:
        by = node.right.value
        if isinstance(node.op, ast.Add | ast.Sub):
            _at_least(node.left, found, least - by if isinstance(node.op, ast.Add) else least + by)
        elif isinstance(node.op, ast.FloorDiv) and by > 0:
            _at_least(node.left, found, least * by)


def _ask(test: ast.expr, found: Wanted, *, met: bool) -> None:
    """A condition is to be met, or not to be: what that asks of its names. The first that asks is heard."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _ask(test.operand, found, met=not met)
    elif isinstance(test, ast.BoolOp):
        needed = test.values if isinstance(test.op, ast.And) == met else test.values[:1]
        for part in needed:
            _ask(part, found, met=met)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _compare(test, found, met=met)
    elif isinstance(test, ast.Call) and _last(test.func) in found.asking and len(test.args) == 1:
        name = _last(test.args[0])
        if name and met:
            found.made.add(name)
        elif name:
            found.values.setdefault(name, None)
    elif _last(test):
        found.truths.setdefault(_last(test), met)
        if met:
            found.made.add(_last(test))


def _compare(test: ast.Compare, found: Wanted, *, met: bool) -> None:
    name, operator, other = _last(test.left), test.ops[0], test.comparators[0]
    if isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod):
        # Every so many turns: in each of them.
        if isinstance(operator, ast.Eq) and met and _constant(other) == 0 and _last(test.left.right):
            found.intervals.add(_last(test.left.right))
        return
    if not name:
        return
    if isinstance(operator, ast.In | ast.NotIn):
        first = _constant(next(iter(getattr(other, "elts", ())), None))
        if isinstance(operator, ast.In) == met and first is not ...:
            found.values.setdefault(name, first)
        return
    value = _constant(other)
    if value is ...:
        return
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        same = isinstance(operator, ast.Eq | ast.Is) == met
        if same:
            found.values.setdefault(name, value)
        elif value is None:
            found.made.add(name)
        elif isinstance(value, bool):
            found.truths.setdefault(name, not value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(operator, ast.Gt | ast.GtE) == met:
            bound = value + isinstance(operator, ast.Gt | ast.LtE)
            found.least[name] = max(bound, found.least.get(name, bound))
        else:
            bound = value - isinstance(operator, ast.Lt | ast.GtE)
            found.most[name] = min(bound, found.most.get(name, bound))


def _constant(node: ast.expr | None) -> Value | EllipsisType:
    """The constant that an expression is, `...` if it is none that an input can be made of."""
    value = node.value if isinstance(node, ast.Constant) else ...
    return ... if isinstance(value, bytes | complex) else value


def _last(node: ast.expr) -> str:
    """The last part of a name or of an attribute of one."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
