"""Pictures of PIL: what is opened by it, and the arrays that `np.asarray` makes of them, which must not be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import READ_ONLY, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_OPENING = frozenset({"PIL.Image.open", "PIL.Image.new", "PIL.Image.fromarray", "PIL.Image.frombytes"})
_CHANGED = frozenset(
    {"convert", "copy", "crop", "filter", "quantize", "reduce", "resize", "rotate", "transform", "transpose"}
)
"""Methods of a picture that return a picture."""
_SHOWING = frozenset({"numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"})
_VIEWS = frozenset({"permute", "transpose", "view", "reshape", "unsqueeze", "squeeze", "t", "movedim", "contiguous"})
_LOOKS = frozenset(
    {"float", "double", "half", "to", "long", "int", "type", "clone", "div", "mul", "sub", "sum", "mean"}
)
MAX_STEPS = 12


def note(m: Machine, dotted: str, event: t.Call | t.Invoke, made: Value) -> None:
    """An array has been made: of a picture, it is a window on `bytes`, unless it is converted."""
    if dotted not in _SHOWING or len(event.arguments) != 1 or not is_picture(m, event.arguments[0].register):
        return
    for ref in made.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(flags=obj.flags | {READ_ONLY}))


def is_picture(m: Machine, register: int) -> bool:
    """Whether a value is what `Image.open` has returned, as it is or changed by methods of its own."""
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = uses.bindings_before(m, event)
                if len(bound) != 1:
                    return False
                register = bound[0]
            case t.Enter():
                register = event.manager
            case t.Call() | t.Invoke() if m.dotted_of(event) in _OPENING:
                return True
            case t.Invoke() if event.name in _CHANGED:
                register = event.base
            case _:
                return False
    return False


def is_copied(m: Machine, register: int) -> bool:
    """Whether what is made over a picture is converted or computed with at once, and so never written itself."""
    for _ in range(MAX_STEPS):
        event = m.consumer_of(register)
        match event:
            case t.Operate():
                return True
            case t.Invoke() if event.base == register and event.name in _LOOKS:
                return True
            case t.Invoke() if event.base == register and event.name in _VIEWS:
                register = event.out
            case t.Item() | t.Attribute():
                register = event.out
            case t.Bind() if not event.name.startswith("%"):
                return _is_only_copied(m, event)
            case _:
                return False
    return False


def _is_only_copied(m: Machine, bind: t.Bind) -> bool:
    """Whether a name is next looked at to be bound to a copy of what it holds: `x = x.float()`."""
    looks = [use for use in uses.of_name(m, bind.name) if use.loads and use.site > bind.site]
    event = m.consumer_of(looks[0].register) if looks else None
    while isinstance(event, t.Invoke) and event.name in _VIEWS and naming.text_of(m, event.base):
        event = m.consumer_of(event.out)
    return isinstance(event, t.Operate) or (isinstance(event, t.Invoke) and event.name in _LOOKS)
