"""Whether all that call a function of a project pass it, for a parameter, what nobody else holds or looks at again.

Only names and calls are compared, as in `project.passing`: what a call has made, and what a name holds that is bound to
such things alone, is looked at for the last time in the call, and has been put nowhere else before. What is a parameter
there is asked of the callers of that function, in turn. Whatever is not understood makes the answer no.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from torchcopylint.knowledge import table
from torchcopylint.project.dependencies import Callee
from torchcopylint.project.passing import Called
from torchcopylint.project.switches import Place

MAX_QUESTIONS = 20
"""So many parameters are asked for behind one."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.Module, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Compare)
_LOOKS = (*_ARITHMETIC, ast.BoolOp, ast.FormattedValue, ast.Assert, ast.If, ast.While, ast.Expr, ast.AugAssign)
"""What stands around a value and leaves nothing of it behind."""
_HANDS_OUT = re.compile(
    r"^_?(?:get|fetch|load|peek|lookup|cached?|pop|next|iter|zip|enumerate|map|filter|reversed|sorted|list|tuple|dict|"
    r"values|items|setdefault|getattr|vars|parameters|buffers|state_dict|min|max|copy|cast|super|self)(?:_|$)"
)
"""What is called like this may hand out what somebody keeps."""
_KEEPS = re.compile(r"^_?(?:append|extend|insert|add|push|put|store|save|set|register|update|appendleft|record)(?:_|$)")
"""What is called like this may keep what it is given."""

Answer: TypeAlias = "bool | str"
"""Whether something is let go; or the parameter of the function around it that decides."""


class Project(Protocol):
    """The files of a project."""

    def calls(self, callee: Callee) -> Sequence[Called] | None:
        """Every call of a function; `None` if something is not understood, or may be none."""

    def hands(self, path: str) -> Hands | None:
        """What a file passes; nothing if it cannot be read."""


class _Definition(NamedTuple):
    owner: str
    node: ast.FunctionDef | ast.AsyncFunctionDef


def all_let_go(project: Project, asked: Callee) -> bool:
    """Whether all callers let go of what they pass for the parameter that is asked about, and there are some."""
    pending, seen, found = [asked], {asked}, False
    while pending:
        callee = pending.pop()
        own = project.hands(callee.path)
        position = own.position(callee) if own is not None else None
        if position is None or len(seen) > MAX_QUESTIONS:
            return False
        calls = project.calls(callee)
        for called in calls or ():
            around = project.hands(called.path)
            passed = around.passed(called.place, position, callee.parameter) if around is not None else None
            if around is None or passed is None:
                return False
            function, answer = passed
            if not answer:
                return False
            found = True
            if isinstance(answer, str):
                if function is None:
                    return False
                another = Callee(called.path, function.owner, function.node.name, parameter=answer)
                pending += [another] if another not in seen else []
                seen.add(another)
        if not calls:
            return False
    return found


class Hands:
    """What one file passes to whom, as its syntax tree tells. Linear in the text, without recursion; never raises."""

    def __init__(self, text: str, imports: Mapping[str, str]) -> None:
        """`imports` are the names that it imports with what they stand for."""
        self._imports = imports
        self._parents: dict[ast.AST, ast.AST] = {}
        self._calls: dict[Place, ast.Call] = {}
        self._names: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        self._functions: dict[tuple[str, str], list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        self._read(tree)

    def _read(self, tree: ast.Module) -> None:
        todo: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, ast.Call):
                self._calls[node.func.end_lineno or 0, node.func.end_col_offset or 0] = node
            elif isinstance(node, ast.Name):
                self._names.setdefault(scope, {}).setdefault(node.id, []).append(node)
            elif isinstance(node, _FUNCTIONS):
                parent = self._parents[node]
                owner = parent.name if isinstance(parent, ast.ClassDef) else ""
                self._functions.setdefault((owner, node.name), []).append(node)
            inner = node if isinstance(node, _SCOPES) else scope
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
                todo.append((child, inner))
        for names in self._names.values():
            for found in names.values():
                found.sort(key=_begin)

    # -- what is asked

    def position(self, callee: Callee) -> int | None:
        """The place of a parameter among what a call passes, if there is one function alone of that name."""
        found = self._functions.get((callee.owner, callee.name), [])
        names = [one.arg for one in (*found[0].args.posonlyargs, *found[0].args.args)] if len(found) == 1 else []
        if callee.parameter not in names:
            return None
        static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in found[0].decorator_list)
        return names.index(callee.parameter) - (bool(callee.owner) and not static)

    def passed(self, place: Place, position: int, name: str) -> tuple[_Definition | None, Answer] | None:
        """The function around a call, and whether it lets go of what it passes by place or by name; `None` if that is
        not seen."""
        call = self._calls.get(place)
        if call is None or any(isinstance(one, ast.Starred) for one in call.args):
            return None
        named = [one.value for one in call.keywords if one.arg == name]
        given = [call.args[position]] if position < len(call.args) else named
        if not given and any(one.arg is None for one in call.keywords):
            return None
        scope = self._scope(call)
        around = None
        if isinstance(scope, _FUNCTIONS):
            parent = self._parents[scope]
            around = _Definition(parent.name if isinstance(parent, ast.ClassDef) else "", scope)
        # What is left to its default is the function's own.
        return around, _Call(self, call, scope).lets_go(given[0], frozenset()) if given else True

    # -- the tree

    def parent(self, node: ast.AST) -> ast.AST:
        """What a node is a part of."""
        return self._parents[node]

    def _scope(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node is a part of, from the inside, up to its scope."""
        node = self._parents[node]
        while not isinstance(node, _SCOPES):
            yield node
            node = self._parents[node]

    def names(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Where a name stands in a scope, in order."""
        return self._names.get(scope, {}).get(name, [])

    def is_seen_inside(self, scope: ast.AST, name: str) -> bool:
        """Whether a scope inside another one has a name as well."""
        inner = (one for one, names in self._names.items() if name in names and one is not scope)
        return any(scope is outer for one in inner for outer in self._above(one))

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while not isinstance(node, ast.Module):
            node = self._parents[node]
            yield node

    def operation(self, call: ast.Call) -> tuple[table.Op | None, ast.expr | None, str]:
        """What is known of the function or method that is called, what its result would share memory with, and its
        name."""
        dotted = _dotted(call.func)
        first, _, rest = dotted.partition(".")
        name = dotted.rpartition(".")[2] or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
        if first in self._imports:
            full = f"{self._imports[first]}.{rest}" if rest else self._imports[first]
            return table.function(full), call.args[0] if call.args else None, name
        if isinstance(call.func, ast.Attribute):
            return table.tensor_method(name) or table.array_method(name), call.func.value, name
        return None, None, name


class _Call:
    """One call, and what it passes."""

    def __init__(self, file: Hands, call: ast.Call, scope: ast.AST) -> None:
        self._file = file
        self._call = call
        self._scope = scope
        self._statement = next((one for one in file.around(call) if isinstance(one, ast.stmt)), None)

    def lets_go(self, node: ast.expr, seen: frozenset[str]) -> Answer:
        """Whether nobody holds what an expression stands for, or looks at it after the call; `seen` are the names that
        are asked about already."""
        if isinstance(node, (*_ARITHMETIC, ast.Constant)):
            return True
        if isinstance(node, ast.Name):
            return True if node.id in seen else self._name(node, seen | {node.id})
        if self._is_put_back(node):
            return True
        if isinstance(node, ast.IfExp):
            return _both(self.lets_go(node.body, seen), self.lets_go(node.orelse, seen))
        if isinstance(node, ast.Subscript):
            # A part of what a name holds, or of what a call has returned.
            inner = node.value
            return self.lets_go(inner, seen) if isinstance(inner, ast.Name | ast.Call | ast.Subscript) else False
        if isinstance(node, ast.Attribute):
            op = table.tensor_property(node.attr)
            return self.lets_go(node.value, seen) if op is not None and op.shares != "fresh" else False
        return self._made(node, seen) if isinstance(node, ast.Call) else False

    def _made(self, node: ast.Call, seen: frozenset[str]) -> Answer:
        """Whether what a call returns is nobody else's."""
        op, source, name = self._file.operation(node)
        if op is None or op.result in ("self", "unknown"):
            if op is None and (not name or not _HANDS_OUT.search(name)):
                return True
            return self.lets_go(source, seen) if op is not None and source is not None else False
        if op.shares == "fresh":
            return True
        return self.lets_go(source, seen) if source is not None and op.of == 0 else False

    def _is_put_back(self, node: ast.expr) -> bool:
        """`sample["mask"] = flip(sample["mask"])`: the place holds what has become of it."""
        statement = self._statement
        if not isinstance(statement, ast.Assign) or statement.value is not self._call:
            return False
        targets = [one for target in statement.targets for one in _parts(target)]
        return any(ast.unparse(one) == ast.unparse(node) for one in targets)

    def _name(self, node: ast.Name, seen: frozenset[str]) -> Answer:
        names = self._file.names(self._scope, node.id)
        binds = [one for one in names if not isinstance(one.ctx, ast.Load)]
        handed = node.id in _parameters(self._scope)
        if not isinstance(self._scope, _FUNCTIONS) or not (binds or handed):
            # Who imports a module may look at what its names hold.
            return False
        if self._file.is_seen_inside(self._scope, node.id):
            return False
        rebound = self._is_rebound(node.id)
        looped = next((one for one in self._file.around(self._call) if isinstance(one, _LOOPS)), None)
        if looped is not None and not rebound:
            inside = [one for one in names if looped in self._file.around(one)]
            if isinstance(inside[0].ctx, ast.Load):
                return False
        for one in names:
            if isinstance(one.ctx, ast.Load) and self._call not in self._file.around(one):
                after = _begin(one) > _end(self._call)
                if not self._is_another(one, binds, rebound) if after else self._keeps(one):
                    return False
        answer: Answer = node.id if handed else True
        for one in binds:
            bound = self._bound(one, seen)
            answer = _both(answer, bound)
        return answer

    def _is_rebound(self, name: str) -> bool:
        """Whether the statement of the call binds a name anew."""
        targets = self._statement.targets if isinstance(self._statement, ast.Assign) else []
        return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in _parts(target))

    def _is_another(self, load: ast.Name, binds: Sequence[ast.Name], rebound: bool) -> bool:
        """Whether a name that is looked at behind the call surely holds something else by then."""
        if rebound:
            return True
        around = list(self._file.around(load))
        for one in binds:
            statement = next((up for up in self._file.around(one) if isinstance(up, ast.stmt)), None)
            between = _end(self._call) < _begin(one) < _begin(load)
            if between and statement is not None and statement not in around:
                block = self._file.parent(statement)
                if block in around or block is self._scope:
                    return True
        return False

    def _bound(self, target: ast.Name, seen: frozenset[str]) -> Answer:
        """Whether what a name is bound to is nobody else's."""
        node: ast.AST = target
        parent = self._file.parent(node)
        while isinstance(parent, ast.Tuple | ast.List | ast.Starred):
            node, parent = parent, self._file.parent(parent)
        if isinstance(parent, ast.AugAssign):
            return True
        if not isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) or parent.value is None:
            return isinstance(parent, ast.AnnAssign)
        value = parent.value
        if node is target:
            return self.lets_go(value, seen)
        if isinstance(value, ast.Tuple) and isinstance(node, ast.Tuple) and target in node.elts:
            index = node.elts.index(target)
            plain = not any(isinstance(one, ast.Starred) for one in (*value.elts, *node.elts))
            return self.lets_go(value.elts[index], seen) if plain and index < len(value.elts) else False
        return self.lets_go(value, seen) if isinstance(value, ast.Call) else False

    def _keeps(self, load: ast.Name) -> bool:
        """Whether something may be left of what a name holds where it is looked at before the call."""
        node: ast.AST = load
        while True:
            parent = self._file.parent(node)
            if isinstance(parent, ast.keyword):
                parent = self._file.parent(parent)
            if isinstance(parent, ast.Attribute):
                above = self._file.parent(parent)
                if isinstance(above, ast.Call) and above.func is parent:
                    op, _, _ = self._file.operation(above)
                    if op is None or op.shares == "fresh":
                        return False
                    node = above
                    continue
                op = table.tensor_property(parent.attr)
                if op is None or op.shares == "fresh":
                    return False
                node = parent
            elif isinstance(parent, ast.Call):
                op, _, name = self._file.operation(parent)
                if op is None or op.shares == "fresh":
                    return bool(_KEEPS.search(name))
                node = parent
            elif isinstance(parent, ast.Subscript):
                if parent.slice is node or not isinstance(parent.ctx, ast.Load):
                    return False
                node = parent
            elif isinstance(parent, ast.Assign):
                return not all(isinstance(one, ast.Name) and one.id == load.id for one in parent.targets)
            else:
                return not isinstance(parent, _LOOKS)


def _both(one: Answer, other: Answer) -> Answer:
    """Whether both are let go: of two that a parameter decides, if it is the same."""
    if one is True or other is True:
        return other if one is True else one
    return one if one == other else False


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _parts(one)
    else:
        yield target


def _parameters(scope: ast.AST) -> frozenset[str]:
    """The parameters of a function that are passed one by one, but for the object of a method."""
    if not isinstance(scope, _FUNCTIONS):
        return frozenset()
    return frozenset(one.arg for one in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs))


def _dotted(node: ast.expr) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _begin(node: ast.expr) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> Place:
    return node.end_lineno or 0, node.end_col_offset or 0
