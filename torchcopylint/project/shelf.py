"""Summaries of files from earlier runs, so that a file that has changed can be analysed without following what it uses.

It lies beside the cache and is opened only when a file must be followed: a run in which everything is known reads none
of it. A summary holds as long as all that its file depends on, directly or through others, is as it was. Each row says
what its file used itself; what can be reached from there makes the *state* of a summary, which is kept with it.

SQLite sees to it that a reader sees one state or another, whoever writes. Nothing that happens to the file ends a run.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchcopylint.base.packed import NotPacked, unpack
from torchcopylint.project.dependencies import Dependencies, Dependency, Lookup, Used

if TYPE_CHECKING:
    import sqlite3

    from torchcopylint.flow.values.outside import ModuleFacts
    from torchcopylint.project.graph import DigestNow, Places

_FACTS = "torchcopylint.flow"
"""The package whose classes summaries are made of."""
_PATIENCE = 2
"""Seconds to wait for another process that writes."""
_TABLES = """
CREATE TABLE IF NOT EXISTS header (words TEXT);
CREATE TABLE IF NOT EXISTS files (
    path TEXT, asked TEXT, digest TEXT, uses TEXT, state TEXT, summary BLOB, PRIMARY KEY (path, asked)
) WITHOUT ROWID;
"""


class Summarised(NamedTuple):
    """A file and its summary, packed (`base.packed`); that of a file of which nothing can be known is packed too."""

    path: str
    summary: str


class Recalled(NamedTuple):
    """The summary of a file, the digest of its content, and of the files that it depends on, itself among them, those
    that were not told before."""

    facts: ModuleFacts | None
    digest: str
    used: tuple[Used, ...]


class _Row(NamedTuple):
    """A file as it was. `uses` is what it used directly, as JSON; `state` is that of its summary, empty if none."""

    digest: str
    uses: str
    state: str


class Shelf:
    """The summaries of one project root. `asked` is what of the settings they depend on, as a text."""

    def __init__(self, path: str, header: str, digest_now: DigestNow, places: Places) -> None:
        """`path` is that of the file, and `header` what must stand in it for the rest to count."""
        self.path = path
        self.damaged = False
        self._header = header
        self._digest_now = digest_now
        self._places = places
        self._rows: dict[str, dict[str, _Row]] | None = None
        self._read_uses: dict[str, Dependencies] = {}
        self._holds: dict[tuple[str, str], bool] = {}
        self._recalled: set[tuple[str, str]] = set()
        self._told: dict[str, dict[str, Used]] = {}
        self._summaries: dict[str, dict[str, str]] = {}

    # -- asking

    def recall(self, path: str, asked: str, waiting: Collection[str]) -> Recalled | None:
        """The summary of a file as it is now, or `None` if it is to be followed. So it is where it depends on a file
        that is `waiting` for it: what is in a circle is followed as a whole. Never raises."""
        rows = self._all_rows().get(asked, {})
        row = rows.get(path)
        reached = self._reached(path, rows) if row is not None and row.state else None
        if row is None or reached is None or any(other in reached for other in waiting):
            return None
        if _state(reached, rows) != row.state or not all(self._is_as_it_was(other, asked) for other in reached):
            return None
        try:
            facts = unpack(self._summary(path, asked), _FACTS)
        except NotPacked:
            self.damaged = True
            return None
        new = [other for other in reached if (other, asked) not in self._recalled]
        self._recalled.update((other, asked) for other in new)
        return Recalled(facts, row.digest, tuple(Used(other, rows[other].digest, reached[other]) for other in new))

    def _is_as_it_was(self, path: str, asked: str) -> bool:
        """Whether a file has the content that its row tells of, and the names in it lead where they led."""
        key = (path, asked)
        if key not in self._holds:
            row = self._all_rows()[asked][path]
            self._holds[key] = self._digest_now(path) == row.digest and all(
                self._places(one.importer, one.dotted) == one.found for one in self._dependencies(row).lookups
            )
        return self._holds[key]

    def _dependencies(self, row: _Row) -> Dependencies:
        """What a file used directly. Raises `ValueError` or `TypeError` if the row is damaged."""
        if row.uses not in self._read_uses:
            files, lookups = json.loads(row.uses)
            self._read_uses[row.uses] = Dependencies(
                tuple(Dependency(*file) for file in files),
                tuple(Lookup(importer, dotted, tuple(found)) for importer, dotted, found in lookups),
            )
        return self._read_uses[row.uses]

    def _reached(self, path: str, rows: dict[str, _Row]) -> dict[str, Dependencies] | None:
        """The files that one depends on, itself among them, and what each used; `None` if nothing is known of one of
        them, or if it is known with another content than it was used with."""
        reached: dict[str, Dependencies] = {}
        pending = [(path, rows[path].digest)]
        while pending:
            other, digest = pending.pop()
            row = rows.get(other)
            if row is None or row.digest != digest:
                return None
            if other not in reached:
                try:
                    reached[other] = self._dependencies(row)
                except (ValueError, TypeError):
                    self.damaged = True
                    return None
                pending += reached[other].files
        return reached

    def _all_rows(self) -> dict[str, dict[str, _Row]]:
        if self._rows is None:
            self._rows = {}
            for path, asked, digest, uses, state in self._read("SELECT path, asked, digest, uses, state FROM files"):
                self._rows.setdefault(asked, {})[path] = _Row(digest, uses, state)
        return self._rows

    def _summary(self, path: str, asked: str) -> str:
        """A packed summary; empty, which is none, if it cannot be read."""
        found = self._read("SELECT summary FROM files WHERE path = ? AND asked = ?", path, asked)
        try:
            return zlib.decompress(found[0][0]).decode("utf-8", "surrogatepass") if found else ""
        except (zlib.error, UnicodeDecodeError, TypeError):
            return ""

    def _read(self, question: str, *values: str) -> list[Any]:
        """The answer to a question; nothing if there is no file, or one that is of another version or damaged."""
        if not os.path.exists(self.path):
            return []
        try:
            import sqlite3  # not needed where everything is known
        except ImportError:
            return []
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as connection:
                if connection.execute("SELECT words FROM header").fetchall() != [(self._header,)]:
                    return []
                found: list[Any] = connection.execute(question, values).fetchall()
                return found
        except sqlite3.OperationalError:
            # Somebody else is at it, or it cannot be opened: nothing is known.
            return []
        except sqlite3.DatabaseError:
            self.damaged = True
            return []

    # -- learning

    def tell(self, asked: str, used: Iterable[Used], summaries: Iterable[Summarised]) -> None:
        """Learn what files used, and the summaries of those that have been followed."""
        self._told.setdefault(asked, {}).update({one.path: one for one in used})
        self._summaries.setdefault(asked, {}).update(summaries)

    @property
    def is_new(self) -> bool:
        """Whether there is anything to write."""
        return any(self._summaries.values())

    def save(self) -> None:
        """Write what was learnt. What cannot be written is followed again by the next run. Never raises."""
        changed = {asked: self._changed(asked) for asked in self._told if self._summaries.get(asked)}
        if not any(changed.values()):
            return
        try:
            import sqlite3  # not needed where everything is known
        except ImportError:
            return
        if self.damaged:
            Path(self.path).unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as connection, connection:
                self._write(connection, changed)
        except (sqlite3.Error, OSError):
            return

    def _changed(self, asked: str) -> list[tuple[str, str, str, str, str, bytes]]:
        """The rows that are to be written."""
        before = self._all_rows().get(asked, {})
        summaries = self._summaries[asked]
        rows = dict(before)
        for path, used in self._told[asked].items():
            if path in summaries or path not in rows or rows[path].digest != used.digest:
                rows[path] = _Row(used.digest, json.dumps(used.dependencies, separators=(",", ":")), "")
        changed = []
        for path, row in rows.items():
            if path in summaries:
                reached = self._reached(path, rows)
                row = row._replace(state=_state(reached, rows) if reached is not None else "")
            if path in summaries or row != before.get(path):
                packed = zlib.compress(summaries.get(path, "").encode("utf-8", "surrogatepass"), 1)
                changed.append((path, asked, row.digest, row.uses, row.state, packed))
        return changed

    def _write(self, connection: sqlite3.Connection, changed: dict[str, list[Any]]) -> None:
        connection.executescript(_TABLES)
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT words FROM header").fetchall() != [(self._header,)]:
            connection.execute("DELETE FROM header")
            connection.execute("DELETE FROM files")
            connection.execute("INSERT INTO header VALUES (?)", (self._header,))
        for rows in changed.values():
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", rows)
        gone = [(path,) for rows in self._all_rows().values() for path in rows if not os.path.lexists(path)]
        connection.executemany("DELETE FROM files WHERE path = ?", gone)


def _state(reached: Iterable[str], rows: dict[str, _Row]) -> str:
    """What stands for all that a summary depends on."""
    parts = sorted("\0".join((path, rows[path].digest, rows[path].uses)) for path in reached)
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
