"""How many of the findings on the sources of `measured.tsv` are right, rule by rule: recorded, and shown as a page.

`python -m tests.evidence.table` writes the table into `docs/precision.md`. With a folder of the sources, as `replay`
takes it, and `--record first` or `--record now`, the linter is run on them before, and what it says is counted.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .replay import HERE, SAMPLED, place, rows, said

PAGE = HERE.parent.parent / "docs" / "precision.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
COLUMNS = ("source", "code", "severity", "when", "found", "right", "wrong", "open")
VERDICTS = ("right", "wrong", "open")
FEW = 10
SEVERITIES = ("error", "warning")


class Row(NamedTuple):
    """What was found in one source by one rule, of one severity, `first` or `now`, and how what was read was judged."""

    source: str
    code: str
    severity: str
    when: str
    found: int
    right: int
    wrong: int
    open: int

    @property
    def read(self) -> int:
        """How many were read."""
        return self.right + self.wrong + self.open


def measured() -> list[Row]:
    """What has been recorded."""
    return [
        Row(r["source"], r["code"], r["severity"], r["when"], *(int(r[name]) for name in COLUMNS[4:]))
        for r in rows("measured.tsv")
    ]


def counted(folder: Path, source: str, when: str) -> Iterator[Row]:
    """What the linter says of a source, with the verdicts that `findings.tsv` has."""
    known = {place(row): row["verdict"] for row in rows("findings.tsv") if row["source"] == source}
    found: Counter[tuple[str, str]] = Counter()
    verdicts: Counter[tuple[str, str, str]] = Counter()
    for where, severity, _ in said(folder, source):
        found[where.code, severity] += 1
        verdicts[where.code, severity, known.get(where, "")] += 1
    for (code, severity), number in sorted(found.items()):
        yield Row(source, code, severity, when, number, *(verdicts[code, severity, verdict] for verdict in VERDICTS))
    if not found:
        # A source in which nothing is found counts as well.
        yield Row(source, "", "", when, 0, 0, 0, 0)


def record(folder: Path, when: str, sources: Sequence[str]) -> None:
    """Replace what has been recorded of some sources."""
    kept = [row for row in measured() if row.when != when or row.source not in sources]
    new = [row for source in sources for row in counted(folder, source, when)]
    with (HERE / "measured.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted([*kept, *new]))


def page_with(text: str) -> str:
    """A page with the tables as they are now between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "".join(f"{line}\n" for line in _tables()) + END + rest.split(END)[1]


def _tables() -> Iterator[str]:
    sources = {row["source"]: row for row in rows("sources.tsv")}
    recorded = measured()
    groups: dict[str, list[str]] = defaultdict(list)
    for source in dict.fromkeys(row.source for row in recorded):
        groups[sources[source]["held_out"]].append(source)
    for held_out, title, whens in (
        ("yes", "Held out: no false alarm there was looked into before this was counted", ("first",)),
        ("first", "New to everybody at first sight, and worked on afterwards", ("first", "now")),
        ("no", "Known for long: their false alarms have shaped the rules", ("now",)),
    ):
        names = groups[held_out]
        kinds = Counter(sources[name]["kind"] for name in names)
        lines = sum(int(sources[name]["lines"]) for name in names)
        yield f"## {title}"
        yield ""
        yield f"{kinds['repository']} repositories and {kinds['package']} packages, {lines:,} lines."
        yield ""
        of_group = [row for row in recorded if row.source in names and row.code]
        yield from _table(of_group, whens)
        yield ""


def _table(recorded: Sequence[Row], whens: Sequence[str]) -> Iterator[str]:
    titles = {"first": "at first sight", "now": "now"}
    heads = [f"{titles[when]}: found" if len(whens) > 1 else "found" for when in whens]
    yield "| rule | severity | " + " | ".join(f"{head} | read | right | wrong | open" for head in heads) + " |"
    yield "| --- | --- |" + " --: | --: | --: | --: | --: |" * len(whens)
    keys = sorted({(SEVERITIES.index(row.severity), row.code) for row in recorded})
    for number, code in keys:
        of_key = [row for row in recorded if row.code == code and row.severity == SEVERITIES[number]]
        yield _line(f"{code} | {SEVERITIES[number]}", of_key, whens)
    for severity in SEVERITIES:
        of_severity = [row for row in recorded if row.severity == severity]
        yield _line(f"all {severity}s | ", of_severity, whens)
    rare = [row for row in recorded if row.severity == "warning" and row.code not in SAMPLED]
    yield _line("warnings but of the rules that are sampled | ", rare, whens)


def _line(title: str, recorded: Iterable[Row], whens: Sequence[str]) -> str:
    cells = []
    for when in whens:
        of_time = [row for row in recorded if row.when == when]
        found, read = sum(row.found for row in of_time), sum(row.read for row in of_time)
        right, wrong, unsure = (sum(getattr(row, verdict) for row in of_time) for verdict in VERDICTS)
        share = f" ({right / (right + wrong):.0%})" if right + wrong >= FEW else ""
        cells += [found, read, f"{right}{share}", wrong, unsure]
    return f"| {title} | " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Record, if asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--record", choices=("first", "now"))
    parser.add_argument("--source", action="append", help="one of the sources; all of the table by default")
    options = parser.parse_args()
    if options.record and options.folder:
        listed = options.source or list(dict.fromkeys(row.source for row in measured()))
        record(options.folder, options.record, [name for name in listed if (options.folder / name).is_dir()])
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
