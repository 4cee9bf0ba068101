"""What an inner loop binds anew on its first turn and writes on others: `if i == 0: best = x`, and `best[k] = x[k]`.

On each turn of the loop around it, the writes are to what this turn has bound; who was given what the turn before had
left there holds another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.facts import ReadAfter
    from torchcopylint.flow.running.machine import Machine


def is_of_earlier_turn(m: Machine, fact: ReadAfter) -> bool:
    """Whether what is read was put where it is behind the inner loop, on an earlier turn of the outer one."""
    name, loops = m.hits.root_keys.get(fact.write), uses.loops_around(m, fact.write)
    shared = max((link.site for link in fact.links), default=-1)
    if not isinstance(name, str) or len(loops) < 2 or shared < fact.write or loops[-1] in uses.loops_around(m, shared):
        return False
    if uses.loops_around(m, shared) != loops[:-1]:
        return False
    inside = [bind for bind in m.index.binds.get(name, ()) if loops[-1] in uses.loops_around(m, bind.site)]
    return len(inside) == 1 and _is_of_first_turn(m, inside[0], fact.write) and _is_made_in(m, inside[0], loops[:-1])


def _is_of_first_turn(m: Machine, bind: t.Bind, write: int) -> bool:
    """Whether a binding stands on the arm of a condition that is that of the first turn, and a write on the other."""
    before = set(m.index.assumed.get(write, ()))
    others = {(test.register, not test.truth) for test in before}
    own = [test for test in m.index.assumed.get(bind.site, ()) if test not in before]
    loops = uses.loops_around(m, write)
    counted = len(own) == 1 and (own[0].register, own[0].truth) in others
    return counted and uses.loops_around(m, bind.site) == loops and _asks_for_first(m, own[0], loops)


def _asks_for_first(m: Machine, test: t.Assume, loops: tuple[int, ...]) -> bool:
    """Whether a test holds on the first turn alone: `i == 0`, of what the innermost loop counts, or `not i`."""
    event = m.unit.definitions[test.register] if test.register >= 0 else None
    truth = test.truth
    while isinstance(event, t.Logic) and event.symbol == "not":
        event, truth = m.unit.definitions[event.operands[0]], not truth
    if isinstance(event, t.Load):
        return not truth and _is_counted(m, event, loops)
    if not isinstance(event, t.Operate) or len(event.operands) != 2:
        return False
    counted, number = (m.unit.definitions[operand] for operand in event.operands)
    if not isinstance(counted, t.Load) or not isinstance(number, t.Const) or number.value != 0:
        return False
    return event.symbol == ("==" if truth else "!=") and _is_counted(m, counted, loops)


def _is_counted(m: Machine, load: t.Load, loops: tuple[int, ...]) -> bool:
    """Whether a name is the number of the turn, from 0: `for i in range(n)`, `for i, x in enumerate(xs)`."""
    bound = uses.bindings_before(m, load)
    event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    first = isinstance(event, t.Unpack) and event.position == 0
    head = m.unit.definitions[event.value] if isinstance(event, t.Unpack) else event
    over = m.unit.definitions[head.iterable] if isinstance(head, t.Iterate) and head.iterable >= 0 else None
    if not isinstance(head, t.Iterate) or uses.loops_around(m, head.site) != loops:
        return False
    if not isinstance(over, t.Call) or any(one.keyword for one in over.arguments):
        return False
    called, given = m.dotted_of(over).rpartition(".")[2], [m.unit.definitions[one.register] for one in over.arguments]
    if called == "enumerate":
        return first and len(given) == 1
    from_zero = len(given) == 1 or (len(given) > 1 and isinstance(given[0], t.Const) and given[0].value == 0)
    return called == "range" and not first and from_zero


def _is_made_in(m: Machine, bind: t.Bind, loops: tuple[int, ...]) -> bool:
    """Whether all that a binding may bind sits on memory that each turn of some loops makes anew."""
    refs = m.value(bind.value).refs
    made = [m.state.object(share.storage).site for ref in refs for share in m.state.object(ref).shares]
    return bool(made) and all(uses.loops_around(m, site)[: len(loops)] == loops for site in made)
