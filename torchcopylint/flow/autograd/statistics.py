"""Running statistics: the forward pass of a normalisation writes its buffers, as long as it is in training mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import How, Kind, Part, Sure, Value
from torchcopylint.flow.storages import slots, writing
from torchcopylint.flow.values.sites import STATISTICS, Arguments
from torchcopylint.flow.values.state import TRAINING
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MODE = "training"
MAX_NORM = "shortens its rows"
_TABLES = {"torch.nn.Embedding": 3, "torch.nn.EmbeddingBag": 2}
"""Tables of embeddings, and where `max_norm` stands among what they are made of."""
MAX_DEPTH = 3
"""So many levels of modules in modules change their mode together, as far as anything is known of them."""


def set_mode(m: Machine, module: Value, name: str, arguments: Arguments, depth: int = MAX_DEPTH) -> None:
    """`train()` or `eval()` of a module, which holds for those in it."""
    told = arguments.keywords.get("mode", arguments.at(0))
    unknown = told.const is None and (told.root is not None or bool(told.refs))
    training = name == "train" and told.const is not False
    for ref in module.refs if depth and not unknown else ():
        obj = m.state.object(ref)
        if obj.kind is Kind.MODULE:
            others = tuple(pair for pair in obj.config if pair[0] != MODE)
            m.state.set_object(ref, obj._replace(config=(*others, (MODE, training))))
            for slot in m.state.slot_names(ref):
                set_mode(m, Value(m.state.refs_of(slot)), name, arguments, depth - 1)


def renormalises(dotted: str, arguments: Arguments) -> bool:
    """Whether a table of embeddings is made that shortens its rows in place as it looks them up."""
    given = arguments.keywords.get("max_norm", arguments.at(_TABLES.get(dotted, -1)))
    return dotted in _TABLES and (given.const is not None or bool(given.refs))


def renormalise(m: Machine, module: Value, site: int, name: str) -> None:
    """Embeddings are looked up: rows that are too long are shortened, without a record, before they are taken."""
    for ref in module.refs if len(module.refs) == 1 else ():
        obj = m.state.object(ref)
        if obj.sure is Sure.PROVEN and dict(obj.config).get(MAX_NORM) is True and m.state.refs_of((ref, ".weight")):
            weight = slots.slot_value(m, (ref, ".weight"))
            writing.write(m, weight, site, op=f"{name}(...)", form="call", name=f"{name}.weight", also=True)


def update(m: Machine, module: Value, row: table.ModuleOp, site: int, name: str) -> None:
    """A layer has been called: if that was in training, its statistics are others now."""
    if not row.writes_buffers or m.state.get(TRAINING) is False:
        return
    for ref in module.refs if len(module.refs) == 1 else ():
        obj = m.state.object(ref)
        if obj.sure is not Sure.PROVEN or dict(obj.config).get(MODE) is False:
            continue
        for buffer in row.buffers:
            # Of a buffer that nobody has looked at there is nothing to say.
            if m.state.refs_of((ref, f".{buffer}")):
                value = slots.slot_value(m, (ref, f".{buffer}"))
                text = f"{name}.{buffer}"
                writing.write(m, value, site, op=f"{name}(...)", form=STATISTICS, name=text, also=True)
        if row.buffers and _is_in_a_state(m, ref):
            _write_in_state(m, ref, module, row.buffers[0], site, name)


def update_within(m: Machine, module: Value, site: int, name: str, depth: int = MAX_DEPTH) -> None:
    """A chain of layers has been called: the statistics of those in it are others in a state dict of the chain."""
    for ref in module.refs if depth and len(module.refs) == 1 else ():
        for slot in m.state.slot_names(ref) if m.state.object(ref).sure is Sure.PROVEN else ():
            held = m.state.refs_of(slot)
            for inner in held if slot[1].startswith("[") else ():
                obj = m.state.object(inner)
                row = table.module_class(obj.type) if obj.type else None
                if obj.sure is not Sure.PROVEN or dict(obj.config).get(MODE) is False or row is None:
                    continue
                if row.writes_buffers and row.buffers and _is_in_a_state(m, inner):
                    _write_in_state(m, inner, module, row.buffers[0], site, name)
                elif row.container:
                    update_within(m, Value((inner,), obj.kind), site, name, depth - 1)


def _is_in_a_state(m: Machine, ref: int) -> bool:
    """Whether somebody has asked for a state dict with what a layer keeps in it, or for its buffers."""
    for share in m.state.object(ref).shares:
        for other in m.state.sharers.get(share.storage, ()):
            obj = m.state.object(other)
            mine = [s for s in obj.shares if s.storage == share.storage]
            buffers = obj.kind is Kind.TENSOR and any(s.how is How.PARAMETERS for s in mine)
            if buffers or (obj.kind is Kind.STATE_DICT and mine):
                return True
    return False


def _write_in_state(m: Machine, ref: int, module: Value, buffer: str, site: int, name: str) -> None:
    layer = Value((ref,), Kind.MODULE, root=module.root)
    part = (Part("field", buffer),)
    writing.write(m, layer, site, op=f"{name}(...)", form=STATISTICS, name=name, region=part, also=True)
