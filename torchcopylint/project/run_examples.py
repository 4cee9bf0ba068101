"""What a rule page's own examples do when they are run: `explain CODE --run`."""

from __future__ import annotations

from collections.abc import Iterable

from torchcopylint.base.verification import Verdict, Verification
from torchcopylint.pages import Page
from torchcopylint.verify.examples import slices_of
from torchcopylint.verify.run import Verifier

QUIET = frozenset({"protection"})
"""Kinds of evidence that are the same for every example."""


def verifier_of_examples() -> Verifier:
    """What runs them, with its defaults. A context manager."""
    return Verifier()


def run_examples(page: Page, verifier: Verifier) -> list[tuple[int, str, Verification]]:
    """The verdict on each bad example, once for every variant that it shows: its row on the page, the variant."""
    return [
        (example.row, piece.variant, verifier.verify(piece, page))
        for example in page.examples
        if example.kind == "bad"
        for piece in slices_of(page, example)
    ]


def told(page: Page, results: Iterable[tuple[int, str, Verification]]) -> str:
    """The verdicts as text, one example a paragraph; rows of evidence are those of the page."""
    lines = [f"The bad examples of {page.code} when they are run:", ""]
    protections: dict[str, None] = {}
    for row, variant, verification in results:
        name = f" ({variant})" if variant else ""
        lines.append(f"{page.path.name}:{row}{name}: {verification.verdict}")
        lines += [f"  {item.text}" for item in verification.evidence if item.kind not in QUIET]
        protections.update(dict.fromkeys(item.text for item in verification.evidence if item.kind in QUIET))
        if verification.verdict is Verdict.UNAVAILABLE:
            break
    lines += ["", *(f"Protections in force: {text}" for text in protections)]
    return "".join(f"{line}\n" for line in lines).rstrip("\n") + "\n"
