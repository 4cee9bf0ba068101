"""`TensorDataset`: what it keeps are the tensors themselves, and a sample is a row of each of them."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.library import containers
from torchcopylint.flow.model import TENSORS, How, Kind, Object, Part, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.values import memory, naming
from torchcopylint.flow.values.sites import Arguments

OF_TENSORS = "torch.utils.data.TensorDataset"


@special(OF_TENSORS, "torch.utils.data.dataset.TensorDataset")
def _of_tensors(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "argument", name)
    given = [value for value in arguments.positional if value.refs]
    made = Object(Kind.OTHER, Sure.PROVEN, type=OF_TENSORS, text=f"{name}(...)")
    made_of = slots.join_values(given)._replace(root=None) if given else Value()
    dataset = memory.alias(m, made_of, event.site, How.VIEW, made)._replace(root=None)
    ref = dataset.refs[0]
    if not any(argument.stars for argument in event.arguments):
        for place, value in enumerate(arguments.positional):
            slots.bind_slot(m, (ref, f"[{place}]"), value, event.site)
    return dataset


def sample(m: Machine, dataset: Value, site: int, tag: str) -> Value:
    """A sample of a dataset of tensors: a tuple of rows, of what is known to stand in it, or of all that it keeps."""
    ref = dataset.refs[0]
    known = [slot for slot in m.state.slot_names(ref) if slot[1][1:-1].isdigit()]
    row = Object(Kind.TENSOR, Sure.LIKELY)
    if not known:
        each = memory.alias(m, dataset, site, How.ROW, row, region=(Part("?"),), tag=f"{tag} each")
        return containers.iterator(m, site, each, tag, Kind.TUPLE)
    whole = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text="..."), tag)
    for slot in known:
        held = slots.slot_value(m, slot)
        objects = [m.state.object(one) for one in held.refs]
        if objects and all(obj.kind in TENSORS for obj in objects):
            made = row._replace(requires_grad=objects[0].requires_grad, leaf=objects[0].leaf, dtype=objects[0].dtype)
            part = memory.alias(m, held, site, How.ROW, made, region=(Part("?"),), tag=f"{tag}{slot[1]}")
        else:
            part = memory.unknown(m, site, naming.key_text(m, slot))
        slots.bind_slot(m, (whole.refs[0], slot[1]), part, site)
    return whole
