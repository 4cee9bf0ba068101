"""The examples of a rule's page as slices: whole programs already, with their marks beside the code."""

from __future__ import annotations

from dataclasses import replace

from torchcopylint.base.finding import Role
from torchcopylint.pages import Example, Page
from torchcopylint.verify.model import Attempt, Group, Mark, Slice

SEED = 0


def slices_of(page: Page, example: Example) -> tuple[Slice, ...]:
    """One slice for each variant that the example's markers name. `user_row` is the row of the page."""
    variants = dict.fromkeys(mark.variant for mark in example.marks if mark.what == "finding")
    marks = tuple(replace(mark, user_row=mark.row + example.row - 1) for mark in _marks(page, example))
    return tuple(slice_with(page, example.code, marks, variant) for variant in variants)


def slice_with(page: Page, code: str, marks: tuple[Mark, ...], variant: str = "") -> Slice:
    """A program as a slice with these marks, to be run once."""
    words = tuple(page.get("confirm", variant).replace(",", " ").split())
    return Slice(page.code, variant, words, (Group("", (Attempt(code, marks, SEED),)),))


def mark_at(role: Role, row: int) -> Mark:
    """A mark on a whole row (1-based)."""
    return Mark(role, row, row, 0, 0, row)


def _marks(page: Page, example: Example) -> tuple[Mark, ...]:
    roles = {role.value: role for role in Role}
    found = [mark_at(roles[mark.what], mark.row) for mark in example.marks if mark.what in roles]
    at_finding = {mark.row for mark in example.marks if mark.what == "finding"}
    variants = sorted({mark.variant for mark in example.marks if mark.what == "finding"})
    blame = page.blame(variants[0] if variants else "")
    if not any(mark.role is blame for mark in found):
        found += [mark_at(blame, row) for row in sorted(at_finding)]
    return tuple(found)
