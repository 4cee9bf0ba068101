"""What a known operation returns: its kind, dtype, gradient, and whose memory it sits on."""

from __future__ import annotations

from torchcopylint.flow.autograd import grads, refusals, saving
from torchcopylint.flow.facts import Saved
from torchcopylint.flow.library import drawing, lone_numbers, picking, windows
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    BLANK,
    BUFFERS,
    DIMENSIONS,
    EXPANDED,
    INDEX_COPY,
    INFERENCE,
    LONE,
    NDARRAY,
    PARTS,
    PINNED,
    PLACEHOLDER,
    TENSORS,
    UNKNOWN,
    WINDOWS,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import slots, unlike, writing
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import inquiries, layout
from torchcopylint.flow.values import array_dtypes, callforms, devices, dtypes, memory
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge.several import Outputs, outputs_of
from torchcopylint.knowledge.table import Op

_OF_DEFAULT = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn", "eye", "linspace"))
FACTORIES = frozenset({"empty", "zeros", "empty_like", "zeros_like", "new_empty", "new_zeros", "empty_strided"})
_PICKING = frozenset(
    {
        "compress",
        "extract",
        "gather",
        "index_select",
        "masked_select",
        "take",
        "take_along_axis",
        "take_along_dim",
    }
)
"""Operations that copy what an index picks, as square brackets do."""
_ORDERING = frozenset({"topk", "sort"})
"""Operations that copy the elements which they put in order."""
_WITH_DIMENSIONS = frozenset(
    {
        "arange",
        "randperm",
        "permutation",
        "nonzero",
        "argwhere",
        "flatnonzero",
        "argsort",
        "unique",
        "view",
        "reshape",
        "unsqueeze",
    }
)
"""Operations whose result is never a single number without dimensions."""
_LASTING = frozenset(
    [
        *("to", "long", "int", "cpu", "cuda", "type", "clone", "contiguous", "detach", "flatten", "ravel", "t"),
        *("flip", "numpy", "astype"),
    ]
)
"""Operations that make of something with dimensions something with dimensions."""
_CONVERTING = frozenset({"tensor", "as_tensor", "asarray", "scalar_tensor"})
"""What they make of a number has no dimensions."""
_WHOLE_VIEWS = frozenset({"detach", "transpose", "permute", "t", "unsqueeze"})
"""Views of a whole tensor, whose elements stand for as many as they did."""
ARRAY_MAKERS = frozenset(
    [
        "torch.Tensor.numpy",
        "numpy.array",
        "numpy.asarray",
        "numpy.ascontiguousarray",
        "numpy.zeros",
        "numpy.ones",
        "numpy.full",
        "numpy.empty",
        "numpy.zeros_like",
        "numpy.ones_like",
        "numpy.full_like",
        "numpy.empty_like",
        "numpy.arange",
        "numpy.linspace",
        "numpy.eye",
        "numpy.stack",
        "numpy.concatenate",
        "numpy.vstack",
        "numpy.hstack",
        "numpy.dstack",
        "numpy.tile",
        "numpy.repeat",
        "numpy.random.rand",
        "numpy.random.randn",
    ]
)
"""Functions that return an array, and no number of NumPy's."""
_IMPORTING = frozenset({"from_numpy", "frombuffer", "from_dlpack", "as_tensor", "asarray"})
"""Functions that make a tensor over the memory of something else."""
_CAPSULES = ("to_dlpack", "__dlpack__")
"""Functions that hand out an object which carries the memory of a tensor elsewhere."""
_RESULT_KINDS = {
    "number": Kind.NUMBER,
    "bool": Kind.NUMBER,
    "size": Kind.OTHER,
    "string": Kind.STRING,
    "none": Kind.NONE,
    "object": Kind.OTHER,
}


def result(m: Machine, op: Op, arguments: Arguments, first: Value, at: Site, inplace: bool) -> Value:
    """What a call of a known operation returns; `inplace` is whether it wrote its first argument instead."""
    if op.name.endswith(_CAPSULES) and first.refs:
        return memory.alias(m, first, at.site, How.VIEW, Object(Kind.OTHER, Sure.PROVEN, text=_text(at)))
    if op.name == "torch.load":
        # Whatever has been saved: its use shows what it is.
        return memory.unknown(m, at.site, _text(at))
    drawn = drawing.draw(m, op, arguments, at)
    if drawn is not None:
        return drawn
    if op.result == "size" and len(arguments.positional) > 1:
        return Value(kind=Kind.NUMBER)
    if op.result in _RESULT_KINDS:
        return Value(kind=_RESULT_KINDS[op.result])
    if inplace or (op.shares == "same" and op.of == 0 and not op.when):
        if op.result in ("self", "tensor", "input", "array"):
            return writing.current(m, first)
        return memory.unknown(m, at.site)
    source = callforms.argument(op, arguments, op.of)
    if op.result == "list":
        return memory.fresh(m, at.site, Object(Kind.LIST, Sure.PROVEN))
    if op.result in ("tensors", "arrays"):
        return _several(m, op, arguments, source, at)
    if op.result == "iterator":
        return memory.fresh(m, at.site, Object(Kind.ITERATOR, Sure.PROVEN))
    if op.result == "input":
        made = m.state.object(source.refs[0]) if source.refs else Object()
        made = Object(made.kind, made.sure, dtype=made.dtype)
    elif op.result == "array" and lone_numbers.of_tensor(m, op, arguments):
        made = Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.YES, requires_grad=Fact.NO)
    elif op.result == "array":
        made = Object(Kind.ARRAY, Sure.PROVEN)
    elif op.result in ("tensor", "self"):
        made = Object(Kind.TENSOR, Sure.PROVEN)
    elif op.result == "module":
        made = Object(Kind.MODULE, Sure.PROVEN)
    else:
        return memory.unknown(m, at.site, f"{at.name}.{at.op}")
    return _shared(m, op, arguments, source, _described(m, op, arguments, source, made, at), at)


def _described(m: Machine, op: Op, arguments: Arguments, source: Value, made: Object, at: Site) -> Object:
    """The object that an operation returns: its dtype, dimensions, gradient."""
    short = op.short
    dtype = _dtype(m, op, arguments, source, made)
    flags = {BLANK} if short in FACTORIES else set()
    if short in _WITH_DIMENSIONS or (source.refs and kind_of(source, m.state) is Kind.LIST):
        flags.add(DIMENSIONS)
    lasting = short in _LASTING or (short == "squeeze" and len(arguments.positional) > 1)
    if lasting and source.refs and all(DIMENSIONS in m.state.object(ref).flags for ref in source.refs):
        flags.add(DIMENSIONS)
    if short in _PICKING:
        flags.add(INDEX_COPY)
    if short == "pin_memory" or arguments.flag("pin_memory") is not False:
        flags.add(PINNED)
    if op.name in ARRAY_MAKERS:
        flags.add(NDARRAY)
    elif lone_numbers.may_be_one(m, op, arguments):
        flags.add(LONE)
    if repeated := dtypes.repeats(m, short, arguments):
        flags.add(repeated)
    if m.state.mode.inference > 0 and made.kind in TENSORS:
        flags.add(INFERENCE)
    if short in refusals.EXPANDING and any(value.const != -1 for value in arguments.positional[1:] or (UNKNOWN,)):
        flags.add(EXPANDED)
    if short == "as_strided" and windows.stand_still(m, arguments):
        flags.add(EXPANDED)
    if windows.overlap(m, op, arguments):
        flags.add(WINDOWS)
    if short == "broadcast_tensors" and layout.all_grow(m, arguments.positional):
        flags.add(EXPANDED)
    if short in _WHOLE_VIEWS and source.refs:
        flags |= frozenset[str].intersection(*(m.state.object(ref).flags for ref in source.refs)) & {EXPANDED, WINDOWS}
    scalar = _scalar(op, arguments)
    if short in _CONVERTING and arguments.at(0).kind is Kind.NUMBER and not arguments.at(0).refs:
        scalar = Fact.YES
    config = (*layout.counted(m, short, arguments), *devices.kept(m, short, arguments))
    made = made._replace(dtype=dtype, flags=frozenset(flags), scalar=scalar, config=config, text=_text(at))
    if made.kind in TENSORS:
        wanted = arguments.flag("requires_grad")
        if wanted is True:
            grads.note_made(m, dtype, at)
            return made._replace(leaf=Fact.YES, requires_grad=Fact.YES)
        # `x.expand_as(y)` and `x.to(y)` ask the other only what it is like.
        asked = short in inquiries.SHAPED or short == "to"
        used = [source] if asked else [*arguments.positional, *arguments.keywords.values()]
        return grads.result_of(m, made, used, op.differentiable)
    return made


def _scalar(op: Op, arguments: Arguments) -> Fact:
    """Whether the result has no dimensions."""
    if not op.scalar or any(name in arguments.keywords for name in ("dim", "axis", "dims")):
        return Fact.UNKNOWN
    if "reduction" in arguments.keywords:
        reduction = arguments.keywords["reduction"].const
        return Fact.YES if reduction in ("mean", "sum") else Fact.NO if reduction == "none" else Fact.UNKNOWN
    # A loss has an input and a target; a reduction has its input alone.
    loss = op.name.startswith("torch.nn.functional.")
    return Fact.YES if loss or len(arguments.positional) <= 1 else Fact.UNKNOWN


def _dtype(m: Machine, op: Op, arguments: Arguments, source: Value, made: Object) -> str:
    """The dtype of the result, or what is known of it: as told, as the operation makes it, or that of the source."""
    short = op.short
    told = dtypes.named(arguments) or op.dtype
    by_itself = ""
    if not told and not dtypes.is_asked_for(short, arguments):
        by_itself = dtypes.made(m, op.name, arguments)
        given = dtypes.chosen(m, arguments) if short in dtypes.CHOOSING else _of_source(m, op, source)
        told = by_itself or given
    if by_itself or dtypes.named(arguments) or op.dtype:
        return by_itself or told
    if made.kind is Kind.ARRAY and short in array_dtypes.FRACTIONAL:
        return array_dtypes.fraction(told)
    computed = op.differentiable or made.kind is Kind.ARRAY
    if told in dtypes.INTEGERS and computed and op.shares == "fresh" and short not in dtypes.CHOOSING:
        # `integers * 0.5` is not an integer tensor.
        told = told if short in dtypes.KEEPING else ""
    elif told in dtypes.INTEGERS and "dtype" in op.when:
        # `integers.to(something)`: a device keeps the dtype, another tensor need not.
        told = told if all(v.kind is Kind.STRING for v in arguments.positional[1:]) else ""
    fraction = not told and made.kind in TENSORS and dtypes.is_fraction(m, short, arguments)
    return dtypes.FLOATING if fraction else told


def _of_source(m: Machine, op: Op, source: Value) -> str:
    """The dtype of what an operation is given, or of all that is in the list that it is given."""
    if op.name in _OF_DEFAULT:
        return dtypes.DEFAULT
    refs = set(source.refs)
    for ref in source.refs:
        if m.state.object(ref).kind in (Kind.LIST, Kind.TUPLE):
            refs.remove(ref)
            cells = [m.state.cell(slot) for slot in m.state.slot_names(ref)]
            refs.update(held for cell in cells if cell is not None for held in cell.refs or (ref,))
    found = {m.state.object(ref).dtype for ref in refs}
    return found.pop() if len(found) == 1 else ""


def _shared(m: Machine, op: Op, arguments: Arguments, source: Value, made: Object, at: Site) -> Value:
    """The result object, on the memory that the row says."""
    kind = kind_of(source, m.state)
    if op.shares == "fresh" or not source.refs or _is_size(op, arguments, kind) or _contracts(op, arguments):
        return memory.fresh(m, at.site, made)
    if op.shares in ("view", "same", "multi"):
        short = op.short
        made = layout.permuted(made, short, arguments, m.state.object(source.refs[0]))
        return picking.part(m, source, short, arguments, _how(op, made, kind), made, at.site)
    if op.shares == "unversioned":
        return memory.alias(m, source, at.site, _how(op, made, kind), made)
    return _conditional(m, op, arguments, source, made, at, kind)


def _is_size(op: Op, arguments: Arguments, kind: Kind) -> bool:
    """A legacy constructor that is given one number or several makes a tensor of that size."""
    if op.name.endswith("Tensor"):
        return kind is Kind.UNKNOWN or len(arguments.positional) > 1
    return op.name.endswith("Tensor.new") and kind not in BUFFERS


def _contracts(op: Op, arguments: Arguments) -> bool:
    """`einsum` of several operands computes something; of one, it may only rearrange it."""
    return op.name.endswith("einsum") and len(arguments.positional) > 2


def _how(op: Op, made: Object, source: Kind) -> How:
    short = op.short
    if made.kind in TENSORS and (source in (Kind.ARRAY, Kind.BYTES) or (short in _IMPORTING and source not in TENSORS)):
        return How.FROM_NUMPY
    if made.kind is Kind.ARRAY and source in TENSORS:
        return How.NUMPY
    if short in ("detach", "from_dlpack") or (op.shares == "view" and short == "detach_copy"):
        return How.DETACH if short == "detach" else How.FROM_NUMPY
    if short in ("select", "narrow"):
        return How.INDEX
    if short in ("copy", "set_"):
        return How.COPY if short == "copy" else How.ASSIGNED
    if short == "Parameter":
        return How.PARAMETER
    if op.shares == "unversioned" and (short == "data" or made.kind not in TENSORS):
        return How.DATA if short == "data" else How.NUMPY
    # A sparse tensor sits on the values that it was made of, with a version counter of its own.
    return How.VIEW


def _conditional(m: Machine, op: Op, arguments: Arguments, source: Value, made: Object, at: Site, kind: Kind) -> Value:
    """A copy or an alias, depending on something; where that is known, it is one or the other."""
    if arguments.flag("copy") is not False and not callforms.may_share(arguments):
        return memory.fresh(m, at.site, made)
    if op.when == "mode" and _drops(op, arguments):
        return memory.fresh(m, at.site, made)
    before = _of_source(m, op, source)
    when = op.when
    if kind not in (*BUFFERS, Kind.UNKNOWN):
        return memory.fresh(m, at.site, made)
    if "layout" in when and all(layout.is_strided(m.state.object(ref)) for ref in source.refs):
        # Somebody who asks for another layout right after transposing or expanding knows that it copies.
        return memory.fresh(m, at.site, made)
    if layout.is_spread(m, op.name, source) or layout.joins_apart(m, op.short, arguments):
        return memory.fresh(m, at.site, made)
    if unlike.is_converted(m, source, at.site):
        return memory.fresh(m, at.site, made)
    short = op.short
    if layout.asks_for_another(arguments):
        if layout.is_dense(m, source) and not layout.has_unit(m, source):
            return memory.fresh(m, at.site, made)
    elif "layout" in when and layout.is_dense(m, source):
        when = when.replace("layout", "").replace("shape", "").strip(" ,")
        if not when and op.may_be_same and _is_trained(m, source):
            return writing.current(m, source)
        if not when:
            how = _how(op, made, kind)
            # Who asks for a dense tensor wants one of his own, or none: he does not look at it in another way.
            how = How.CONDITIONAL if how is How.VIEW and short == "contiguous" else how
            return memory.alias(m, source, at.site, how, made)
    spread = "**" in arguments.keywords
    kept = False
    if "dtype" in when and not spread:
        wanted = dtypes.named(arguments) or op.dtype
        if dtypes.same(before, wanted) is Fact.NO:
            return memory.fresh(m, at.site, made)
        # `type` converts to whatever it is given, which nobody may know.
        told = bool(before) and before == wanted
        # The default dtype may be another one: a tensor of it may be converted, while a parameter is told as lost only
        # if it is.
        kept = told or (_is_made_here(m, source) and dtypes.same(before, wanted) is Fact.YES)
        if told or (not wanted and short not in ("type", "type_as")):
            when = when.replace("dtype", "").strip(" ,")
    if "device" in when and not spread:
        there = devices.is_there(m, source, short, arguments)
        if devices.says_host(short, arguments) and _is_trained(m, source) and devices.is_on_host(m, source):
            there = Fact.YES
        if there is Fact.NO:
            return memory.fresh(m, at.site, made)
        if there is Fact.YES and op.may_be_same and when.strip(" ,") == "device":
            return writing.current(m, source)
        if there is Fact.YES or (not _names_device(arguments) and short not in ("cpu", "cuda", "numpy")):
            when = when.replace("device", "").strip(" ,")
    if op.may_be_same and _is_trained(m, source) and (not when or (kept and when == "dtype")):
        # There is nothing to convert: the parameter stays one.
        return writing.current(m, source)
    how = _how(op, made, kind)
    if how is How.VIEW:
        how = How.CONDITIONAL
    return memory.alias(m, source, at.site, how, made, when=condition(when))


def _is_made_here(m: Machine, source: Value) -> bool:
    """Whether a tensor is the unit's own: of an argument, callers elsewhere may pass another dtype than those here."""
    return bool(source.refs) and all(m.state.object(ref).owner != ARGUMENT for ref in source.refs)


def _is_trained(m: Machine, source: Value) -> bool:
    """Whether a value is a leaf that requires grad, or one of several."""
    objects = [m.state.object(ref) for ref in source.refs]
    return all(obj.leaf is Fact.YES and obj.requires_grad is Fact.YES for obj in objects)


def _drops(op: Op, arguments: Arguments) -> bool:
    """Whether a dropout is surely in training mode: it is told to be, or it is a function that is unless it is told."""
    told = arguments.at(2) if len(arguments.positional) > 2 else arguments.keywords.get("training")
    if told is not None:
        return told.const is True
    return op.name.startswith("torch.nn.functional.dropout") and "**" not in arguments.keywords


def _names_device(arguments: Arguments) -> bool:
    if "device" in arguments.keywords:
        return True
    return any(
        not isinstance(value.const, Dotted) or value.const.startswith("torch.cuda.")
        for value in arguments.positional[1:]
    )


def condition(when: str) -> str:
    """On what a conditional copy depends, in words for people: "when the dtype already matches"."""
    words = [word for word in when.replace(",", " ").split() if word]
    phrases = {
        "dtype": "the dtype already matches",
        "device": "it already is on that device",
        "layout": "it already is contiguous",
        "shape": "the shape allows a view",
        "mode": "the model is in eval mode",
        "argument": "nothing has to be converted",
    }
    said = [phrases[word] for word in words if word in phrases]
    return "when " + " and ".join(said[:2]) if said else ""


def _text(at: Site) -> str:
    """How the result of an operation is called that has no name: `x.sum()`, `torch.take(...)`."""
    return f"{at.op}(...)" if "." in at.op else f"{at.name}.{at.op}()"


def _several(m: Machine, op: Op, arguments: Arguments, source: Value, at: Site) -> Value:
    """A tuple of tensors: parts of one, or each of its own."""
    obj = m.state.object(source.refs[0]) if source.refs else Object()
    described = _described(m, op, arguments, source, Object(Kind.TENSOR, Sure.PROVEN), at)
    made = Object(
        Kind.TUPLE,
        Sure.PROVEN,
        requires_grad=described.requires_grad,
        graph=described.graph,
        leaf=described.leaf,
        text=_text(at),
        dtype=obj.dtype,
    )
    kind = kind_of(source, m.state) if source.refs else Kind.UNKNOWN
    if op.result == "arrays" and not (op.shares in ("multi", "view") and op.of == 0 and kind is Kind.ARRAY):
        described = Object(Kind.ARRAY, Sure.PROVEN, dtype=op.dtype, text=made.text)
    elif _is_unsafe(op):
        # Its parts count as tensors of their own: whoever calls it promises not to look at the whole again.
        pass
    elif op.shares in ("multi", "view", "maybe") and kind in BUFFERS:
        how = How.INDEX if op.apart else How.ROW
        return memory.alias(m, source, at.site, how, made._replace(flags=frozenset({PARTS})))
    value = memory.fresh(m, at.site, made)
    if op.short in callforms.PLACES or callforms.finds_places(op):
        _found_at(m, op, value.refs[0], described, at)
        return value
    known = outputs_of(op.name)
    if known is not None:
        _each_apart(m, value.refs[0], known, described, at)
        return value
    if op.name.endswith(("where(condition)", "nonzero(as_tuple)")):
        described = described._replace(flags=described.flags | {DIMENSIONS})
    each = memory.fresh(m, at.site, described._replace(flags=described.flags | {PLACEHOLDER}), "each")
    slots.bind_slot(m, (value.refs[0], ANY_ELEMENT), each, at.site)
    return value


def _each_apart(m: Machine, several: int, known: Outputs, described: Object, at: Site) -> None:
    """Each of the outputs of an operation, some of which backward needs: `q, r = torch.linalg.qr(x)`."""
    made, kept = [], list[int]()
    for number in range(known.number):
        text = f"{_text(at)}[{number}]"
        one = memory.fresh(m, at.site, described._replace(text=text), f"output {number}")
        slots.bind_slot(m, (several, f"[{number}]"), one, at.site)
        made.append(one.refs[0])
        if number in known.saved and described.requires_grad > 0 and m.state.mode.recording > 0:
            kept += saving.save(m, one, at.site * 8 + 4 + number, Saved(at.site, at.op, "output", text))
    for ref in made if kept else ():
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(kept)))


def _is_unsafe(op: Op) -> bool:
    return op.short.startswith("unsafe_")


def _found_at(m: Machine, op: Op, several: int, described: Object, at: Site) -> None:
    """Values, and where they were found, which are integers without a graph: `values, places = x.max(dim=1)`."""
    places = Object(
        Kind.TENSOR,
        Sure.PROVEN,
        leaf=Fact.YES,
        requires_grad=Fact.NO,
        dtype="int64",
        flags=described.flags & {INFERENCE},
    )
    short = op.short
    if short in _ORDERING:
        described = described._replace(flags=described.flags | {INDEX_COPY})
    made = []
    for number, (name, one) in enumerate((("values", described), ("indices", places))):
        text = f"{_text(at)}[{number}]"
        held = memory.fresh(m, at.site, one._replace(text=text), name)
        slots.bind_slot(m, (several, f"[{number}]"), held, at.site)
        made.append(held)
    if "indices" in op.saves and described.requires_grad > 0 and m.state.mode.recording > 0:
        kept = saving.save(m, made[1], at.site * 8 + 4, Saved(at.site, at.op, "output", "its indices"))
        ref = made[0].refs[0]
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(kept)))
