"""What grew faster than the program once: counted in calls of functions, which are the same from run to run."""

from __future__ import annotations

import sys
from itertools import product
from types import FrameType

import pytest

from torchcopylint.flow import tape as t
from torchcopylint.flow.examine import examine
from torchcopylint.flow.lower import lower
from torchcopylint.flow.tapes.arms import Arms
from torchcopylint.source.tree import parse


def calls(text: str) -> int:
    """How often functions are called, and generators gone on with, while a program is examined."""
    program = lower(parse(text)).program
    count = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        examine(program)
    finally:
        sys.setprofile(before)
    return count


def elifs(count: int) -> str:
    """A long chain of conditions on what a value is, each with a call that hands the value on."""
    arms = "".join(f"        elif kind == {n}:\n            return self.wrapped(value, kind)\n" for n in range(count))
    return (
        "class Builder:\n    def wrapped(self, value, kind):\n        return [value, kind]\n\n"
        "    def wrap(self, value, kind):\n        if value is None:\n            return None\n"
        f"{arms}        return value\n"
    )


def entries(count: int) -> str:
    """A dictionary of many entries, under names that would set one network apart from another."""
    return "table = {\n" + "".join(f'    "old_{n}": {n},\n' for n in range(count)) + "}\n"


def stacks(count: int) -> str:
    """Lists that are put into one another on many arms, and looked at."""
    arms = "".join(
        f"        elif code == {n}:\n            made = [code]\n            stack.append(made)\n"
        "            stack[-1].append(stack.pop())\n            print(stack)\n"
        for n in range(count)
    )
    head = "def load(codes):\n    stack = []\n    for code in codes:\n        if code is None:\n            pass\n"
    return f"{head}{arms}    return stack\n"


@pytest.mark.parametrize(("program", "size", "factor"), [(elifs, 40, 3), (entries, 200, 2.1), (stacks, 8, 10)])
def test_twice_as_long_is_not_much_more_than_twice_the_calls(program: object, size: int, factor: float) -> None:
    assert callable(program)
    calls(program(2))  # What is loaded once.
    assert calls(program(2 * size)) < factor * calls(program(size))


def are_apart(tape: t.Tape, one: int, other: int) -> bool:
    """The same as `Arms.are_apart`, by looking through the tape each time."""
    for event in tape:
        parts = t.inner_tapes(event)
        here = [number for number, part in enumerate(parts) if any(inner.site == one for inner in t.events(part))]
        there = [number for number, part in enumerate(parts) if any(inner.site == other for inner in t.events(part))]
        if here and there and here != there:
            return isinstance(event, t.Branch)
        if here and here == there and len(here) == 1:
            return are_apart(parts[here[0]], one, other)
    return False


NESTED = """
def f(x, y):
    if x:
        a = x if y else y
        for z in x:
            if z > 0:
                b = z
            elif z < 0:
                b = a
                try:
                    c = b()
                except ValueError:
                    c = [one for one in b if one or y]
                else:
                    c = b
                finally:
                    print(c)
            else:
                continue
        else:
            b = y
    else:
        b = y and x or (a if x else b)
    while b:
        if y:
            break
        b = b.next
    return b
"""


def test_on_which_arms_sites_stand_is_what_looking_through_the_tape_says() -> None:
    tape = lower(parse(NESTED)).program.units[1].tape
    arms = Arms(tape)
    sites = sorted({event.site for event in t.events(tape)})
    found = {(one, other): arms.are_apart(one, other) for one, other in product(sites, sites)}
    assert found == {(one, other): are_apart(tape, one, other) for one, other in product(sites, sites)}
    assert set(found.values()) == {True, False}
