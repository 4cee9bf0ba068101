"""Layers that follow one another in a chain: one that works in place spoils what the one before it keeps of its result.

Both stand where the chain is written down, in the call of `nn.Sequential` or in the list that it is given, and nothing
of that shows where the chain is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import LayerSpoils
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.networks.chains import SEQUENTIAL
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.model import Object
    from torchcopylint.flow.running.machine import Machine

_KEPT_IN_PLACE = frozenset({"CELU", "ELU", "LeakyReLU", "RReLU", "ReLU", "SELU"})
"""What these keep for backward is their result, where they work in place (executed under torch 2.13)."""
FRESH_IN_PLACE = frozenset({"AlphaDropout", "FeatureAlphaDropout"})
"""These accept `inplace=True`, and write nothing (executed under torch 2.13)."""


def check(m: Machine, event: t.Call | t.Invoke) -> None:
    """A chain is made of layers, by a call of `nn.Sequential` or by the constructor of a class below it."""
    run: list[int] = []
    for one in event.arguments:
        if one.keyword:
            return
        if one.stars:
            _check_run(m, run)
            run = []
            load = m.unit.definitions[one.register] if one.register >= 0 else None
            if isinstance(load, t.Load):
                _check_list(m, m.unit.tape, load.name)
        else:
            run.append(one.register)
    _check_run(m, run)


def is_chain(m: Machine) -> bool:
    """Whether a method is one of a class whose constructor is that of `nn.Sequential`."""
    return m.unit.owner >= 0 and SEQUENTIAL in m.world.base_names(m.unit.owner)


def _check_list(m: Machine, tape: t.Tape, name: str) -> None:
    """The layers that a list is made of or that are added to it, one after the other on one way through the code."""
    run: list[int] = []
    for event in tape:
        inner = t.inner_tapes(event)
        if any(_added(m, one, name) is not None for part in inner for one in t.events(part)):
            _check_run(m, run)
            run = []
        for part in inner:
            _check_list(m, part, name)
        added = _added(m, event, name)
        if added is None:
            continue
        if isinstance(event, t.Bind):
            _check_run(m, run)
            run = []
        run += added
    _check_run(m, run)


def _added(m: Machine, event: t.Event, name: str) -> list[int] | None:
    """What an event puts at the end of the list that a name holds, a register each (`NO_REGISTER` for what is not
    known); `None` for an event that has nothing to do with it."""
    if isinstance(event, t.Bind):
        made = m.unit.definitions[event.value] if event.value >= 0 and event.name == name else None
        # What `layers += [...]` binds, it has added before.
        augmented = isinstance(made, t.Augment)
        return None if event.name != name or augmented else _listed(m, event.value)
    if isinstance(event, t.Augment) and _is_name(m, event.target, name):
        return _listed(m, event.value)
    if not isinstance(event, t.Invoke) or not _is_name(m, event.base, name):
        return None
    if event.name == "append" and len(event.arguments) == 1:
        return [event.arguments[0].register]
    return _listed(m, event.arguments[0].register) if event.name == "extend" and event.arguments else [t.NO_REGISTER]


def _is_name(m: Machine, register: int, name: str) -> bool:
    load = m.unit.definitions[register] if register >= 0 else None
    return isinstance(load, t.Load) and load.name == name


def _listed(m: Machine, register: int) -> list[int]:
    made = m.unit.definitions[register] if register >= 0 else None
    known = isinstance(made, t.Make) and made.kind in ("list", "tuple") and not any(made.stars)
    return list(made.items) if known and isinstance(made, t.Make) else [t.NO_REGISTER]


def _check_run(m: Machine, run: list[int]) -> None:
    """Layers that surely follow one another."""
    before: tuple[int, Object] | None = None
    for register in _flat(m, run):
        layer = _layer(m, register)
        if layer is not None and before is not None and _keeps_result(before[1]) and _writes(m, register, layer):
            made, kept = m.unit.definitions[register], m.unit.definitions[before[0]]
            if isinstance(made, t.Call | t.Invoke) and isinstance(kept, t.Call | t.Invoke):
                m.fact(LayerSpoils(made.site, layer.text, kept.site, before[1].text, Sure.LIKELY))
        if layer is None or layer.type != "torch.nn.Identity":
            before = (register, layer) if layer is not None else None


def _flat(m: Machine, run: list[int]) -> list[int]:
    """The same layers, with those of a chain that stands among them in its place."""
    found: list[int] = []
    for register in run:
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Call | t.Invoke) and made.arguments and m.dotted_of(made) == SEQUENTIAL:
            plain = [one.register if not (one.stars or one.keyword) else t.NO_REGISTER for one in made.arguments]
            found += _flat(m, plain)
        else:
            found.append(register)
    return found


def _layer(m: Machine, register: int) -> Object | None:
    refs = m.value(register).refs if register >= 0 else ()
    obj = m.state.object(refs[0]) if len(refs) == 1 else None
    return obj if obj is not None and obj.kind is Kind.MODULE and table.module_class(obj.type) is not None else None


def _keeps_result(layer: Object) -> bool:
    row, plain = table.module_class(layer.type), layer.type.rpartition(".")[2]
    inplace = dict(layer.config).get("inplace") is True and plain in _KEPT_IN_PLACE
    return row is not None and not row.container and ("output" in row.saves or inplace)


def _writes(m: Machine, register: int, layer: Object) -> bool:
    """Whether a layer surely writes into what it is given, in training: a dropout of nothing does not."""
    row, plain = table.module_class(layer.type), layer.type.rpartition(".")[2]
    inplace = row is not None and row.inplace_keyword and dict(layer.config).get("inplace") is True
    if not inplace or plain in FRESH_IN_PLACE:
        return False
    made = m.unit.definitions[register]
    first = made.arguments[0] if "Dropout" in plain and isinstance(made, t.Call | t.Invoke) and made.arguments else None
    return first is None or first.keyword not in ("", "p") or m.value(first.register).const != 0
