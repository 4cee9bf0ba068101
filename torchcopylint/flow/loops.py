"""Which loops stand around which events of a tape."""

from __future__ import annotations

from torchcopylint.flow import tape as t


class Loops:
    """See the module."""

    def __init__(self, tape: t.Tape) -> None:
        self._around: dict[int, tuple[t.Loop, ...]] = {}
        pending: list[tuple[t.Tape, tuple[t.Loop, ...]]] = [(tape, ())]
        while pending:
            part, loops = pending.pop()
            for event in part:
                self._around[event.site] = loops
                match event:
                    case t.Branch():
                        pending += [(arm, loops) for arm in event.arms]
                    case t.Loop():
                        pending += [(inner, (*loops, event)) for inner in (event.test, event.body)]
                        pending.append((event.orelse, loops))
                    case t.Try():
                        inner_parts = (event.body, *event.handlers, event.orelse, event.final)
                        pending += [(inner, loops) for inner in inner_parts]

    def around(self, *sites: int) -> t.Loop | None:
        """The innermost loop that stands around all of some sites, if there is one."""
        stacks = [self._around.get(site, ()) for site in sites]
        common = None
        for level in zip(*stacks, strict=False):
            if any(loop is not level[0] for loop in level):
                break
            common = level[0]
        return common

    def only_one(self, site: int, sites: set[int]) -> bool:
        """Whether a site stands in a loop in which none of the other sites stands."""
        return self.around(site) is not None and all(self.around(site, s) is None for s in sites if s != site)
