"""What a forward hook keeps of the input of a layer that works in place: it is called when that is overwritten.

act = nn.ReLU(inplace=True)
act.register_forward_hook(lambda m, args, out: seen.update(before=args[0]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import KeptSpoilt
from torchcopylint.flow.graphs import callbacks
from torchcopylint.flow.interprocedural import forward_hooks, partials
from torchcopylint.flow.model import Kind, Object, Sure, Value
from torchcopylint.flow.networks import told_inplace
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_ALIASES = frozenset({"data", "detach", "view", "squeeze"})
_PUTTING = frozenset({"append", "update", "setdefault", "extend"})
MAX_STEPS = 4
"""So many views and names are gone back over from what is kept to the hook's argument."""


def note(m: Machine, event: t.Invoke, arguments: Arguments) -> None:
    """A function may be registered as a forward hook of a layer, argument 0, and keep what that is given."""
    given = [one.register for one in event.arguments if one.keyword in ("", "hook")][:1]
    layer = arguments.at(0)
    obj = m.state.object(layer.refs[0]) if len(layer.refs) == 1 else None
    if event.name != forward_hooks.REGISTERING or not given or obj is None or not works_in_place(obj):
        return
    value = arguments.keywords.get("hook", arguments.at(1))
    function = callbacks.called(m, given[0], value).const
    hook = m.world.machines.get(function.unit) if isinstance(function, FunctionReference) else None
    parameter = parameter_of(m, hook, value, 1) if hook is not None and m.world.is_own(hook.unit.number) else ""
    for put in hook.index.events if hook is not None and parameter else ():
        holder = holder_of(hook, put, parameter, _is_input) if hook is not None else ""
        if holder:
            op = f"{obj.type.rpartition('.')[2]}(...)"
            told = told_inplace.site_of(m, layer, event.site)
            m.fact(KeptSpoilt(event.site, holder, op, put.site, told, Sure.LIKELY))
            return


def works_in_place(obj: Object) -> bool:
    """Whether a module is a layer that was told to write its result over its input."""
    row = table.module_class(obj.type) if obj.kind is Kind.MODULE and obj.type else None
    return row is not None and row.inplace_keyword and dict(obj.config).get("inplace") is True


def parameter_of(m: Machine, hook: Machine, value: Value, behind: int) -> str:
    """The parameter of a hook, so many behind the one for the layer itself: its inputs are 1 behind, its output 2."""
    unit = hook.unit
    plain = [parameter.name for parameter in unit.parameters if parameter.kind == "plain"]
    method = unit.owner >= 0 and unit.kind == "function" and "staticmethod" not in m.world.decorators(unit.number)
    place = method + len(partials.given(m, value)) + behind
    return plain[place] if place < len(plain) else ""


def holder_of(hook: Machine, put: t.Event, parameter: str, is_kept: Callable[[Machine, int, str], bool]) -> str:
    """Where an event of the hook puts what `is_kept` knows of a parameter; an empty text if it does not."""
    if isinstance(put, t.StoreItem) and is_kept(hook, put.value, parameter):
        return f"{naming.text_of(hook, put.base)}[{naming.index_text(hook, put.subscript)}]"
    if isinstance(put, t.StoreAttribute) and is_kept(hook, put.value, parameter):
        return f"{naming.text_of(hook, put.base)}.{put.name}"
    given = put.arguments if isinstance(put, t.Invoke) and put.name in _PUTTING else ()
    if isinstance(put, t.Invoke) and any(is_kept(hook, argument.register, parameter) for argument in given):
        return naming.text_of(hook, put.base)
    return ""


def _is_input(hook: Machine, register: int, parameter: str) -> bool:
    """Whether a value is one of the inputs, or sits on the memory of one: `args[0].detach()`."""
    made = _held(hook, register)
    base = hook.unit.definitions[made.base] if isinstance(made, t.Item) else None
    return isinstance(base, t.Load) and base.name == parameter


def is_output(hook: Machine, register: int, parameter: str) -> bool:
    """Whether a value is the output, or sits on its memory: `out.detach()`."""
    made = _held(hook, register)
    return isinstance(made, t.Load) and made.name == parameter


def _held(hook: Machine, register: int) -> t.Event | None:
    """What a value is a view of, or another name for, as far as the hook itself shows."""
    made = hook.unit.definitions[register] if register >= 0 else None
    for _ in range(MAX_STEPS):
        if isinstance(made, t.Load) and (bound := hook.index.binds.get(made.name, ())):
            register = bound[0].value if len(bound) == 1 else t.NO_REGISTER
        elif isinstance(made, t.Invoke | t.Attribute) and made.name in _ALIASES:
            register = made.base
        else:
            break
        made = hook.unit.definitions[register] if register >= 0 else None
    return made
