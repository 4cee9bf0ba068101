"""Parts of a batch: what a loop takes out of something that nobody knows, and a network is called with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_MOVES_ITSELF = re.compile(r"(?:^|_)(?:data|graphs?|g|bg|batch|enc\w*|tok\w*|samples?|feats?|features)\d*$", re.I)
"""What is called so may be a graph or the output of a tokenizer, which are moved where they stand."""


def is_part(m: Machine, register: int) -> bool:
    """Whether a name is bound to nothing but a part of a loop's element, of which a part is passed to a network, or
    stands beside such a part: `for x, y in loader: y.cuda(); out = model(x)`. That is a tensor, and so is what stands
    under a name in a loop's element (`batch["x"]`), and each entry of what is called a batch that a loop goes through:
    `for k in batch: batch[k].to(device)`."""
    load = m.unit.definitions[register] if register >= 0 else None
    if _is_entry_of_batch(m, load):
        return True
    if load.__class__ is t.Item and len(load.subscript) == 1 and isinstance(load.subscript[0], int):
        key = m.value(load.subscript[0]).const
        return isinstance(key, str) and not _MOVES_ITSELF.search(key) and _turn(m, register) >= 0
    if load.__class__ is not t.Load or _MOVES_ITSELF.search(load.name) or kinds.named_model(load.name):
        return False
    binds = m.index.binds.get(load.name, ())
    turns = {_turn(m, bind.value) for bind in binds}
    if len(turns) != 1 or -1 in turns or _is_called(m, load.name):
        return False
    beside = {bind.name for bind in m.index.of(t.Bind) if _turn(m, bind.value) in turns}
    return any(name in beside for name in _passed(m))


def _is_entry_of_batch(m: Machine, event: t.Event | None) -> bool:
    """Whether something is the entry of what is called a batch that a loop over its keys has come to: `batch[k]`."""
    if not isinstance(event, t.Item) or len(event.subscript) != 1 or not isinstance(event.subscript[0], int):
        return False
    key = m.unit.definitions[event.subscript[0]] if event.subscript[0] >= 0 else None
    binds = m.index.binds.get(key.name, ()) if isinstance(key, t.Load) else ()
    made = m.unit.definitions[binds[0].value] if len(binds) == 1 and binds[0].value >= 0 else None
    through = made.iterable if isinstance(made, t.Iterate) else t.NO_REGISTER
    asked = m.unit.definitions[through] if through >= 0 else None
    if isinstance(asked, t.Invoke) and asked.name == "keys":
        through = asked.base
    place = naming.text_of(m, event.base)
    return kinds.named_batch(place) and through >= 0 and naming.text_of(m, through) == place


def _turn(m: Machine, register: int) -> int:
    """The loop that a register holds a part of an element of, by the register of that; -1 for none."""
    made = m.unit.definitions[register] if register >= 0 else None
    parted = False
    while isinstance(made, t.Unpack | t.Item | t.Load):
        if isinstance(made, t.Load):
            binds = m.index.binds.get(made.name, ())
            if len(binds) != 1 or binds[0].value < 0 or binds[0].value >= made.out:
                return -1
            made = m.unit.definitions[binds[0].value]
            continue
        if made.__class__ is t.Unpack and isinstance(display := m.unit.definitions[made.value], t.Make):
            # `x, y = batch["x"], batch["y"]`
            parts = display.items if 0 <= made.position < len(display.items) else ()
            made = m.unit.definitions[parts[made.position]] if parts else None
            continue
        parted = True
        made = m.unit.definitions[made.value if isinstance(made, t.Unpack) else made.base]
    return made.out if made.__class__ is t.Iterate and parted else -1


def _is_called(m: Machine, name: str) -> bool:
    """Whether a unit calls what a name holds: it is no part of a batch, but a network."""
    functions = (m.unit.definitions[call.function] for call in m.index.of(t.Call))
    return any(one.__class__ is t.Load and one.name == name for one in functions)


def _passed(m: Machine) -> list[str]:
    """The names that networks are called with."""
    found = []
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in calls:
        given = [one.register for one in call.arguments if not one.stars]
        names = [made.name for one in given if isinstance(made := m.unit.definitions[one], t.Load)]
        if names and _is_network(m, call):
            found += names
    return found


def _is_network(m: Machine, call: t.Call | t.Invoke) -> bool:
    if isinstance(call, t.Invoke):
        base = m.unit.definitions[call.base]
        return base.__class__ is t.Load and base.name == m.unit.first and kinds.named_model(call.name)
    function = m.unit.definitions[call.function]
    if function.__class__ is not t.Load:
        return kinds.named_model(naming.text_of(m, call.function))
    return kinds.named_model(function.name) or any(
        m.state.object(ref).kind is Kind.MODULE for ref in m.state.refs_of(function.name)
    )
