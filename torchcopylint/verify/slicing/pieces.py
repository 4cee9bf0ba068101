"""The statements of a file at module level, each made to run alone and written down once for all scripts."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from torchcopylint.verify.slicing.prune import Pruner, foreign, imported
from torchcopylint.verify.slicing.script import Placed, begins_of, placed_in
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    Source,
    bound_among,
    bound_by,
    cloned,
    free_in,
    nodes_of,
    walked,
)

_ALWAYS_BOUND = frozenset({"np", "torch", "random", "types", "Anything", "few", "first_time"})

_HELPING = frozenset({"Anything", "renewed", "first_time"})
"""Helpers that statements name which were made before they are pruned."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of the user's, `nodes` are what became of it.

    `text` is how that is written, without a newline at the end, and `placed` says where its nodes stand there (the
    first row is 1), the outermost first; `begins` is as in `Written`. `binds` are the names that it binds at module
    level, from wherever it does; `used` those that it needs of the module and does not bind, in order. `refused`,
    `helpers` and `replaced` are the pruner's; `optional` are names that are refused and get something else where their
    import fails, which it does not here.
    """

    nodes: tuple[ast.stmt, ...]
    text: str
    placed: tuple[Placed, ...]
    begins: dict[int, int]
    binds: frozenset[str]
    used: tuple[str, ...]
    refused: dict[str, str]
    optional: frozenset[str]
    helpers: frozenset[str]
    replaced: tuple[str, ...]


class Pieces:
    """The pieces of one file. `device`, `moved`, `copied` and `apart` are for its `Pruner`, `imports` what
    imported names stand for."""

    def __init__(
        self,
        source: Source,
        device: str,
        moved: frozenset[tuple[int, int]],
        copied: frozenset[tuple[int, int]],
        *,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self.imports = imported(source.tree)
        self._lines = source.lines
        self._device = device
        self._moved = moved
        self._copied = copied
        self._known = bound_among(nodes_of(source.tree))
        self._foreign = foreign(source.tree, self.imports)
        self._loops = 0
        self._made: dict[ast.stmt, Piece | None] = {}

    def of(self, statements: Iterable[ast.stmt]) -> list[Piece]:
        """The pieces of some statements, in their order; of what does nothing there is none."""
        return [piece for piece in map(self._piece, statements) if piece is not None]

    def _piece(self, statement: ast.stmt) -> Piece | None:
        if statement not in self._made:
            self._made[statement] = self._new(statement)
        return self._made[statement]

    def _new(self, statement: ast.stmt) -> Piece | None:
        pruner = Pruner(
            self.imports,
            self._device,
            self._moved,
            self._known,
            self._foreign,
            self._loops,
            self._copied,
            apart=self._apart,
        )
        module: ast.Module = pruner.visit(ast.Module([cloned(statement)], []))
        self._loops = pruner.loops
        module.body = [node for node in module.body if not isinstance(node, ast.Pass)]
        if not module.body and not (pruner.unknown or pruner.helpers or pruner.replaced):
            return None
        text = ast.unparse(module)
        placed = tuple(placed_in(module, text, self._lines))
        nodes = walked(module)
        annotations = _annotation_names(nodes)
        names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in annotations]
        optional = frozenset(pruner.unknown) if isinstance(statement, ast.Try) else frozenset[str]()
        needed = free_in(module) - (bound_among(nodes) | _received(nodes)) | optional
        return Piece(
            nodes=tuple(module.body),
            text=text,
            placed=placed,
            begins=begins_of(placed),
            binds=frozenset[str]().union(*(bound_by(node) for node in module.body), _of_module(nodes)) - optional,
            used=tuple(dict.fromkeys(name.id for name in names if name.id in needed)),
            refused=pruner.unknown,
            optional=optional,
            helpers=frozenset(pruner.helpers | {name.id for name in names if name.id in _HELPING}),
            replaced=tuple(pruner.replaced),
        )


@lru_cache(maxsize=2)
def pieces_of(
    source: Source, device: str, moved: frozenset[tuple[int, int]], copied: frozenset[tuple[int, int]]
) -> Pieces:
    """The pieces of a file, the same for all of its findings."""
    return Pieces(source, device, moved, copied)


def _of_module(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that functions bind at module level."""
    return {name for node in nodes if isinstance(node, ast.Global) for name in node.names}


def _received(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that functions without a name are given, and those that patterns bind."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Lambda):
            found |= {part.arg for part in walked(node.args) if isinstance(part, ast.arg)}
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
    return found


def unknown_in(pieces: Iterable[Piece], helpers: Iterable[str]) -> Iterator[str]:
    """The names that some pieces need and nothing gives, in the order of their first use."""
    pieces = list(pieces)
    bound = _ALWAYS_BOUND.union(helpers, *(piece.binds for piece in pieces))
    for name in dict.fromkeys(name for piece in pieces for name in piece.used):
        if name not in bound and not hasattr(builtins, name):
            yield name


def _annotation_names(nodes: Iterable[ast.AST]) -> set[int]:
    """The names in annotations, which are never evaluated."""
    found: set[int] = set()
    for node in nodes:
        annotations = []
        if isinstance(node, ast.arg) and node.annotation is not None:
            annotations.append(node.annotation)
        elif isinstance(node, FunctionNode) and node.returns is not None:
            annotations.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            annotations.append(node.annotation)
        for annotation in annotations:
            found |= {id(inner) for inner in walked(annotation)}
    return found
