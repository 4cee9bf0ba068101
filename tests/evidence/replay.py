"""Run the linter on the sources of `sources.tsv` again, and compare with the findings that were judged."""

from __future__ import annotations

import argparse
import csv
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torchcopylint.pages import load_pages
from torchcopylint.project.discover import discover
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex

HERE = Path(__file__).parent
SAMPLED = ("TCL103", "TCL104", "TCL903")
SAMPLE = 50


class Place(NamedTuple):
    """Where a finding is: a source, a path in it, a row, a code and its variant."""

    source: str
    path: str
    row: int
    code: str
    variant: str


def rows(name: str) -> list[dict[str, str]]:
    """The rows of one of the two tables."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def place(row: dict[str, str]) -> Place:
    """The place that a row of `findings.tsv` speaks of."""
    return Place(row["source"], row["path"], int(row["row"]), row["code"], row["variant"])


def said(folder: Path, source: str) -> Iterator[tuple[Place, str, str]]:
    """What the linter says by default about a source as a whole, facts across files included, but for its `info`."""
    top = (folder / source).resolve()
    index = RuleIndex(load_pages())
    found = discover([str(top)], Resolver(index, cwd=str(top), isolated=True))
    for file in Checker(index).check(found).files:
        relative = Path(file.path).relative_to(top).as_posix()
        for finding in file.findings:
            path = relative if finding.cell is None else f"{relative}:{finding.cell}"
            if finding.severity.value != "info" and not finding.code.startswith("TCL0"):
                where = Place(source, path, finding.span.start.row, finding.code, finding.variant)
                yield where, finding.severity.value, finding.confidence.value


def judged(found: list[tuple[Place, str, str]], sampled: set[str]) -> list[tuple[Place, str, str]]:
    """What is to be judged of a run: everything, and samples of the frequent rules from the sources named."""
    some = [item for item in found if item[0].code not in SAMPLED]
    for code in SAMPLED:
        of_code = sorted(item for item in found if item[0].code == code and item[0].source in sampled)
        some += random.Random(0).sample(of_code, min(SAMPLE, len(of_code)))
    return sorted(some)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--new", type=Path, help="write findings that were not judged yet to this file")
    options = parser.parse_args()
    known = {place(row): row for row in rows("findings.tsv")}
    present = [row["source"] for row in rows("sources.tsv") if (options.folder / row["source"]).is_dir()]
    found = [item for source in present for item in said(options.folder, source)]
    places = {item[0] for item in found}
    sampled = {row["source"] for row in rows("sources.tsv") if row["sampled"] == "yes"}
    new = [item for item in judged(found, sampled) if item[0] not in known]
    verdicts = {where: row["verdict"] for where, row in known.items() if where.source in present}
    print(f"{len(present)} sources, {len(found)} errors and warnings")
    for code in sorted({where.code for where in (*places, *verdicts)}):
        still = Counter(v for where, v in verdicts.items() if where.code == code and where in places)
        gone = Counter(v for where, v in verdicts.items() if where.code == code and where not in places)
        unread = sum(item[0].code == code for item in new)
        total = sum(where.code == code for where in places)
        print(f"{code}: {total} findings; still there: {_counts(still)}; gone: {_counts(gone)}; not judged: {unread}")
    if options.new:
        with options.new.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerows((*where, severity, confidence, "", "") for where, severity, confidence in new)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
