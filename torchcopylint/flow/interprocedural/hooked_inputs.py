"""What a forward hook keeps of the input of a layer that works in place: it is called when that is overwritten.

act = nn.ReLU(inplace=True)
act.register_forward_hook(lambda m, args, out: seen.update(before=args[0]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import KeptSpoilt
from torchcopylint.flow.model import Kind, Sure, Value
from torchcopylint.flow.networks import told_inplace
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ALIASES = frozenset({"data", "detach", "view", "squeeze"})
_PUTTING = frozenset({"append", "update", "setdefault", "extend"})
MAX_STEPS = 4
"""So many views and names are gone back over from what is kept to the hook's argument."""


def note(m: Machine, event: t.Invoke, layer: Value, unit: t.Unit, parameter: str) -> None:
    """A function is registered as a forward hook of a layer; `parameter` is where it is handed the layer's inputs."""
    obj = m.state.object(layer.refs[0]) if len(layer.refs) == 1 else None
    hook = m.world.machines.get(unit.number)
    if obj is None or hook is None or obj.kind is not Kind.MODULE or dict(obj.config).get("inplace") is not True:
        return
    row = table.module_class(obj.type) if obj.type else None
    if row is None or not row.inplace_keyword:
        return
    for put in hook.index.events:
        holder = _holder(hook, put, parameter)
        if holder:
            op = f"{obj.type.rpartition('.')[2]}(...)"
            told = told_inplace.site_of(m, layer, event.site)
            m.fact(KeptSpoilt(event.site, holder, op, put.site, told, Sure.LIKELY))
            return


def _holder(hook: Machine, put: t.Event, parameter: str) -> str:
    """Where an event of the hook puts an input as it is; an empty text if it does not."""
    if isinstance(put, t.StoreItem) and _is_input(hook, put.value, parameter):
        return f"{naming.text_of(hook, put.base)}[{naming.index_text(hook, put.subscript)}]"
    if isinstance(put, t.StoreAttribute) and _is_input(hook, put.value, parameter):
        return f"{naming.text_of(hook, put.base)}.{put.name}"
    given = put.arguments if isinstance(put, t.Invoke) and put.name in _PUTTING else ()
    if isinstance(put, t.Invoke) and any(_is_input(hook, argument.register, parameter) for argument in given):
        return naming.text_of(hook, put.base)
    return ""


def _is_input(hook: Machine, register: int, parameter: str) -> bool:
    """Whether a value is one of the inputs, or sits on the memory of one: `args[0].detach()`."""
    for _ in range(MAX_STEPS):
        made = hook.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Item):
            base = hook.unit.definitions[made.base]
            return isinstance(base, t.Load) and base.name == parameter
        if isinstance(made, t.Load):
            bound = hook.index.binds.get(made.name, ())
            if len(bound) != 1:
                return False
            register = bound[0].value
        elif isinstance(made, t.Invoke | t.Attribute) and made.name in _ALIASES:
            register = made.base
        else:
            return False
    return False
