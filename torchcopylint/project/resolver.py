"""Which settings hold for a directory, and which directory its file names are relative to."""

from __future__ import annotations

import os
from collections.abc import Callable

from torchcopylint.project.config import ConfigError, ConfigFile, has_table, read_named, read_nearest
from torchcopylint.project.patterns import BadPattern
from torchcopylint.project.select import RuleIndex, UnknownSelector
from torchcopylint.project.settings import Layer, Settings, resolve
from torchcopylint.project.sources import INIT


class Resolver:
    """Settings by directory: the nearest `pyproject.toml` with our table, or a named file, under the command line's."""

    def __init__(
        self,
        index: RuleIndex,
        *,
        cwd: str,
        command_line: Layer | None = None,
        config: str | None = None,
        isolated: bool = False,
    ) -> None:
        """`cwd` is absolute. `config` names a file that counts for every directory; with `isolated`, none counts.

        Raises `ConfigError` for a wrong `config`.
        """
        self.index = index
        self.cwd = cwd
        self._command_line = (command_line,) if command_line else ()
        self._isolated = isolated
        self._named = read_named(config, cwd, index) if config else None
        self._files: dict[str, ConfigFile | None] = {}
        self._tables: dict[str, str | None] = {}
        self._marks: dict[str, str | None] = {}
        self._tops: dict[str, str | None] = {}
        self._settings: dict[tuple[str, str | None], Settings] = {}

    def settings_for(self, directory: str, named: str | None = None) -> Settings:
        """The settings of an absolute directory; `named` is the directory that the command line named to get there.

        Raises `ConfigError` for a wrong configuration file.
        """
        found = self._named or (None if self._isolated else self._nearest_file(directory))
        root = self._nearest_root(directory) or self._fallback_root(directory, named)
        key = (root, found.path if found else None)
        if key not in self._settings:
            layers = ((found.layer,) if found else ()) + self._command_line
            try:
                self._settings[key] = resolve(root, found.path if found else None, layers, self.index)
            except (UnknownSelector, BadPattern) as error:
                raise ConfigError(str(error)) from None
        return self._settings[key]

    def _nearest_file(self, directory: str) -> ConfigFile | None:
        """The configuration file in the directory, or the nearest one above it."""
        if directory not in self._files:
            parent = os.path.dirname(directory)
            own = read_nearest(directory, self.index)
            self._files[directory] = own or (None if parent == directory else self._nearest_file(parent))
        return self._files[directory]

    def _nearest_root(self, directory: str) -> str | None:
        """The project root: the nearest directory with our table, else the nearest with a `pyproject.toml` or `.git`.

        The choice does not depend on `--config` and `--isolated`, so that fingerprints do not either.
        """
        return _nearest(directory, has_table, self._tables) or _nearest(directory, _is_marked, self._marks)

    def _fallback_root(self, directory: str, named: str | None) -> str:
        """Without any mark: the working directory; outside it, the directory that was named, or, for a file that was,
        the one that its package stands in, so that the files of a package have one root however they are named."""
        top = named or directory
        if top == self.cwd or top.startswith(self.cwd.rstrip(os.sep) + os.sep):
            return self.cwd
        return named or _nearest(directory, _is_no_package, self._tops) or directory


def _nearest(directory: str, test: Callable[[str], bool], known: dict[str, str | None]) -> str | None:
    """The nearest directory, from this one upward, that passes a test; `known` remembers answers."""
    if directory not in known:
        parent = os.path.dirname(directory)
        above = None if parent == directory else _nearest(parent, test, known)
        known[directory] = directory if test(directory) else above
    return known[directory]


def _is_marked(directory: str) -> bool:
    return os.path.lexists(os.path.join(directory, "pyproject.toml")) or os.path.lexists(
        os.path.join(directory, ".git")
    )


def _is_no_package(directory: str) -> bool:
    return not os.path.isfile(os.path.join(directory, INIT))
