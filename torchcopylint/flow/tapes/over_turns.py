"""Parts that the turns of a loop write one by one, and all but the ends of which are read behind it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Fact, Part, Region
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def are_hit(m: Machine, written: Region, write: int, read: Region, site: int) -> bool:
    """Whether a loop hits, turn by turn, what is read behind it: `x[t] = ...`, then `x[:-1]`.

    Or writes what it visits one by one: `for p in params: p.add_(d)`.
    """
    if any(part.kind == "each" for part in written) and _all_visited(m, write, site):
        return overlap(_of_any_turn(written), _of_any_turn(read)) is Fact.YES
    if not written or not read or written[0].kind != "name" or not _is_nearly_all(read[0]):
        return False
    behind = set(uses.loops_around(m, write)) - set(uses.loops_around(m, site))
    binds = m.index.binds.get(str(written[0].value), ())
    of_turns = bool(binds) and all(behind & set(uses.loops_around(m, bind.site)) for bind in binds)
    return site > write and of_turns and overlap(written[1:], read[1:]) is Fact.YES


def is_another(m: Machine, written: Region, write: int) -> bool:
    """Whether the part that a write has hit on an earlier turn of its loop is another one than it hits on this turn: it
    is named by what the loop counts with. Windows that move on by one overlap: `x[i : i + width]`."""
    loops = uses.loops_around(m, write)
    for part in written if loops else ():
        ends = [end for end in (part.value, part.upper) if isinstance(end, str)]
        names = {name for end in ends for name in _IDENTIFIER.findall(end)}
        counting = {name for name in names if _is_bound_in(m, name, loops[-1])}
        if counting and not (part.kind == "slice" and part.value in counting and _counts_by_one(m, str(part.value))):
            return True
    return False


def _is_bound_in(m: Machine, name: str, loop: int) -> bool:
    return any(loop in uses.loops_around(m, bind.site) for bind in m.index.binds.get(name, ()))


def _counts_by_one(m: Machine, name: str) -> bool:
    """Whether a name is the variable of a loop over `range(n)` or `range(a, n)`, and bound to nothing else."""
    bound = [m.unit.definitions[bind.value] for bind in m.index.binds.get(name, ()) if bind.value >= 0]
    through = m.unit.definitions[bound[0].iterable] if len(bound) == 1 and isinstance(bound[0], t.Iterate) else None
    return isinstance(through, t.Call) and m.dotted_of(through) == "builtins.range" and len(through.arguments) < 3


def _all_visited(m: Machine, write: int, site: int) -> bool:
    """Whether a write goes through the name of what a loop visits, and a place is behind that loop."""
    bound, _ = m.hits.roots.get(write, (-1, ""))
    behind = set(uses.loops_around(m, write)) - set(uses.loops_around(m, site))
    return site > write and bound >= 0 and bool(behind & set(uses.loops_around(m, bound)))


def _of_any_turn(region: Region) -> Region:
    return tuple(part._replace(value=None) if part.kind == "each" else part for part in region)


def _is_nearly_all(part: Part) -> bool:
    """Whether a slice is open at one end, and begins or ends by a number at the other: `x[1:]`, `x[:-1]`."""
    known = part.value is None or part.upper is None
    return part.kind == "slice" and known and all(end is None or isinstance(end, int) for end in part[1:])
