"""Loops over the layers of a chain that keep what each layer computes: one that works in place overwrites it.

    for layer in self.layers:
        x = layer(x)
        features.append(x)

The chain is one that is written down, in the call of `nn.Sequential` or in the list that `nn.ModuleList` is given, or a
list that a loop fills with what stands side by side there: `layers += [nn.Conv2d(i, o, 3), nn.ReLU(inplace=True)]`.
What is kept on a condition is followed where the condition asks for the class, the number or the name of the layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import KeptOfLayer
from torchcopylint.flow.model import Sure
from torchcopylint.flow.networks import written_down
from torchcopylint.flow.networks.chains import SEQUENTIAL
from torchcopylint.flow.networks.neighbours import FRESH_IN_PLACE
from torchcopylint.flow.tapes import callees, uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_LIST = "torch.nn.ModuleList"
_ORDERED = ("collections.OrderedDict", "builtins.dict")
_NAMED = ("named_children", "items")
_STEPS = 6
"""By so many names, a chain is followed back to where it is made."""


class _Layer(NamedTuple):
    """A layer of a chain: where it is made, its class, its name there, and whether it works in place."""

    site: int
    dotted: str
    name: str
    inplace: bool


class _Turn(NamedTuple):
    """The layers, and the registers that hold one, its number and its name in the body of a loop."""

    layers: list[_Layer]
    layer: int
    number: int
    name: int


class _Kept(NamedTuple):
    """What a body keeps of `name`: where, in what, and what has been tested before."""

    site: int
    name: str
    holder: str
    tests: tuple[tuple[int, bool], ...]


def check(m: Machine, loop: t.Loop) -> None:
    """A loop has been run: what its turns keep of a layer that the next one overwrites."""
    first = next((event for event in loop.body if not isinstance(event, t.Reveal)), None)
    if not isinstance(first, t.Iterate):
        return
    calls = [event for event in loop.body if event.__class__ is t.Call and len(event.arguments) == 1]
    turn = _turn_of(m, first, loop) if calls else None
    if turn is None or not any(layer.inplace for layer in turn.layers[1:]):
        return
    for call in calls:
        bound = m.consumer_of(call.out)
        name = bound.name if isinstance(bound, t.Bind) else ""
        if not _comes_from(m, call.function, turn.layer):
            continue
        again = bool(name) and _is_load(m, call.arguments[0].register, name)
        for kept in _kept_in(m, loop.body, name, call.site, ()) if again else _chained(m, call):
            read = _read_after(m, kept.holder, loop)
            if read >= 0:
                _tell(m, turn, kept, call, read)


def _tell(m: Machine, turn: _Turn, kept: _Kept, call: t.Call, read: int) -> None:
    for place, layer in enumerate(turn.layers[1:], 1):
        if layer.inplace and all(_holds(m, turn, place - 1, *test) for test in kept.tests):
            op = f"{naming.text_of(m, call.function)}(...)"
            m.fact(KeptOfLayer(layer.site, kept.name, op, call.site, kept.site, kept.holder, read, Sure.LIKELY))
            return


# -- the chain


def _turn_of(m: Machine, first: t.Iterate, loop: t.Loop) -> _Turn | None:
    """What a loop goes over, if that is a chain that is written down."""
    register, made = first.iterable, m.unit.definitions[first.iterable] if first.iterable >= 0 else None
    layer, number, name = first.out, -1, -1
    if isinstance(made, t.Call) and m.dotted_of(made) == "builtins.enumerate" and len(made.arguments) == 1:
        number, layer = _pair(loop, layer)
        register = made.arguments[0].register
        made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Invoke) and made.name in (*_NAMED, "children") and not made.arguments:
        if made.name in _NAMED:
            name, layer = _pair(loop, layer)
        inner = m.unit.definitions[made.base] if made.base >= 0 else None
        register = inner.base if isinstance(inner, t.Attribute) and inner.name == "_modules" else made.base
    layers = _layers_of(m, register, _STEPS)
    return _Turn(layers, layer, number, name) if layer >= 0 and len(layers) > 1 else None


def _pair(loop: t.Loop, value: int) -> tuple[int, int]:
    """What a loop takes out of the pair that it comes upon."""
    parts = {event.position: event.out for event in loop.body if event.__class__ is t.Unpack and event.value == value}
    return parts.get(0, -1), parts.get(1, -1)


def _layers_of(m: Machine, register: int, steps: int) -> list[_Layer]:
    """The layers of the chain that a register holds; nothing if they are not all written down in one place."""
    found = written_down.made(m, register, steps)
    built = found[1] if found is not None else None
    if found is None or not isinstance(built, t.Call | t.Invoke):
        return []
    m = found[0]
    helper = callees.function_in(m, built.function, callees.NOTHING_KNOWN) if isinstance(built, t.Call) else None
    where = m.world.machines.get(helper) if helper is not None else None
    if where is not None:
        returned = [event.value for event in where.index.of(t.Return)]
        return _layers_of(where, returned[0], steps - 1) if len(returned) == 1 else []
    dotted = m.dotted_of(built)
    if dotted not in (SEQUENTIAL, _LIST) or not built.arguments:
        return []
    registers, starred = [one.register for one in built.arguments], built.arguments[0].stars
    inner = written_down.made(m, registers[0], steps) if len(registers) == 1 else None
    if len(registers) == 1 and (dotted == _LIST or starred == 1) and (grown := _side_by_side(m, registers[0])):
        return grown
    if inner is not None and (dotted == _LIST or starred == 1):
        where, display = inner
        listed = isinstance(display, t.Make) and display.kind in ("list", "tuple") and not any(display.stars)
        return _all(where, [(one, "") for one in display.items]) if listed and isinstance(display, t.Make) else []
    ordered = inner[1] if inner is not None else None
    if inner is not None and isinstance(ordered, t.Call) and inner[0].dotted_of(ordered) in _ORDERED:
        return _of_pairs(inner[0], ordered)
    plain = not any(one.stars or one.keyword for one in built.arguments)
    return _all(m, [(register, "") for register in registers]) if plain else []


def _side_by_side(m: Machine, register: int) -> list[_Layer]:
    """The layers that are added together to a list that was made empty, in the order of the program. Of the first of
    them, nobody knows what it follows, and of none of them its number."""
    load = m.unit.definitions[register] if register >= 0 else None
    bound = [bind.value for bind in m.index.binds.get(load.name, ())] if isinstance(load, t.Load) else []
    made = [m.unit.definitions[one] for one in bound if one >= 0]
    if not isinstance(load, t.Load) or not any(isinstance(one, t.Make) and not one.items for one in made):
        return []
    layers: list[_Layer] = []
    for event in m.index.events:
        added = -1
        if isinstance(event, t.Augment) and event.symbol == "+=":
            added = event.value if _is_load(m, event.target, load.name) else -1
        elif isinstance(event, t.Invoke) and event.name == "extend" and len(event.arguments) == 1:
            added = event.arguments[0].register if _is_load(m, event.base, load.name) else -1
        display = m.unit.definitions[added] if added >= 0 else None
        if isinstance(display, t.Make) and display.kind in ("list", "tuple") and not any(display.stars):
            together = _all(m, [(one, UNKNOWN) for one in display.items])
            layers += [layer._replace(inplace=layer.inplace and place > 0) for place, layer in enumerate(together)]
    return layers


UNKNOWN = "?"
"""The name of a layer of which nobody knows the place."""


def _of_pairs(m: Machine, built: t.Call) -> list[_Layer]:
    """The layers of `OrderedDict([("conv", nn.Conv2d(...)), ...])`."""
    register = built.arguments[0].register if len(built.arguments) == 1 else -1
    display = m.unit.definitions[register] if register >= 0 else None
    pairs = [m.unit.definitions[one] for one in display.items if one >= 0] if isinstance(display, t.Make) else []
    if not all(isinstance(pair, t.Make) and len(pair.items) == 2 for pair in pairs):
        return []
    return _all(m, [(pair.items[1], str(_const(m, pair.items[0]))) for pair in pairs if isinstance(pair, t.Make)])


def _all(m: Machine, given: list[tuple[int, str]]) -> list[_Layer]:
    layers = []
    for place, (register, name) in enumerate(given):
        found = written_down.made(m, register, 2)
        event = found[1] if found is not None else None
        if found is None or not isinstance(event, t.Call | t.Invoke):
            return []
        dotted = found[0].dotted_of(event)
        inplace = _works_in_place(found[0], event, dotted)
        layers.append(_Layer(event.site, dotted, name or str(place), inplace))
    return layers


def _works_in_place(m: Machine, event: t.Call | t.Invoke, dotted: str) -> bool:
    row = table.module_class(dotted) if dotted else None
    plain = dotted.rpartition(".")[2]
    if row is None or not row.inplace_keyword or plain in FRESH_IN_PLACE or not event.arguments:
        return False
    if "Dropout" in plain and _const(m, event.arguments[0].register) == 0:
        return False
    told = next((one for one in event.arguments if one.keyword == "inplace"), event.arguments[-1])
    return told.keyword in ("", "inplace") and not told.stars and _const(m, told.register) is True


# -- the body


def _kept_in(m: Machine, body: t.Tape, name: str, call: int, tests: tuple[tuple[int, bool], ...]) -> Iterator[_Kept]:
    """Where a body keeps what a name holds after a call."""
    for event in body:
        if isinstance(event, t.Assume):
            tests = (*tests, (event.register, event.truth))
        if isinstance(event, t.Branch):
            for arm in event.arms:
                yield from _kept_in(m, arm, name, call, tests)
        holder = -1
        if isinstance(event, t.Invoke) and event.name == "append" and len(event.arguments) == 1:
            holder = event.base if _is_load(m, event.arguments[0].register, name) else -1
        elif isinstance(event, t.StoreItem) and not event.augmented and _is_load(m, event.value, name):
            holder = event.base
        if holder >= 0 and event.site > call:
            yield _Kept(event.site, name, naming.text_of(m, holder), tests)


def _chained(m: Machine, call: t.Call) -> list[_Kept]:
    """What is computed of the last element of a list, and put behind it: `outs.append(layer(outs[-1]))`."""
    event, register = m.consumer_of(call.out), call.arguments[0].register
    item = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(event, t.Invoke) or event.name != "append" or not isinstance(item, t.Item):
        return []
    holder, last = naming.text_of(m, event.base), item.subscript[0] if len(item.subscript) == 1 else None
    if naming.text_of(m, item.base) != holder or not isinstance(last, int) or m.value(last).const != -1:
        return []
    return [_Kept(event.site, f"{holder}[-1]", holder, ())]


def _read_after(m: Machine, holder: str, loop: t.Loop) -> int:
    """Where what has been kept is looked at behind a loop; what is kept in a field is for others."""
    # A question stands behind all that there is.
    events = (event for event in t.events(loop.body) if not isinstance(event, t.Reveal))
    last = max((event.site for event in events), default=loop.site)
    if "." in holder:
        return last
    return next((event.site for event in m.index.of(t.Load) if event.name == holder and event.site > last), -1)


def _holds(m: Machine, turn: _Turn, place: int, register: int, truth: bool) -> bool:
    """Whether a test surely comes out as it is to for the layer at a place of the chain."""
    event = m.unit.definitions[register] if register >= 0 else None
    layer = turn.layers[place]
    if isinstance(event, t.Call) and m.dotted_of(event) == "builtins.isinstance" and len(event.arguments) == 2:
        asked = m.unit.definitions[event.arguments[1].register]
        classes = asked.items if isinstance(asked, t.Make) else (event.arguments[1].register,)
        names = [table.canonical(str(m.value(one).const)) for one in classes]
        about = _comes_from(m, event.arguments[0].register, turn.layer)
        return about and all(names) and (table.canonical(layer.dotted) in names) is truth
    if not isinstance(event, t.Logic | t.Operate) or event.symbol not in ("in", "==") or len(event.operands) != 2:
        return False
    if layer.name == UNKNOWN:
        return False
    number = turn.number >= 0 and _comes_from(m, event.operands[0], turn.number)
    if not number and not (turn.name >= 0 and _comes_from(m, event.operands[0], turn.name)):
        return False
    found = written_down.made(m, event.operands[1], _STEPS)
    if found is None:
        return False
    made = found[1]
    consts = [_const(found[0], one) for one in made.items] if isinstance(made, t.Make) else [_value(made)]
    return None not in consts and ((place if number else layer.name) in consts) is truth


def _comes_from(m: Machine, register: int, source: int) -> bool:
    """Whether a register holds what another one was given, by way of a name."""
    event = m.unit.definitions[register] if register >= 0 else None
    return register == source or (isinstance(event, t.Load) and uses.bindings_before(m, event) == [source])


def _is_load(m: Machine, register: int, name: str) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == name


def _const(m: Machine, register: int) -> object:
    return _value(m.unit.definitions[register]) if register >= 0 else None


def _value(event: t.Event | None) -> object:
    return event.value if isinstance(event, t.Const) else None
