"""Which files cannot have a finding: told from their words and, if need be, their syntax, without LibCST.

The words are those by which the engine knows things (`flow/signs.py`), so the screen follows it. What is spared has
been parsed by Python, since a file that is no Python has a finding; what the running Python refuses is not spared, as
LibCST may know newer syntax. So findings depend neither on the screen nor on the Python that runs it.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator

from torchcopylint.flow import signs

_WORD = re.compile(r"[^\W\d]\w*")
_TORCH = re.compile(r"\btorch\b")
_DECLARES = (
    ast.Module,
    ast.Import,
    ast.ImportFrom,
    ast.alias,
    ast.Expr,
    ast.Constant,
    ast.Assign,
    ast.Name,
    ast.expr_context,
    ast.List,
    ast.Tuple,
    ast.Pass,
)
"""What a file consists of that does nothing with values: every fact of the engine is about an operation, and these make
none (`__init__.py` files that import names and list them)."""

_BY_TEXT = frozenset({"getattr", "setattr", "delattr", "hasattr", "attrgetter", "methodcaller"})


Leads = Callable[[str], bool]
"""Whether the first part of the name of a module may lead to a file that is looked into."""


def spares(text: str, leads: Leads = lambda name: False) -> bool:
    """Whether a text surely has no finding, other than those about suppressions. Linear; never raises.

    What is imported from other files may be anything, so a file that does something and imports where a name `leads` is
    not spared.
    """
    lowered = text.lower()
    if "torchcopylint" in lowered:
        # It may ask a question.
        return False
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    packages = signs.signs().packages
    if ("torch" in packages and _TORCH.search(plain)) or not packages.isdisjoint(_WORD.findall(plain)):
        return _has_no_code(plain) and _declares_only(_parsed(text), leads)
    tree = _parsed(text)
    return tree is not None and not signs.shows(*_names(tree)) and not _imports(tree, leads)


def _has_no_code(text: str) -> bool:
    """A cheap sign that a file may be one that only declares."""
    return "def " not in text and "class " not in text and "lambda" not in text


def _declares_only(tree: ast.Module | None, leads: Leads) -> bool:
    if tree is None or not all(isinstance(node, _DECLARES) for node in ast.walk(tree)):
        return False
    return not any(isinstance(node, ast.Load) for node in ast.walk(tree)) or not _imports(tree, leads)


def _imports(tree: ast.Module, leads: Leads) -> bool:
    """Whether something is imported from where a name leads."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return True
            names.add((node.module or "").partition(".")[0])
    return any(leads(name) for name in sorted(names))


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Every name in a tree, and every one of an attribute or method.

    Where attributes are asked for by a text (`getattr(x, "detach")`), every text that is a name counts as one.
    """
    names: set[str] = set()
    attributes: set[str] = set()
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            attributes.add(node.name)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and node.value.isidentifier():
                texts.add(node.value)
        else:
            names.update(_fields(node))
    if not names.isdisjoint(_BY_TEXT) or not attributes.isdisjoint(_BY_TEXT):
        attributes |= texts
    return names, attributes


def _fields(node: ast.AST) -> Iterator[str]:
    """The names that stand in a node itself: of arguments, imports, classes, patterns ..."""
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield from value.split(".")
        elif isinstance(value, list) and value and isinstance(value[0], str):
            yield from value
