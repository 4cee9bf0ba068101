"""What a format is given: the findings of a run with all that is needed to show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torchcopylint.base.finding import Finding
from torchcopylint.base.gap import Gap
from torchcopylint.pages import Page


@dataclass(frozen=True, slots=True)
class Look:
    """How text for people is to look. `quiet` leaves the summary out."""

    color: bool = False
    quiet: bool = False
    statistics: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A file that findings speak of.

    `shown` is its path for people, relative to the working directory. `annotated` is its path for annotations of a CI
    system, relative to the checkout. `uri` is relative to the report's `source_root` if `inside`, else absolute.
    `lines` are its lines without their ends, or `None` if they are not at hand. Of a notebook they are those of all
    code cells, and `cells` has the number of each cell with how many lines stand before its first.
    """

    shown: str
    annotated: str
    uri: str
    inside: bool
    lines: tuple[str, ...] | None = field(repr=False, default=None)
    cells: tuple[tuple[int, int], ...] = ()

    def line(self, row: int, cell: int | None = None) -> str | None:
        """A line by its row, which counts within a cell if one is given; `None` if it is not at hand."""
        index = row - 1 if cell is None else dict(self.cells).get(cell, -row) + row - 1
        return self.lines[index] if self.lines is not None and 0 <= index < len(self.lines) else None


def place(row: int, cell: int | None) -> str:
    """A row for people, after the name of its file: `12`, or `cell 3:12` in a notebook."""
    return f"{row}" if cell is None else f"cell {cell}:{row}"


@dataclass(frozen=True, slots=True)
class FileReport:
    """The findings of one file. `sources` has every file that they speak of, by the name used in the findings.

    `place` is which of all files of the run it is, from 0, where a run is done in parts.
    """

    findings: tuple[Finding, ...]
    sources: Mapping[str, Source]
    place: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a run a report is about: part `number` (from 1) of `count`; `total` is the number of all files."""

    number: int
    count: int
    total: int


WHOLE = Part(1, 1, 0)


@dataclass(frozen=True, slots=True)
class Report:
    """A run, ready to be shown.

    `files` are those with findings, in order. `source_root` is a `file:` URI that ends with a slash. `checked` counts
    files, `suppressed` findings that a comment hid. `missing` are the given paths that do not exist.
    """

    files: tuple[FileReport, ...]
    pages: Mapping[str, Page]
    version: str
    source_root: str
    checked: int = 0
    suppressed: int = 0
    gaps: tuple[Gap, ...] = ()
    missing: tuple[str, ...] = ()
    exit_code: int = 0
    part: Part = WHOLE

    def findings(self) -> Iterator[tuple[Finding, Mapping[str, Source]]]:
        """Every finding with the files that it speaks of, in order."""
        for file in self.files:
            for finding in file.findings:
                yield finding, file.sources
