"""What a unit does that takes two to go wrong, and whether what several units do can meet.

A write by itself is told of the unit that writes; so is a share. What goes wrong between a unit and a helper that it
calls takes one of each, the one on this side, the other on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ARGUMENT, BUFFERS, FIELD, GLOBAL, MEMO, Kind
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


class Sign(Enum):
    """Something that a unit does itself, by what stands on its tape and what was found out when it was run."""

    CHANGES = auto()
    """Writes memory."""
    WRITES = auto()
    """Writes memory that others have."""
    SHARES = auto()
    """Shares or copies memory, or cuts a graph."""
    GIVES = auto()
    """Does so, and something outlives the call: it returns something, or keeps it."""
    SAVES = auto()
    """Hands out what hangs on a graph for which it keeps what stands in a field."""
    TRAINS = auto()
    """Runs backward, steps, or sets gradients to zero."""
    WAITS = auto()
    """Has something sent, or copied, by somebody who is not waited for."""
    TURNS = auto()
    """Lays out a tensor in another order."""
    VIEWS = auto()
    """Asks for a view that not every layout has."""
    LOOKS = auto()
    """Takes numbers out of a tensor, on the host."""
    REPLACES = auto()
    """Sets parts of modules, which an optimizer may have been built over."""


_ALWAYS = frozenset({Sign.TRAINS, Sign.WAITS})
"""What is about what others have done before, or do later, whatever that is."""
_MEETING = (
    (Sign.WRITES, Sign.SHARES),
    (Sign.WRITES, Sign.TRAINS),
    (Sign.WRITES, Sign.WAITS),
    (Sign.SAVES, Sign.WRITES),
    (Sign.GIVES, Sign.CHANGES),
    (Sign.GIVES, Sign.TRAINS),
    (Sign.SHARES, Sign.WAITS),
    (Sign.LOOKS, Sign.WAITS),
    (Sign.VIEWS, Sign.TURNS),
    (Sign.TURNS, Sign.VIEWS),
    (Sign.REPLACES, Sign.TRAINS),
)
"""What a helper does, and what somebody else does that makes it more than the helper's own affair."""
_SHARING = frozenset({"data", "detach", "numpy", "state_dict", "load_state_dict", "parameters", "named_parameters"})
_SHARING |= {"copy", "share_memory", "view", "view_as", "expand", "expand_as", "requires_grad"}
_MAKING = frozenset({"tensor", "as_tensor", "from_numpy", "frombuffer", "asarray", "from_dlpack", "copy", "deepcopy"})
"""Functions that share or copy what they are given."""
_TRAINING = frozenset({"backward", "step", "grad", "zero_grad"})
_TURNING = frozenset({"t", "T", "mT", "transpose", "permute", "swapaxes", "movedim", "expand"})
_LOOKING = frozenset({"item", "tolist"})
_KEEPING = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "put", "put_nowait", "appendleft"})
_SETTING = frozenset({"data", "grad", "requires_grad"})
_PLAIN = frozenset(
    {Kind.DICT, Kind.LIST, Kind.TUPLE, Kind.SET, Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.CLASS, Kind.INSTANCE}
)
"""What is no memory that a rule speaks of."""
_MEMORY = BUFFERS | {Kind.MODULE, Kind.STATE_DICT, Kind.OPTIMIZER}
_OF_OTHERS = frozenset({ARGUMENT, FIELD, GLOBAL, MEMO})
_THROUGH_OTHERS = "call"
"""The form of a write that something does that the unit calls."""


def signs(m: Machine) -> frozenset[Sign]:
    """What a unit that has been run does."""
    found: set[Sign] = set()
    if _shares(m):
        found |= {Sign.SHARES, Sign.GIVES} if _gives(m) else {Sign.SHARES}
    elif any(_aliases(m, event) and not _is_written(m, event) for event in m.index.of(t.Item)):
        found.add(Sign.SHARES)
    if any(_picks(m, event) for event in m.index.of(t.Item)):
        found |= {Sign.SHARES, Sign.GIVES}
    named = [
        event
        for event in m.index.named
        if (event.__class__ is t.Attribute or event.__class__ is t.Invoke) and _may_be_memory(m, event.base)
    ]
    names = {event.name for event in named}
    if m.backward.trains or names & _TRAINING or _functions(m) & _TRAINING:
        found.add(Sign.TRAINS)
    if _saves_fields(m):
        found.add(Sign.SAVES)
    if names & _LOOKING:
        found.add(Sign.LOOKS)
    if names & _TURNING:
        found.add(Sign.TURNS)
    if "view" in names:
        found.add(Sign.VIEWS)
    if m.owners.replaced and m.unit.name != "__init__":
        found.add(Sign.REPLACES)
    found |= _writing(m, named)
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    if "put" in names or any(one.keyword == "non_blocking" for call in calls for one in call.arguments):
        found.add(Sign.WAITS)
    return frozenset(found)


def meeting(own: frozenset[Sign], helpers: Mapping[int, frozenset[Sign]], calling: Iterable[int]) -> list[int]:
    """Those of some helpers that do something which meets what their caller does, or another one of them. `calling`
    are those that call others themselves."""
    above = frozenset(calling)
    others = {number: signs if number in above else _left(signs) for number, signs in helpers.items()}
    found = []
    for number, does in helpers.items():
        beside = own.union(*(signs for other, signs in others.items() if other != number))
        if does & _ALWAYS or any(one in does and other in beside for one, other in _MEETING):
            found.append(number)
    return found


def _left(signs: frozenset[Sign]) -> frozenset[Sign]:
    """Of what a unit has done, what others come upon when it has returned."""
    gone = {Sign.SHARES} if Sign.GIVES not in signs else set()
    return signs - gone - ({Sign.CHANGES} if Sign.WRITES not in signs else set())


def _shares(m: Machine) -> bool:
    """Whether a unit uses anything that shares or copies memory, or cuts a graph, for more than to write through it; or
    makes something that autograd lets nobody write."""
    if _functions(m) & _MAKING or _makes_leaves(m):
        return True
    named = (
        event
        for event in m.index.named
        if (event.__class__ is t.Attribute or event.__class__ is t.Invoke) and event.name in _SHARING
    )
    return any(
        _may_be_memory(m, event.base) and _kind(m, event.base) is not Kind.IMPORTED and not _is_written(m, event)
        for event in named
    )


def _saves_fields(m: Machine) -> bool:
    """Whether backward through what a unit returns needs a tensor in a field, which is no parameter."""
    graph = frozenset[int]().union(*(m.state.object(ref).graph for value in m.results.returned for ref in value.refs))
    saved = (m.needed.objects[number] for number in graph if number in m.needed.objects)
    storages = (m.state.object(share.storage) for ref in saved for share in m.state.object(ref).shares)
    return any(obj.owner == FIELD and obj.kind is Kind.TENSOR for obj in storages)


def _makes_leaves(m: Machine) -> bool:
    """Whether a unit makes tensors that require grad: `torch.zeros(3, requires_grad=True)`."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    return any(one.keyword == "requires_grad" for call in calls for one in call.arguments) or any(
        event.name == "requires_grad_" for event in m.index.of(t.Invoke)
    )


def _functions(m: Machine) -> set[str]:
    """The names of functions that a unit calls: `copy(x)`, `torch.from_numpy(x)`."""
    made = m.unit.definitions
    called = (made[call.function] for call in m.index.of(t.Call) if call.function >= 0)
    found = {event.name for event in called if event.__class__ is t.Load}
    return found | {e.name for e in m.index.of(t.Invoke) if _kind(m, e.base) is Kind.IMPORTED}


def _writing(m: Machine, named: Iterable[t.Attribute | t.Invoke]) -> set[Sign]:
    """How a unit writes memory itself, if it does."""
    own = [write for write in m.writes.values() if write.form != _THROUGH_OTHERS]
    if any(write.owner in _OF_OTHERS for write in own) or any(is_in_place(event.name) for event in named):
        return {Sign.CHANGES, Sign.WRITES}
    stored = [event.base for event in m.index.of(t.StoreItem) if not event.augmented]
    augmented = [event.target for event in m.index.of(t.Augment)]
    stored += augmented
    if (
        any(_is_part_of_unknown(m, target) for target in augmented)
        or any(event.name in _SETTING for event in m.index.of(t.StoreAttribute))
        or any(_kind(m, base) in _MEMORY or (_is_passed(m) and _may_be_memory(m, base)) for base in stored)
    ):
        return {Sign.CHANGES, Sign.WRITES}
    return {Sign.CHANGES} if own else set()


def _is_passed(m: Machine) -> bool:
    """Whether a function is passed to others, so that nobody knows what it is called with."""
    return any(m.unit.number in passed for passed in m.world.passed_functions.values())


def _is_part_of_unknown(m: Machine, register: int) -> bool:
    """Whether something stands in a field or container that the unit was passed, and nobody knows what it is."""
    made = m.unit.definitions[register] if register >= 0 else None
    held = made.base if isinstance(made, t.Attribute | t.Item) else t.NO_REGISTER
    given = [m.state.object(ref) for ref in m.value(held).refs] if held >= 0 else []
    known = _kind(m, register) is not Kind.UNKNOWN
    return not known and bool(given) and all(obj.owner == ARGUMENT for obj in given)


def _kind(m: Machine, register: int) -> Kind:
    return kind_of(m.value(register), m.state)


def _may_be_memory(m: Machine, register: int) -> bool:
    return _kind(m, register) not in _PLAIN


def _is_written(m: Machine, event: t.Attribute | t.Invoke | t.Item) -> bool:
    """Whether all that is done with something is that it is written: `x.data.zero_()`, `x[0] += 1`."""
    user = m.index.consumers.get(event.out)
    return isinstance(user, t.StoreItem | t.Augment) or (isinstance(user, t.Invoke) and is_in_place(user.name))


def is_in_place(name: str) -> bool:
    """Whether a method of that name writes what it is called on."""
    return name[-1:] == "_" and name[:1] != "_"


def _aliases(m: Machine, event: t.Item) -> bool:
    """Whether what is taken out of something shares its memory."""
    refs = m.value(event.out).refs
    return any(share.storage != ref for ref in refs for share in m.state.object(ref).shares)


def _picks(m: Machine, event: t.Item) -> bool:
    """Whether a unit returns what an index has picked out of something, which is a copy if that is no number."""
    picked = m.value(event.out).refs
    by = [m.value(one) for one in event.subscript if not isinstance(one, t.Slice)]
    told = all(one.kind in (Kind.NUMBER, Kind.STRING) or one.const is not None for one in by)
    return not told and bool(picked) and any(set(picked) <= set(value.refs) for value in m.results.returned)


def _gives(m: Machine) -> bool:
    """Whether something that a unit has made outlives it: it returns something, or keeps it."""
    if any(value.refs for value in m.results.returned) or m.index.of(t.StoreItem):
        return True
    if any(event.name not in _SETTING for event in m.index.of(t.StoreAttribute)):
        return True
    return any(event.name in _KEEPING for event in m.index.of(t.Invoke))
