"""What calls have left in fields by the time that a loop turns, and whether something in the loop lets go of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.graphs.runs import Again
    from torchcopylint.flow.running.machine import Machine

_HARMLESS = frozenset(
    {"train", "eval", "zero_grad", "parameters", "named_parameters", "state_dict", "modules", "requires_grad_"}
)
"""Methods of modules that leave a state as it is."""


GOING_THROUGH_PARTS = frozenset({"modules", "named_modules", "children", "named_children", "apply"})


class Left(NamedTuple):
    """A call has left such a thing: in `field` of the object that is called `owner`, of the class `number`, or in a
    field of what that holds (`memory.state`)."""

    owner: str
    field: str
    number: int
    method: str


def by_call(m: Machine, loop: t.Loop, again: Again) -> tuple[str, int] | None:
    """The field by which a call takes a graph into the loop's next turn, and the call; nothing there cuts it."""
    inside = [event for part in (loop.test, loop.body) for event in t.events(part)]
    sites = {event.site for event in inside}
    for site, left in sorted(m.called.left_at.items()):
        if site in sites and site in again.through and not _is_cut_in(m, inside, left):
            return f"{left.owner}.{left.field}", site
    return None


def _is_cut_in(m: Machine, inside: list[t.Event], left: Left) -> bool:
    """Whether something in a loop may set a field anew, or cut it: by its name, by a method, or by what it is given."""
    fields = left.field.split(".")
    for event in inside:
        if isinstance(event, t.StoreAttribute | t.Attribute) and event.name in fields:
            return True
        if isinstance(event, t.Invoke) and naming.text_of(m, event.base) == left.owner:
            # Who goes through the parts of an object may do so to each of them.
            harmless = _HARMLESS - GOING_THROUGH_PARTS if len(fields) > 1 else _HARMLESS
            if event.name not in {*harmless, left.method} and _lets_go(m, left, event.name):
                return True
        elif isinstance(event, t.Call | t.Invoke):
            given = [naming.text_of(m, argument.register) for argument in event.arguments if argument.register >= 0]
            if left.owner in given:
                return True
    return False


def _lets_go(m: Machine, left: Left, name: str) -> bool:
    fields = left.field.split(".")
    pending, seen = [m.world.method(left.number, name)], set[int]()
    for number in pending:
        if number is None or not m.world.is_own(number):
            return True
        unit = m.world.unit(number)
        if not touched(unit).isdisjoint(fields) or (len(fields) > 1 and speaks_of(unit, frozenset(fields[:-1]))):
            return True
        if number not in seen and len(fields) > 1:
            # What a part of the object has, a method lets go of by way of others.
            seen.add(number)
            calls = {event.name for event in m.world.index(unit).of(t.Invoke) if _is_of_own(unit, event)}
            pending += [other for one in sorted(calls) if (other := m.world.method(left.number, one)) is not None]
    return False


def _is_of_own(unit: t.Unit, event: t.Invoke) -> bool:
    base = unit.definitions[event.base] if event.base >= 0 else None
    return isinstance(base, t.Load) and base.name == unit.first


def speaks_of(unit: t.Unit, fields: frozenset[str]) -> bool:
    """Whether a unit looks at one of some fields, or goes through all the parts of something: `for m in
    self.modules(): m.reset()`."""
    return any(
        (isinstance(event, t.Attribute) and event.name in fields)
        or (isinstance(event, t.Invoke) and event.name in GOING_THROUGH_PARTS)
        for event in unit.definitions
    )


def touched(unit: t.Unit) -> set[str]:
    """The attributes that a unit sets, or cuts."""
    found: set[str] = set()
    for event in t.events(unit.tape):
        if event.__class__ is t.StoreAttribute:
            found.add(event.name)
        elif event.__class__ is t.Invoke and event.base >= 0:
            base = unit.definitions[event.base]
            if isinstance(base, t.Attribute) and event.name.endswith("_"):
                found.add(base.name)
        elif event.__class__ is t.Iterate:
            # `for h in self.hidden: h.detach_()`
            made = unit.definitions[event.iterable]
            found.update({made.name} if isinstance(made, t.Attribute) else ())
    return found
