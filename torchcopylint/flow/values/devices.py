"""Where tensors are, as far as a program says so: sending one where it is already copies nothing.

A place is what the program calls it, `cuda:0`, or the name that it keeps a device under, and where that was bound. Two
names may mean one device; one name, not bound anew, means one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ARGUMENT, FIELD, GLOBAL, Fact, How, Kind, Object, Value
from torchcopylint.flow.tape import Dotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_DEVICE = "device"
"""The key in an object's configuration."""
HANDED = "where it was when it was handed in"
"""The place of what a unit was given, or took from a field: mostly the one that it works on."""
_HERE = frozenset(
    ["clone", "detach", "contiguous", "requires_grad_", "view", "reshape", "unsqueeze", "squeeze", "Variable"]
    + [f"{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn")]
)
"""Operations whose result is where their first argument is, and which programs put between one `to` and the next."""
_PARTS = frozenset({Kind.MODULE, Kind.PARAMETER})
"""What goes where its module goes."""
_TOGETHER = frozenset(["add", "sub", "rsub", "mul", "div", "pow", "neg", "maximum", "minimum", "min", "max", "where"])
"""Operations whose operands have to be in one place, but for single numbers on the CPU."""


def named(m: Machine, short: str, arguments: Arguments) -> str:
    """The place that a call of `to`, `cuda` or `cpu`, or a factory, names; empty if it names none that is known."""
    if "**" in arguments.keywords:
        return ""
    given = arguments.keywords.get(_DEVICE)
    if short == "cpu":
        return "cpu"
    if given is None and short in ("to", "cuda") and len(arguments.positional) > 1:
        given = arguments.positional[1]
    if given is None:
        return "cuda" if short == "cuda" else ""
    if isinstance(given.const, Dotted):
        # `torch.float16` is no place; `settings.device` is one.
        return str(given.const) if given.const.rpartition(".")[2].endswith(_DEVICE) else ""
    if given.refs:
        # One and the same object names one and the same place.
        return f"@{given.refs[0]}" if len(given.refs) == 1 and not given.refs[0] & 1 else ""
    if isinstance(given.const, str):
        return given.const
    if isinstance(given.const, int):
        return f"cuda:{given.const}"
    cell = m.state.cell(given.root) if isinstance(given.root, str | tuple) else None
    return f"{given.root} {cell.site}" if cell is not None else ""


def kept(m: Machine, short: str, arguments: Arguments) -> tuple[tuple[str, object], ...]:
    """What a result's configuration says of where it is: where the call puts it, or where its first argument is."""
    place = named(m, short, arguments)
    if not place and short in _HERE and len(arguments.at(0).refs) == 1:
        obj = m.state.object(arguments.at(0).refs[0])
        place = place_of(obj) or (HANDED if _is_handed(m, obj) else "")
    elif not place and short in _TOGETHER:
        given = [ref for value in arguments.positional for ref in value.refs]
        places = {place_of(m.state.object(ref)) for ref in given} - {"", "cpu", HANDED}
        place = places.pop() if len(places) == 1 else ""
    return at(place)


def at(place: str) -> tuple[tuple[str, object], ...]:
    """What an object's configuration says of where it is; nothing for an empty text."""
    return ((_DEVICE, place),) if place else ()


def move(m: Machine, module: Value, short: str, arguments: Arguments) -> None:
    """A module is sent somewhere by `to`, `cuda` or `cpu`: its parameters are there, and what is taken of them."""
    place = named(m, short, arguments)
    pending, seen = list(module.refs) if place else [], set[int]()
    while pending:
        ref = pending.pop()
        if ref in seen:
            continue
        seen.add(ref)
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(config=(*(one for one in obj.config if one[0] != _DEVICE), *at(place))))
        # Parts that somebody has looked at already. Parts that nobody has are where their module is (`of_part`).
        held = [inner for slot in m.state.slot_names(ref) for inner in m.state.refs_of(slot)]
        pending += [inner for inner in held if m.state.object(inner).kind in _PARTS]


def of_part(module: Object, part: Object) -> tuple[tuple[str, object], ...]:
    """What the configuration of a module's part says of where it is, when it is looked at for the first time."""
    return at(place_of(module)) if module.kind is Kind.MODULE and part.kind in _PARTS else ()


def passed_on(obj: Object) -> tuple[tuple[str, object], ...]:
    """What the configuration of a parameter says of where it is, when a module is passed for it."""
    place = place_of(obj) if obj.kind is Kind.MODULE else ""
    return at(place if place.partition(":")[0] in ("cpu", "cuda") else "")


def _is_handed(m: Machine, obj: Object) -> bool:
    """Whether a tensor is, or is a part of, what a unit was given."""
    return any(m.state.object(share.storage).owner in (ARGUMENT, FIELD, GLOBAL) for share in obj.shares)


def place_of(obj: Object) -> str:
    """Where an object is, or an empty text."""
    return str(dict(obj.config).get(_DEVICE, ""))


def sent_to(objects: Sequence[Object]) -> str:
    """The place that all of some tensors were sent to by name, but for the host; an empty text if there is none."""
    places = {place_of(obj) for obj in objects}
    place = places.pop() if len(places) == 1 else ""
    return place if place not in ("cpu", HANDED) else ""


def is_away(m: Machine, module: Value) -> bool:
    """Whether a module is known to be on a GPU, so that what brings a value of it to the CPU copies that."""
    objects = [m.state.object(ref) for ref in module.refs]
    return any(obj.kind is Kind.MODULE and place_of(obj).startswith("cuda") for obj in objects)


def is_there(m: Machine, source: Value, short: str, arguments: Arguments) -> Fact:
    """Whether a value already is where a call sends it."""
    wanted = named(m, short, arguments)
    places = {place_of(m.state.object(ref)) for ref in source.refs}
    if not wanted or not places or "" in places:
        return Fact.UNKNOWN
    if places == {wanted}:
        return Fact.YES
    return Fact.NO if all(_differ(place, wanted) for place in places) else Fact.UNKNOWN


SENDING = frozenset({"to", "cuda", "cpu"})


def says_host(short: str, arguments: Arguments) -> bool:
    """Whether a call sends something to the CPU, whatever happens: a device that has a name may be another one."""
    given = arguments.keywords.get(_DEVICE, arguments.at(1))
    return short == "cpu" or (short == "to" and given.const == "cpu" and given.root is None)


def is_on_host(m: Machine, source: Value) -> bool:
    """Whether a tensor has been made here without a word on where: `torch.zeros(3)` is on the CPU."""
    for ref in source.refs:
        obj = m.state.object(ref)
        made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
        makes = (
            isinstance(made, t.Call | t.Invoke)
            and m.dotted_of(made).startswith("torch.")
            and place_of(obj) in ("", "cpu")
        )
        if not makes or any(share.how is not How.OWN for share in obj.shares):
            return False
    return bool(source.refs)


def _differ(one: str, two: str) -> bool:
    known = all(place == "cpu" or place.partition(":")[0] == "cuda" for place in (one, two))
    kinds = one.partition(":")[0] != two.partition(":")[0]
    return known and (kinds or (":" in one and ":" in two and one != two))
