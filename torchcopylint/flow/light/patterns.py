"""Patterns of `match` of a light tree, from Python's."""

from __future__ import annotations

import ast
from types import SimpleNamespace as Node

from torchcopylint.flow.light import shapes as s


def pattern(node: ast.pattern) -> Node:
    """The node of a pattern of `match`; those that bind nothing are all one."""
    if isinstance(node, ast.MatchAs):
        inner = pattern(node.pattern) if node.pattern is not None else None
        return s.MatchAs(pattern=inner, name=_optional_name(node.name))
    if isinstance(node, ast.MatchOr):
        return s.MatchOr(patterns=[s.MatchOrElement(pattern=pattern(one)) for one in node.patterns])
    if isinstance(node, ast.MatchSequence):
        return s.MatchList(patterns=[_item(one) for one in node.patterns])
    if isinstance(node, ast.MatchMapping):
        elements = [s.MatchMappingElement(pattern=pattern(one)) for one in node.patterns]
        return s.MatchMapping(elements=elements, rest=_optional_name(node.rest))
    if isinstance(node, ast.MatchClass):
        return s.MatchClass(
            patterns=[s.MatchSequenceElement(value=pattern(one)) for one in node.patterns],
            kwds=[s.MatchKeywordElement(pattern=pattern(one)) for one in node.kwd_patterns],
        )
    return s.MatchValue()


def _item(node: ast.pattern) -> Node:
    if isinstance(node, ast.MatchStar):
        return s.MatchStar(name=_optional_name(node.name))
    return s.MatchSequenceElement(value=pattern(node))


def _optional_name(name: str | None) -> Node | None:
    return s.Name(value=name) if name is not None else None
