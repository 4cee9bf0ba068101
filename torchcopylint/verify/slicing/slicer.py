"""From a finding to the scripts that show what its code does: which statements, which inputs, in which order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from torchcopylint.base.finding import Finding, Severity
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.pages import Page
from torchcopylint.source.notebook import cells
from torchcopylint.verify.model import Slice
from torchcopylint.verify.slicing.linking import Linked, Project, linked
from torchcopylint.verify.slicing.moves import copied_elsewhere, only_elsewhere
from torchcopylint.verify.slicing.searching import Search
from torchcopylint.verify.slicing.source import (
    NotRunnable,
    Source,
    in_text,
    parse,
)

_SHARING = frozenset({"two-names-change", "two-tensors-change", "same-object"})
_OF_FORMS = re.compile(
    r"invalid index|negative|view size|single memory location|more than one element|match the broadcast"
)
"""Exceptions that come of how many numbers there are, and where, and of no graph."""
_MANY_ROWS = 400
"""If more of other files comes along, the file alone is run before."""


def slice_of(
    text: str,
    finding: Finding,
    page: Page,
    *,
    device: str = "cpu",
    project: Project | None = None,
    instead: bool = False,
) -> Slice:
    """What is to be run for one finding of a file with this text. `page` is the page of its rule.

    `device` is where `.cuda()` goes, and where tensors are made that do not say where. Should that leave the finding
    open, they are made on the processor, as NumPy needs them and a move to the device. Of other files of the `project`
    comes what is needed. Where it leaves the finding open, the file alone may not, or the other way round; `instead`:
    it is that other slice. Never raises for what the files contain.
    """
    if device == "cpu":
        return _slice(text, finding, page, device, device, project, instead=instead)
    there = _slice(text, finding, page, device, device, project, instead=instead)
    return _followed(there, lambda: _slice(text, finding, page, device, "cpu", project, instead=instead))


def _followed(piece: Slice, last: Callable[[], Slice]) -> Slice:
    before = piece.otherwise
    return replace(piece, otherwise=last if before is None else lambda: _followed(before(), last))


def _slice(
    text: str, finding: Finding, page: Page, device: str, made_on: str, project: Project | None, *, instead: bool
) -> Slice:
    confirm, told = _words(page.get("confirm", finding.variant)), finding
    notebook = cells(text) if finding.cell is not None else ()
    finding = in_text(finding, text)
    try:
        with deep_recursion():
            conditional = page.severity(finding.variant) is Severity.WARNING and bool(_SHARING & set(confirm))
            whole, finding = _linked(text, finding, project)
            elsewhere = any(step.span.start.row < 0 for step in finding.steps)
            if whole.rows > _MANY_ROWS and not elsewhere and not instead:
                # The smaller program first.
                alone = _slice(text, told, page, device, made_on, None, instead=False)
                return _followed(alone, lambda: _slice(text, told, page, device, made_on, project, instead=True))
            # Of a long program, what it takes to leave parts of it out is not tried again.
            brief = instead and whole.rows > _MANY_ROWS
            search = Search(whole.source, finding, confirm, device, made_on, conditional=conditional, brief=brief)
            search.of_forms = _OF_FORMS.search(page.get("raises", finding.variant)) is not None
            piece = Slice(
                finding.code,
                finding.variant,
                confirm,
                search.groups(),
                cells=notebook,
                elsewhere=_is_elsewhere(whole.source, finding, confirm),
                place=whole.place,
            )
            if not whole.above or elsewhere or instead:
                return piece
            return _followed(piece, lambda: _slice(text, told, page, device, made_on, None, instead=False))
    except (NotRunnable, RecursionError) as error:
        return Slice(finding.code, finding.variant, confirm, unsupported=str(error) or "the code nests too deeply")


def _is_elsewhere(source: Source, finding: Finding, confirm: tuple[str, ...]) -> bool:
    """Whether what is wrong happens on another device alone."""
    if "graph-kept" in confirm:
        return bool(only_elsewhere(source, finding))
    return {"raises", "values-differ"} <= set(confirm) and bool(copied_elsewhere(source, finding))


def _linked(text: str, finding: Finding, project: Project | None) -> tuple[Linked, Finding]:
    """The file with what it needs of others, and the finding in it."""
    whole = linked(text, finding, project) if project is not None else Linked(parse(text))
    placed = whole.finding(finding)
    if placed is None:
        raise NotRunnable("a step stands in another file")
    return whole, placed


def texts_of_others(text: str, finding: Finding, project: Project) -> tuple[tuple[str, str], ...]:
    """The other files, with their texts, that a verdict on a finding depends on."""
    try:
        return linked(text, in_text(finding, text), project).read
    except (NotRunnable, RecursionError):
        return ()


def _words(confirm: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in confirm.split(",") if part.strip())
