"""Path patterns, those of `.gitignore`: for `exclude`, `per-file-ignores` and the `.gitignore` files themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DEFAULT_EXCLUDES = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
_SPECIAL = frozenset("*?[]!/\\#")


class BadPattern(ValueError):
    """A pattern that means nothing; the message names it."""


class Patterns:
    """An ordered list of patterns, relative to the directory `base`. The last pattern that matches decides."""

    def __init__(self, base: str, lines: Sequence[str]) -> None:
        """Raises `BadPattern`."""
        self.base = base
        self.lines = tuple(lines)
        # Names without wildcards, such as the default excludes, need no regular expression.
        plain = all(line == line.strip() and line and not _SPECIAL.intersection(line) for line in self.lines)
        self._names = frozenset(self.lines) if plain else None
        self._spec: GitIgnoreSpec | None = None if plain else _compile(self.lines)

    def decide(self, path: str, *, is_directory: bool = False) -> bool | None:
        """Whether the patterns match an absolute path or a directory above it; `None` if none says anything.

        `False` comes from a pattern that starts with `!`.
        """
        relative = relative_posix(path, self.base)
        if self._spec is None:
            return True if self._names and not self._names.isdisjoint(relative.split("/")) else None
        return self._spec.check_file(relative + "/" if is_directory else relative).include

    def without(self, path: str) -> Patterns:
        """The patterns that do not match this directory: what still counts inside it when it was asked for by name."""
        return Patterns(
            self.base, [line for line in self.lines if not Patterns(self.base, [line]).decide(path, is_directory=True)]
        )


class PatternStack:
    """Several lists of patterns; a later list wins over an earlier one."""

    def __init__(self, lists: Sequence[Patterns]) -> None:
        self.lists = tuple(lists)

    def match(self, path: str, *, is_directory: bool = False) -> bool:
        """Whether an absolute path, or a directory above it, is matched."""
        for patterns in reversed(self.lists):
            decision = patterns.decide(path, is_directory=is_directory)
            if decision is not None:
                return decision
        return False

    def without(self, path: str) -> PatternStack:
        """The stack without the patterns that match this directory."""
        return PatternStack([patterns.without(path) for patterns in self.lists])

    def plus(self, patterns: Patterns | None) -> PatternStack:
        """The stack with one more list on top."""
        return PatternStack((*self.lists, patterns)) if patterns else self


def relative_posix(path: str, base: str) -> str:
    """An absolute path relative to a directory above it, with forward slashes; without its root if it is elsewhere."""
    head = base if base.endswith(os.sep) else base + os.sep
    if path.startswith(head):
        path = path[len(head) :]
    elif path == base:
        path = ""
    else:
        path = os.path.splitdrive(path)[1].lstrip(os.sep)
    return path if os.sep == "/" else path.replace(os.sep, "/")


def read_gitignore(directory: str, name: str = ".gitignore", base: str = "") -> Patterns | None:
    """The patterns of a `.gitignore` file, or `None` if there is none that can be read. A line that is no pattern is
    left out, as git does."""
    try:
        text = (Path(directory) / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    base = base or directory
    try:
        return Patterns(base, text.splitlines())
    except BadPattern:
        return Patterns(base, [line for line in text.splitlines() if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        _compile([line])
    except BadPattern:
        return False
    return True


def _compile(lines: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # not needed for a run over named files without patterns

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise BadPattern(str(error)) from None
