"""Applying what is known of an operation to values: reads, writes, the result, its graph, what backward keeps."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow.autograd import grads, refusals, saving
from torchcopylint.flow.library import results
from torchcopylint.flow.model import (
    BUFFERS,
    CONTAINERS,
    TENSORS,
    Kind,
    Region,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import conversions, nonnegative, overlaps, reading, resizing, slots, spoilt, writing
from torchcopylint.flow.tapes import activations, inquiries
from torchcopylint.flow.values import callforms, memory, naming
from torchcopylint.flow.values.sites import STATISTICS, Arguments, Site
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op

RENORMALISING = "(max_norm)"
_OF_TWO = frozenset({"maximum", "minimum", "fmax", "fmin"})
"""What works element by element, and has no twin that works in place."""

_FILLING_ARRAYS = ("numpy.", "cv2.")
"""How the names of functions begin that refuse to write what is no array (executed)."""
_RESHAPING = frozenset({"t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_"})
"""What changes the shape of a tensor in place, which torch refuses for a leaf as it does a write (executed)."""


def apply(m: Machine, op: Op, arguments: Arguments, at: Site) -> Value:
    """What a call of a known operation does and returns."""
    first = callforms.argument(op, arguments, 0)
    for position, value in enumerate(arguments.positional):
        if (not op.reads or op.overwrites) if position == 0 else op.short in inquiries.SHAPED:
            continue
        consumer = "operand" if op.differentiable else "look"
        reading.read(m, value, at.site, consumer, at.op)
        slots.field_read(m, value.root, at.site, consumer, at.op)
    for name, value in arguments.keywords.items():
        if name != "out":
            reading.read(m, value, at.site, "argument", at.op)
    inplace = op.inplace_keyword and arguments.flag("inplace") is True
    written = [callforms.argument(op, arguments, which) for which in saving.written_by(op, arguments) if which != "*"]
    activation = inplace or (bool(op.writes) and activations.is_twin(op))
    if inplace:
        written = [first]
    if inplace or (activation and not op.name.startswith("torch.Tensor.")):
        activations.known_tensor(m, first)
    for value in written if op.name.startswith(_FILLING_ARRAYS) and op.short != "shuffle" else ():
        # Neither NumPy nor OpenCV puts anything into what is no array; a list is shuffled as well.
        kept = tuple(ref for ref in value.refs if not memory.may_be_made_anew(m.state.object(ref)))
        memory.refine(m, value._replace(refs=kept), Kind.ARRAY, Sure.LIKELY)
    before = saving.needs_gradient(m, first) if written else None
    sources = [value for value in (*arguments.positional[1:], *arguments.keywords.values()) if value.refs]
    if not op.metadata_only:
        # What a function writes beside what it returns are statistics, which take no graph: `F.batch_norm`.
        graphs = [] if op.shares == "fresh" and not inplace else sources
        for value in written:
            named = at if value is first else at._replace(name=naming.key_text(m, value.root) or at.name)
            if not (graphs or op.bumps):
                named = named._replace(form=STATISTICS)
            if op.name.endswith(RENORMALISING):
                # Autograd is not asked: torch does it under `no_grad`.
                writing.write(m, value, at.site, op=at.op, form="call", name=named.name)
                continue
            write_through(m, value, graphs, named, reads_old=not op.overwrites, versioned=op.bumps)
    elif op.shares == "unversioned" and written:
        resizing.move(m, written, sources, at.site)
    elif op.pair:
        # `t_`, `transpose_`: no element changes, but to autograd it is a write.
        for value in written:
            refusals.check_shape(m, value, (), at)
            if op.short in _RESHAPING:
                grads.check_leaf(m, value, at, view=False)
    if written and not activation and at.form == "method":
        activations.note_bound(m, at.site)
    if activation:
        activations.note_result(m, at.site)
        spoilt.note(m, first, at.site)
        nonnegative.note(m, at.site, op.name)
    result = results.result(m, op, arguments, first, at, inplace)
    if op.shares == "fresh" and not inplace and m.facts and not _requires_grad(m, result):
        conversions.let_go_of(m, arguments.positional)
    if op.out_keyword and "out" in arguments.keywords:
        result = _fill(m, op, arguments, at)
    if inplace:
        saving.note_output(m, result, at, activations.keeps_output(op.name))
    elif op.differentiable:
        saving.note_saved(m, op, arguments, result, at, before)
    return result


def _parts(m: Machine, out: Value) -> list[Value]:
    """What stands in the tuple that several results are put into."""
    if len(out.refs) != 1 or m.state.object(out.refs[0]).kind not in (Kind.TUPLE, Kind.LIST):
        return []
    return [slots.slot_value(m, slot) for slot in m.state.slot_names(out.refs[0])]


def _fill(m: Machine, op: Op, arguments: Arguments, at: Site) -> Value:
    """`out=`: what is there is filled, and returned."""
    out = arguments.keywords["out"]
    parts = _parts(m, out)
    for part in reversed(parts):
        # `torch.sort(x, out=(values, indices))`: the values are what the write is told of.
        memory.evidence_tensor(m, part)
        grads.check_out(m, [*arguments.positional, part], part, at)
        into = at._replace(form="out", name=naming.key_text(m, part.root) or at.name)
        itself = any(not set(part.refs).isdisjoint(value.refs) for value in arguments.positional)
        write_through(m, part, [], into, reads_old=itself, versioned=True)
    if parts:
        return out
    if op.result == "array":
        # NumPy fills nothing else.
        memory.refine(m, out, Kind.ARRAY, Sure.LIKELY)
    elif op.result == "tensor":
        # And torch nothing but tensors.
        memory.evidence_tensor(m, out)
    grads.check_out(m, list(arguments.positional), out, at)
    refusals.check_out(m, op, arguments.positional, out, at)
    into = at._replace(form="out", name=naming.key_text(m, out.root) or at.name)
    if op.short in _OF_TWO or table.tensor_method(f"{op.short}_") is not None:
        # What works element by element has, as a rule, a twin that works in place, and reads as that does.
        overlaps.note(m, out, (), arguments.positional, into)
    elif op.short in overlaps.PICKING:
        overlaps.note_index(m, out, arguments.positional, into)
    # `np.clip(x, 0, 1, out=x)` reads what it writes, as a method in place does.
    itself = any(not set(out.refs).isdisjoint(value.refs) for value in arguments.positional)
    write_through(m, out, [], into, reads_old=itself, versioned=True)
    return out


def _requires_grad(m: Machine, value: Value) -> bool:
    return any(m.state.object(ref).requires_grad > 0 for ref in value.refs)


def write_through(
    m: Machine,
    target: Value,
    sources: Sequence[Value],
    at: Site,
    *,
    reads_old: bool,
    versioned: bool,
    region: Region = (),
) -> None:
    """A call writes a value in place."""
    kind = kind_of(target, m.state)
    if kind is Kind.UNKNOWN and target.refs:
        known = [m.state.object(ref).kind for ref in target.refs]
        if not any(k in BUFFERS or k is Kind.UNKNOWN for k in known):
            return
    if kind in CONTAINERS:
        return
    root = naming.key_text(m, target.root)
    if sources and kind in TENSORS:
        overlaps.note(m, target, region, sources, at)
    writing.write(
        m,
        target,
        at.site,
        op=at.op,
        form=at.form,
        name=at.name,
        reads_old=reads_old,
        versioned=versioned,
        region=region,
        derived=root != at.name,
    )
    refusals.check(m, target, sources, at)
    grads.after_write(m, target, sources, at)
