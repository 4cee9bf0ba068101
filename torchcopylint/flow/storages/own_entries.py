"""Elements of containers that a loop has filled, which are objects of their own by the keys that they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import Repeated
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import ANY_ELEMENT, BUFFERS, LOCAL, Cell, How, Kind, Object, Slot
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def is_place(key: str) -> bool:
    """Whether the key of a slot is a place in a list, counted from its beginning: what is put in behind leaves it."""
    return key[1:-1].isdecimal()


def is_from_end(key: str) -> bool:
    """Whether the key of a slot is a place in a list, counted from its end: another one once something is put in."""
    return key.startswith("[-") and key[2:-1].isdecimal()


def like(m: Machine, slot: Slot) -> Object | None:
    """What a container that a loop has filled has at a key, if nobody but the container holds what was put in: two
    keys have two of them. `rows = {name: torch.zeros(3) for name in names}`, and the first of a list, if each turn has
    put another one in; of what a dictionary has with a graph nothing is said."""
    ref, key = slot
    obj = m.state.object(ref)
    listed = obj.kind in (Kind.LIST, Kind.ITERATOR) and (is_place(key) or is_from_end(key))
    named = obj.kind is Kind.DICT and key.startswith(("['", '["'))
    one = m.state.cell((ref, ANY_ELEMENT)) if (listed or named) and obj.owner in ("", LOCAL) else None
    if one is None or not one.refs or (listed and len({inner | 1 for inner in one.refs}) != len(one.refs) - 1):
        return None
    held = [m.state.object(inner) for inner in one.refs]
    made = held[0]._replace(shares=())
    owned = all(share.how is How.OWN for inner in held for share in inner.shares)
    known = made.kind in BUFFERS or (listed and made.kind is Kind.UNKNOWN)
    if not owned or not known or (named and made.requires_grad > 0):
        return None
    if any(isinstance(fact, Repeated) for fact in m.facts.get(obj.site, ())):
        # `dict.fromkeys(names, torch.zeros(3))`: one thing stands at all keys.
        return None
    if any(_alike(inner) != _alike(made) for inner in held) or _is_held_otherwise(m, ref, one, by_name=named):
        return None
    if not listed or not (made.graph or made.saved):
        return made
    if len(m.state.slot_names(ref)) > 1:
        # What backward has run over may be another of them, which has been taken out before.
        made = made._replace(graph=runs.without(made.graph))
    return _with_graph_of_its_own(m, made, int(key[1:-1]))


def _alike(obj: Object) -> Object:
    """What is known of an object but for its graph: that of the newest is what each turn leaves behind it."""
    return obj._replace(shares=(), graph=frozenset(), saved=frozenset())


def _is_held_otherwise(m: Machine, ref: int, one: Cell, *, by_name: bool) -> bool:
    """Whether others hold the elements of a container: a name that the loop has bound to its newest is none of them,
    where the elements have no names, nor is what an enclosing loop's earlier turn has filled at the same place."""
    keys = {key for inner in one.refs for key, _ in m.state.holders_of(inner)} - {(ref, ANY_ELEMENT)}
    return any(by_name or (isinstance(key, tuple) and key[0] != ref | 1) for key in keys)


def _with_graph_of_its_own(m: Machine, made: Object, place: int) -> Object:
    """An element whose turn of the loop has computed it: what that has saved is another thing at each place."""
    around = uses.loops_around(m, made.site)
    if not around:
        return made
    own = {
        number: runs.branch(m, number, place) for number in made.graph | made.saved if _is_made_in(m, number, around)
    }
    for number, branch in own.items():
        if number in m.needed.saves:
            m.needed.saves[branch] = m.needed.saves[number]
            m.needed.objects[branch] = m.needed.objects[number]
            spoilt = m.state.get(f"@spoilt{number}")
            m.state.put(f"@spoilt{branch}", spoilt if isinstance(spoilt, frozenset) else frozenset())
    saved = frozenset(own.get(number, number) for number in made.saved)
    return made._replace(graph=made.graph.union(own.values()), saved=saved)


def _is_made_in(m: Machine, number: int, around: tuple[int, ...]) -> bool:
    """Whether something that backward needs was saved in a loop, on the very turn that has made the element."""
    return 0 <= number < runs.BRANCHES and around[-1] in uses.loops_around(m, number // 8)
