"""Which loops stand around which events of a tape."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow import tape as t


class Loops:
    """See the module."""

    def __init__(self, tape: t.Tape) -> None:
        self._around: dict[int, tuple[t.Loop, ...]] = {}
        self._arms: dict[int, dict[int, int]] = {}
        pending: list[tuple[t.Tape, tuple[t.Loop, ...], dict[int, int]]] = [(tape, (), {})]
        while pending:
            part, loops, arms = pending.pop()
            for event in part:
                self._around[event.site] = loops
                self._arms[event.site] = arms
                match event:
                    case t.Branch():
                        pending += [(arm, loops, {**arms, event.site: n}) for n, arm in enumerate(event.arms)]
                    case t.Loop():
                        pending += [(inner, (*loops, event), arms) for inner in (event.test, event.body)]
                        pending.append((event.orelse, loops, arms))
                    case t.Try():
                        inner_parts = (event.body, *event.handlers, event.orelse, event.final)
                        pending += [(inner, loops, arms) for inner in inner_parts]

    def around(self, *sites: int, but: frozenset[int] = frozenset()) -> t.Loop | None:
        """The innermost loop that stands around all of some sites, if there is one; `but` are sites of loops that do
        not count."""
        stacks = [self._around.get(site, ()) for site in sites]
        common = None
        for level in zip(*stacks, strict=False):
            if any(loop is not level[0] for loop in level):
                break
            common = common if level[0].site in but else level[0]
        return common

    def are_alternatives(self, one: int, other: int) -> bool:
        """Whether two sites stand on different arms of a branch, so that a turn comes by one of them at most."""
        arms, others = self._arms.get(one, {}), self._arms.get(other, {})
        return any(others.get(branch, arm) != arm for branch, arm in arms.items())

    def only_one(self, site: int, sites: set[int]) -> bool:
        """Whether a site stands in a loop in which none of the other sites stands."""
        return self.around(site) is not None and all(self.around(site, s) is None for s in sites if s != site)


_FEW = 4


def displayed(tape: t.Tape, definitions: Sequence[t.Event | None]) -> frozenset[int]:
    """The sites of loops over a few names, or tuples of them, that are written out: `for net in (ours, theirs):`."""
    found = set()
    for event in t.events(tape):
        head = event.body[0] if isinstance(event, t.Loop) and event.body else None
        over = definitions[head.iterable] if isinstance(head, t.Iterate) and head.iterable >= 0 else None
        if isinstance(over, t.Make) and over.kind in ("tuple", "list") and len(over.items) <= _FEW:
            items = [definitions[item] for item in over.items if item >= 0]
            if not any(over.stars) and all(isinstance(item, t.Load | t.Make) for item in items):
                found.add(event.site)
    return frozenset(found)
