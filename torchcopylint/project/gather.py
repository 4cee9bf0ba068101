"""From the result of a run to what a format needs to show it: paths for each use, and the lines of code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from torchcopylint import __version__
from torchcopylint.pages import Page
from torchcopylint.project.pipeline import FileResult, RunResult
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.shards import Share
from torchcopylint.report.model import WHOLE, FileReport, Part, Report, Source
from torchcopylint.source.notebook import cells, is_notebook, lines_of, row_called
from torchcopylint.source.text import Undecodable, decode, split_lines

if TYPE_CHECKING:
    from torchcopylint.project.explaining import Explanation
    from torchcopylint.report.explained import Line


class Gatherer:
    """Makes reports of runs that were started in the absolute directory `cwd`.

    `workspace` is the checkout that a CI system annotates, if it says (`GITHUB_WORKSPACE`).
    """

    def __init__(self, cwd: str, workspace: str | None = None) -> None:
        self._cwd = cwd
        self._workspace = workspace

    def report(self, run: RunResult, pages: Mapping[str, Page], share: Share | None = None) -> Report:
        """The report of a run, or of its part that `share` says."""
        source_root = _checkout_around(run.files[0].settings.root) if run.files else self._cwd
        return Report(
            files=tuple(
                self._file(file, source_root, share.places[file.path] if share else 0)
                for file in run.files
                if file.findings
            ),
            pages=pages,
            version=__version__,
            source_root=_file_uri(source_root).rstrip("/") + "/",
            checked=len(run.files),
            suppressed=sum(file.suppressed for file in run.files),
            gaps=tuple(gap for file in run.files for gap in file.gaps),
            missing=run.missing,
            exit_code=run.exit_code,
            part=Part(share.shard.number, share.shard.count, share.total) if share else WHOLE,
        )

    def line(self, explanation: Explanation) -> Line:
        """The explanation of a line, ready to be shown."""
        from torchcopylint.report.explained import Line  # not needed by runs

        findings = (*explanation.shown, *explanation.elsewhere, *(hidden.finding for hidden in explanation.hidden))
        settings = explanation.found.settings
        file = FileResult(explanation.found.path, explanation.filename, settings, findings, text=explanation.text)
        closeup = explanation.closeup
        starts = cells(explanation.text) if is_notebook(explanation.filename) else ()
        return Line(
            place=f"{self._shown(explanation.found.path)}:{explanation.place}",
            scope=closeup.scope,
            code=(lines_of if starts else split_lines)(explanation.text)[explanation.row - 1],
            shown=explanation.shown,
            elsewhere=explanation.elsewhere,
            hidden=tuple((hidden.finding, hidden.why) for hidden in explanation.hidden),
            unknown=tuple(f"`{value.text}`" for value in closeup.values if not value.known),
            known=tuple(f"`{value.text}` is {value.phrase}" for value in closeup.values if value.known),
            facts=closeup.facts,
            gaps=tuple(f"{row_called(gap.row, starts)}: {gap.reason}" for gap in closeup.gaps),
            sources=self._file(file, _checkout_around(settings.root)).sources,
        )

    def _file(self, file: FileResult, source_root: str, place: int = 0) -> FileReport:
        names = {step.filename for finding in file.findings for step in finding.steps} | {file.filename}
        return FileReport(file.findings, {name: self._source(name, file, source_root) for name in sorted(names)}, place)

    def _source(self, name: str, file: FileResult, source_root: str) -> Source:
        if name == file.filename:
            path, text = file.path, file.text
        else:
            path = os.path.join(file.settings.root, *name.split("/"))
            text = _read(path, file.settings.limits.max_file_size)
        if not os.path.isabs(path):
            # Standard input without a name is no file.
            return Source(path, path, quote(path), True, tuple(split_lines(text)) if text is not None else None)
        notebook = is_notebook(name)
        starts = cells(text) if text is not None and notebook else ()
        relative = _below(path, source_root)
        annotated = _below(path, self._workspace) if self._workspace else None
        return Source(
            shown=self._shown(path),
            annotated=annotated or self._shown(path).replace(os.sep, "/"),
            uri=quote(os.fsencode(relative)) if relative else _file_uri(path),
            inside=relative is not None,
            lines=tuple(lines_of(text) if notebook else split_lines(text)) if text is not None else None,
            cells=starts,
        )

    def _shown(self, path: str) -> str:
        """The path relative to the working directory, so that a terminal or editor can follow it."""
        try:
            return os.path.relpath(path, self._cwd)
        except ValueError:
            # Another drive.
            return path


def _read(path: str, maximum: int) -> str | None:
    try:
        return decode(read_file(path, maximum)).text
    except (CannotRead, TooLarge, Undecodable):
        return None


def _checkout_around(directory: str) -> str:
    """The nearest directory upward that is a checkout, or the directory itself."""
    place = directory
    while not os.path.lexists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return directory
        place = parent
    return place


def _below(path: str, directory: str) -> str | None:
    """The path relative to a directory above it, with forward slashes, or `None` if it lies elsewhere."""
    head = directory.rstrip(os.sep) + os.sep
    return path[len(head) :].replace(os.sep, "/") if path.startswith(head) else None


def _file_uri(path: str) -> str:
    posix = path.replace(os.sep, "/")
    return "file://" + quote(os.fsencode(posix if posix.startswith("/") else f"/{posix}"))
