"""Networks that are given a state and return the next one, by the names that code has for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 4
"""So many steps lead from what is cut to what it was taken out of."""
_STATE_NAME = re.compile(
    r"hidden|^(?:h|hc|hx|cx|hs|h_[0nt]|c_[0nt]|states?|carry|mem)$|(?:rnn|lstm|gru|cell|core|recurrent)_(?:states?|h)",
    re.I,
)
"""The memories of a Transformer-XL, `mems`, have no graph: those are cut inside."""


def goes_round(m: Machine, site: int) -> bool:
    """Whether a call in a loop is given a hidden state and returns the next one, under one name: `y, h = net(x, h)`,
    or `h = cell(x, h)`.

    Hardly anybody who writes a recurrent network cuts the state inside of it, and who does, in this file, is believed.
    """
    register = m.index.calls.get(site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(call, t.Call | t.Invoke):
        return False
    given = {text for argument in call.arguments if (text := _state(m, argument.register))}
    if not given or _cuts_inside(m):
        return False
    parts = {event.out for event in m.index.of(t.Unpack) if event.value == register} or {register}
    return any(_is_only_bound_to(m, text, parts, uses.loops_around(m, site)) for text in given)


def _state(m: Machine, register: int) -> str:
    """How a value is called that by its name is a hidden state: a name in a loop, a field or an entry."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load) and m.in_loop:
        return made.name if _STATE_NAME.search(made.name) else ""
    if isinstance(made, t.Attribute):
        return naming.text_of(m, register) if _STATE_NAME.search(made.name) else ""
    part = made.subscript[0] if isinstance(made, t.Item) and len(made.subscript) == 1 else None
    key = m.value(part).const if isinstance(part, int) and part >= 0 else None
    return naming.text_of(m, register) if isinstance(key, str) and _STATE_NAME.search(key) else ""


def _is_only_bound_to(m: Machine, text: str, parts: set[int], loops: tuple[int, ...]) -> bool:
    """Whether all that something is bound to in a loop, or a field or entry in a unit, is of some registers: nothing
    else there cuts what it holds."""
    bound = [(bind.value, bind.site) for bind in m.index.binds.get(text, ())]
    if not text.isidentifier():
        stores = m.index.stores.get(text.rpartition(".")[2], ())
        bound = [(e.value, e.site) for e in stores if f"{naming.text_of(m, e.base)}.{e.name}" == text]
        items = m.index.of(t.StoreItem)
        bound += [
            (e.value, e.site)
            for e in items
            if f"{naming.text_of(m, e.base)}[{naming.index_text(m, e.subscript)}]" == text
        ]
    values = [value for value, site in bound if uses.loops_around(m, site) == loops]
    return bool(values) and all(value in parts or _is_name_of(m, value, parts) for value in values)


def _is_name_of(m: Machine, register: int, parts: set[int]) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    bound = uses.bindings_before(m, made) if isinstance(made, t.Load) else []
    return bool(bound) and set(bound) <= parts


def may_cut(m: Machine, register: int) -> bool:
    """Whether a value comes from a function of the file that has to do with detaching, by its name or by what it names:
    `tree_map(torch.Tensor.detach, hidden)`."""
    call = m.unit.definitions[register] if register >= 0 else None
    load = m.unit.definitions[call.function] if isinstance(call, t.Call) and call.function >= 0 else None
    if not isinstance(load, t.Load):
        return False
    units = [unit for unit in m.world.program.units if unit.kind == "function" and unit.name == load.name]
    return "detach" in load.name or any(_detaches(unit) for unit in units)


def cuts_elements(m: Machine, events: Iterable[t.Event], name: str) -> bool:
    """Whether something is done with `detach_()` to what a name holds, one by one: `for h in hidden: h.detach_()`,
    `hidden[0].detach_()`, `h, c = hidden` and `h.detach_()`, `for s in (h, c): s.detach_()`."""
    cut = [event.base for event in events if isinstance(event, t.Invoke) and event.name == "detach_"]
    return any(name in _taken_from(m, base, MAX_STEPS) for base in cut)


def _taken_from(m: Machine, register: int, steps: int) -> Iterator[str]:
    """The texts of what a value has been taken out of."""
    event = m.unit.definitions[register] if register >= 0 and steps else None
    match event:
        case t.Item():
            yield naming.text_of(m, event.base)
        case t.Load():
            for bind in m.index.binds.get(event.name, ()):
                yield from _taken_from(m, bind.value, steps - 1)
        case t.Unpack():
            yield naming.text_of(m, event.value)
        case t.Iterate():
            yield naming.text_of(m, event.iterable)
            display = m.unit.definitions[event.iterable]
            for item in display.items if isinstance(display, t.Make) else ():
                yield naming.text_of(m, item)
                yield from _taken_from(m, item, steps - 1)


def _detaches(unit: t.Unit) -> bool:
    return any(
        (e.__class__ is t.Invoke or e.__class__ is t.Attribute) and e.name in ("detach", "detach_", "data")
        for e in unit.definitions
    )


def _cuts_inside(m: Machine) -> bool:
    """Whether the `forward` of some class of the file detaches something."""
    units = m.world.program.units
    return any(_detaches(unit) for unit in units if unit.owner >= 0 and unit.name == "forward")
