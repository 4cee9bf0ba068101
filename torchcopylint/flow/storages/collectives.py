"""What `torch.distributed` fills: the tensors of a list, one for each process, or one for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import CONTAINERS, Value
from torchcopylint.flow.storages import reading, slots, writing
from torchcopylint.flow.values import memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

FILLED = {
    "torch.distributed.all_gather": (0, "tensor_list"),
    "torch.distributed.gather": (1, "gather_list"),
    "torch.distributed.all_to_all": (0, "output_tensor_list"),
    "torch.distributed.distributed_c10d.all_gather": (0, "tensor_list"),
}
"""Which argument of a collective is a list whose tensors it writes, one after the other."""


def fill(m: Machine, function: str, arguments: Arguments, site: int, name: str) -> Value:
    """A collective writes the tensors of a list; what it returns, if anything, is a handle to wait on."""
    position, keyword = FILLED[function]
    target = arguments.keywords.get(keyword, arguments.at(position))
    text = naming.key_text(m, target.root)
    for ref in target.refs:
        if m.state.object(ref).kind not in CONTAINERS:
            continue
        for slot in m.state.slot_names(ref):
            if slot[1].startswith("["):
                held = slots.slot_value(m, slot)
                if len(held.refs) != 1 or held.refs[0] & 1:
                    # Of several tensors each is written, and nobody knows which of them somebody else holds.
                    continue
                op = f"{name}(...)"
                writing.write(m, held, site, op=op, form="call", name=f"{text}[...]", reads_old=False, also=True)
    for value in (*arguments.positional, *arguments.keywords.values()):
        if value is not target:
            reading.read(m, value, site, "argument", name)
    return memory.unknown(m, site, f"{name}(...)")
