"""The nearest right name for a wrong one."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str) -> int:
    """How many single-character edits separate two words.

    An edit inserts, deletes or replaces a character, or exchanges two neighbours (optimal string alignment).
    """
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, previous = previous, current
    return previous[-1]


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is nearest to `word`, letter case and `_` for `-` aside, or `None` if none is near.

    Near is at most one edit for every three characters of the longer word, so that a suggestion is rarely a guess.
    Among equally near candidates the first in sorted order wins.
    """
    folded = _fold(word[:100])
    best: tuple[int, str] | None = None
    for candidate in sorted(set(candidates)):
        limit = max(len(folded), len(candidate)) // 3
        if abs(len(folded) - len(candidate)) > limit:
            continue
        edits = distance(folded, _fold(candidate))
        if edits <= limit and (best is None or edits < best[0]):
            best = (edits, candidate)
    return best[1] if best else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean "x"?` with the nearest candidate, or an empty string."""
    name = nearest(word, candidates)
    return f"; did you mean `{name}`?" if name else ""


def _fold(word: str) -> str:
    return word.lower().replace("_", "-")
