"""Which kinds of errors were more often wrong than right at first sight, so that they are told as warnings.

A kind is a rule, a variant and a confidence. What counts is in how many sources a kind was right, and in how many it
was wrong: one cause often gives many findings in one source.

`python -m tests.evidence.doubt` writes `doubtful` into the rule pages, and the table into `docs/precision.md`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchcopylint.base.finding import Confidence, Severity
from torchcopylint.pages import Page, load_pages

from .replay import rows
from .table import PAGE

BEGIN, END = "<!-- doubt: begin -->\n", "<!-- doubt: end -->\n"
FEWEST = 5
"""In so many sources a kind has to have been right or wrong for that to say something."""


class Kind(NamedTuple):
    """What the linter says with one code, in one variant, with one confidence."""

    code: str
    variant: str
    confidence: Confidence


class Counts(NamedTuple):
    """Of a kind at first sight: how many findings were right and wrong, and in how many sources each."""

    right: int
    wrong: int
    right_in: int
    wrong_in: int

    @property
    def is_doubtful(self) -> bool:
        """Whether it was wrong in more sources than it was right in, and there were enough to say so."""
        return self.right_in + self.wrong_in >= FEWEST and self.right_in < self.wrong_in


def counted(pages: Mapping[str, Page]) -> dict[Kind, Counts]:
    """The kinds of what a page calls an error, as they were judged at first sight."""
    first = {row["source"] for row in rows("sources.tsv") if row["held_out"] == "first"}
    found: dict[Kind, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows("findings.tsv"):
        page = pages[row["code"]]
        if row["source"] in first and page.severity(row["variant"]) is Severity.ERROR:
            kind = Kind(row["code"], row["variant"], Confidence(row["confidence"]))
            found[kind][row["verdict"]].append(row["source"])
    return {
        kind: Counts(
            len(verdicts["right"]), len(verdicts["wrong"]), len(set(verdicts["right"])), len(set(verdicts["wrong"]))
        )
        for kind, verdicts in sorted(found.items())
    }


def doubtful(counts: Mapping[Kind, Counts]) -> dict[tuple[str, str], Confidence]:
    """For each rule and variant with a doubtful kind, the highest such confidence: what is less sure is no better."""
    found: dict[tuple[str, str], Confidence] = {}
    for kind, of_kind in counts.items():
        key = (kind.code, kind.variant)
        if of_kind.is_doubtful and (key not in found or kind.confidence.rank < found[key].rank):
            found[key] = kind.confidence
    return found


def said_by(page: Page) -> dict[tuple[str, str], Confidence]:
    """What the front matter of a page says of it."""
    variants = {variant: page.keys.get(_key(variant), "") for variant in ("", *page.variants)}
    return {(page.code, variant): Confidence(said) for variant, said in variants.items() if said}


def page_with(text: str, counts: Mapping[Kind, Counts]) -> str:
    """`docs/precision.md` with the table as it is now between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "".join(f"{line}\n" for line in _table(counts)) + END + rest.split(END)[1]


def _key(variant: str) -> str:
    return f"doubtful.{variant}" if variant else "doubtful"


def _table(counts: Mapping[Kind, Counts]) -> Iterator[str]:
    yield "| rule | variant | confidence | right | wrong | sources where right | where wrong |"
    yield "| --- | --- | --- | --: | --: | --: | --: |"
    for kind, of_kind in counts.items():
        if of_kind.is_doubtful:
            yield f"| {kind.code} | {kind.variant} | {kind.confidence} | {' | '.join(map(str, of_kind))} |"


def _rewrite(page: Page, wanted: Mapping[tuple[str, str], Confidence]) -> None:
    text = page.path.read_text(encoding="utf-8")
    front, mark, body = text.partition("\n---\n")
    front = re.sub(r"\ndoubtful(\.\w[\w-]*)?: \w+", "", front)
    lines = "".join(
        f"\n{_key(variant)}: {confidence}"
        for (code, variant), confidence in sorted(wanted.items())
        if code == page.code
    )
    front = re.sub(r"(\nconfidence: [^\n]*)", rf"\1{lines}", front, count=1)
    if (new := front + mark + body) != text:
        page.path.write_text(new, encoding="utf-8")


def main() -> None:
    """Write what is doubtful."""
    pages = load_pages()
    counts = counted(pages)
    for page in pages.values():
        if page.family != "TCL0":
            _rewrite(page, doubtful(counts))
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), counts), encoding="utf-8")


if __name__ == "__main__":
    main()
