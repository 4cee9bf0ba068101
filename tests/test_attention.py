"""Which turns of loops the observer of verification looks at."""

from __future__ import annotations

from torchcopylint.verify.child.attention import MOST_TURNS, Attention

LOOP, INNER = 7, 8


def watched(attention: Attention, turns: int, marks: dict[int, int], *, loop: int = LOOP) -> list[int]:
    """The turns of one execution of a loop that are looked at; `marks` says in which turn which mark first passes."""
    running, found = object(), []
    for turn in range(turns):
        attention.turn(loop, running)
        if turn in marks:
            attention.passed(marks[turn], first=True)
        if not attention.asleep:
            found.append(turn)
    attention.over(running)
    return found


def test_the_first_turns_are_watched() -> None:
    attention = Attention([])
    assert watched(attention, 10, {}) == [0, 1, 2]
    assert MOST_TURNS == 3
    assert attention.stale
    assert not attention.asleep


def test_another_execution_of_the_loop_is_not_new() -> None:
    attention = Attention([])
    watched(attention, 10, {})
    assert watched(attention, 10, {}) == []


def test_what_happens_for_the_first_time_is_watched_and_so_are_the_turns_behind_it() -> None:
    attention = Attention([False])
    assert watched(attention, 12, {6: 0}) == [0, 1, 2, 6, 7, 8, 9]


def test_a_mark_around_a_loop_makes_it_new() -> None:
    attention = Attention([False, False])
    watched(attention, 5, {})
    attention.passed(0, first=False)
    assert watched(attention, 5, {}) == [0, 1, 2]


def test_a_loop_that_keeps_what_is_read_after_it_is_watched_to_its_end() -> None:
    attention = Attention([True, False])
    assert watched(attention, 8, {0: 0}) == list(range(8))


def test_a_loop_in_which_everything_happens_is_not() -> None:
    attention = Attention([True, False])
    assert watched(attention, 8, {0: 0, 1: 1}) == [0, 1, 2, 3, 4]


def test_a_loop_inside_a_sleeping_one_does_not_wake_it() -> None:
    attention = Attention([])
    outer = object()
    for _ in range(MOST_TURNS + 1):
        attention.turn(LOOP, outer)
    assert watched(attention, 2, {}, loop=INNER) == []
    assert attention.asleep
    attention.over(outer)
    assert not attention.asleep


def test_always_is_always() -> None:
    attention = Attention([])
    attention.always = True
    assert watched(attention, 9, {}) == list(range(9))
