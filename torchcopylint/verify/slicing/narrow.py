"""The part of a function that the steps depend on, where the whole function cannot be run.

What a kept statement uses is kept as well, up to values that come from elsewhere: those are made, as inputs are. Loops
stay; a condition that asks for something from elsewhere is taken as met, and so recorded.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.cutting import Cutter, listed, without_jumps
from torchcopylint.verify.slicing.prune import allowed, shows_progress
from torchcopylint.verify.slicing.source import FunctionNode, bound_by, changed_by, cloned, fields_set, names_in, walked
from torchcopylint.verify.slicing.switches import gone_through, sets_mode, switched


@dataclass(frozen=True, slots=True)
class Without:
    """What runs have shown not to run, by rows of the user's file.

    `rows` are those of statements that raised, and of conditions that cannot be asked; `taken` those of conditions that
    did not lead to the steps, and `once` those that are to lead there the first time alone: who keeps the best of many
    rounds does so in some of them. `names` were not bound when they were needed, so they are made.
    """

    rows: frozenset[int] = frozenset()
    taken: frozenset[int] = frozenset()
    once: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()


NOTHING = Without()
FIELD = "field_of_self_"
"""Begins the name of what is made for a field of `self` where its own making was left out."""
RENEWED = "for_each_turn_"
"""Begins the name of what is made for a name that each turn of a loop binds where that was left out."""
_GRADIENTS = ".grad"
"""Stands among names for all gradients."""
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


class Narrower:
    """Cuts one body down.

    `rows` are those of the steps, `imports` what imported names stand for, `known` the names that the module defines.
    `changes`: statements that only change what is needed are kept as well; `graphs`: so is what switches a graph on or
    off.
    `without` is not kept. After `cut`, `free` are the names that have to be made, `assumed` what was taken for granted.
    """

    def __init__(
        self,
        rows: Collection[int],
        imports: dict[str, str],
        known: Collection[str],
        *,
        changes: bool = True,
        without: Without = NOTHING,
        graphs: bool = False,
    ) -> None:
        self._graphs = graphs
        self._without = without
        self._changes = changes
        self._rows = rows
        self._imports = imports
        self._known = known
        self._kept: set[int] = set()
        self._lacking: set[int] = set()
        self._unbound: set[str] = set()
        self.free: list[str] = []
        self.assumed: list[str] = []

    def cut(self, body: Sequence[ast.stmt], given: Collection[str], wanted: Collection[str] = ()) -> list[ast.stmt]:
        """The kept statements, as copies with the places that they had.

        `given` are names that need no making, `wanted` names that something else needs.
        """
        simple = list(_simple(body))
        if not self._changes:
            last = self._last_of_use(body)
            simple = [node for node in simple if node.lineno <= last or self._has_step(node)]
        essential = [node for node in simple if self._has_step(node) or _is_init_of_base(node) or self._sets_mode(node)]
        headers = [node for node in _compounds(body) if self._header_has_step(node)]
        needed: set[str] = set(wanted)
        for statement in essential:
            self._kept.add(id(statement))
            needed |= _uses(statement) | _changed(statement)
        around = [node for node in _compounds(body) if any(id(part) in self._kept for part in _simple([node]))]
        for compound in (*headers, *around):
            needed |= self._header_names(compound)
        given_by = {id(statement): self._gives(statement) for statement in simple}
        through = gone_through(_compounds(body))
        for statement in simple if self._graphs else ():
            # What a graph is taken from, or given to, is another thing without it.
            given_by[id(statement)] |= {part for name in switched(statement) for part in through.get(name, {name})}
        loops = [node for node in _compounds(body) if isinstance(node, ast.For | ast.While)]
        in_loops = {id(node) for loop in loops for node in _simple(loop.body)}
        changed = True
        while changed:
            changed = False
            for statement in simple:
                if id(statement) in self._kept or not given_by[id(statement)] & needed:
                    continue
                if self.hard(statement):
                    in_turn = id(statement) in in_loops and isinstance(statement, ast.Assign)
                    lacks = fields_set(statement) | (bound_by(statement) if in_turn else set())
                    self._lacking |= {id(statement)} if lacks & needed else set()
                    continue
                self._kept.add(id(statement))
                needed |= _uses(statement)
                changed = True
            for block in _compounds(body):
                if any(id(part) in self._kept for part in _simple([block])):
                    names = self._header_names(block)
                    changed = changed or not names <= needed
                    needed |= names
        headed = {id(node) for node in headers}
        kept = self._rebuild(body, headed)
        used = dict.fromkeys(name for statement in kept for name in _names(statement))
        made = (_defined(kept) - self._without.names) | set(given) | self._imports.keys() | {"Anything", "renewed"}
        # What a loop called `iter` or `input` is none of Python's, whoever gives it.
        python = vars(builtins).keys() - self._unbound
        self.free = [name for name in used if name not in made and name not in self._known and name not in python]
        return kept

    # -- what is kept

    def _gives(self, statement: ast.stmt) -> set[str]:
        """What a statement is kept for, if it is needed."""
        gives = bound_by(statement) | fields_set(statement) | _makes_gradients(statement)
        changing = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign) and self._changes
        return gives | _changed(statement) if changing or isinstance(statement, ast.Delete) else gives

    def _last_of_use(self, body: Sequence[ast.stmt]) -> int:
        """The row after which nothing can matter to the steps: the last of theirs, and of the loops around them."""
        around = [node for node in _compounds(body) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
        spans = [(node.lineno, node.end_lineno or node.lineno) for node in around]
        ends = [last for first, last in spans if any(first <= row <= last for row in self._rows)]
        return max([*self._rows, *ends])

    def _has_step(self, statement: ast.stmt) -> bool:
        end = statement.end_lineno or statement.lineno
        return any(statement.lineno <= row <= end for row in self._rows)

    def _sets_mode(self, statement: ast.stmt) -> bool:
        return self._graphs and sets_mode(statement)

    def _header_has_step(self, node: ast.stmt) -> bool:
        first = next((part.lineno for part in _inner(node)), node.lineno + 1)
        return any(node.lineno <= row < first for row in self._rows)

    def _header_names(self, node: ast.stmt) -> set[str]:
        found: set[str] = set()
        for part in _header(node):
            if not self.hard(part):
                found |= _uses(part)
        return found

    def hard(self, node: ast.AST) -> bool:
        """Whether running this would need something from elsewhere, or is known to fail."""
        if isinstance(node, ast.stmt | ast.expr) and node.lineno in self._without.rows:
            return True
        for part in walked(node):
            if isinstance(part, ast.Yield | ast.YieldFrom | ast.Await):
                return True
            if isinstance(part, ast.Name) and part.id in tables.LOST_BUILTINS and part.id not in self._known:
                return True
            if isinstance(part, ast.Name) and part.id in self._imports:
                full = self._imports[part.id]
                if not allowed(full) and full.split(".")[0] != "argparse" and not shows_progress(full):
                    return True
            if isinstance(part, ast.Attribute):
                dotted = ast.unparse(part) if isinstance(part.value, ast.Name | ast.Attribute) else ""
                root, _, rest = dotted.partition(".")
                full = f"{self._imports[root]}.{rest}" if root in self._imports else ""
                if full and not allowed(full) and not full.startswith("argparse.") and not shows_progress(full):
                    return True
        return False

    # -- putting together

    def _rebuild(self, body: Sequence[ast.stmt], headed: set[int]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            if not isinstance(statement, _COMPOUND):
                if id(statement) in self._kept:
                    found += self._whole(statement)
                elif id(statement) in self._lacking:
                    found += _given(statement)
                    names = ", ".join(f"`{name}`" for name in sorted(bound_by(statement)))
                    self.assumed += [f"each turn makes another {names}, in line {statement.lineno}"] if names else []
                continue
            found += self._compound(statement, headed)
        return found

    def _whole(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement without blocks, or a definition without what is known not to run."""
        made = cloned(statement)
        rows = self._without.rows | self._without.taken
        inside = any(statement.lineno < row <= (statement.end_lineno or statement.lineno) for row in rows)
        if not isinstance(statement, FunctionNode) or not inside:
            return [made]
        return listed(Cutter(frozenset(self._rows), rows).visit(made))

    def _compound(self, node: ast.stmt, headed: set[int]) -> list[ast.stmt]:
        """What is left of a statement with blocks."""
        inner = self._rebuild(getattr(node, "body", []), headed)
        other = self._rebuild(getattr(node, "orelse", []), headed)
        if not inner and not other and id(node) not in headed:
            return []
        blocks = ("body", "orelse", "finalbody", "handlers")
        shell = copy.copy(node)
        for name in blocks:
            if hasattr(shell, name):
                setattr(shell, name, [])
        if isinstance(node, ast.Try):
            return [*inner, *other, *self._rebuild(node.finalbody, headed)]
        hard = any(self.hard(part) for part in _header(node))
        if isinstance(node, ast.If) and (hard or node.lineno in self._without.taken):
            return self._branch(node, inner, other)
        if isinstance(node, ast.With | ast.AsyncWith) and hard:
            return inner
        if isinstance(node, ast.While) and hard:
            shell.test = ast.copy_location(ast.Constant(True), node.test)  # type: ignore[attr-defined]
            self.assumed.append(f"the loop of line {node.lineno} turns")
        if isinstance(node, ast.For) and node.iter.lineno in self._without.rows:
            self._unbound |= bound_by(ast.Assign([node.target], node.iter))
            shell.target = ast.copy_location(ast.Name("_", ast.Store()), node)  # type: ignore[attr-defined]
            shell.iter = ast.copy_location(ast.parse("range(2)", mode="eval").body, node)  # type: ignore[attr-defined]
            self.assumed.append(f"the loop of line {node.lineno} turns twice")
        elif isinstance(node, ast.For) and hard and isinstance(node.target, ast.Name):
            return [without_jumps(part) for part in inner]
        shell.body = inner or [ast.copy_location(ast.Pass(), node)]  # type: ignore[attr-defined]
        if isinstance(node, ast.If | ast.For | ast.While):
            shell.orelse = other if isinstance(node, ast.If) else []  # type: ignore[attr-defined]
        return [cloned(shell)]

    def _branch(self, node: ast.If, inner: list[ast.stmt], other: list[ast.stmt]) -> list[ast.stmt]:
        """The branch with a step in it, or else the first."""
        first = not any(self._has_step(part) for part in other) or any(self._has_step(part) for part in inner)
        taken = inner if inner and first else other or inner
        once = node.lineno in self._without.once
        which = f"the {'first' if taken is inner else 'other'} branch of line {node.lineno}"
        self.assumed.append(f"{which} is taken the first time alone" if once else f"{which} is taken")
        return [_first_time(node, taken)] if once and taken else taken


def _first_time(node: ast.stmt, body: list[ast.stmt]) -> ast.stmt:
    """Statements that are run the first time alone that somebody comes to them: where a name is not bound yet, which
    they bind."""
    name = f"come_to_line_{node.lineno}"
    bound = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(True))
    handler = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [bound, *body])
    made = ast.Try([ast.Expr(ast.Name(name, ast.Load()))], [handler], [], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def narrowed(function: FunctionNode, narrower: Narrower) -> FunctionNode | None:
    """A function with the part of its body that the steps depend on, and a parameter for each name that must be made.

    `None` if nothing would be left out.
    """
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
    names = [parameter.arg for parameter in (*parameters, *extra)]
    body = narrower.cut(function.body, names)
    if not body or (not narrower.assumed and len(list(_simple(body))) == len(list(_simple(function.body)))):
        return None
    made = copy.copy(function)
    made.body = body
    made.decorator_list = [d for d in function.decorator_list if not narrower.hard(d)]
    made.args = cloned(arguments)
    for name in narrower.free:
        made.args.kwonlyargs.append(ast.arg(name))
        made.args.kw_defaults.append(None)
    return made


def _is_init_of_base(node: ast.stmt) -> bool:
    """Whether a statement makes the part of an object that its base has: without it, a module takes no parameter."""
    call = node.value if isinstance(node, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "__init__"


def _uses(node: ast.AST) -> set[str]:
    """The names that are read in a node; of `self` the fields."""
    fields = {
        f"self.{part.attr}"
        for part in walked(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    }
    written = {
        part.target.id for part in walked(node) if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    }
    asked = {part.attr for part in walked(node) if isinstance(part, ast.Attribute)} & {"grad", "step"}
    return fields | written | (set(names_in(node)) - {"self"}) | ({_GRADIENTS} if asked else set())


def _makes_gradients(statement: ast.stmt) -> set[str]:
    """What a backward pass gives: optimizers and whoever reads `.grad` need it, whatever the loss is called."""
    inside = walked(statement) if isinstance(statement, ast.Expr) else ()
    called = {part.func.attr for part in inside if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)}
    return {_GRADIENTS} if "backward" in called else set()


def _changed(statement: ast.stmt) -> set[str]:
    """The names, of `self` the fields, whose objects a statement changes."""
    names = changed_by(statement)
    return names - {"self"} | {use for use in _uses(statement) if use.startswith("self.")} if "self" in names else names


def _given(statement: ast.stmt) -> list[ast.stmt]:
    """In the place of what binds names or sets fields of `self` and does not run, what is made for them."""
    texts = [f"{field} = {FIELD}{field.removeprefix('self.')}" for field in sorted(fields_set(statement))]
    texts += [f"{name} = renewed({RENEWED}{name})" for name in sorted(bound_by(statement))]
    made = [part for text in texts for part in ast.parse(text).body]
    for part in (node for top in made for node in walked(top)):
        ast.copy_location(part, statement)
    return made


def _names(statement: ast.stmt) -> list[str]:
    return [node.id for node in walked(statement) if isinstance(node, ast.Name)]


def _simple(body: Sequence[ast.AST]) -> list[ast.stmt]:
    """The statements without blocks in a body and in the blocks of it; definitions count as such."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, _COMPOUND):
            pending.extend(reversed(_inner(node)))
        elif isinstance(node, ast.stmt):
            found.append(node)
    return found


def _compounds(body: Sequence[ast.AST]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, _COMPOUND):
            found.append(node)
            pending.extend(_inner(node))
    return found


def _inner(node: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found += getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        found += handler.body
    return found


def _header(node: ast.stmt) -> list[ast.expr]:
    """The expressions in front of a statement's blocks."""
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    return []


def _defined(kept: Sequence[ast.stmt]) -> set[str]:
    """The names that some statements bind: by assignment, as what a loop, `with` or comprehension goes by, or as a
    parameter."""
    defined: set[str] = set()
    for node in (inner for top in kept for inner in walked(top)):
        if isinstance(node, ast.stmt) and not isinstance(node, _COMPOUND):
            defined |= bound_by(node)
        if isinstance(node, ast.For | ast.AsyncFor):
            defined |= bound_by(ast.Assign([node.target], ast.Constant(0)))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            defined |= {inner.id for inner in walked(node.optional_vars) if isinstance(inner, ast.Name)}
        elif isinstance(node, ast.comprehension | ast.NamedExpr):
            defined |= {inner.id for inner in walked(node.target) if isinstance(inner, ast.Name)}
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
    return defined
