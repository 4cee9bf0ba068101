"""The counterfactual: the same script with one thing changed at its marks, so that an observation can be lost.

`alter` rewrites the marked statements; what it puts there calls the methods of `altered.Alterations`, which the
observer has.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from .chains import chains_in, local_names
from .instrument import OBSERVER, Numbered, Replacements, call

DISCARDED = "discarded_result"
"""The name that a discarded result gets; the predicates know it."""


class CannotAlter(Exception):
    """A marked statement is not of a form that the alteration knows; the message says which."""


def alter(numbered: Numbered, kind: str, marks: list[dict[str, Any]]) -> Replacements:
    """Rewrite the statements that the marks stand on. Raises `CannotAlter`."""
    if kind in WHOLE_RUN:
        for number in [number for mark in marks for number in numbered.numbers(mark)] if kind == "reiterable" else ():
            _reiterable(numbered.statements[number])
        return {}
    if kind not in _STATEMENTS:
        raise CannotAlter(f"there is no alteration {kind}")
    replaced: Replacements = {}
    for mark in marks:
        for number in numbered.numbers(mark):
            _STATEMENTS[kind](numbered, number, mark, replaced)
    if not replaced and not any(getattr(s, "altered", False) for s in numbered.statements):
        raise CannotAlter(f"nothing to alter for {kind}")
    return replaced


def _reiterable(statement: ast.stmt) -> None:
    """What the statement binds can be gone through again, whatever goes through what the generators gave."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        statement.altered = True  # type: ignore[union-attr]
        statement.value = call("again", [statement.value], statement.value)


def _copies(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """What the statement shares becomes a copy."""
    _wrap(numbered.statements[number], "fresh", mark)


def _detached(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """What the statement keeps becomes a copy without a graph."""
    _wrap(numbered.statements[number], "detached", mark)


def _wrap(statement: ast.stmt, method: str, mark: dict[str, Any]) -> None:
    statement.altered = True  # type: ignore[attr-defined]
    exact = _expression_at(statement, mark)
    if exact is not None and not (isinstance(statement, ast.Expr) and statement.value is exact):
        _replace(statement, exact, call(method, [exact], exact))
    elif isinstance(statement, ast.For):
        statement.iter = call("each", [ast.Constant(method), statement.iter], statement)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.AugAssign)) and statement.value is not None:
        statement.value = call(method, [statement.value], statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield) and statement.value.value:
        statement.value.value = call(method, [statement.value.value], statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value
        called.args = [a if isinstance(a, ast.Starred) else call(method, [a], a) for a in called.args]
        for keyword in called.keywords:
            keyword.value = call(method, [keyword.value], keyword.value)
    else:
        raise CannotAlter(f"a {type(statement).__name__} shares nothing")


def _expression_at(statement: ast.stmt, mark: dict[str, Any]) -> ast.expr | None:
    """The largest loaded expression that begins and ends where the mark does."""
    if mark["column"] <= 0:
        return None
    for node in ast.walk(statement):
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", ast.Load()), (ast.Store, ast.Del)):
            begins = (node.lineno, node.col_offset + 1) == (mark["row"], mark["column"])
            if begins and (node.end_lineno, (node.end_col_offset or 0) + 1) == (mark["end_row"], mark["end_column"]):
                return node
    return None


def _replace(root: ast.AST, old: ast.AST, new: ast.expr) -> None:
    for node in ast.walk(root):
        if node is new:
            continue
        for field, value in ast.iter_fields(node):
            if value is old:
                setattr(node, field, new)
                return
            if isinstance(value, list) and any(item is old for item in value):
                setattr(node, field, [new if item is old else item for item in value])
                return


def _targets(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """Every name and attribute that the statement writes through, or hands on, is bound to a copy first.

    Of a function without a name that it makes, what that is given is copied.
    """
    made = [node for node in ast.walk(numbered.statements[number]) if isinstance(node, ast.Lambda)]
    for node in made:
        names = {argument.arg for argument in node.args.args}
        for part in [p for p in ast.walk(node.body) if isinstance(p, ast.Name) and p.id in names]:
            _replace(node, part, call("fresh", [part], part))
            numbered.statements[number].altered = True  # type: ignore[attr-defined]
    if any(getattr(numbered.statements[number], "altered", False) for _ in made):
        return
    _bound_first(numbered, number, "fresh", replaced)


def _wide(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """What is written is floating point; what is whole afterwards becomes an integer again."""
    _bound_first(numbered, number, "wide", replaced)
    after = []
    for first in replaced[number][:-1]:
        later = copy.deepcopy(first)
        for node in ast.walk(later):
            if isinstance(node, ast.Constant) and node.value == "wide":
                node.value = "narrow"
        after.append(later)
    replaced[number] += after


def _bound_first(numbered: Numbered, number: int, method: str, replaced: Replacements) -> None:
    statement = numbered.statements[number]
    local = local_names(numbered, statement)
    before: list[ast.stmt] = []
    for chain in chains_in(statement):
        root = chain
        while isinstance(root, ast.Attribute):
            root = root.value  # type: ignore[assignment]
        if not isinstance(root, ast.Name) or (isinstance(chain, ast.Name) and chain.id not in local):
            continue
        target = copy.deepcopy(chain)
        target.ctx = ast.Store()
        load = copy.deepcopy(chain)
        load.ctx = ast.Load()
        value = call("bound", [ast.Constant(method), load], statement)
        assign = ast.copy_location(ast.Assign(targets=[target], value=value), statement)
        # An attribute that is computed, or is no tensor, cannot or need not be bound.
        guard = ast.If(test=call("can_bind", [copy.deepcopy(load)], statement), body=[assign], orelse=[])
        handler = ast.ExceptHandler(type=None, name=None, body=[ast.Pass()])
        tried = ast.Try(body=[guard], handlers=[handler], orelse=[], finalbody=[])
        before.append(ast.copy_location(tried, statement))
    if not before:
        raise CannotAlter("the statement names nothing that it writes")
    statement.altered = True  # type: ignore[attr-defined]
    replaced[number] = [*before, statement]


def _operands(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The tensors that the statement names are plain copies: no leaf, no graph, no view of anything."""
    _inline(numbered, number, mark, "plain", replaced)


def _apart(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The tensors that the statement names are copies; the names keep what they have."""
    _inline(numbered, number, mark, "apart", replaced)


def _contiguous(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The tensors that the statement names are contiguous."""
    _inline(numbered, number, mark, "contiguous", replaced)


def _inline(numbered: Numbered, number: int, mark: dict[str, Any], method: str, replaced: Replacements) -> None:
    statement = numbered.statements[number]
    root = _lambda_at(statement, mark) or statement
    for chain in chains_in(root):
        if isinstance(chain.ctx, ast.Load):
            for node in [n for n in ast.walk(root) if ast.dump(n) == ast.dump(chain)]:
                _replace(root, node, call(method, [node], node))  # type: ignore[list-item]
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        load = copy.deepcopy(statement.target)
        load.ctx = ast.Load()
        bind = ast.Assign(targets=[copy.deepcopy(statement.target)], value=call(method, [load], statement))
        replaced[number] = [ast.copy_location(bind, statement), statement]
    statement.altered = True  # type: ignore[attr-defined]


def _lambda_at(statement: ast.stmt, mark: dict[str, Any]) -> ast.Lambda | None:
    """The lambda that a mark stands in, in a statement of several rows or by its columns."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Lambda) and node.lineno <= mark["row"] <= (node.end_lineno or 0):
            begins = node.col_offset + 1 <= mark["column"] if node.lineno == mark["row"] else True
            if begins if mark["column"] > 0 else statement.lineno < node.lineno:
                return node
    return None


def _inputs(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """What the statement only reads is a copy; what it writes is what it was."""
    statement = numbered.statements[number]
    statement.altered = True  # type: ignore[attr-defined]
    if isinstance(statement, (ast.Assign, ast.AugAssign)) and not _has_out(statement.value):
        statement.value = call("fresh", [statement.value], statement.value)
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            node.args = [a if isinstance(a, ast.Starred) else call("apart", [a], a) for a in node.args]
            for keyword in node.keywords:
                if keyword.arg != "out":
                    keyword.value = call("apart", [keyword.value], keyword.value)
            return
    raise CannotAlter("the statement calls nothing")


def _has_out(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and any(keyword.arg == "out" for keyword in value.keywords)


def _retained(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """`backward` keeps the graph."""
    statement = numbered.statements[number]
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("backward", "grad")
        ):
            node.keywords = [k for k in node.keywords if k.arg != "retain_graph"]
            node.keywords.append(ast.keyword("retain_graph", ast.copy_location(ast.Constant(True), node)))
            statement.altered = True  # type: ignore[attr-defined]


def _marked_dirty(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The write in a function's `forward` is told to autograd first."""
    statement = numbered.statements[number]
    context = _first_parameter(numbered, statement)
    chains = [chain for chain in chains_in(statement) if isinstance(chain, ast.Name)]
    if not context or not chains:
        raise CannotAlter("no context, or nothing that is written")
    target = _written_in(statement) or chains[0]
    told = call("marked_dirty", [ast.Name(context, ast.Load()), ast.Name(target.id, ast.Load())], statement)
    replaced[number] = [ast.copy_location(ast.Expr(told), statement), statement]
    statement.altered = True  # type: ignore[attr-defined]


def _written_in(statement: ast.stmt) -> ast.Name | None:
    """The name through which a statement writes: what it augments, or calls a method of that ends in an underscore."""
    writing = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    roots: list[ast.AST] = [f.value for f in writing if f.attr.endswith("_") and not f.attr.startswith("_")]
    roots = [statement.target] if isinstance(statement, ast.AugAssign) else roots
    for root in roots:
        while not isinstance(root, ast.Name):
            if isinstance(root, ast.Subscript | ast.Attribute):
                root = root.value
            elif isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
                root = root.func.value
            else:
                break
        if isinstance(root, ast.Name):
            return root
    return None


def _first_parameter(numbered: Numbered, statement: ast.stmt) -> str:
    for candidate in reversed(numbered.statements):
        if isinstance(candidate, ast.FunctionDef) and any(node is statement for node in ast.walk(candidate)):
            return candidate.args.args[0].arg if candidate.args.args else ""
    return ""


def _skipped(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The statement does not happen."""
    statement = numbered.statements[number]
    if hasattr(statement, "body") and not isinstance(statement, ast.With):
        raise CannotAlter("a compound statement cannot be left out")
    if isinstance(statement, ast.With):
        raise CannotAlter("a with statement cannot be left out")
    statement.altered = True  # type: ignore[attr-defined]
    replaced[number] = [ast.copy_location(ast.Pass(), statement)]


def _uncalled(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """Of a call whose result is dropped, what it is called on and what it is given are computed, and nothing else."""
    statement = numbered.statements[number]
    value = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(value, ast.Call):
        return _skipped(numbered, number, mark, replaced)
    parts = [part.value if isinstance(part, ast.Starred) else part for part in value.args]
    parts += [keyword.value for keyword in value.keywords]
    if isinstance(value.func, ast.Attribute):
        parts.insert(0, value.func.value)
    statement.altered = True  # type: ignore[attr-defined]
    made = [ast.copy_location(ast.Expr(part), statement) for part in parts]
    replaced[number] = list(made) or [ast.copy_location(ast.Pass(), statement)]
    return None


_KEEPING = {"copy": "uncopied", "Variable": "uncopied", "float": "unnumbered"}
"""Functions called by a bare name that cut a graph, and what the observer has in their place."""


def _uncut(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """In the statement, what cuts a graph keeps it."""
    for node in ast.walk(numbered.statements[number]):
        # Imported by name, these are not reached by what the block puts in place.
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _KEEPING:
            kept = ast.Attribute(ast.Name(OBSERVER, ast.Load()), _KEEPING[node.func.id], ast.Load())
            node.func = ast.copy_location(kept, node)
        elif isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            node.attr = "detach()"
            _replace(numbered.statements[number], node, node.value)
    _inside(numbered, number, "uncut", replaced)


def _versioned(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """`.data` of the statement is the tensor itself, written without recording."""
    statement = numbered.statements[number]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0]
        if target.attr == "data":
            written = ast.copy_location(
                ast.Expr(call("written", [target.value, statement.value], statement)), statement
            )
            replaced[number] = [written]
            statement.altered = True  # type: ignore[attr-defined]
            return
    for node in list(ast.walk(statement)):
        if isinstance(node, ast.Attribute) and node.attr == "data":
            if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
                node.value.ctx = node.ctx
            _replace(statement, node, node.value)
    _inside(numbered, number, "unrecorded", replaced)


def _inside(numbered: Numbered, number: int, method: str, replaced: Replacements) -> None:
    statement = numbered.statements[number]
    if hasattr(statement, "body"):
        raise CannotAlter(f"a {type(statement).__name__} has a body")
    statement.altered = True  # type: ignore[attr-defined]
    item = ast.withitem(context_expr=call(method, [], statement))
    replaced[number] = [ast.copy_location(ast.With(items=[item], body=[statement]), statement)]


def _added_up(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """`x[i] += v` counts every index."""
    statement = numbered.statements[number]
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Subscript):
        raise CannotAlter("no augmented assignment to an index")
    sign = ast.Constant(-1 if isinstance(statement.op, ast.Sub) else 1)
    arguments = [statement.target.value, statement.target.slice, statement.value, sign]
    replaced[number] = [ast.copy_location(ast.Expr(call("added_up", arguments, statement)), statement)]
    statement.altered = True  # type: ignore[attr-defined]


def _assigned_back(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The discarded result is given to the name it was computed from."""
    statement = numbered.statements[number]
    value = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(value, ast.Call):
        raise CannotAlter("no discarded call")
    torch_function = isinstance(value.func, ast.Attribute) and _root(value.func) in ("torch", "F", "nn", "np")
    receiver: ast.AST | None = None
    if isinstance(value.func, ast.Attribute) and not torch_function:
        receiver = value.func.value
    elif value.args:
        receiver = value.args[0]
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        receiver = receiver.func.value
    if not isinstance(receiver, (ast.Name, ast.Attribute, ast.Subscript)):
        raise CannotAlter("no name to give the result to")
    target = copy.deepcopy(receiver)
    target.ctx = ast.Store()
    replaced[number] = [ast.copy_location(ast.Assign(targets=[target], value=value), statement)]
    statement.altered = True  # type: ignore[attr-defined]


def _named(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The discarded result is given a name of its own, and nothing else happens to it."""
    statement = numbered.statements[number]
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call | ast.BinOp):
        raise CannotAlter("nothing that is computed and discarded")
    target = ast.Name(DISCARDED, ast.Store())
    made = [ast.copy_location(ast.Assign(targets=[target], value=statement.value), statement)]
    func = statement.value.func if isinstance(statement.value, ast.Call) else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
        # What a call has given has a name as well: it may be handed back.
        given = ast.Assign([ast.Name(f"{DISCARDED}_of", ast.Store())], func.value)
        made.insert(0, ast.copy_location(given, statement))
        func.value = ast.copy_location(ast.Name(f"{DISCARDED}_of", ast.Load()), statement)
    replaced[number] = list(made)
    statement.altered = True  # type: ignore[attr-defined]


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _without_retaining(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """`retain_graph` is left out."""
    statement = numbered.statements[number]
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and any(k.arg in ("retain_graph", "create_graph") for k in node.keywords):
            node.keywords = [k for k in node.keywords if k.arg not in ("retain_graph", "create_graph")]
            statement.altered = True  # type: ignore[attr-defined]


def _mode_entered(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The mode that the statement only makes is entered: for the rest of the run, or for the block."""
    statement = numbered.statements[number]
    if isinstance(statement, ast.With):
        for item in statement.items:
            item.context_expr = ast.copy_location(ast.Call(item.context_expr, [], []), statement)
    elif isinstance(statement, ast.Expr):
        statement.value = call("entered", [statement.value], statement)
    elif any(isinstance(node, ast.keyword) and node.arg == "volatile" for node in ast.walk(statement)):
        entered = ast.copy_location(ast.Expr(call("no_grad", [], statement)), statement)
        replaced[number] = [entered, statement]
    else:
        raise CannotAlter("the statement makes no mode")
    statement.altered = True  # type: ignore[attr-defined]


def _flag_set(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """The assignment to an attribute that does nothing sets `requires_grad` of everything in it."""
    statement = numbered.statements[number]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        raise CannotAlter("no assignment to an attribute")
    flagged = call("flagged", [statement.targets[0].value, statement.value], statement)
    replaced[number] = [ast.copy_location(ast.Expr(flagged), statement)]
    statement.altered = True  # type: ignore[attr-defined]


def _registered(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """What the statement computes from a parameter is one."""
    if not any(getattr(n, "attr", getattr(n, "id", "")) == "Parameter" for n in ast.walk(numbered.statements[number])):
        raise CannotAlter("the statement makes no parameter")
    _wrap(numbered.statements[number], "parameter", mark)


def _synchronised(numbered: Numbered, number: int, mark: dict[str, Any], replaced: Replacements) -> None:
    """After the statement, the copy that it starts is waited for."""
    statement = numbered.statements[number]
    statement.altered = True  # type: ignore[attr-defined]
    waiting = ast.copy_location(ast.Expr(call("synchronise", [], statement)), statement)
    replaced[number] = [statement, waiting]


_STATEMENTS = {
    "synchronised": _synchronised,
    "copies": _copies,
    "detached": _detached,
    "targets": _targets,
    "wide": _wide,
    "operands": _operands,
    "apart": _apart,
    "inputs": _inputs,
    "contiguous": _contiguous,
    "retained": _retained,
    "marked-dirty": _marked_dirty,
    "skipped": _skipped,
    "uncalled": _uncalled,
    "uncut": _uncut,
    "versioned": _versioned,
    "added-up": _added_up,
    "assigned-back": _assigned_back,
    "named": _named,
    "unretained": _without_retaining,
    "mode-entered": _mode_entered,
    "flag-set": _flag_set,
    "registered": _registered,
}
WHOLE_RUN = frozenset({"", "saves", "retain", "reiterable", "deduplicated"})
"""Alterations that need no statement."""
