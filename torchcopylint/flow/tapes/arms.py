"""On which arms of which conditions the events of a tape stand: looked up once, however many pairs of them are asked
about."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow import tape as t


class _Part(NamedTuple):
    """A tape inside of a bracket: the part around it (0 is the whole tape), the bracket, numbered in source order,
    which of its tapes this is, and whether the bracket is a condition. `depth` is in how many brackets it is."""

    around: int
    depth: int
    bracket: int
    number: int
    branches: bool


class Arms:
    """Where each site of one tape stands."""

    def __init__(self, tape: t.Tape) -> None:
        self._parts = [_Part(-1, 0, -1, -1, False)]
        self._of_site: dict[int, list[int]] = {}
        """The parts in which a site has events, itself and not only what is inside of them."""
        self._known: dict[tuple[int, int], bool] = {}
        pending = [(0, tape)]
        brackets = 0
        while pending:
            part, inner = pending.pop()
            depth = self._parts[part].depth + 1
            for event in inner:
                standing = self._of_site.setdefault(event.site, [])
                if not standing or standing[-1] != part:
                    standing.append(part)
                for number, below in enumerate(t.inner_tapes(event)):
                    pending.append((len(self._parts), below))
                    self._parts.append(_Part(part, depth, brackets, number, event.__class__ is t.Branch))
                brackets += 1

    def are_apart(self, one: int, other: int) -> bool:
        """Whether the events of two sites stand on two arms of one condition, so that a call runs one of them at most,
        in one turn."""
        mine, others = self._of_site.get(one, []), self._of_site.get(other, [])
        if len(mine) == len(others) == 1:
            return self._lie_apart(mine[0], others[0])
        return self._ways_part(self._ways(one), self._ways(other))

    def _lie_apart(self, one: int, other: int) -> bool:
        """The same of two parts. In a long chain of `elif`, each arm lies in the one before: what is known of that one
        is known of what lies in it."""
        passed: list[tuple[int, int]] = []
        while (one, other) not in self._known:
            passed.append((one, other))
            mine, others = self._parts[one], self._parts[other]
            if one == other or (mine.around == others.around and mine.bracket != others.bracket):
                self._known[one, other] = False
            elif mine.around == others.around:
                self._known[one, other] = mine.branches
            else:
                one, other = (
                    mine.around if mine.depth >= others.depth else one,
                    others.around if others.depth >= mine.depth else other,
                )
        found = self._known[one, other]
        self._known.update(dict.fromkeys(passed, found))
        return found

    def _ways_part(self, here: list[list[int]], there: list[list[int]]) -> bool:
        """The same of the ways to the events of two sites, which can have several."""
        for depth in range(min(max(map(len, here), default=0), max(map(len, there), default=0))):
            mine, others = self._brackets(here, depth), self._brackets(there, depth)
            for bracket in sorted(mine.keys() & others.keys()):
                if mine[bracket] != others[bracket]:
                    return self._parts[min(mine[bracket])].branches
                if len(mine[bracket]) == 1:
                    here = [way for way in here if way[depth : depth + 1] == list(mine[bracket])]
                    there = [way for way in there if way[depth : depth + 1] == list(mine[bracket])]
                    break
            else:
                return False
        return False

    def _brackets(self, ways: list[list[int]], depth: int) -> dict[int, set[int]]:
        """The brackets that some ways lead into at a depth, each with the parts of it."""
        found: dict[int, set[int]] = {}
        for way in ways:
            if len(way) > depth:
                found.setdefault(self._parts[way[depth]].bracket, set()).add(way[depth])
        return found

    def _ways(self, site: int) -> list[list[int]]:
        """The parts that lead to the events of a site, from the outermost inward."""
        found: list[list[int]] = []
        for part in self._of_site.get(site, ()):
            way: list[int] = []
            while part > 0:
                way.append(part)
                part = self._parts[part].around
            found.append(way[::-1])
        return found
