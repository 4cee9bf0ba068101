"""What the first turn of a loop takes the place of for sure: `best, least = state, inf`, `if loss < least: best = ...`.

Whatever the loss is, it is less than where the search begins: what the name held before, nobody finds behind the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.exclusion import parts_of
from torchcopylint.flow.tapes.inlining import HELPERS_NAME
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

LARGE = 100
"""A number that a loss is less than when training begins, or is taken to be."""
_INFINITE = frozenset({"inf", "Inf", "infty", "Infinity", "maxsize", "float_info"})
_LESS = {"<": False, "<=": False, ">": True, ">=": True}
"""Whether an operator holds if what begins the search, to the right of it, is the least that there is."""


def by_first_turn(m: Machine, name: str, shared: int, write: int, site: int) -> bool:
    """Whether the first turn of a loop with a write binds a name anew, which what is read at a site was found under
    since before the loop."""
    around = uses.loops_around(m, write)
    for depth, loop in enumerate(around):
        if loop in uses.loops_around(m, shared):
            continue
        own = around[: depth + 1]
        # A helper that stands in the place of its call has names of its own.
        names = [one for one in m.index.binds if one == name or one.startswith(f"{name}{HELPERS_NAME}")]
        # `x += 1` binds what was there.
        anew = (bind for one in names for bind in m.index.binds[one] if not _is_augmented(m, bind))
        binds = [bind.site for bind in anew]
        inside = [bind for bind in binds if bind < site and uses.loops_around(m, bind)[: depth + 1] == own]
        if any(_is_reached_at_first(m, bind, own, site) for bind in inside):
            return True
    return False


def _is_augmented(m: Machine, bind: t.Bind) -> bool:
    return bind.value >= 0 and isinstance(m.unit.definitions[bind.value], t.Augment)


def _is_reached_at_first(m: Machine, bind: int, around: tuple[int, ...], site: int) -> bool:
    """Whether the first turn of a loop comes to a binding, if the site behind it is reached at all."""
    known = [part for one in m.index.assumed.get(site, ()) for part in parts_of(m, one.register, one.truth)]
    tests = [one for one in m.index.assumed.get(bind, ()) if uses.loops_around(m, one.site)[: len(around)] == around]
    inside = [part for one in tests for part in parts_of(m, one.register, one.truth)]
    return any(_begins(m, *part, around[-1]) for part in inside) and all(
        _begins(m, *part, around[-1])
        or _is_a_turn(m, *part)
        or any(part[1] == truth and _is_same(m, part[0], register) for register, truth in known)
        for part in inside
    )


def _begins(m: Machine, register: int, truth: bool, loop: int) -> bool:
    """Whether a test holds on the first turn of a loop, for where the search begins."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Logic) and event.symbol == "not":
        return _begins(m, event.operands[0], not truth, loop)
    if isinstance(event, t.Logic) and event.symbol in ("and", "or"):
        holding = [_begins(m, operand, truth, loop) for operand in event.operands]
        return all(holding) if event.symbol == ("and" if truth else "or") else any(holding)
    if isinstance(event, t.Logic) and event.symbol == ("is" if truth else "is not"):
        start, none = (m.unit.definitions[operand] for operand in event.operands)
        began = _start(m, start, loop)
        return isinstance(none, t.Const) and none.value is None and isinstance(began, t.Const) and began.value is None
    if isinstance(event, t.Operate) and event.symbol in _LESS and len(event.operands) == 2:
        least = _LESS[event.symbol] == truth
        left, right = event.operands
        return _is_extreme(m, right, loop, least) or _is_extreme(m, left, loop, not least)
    return False


def _start(m: Machine, event: t.Event | None, loop: int) -> t.Event | None:
    """What a name was bound to before a loop, if the first turn looks at that."""
    binds = m.index.binds.get(event.name, ()) if isinstance(event, t.Load) else ()
    before = [bind for bind in binds if isinstance(event, t.Load) and bind.site < event.site]
    if not before or loop in uses.loops_around(m, before[-1].site) or before[-1].value < 0:
        return None
    made = m.unit.definitions[before[-1].value]
    if isinstance(made, t.Unpack):
        parts = m.unit.definitions[made.value]
        items = parts.items if isinstance(parts, t.Make) else ()
        return m.unit.definitions[items[made.position]] if 0 <= made.position < len(items) else None
    return made


def _is_extreme(m: Machine, register: int, loop: int, least: bool) -> bool:
    """Whether the search begins with a number than which none is worse: an infinite one, a large one, or, where more is
    better, none at all."""
    began = _start(m, m.unit.definitions[register], loop)
    if began is None:
        return False
    if isinstance(began, t.Const) and isinstance(began.value, int | float) and not isinstance(began.value, bool):
        return began.value <= 0 if least else began.value >= LARGE
    out = getattr(began, "out", -1)
    parts = uses.expression(m, out, "") if out >= 0 else [began]
    texts = [part.value.lower() for part in parts if isinstance(part, t.Const) and isinstance(part.value, str)]
    named = any(isinstance(part, t.Attribute) and part.name in _INFINITE for part in parts)
    numbers = [part.value for part in parts if isinstance(part, t.Const) and isinstance(part.value, int | float)]
    if not named and not {"inf", "-inf", "infinity", "-infinity", "+inf"} & set(texts):
        return False
    turned = any(isinstance(part, t.Operate) and part.symbol == "-" and len(part.operands) == 1 for part in parts)
    below = turned or any(text.startswith("-") for text in texts) or any(number < 0 for number in numbers)
    return below == least


def _is_a_turn(m: Machine, register: int, truth: bool) -> bool:
    """Whether a test holds on one of the turns of an inner loop, which goes through what is written out: `for phase in
    ("train", "val")`, and `if phase == "val"`."""
    event = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(event, t.Operate) or event.symbol != ("==" if truth else "!="):
        return False
    told, constant = (m.unit.definitions[operand] for operand in event.operands)
    bound = uses.bindings_before(m, told) if isinstance(told, t.Load) else []
    element = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    all_of_them = m.unit.definitions[element.iterable] if isinstance(element, t.Iterate) else None
    items = [m.unit.definitions[item] for item in all_of_them.items] if isinstance(all_of_them, t.Make) else []
    values = [item.value for item in items if isinstance(item, t.Const)]
    return isinstance(constant, t.Const) and constant.value in values


def _is_same(m: Machine, one: int, other: int) -> bool:
    """Whether two tests ask the same of the same names and fields, which nothing sets in between."""
    if one == other:
        return True
    here, there = (m.unit.definitions[register] if register >= 0 else None for register in (one, other))
    if isinstance(here, t.Operate | t.Logic):
        return (
            isinstance(there, type(here))
            and here.symbol == there.symbol
            and len(here.operands) == len(there.operands)
            and all(_is_same(m, *pair) for pair in zip(here.operands, there.operands, strict=True))
        )
    if isinstance(here, t.Const):
        return isinstance(there, t.Const) and here.value == there.value
    text = naming.text_of(m, one)
    return bool(text) and text == naming.text_of(m, other) and _stays(m, here)


def _stays(m: Machine, event: t.Event | None) -> bool:
    """Whether a name or a field is the same wherever the unit asks for it."""
    if isinstance(event, t.Load):
        return len([use for use in m.index.uses.get(event.name, ()) if not use.loads]) <= 1
    return (
        isinstance(event, t.Attribute)
        and event.name not in m.index.stores
        and _stays(m, m.unit.definitions[event.base])
    )
