"""Which statements of a file are run for a finding: everything, what is called, or the part that the steps need."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from torchcopylint.verify.slicing.narrow import NOTHING, Narrower, Without, narrowed
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    Scope,
    bound_by,
    changed_by,
    free_in,
    is_autograd_function,
    local_to,
    walked,
)

_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_LEARNT = "what can be run"


@dataclass(frozen=True, slots=True)
class Plan:
    """One way of running: the statements that are kept, and the scopes that the driver calls, `()` for none.

    `made` are local names that have to be passed to what is called, by its number in `targets`. `bare`: objects of the
    file's classes are not made by their own `__init__`; `plain`: nor are those that they hold; `flat`: modules that
    stand in have matrices alone. `bound` are names at module level that have to be made, `kinds` pairs of a name and
    the kind that it has to be of. `once`: what keeps the best of many rounds does so in one.
    """

    label: str
    kept: tuple[ast.stmt, ...]
    targets: tuple[tuple[Scope, ...], ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    bare: bool = False
    bound: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    cut: bool = False
    plain: bool = False
    kinds: tuple[tuple[str, str], ...] = ()
    flat: bool = False
    once: bool = False


class Plans:
    """The ways of running one finding.

    `scopes` are the functions and classes around each of its steps, the outermost first, `rows` their rows,
    `imports` what the imported names stand for. `graphs`: it is about graphs, so what switches one on or off is kept.
    """

    def __init__(
        self,
        tree: ast.Module,
        scopes: Sequence[tuple[Scope, ...]],
        rows: set[int],
        imports: dict[str, str],
        *,
        graphs: bool = False,
    ) -> None:
        self._graphs = graphs
        self._tree = tree
        self._scopes = scopes
        self.rows = rows
        self._imports = imports
        self._binds: dict[ast.stmt, set[str]] = {}
        self._changes: dict[ast.stmt, set[str]] = {}
        self._names: dict[ast.stmt, frozenset[str]] = {}
        self._made: list[Plan] = []
        self._others = self._all()

    def plans(self) -> Iterator[Plan]:
        """The ways of running, those that leave out least first. Each is made when it is first asked for."""
        for number in count():
            if number == len(self._made):
                plan = next(self._others, None)
                if plan is None:
                    return
                self._made.append(plan)
            yield self._made[number]

    def _all(self) -> Iterator[Plan]:
        body = self._tree.body
        targets = tuple(dict.fromkeys(chain for chain in self.targets() if chain))
        outer = {chain[0].name for chain in targets}
        if not targets or self._reached_from_module(outer):
            yield Plan("the whole file", tuple(body))
        if targets:
            yield Plan("a call", self._closure([chain[0] for chain in targets]), targets)
        if any(not chain for chain in self.targets()):
            yield Plan("what the steps depend on", self._narrow(), cut=True)
            yield from self._cut_module()
        if targets:
            yield from self._cut_functions(targets)

    def least(self, without: Without, *, bare: bool, changes: bool = False) -> Iterator[Plan]:
        """The least part, and of that without what is known not to run. `bare` as in `Plan`.

        `changes`: what only changes that of which the steps speak is kept as well.
        """
        targets = tuple(dict.fromkeys(chain for chain in self.targets() if chain))
        if targets:
            made = bare and any(isinstance(chain[0], ast.ClassDef) for chain in targets)
            made = made and not any(chain[-1].name == "__init__" for chain in targets)
            yield from self._cut(targets, _LEARNT, changes=changes, bare=made, without=without)
        else:
            yield from self._cut_module(without)

    def _module_names(self) -> set[str]:
        return set().union(*(bound_by(node) for node in self._tree.body if not isinstance(node, _IMPORTS)), set())

    def _cut_module(self, without: Without = NOTHING) -> Iterator[Plan]:
        """The module's own statements, cut down."""
        body = self._tree.body
        definitions = [node for node in body if isinstance(node, (*_SCOPES, *_IMPORTS))]
        narrower = Narrower(
            self.rows,
            self._imports,
            {name for node in definitions for name in bound_by(node)},
            without=without,
            graphs=self._graphs,
        )
        plain = [node for node in body if node not in definitions]
        wanted = self._closure(narrower.cut(plain, ()), definitions)
        kept = narrower.cut(plain, (), {name for node in wanted for name in free_in(node)})
        if kept:
            wanted = self._closure(kept, definitions)
            bound = tuple(name for name in narrower.free if name not in self._imports)
            # Imports under a `try` are no definitions, and come before those that need them. Rows of other files are
            # below zero.
            whole = sorted((*wanted, *kept), key=lambda node: node.lineno)
            yield Plan("a part", tuple(whole), bound=bound, assumed=tuple(narrower.assumed), cut=True)

    def _cut_functions(self, targets: tuple[tuple[Scope, ...], ...]) -> Iterator[Plan]:
        """The called functions, cut down."""
        yield from self._cut(targets, "a part", changes=True, bare=False)
        bare = any(isinstance(chain[0], ast.ClassDef) for chain in targets)
        yield from self._cut(targets, "the least part", changes=False, bare=bare)

    def _cut(
        self,
        targets: tuple[tuple[Scope, ...], ...],
        label: str,
        *,
        changes: bool,
        bare: bool,
        without: Without = NOTHING,
    ) -> Iterator[Plan]:
        known = self._module_names()
        cut: dict[int, FunctionNode] = {}
        made = []
        assumed: list[str] = []
        for chain in targets:
            function = chain[-1]
            own = local_to(function) if isinstance(function, _FUNCTIONS) else set()
            imports = {name: dotted for name, dotted in self._imports.items() if name not in own}
            narrower = Narrower(self.rows, imports, known - own, changes=changes, without=without, graphs=self._graphs)
            # What a function of autograd returns is counted by autograd.
            whole = is_autograd_function(chain[0])
            found = narrowed(function, narrower) if isinstance(function, _FUNCTIONS) and not whole else None
            if found is not None:
                cut[id(function)] = found
            made.append(tuple(narrower.free) if found is not None else ())
            assumed += narrower.assumed
        if cut or bare or (label == _LEARNT and any(is_autograd_function(chain[0]) for chain in targets)):
            roots = {id(chain[0]): self._with_cut(chain[0], cut, keep_init=not bare) for chain in targets}
            kept = self._replaced(roots, without)
            yield Plan(label, kept, targets, tuple(made), bare, assumed=tuple(assumed), cut=True)

    def _replaced(self, roots: dict[int, ast.stmt], without: Without) -> tuple[ast.stmt, ...]:
        """What cut scopes depend on, with them in the place of their originals."""
        originals = [node for node in self._tree.body if id(node) in roots]
        others = [node for node in self._tree.body if id(node) not in roots]
        wanted = {id(node) for node in self._closure(list(roots.values()), others, without)}
        wanted |= {id(node) for node in originals}
        return tuple(roots.get(id(node), node) for node in self._tree.body if id(node) in wanted)

    def _with_cut(self, scope: Scope, cut: dict[int, FunctionNode], *, keep_init: bool) -> ast.stmt:
        """A function or class with its cut parts, and of a class only the methods that those need."""
        if not isinstance(scope, ast.ClassDef):
            return cut.get(id(scope), scope)
        methods = {item.name: item for item in scope.body if isinstance(item, _FUNCTIONS)}
        wanted = {chain[1].name for chain in self.targets() if len(chain) > 1 and chain[0] is scope}
        wanted |= {"__init__"} & methods.keys() if keep_init else set()
        # Of a function of autograd, either is called through the other.
        wanted |= {"forward", "setup_context"} & methods.keys() if "backward" in wanted else set()
        pending = list(wanted)
        while pending:
            method = methods.get(pending.pop())
            named = _asked_of_own(cut.get(id(method), method)) & methods.keys() if method is not None else set()
            pending += named - wanted
            wanted |= named
        made = copy.copy(scope)
        made.body = [
            cut.get(id(item), item) for item in scope.body if not isinstance(item, _FUNCTIONS) or item.name in wanted
        ] or [ast.Pass(lineno=scope.lineno)]
        return made

    def with_definitions(self, kept: Sequence[ast.stmt], names: Collection[str]) -> tuple[ast.stmt, ...]:
        """What is kept, and the definitions of some classes with what those need, in the file's order."""
        roots = [node for node in self._tree.body if isinstance(node, Scope) and node.name in names]
        there = {name for node in kept for name in bound_by(node)}
        more = [node for node in self._closure(roots) if not bound_by(node) & there]
        return tuple(sorted((*kept, *more), key=lambda node: node.lineno))

    def targets(self) -> Iterator[tuple[Scope, ...]]:
        """For each step the function, or the class and method, that has to be called for it."""
        for scopes in self._scopes:
            if not scopes:
                yield ()
            elif isinstance(scopes[0], FunctionNode):
                yield scopes[:1]
            else:
                inner = next((scope for scope in scopes[1:] if isinstance(scope, FunctionNode)), None)
                yield (scopes[0], inner) if inner is not None else (scopes[0],)

    def _reached_from_module(self, wanted: set[str]) -> bool:
        """Whether statements at module level use one of these functions or classes, themselves or through others."""
        reached: set[str] = set()
        definitions = {node.name: node for node in self._tree.body if isinstance(node, Scope)}
        pending = [name for node in self._tree.body if not isinstance(node, Scope) for name in free_in(node)]
        while pending:
            name = pending.pop()
            if name in reached:
                continue
            reached.add(name)
            if name in definitions:
                pending.extend(free_in(definitions[name]))
        return bool(wanted & reached)

    def _closure(
        self, roots: Sequence[ast.stmt], among: Sequence[ast.stmt] | None = None, without: Without = NOTHING
    ) -> tuple[ast.stmt, ...]:
        """The statements at module level, or among some, that some statements depend on, in the file's order."""
        body = [
            statement
            for statement in (self._tree.body if among is None else among)
            if isinstance(statement, Scope) or not _holds(statement, without.rows)
        ]
        kept = {id(root) for root in roots}
        needed: set[str] = set()
        pending: list[ast.stmt] = list(roots)
        for statement in body:
            if statement not in self._binds:
                plain = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign)
                self._binds[statement] = bound_by(statement)
                self._changes[statement] = changed_by(statement) - self._imports.keys() if plain else set()
        while pending:
            root = pending.pop()
            if root not in self._names:
                self._names[root] = frozenset(free_in(root))
            needed |= self._names[root]
            for statement in body:
                if id(statement) in kept:
                    continue
                if self._binds[statement] & needed or self._changes[statement] & needed:
                    kept.add(id(statement))
                    pending.append(statement)
        return tuple(statement for statement in body if id(statement) in kept)

    def _narrow(self) -> tuple[ast.stmt, ...]:
        """The statements at module level that the steps stand in, and what they depend on."""
        roots = [
            statement
            for statement in self._tree.body
            if any(statement.lineno <= row <= (statement.end_lineno or row) for row in self.rows)
        ]
        return self._closure(roots)


def _asked_of_own(method: FunctionNode) -> set[str]:
    """The names of what may be a method that another one uses. An object that is called is one with a `forward`."""
    me = method.args.args[0].arg if method.args.args else ""
    found = set()
    for node in walked(method):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == me:
            found |= {"forward", "__call__"}
    return found


def _holds(statement: ast.stmt, rows: frozenset[int]) -> bool:
    """Whether one of some rows is in a statement."""
    return any(statement.lineno <= row <= (statement.end_lineno or statement.lineno) for row in rows)
