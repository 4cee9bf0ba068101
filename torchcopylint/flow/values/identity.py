"""Questions whether two names stand for one thing: `a is not b`, `id(a) == id(b)`, `a.data_ptr() == b.data_ptr()`.

Who asks that once both are bound knows that a write through one may be a write of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import How

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Link

_STORAGES = frozenset({"data", "storage", "untyped_storage"})


class Question(NamedTuple):
    """At `site`, it is asked whether two registers are one: one object, or (`memory`) one place in memory."""

    site: int
    registers: tuple[int, int]
    memory: bool


def questions(unit: t.Unit) -> Iterator[Question]:
    """Where a unit asks whether two things that have a name are one."""
    for event in unit.definitions:
        if isinstance(event, t.Logic) and event.symbol in ("is", "is not") and len(event.operands) == 2:
            yield Question(event.site, (event.operands[0], event.operands[1]), False)
        elif isinstance(event, t.Operate) and event.symbol in ("==", "!=") and len(event.operands) == 2:
            one, other = (_address_of(unit, operand) for operand in event.operands)
            if one is not None and other is not None and one[1] == other[1]:
                yield Question(event.site, (one[0], other[0]), one[1])


def _address_of(unit: t.Unit, register: int) -> tuple[int, bool] | None:
    """What an expression is the address of, and whether that of its memory rather than of the object."""
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Call) and len(event.arguments) == 1:
        function = unit.definitions[event.function] if event.function >= 0 else None
        named = isinstance(function, t.Load) and function.name == "id"
        return (event.arguments[0].register, False) if named else None
    if not isinstance(event, t.Invoke) or event.name != "data_ptr" or event.arguments:
        return None
    base = event.base
    above = unit.definitions[base]
    while isinstance(above, t.Invoke | t.Attribute) and above.name in _STORAGES:
        base = above.base
        above = unit.definitions[base]
    return base, True


def answers(question: Question, links: Sequence[Link]) -> bool:
    """Whether a question tells if two share that came to share by some links: a view is another object than its base,
    and what a conversion has returned may be what it was given."""
    shared = max((link.site for link in links), default=-1)
    same = all(link.how is None or (link.how is How.CONDITIONAL and "shape" not in link.when) for link in links)
    return question.site > shared and (question.memory or same)
