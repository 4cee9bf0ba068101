"""Where nodes stand in the text: lines and columns, for the few nodes that findings need.

LibCST's own `PositionProvider` costs about two parses; this writes code out once, which LibCST must do as well, but
takes note of the wanted nodes only, and writes out only the statements that they stand in (see `rows`). It leans on
LibCST's code generation state, so the provider is its oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import libcst
from libcst._nodes.internal import CodegenState

from torchcopylint.base.finding import Position, Span
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.source.rows import Place, places


class _Enough(Exception):
    """All wanted nodes have been met."""


class _Recorder(CodegenState):
    """Counts rows and columns while code is written out, and notes where wanted nodes start and end."""

    def __init__(self, module: libcst.Module, wanted: frozenset[int]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.wanted = wanted
        self.missing = set(wanted)
        self.row = 1
        self.column = 1
        self.starts: dict[int, Position] = {}
        self.spans: dict[int, Span] = {}

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.column += len(token)

    def add_token(self, value: str) -> None:
        newlines = value.count("\n") + value.count("\r") - value.count("\r\n")
        if newlines:
            self.row += newlines
            self.column = len(value) - max(value.rfind("\n"), value.rfind("\r"))
        else:
            self.column += len(value)

    def before_codegen(self, node: libcst.CSTNode) -> None:
        if id(node) in self.wanted:
            self.starts[id(node)] = Position(self.row, self.column)

    def after_codegen(self, node: libcst.CSTNode) -> None:
        key = id(node)
        if key in self.wanted and key not in self.spans:
            self.spans[key] = Span(self.starts[key], Position(self.row, self.column))
        if key in self.missing:
            self.missing.discard(key)
            if not self.missing:
                raise _Enough

    def pop_trailing_newline(self) -> None:
        pass

    @contextmanager
    def record_syntactic_position(
        self,
        node: libcst.CSTNode,
        *,
        start_node: libcst.CSTNode | None = None,
        end_node: libcst.CSTNode | None = None,
    ) -> Iterator[None]:
        if id(node) not in self.wanted:
            yield
            return
        # Leading comments and blank lines belong to a statement's node but not to where it stands.
        edges = {id(edge) for edge in (start_node, end_node) if edge is not None}
        added = edges - self.wanted
        self.wanted |= added
        start = Position(self.row, self.column)
        yield
        if start_node is not None and id(start_node) in self.starts:
            start = self.starts[id(start_node)]
        end = Position(self.row, self.column)
        if end_node is not None and id(end_node) in self.spans:
            end = self.spans[id(end_node)].end
        self.wanted -= added
        self.spans[id(node)] = Span(start, end)


def locate(module: libcst.Module, nodes: Iterable[libcst.CSTNode]) -> Mapping[int, Span]:
    """The spans of some nodes of a module, by `id()` of the node, as `PositionProvider` would give them.

    Rows and columns are 1-based and count code points; ends are exclusive.
    """
    return _written_out(module, Place(module, 1, ()), frozenset(id(node) for node in nodes))


def locate_few(
    text: str, module: libcst.Module, nodes: Iterable[tuple[libcst.CSTNode, libcst.CSTNode]]
) -> Mapping[int, Span]:
    """The same for a few nodes of the module that `text` was parsed to, each with the statement that it stands in (of a
    compound one, an expression in its head). Only these statements are written out, where that suffices."""
    known = places(text, module)
    found: dict[int, Span] = {}
    wanted: dict[Place, set[int]] = {}
    rest = []
    for node, statement in nodes:
        place = known.get(id(statement))
        if place is not None:
            wanted.setdefault(place, set()).add(id(node))
        rest.append(node)
    for place, some in wanted.items():
        found.update(_written_out(module, place, frozenset(some)))
    rest = [node for node in rest if id(node) not in found]
    return {**found, **locate(module, rest)} if rest else found


def _written_out(module: libcst.Module, place: Place, wanted: frozenset[int]) -> Mapping[int, Span]:
    recorder = _Recorder(module, wanted)
    recorder.row = place.row
    recorder.indent_tokens = list(place.indents)
    options = {"is_elif": True} if place.is_elif else {}
    with deep_recursion(), suppress(_Enough):
        place.node._codegen(recorder, **options)
    return recorder.spans
