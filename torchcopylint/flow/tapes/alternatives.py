"""What the other arm of a test makes of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Value
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.facts import Link
    from torchcopylint.flow.running.machine import Machine

MAX_CALLS = 3
"""Through so many calls a value is followed to the name that it is bound to: `layers = nn.ModuleList([...])`."""


def are_chosen(m: Machine, register: int, site: int) -> bool:
    """Whether the value of a register is bound under a test whose other arm binds the same name to something else.

    Somebody who writes both has decided between them: `if share: heads = [head] * n`, `else: heads = [make() for ...]`.
    So has who makes several, and puts one of them in the place of all under a test: `if share: heads = n * [heads[0]]`.
    """
    name = _bound_to(m, register)
    if not name:
        return False
    in_place_of_all = site in m.index.on_arms and uses.is_computed_from(m, register, name)
    return in_place_of_all or any(_binds(arm, name) for arm in _other_arms(m.unit.tape, site))


def are_all_hit(m: Machine, value: Value, written: set[int]) -> bool:
    """Whether a value is the state dict of one of several modules, each of which was `written` if it is that one.

    `model = A() if small else B()`: what is done to the model is done to the one that there is.
    """
    objects = [m.state.object(ref) for ref in value.refs]
    taken = {obj.site for obj in objects if obj.kind is Kind.STATE_DICT}
    alike = len(taken) == 1 and all(obj.kind is Kind.STATE_DICT for obj in objects)
    return alike and all(any(share.storage | 1 in written for share in obj.shares) for obj in objects)


def are_bound_on_arms(m: Machine, value: Value, hit: set[int], write: int) -> bool:
    """Whether the arms of a test say that a name holds what a write has `hit` wherever it was written, or is looked at
    as that."""
    return _are_bound_beside(m, value, hit, write) or _are_bound_behind(m, value, hit, write)


def _are_bound_beside(m: Machine, value: Value, hit: set[int], write: int) -> bool:
    """Whether a name holds what a write has `hit` wherever that was written: else it holds what another arm of the same
    test has bound it to, `if self.wide: x = self.bn(x)`, `else: y = self.relu(x)`."""
    name = value.root
    if not isinstance(name, str) or not hit or write not in m.index.on_arms or m.index.loops.get(write):
        return False
    others = {ref | 1 for ref in value.refs if ref not in hit}
    beside = {event.site for arm in _other_arms(m.unit.tape, write) for event in t.events(arm)}
    made: set[int] = set()
    for bind in m.index.binds.get(name, ()):
        held = {ref | 1 for ref in m.value(bind.value).refs} if bind.value >= 0 else set()
        if held & others and bind.site not in beside:
            return False
        made |= held
    return others <= made


def _are_bound_behind(m: Machine, value: Value, hit: set[int], write: int) -> bool:
    """Whether a name holds what a write has `hit` on those paths where an arm behind the write has bound it to that by
    a plain name: `y = scale_(x)`, `if plain: target = x`, `else: target = noise`. In that arm, a look at `x` is one."""
    name = value.root
    if not isinstance(name, str) or not hit or name in {one.name for one in m.unit.parameters}:
        return False
    loops = m.index.loops.get(write, ())
    for bind in m.index.binds.get(name, ()):
        behind = bind.site > write and bind.site in m.index.on_arms and m.index.loops.get(bind.site, ()) == loops
        held = m.value(bind.value).refs if bind.value >= 0 else ()
        made = m.unit.definitions[bind.value] if bind.value >= 0 else None
        if not behind or (hit & {*held} and not (isinstance(made, t.Load) and {*held} <= hit)):
            return False
    return write not in m.index.on_arms


def view_of_whichever(
    m: Machine, links: Sequence[tuple[int, Link]], name: object, storages: set[int], write: int, site: int
) -> int:
    """Where a view was made of what a name holds, which is one of several things: `x = zeros(3) if new else old`,
    `v = x[0]`. Whichever that is, the two share it, until the name is bound anew. -1 if it is no such view.

    `links` lead from the view to the owner of the storage; `storages` are those that the name may hold.
    """
    if len(links) < 2 or len(storages) < 2 or not isinstance(name, str):
        return -1
    view, link = links[-2]
    made_of = {share.of | 1 for share in m.state.object(view & ~1).shares if share.site == link.site}
    event = next((one for one in m.unit.definitions if one is not None and one.site == link.site), None)
    given = [m.unit.definitions[one] for one in t.operands(event) if one >= 0] if event is not None else []
    named = any(isinstance(one, t.Load) and one.name == name for one in given)
    if not named or made_of != {one | 1 for one in storages}:
        return -1
    loops = m.index.loops.get(link.site, ())
    bound = [bind.site for bind in m.index.binds.get(name, ())]
    together = all(m.index.loops.get(one, ()) == loops for one in (write, *bound))
    return link.site if together and not any(link.site < one < max(write, site) for one in bound) else -1


def _bound_to(m: Machine, register: int) -> str:
    for _ in range(MAX_CALLS):
        use = m.consumer_of(register)
        if isinstance(use, t.Call | t.Invoke):
            register = use.out
            continue
        return _name(use) if use is not None else ""
    return ""


def _name(event: t.Event) -> str:
    if isinstance(event, t.Bind):
        return event.name
    return f".{event.name}" if isinstance(event, t.StoreAttribute) else ""


def _binds(arm: t.Tape, name: str) -> bool:
    return any(_name(event) == name for event in t.events(arm))


def _other_arms(tape: t.Tape, site: int) -> list[t.Tape]:
    """The arms beside those that a site stands in, at every depth."""
    found: list[t.Tape] = []
    for event in t.events(tape):
        if event.__class__ is t.Branch:
            holding = [arm for arm in event.arms if any(inner.site == site for inner in t.events(arm))]
            found += [arm for arm in event.arms if holding and arm not in holding]
    return found
