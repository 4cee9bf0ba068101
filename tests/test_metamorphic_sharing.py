"""The examples of the pages with a copy where they share, without one where they copy, and with the write at the end.

Torch decides what has become of the effect: it runs the original, the variant and, where that tells more, the variant
with copies in it. The linter has to agree. Where the two cannot be compared, `metamorphic/known.py` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from metamorphic import sharing
from metamorphic.known import Difference, accepted
from metamorphic.programs import Program, Variant, original, programs, seen
from metamorphic.torch_runs import effects, printed

BAD = [program for program in programs() if program.example.kind == "bad"]
SHARING = [program for program in BAD if program.rows("shared")]


@cache
def _kinds(program: Program) -> Mapping[str, str]:
    return sharing.kinds(printed(sharing.probed(program, _places(program))))


@cache
def _places(program: Program) -> tuple[sharing.Shared, ...]:
    return sharing.shared_expressions(program)


def _of_the_page(program: Program, variant: Variant) -> set[str]:
    """The findings of the page's own rule."""
    return {str(finding) for finding in seen(variant) if finding.code == program.page.code}


def _ids(values: list[Program]) -> list[object]:
    return [pytest.param(program, id=program.name) for program in values]


@pytest.mark.parametrize("program", _ids(SHARING))
def test_a_copy_at_every_share_silences_the_rule_where_torch_shows_no_effect(program: Program) -> None:
    variant = sharing.copied(program, _places(program), _kinds(program))
    before, after = effects(original(program), variant)
    kept = _of_the_page(program, original(program)) if before == after else set()
    assert _difference(kept, _of_the_page(program, variant)) == accepted(program.name, "copied at every share")


@pytest.mark.parametrize("program", _ids(SHARING))
def test_a_copy_at_every_share_brings_no_new_finding(program: Program) -> None:
    variant = sharing.copied(program, _places(program), _kinds(program))
    # A copy of what is a copy already is redundant, which is true, and another matter.
    allowed = {finding.code for finding in seen(original(program))} | program.page.supersedes | {"TCL904"}
    assert {finding.code for finding in seen(variant)} <= allowed


@pytest.mark.parametrize("program", _ids([program for program in SHARING if len(_places(program)) > 1]))
def test_a_copy_at_one_of_several_shares_does_what_torch_says(program: Program) -> None:
    variants = {place.place: sharing.copied(program, [place], _kinds(program)) for place in _places(program)}
    everywhere = sharing.copied(program, _places(program), _kinds(program))
    before, without, *after = effects(original(program), everywhere, *variants.values())
    told = _of_the_page(program, original(program))
    for place, variant, effect in zip(_places(program), variants.values(), after, strict=True):
        found = _of_the_page(program, variant)
        if effect in (before, without):
            expected = told if effect == before else set()
            assert _difference(expected, found) == accepted(program.name, f"copied at {place.place}")
        else:
            # Some of the effects are gone: so are the findings that rest on this share, and no others.
            rest = {str(f) for f in seen(original(program)) if ("shared", place.row) not in f.steps}
            assert found == told & rest
            assert found != told


@pytest.mark.parametrize(
    "program", _ids([p for p in SHARING if any(sharing.copied_in_turn(p, place) for place in _places(p))])
)
def test_a_copy_for_every_repetition_silences_the_rule(program: Program) -> None:
    (variant,) = [v for place in _places(program) if (v := sharing.copied_in_turn(program, place))]
    before, after = effects(original(program), variant)
    assert after != before
    assert _of_the_page(program, variant) == set()


@pytest.mark.parametrize("program", _ids([program for program in SHARING if sharing.named_shares(program)]))
def test_a_copy_that_nobody_uses_changes_nothing(program: Program) -> None:
    variant = sharing.with_spare_copy(program, _kinds(program))
    before, after = effects(original(program), variant)
    assert after == before
    assert seen(variant) == seen(original(program))


@pytest.mark.parametrize("program", _ids([program for program in BAD if sharing.can_move(program)]))
def test_a_write_behind_the_last_read_is_told_only_where_torch_still_shows_it(program: Program) -> None:
    moved = sharing.write_moved_back(program, _places(program), _kinds(program))
    there, with_copies, without_write = effects(*moved)
    # No read sees the write if copies, or where there is nothing to copy its absence, make no difference.
    gone = there == (with_copies if _places(program) else without_write)
    found = _of_the_page(program, moved.program)
    missing = () if gone or found else (program.page.code,)
    extra = tuple(sorted(found)) if gone else ()
    assert Difference(missing, extra) == accepted(program.name, "write moved back")


@pytest.mark.parametrize("program", _ids([p for p in programs() if any(sharing.without_copies(p))]))
def test_a_copy_left_out_is_told_where_torch_shows_that_it_was_needed(program: Program) -> None:
    variants = dict(sharing.without_copies(program))
    before, *after = effects(original(program), *variants.values())
    for (name, variant), effect in zip(variants.items(), after, strict=True):
        new = {(f.row, f.code, f.variant) for f in seen(variant)}
        new -= {(f.row, f.code, f.variant) for f in seen(original(program))}
        missing = () if new or effect == before else ("any finding",)
        extra = tuple(sorted(code for _, code, _ in new)) if effect == before else ()
        assert Difference(missing, extra) == accepted(program.name, name), name


def _difference(expected: set[str], found: set[str]) -> Difference:
    return Difference(tuple(sorted(expected - found)), tuple(sorted(found - expected)))
