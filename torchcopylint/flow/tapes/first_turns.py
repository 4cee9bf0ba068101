"""What a name holds on the first turn of a loop, and what from the second turn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import Value
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from collections.abc import Set

    from torchcopylint.flow.facts import Link
    from torchcopylint.flow.running.machine import Machine


class Held(NamedTuple):
    """What a name holds where a loop reads it, before the loop binds it.

    `before` are the objects of the first turn, which the name got at the site `entered`; `carried` those of all others,
    which the loop has bound it to at the site `bound` at last.
    """

    before: Set[int]
    entered: int
    carried: Set[int]
    bound: int

    def is_hit_at_first(self, hit: Set[int], write: int, site: int) -> bool:
        """Whether a write has `hit` all that the name holds on the first turn: `p = r`, and in the loop `r -= 1`,
        `p = r + p`."""
        return self.before <= hit and write < site

    def is_hit_later(self, hit: Set[int], write: int, site: int) -> bool:
        """Whether a write has `hit` all that it holds from the second turn on: `last = w.clone()`, and in the loop
        `w - last`, `last = w[:]`, `w += 1`."""
        return self.carried <= hit and (write < site or write > self.bound)

    def named_before(self, links: tuple[Link, ...]) -> tuple[Link, ...]:
        """The links of a chain, of which a second name is one from before the loop."""
        return tuple(link._replace(site=self.entered) if link.how is None else link for link in links)


def from_second(m: Machine, value: Value, site: int) -> Value | None:
    """What a name holds from the second turn of a loop on, where the loop reads it at a site before it binds it, if it
    is one thing: `h = start`, and in the loop `out = f(h)`, `h = rows[i]`."""
    around = uses.loops_around(m, site)
    if not isinstance(value.root, str) or len(value.refs) != 2 or not around:
        return None
    binds = [bind for bind in m.index.binds.get(value.root, ()) if around[-1] in uses.loops_around(m, bind.site)]
    last = max(binds, key=lambda bind: bind.site, default=None)
    if last is None or last.site in m.index.on_arms or uses.loops_around(m, last.site)[-1] != around[-1]:
        return None
    bound = {ref | 1 for bind in binds for ref in m.value(bind.value).refs}
    carried = tuple(ref for ref in value.refs if ref | 1 in {one | 1 for one in m.value(last.value).refs})
    before = [ref for ref in value.refs if ref | 1 not in bound]
    if len(carried) != 1 or len(before) != 1:
        return None
    # What the operation at the site itself has returned on the turn before is an older one by now.
    older = carried[0] | 1 if m.state.object(carried[0]).site == site else carried[0]
    return Value((older,), value.kind, None, frozenset(), value.root)


def held(m: Machine, value: Value, write: int, site: int) -> Held | None:
    """What a value holds that is read at a site, in a loop that also writes; nothing if its turns hold the same."""
    around = [loop for loop in uses.loops_around(m, site) if loop in uses.loops_around(m, write)]
    if not isinstance(value.root, str) or len(value.refs) < 2 or not around:
        return None
    binds = m.index.binds.get(value.root, ())
    inside = [bind for bind in binds if around[-1] in uses.loops_around(m, bind.site)]
    direct = [
        b.site for b in inside if uses.loops_around(m, b.site)[-1] == around[-1] and b.site not in m.index.on_arms
    ]
    if not direct or any(bind.site < site for bind in inside):
        return None
    bound = {ref | 1 for bind in inside for ref in m.value(bind.value).refs}
    carried = frozenset(ref for ref in value.refs if ref | 1 in bound)
    before = frozenset(value.refs) - carried
    entered = max((bind.site for bind in binds if bind.site < site), default=-1)
    return Held(before, entered, carried, direct[-1]) if carried and before else None
