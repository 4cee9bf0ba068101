"""Writes that torch refuses, or that mean something else than they say, because of how a tensor was made.

A part of several (`chunk`, iteration), a view made while grad mode was off, an expanded tensor, an inference tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import grads
from torchcopylint.flow.facts import ExpandedWritten, InferenceMisused, OutAliases, ViewRefused
from torchcopylint.flow.graphs import stale_views
from torchcopylint.flow.model import (
    EXPANDED,
    INFERENCE,
    LOCAL,
    PARTS,
    TENSORS,
    WHOLE,
    WINDOWS,
    Fact,
    How,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Site
    from torchcopylint.knowledge.table import Op

EXPANDING = frozenset({"expand", "expand_as", "broadcast_to", "meshgrid"})
"""Operations whose results repeat one memory along a dimension. What `broadcast_tensors` returns need not: `layout`."""
_READING_AGAIN = {"mm": 0, "matmul": 0, "bmm": 0, "mv": 0, "addmm": 1, "addmv": 1, "baddbmm": 1}
"""Products, and from which operand on `out=` must not be one; those that add take their first one as a start."""
_CHAINED = frozenset({"multi_dot", "chain_matmul"})
_FILLING = frozenset({"fill_", "zero_"})
"""These give every element the same value, so it does not matter how often they meet it."""


def check(m: Machine, target: Value, sources: Sequence[Value], at: Site) -> None:
    """A tensor is written in place: whichever of its objects it is, is the write refused?"""
    if target.refs:
        _check_expanded(m, target, at)
    check_shape(m, target, sources, at)


def check_shape(m: Machine, target: Value, sources: Sequence[Value], at: Site) -> None:
    """A tensor's shape or its elements are written in place (`t_` and `add_` alike): is that refused?"""
    if not target.refs:
        return
    check_inference(m, target, at)
    if m.state.mode.recording <= 0 or m.state.mode.inference > 0:
        return
    found = [_refused(m, ref, sources, at) for ref in target.refs]
    refused = [fact for fact in found if fact is not None]
    if refused and len(refused) == len(found):
        m.fact(min(refused, key=lambda fact: fact.sure))


def check_out(m: Machine, op: Op, inputs: Sequence[Value], out: Value, at: Site) -> None:
    """`out=` may be an operand of what works element by element. These read it again after they have begun to write."""
    if not out.refs or any(ref & 1 for ref in out.refs):
        # What earlier turns of a loop have made is several objects under one number.
        return
    for value in _read_again(m, op.short, inputs):
        if value.refs == out.refs and (len(out.refs) == 1 or value.root == out.root):
            obj = m.state.object(out.refs[0])
            name = naming.key_text(m, out.root) or obj.text
            m.fact(OutAliases(at.site, name, at.op, max(obj.sure, Sure.LIKELY)))
            return


def _read_again(m: Machine, short: str, inputs: Sequence[Value]) -> Sequence[Value]:
    """The operands that an operation reads again after it has begun to write."""
    if short == "matrix_power":
        # A power of two beyond the first is computed in room of its own (executed under torch 2.13).
        power = inputs[1].const if len(inputs) == 2 else None
        told = isinstance(power, int) and power > 1 and (power == 2 or power & (power - 1) != 0)
        return inputs[:1] if told else ()
    if short in _CHAINED:
        held = [slot for ref in inputs[0].refs for slot in m.state.slot_names(ref)] if len(inputs) == 1 else []
        given = [Value(m.state.refs_of(slot)) for slot in held] if held else inputs
        # Of three or more it depends on their shapes which of them are multiplied last.
        return given if len(given) == 2 else ()
    return inputs[_READING_AGAIN[short] :] if short in _READING_AGAIN else ()


def _refused(m: Machine, ref: int, sources: Sequence[Value], at: Site) -> ViewRefused | None:
    why, viewed, base = stale_views.made(m, ref)
    inputs = [obj.requires_grad for obj in grads.tensors_in(m, sources) if obj.kind in TENSORS]
    needs = max(m.state.object(ref).requires_grad, base.requires_grad, *inputs)
    tensor = base.kind in TENSORS or PARTS in base.flags
    if why == "custom" and needs is Fact.UNKNOWN:
        # Who writes a function of its own for autograd hands it tensors that require grad.
        needs, tensor, base = Fact.LIKELY, True, base._replace(sure=Sure.LIKELY)
    if not why or needs <= 0 or not tensor:
        return None
    sure = base.sure if needs is Fact.YES else min(base.sure, Sure.LIKELY)
    local = base.owner in ("", LOCAL)
    return ViewRefused(at.site, at.name, at.op, why, base.text, viewed, m.state.mode.assumed, local, sure)


def check_inference(m: Machine, target: Value, at: Site, least: Sure = Sure.NOT) -> None:
    """A tensor that was made in inference mode is written in place outside of it: that is refused.

    `least` is how surely its use shows that it is a tensor.
    """
    objects = [m.state.object(ref) for ref in target.refs]
    if m.state.mode.inference is Fact.NO and all(INFERENCE in obj.flags for obj in objects):
        obj = objects[0]
        sure = min(max(o.sure, least) for o in objects)
        m.fact(InferenceMisused(at.site, at.name, at.op, obj.site, "written", sure))


def _check_expanded(m: Machine, target: Value, at: Site) -> None:
    if len(target.refs) != 1:
        return
    obj = m.state.object(target.refs[0])
    base = _written_part_of(m, target.refs[0], at)
    part = at.form == "item" or base is not None
    written = base if base is not None else obj
    repeats = written.flags & {EXPANDED, WINDOWS}
    if repeats and (base is not None or at.op not in _FILLING):
        name = at.name if base is None else base.text
        m.fact(ExpandedWritten(at.site, name, at.op, written.site, part, WINDOWS in repeats, obj.sure))


def _written_part_of(m: Machine, ref: int, at: Site) -> Object | None:
    """The tensor of which a write hits one part along its first dimension: `h[i] += 1`, `h[i].zero_()`."""
    obj = m.state.object(ref)
    # What lies in a field lies in the object that has the field as well: one tensor, on two storages.
    links = [s for s in obj.shares if s.of != ref and s.how is How.INDEX]
    if len({s.of for s in links}) != 1:
        return None
    base = m.state.object(links[0].of)
    if at.form == "augmented":
        return base
    above = next((s.region for s in base.shares if s.storage == links[0].storage), ())
    parts = links[0].region[len(above) :]
    return base if at.form == "method" and parts and parts[0].kind not in WHOLE else None
