"""A part of a run as JSON, with all that is needed to put the parts together and show the whole in any format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from torchcopylint.base.gap import Gap
from torchcopylint.base.plain import NotPlain, from_plain, to_plain
from torchcopylint.pages import Page
from torchcopylint.report.model import FileReport, Look, Part, Report

FORMAT = "torchcopylint shard 1"


class CannotMerge(ValueError):
    """These are not the parts of one run; the message says why."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """What of a report is written: all but the pages."""

    files: tuple[FileReport, ...]
    version: str
    source_root: str
    checked: int
    suppressed: int
    gaps: tuple[Gap, ...]
    missing: tuple[str, ...]
    exit_code: int
    part: Part


def render(report: Report, look: Look) -> str:
    """One JSON object on one line."""
    plain = _Plain(**{field.name: getattr(report, field.name) for field in fields(_Plain)})
    return json.dumps({"format": FORMAT, "report": to_plain(plain)}, separators=(",", ":")) + "\n"


def read(text: str, pages: Mapping[str, Page]) -> Report:
    """The report of a part. Raises `CannotMerge`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotMerge(f"it is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CannotMerge("it was not written by `--output-format shard` of this version")
    try:
        plain: _Plain = from_plain(_Plain, data.get("report"))
    except NotPlain as error:
        raise CannotMerge(f"it is damaged: {error}") from None
    values: dict[str, Any] = {field.name: getattr(plain, field.name) for field in fields(_Plain)}
    return Report(pages=pages, **values)


def merge(reports: Sequence[Report]) -> Report:
    """The report of the whole run, as one machine would have made it. Raises `CannotMerge`."""
    parts = sorted(reports, key=lambda report: report.part.number)
    first = parts[0]
    for what, values in (
        ("versions of torchcopylint", {report.version for report in parts}),
        ("numbers of shards", {report.part.count for report in parts}),
        ("numbers of files", {report.part.total for report in parts}),
    ):
        if len(values) > 1:
            raise CannotMerge(f"these are shards of different runs: {what} {', '.join(map(str, sorted(values)))}")
    numbers = [report.part.number for report in parts]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise CannotMerge(f"there is more than one shard {twice[0]} of {first.part.count}")
    lacking = sorted(set(range(1, first.part.count + 1)) - set(numbers))
    if lacking:
        raise CannotMerge(f"shard {', '.join(map(str, lacking))} of {first.part.count} is missing")
    return Report(
        files=tuple(sorted((file for report in parts for file in report.files), key=lambda file: file.place)),
        pages=first.pages,
        version=first.version,
        source_root=first.source_root,
        checked=sum(report.checked for report in parts),
        suppressed=sum(report.suppressed for report in parts),
        gaps=tuple(gap for report in parts for gap in report.gaps),
        missing=tuple(dict.fromkeys(path for report in parts for path in report.missing)),
        exit_code=max(report.exit_code for report in parts),
        part=Part(1, 1, first.part.total),
    )
