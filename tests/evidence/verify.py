"""Run the code around the judged findings under torch: which of them are confirmed, by rule.

It executes code that is derived from public sources, in the verifier's guarded process.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.evidence.replay import Place, place, rows
from torchcopylint import Finding, check_paths
from torchcopylint.base.verification import Verification
from torchcopylint.pages import Page, load_pages
from torchcopylint.project.neighbours import Neighbours
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of


class Judged(NamedTuple):
    """A finding that is told today and was judged, with the row of the table, the text of its file and its project."""

    where: Place
    row: dict[str, str]
    finding: Finding
    text: str
    project: Neighbours


def told(folders: list[Path], wanted: list[dict[str, str]]) -> Iterator[Judged]:
    """Those of the wanted rows whose source is in one of the folders, and that the linter still tells."""
    by_source: dict[str, dict[Place, dict[str, str]]] = {}
    for row in wanted:
        by_source.setdefault(row["source"], {})[place(row)] = row
    before = Path.cwd()
    for source, of_source in sorted(by_source.items()):
        root = next((folder / source for folder in folders if (folder / source).is_dir()), None)
        if root is None:
            continue
        project = Neighbours(str(root))
        os.chdir(root)
        try:
            files = sorted({where.path for where in of_source if Path(where.path).is_file()})
            findings = check_paths(files, isolated=True) if files else []
            texts = {path: Path(path).read_text(encoding="utf-8") for path in files}
        finally:
            os.chdir(before)
        for finding in findings:
            start = finding.span.start.row
            where = Place(source, finding.filename, start, finding.code, finding.variant)
            if where in of_source:
                yield Judged(where, of_source.pop(where), finding, texts[where.path], project)


def verified(judged: Judged, page: Page, verifier: Verifier) -> Verification:
    """The verdict on one finding."""
    return verifier.verify(slice_of(judged.text, judged.finding, page, project=judged.project), page)


def main() -> None:
    """Verify and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.verify", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="folders with one folder for each source")
    parser.add_argument("--severity", choices=("error", "warning"), help="only findings of this severity")
    parser.add_argument("--code", action="append", help="only findings of this rule; may be repeated")
    parser.add_argument("--to", type=Path, help="write a row for each finding to this file, with the evidence")
    options = parser.parse_args()
    wanted = [
        row
        for row in rows("findings.tsv")
        if options.severity in (None, row["severity"]) and (not options.code or row["code"] in options.code)
    ]
    pages = load_pages()
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    lines = []
    with Verifier() as verifier:
        for judged in told([folder.resolve() for folder in options.folders], wanted):
            result = verified(judged, pages[judged.where.code], verifier)
            key = (judged.row["severity"], judged.where.code, judged.row["verdict"])
            counts.setdefault(key, Counter())[result.verdict.value] += 1
            evidence = " | ".join(f"{item.kind}: {item.text}" for item in result.evidence)
            lines.append((*judged.where, judged.row["verdict"], result.verdict.value, evidence))
            print(*judged.where, result.verdict.value, file=sys.stderr)
    for (severity, code, verdict), found in sorted(counts.items()):
        spread = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
        print(f"{severity} {code} {verdict}: {spread}")
    for severity in ("error", "warning"):
        for verdict in ("right", "open", "wrong"):
            whole = sum((found for key, found in counts.items() if key[::2] == (severity, verdict)), Counter[str]())
            if whole:
                share = whole["confirmed"] / whole.total()
                print(f"{severity}s {verdict}: {whole['confirmed']} of {whole.total()} confirmed ({share:.0%})")
    if options.to:
        with options.to.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
