"""What was asked to be somewhere else, or of another dtype, is copied by the conversion that follows:
`if x.device != y.device: x = x.to(y.device)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

_ASKED = frozenset({"device", "dtype"})


def assume(m: Machine, event: t.Operate) -> None:
    """`x.device != y.device` holds, or the same of dtypes. Where paths meet again the flag goes.

    A name for a device, or a field of the object, may be that of a text, which is unlike every device.
    """
    for one, other in (event.operands, event.operands[::-1]):
        asked, text = m.unit.definitions[one], naming.text_of(m, other)
        like = m.unit.definitions[other]
        if _is_asked(asked) and _is_asked(like) and not uses.is_self(m, like.base) and text and "..." not in text:
            for ref in m.value(asked.base).refs:
                obj = m.state.object(ref)
                m.state.set_object(ref, obj._replace(flags=obj.flags | {_flag(text)}))


def _is_asked(event: t.Event | None) -> TypeGuard[t.Attribute]:
    return isinstance(event, t.Attribute) and event.name in _ASKED


def is_converted(m: Machine, source: Value, site: int) -> bool:
    """Whether the conversion at a site is to what its receiver was asked not to be like."""
    made = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(made, t.Invoke) or made.name != "to" or not source.refs:
        return False
    wanted = {_flag(naming.text_of(m, argument.register)) for argument in made.arguments}
    return all(wanted & m.state.object(ref).flags for ref in source.refs)


def _flag(text: str) -> str:
    return f"unlike {text}"
