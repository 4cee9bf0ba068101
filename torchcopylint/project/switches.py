"""What one file says of networks that are frozen, as its syntax tells: where parameters are switched off and on, what
names are bound to, and what calls pass.

This is about names, as `project.callsites` is, and it is read only where a finding rests on it: see `project.passing`.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

MODULE = 0
"""The row that stands for the body of the module, as that of its `def` does for a function."""
_ALL = frozenset({"parameters", "named_parameters"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CONDITIONS = (ast.If, ast.IfExp, ast.Try, ast.While, ast.Match, ast.ExceptHandler)

Wanted: TypeAlias = "bool | str | None"
"""What parameters are set to require: a constant, what a name holds, or something unknown."""
Place: TypeAlias = tuple[int, int]
"""Where the name of what is called ends."""


class Passed(NamedTuple):
    """What is passed for `key`, a position or a name: a dotted name (empty: something else), and whether it is a
    constant."""

    key: int | str
    text: str
    constant: bool | None = None


class Call(NamedTuple):
    """A call of a dotted name (empty: of something else). `spread` is whether it passes what a star spreads, `always`
    whether it is made on all paths of its function."""

    row: int
    name: str
    given: tuple[Passed, ...]
    spread: bool
    always: bool

    def passed(self, position: int, name: str) -> Passed | None:
        """What is passed for a parameter; `None` if that is not seen."""
        found = [one for one in self.given if one.key in (position, name)]
        return found[0] if len(found) == 1 and not self.spread else None


class Bound(NamedTuple):
    """A name is bound to another one, or to what `call` returns (both empty: to something else)."""

    row: int
    text: str = ""
    call: str = ""


class Switch(NamedTuple):
    """All parameters of what a name holds are set to require gradients, or not to; not `always` if on some paths."""

    row: int
    wanted: Wanted
    always: bool


@dataclass(slots=True)
class Scope:
    """A function, or the body of the module. `within` is the class whose `self` it sees; `switches` and `bound` are by
    dotted names, `defaults` by parameters. `returns` are dotted names, empty for something else."""

    name: str = ""
    owner: str = ""
    within: str = ""
    parameters: tuple[str, ...] = ()
    defaults: dict[str, bool] = field(default_factory=dict)
    switches: dict[str, list[Switch]] = field(default_factory=dict)
    bound: dict[str, list[Bound]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    returns: list[str] = field(default_factory=list)


class Switches(NamedTuple):
    """One file: its functions by the rows of their `def`, and its calls."""

    scopes: dict[int, Scope]
    calls: dict[Place, Call]


def switches(text: str) -> Switches:
    """What a text says; nothing if the running Python cannot read it. Linear, without recursion."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Switches({MODULE: Scope()}, {})
    return _Reader().read(tree)


class _At(NamedTuple):
    """Where a node stands: its function, its class, whether it is reached on all paths, and the loop variables that go
    through the parameters of what."""

    scope: int
    owner: str
    within: str
    always: bool
    going: tuple[tuple[str, str], ...] = ()


class _Reader:
    def __init__(self) -> None:
        self._scopes: dict[int, Scope] = {MODULE: Scope()}
        self._calls: dict[Place, Call] = {}
        self._todo: list[tuple[ast.AST, _At]] = []

    def read(self, tree: ast.Module) -> Switches:
        self._todo.append((tree, _At(MODULE, "", "", True)))
        while self._todo:
            node, at = self._todo.pop()
            self._visit(node, at)
        return Switches(self._scopes, self._calls)

    def _visit(self, node: ast.AST, at: _At) -> None:
        if isinstance(node, _FUNCTIONS):
            self._function(node, at)
            return
        if isinstance(node, ast.ClassDef):
            at = _At(at.scope, node.name, node.name, at.always)
        elif isinstance(node, (*_CONDITIONS, ast.Lambda)):
            at = at._replace(always=False)
        elif isinstance(node, ast.For | ast.AsyncFor):
            at = self._loop(node, at)
        elif isinstance(node, ast.Call):
            self._call(node, at)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            self._assign(node, at)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._scopes[at.scope].returns.append(_text(_bare(node.value)))
        self._todo += [(child, at) for child in ast.iter_child_nodes(node)]

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, at: _At) -> None:
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        given = zip(names[len(names) - len(node.args.defaults) :], node.args.defaults, strict=False)
        defaults = {name: wanted for name, value in given if (wanted := _constant(value)) is not None}
        self._scopes[node.lineno] = Scope(node.name, at.owner, at.within, tuple(names), defaults)
        self._todo += [(child, _At(node.lineno, "", at.within, True)) for child in node.body]

    def _loop(self, node: ast.For | ast.AsyncFor, at: _At) -> _At:
        """`for p in net.parameters()`, `for name, p in net.named_parameters()`."""
        last = node.target.elts[-1] if isinstance(node.target, ast.Tuple) and node.target.elts else node.target
        through = node.iter
        if isinstance(through, ast.Call) and isinstance(through.func, ast.Attribute) and through.func.attr in _ALL:
            pair = (_text(last), _text(_bare(through.func.value)))
            return at._replace(going=(*at.going, pair)) if all(pair) else at
        self._bind(_text(last), Bound(node.lineno), at)
        return at

    def _call(self, node: ast.Call, at: _At) -> None:
        positional = enumerate(node.args)
        given = [Passed(number, _text(_bare(value)), _constant(value)) for number, value in positional]
        given += [Passed(k.arg, _text(_bare(k.value)), _constant(k.value)) for k in node.keywords if k.arg]
        spread = any(isinstance(value, ast.Starred) for value in node.args) or any(not k.arg for k in node.keywords)
        call = Call(node.lineno, _text(node.func), tuple(given), spread, at.always)
        self._calls[node.func.end_lineno or 0, node.func.end_col_offset or 0] = call
        self._scopes[at.scope].calls.append(call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            wanted: Wanted = True
            if node.args or node.keywords:
                wanted = _wanted(node.args[0] if node.args else node.keywords[0].value)
            self._switch(_text(_bare(node.func.value)), node.lineno, wanted, at)

    def _assign(self, node: ast.Assign | ast.AnnAssign, at: _At) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and node.value is not None:
                self._switch(_text(target.value), node.lineno, _wanted(node.value), at)
                continue
            for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                if node.value is not None:
                    self._bind(_text(one), _bound_to(node.value, one is target, node.lineno), at)
                    self._switched_in(node.value, _text(one), at)

    def _switched_in(self, value: ast.expr, text: str, at: _At) -> None:
        """`net = Net().eval().requires_grad_(False)`"""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "requires_grad_":
                wanted = _wanted(value.args[0]) if value.args else None
                self._switch(text, value.lineno, wanted, at)
            value = value.func.value

    def _switch(self, text: str, row: int, wanted: Wanted, at: _At) -> None:
        text = next((through for name, through in reversed(at.going) if name == text), text)
        self._scopes[at.scope].switches.setdefault(text, []).append(Switch(row, wanted, at.always))

    def _bind(self, text: str, bound: Bound | None, at: _At) -> None:
        if text and bound is not None and bound.text != text:
            self._scopes[at.scope].bound.setdefault(text, []).append(bound)


def _bound_to(value: ast.expr, alone: bool, row: int) -> Bound:
    """What is assigned: what wraps one name, or moves it, is that one (`net = DataParallel(net.cuda())`)."""
    bare = _bare(value)
    text = _text(bare)
    if not alone or text:
        return Bound(row, text if alone else "")
    if isinstance(bare, ast.Call):
        inner = [name for one in bare.args if (name := _text(_bare(one)))]
        wraps = isinstance(bare.func, ast.Attribute | ast.Name) and _text(bare.func).endswith("Parallel")
        return Bound(row, inner[0]) if wraps and inner else Bound(row, "", _text(bare.func))
    return Bound(row)


_SAME = frozenset({"to", "cuda", "cpu", "eval", "train", "half", "float", "double", "requires_grad_", "type"})
"""Methods that return the module that they are called on."""


def _bare(node: ast.expr) -> ast.expr:
    """What `net.to(device).eval()` is called on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def _text(node: ast.expr) -> str:
    """A dotted name, or nothing."""
    return ".".join(reversed(list(_parts(node)))) if isinstance(_root(node), ast.Name) else ""


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _parts(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _constant(node: ast.expr) -> bool | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _wanted(node: ast.expr) -> Wanted:
    constant = _constant(node)
    return constant if constant is not None else (_text(node) or None)
