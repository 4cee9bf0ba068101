"""Which files examinations depend on through others: rows, each a file with a content and the rows that it used itself.

An examination names the rows of what it made use of directly, so that what many files depend on is kept once. It holds
as long as every row that can be reached has the content that its file has now, and every name leads where it led. A row
that does not hold any more is never mended: a file that has come to other neighbours is another row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from torchcopylint.project.dependencies import NOTHING, Dependencies, Lookup, Used

Places: TypeAlias = Callable[[str, str], tuple[str, ...]]
"""From a file and a dotted name in it to the files that the name leads through now."""
DigestNow: TypeAlias = Callable[[str], str]
"""From a path to the digest of what is there now; empty if nothing can be read there."""
_LOST = "?"
"""In the place of the digest of a file of which nothing was told: no content has it."""


class Row(NamedTuple):
    """A file as it was, and by their numbers the rows and lookups that it depends on directly."""

    path: str
    digest: str
    files: tuple[int, ...]
    lookups: tuple[int, ...]


class Direct(NamedTuple):
    """What an examination depends on directly, by the numbers of rows and lookups."""

    files: tuple[int, ...]
    lookups: tuple[int, ...]


class Graph:
    """Rows, and which of them hold. Paths are absolute."""

    def __init__(self, digest_now: DigestNow, places: Places) -> None:
        self._digest_now = digest_now
        self._places = places
        self._rows: list[Row] = []
        self._lookups: list[Lookup] = []
        self._row_holds: dict[int, bool] = {}
        self._lookup_holds: dict[int, bool] = {}
        self._told: dict[str, Used] = {}
        self._by_content: dict[tuple[str, str], list[int]] | None = None
        self._lookup_numbers: dict[Lookup, int] = {}
        self._numbers: dict[str, int] = {}

    # -- asking

    def holds(self, direct: Direct) -> bool:
        """Whether everything is as it was that was made use of."""
        return all(map(self._leads_there, direct.lookups)) and all(map(self._row, direct.files))

    def _leads_there(self, number: int) -> bool:
        known = self._lookup_holds.get(number)
        if known is None:
            lookup = self._lookups[number]
            known = self._lookup_holds[number] = self._places(lookup.importer, lookup.dotted) == lookup.found
        return known

    def _row(self, number: int) -> bool:
        if number not in self._row_holds:
            self._judge(number)
        return self._row_holds[number]

    def _judge(self, start: int) -> None:
        """Find out whether rows hold: all that can be reached and are not known yet, each looked at once."""
        reached = {start}
        users: dict[int, list[int]] = {}
        bad: list[int] = []
        pending = [start]
        while pending:
            number = pending.pop()
            row = self._rows[number]
            if self._digest_now(row.path) != row.digest or not all(map(self._leads_there, row.lookups)):
                bad.append(number)
            for used in row.files:
                users.setdefault(used, []).append(number)
                if self._row_holds.get(used) is False:
                    bad.append(number)
                elif used not in self._row_holds and used not in reached:
                    reached.add(used)
                    pending.append(used)
        self._row_holds.update(dict.fromkeys(reached, True))
        while bad:
            number = bad.pop()
            if self._row_holds[number]:
                self._row_holds[number] = False
                bad += users.get(number, ())

    # -- learning

    def tell(self, used: Iterable[Used]) -> None:
        """Learn of files that were used. One that is told of again has been followed again, maybe by somebody else."""
        for item in used:
            known = self._told.get(item.path)
            if known is not None and known.digest == item.digest:
                both = Dependencies(
                    tuple(sorted({*known.dependencies.files, *item.dependencies.files})),
                    tuple(sorted({*known.dependencies.lookups, *item.dependencies.lookups})),
                )
                item = item._replace(dependencies=both)
            self._told[item.path] = item

    @property
    def told(self) -> Iterable[Used]:
        """All that was told."""
        return self._told.values()

    def add(self, dependencies: Dependencies) -> Direct:
        """The numbers for what an examination of this run depends on. All that it used has been told of."""
        if self._by_content is None:
            self._by_content = {}
            for number, row in enumerate(self._rows):
                self._by_content.setdefault((row.path, row.digest), []).append(number)
            self._lookup_numbers = {lookup: number for number, lookup in enumerate(self._lookups)}
        files = tuple(self._number(self._known_as(*file)) for file in dependencies.files)
        return Direct(files, tuple(map(self._lookup_number, dependencies.lookups)))

    def _number(self, start: str) -> int:
        """The row for a file that was told of, with the rows for what it used."""
        if start not in self._numbers:
            pending = [start]
            fresh: dict[int, Used] = {}
            while pending:
                path = pending.pop()
                if path in self._numbers:
                    continue
                used = self._told.get(path, Used(path, _LOST, NOTHING))
                number = self._same(used)
                if number < 0:
                    number = len(self._rows)
                    self._rows.append(Row(path, used.digest, (), ()))
                    fresh[number] = used
                    pending += [self._known_as(*file) for file in used.dependencies.files]
                self._numbers[path] = number
            for number, used in fresh.items():
                files = tuple(self._numbers[self._known_as(*file)] for file in used.dependencies.files)
                lookups = tuple(map(self._lookup_number, used.dependencies.lookups))
                self._rows[number] = self._rows[number]._replace(files=files, lookups=lookups)
        return self._numbers[start]

    def _known_as(self, path: str, digest: str) -> str:
        """A path, if its file was told of with this content, else one of which nothing is known."""
        told = self._told.get(path)
        return path if told is not None and told.digest == digest else ""

    def _same(self, used: Used) -> int:
        """The number of a row from before that holds and comprises what was told, or -1."""
        for number in (self._by_content or {}).get((used.path, used.digest), ()):
            row = self._rows[number]
            if (
                self._row(number)
                and {self._rows[file][:2] for file in row.files}.issuperset(used.dependencies.files)
                and {self._lookups[lookup] for lookup in row.lookups}.issuperset(
                    map(_in_directory, used.dependencies.lookups)
                )
            ):
                return number
        return -1

    def _lookup_number(self, lookup: Lookup) -> int:
        lookup = _in_directory(lookup)
        number = self._lookup_numbers.setdefault(lookup, len(self._lookups))
        if number == len(self._lookups):
            self._lookups.append(lookup)
        return number

    # -- keeping

    def plain(self, wanted: Sequence[Direct], name: Callable[[str], str]) -> tuple[list[Any], list[Direct]]:
        """The part that examinations need, as what `json` can write, and the examinations in its numbers. `name` makes
        of a path what is to be written."""
        rows: dict[int, int] = {}
        lookups: dict[int, int] = {}
        names: dict[str, int] = {}

        def named(path: str) -> int:
            return names.setdefault(path, len(names))

        pending = [number for direct in wanted for number in direct.files]
        while pending:
            number = pending.pop()
            if number not in rows:
                rows[number] = len(rows)
                pending += self._rows[number].files
        kept = [self._rows[number] for number in rows]
        for looked in (*(row.lookups for row in kept), *(direct.lookups for direct in wanted)):
            for number in looked:
                lookups.setdefault(number, len(lookups))
        written = [
            [
                [named(row.path), row.digest, [rows[n] for n in row.files], [lookups[n] for n in row.lookups]]
                for row in kept
            ],
            [
                [named(self._lookups[n].importer), self._lookups[n].dotted, [named(p) for p in self._lookups[n].found]]
                for n in lookups
            ],
        ]
        direct = [Direct(tuple(rows[n] for n in d.files), tuple(lookups[n] for n in d.lookups)) for d in wanted]
        return [[name(path) for path in names], *written], direct

    def read(self, plain: Any, path_of: Callable[[str], str]) -> None:
        """Take what `plain` made, in the place of what is there. Raises `ValueError`, `TypeError` or `IndexError` if it
        is something else."""
        names, rows, lookups = plain
        paths = [path_of(name) for name in names]
        self._lookups = [
            Lookup(paths[importer], dotted, tuple([paths[number] for number in found]))
            for importer, dotted, found in lookups
        ]
        # All of them first, so that it is known how many there are.
        self._rows = [Row(paths[path], digest, (), ()) for path, digest, _, _ in rows]
        for number, (_, _, files, looked) in enumerate(rows):
            direct = self.direct((files, looked))
            self._rows[number] = self._rows[number]._replace(files=direct.files, lookups=direct.lookups)

    def direct(self, plain: Any) -> Direct:
        """What an examination depends on, of what is left of it in `json`. Raises `ValueError` or `TypeError` if it
        speaks of what is not there."""
        files, lookups = plain
        for numbers, there in ((files, self._rows), (lookups, self._lookups)):
            if not all(type(number) is int and 0 <= number < len(there) for number in numbers):
                raise ValueError("a number is out of range")
        return Direct(tuple(files), tuple(lookups))


def _in_directory(lookup: Lookup) -> Lookup:
    """A lookup as all files of a directory make it."""
    return lookup._replace(importer=os.path.join(os.path.dirname(lookup.importer), ""))
