"""Which files a run checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchcopylint.project.patterns import PatternStack, read_gitignore
from torchcopylint.project.read import reason_of
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.settings import Settings

SUFFIXES = (".py", ".pyi", ".ipynb")
ASIDE = "._"
"""How the files begin in which macOS keeps, beside a file of that name, what other file systems have no place for."""


class Found(NamedTuple):
    """A file to check: its absolute path and the settings that hold for it."""

    path: str
    settings: Settings


class Unlisted(NamedTuple):
    """A directory that cannot be listed, and why."""

    path: str
    settings: Settings
    reason: str


class Discovery(NamedTuple):
    """What the paths of a run lead to. `missing` are those that do not exist, as they were given."""

    files: tuple[Found, ...]
    unlisted: tuple[Unlisted, ...]
    missing: tuple[str, ...]


def discover(paths: Iterable[str], resolver: Resolver) -> Discovery:
    """Follow the paths: files of any name are taken, directories searched for Python files and notebooks.

    What `.gitignore` files and `exclude` patterns match is left out. A path that was named itself is taken all the
    same, unless `force-exclude` is set. Each file comes once, however many paths lead to it, sorted by path. Raises
    `ConfigError` for a wrong configuration file on the way.
    """
    files: dict[str, Found] = {}
    unlisted: dict[str, Unlisted] = {}
    missing = []
    for given in paths:
        path = os.path.abspath(os.path.join(resolver.cwd, given)) if given and "\0" not in given else ""
        if not path or not os.path.lexists(path):
            missing.append(given)
        elif os.path.isdir(path):
            for item in _search(path, resolver):
                if isinstance(item, Found):
                    files.setdefault(item.path, item)
                else:
                    unlisted.setdefault(item.path, item)
        else:
            settings = resolver.settings_for(os.path.dirname(path))
            if not (settings.force_exclude and settings.exclude.match(path)):
                files.setdefault(path, Found(path, settings))
    return Discovery(
        tuple(files[path] for path in sorted(files, key=_parts)),
        tuple(unlisted.values()),
        tuple(dict.fromkeys(missing)),
    )


def _parts(path: str) -> list[str]:
    return path.split(os.sep)


def _search(top: str, resolver: Resolver) -> Iterator[Found | Unlisted]:
    """Search a directory that was named, without following links to directories inside it."""
    settings = resolver.settings_for(top, top)
    if settings.force_exclude and settings.exclude.match(top, is_directory=True):
        return
    gitignore = _gitignore_above(top) if settings.respect_gitignore else PatternStack(())
    # What matches the named directory itself does not keep anything in it out.
    todo = [(top, settings, settings.exclude.without(top), gitignore.without(top))]
    while todo:
        directory, settings, exclude, ignored = todo.pop()
        if settings.respect_gitignore:
            ignored = ignored.plus(read_gitignore(directory))
        try:
            with os.scandir(directory) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield Unlisted(directory, settings, reason_of(error))
            continue
        for entry in listed:
            is_directory = _is_directory(entry)
            if not is_directory and (not entry.name.endswith(SUFFIXES) or entry.name.startswith(ASIDE)):
                continue
            if exclude.match(entry.path, is_directory=is_directory):
                continue
            if ignored.match(entry.path, is_directory=is_directory):
                continue
            if not is_directory:
                if _may_be_read(entry):
                    yield Found(entry.path, settings)
                continue
            inner = resolver.settings_for(entry.path, top)
            todo.append((entry.path, inner, exclude if inner is settings else inner.exclude, ignored))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _may_be_read(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file, a link to one, or a broken link, which is reported.

    Pipes, sockets and devices are not source files. Links to directories are not followed: they can lead in circles.
    """
    try:
        return entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
    except OSError:
        return True


def _gitignore_above(top: str) -> PatternStack:
    """The `.gitignore` files above a directory, up to the root of its repository, if it is in one."""
    above = [top]
    while not os.path.lexists(os.path.join(above[-1], ".git")):
        parent = os.path.dirname(above[-1])
        if parent == above[-1]:
            return PatternStack(())
        above.append(parent)
    stack = PatternStack(()).plus(read_gitignore(above[-1], os.path.join(".git", "info", "exclude")))
    for directory in reversed(above[1:]):
        stack = stack.plus(read_gitignore(directory))
    return stack
