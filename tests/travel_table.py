"""Whether what the linter says stays the same when a program is written in another way: a table for a document.

    python -m tests.travel_table [--write] [--to FILE] [--share N] [--only WORDS] [--half 0|1]

Every example of every page is rewritten, one statement or its whole script at a time (`metamorphic.outlining`,
`metamorphic.restructuring`); `test_metamorphic_travel.py` asks torch whether each variant does what the original does.
Prints, for each way, how many variants there are of programs with findings and in how many of those one is missing; how
many there are in all, and in how many there is one that the original lacks. `--write` puts it into `docs/precision.md`.

For work on the engine: `--to` writes a JSON line for each variant that differs; `--share 1` takes every variant, where
otherwise one of 20 is taken, and one of 80 of those of statements that no finding speaks of; `--half` takes every
second program, so that one half can be worked on and the other tell what that is worth.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zlib import crc32

from tests.metamorphic.outlining import CARRIED, IN_ANOTHER_FILE, OUTLINED, Names, Rewritten, places, rewritten
from tests.metamorphic.restructuring import STRUCTURES, restructured
from torchcopylint import check_paths
from torchcopylint.analysis import analyse
from torchcopylint.base.finding import Confidence, Finding
from torchcopylint.pages import load_pages

GROUPS = {
    "one statement or value in a helper": tuple(OUTLINED),
    "the same, in another file": tuple(IN_ANOTHER_FILE),
    "one value carried by something": tuple(CARRIED),
    "the whole script in another structure": STRUCTURES,
}
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "precision.md"
SHARE = 20
"""One of so many variants is taken; one of four times as many where no finding speaks of the statement."""


class Variant(NamedTuple):
    """A program in another way. `row` is the row of the statement in the original, 0 for all of it."""

    program: str
    way: str
    row: int
    made: Rewritten


class Told(NamedTuple):
    """The codes of the findings that a variant lacks, and of those that it has and the original does not."""

    missing: tuple[str, ...]
    new: tuple[str, ...]


def originals() -> dict[str, str]:
    """The examples of all pages by name, such as `data-read bad 2`, each as Python writes it."""
    return {
        f"{page.name} {example.kind} {number}": ast.unparse(ast.parse(example.code)) + "\n"
        for page in load_pages().values()
        for number, example in enumerate(page.examples, start=1)
    }


def variants(name: str, code: str, share: int = SHARE) -> Iterator[Variant]:
    """The chosen variants of a program."""
    tree = ast.parse(code)
    found = analyse(code, filename="example.py").findings
    near = {row for finding in found for row in (finding.span.start.row, *(s.span.start.row for s in finding.steps))}
    names = Names(tree)
    ways = {**OUTLINED, **IN_ANOTHER_FILE, **CARRIED}
    for place in list(places(tree)):
        row = place.statement.lineno
        for way in ways:
            if not crc32(f"{name} {way} {row}".encode()) % (share if row in near else share * 4) and (
                made := rewritten(tree, place, ways[way], names)
            ):
                yield Variant(name, way, row, made)
    for way, made in restructured(tree):
        if not crc32(f"{name} {way}".encode()) % max(1, share // 4):
            yield Variant(name, way, 0, made)


def codes(made: Rewritten) -> Counter[str]:
    """The codes of what the linter says of a program, but for what it is not sure of."""
    if not made.files:
        return _codes(analyse(made.code, filename="example.py").findings)
    with TemporaryDirectory() as directory:
        for name, text in {**made.files, "example.py": made.code, "pyproject.toml": ""}.items():
            Path(directory, name).write_text(text, encoding="utf-8")
        return _codes(check_paths([directory]))


def _codes(findings: list[Finding] | tuple[Finding, ...]) -> Counter[str]:
    return Counter(finding.code for finding in findings if finding.confidence is not Confidence.LOW)


def told(variant: Variant, original: Counter[str]) -> Told:
    """How what is said of a variant differs from what is said of the original."""
    after = codes(variant.made)
    return Told(tuple(sorted((original - after).elements())), tuple(sorted((after - original).elements())))


@dataclass
class Counts:
    """What became of the variants of one way."""

    with_findings: int = 0
    missing: int = 0
    all: int = 0
    new: int = 0


def counted(
    ways: Collection[str], *, share: int = SHARE, only: str = "", half: int | None = None
) -> tuple[dict[str, Counts], list[tuple[Variant, Told]]]:
    """The counts of each of these ways, and the variants that differ."""
    counts = {way: Counts() for way in ways}
    differing = []
    for name, code in originals().items():
        if only not in name or half not in (None, crc32(name.encode()) % 2):
            continue
        original = codes(Rewritten(code, {}))
        for variant in variants(name, code, share):
            if variant.way in counts:
                difference = told(variant, original)
                count = counts[variant.way]
                count.with_findings += bool(original)
                count.missing += bool(difference.missing)
                count.all += 1
                count.new += bool(difference.new)
                if any(difference):
                    differing.append((variant, difference))
    return counts, differing


def rows(group: str, counts: Mapping[str, Counts]) -> list[str]:
    """The rows of a table for one group: one for all, and one for each of its ways."""
    each = [counts[way] for way in GROUPS[group]]
    total = Counts(*(sum(column) for column in zip(*map(astuple, each), strict=True)))
    named = [(f"**{group}**", total), *((way, counts[way]) for way in GROUPS[group])]
    return [f"| {name} | {' | '.join(map(str, astuple(count)))} |" for name, count in named]


def document(text: str, table: Sequence[str]) -> str:
    """The document with a table in place of the one that it has."""
    head = [
        "| in another way | of programs with findings | one is missing | all | one is new |",
        "| --- | --: | --: | --: | --: |",
    ]
    before, rest = text.split("<!-- travel -->\n")
    after = rest.partition("<!-- /travel -->\n")[2]
    body = "\n".join([*head, *table])
    return f"{before}<!-- travel -->\n\n{body}\n\n<!-- /travel -->\n{after}"


def main() -> None:
    """Print the table, and write what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--to", type=Path)
    parser.add_argument("--share", type=int, default=SHARE)
    parser.add_argument("--only", default="")
    parser.add_argument("--half", type=int, choices=(0, 1))
    options = parser.parse_args()
    ways = [way for group in GROUPS.values() for way in group]
    counts, differing = counted(ways, share=options.share, only=options.only, half=options.half)
    table = [row for group in GROUPS for row in rows(group, counts)]
    print("\n".join(table))
    if options.write:
        DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8"), table), encoding="utf-8")
    if options.to:
        lines = [{**v._asdict(), "made": v.made._asdict(), **difference._asdict()} for v, difference in differing]
        options.to.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
