"""Where the modules of a project are: from a dotted name in one file to other files, by their directories alone."""

from __future__ import annotations

import os
import sys

_ELSEWHERE = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
"""An absolute import of such a name means no file of the project, whatever lies beside the importing one."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Directories in which packages of many projects stand side by side."""
INIT = "__init__.py"


def never(dotted: str) -> bool:
    """Whether a name is none of any project's, whatever files there are."""
    return dotted.partition(".")[0] in _ELSEWHERE


class Sources:
    """The files of one project, for one run: a directory is listed once."""

    def __init__(self, root: str) -> None:
        """`root` is the absolute project root."""
        self._root = root
        self._listings: dict[str, frozenset[str]] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._found: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """The files that a dotted name in the file `importer` leads through, the last first, each with what is left of
        the name behind it; empty if the name is not one of the project's. Leading dots count as in Python."""
        directory = os.path.dirname(importer)
        key = (directory, dotted)
        if key not in self._found:
            names = dotted.lstrip(".")
            level = len(dotted) - len(names)
            self._found[key] = self._relative(directory, level, names) if level else self._absolute(directory, names)
        return self._found[key]

    def _relative(self, directory: str, level: int, names: str) -> tuple[tuple[str, str], ...]:
        for _ in range(level - 1):
            directory = os.path.dirname(directory)
        own = ((os.path.join(directory, INIT), names),) if INIT in self._listing(directory) else ()
        return (*self._walk(directory, names), *own)

    def _absolute(self, directory: str, names: str) -> tuple[tuple[str, str], ...]:
        if never(names):
            return ()
        roots = [root for root in self._roots_of(directory) if _is_one_project(root, directory, names)]
        found = [places for root in roots if (places := self._walk(root, names))]
        if not found and "." not in names:
            # `import directory.module` binds the directory.
            inner = next((os.path.join(root, names) for root in roots if names in self._listing(root)), "")
            return ((inner, ""),) if self._listing(inner) else ()
        # The root that leads furthest; among equals, the nearest.
        return min(found, key=lambda places: len(places[0][1]), default=())

    def _walk(self, directory: str, names: str) -> tuple[tuple[str, str], ...]:
        """The modules on the way down from a directory, the last first."""
        found: list[tuple[str, str]] = []
        rest = names
        while rest:
            name, _, rest = rest.partition(".")
            listing = self._listing(directory)
            # Nothing is put together for what is not there: that is most of what is asked.
            if name in listing:
                inner = os.path.join(directory, name)
                if INIT in self._listing(inner):
                    found.append((os.path.join(inner, INIT), rest))
                    directory = inner
                    continue
            if f"{name}.py" in listing:
                found.append((os.path.join(directory, f"{name}.py"), rest))
                break
            if name not in listing:
                break
            directory = inner
        return tuple(reversed(found))

    def _roots_of(self, directory: str) -> tuple[str, ...]:
        """Where absolute imports of a file in this directory may start, the likeliest first."""
        if directory not in self._roots:
            package_root = directory
            while INIT in self._listing(package_root) and os.path.dirname(package_root) != package_root:
                package_root = os.path.dirname(package_root)
            above = [package_root]
            while above[-1] != self._root and _is_below(above[-1], self._root):
                above.append(os.path.dirname(above[-1]))
            # A script in a package imports its siblings too, and what runs in a project that is a package itself, by a
            # file that was left there, imports what stands in it.
            below = [os.path.join(self._root, "src"), self._root, directory]
            self._roots[directory] = tuple(dict.fromkeys([*above, *below]))
        return self._roots[directory]

    def _listing(self, directory: str) -> frozenset[str]:
        if directory not in self._listings:
            try:
                self._listings[directory] = frozenset(os.listdir(directory))
            except (OSError, ValueError):
                self._listings[directory] = frozenset()
        return self._listings[directory]


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip(os.sep) + os.sep)


def _is_one_project(root: str, directory: str, names: str) -> bool:
    """Whether a dotted name that starts at `root` and a file in `directory` may be of one project: an installed package
    knows nothing of those beside it. To follow all that it stands on would cost what they are large, a thousand times
    its own size."""
    if os.path.basename(root) not in _INSTALLED:
        return True
    if not _is_below(directory, root):
        return False
    return names.partition(".")[0] == os.path.relpath(directory, root).partition(os.sep)[0]
