"""The files around one that is verified, for whoever runs parts of them together with it."""

from __future__ import annotations

import os

from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.sources import Sources
from torchcopylint.source.text import Undecodable, decode

MOST_READ = 400_000
"""Bytes of a file; of a larger one nothing is run."""


class Neighbours:
    """The files of one project. They are called as in findings: relative to the root, with forward slashes."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._sources = Sources(root)
        self.texts: dict[str, str | None] = {}

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """The files that a dotted name in a file leads through, the last first, each with what is left of the name."""
        found = self._sources.places(os.path.join(self._root, *importer.split("/")), dotted)
        return tuple((self._called(path), rest) for path, rest in found if path.endswith(".py"))

    def text(self, filename: str) -> str | None:
        """The Python of a file, or `None` if there is none to be had."""
        if filename not in self.texts:
            try:
                data = read_file(os.path.join(self._root, *filename.split("/")), MOST_READ)
                self.texts[filename] = decode(data).text
            except (CannotRead, TooLarge, Undecodable):
                self.texts[filename] = None
        return self.texts[filename]

    def _called(self, path: str) -> str:
        return os.path.relpath(path, self._root).replace(os.sep, "/")
