"""Takes what a file imports from its project into one tree with it: that is then run, and not stood in for.

Of another file only the statements come along that give what is asked for, and what those need in turn; of a class, the
methods whose names are mentioned somewhere. They stand before those of the file itself, under names that nothing else
has, and their rows are below zero.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from torchcopylint.base.finding import Finding, Position, Span
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.verify.slicing.prune import allowed
from torchcopylint.verify.slicing.renaming import Meaning, renamed
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    NotRunnable,
    Source,
    bound_by,
    changed_by,
    cloned,
    names_in,
    nodes_of,
    parse,
    scopes_at,
    walked,
)

_MOST_FILES = 40
_MOST_ROWS = 6000
"""So much of other files is taken in at most; the rest is stood in for."""
_IMPORTS = (ast.Import, ast.ImportFrom)
_ELSEWHERE = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
"""Modules that are none of any project's."""
_CALLED_ELSEWHERE = frozenset({"forward", "backward", "setup_context", "step", "reset", "train", "eval", "state_dict"})
"""Methods that are called without being named: by `torch`, above all."""


class Project(Hashable, Protocol):
    """The files around one file. All of them are called as in findings."""

    def places(self, importer: str, dotted: str) -> Sequence[tuple[str, str]]:
        """The files that a dotted name in a file leads through, the last first, each with what is left of the name."""

    def text(self, filename: str) -> str | None:
        """The Python of a file, or `None` if there is none to be had."""


@dataclass(frozen=True, slots=True)
class Linked:
    """A file with what it needs of others. `above` has what is added to a row of such a file to get that of the tree.

    `rows` is how many rows come from there, `read` are the texts of the other files that were looked at.
    """

    source: Source
    above: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    read: tuple[tuple[str, str], ...] = ()

    def finding(self, finding: Finding) -> Finding | None:
        """A finding with the rows that its steps have in the tree; `None` if one of them is not in it."""
        steps = []
        for step in finding.steps:
            if step.filename == finding.filename:
                steps.append(step)
                continue
            above = self.above.get(step.filename)
            if above is None:
                return None
            start, end = step.span.start, step.span.end
            span = Span(Position(start.row + above, start.column), Position(end.row + above, end.column))
            steps.append(replace(step, span=span, filename=finding.filename))
        return replace(finding, steps=tuple(steps))

    def place(self, row: int) -> tuple[str, int]:
        """The file of a row of the tree, empty for the file itself, and the row in it."""
        if row >= 0:
            return "", row
        filename, above = max(
            ((name, above) for name, above in self.above.items() if above < row), key=lambda pair: pair[1]
        )
        return filename, row - above


def linked(text: str, finding: Finding, project: Project) -> Linked:
    """The file of a finding, with what it needs of its project, and what the steps of the finding stand in.

    The findings of one file share what comes of it. Raises `NotRunnable`.
    """
    others = tuple((step.filename, step.span.start.row) for step in finding.steps if step.filename != finding.filename)
    return _linked(text, finding.filename, project, others)


@lru_cache(maxsize=4)
def _linked(text: str, filename: str, project: Project, steps: tuple[tuple[str, int], ...]) -> Linked:
    with deep_recursion():
        return _Linker(text, filename, project).linked(steps)


@dataclass(slots=True)
class _File:
    """One file: what its module level binds, with the statements that do, and its imports by the names that they bind.

    `kept` are the statements that are taken in, `needs` the files that those ask for something.
    """

    filename: str
    source: Source
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, ast.Import | ast.ImportFrom, ast.alias]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    kept: dict[int, ast.stmt] = field(default_factory=dict)
    needs: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in self.source.tree.body:
            if isinstance(statement, _IMPORTS) or _is_guarded(statement):
                continue
            for name in _bound_here(statement):
                self.bound.setdefault(name, []).append(statement)
        words: set[str] = set()
        for node in nodes_of(self.source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.imports.setdefault(name, (alias.name if alias.asname else name, node, alias))
            elif isinstance(node, ast.ImportFrom):
                module = f"{'.' * node.level}{node.module or ''}"
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(module)
                    else:
                        joined = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
                        self.imports.setdefault(alias.asname or alias.name, (joined, node, alias))
            elif isinstance(node, ast.Name):
                words.add(node.id)
            elif isinstance(node, ast.arg):
                words.add(node.arg)
        self.words = frozenset(words)

    def leading(self) -> frozenset[str] | None:
        """The names that may lead to other files of a project; `None` if all may."""
        if self.stars:
            return None
        others = {name for name, (dotted, *_) in self.imports.items() if dotted.partition(".")[0] not in _ELSEWHERE}
        return frozenset(others - self.bound.keys())


class _Linker:
    def __init__(self, text: str, filename: str, project: Project) -> None:
        self._project = project
        self._own = _File(filename, parse(text))
        self._files: dict[str, _File | None] = {filename: self._own}
        self._names: dict[tuple[str, str], str | None] = {}
        self._taken: dict[str, tuple[str, str]] = {}
        self._rows = 0
        self._mentioned: set[str] = set()
        self._waiting: dict[str, list[tuple[_File, ast.ClassDef, FunctionNode]]] = {}
        self._asked = ""

    def linked(self, steps: tuple[tuple[str, int], ...]) -> Linked:
        own = self._own
        leading, body = own.leading(), []
        for statement in own.source.tree.body:
            same = leading is not None and leading.isdisjoint(_all_names(statement))
            body.append(self._as_it_is(statement) if same else self._renamed(own, statement))
        for filename, row in steps:
            self._take_row(filename, row)
        groups = [(file, self._statements(file)) for file in self._ordered()]
        groups = [(file, statements) for file, statements in groups if statements]
        read = tuple((name, self._project.text(name) or "") for name in sorted(self._files) if name != own.filename)
        if not groups:
            return Linked(own.source, read=read)
        used = {name for statement in body for name in names_in(statement)}
        body = [part for part in (self._without_linked(statement, used) for statement in body) if part is not None]
        lines = [line for file, _ in groups for line in file.source.lines]
        rows, above, first = len(lines), {}, 0
        found: list[ast.stmt] = []
        for file, statements in groups:
            above[file.filename] = first - rows - 1
            for statement in statements:
                found.append(ast.increment_lineno(statement, above[file.filename]))
            first += len(file.source.lines)
        # Rows below zero count from the end, as indices do; the last one of all is nobody's.
        return Linked(Source((*own.source.lines, *lines, ""), ast.Module([*found, *body], [])), above, self._rows, read)

    # -- what a name stands for

    def _file(self, filename: str) -> _File | None:
        if filename not in self._files:
            self._files[filename] = None
            text = self._project.text(filename) if len(self._files) <= _MOST_FILES else None
            with contextlib.suppress(NotRunnable):
                self._files[filename] = _File(filename, parse(text)) if text is not None else None
        return self._files[filename]

    def _name(self, asking: _File, filename: str, name: str, wish: str) -> str | None:
        """The name that something of a file has in the tree, after it was taken in; `None` if it cannot be.

        `wish` is what the file that asks calls it.
        """
        if filename == self._own.filename:
            return name if name in self._own.bound else None
        key = (filename, name)
        if key not in self._names:
            self._names[key] = None
            file = self._file(filename)
            if file is not None:
                self._names[key] = self._defined(file, name, wish) or self._through(file, name, wish)
        if self._names[key] is not None:
            asking.needs[filename] = None
        return self._names[key]

    def _defined(self, file: _File, name: str, wish: str) -> str | None:
        """The same for what a file defines itself."""
        rows = sum(map(_rows_at_once, file.bound.get(name, ())))
        if name not in file.bound or self._rows + rows > _MOST_ROWS:
            return None
        self._rows += rows
        key = (file.filename, name)
        # What needs it in turn may ask before it is taken in.
        final = self._names[key] = self._free(key, name, wish, file)
        for statement in file.bound[name]:
            self._take(file, statement)
        self._take_changes(file, name)
        return final

    def _through(self, file: _File, name: str, wish: str) -> str | None:
        """The name of what a file has from elsewhere itself."""
        if name in file.imports:
            place = self._place(file, file.imports[name][0])
            if place is not None and place[1] and "." not in place[1]:
                return self._name(file, *place, wish)
            return self._import(file, name) if place is None else None
        for module in file.stars:
            place = self._place(file, module)
            other = self._file(place[0]) if place is not None and not place[1] else None
            if other is not None and (name in other.bound or name in other.imports):
                return self._name(file, other.filename, name, wish)
        return None

    def _place(self, file: _File, dotted: str) -> tuple[str, str] | None:
        """The file of the project that a dotted name leads to, and what is left of the name."""
        return next(iter(self._project.places(file.filename, dotted)), None)

    def _import(self, file: _File, name: str) -> str | None:
        """The name under which a file's import of something outside of the project stands in the tree."""
        dotted, node, alias = file.imports[name]
        known = self._own.imports.get(name)
        final = name if known is not None and known[0] == dotted else self._free(("", dotted), name, name, file)
        plain = isinstance(node, ast.Import) and not alias.asname
        if plain and "." in alias.name and final != name:
            return None
        made = copy.copy(node)
        asname = None if (plain and final == name) or final == alias.name else final
        made.names = [ast.copy_location(ast.alias(alias.name, asname), alias)]
        file.kept[id(made)] = made
        return final

    def _free(self, key: tuple[str, str], called: str, wish: str, file: _File) -> str:
        """A name that nothing else has, for what a file calls by one: the one that is wished for, if it can be."""
        name, number = wish, 1
        while not self._is_free(name, key, called, file):
            number += 1
            name = f"{called}_{_stem(file.filename)}{number if number > 2 else ''}"
        self._taken[name] = key
        return name

    def _is_free(self, name: str, key: tuple[str, str], called: str, file: _File) -> bool:
        own = self._own
        if name in own.imports:
            return self._place(own, own.imports[name][0]) == key or self._asked == name
        if self._taken.get(name, key) != key or name in own.bound or hasattr(builtins, name):
            return False
        # What the file itself has by this name may only be what an `import *` gives.
        return (name not in own.words or bool(own.stars)) and (name == called or name not in file.words)

    def _meaning(self, file: _File, name: str, attributes: Sequence[str]) -> Meaning | None:
        """What a name of a file's module level, with the attributes behind it, is called in the tree."""
        is_own = file is self._own
        used = 0
        if name in file.bound:
            final = None if is_own else self._name(file, file.filename, name, name)
        elif name in file.imports:
            self._asked = name if is_own else ""
            place = self._place(file, ".".join((file.imports[name][0], *attributes)))
            final = None
            if place is not None and place[1]:
                # The first of what is left is a name in that file, the others are attributes of what it stands for.
                left = place[1].split(".")
                used = len(attributes) - len(left) + 1
                final = self._name(file, place[0], left[0], left[0] if used else name) if used >= 0 else None
            elif place is None and not is_own:
                final = self._name(file, file.filename, name, name)
            self._asked = ""
        elif file.stars and not hasattr(builtins, name):
            final = self._through(file, name, name)
        else:
            final = None
        return Meaning(final, used) if final is not None and (used or final != name) else None

    # -- what is taken in

    def _take(self, file: _File, statement: ast.stmt) -> None:
        if id(statement) in file.kept:
            return
        file.kept[id(statement)] = statement
        if not isinstance(statement, ast.ClassDef):
            file.kept[id(statement)] = self._renamed(file, statement)
            return
        shell = copy.copy(statement)
        methods = [item for item in statement.body if isinstance(item, FunctionNode)]
        shell.body = [item for item in statement.body if item not in methods] or [
            ast.Pass(lineno=statement.lineno, col_offset=0, end_lineno=statement.lineno, end_col_offset=0)
        ]
        made = self._renamed(file, shell)
        assert isinstance(made, ast.ClassDef)
        file.kept[id(statement)] = made
        for method in methods:
            if method.name.startswith("__") or method.name in self._mentioned or method.name in _CALLED_ELSEWHERE:
                self._take_method(file, made, method)
            else:
                self._waiting.setdefault(method.name, []).append((file, made, method))

    def _take_method(self, file: _File, made: ast.ClassDef, method: FunctionNode) -> None:
        """Put a method into what is taken in of its class, in the order of the file."""
        self._rows += (method.end_lineno or method.lineno) - method.lineno + 1
        made.body.append(self._renamed(file, method, inside=True))
        made.body.sort(key=lambda node: node.lineno)

    def _mention(self, node: ast.AST) -> None:
        """Take in the methods that something calls by name, or may call."""
        for part in walked(node):
            name = ""
            if isinstance(part, ast.Attribute):
                name = part.attr
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                name = part.value
            if name and name not in self._mentioned:
                self._mentioned.add(name)
                for file, made, method in self._waiting.pop(name, ()):
                    self._take_method(file, made, method)

    def _take_changes(self, file: _File, name: str) -> None:
        """What changes something that is taken in, at module level."""
        for statement in file.source.tree.body:
            plain = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
            if plain and name in changed_by(statement) and not _asks_elsewhere(statement, file):
                self._take(file, statement)

    def _take_row(self, filename: str, row: int) -> None:
        """The statement of a file that a row stands in."""
        file = self._file(filename)
        inside = file.source.tree.body if file is not None else []
        for statement in inside:
            if file is not None and statement.lineno <= row <= (statement.end_lineno or statement.lineno):
                self._own.needs[filename] = None
                names = sorted(bound_by(statement))
                if names and statement in file.bound.get(names[0], ()):
                    self._name(self._own, filename, names[0], names[0])
                else:
                    self._take(file, statement)
                for scope in scopes_at(file.source.tree, row, 10**6, file.source.lines):
                    self._mention(ast.Constant(scope.name))

    def _renamed(self, file: _File, statement: ast.stmt, *, inside: bool = False) -> ast.stmt:
        """A copy of a statement in which all names are those of the tree. `inside`: it is part of a class."""
        self._mention(statement)
        made = cloned(statement)
        return renamed(made, lambda name, attributes: self._meaning(file, name, attributes), inside=inside)

    def _as_it_is(self, statement: ast.stmt) -> ast.stmt:
        """A statement of the file itself that names nothing of other files."""
        self._mention(statement)
        return statement

    def _statements(self, file: _File) -> list[ast.stmt]:
        """What is taken in of a file, its imports first."""
        return sorted(file.kept.values(), key=lambda node: (not isinstance(node, _IMPORTS), node.lineno))

    def _ordered(self) -> Iterator[_File]:
        """The other files, each after those that it needs."""
        seen = {self._own.filename}

        def visit(file: _File) -> Iterator[_File]:
            for name in file.needs:
                other = self._files.get(name)
                if name not in seen and other is not None:
                    seen.add(name)
                    yield from visit(other)
                    yield other

        yield from visit(self._own)

    def _without_linked(self, statement: ast.stmt, used: set[str]) -> ast.stmt | None:
        """A statement of the file itself without imports of what was taken in."""
        linker, own = self, self._own

        class Cutter(ast.NodeTransformer):
            def visit_Import(self, node: ast.Import) -> ast.stmt:
                return self.cut(node, "")

            def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
                return self.cut(node, f"{'.' * node.level}{node.module or ''}")

            def cut(self, node: ast.Import | ast.ImportFrom, module: str) -> ast.stmt:
                node.names = [alias for alias in node.names if not self.is_linked(alias, module)]
                return node if node.names else ast.copy_location(ast.Pass(), node)

            def is_linked(self, alias: ast.alias, module: str) -> bool:
                if alias.name == "*":
                    return linker._place(own, module) is not None
                name = alias.asname or alias.name.split(".")[0]
                if name in linker._taken:
                    return linker._taken[name][0] != ""
                places = linker._project.places(own.filename, own.imports[name][0]) if name in own.imports else ()
                return bool(places) and name not in used

        if not any(isinstance(node, _IMPORTS) for node in walked(statement)):
            return statement
        made = Cutter().visit(cloned(statement))
        return None if isinstance(made, ast.Pass) else made


def _all_names(statement: ast.stmt) -> set[str]:
    """The names that stand anywhere in a statement."""
    found: set[str] = set()
    for node in walked(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, FunctionNode | ast.ClassDef):
            found.add(node.name)
    return found


def _rows_at_once(statement: ast.stmt) -> int:
    """The rows of a statement, of a class without those of its methods."""
    inside = statement.body if isinstance(statement, ast.ClassDef) else []
    later = sum((item.end_lineno or item.lineno) - item.lineno + 1 for item in inside if isinstance(item, FunctionNode))
    return (statement.end_lineno or statement.lineno) - statement.lineno + 1 - later


def _is_guarded(statement: ast.stmt) -> bool:
    """Whether a statement only runs where its file is the program."""
    return isinstance(statement, ast.If) and "__name__" in set(names_in(statement.test))


def _bound_here(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, but for imports."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return {statement.name}
    return bound_by(statement) - _imported(statement)


def _imported(statement: ast.stmt) -> set[str]:
    inside = (node for node in walked(statement) if isinstance(node, _IMPORTS))
    return {alias.asname or alias.name.split(".")[0] for node in inside for alias in node.names}


def _asks_elsewhere(statement: ast.stmt, file: _File) -> bool:
    """Whether a statement asks something that may not be imported."""
    return any(name in file.imports and not allowed(file.imports[name][0]) for name in names_in(statement))


def _stem(filename: str) -> str:
    parts = filename.removesuffix(".py").removesuffix("/__init__").split("/")
    return "".join(letter if letter.isalnum() else "_" for letter in parts[-1])
