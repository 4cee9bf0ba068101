"""What backward keeps of what an operation is given and makes, to know later whether it is still as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import grads
from torchcopylint.flow.facts import InferenceMisused, Saved
from torchcopylint.flow.graphs import last_turn
from torchcopylint.flow.model import INFERENCE, TENSORS, Fact, How, Kind, Region, Sure, Value
from torchcopylint.flow.tapes import first_turns
from torchcopylint.flow.values import callforms, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments, Site
    from torchcopylint.knowledge.table import Op


def needs_gradient(m: Machine, value: Value) -> Fact:
    """Whether any of the tensors that a value may be, or holds, requires grad."""
    return max((obj.requires_grad for obj in grads.tensors_in(m, [value])), default=Fact.NO)


def note_saved(m: Machine, op: Op, arguments: Arguments, result: Value, at: Site, receiver: Fact | None = None) -> None:
    """Backward will need some of an operation's inputs, or its output, as they are now.

    `receiver` is whether argument 0 required grad before the operation wrote it, if it did.
    """
    factor = op.short in FACTORS and _is_by_number(arguments)
    if not (op.saves or factor) or len(result.refs) != 1 or m.state.mode.recording is Fact.NO:
        return
    outcome = m.state.object(result.refs[0])
    if outcome.requires_grad <= 0:
        return
    ids = []
    written = written_by(op, arguments)
    for number, kept in enumerate(op.saved):
        # A batch norm in training writes its running statistics and does not need them; else it is the other way round.
        if kept.what == "indices" or kept.argument in written:
            continue
        value = result if kept.argument == -1 else callforms.argument(op, arguments, kept.argument)
        if kept.needed_by and not any(
            (needs_gradient(m, callforms.argument(op, arguments, which)) if which or receiver is None else receiver) > 0
            for which in kept.needed_by
        ):
            continue
        name = at.name if kept.argument == 0 else naming.key_text(m, value.root) or "its result"
        saved = save(m, value, at.site * 8 + number, Saved(at.site, at.op, kept.what, name))
        if kept.argument == 1 and written and saved and value.refs == arguments.at(0).refs and not value.refs[0] & 1:
            # `x *= x` has overwritten at once what it needs.
            m.state.put(f"@spoilt{saved[0]}", frozenset({at.site}))
            m.needed.met.add((saved[0], at.site))
        ids += saved
    if factor and not ids and len(arguments.at(0).refs) == 1:
        ids = _register(m, arguments.at(0).refs[0], at.site * 8, Saved(at.site, at.op, FACTOR, at.name))
    if ids:
        ref = result.refs[0]
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))


FACTOR = "factor"
"""What is saved of a number that a tensor is multiplied with: nobody can write it, but backward lets it go as well."""
FACTORS = frozenset(
    {"mul", "multiply", "div", "divide", "true_divide", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"}
)
"""Operations that save a number which they are given, as a tensor, or their result beside it. Executed in the tests."""


def _is_by_number(arguments: Arguments) -> bool:
    """Whether a tensor is multiplied with, or divided by, what is surely a number."""
    other = arguments.at(1)
    return not other.refs and other.kind is Kind.NUMBER and "rounding_mode" not in arguments.keywords


def written_by(op: Op, arguments: Arguments) -> Sequence[int | str]:
    """The arguments that a call writes: none, if it does so in training only and is told not to be, or not told."""
    if not op.writes or "training" not in op.arguments:
        return op.writes
    training = arguments.at(op.arguments.index("training"))
    if training.const is None and not training.refs:
        training = arguments.keywords.get("training", training)
    untold = training.const is None and not training.refs and training.root is None
    return () if training.const is False or untold else op.writes


def note_indices(m: Machine, indices: Sequence[Value], results: Sequence[int], at: Site) -> None:
    """Backward will need the masks and places by which elements were picked or set, as they are now: `index` and
    `index_put_` save them, as tensors (executed with torch 2.13; NumPy's are made into tensors, which are copies)."""
    if m.state.mode.recording is Fact.NO:
        return
    for ref in results:
        obj = m.state.object(ref)
        if obj.kind not in TENSORS or obj.requires_grad <= 0:
            continue
        ids: list[int] = []
        for number, value in enumerate(indices):
            name = naming.key_text(m, value.root) or "its index"
            ids += save(m, value, at.site * 8 + number, Saved(at.site, "[...]", "input", name))
        if ids:
            m.state.set_object(ref, m.state.object(ref)._replace(graph=obj.graph | frozenset(ids)))


def note_output(m: Machine, result: Value, at: Site, keeps: bool) -> None:
    """An operation in place keeps what it has made of its input, or nothing."""
    if keeps and len(result.refs) == 1 and m.state.object(result.refs[0]).requires_grad > 0:
        ids = save(m, result, at.site * 8, Saved(at.site, at.op, "output", "its result"))
        ref = result.refs[0]
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))


def save(m: Machine, value: Value, number: int, saved: Saved, part: Region = ()) -> list[int]:
    """A value is kept for backward under a number; returns the number if there is anything to keep.

    Of a module it may be a part alone, such as its weight.
    """
    if len(value.refs) > 1:
        value = first_turns.from_second(m, value, saved.site) or value
    if value.refs and all(INFERENCE in m.state.object(ref).flags for ref in value.refs):
        # Refused at once, by the operation itself, which takes tensors alone; whichever of those in a list it is.
        kept = m.state.object(value.refs[0])
        m.fact(InferenceMisused(saved.site, saved.name, saved.op, kept.site, "saved", max(kept.sure, Sure.LIKELY)))
    if len(value.refs) != 1 or INFERENCE in m.state.object(value.refs[0]).flags:
        return []
    _register(m, value.refs[0], number, saved)
    for share in m.state.object(value.refs[0]).shares:
        if not share.sure and share.how is not How.OWN:
            continue
        if share.how is How.FIELD or part:
            # A part of a module has versions of its own, unlike a part of a tensor.
            m.needed.fields[number, share.storage | 1] = (*share.region, *part)
        owner = m.state.object(share.storage)
        m.state.set_object(share.storage, owner._replace(saved=owner.saved | {number}))
    return [number]


def _register(m: Machine, ref: int, number: int, saved: Saved) -> list[int]:
    """Something of an object is saved under a number, which is returned."""
    if m.in_loop:
        m.needed.in_loop.append(number)
        if number in m.needed.saves:
            last_turn.retire(m, number)
    m.needed.saves[number] = saved
    m.needed.objects[number] = ref
    m.state.put(f"@spoilt{number}", frozenset())
    return [number]
