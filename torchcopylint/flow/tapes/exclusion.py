"""Conditions that exclude one another: what stands under `mode == "a"` never meets what stands under `mode == "b"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS
from torchcopylint.flow.tapes import turns, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def exclude(m: Machine, one: int, other: int) -> bool:
    """Whether the events at two sites of a unit are never both run in one call, as their conditions say."""
    known = m.index.exclusions.get((one, other))
    if known is None:
        known = m.index.exclusions[one, other] = one != other and _exclude(m, one, other)
    return known


def _exclude(m: Machine, one: int, other: int) -> bool:
    return any(_contradict(here, there) for here in _conditions(m, one) for there in _conditions(m, other))


def _contradict(one: tuple[str, object, bool], other: tuple[str, object, bool]) -> bool:
    """Whether two conditions never hold together: of `w == "a"` and `w == "b"`, or `w in ("b", "c")`."""
    if one[0] != other[0] or not (one[2] or other[2]):
        return False
    if one[2] and other[2]:
        return _constants(one).isdisjoint(_constants(other))
    held, refused = (one, other) if one[2] else (other, one)
    return _constants(held) <= _constants(refused)


def _implies(known: tuple[str, object, bool], wanted: tuple[str, object, bool]) -> bool:
    """Whether a condition holds wherever another one does: `w in ("a", "b")` where `w == "a"`."""
    if known == wanted:
        return True
    both = known[0] == wanted[0] and known[2] and wanted[2] and isinstance(wanted[1], frozenset)
    return both and _constants(known) <= _constants(wanted)


def _constants(condition: tuple[str, object, bool]) -> frozenset[object]:
    """What something is compared with, one constant or several."""
    return condition[1] if isinstance(condition[1], frozenset) else frozenset({condition[1]})


def met(m: Machine, load: t.Load, refs: tuple[int, ...]) -> tuple[int, ...]:
    """Which of the objects that a name may hold it does where it is loaded, as conditions say: what was bound under
    `if self.whole:` is nothing that stands under `if not self.whole:`."""
    aside = m.index.aside.get(load.out)
    if aside is None:
        binds = m.index.binds.get(load.name, ())
        arms = m.index.on_arms
        never = [
            bind
            for bind in (binds if load.site in arms and any(bind.site in arms for bind in binds) else ())
            if bind.value >= 0 and exclude(m, bind.site, load.site)
        ]
        kept = [bind.value for bind in binds if bind not in never] if never else []
        aside = m.index.aside[load.out] = ([bind.value for bind in never], kept)
    if not aside[0]:
        return refs
    gone, held = ({ref | 1 for register in part if register >= 0 for ref in m.value(register).refs} for part in aside)
    return tuple(ref for ref in refs if ref | 1 not in gone - held) or refs


def some_follow(m: Machine, sites: list[int], other: int) -> bool:
    """Whether who comes to the site `other` has come by one of some sites in front of it, as their conditions say: each
    of its conditions holds there as well, or two of them stand on the arms of one such condition. Of `if a or b:`, the
    sites that stand under `a` and those that stand under `b` do together."""
    known = set(_conditions(m, other))
    return _some_follow(m, sites, other, known) or any(
        all(_some_follow(m, sites, other, {*known, case}) for case in cases) for cases in _cases(m, other)
    )


def _cases(m: Machine, site: int) -> list[list[tuple[str, object, bool]]]:
    """Of each condition at a site that holds if one of several does, these, if all of them are understood."""
    found = []
    for one in _assumed(m, site):
        for register, truth in parts_of(m, one.register, one.truth):
            event = m.unit.definitions[register] if register >= 0 else None
            if isinstance(event, t.Logic) and event.symbol == ("or" if truth else "and"):
                cases = [_asked(m, operand, truth) for operand in event.operands]
                found.append([case for case in cases if case is not None] if None not in cases else [])
    return [cases for cases in found if cases]


def _some_follow(m: Machine, sites: list[int], other: int, known: set[tuple[str, object, bool]]) -> bool:
    there = _assumed(m, other)
    open_ones: list[tuple[str, object, bool]] = []
    for site in sites:
        # What is asked once, for both, may be anything: `while not done: ...`.
        own = [one for one in _assumed(m, site) if one not in there]
        asked = [_asked(m, *part) for one in own for part in parts_of(m, one.register, one.truth)]
        if len(own) == 1:
            # Whatever the test is: what stands on its other arm has the same one.
            open_ones.append((f"@{own[0].register}", True, own[0].truth))
        if None in asked:
            continue
        left = [one for one in asked if one is not None and one not in known]
        if not left:
            return True
        if len(left) == 1:
            open_ones.append(left[0])
    return any((subject, held, not truth) in open_ones for subject, held, truth in open_ones)


def goes_with(m: Machine, one: int, other: int) -> bool:
    """Whether the event at `one` stands under conditions that are all understood, and all hold at `other` as well."""
    here, there = [_asked(m, test.register, test.truth) for test in _assumed(m, one)], _conditions(m, other)
    return bool(here) and all(part is not None and any(_implies(known, part) for known in there) for part in here)


def goes_along(m: Machine, one: int, other: int) -> bool:
    """Whether the event at `one` stands on no arm of a condition that the one at `other` does not stand on."""
    return {(test.register, test.truth) for test in _assumed(m, one)} <= {
        (test.register, test.truth) for test in _assumed(m, other)
    }


def is_aside(m: Machine, site: int) -> bool:
    """Whether a site stands under a condition, other than that the module is in training."""
    training = any(text.endswith(".training") and held for text, _, held in _conditions(m, site))
    return uses.on_some_paths(m, site) and not training


def is_told_by_kind(m: Machine, site: int) -> bool:
    """Whether a site is reached whichever way the unit goes, but for tests that ask what kind of thing something is."""
    asked = [m.unit.definitions[one.register] for one in _assumed(m, site)]
    return all(isinstance(event, t.Call) and naming.text_of(m, event.function) in _KIND_TESTS for event in asked) and (
        bool(asked) or not uses.on_some_paths(m, site)
    )


_KIND_TESTS = frozenset({"isinstance", "hasattr"})


def is_told_by_itself(m: Machine, site: int, place: str) -> bool:
    """Whether a site is reached wherever what stands at a place is not as it is wanted, as a comparison of it says:
    `if model.fc.out_features != n: model.fc = ...`, or of what was computed from it (`missing = n - model.fc.size`)."""
    asked = _assumed(m, site)
    return bool(asked) and all(_measures(m, one.register, place) for one in asked)


def _measures(m: Machine, register: int, place: str) -> bool:
    """Whether a condition compares a number that something at a place has, or a difference to one."""
    computed = uses.expression(m, register, "")
    counts = any(
        isinstance(part, t.Operate) and (part.symbol in COMPARISONS or part.symbol == "-") for part in computed
    )
    looks = (part for part in computed if isinstance(part, t.Attribute))
    return counts and any(naming.text_of(m, part.out).startswith(f"{place}.") for part in looks)


def is_of_one_turn(m: Machine, site: int) -> bool:
    """Whether a site is reached on one turn of a loop that is told by its number, such as the last: `i == n - 1`."""
    for one in _assumed(m, site):
        event = m.unit.definitions[one.register] if one.register >= 0 else None
        if not isinstance(event, t.Operate) or event.symbol != ("==" if one.truth else "!="):
            continue
        for counted, number in zip(event.operands, reversed(event.operands), strict=False):
            constant = m.unit.definitions[number]
            loads = [part for part in uses.expression(m, counted, "") if isinstance(part, t.Load)]
            bound = [register for load in loads for register in uses.bindings_before(m, load)]
            first = isinstance(constant, t.Const) and constant.value == 0
            if not first and any(uses.from_iteration(m, register) for register in bound):
                return True
    return False


def is_of_last_turn(m: Machine, site: int) -> bool:
    """Whether a site is reached on the last turn of a loop alone: `i == n - 1`, `i + 1 == n`."""
    for one in _assumed(m, site):
        for register, truth in parts_of(m, one.register, one.truth):
            event = m.unit.definitions[register] if register >= 0 else None
            if isinstance(event, t.Operate) and event.symbol == ("==" if truth else "!=") and _counts_to_end(m, event):
                return True
    return False


def comes_at_last(m: Machine, site: int) -> bool:
    """Whether a site in a loop, if it is ever reached, is reached on the last turn: `if i % k == 0 or i == n - 1`.

    What does not change while the loop runs holds on its last turn if it ever does.
    """
    return all(_holds_at_last(m, one.register, one.truth) for one in _assumed_in_loop(m, site))


def _assumed_in_loop(m: Machine, site: int) -> list[t.Assume]:
    """The tests within the innermost loop around a site whose outcome is known there."""
    loop = m.index.loops.get(site, ())
    return [one for one in _assumed(m, site) if m.index.loops.get(one.site, ()) == loop]


def _holds_at_last(m: Machine, register: int, truth: bool) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Logic) and event.symbol == "not":
        return _holds_at_last(m, event.operands[0], not truth)
    if isinstance(event, t.Logic) and event.symbol in ("and", "or"):
        holding = [_holds_at_last(m, operand, truth) for operand in event.operands]
        return all(holding) if event.symbol == ("and" if truth else "or") else any(holding)
    if isinstance(event, t.Operate) and event.symbol == ("==" if truth else "!=") and _counts_to_end(m, event):
        return True
    return _is_constant(m, register) or _tells_the_last(m, event, truth)


def _tells_the_last(m: Machine, event: t.Event | None, truth: bool) -> bool:
    """Whether a test holds for the last of the constants that a loop goes through: `for phase in ("train", "val")`."""
    if not isinstance(event, t.Operate) or event.symbol not in ("==", "!=") or len(event.operands) != 2:
        return False
    told, constant = (m.unit.definitions[operand] for operand in event.operands)
    bound = uses.bindings_before(m, told) if isinstance(told, t.Load) else []
    element = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    all_of_them = m.unit.definitions[element.iterable] if isinstance(element, t.Iterate) else None
    if not isinstance(all_of_them, t.Make) or not all_of_them.items or not isinstance(constant, t.Const):
        return False
    last = m.unit.definitions[all_of_them.items[-1]]
    return isinstance(last, t.Const) and (last.value == constant.value) == (truth == (event.symbol == "=="))


def goes_with_flag(m: Machine, name: str, bound: int, site: int) -> bool:
    """Whether a name, bound at the site `bound`, is looked at only where a flag says that it was bound on this turn.

    `changed = False; if ...: changed, state = True, new; if changed: use(state)`: the flag is put down at the head of
    each turn, and goes up nowhere but where the name is bound.
    """
    loops = m.index.loops.get(bound, ())
    if not loops or m.index.loops.get(site, ())[: len(loops)] != loops:
        return False
    binding = [bind.site for bind in m.index.binds.get(name, ())]
    for one in _assumed(m, site):
        for register, truth in parts_of(m, one.register, one.truth):
            flag = m.unit.definitions[register] if register >= 0 else None
            if truth and isinstance(flag, t.Load) and _is_raised_with(m, flag.name, binding, site):
                return True
    return False


def _is_raised_with(m: Machine, flag: str, binding: list[int], site: int) -> bool:
    """Whether a flag is put down on the way to a site, and goes up only on arms that also reach one of the bindings."""
    binds = m.index.binds.get(flag, ())
    values = [m.unit.definitions[bind.value] if bind.value >= 0 else None for bind in binds]
    down = [bind for bind, made in zip(binds, values, strict=True) if isinstance(made, t.Const) and made.value is False]
    up = [bind for bind, made in zip(binds, values, strict=True) if isinstance(made, t.Const) and made.value is True]
    arms = [arm for branch in m.index.of(t.Branch) for arm in branch.arms]
    reached = [{event.site for event in arm} for arm in arms if any(event.site in binding for event in t.events(arm))]
    together = all(any(bind.site in arm for arm in reached) for bind in up)
    put_down = turns.bound_on_the_way(m, flag, site) in {bind.site for bind in down}
    return len(up) + len(down) == len(binds) and bool(up) and together and put_down


def _is_constant(m: Machine, register: int) -> bool:
    """Whether a name, or a question to one, has the same answer whenever the unit asks."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Operate | t.Logic):
        return all(_is_constant(m, operand) for operand in event.operands)
    return isinstance(event, t.Const) or (event is not None and _stays(m, register))


def _counts_to_end(m: Machine, event: t.Operate) -> bool:
    """Whether the number of a turn is compared with a number less one, or what is one more with a number."""
    for counted, number in zip(event.operands, reversed(event.operands), strict=False):
        loads = [part for part in uses.expression(m, counted, "") if isinstance(part, t.Load)]
        bound = [register for load in loads for register in uses.bindings_before(m, load)]
        if any(uses.from_iteration(m, register) for register in bound):
            return _differs_by_one(m, number, "-") or _differs_by_one(m, counted, "+")
    return False


def _differs_by_one(m: Machine, register: int, symbol: str) -> bool:
    event = m.unit.definitions[register]
    if not isinstance(event, t.Operate) or event.symbol != symbol or len(event.operands) != 2:
        return False
    constant = m.unit.definitions[event.operands[1]]
    return isinstance(constant, t.Const) and constant.value == 1


def parts_of(m: Machine, register: int, truth: bool) -> list[tuple[int, bool]]:
    """What is known of the parts of a condition when its outcome is: all of `a and b` hold if that does."""
    event = m.unit.definitions[register] if register >= 0 else None
    if event.__class__ is t.Load:
        # `last = i == n - 1`, and then `if last:`.
        bound = uses.bindings_before(m, event)
        made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
        return parts_of(m, bound[0], truth) if isinstance(made, t.Operate | t.Logic) else [(register, truth)]
    if event.__class__ is t.Logic and event.symbol == "not":
        return parts_of(m, event.operands[0], not truth)
    if event.__class__ is t.Logic and event.symbol == ("and" if truth else "or"):
        return [part for operand in event.operands for part in parts_of(m, operand, truth)]
    return [(register, truth)]


def _conditions(m: Machine, site: int) -> list[tuple[str, object, bool]]:
    """What holds at a site: that something, by its text, equals a constant (or is true), or does not."""
    known = m.index.conditions.get(site)
    if known is None:
        known = m.index.conditions[site] = _found_conditions(m, site)
    return known


def _found_conditions(m: Machine, site: int) -> list[tuple[str, object, bool]]:
    parts = [part for one in _assumed(m, site) for part in parts_of(m, one.register, one.truth)]
    return [held for part in parts if (held := _asked(m, *part)) is not None]


def _assumed(m: Machine, site: int) -> tuple[t.Assume, ...]:
    """The tests whose outcome is known at a site."""
    return m.index.assumed.get(site, ())


def _asked(m: Machine, register: int, truth: bool) -> tuple[str, object, bool] | None:
    event = m.unit.definitions[register] if register >= 0 else None
    if event.__class__ is t.Logic and event.symbol == "not":
        return _asked(m, event.operands[0], not truth)
    if event.__class__ is t.Operate and event.symbol in ("==", "!=") and len(event.operands) == 2:
        constant = m.unit.definitions[event.operands[1]]
        subject = _subject(m, event.operands[0])
        if isinstance(constant, t.Const) and subject:
            return subject, constant.value, truth == (event.symbol == "==")
        return None
    if event.__class__ is t.Logic and event.symbol in ("in", "not in") and len(event.operands) == 2:
        subject, members = _subject(m, event.operands[0]), _members(m, event.operands[1])
        return (subject, members, truth == (event.symbol == "in")) if subject and members else None
    subject = _subject(m, register)
    return (subject, True, truth) if subject else None


def _members(m: Machine, register: int) -> frozenset[object]:
    """What stands in a display of constants; nothing of another one."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Make) or made.kind not in ("list", "tuple", "set") or any(made.stars):
        return frozenset()
    items = [m.unit.definitions[item] if item >= 0 else None for item in made.items]
    plain = all(isinstance(item, t.Const) and isinstance(item.value, int | str | None) for item in items)
    return frozenset(item.value for item in items if isinstance(item, t.Const)) if plain else frozenset()


def _subject(m: Machine, register: int) -> str:
    """What is asked for, such that the same words mean the same value; nothing if it may change in between."""
    if _stays(m, register):
        return naming.text_of(m, register)
    event = m.unit.definitions[register] if register >= 0 else None
    if event.__class__ is not t.Load:
        return ""
    bound = uses.bindings_before(m, event)
    binds = [bind for bind in m.index.binds.get(event.name, ()) if bind.value in bound]
    if len(bound) == 1 and len(binds) == 1 and not m.index.loops.get(binds[0].site):
        # Of several bindings this is the one that counts here, as in the cells of a notebook.
        return f"{naming.text_of(m, register)}@{binds[0].site}"
    return ""


def _stays(m: Machine, register: int) -> bool:
    """Whether a name or a field is the same wherever the unit asks for it: nothing sets it twice."""
    event = m.unit.definitions[register]
    if event.__class__ is t.Load:
        bound = [use for use in m.index.uses.get(event.name, ()) if not use.loads]
        return len(bound) <= 1 and not any(use.loops for use in bound)
    return event.__class__ is t.Attribute and event.name not in m.index.stores and _stays(m, event.base)
