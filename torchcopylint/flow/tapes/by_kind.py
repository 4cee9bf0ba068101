"""What a name holds where something is a tensor, and what else: `y = x if isinstance(x, Tensor) else np.copy(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Value
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ASKING = frozenset({"isinstance", "torch.is_tensor"})


def others(m: Machine, refs: tuple[int, ...]) -> tuple[int, ...]:
    """The objects among several that a name may hold, without those that are made where one of the others is no tensor.

    Who asks that has not chosen whether to copy: on the one path or the other, all calls go wrong.
    """
    if len(refs) < 2:
        return refs
    kept = tuple(ref for ref in refs if not _is_instead(m, ref, refs))
    return kept or refs


def main_last(m: Machine, value: Value) -> Value:
    """A value with those objects behind the others that are not made because something is no tensor: of what is written
    by kinds, one after the other, the last is told."""
    main = others(m, value.refs)
    if len(main) == len(value.refs):
        return value
    return value._replace(refs=(*(ref for ref in value.refs if ref not in main), *main))


def _is_instead(m: Machine, ref: int, refs: tuple[int, ...]) -> bool:
    site = m.state.object(ref).site
    for assumed in m.index.assumed.get(site, ()) if site >= 0 else ():
        asked = m.unit.definitions[assumed.register] if assumed.register >= 0 else None
        if assumed.truth or not isinstance(asked, t.Call | t.Invoke) or not asked.arguments:
            continue
        name = naming.text_of(m, asked.function) if isinstance(asked, t.Call) else m.dotted_of(asked)
        one = asked.arguments[0].register
        # What is asked about is itself one of the things that the name may hold.
        held = m.value(one).refs if one >= 0 else ()
        if name in _ASKING and _is_about_tensors(m, asked) and held and ref not in held and set(held) <= {*refs}:
            return True
    return False


def _is_about_tensors(m: Machine, asked: t.Call | t.Invoke) -> bool:
    if len(asked.arguments) < 2:
        return True
    return naming.text_of(m, asked.arguments[1].register).rpartition(".")[2] == "Tensor"
