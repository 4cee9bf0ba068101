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


class Left(NamedTuple):
    """A call has left such a thing: in `field` of the object that is called `owner`, of the class `number`."""

    owner: str
    field: str
    number: int
    method: str


def by_call(m: Machine, loop: t.Loop, again: Again) -> tuple[str, int] | None:
    """The field by which a call takes a graph into the loop's next turn, and the call; nothing there cuts it."""
    inside = [event for part in (loop.test, loop.body) for event in t.events(part)]
    sites = {event.site for event in inside}
    for site, left in sorted(m.left_at.items()):
        if site in sites and site in again.through and not _is_cut_in(m, inside, left):
            return f"{left.owner}.{left.field}", site
    return None


def _is_cut_in(m: Machine, inside: list[t.Event], left: Left) -> bool:
    """Whether something in a loop may set a field anew, or cut it: by its name, by a method, or by what it is given."""
    for event in inside:
        if isinstance(event, t.StoreAttribute | t.Attribute) and event.name == left.field:
            return True
        if isinstance(event, t.Invoke) and naming.text_of(m, event.base) == left.owner:
            if event.name not in {*_HARMLESS, left.method} and _lets_go(m, left, event.name):
                return True
        elif isinstance(event, t.Call | t.Invoke):
            given = [naming.text_of(m, argument.register) for argument in event.arguments if argument.register >= 0]
            if left.owner in given:
                return True
    return False


def _lets_go(m: Machine, left: Left, name: str) -> bool:
    number = m.world.method(left.number, name)
    return number is None or not m.world.is_own(number) or left.field in touched(m.world.unit(number))


def touched(unit: t.Unit) -> set[str]:
    """The attributes that a unit sets, or cuts."""
    found: set[str] = set()
    for event in t.events(unit.tape):
        if isinstance(event, t.StoreAttribute):
            found.add(event.name)
        elif isinstance(event, t.Invoke) and event.base >= 0:
            base = unit.definitions[event.base]
            if isinstance(base, t.Attribute) and event.name.endswith("_"):
                found.add(base.name)
        elif isinstance(event, t.Iterate):
            # `for h in self.hidden: h.detach_()`
            made = unit.definitions[event.iterable]
            found.update({made.name} if isinstance(made, t.Attribute) else ())
    return found
