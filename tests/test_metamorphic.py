"""The examples of the pages in other words: other names, imports, surroundings, bindings. The findings stay.

That a variant still does what the original does is asked of torch, which runs both. Where the linter's findings differ,
`metamorphic/known.py` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import pytest
from metamorphic import imports, renaming, respelling, wrapping
from metamorphic.known import BY_DESIGN, CANNOT_TELL, HINTS, KNOWN, Difference, accepted
from metamorphic.programs import Program, Variant, original, programs, seen, words
from metamorphic.torch_runs import Effect, effects

from torchcopylint.pages import load_pages

GROUPS: Mapping[str, Mapping[str, Callable[[Program], Variant | None]]] = {
    "names": {
        "variables renamed": renaming.renamed_variables,
        "attributes renamed": renaming.renamed_attributes,
    },
    "imports": {
        **{style: partial(imports.restyled, style=style) for style in imports.STYLES},
        "every member imported": imports.direct,
    },
    "surroundings": {
        **{construct: partial(wrapping.wrapped, construct=construct) for construct in wrapping.CONSTRUCTS},
        "all in a function": wrapping.enclosed,
    },
    "bindings": {
        **{template: partial(respelling.respelled, template=template) for template in respelling.TEMPLATES},
        "variables as attributes of self": respelling.on_self,
    },
}
PROGRAMS = [pytest.param(program, id=program.name) for program in programs()]


@cache
def _variants(program: Program) -> dict[str, dict[str, Variant]]:
    """The variants of a program by group and name; without those that a transformation does not change."""
    return {
        group: {name: variant for name, transform in transforms.items() if (variant := transform(program))}
        for group, transforms in GROUPS.items()
    }


@cache
def _effects(program: Program) -> dict[str, Effect]:
    """What the program does (under the empty name) and what each variant does."""
    variants = {name: variant for group in _variants(program).values() for name, variant in group.items()}
    return dict(zip(["", *variants], effects(original(program), *variants.values()), strict=True))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_other_words_has_the_same_findings(program: Program, group: str) -> None:
    variants = _variants(program)[group]
    done = _effects(program)
    changed = {name: done[name] for name in variants if done[name] != done[""]}
    assert changed == {}, "these variants are not the same program"

    found = {name: _difference(program, variant) for name, variant in variants.items()}
    assert _nonempty(found) == _nonempty({name: accepted(program.name, name) for name in variants})


def _difference(program: Program, variant: Variant) -> Difference:
    before, after = seen(original(program)), seen(variant)
    return Difference(tuple(sorted(map(str, before - after))), tuple(sorted(map(str, after - before))))


def _nonempty(found: Mapping[str, Difference]) -> dict[str, Difference]:
    return {name: difference for name, difference in found.items() if difference != Difference()}


@pytest.mark.parametrize("program", PROGRAMS)
def test_messages_name_the_variables_of_the_program(program: Program) -> None:
    renamed = renaming.renamed_variables(program)
    if accepted(program.name, "variables renamed") == Difference():
        assert words(renamed) == words(original(program))


def test_every_transformation_changes_programs() -> None:
    changed = {name for program in programs() for group in _variants(program).values() for name in group}
    assert changed == {name for transforms in GROUPS.values() for name in transforms}


def test_the_tables_speak_of_programs_and_transformations_that_exist() -> None:
    names = {program.name for program in programs()}
    assert {entry.program for entry in KNOWN + HINTS + BY_DESIGN} <= names
    pairs = [(entry.program, name) for entry in KNOWN + HINTS + BY_DESIGN for name in entry.transformations]
    assert len(pairs) == len(set(pairs))


def test_rules_that_output_cannot_show_are_those_whose_pages_say_so() -> None:
    silent = set()
    for code, page in load_pages().items():
        words = {word for key, word in page.keys.items() if key.partition(".")[0] == "confirm"}
        if words and words <= {"equivalent", "version-bypassed"}:
            silent.add(code)
    assert set(CANNOT_TELL) == silent
