"""Between tensors, arrays and numbers: what a constructor was given, and whether it takes it.

Called before the effects of a call are applied, so that everything is as the call finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Constructed, LayoutRefused
from torchcopylint.flow.model import (
    ARGUMENT,
    CONTAINERS,
    FIELD,
    GLOBAL,
    NDARRAY,
    NO_TENSOR,
    READ_ONLY,
    REVERSED,
    SEALED,
    SURELY_PASSED,
    TENSORS,
    TESTED,
    Fact,
    How,
    Key,
    Kind,
    Object,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import byte_strings, to_arrays
from torchcopylint.flow.tapes import giving, pictures, used_up, uses
from torchcopylint.flow.values import dtypes, memory, naming
from torchcopylint.flow.values.kinds import BUFFER_NAMES, PARAMETER_NAMES
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table

Observer: TypeAlias = "Callable[[Machine, Arguments, t.Call | t.Invoke, str], None]"
LEGACY = {
    "torch.Tensor": "float32",
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.HalfTensor": "float16",
    "torch.BFloat16Tensor": "bfloat16",
    "torch.ByteTensor": "uint8",
    "torch.CharTensor": "int8",
    "torch.ShortTensor": "int16",
    "torch.IntTensor": "int32",
    "torch.LongTensor": "int64",
    "torch.BoolTensor": "bool",
}
"""The constructors from before `torch.tensor`, and what they make."""
VARIABLE = "torch.autograd.Variable"
COPYING = "torch.tensor"
WINDOWS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.asarray"})
"""These put a tensor on the memory of an array."""
_FLIPS = frozenset({"numpy.flip", "numpy.flipud", "numpy.fliplr", "numpy.rot90"})
_READ_ONLY = frozenset(
    {"numpy.broadcast_to", "numpy.diagonal", "numpy.linalg.diagonal", "numpy.ndarray.diagonal"}
    | {"numpy.lib.stride_tricks.sliding_window_view"}
)
"""What these return must not be written, unless they are told `writeable=True`."""
_STRIDED = "numpy.lib.stride_tricks.as_strided"
_COPIES = frozenset({"clone", "to", "float", "long", "int", "double", "tolist", "item", "type"})
"""Methods for which a buffer is looked at once and no more, as a rule."""
_PASSED_ON = frozenset({How.CONDITIONAL, How.VIEW})
"""What an expression does to a tensor that it has made, on the way to the call that it is made for: `.to(device)`."""
MAX_STEPS = 12
OUTSIDE = frozenset({ARGUMENT, FIELD, GLOBAL})


def call(m: Machine, dotted: str, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    """A function or class known by its dotted name is called with these arguments."""
    observer = _OBSERVERS.get(dotted)
    if observer is not None:
        observer(m, arguments, event, name)


def of_no_guess(m: Machine, arguments: Arguments, site: int) -> Arguments:
    """What `torch.Tensor(v)` is given: numbers and arrays, as a rule, though a name may promise parameters.

    In federated learning, `parameters` are arrays that come from somewhere else.
    """
    if len(arguments.positional) != 1:
        return arguments
    objects = [m.state.object(ref) for ref in arguments.positional[0].refs]
    guessed = bool(objects) and all(obj.kind in TENSORS and obj.sure is Sure.HINT for obj in objects)
    return arguments._replace(positional=(memory.unknown(m, site, tag="given"),)) if guessed else arguments


METHODS = frozenset({"new", "new_tensor", "numpy", "cuda"})


def method(m: Machine, name: str, arguments: Arguments, event: t.Call | t.Invoke, text: str) -> None:
    """A method of a tensor is called; its receiver is argument 0."""
    if name in ("new", "new_tensor"):
        known = {m.state.object(ref).dtype for ref in arguments.positional[0].refs}
        rest = Arguments(arguments.positional[1:], arguments.keywords)
        dtype = known.pop() if name == "new" and len(known) == 1 else ""
        _construct(m, f"torch.Tensor.{name}", rest, event, f"{text}.{name}", dtype)
    elif name == "cuda" and isinstance(event, t.Invoke):
        # What is made of an array is on the host: this copies.
        let_go(m, m.unit.definitions[event.base])
    elif name == "numpy" and arguments.flag("force") is False:
        to_arrays.ask(m, arguments.positional[0], event.site, text, f"{text}.numpy()")


def let_go(m: Machine, made: t.Event | None) -> None:
    """What an expression has made is copied by the next: that it shares memory is of no consequence."""
    if not isinstance(made, t.Call | t.Invoke):
        return
    for index, fact in enumerate(m.facts.get(made.site, ())):
        if isinstance(fact, Constructed):
            m.facts[made.site][index] = fact._replace(temporary=True)


def let_go_of(m: Machine, arguments: Sequence[Value]) -> None:
    """An operation has copied its arguments: of what the same expression has made of arrays, nothing is left.

    Arguments may be lists, as those of `torch.cat` are.
    """
    for value in arguments:
        for ref in value.refs:
            if not _only_in(m, ref, -1):
                continue
            if m.state.object(ref).kind in CONTAINERS:
                slots = [m.state.cell(slot) for slot in m.state.slot_names(ref)]
                held = [inner for cell in slots if cell is not None for inner in cell.refs]
                _mark_temporary(m, [inner for inner in held if _only_in(m, inner, ref)])
            else:
                _mark_temporary(m, [ref])


def _only_in(m: Machine, ref: int, container: int) -> bool:
    """Whether nothing holds an object but elements of a container (-1: of none), and hidden names of an expression."""
    holders = [key for key in m.state.holders.get(ref, ()) if ref in m.state.refs_of(key)]
    return all(key[0] == container if key.__class__ is tuple else str(key).startswith("%") for key in holders)


def _mark_temporary(m: Machine, refs: Sequence[int]) -> None:
    for ref in refs:
        for _ in range(MAX_STEPS):
            obj = m.state.object(ref)
            for index, fact in enumerate(m.facts.get(obj.site, ())):
                if isinstance(fact, Constructed):
                    m.facts[fact.site][index] = fact._replace(temporary=True)
            above = [share.of for share in obj.shares if share.how in _PASSED_ON and _only_in(m, share.of, -1)]
            if not above:
                break
            ref = above[0]


def note_layout(m: Machine, dotted: str, arguments: Arguments, event: t.Call | t.Invoke, result: Value) -> None:
    """A function has returned an array: how that one is laid out, where its source is not."""
    if dotted in _FLIPS:
        _flag(m, result, REVERSED)
    elif dotted in _READ_ONLY or (dotted == _STRIDED and "writeable" in arguments.keywords):
        if arguments.flag("writeable") is False:
            _flag(m, result, READ_ONLY)
    elif dotted == "numpy.frombuffer" and byte_strings.are_given(m, arguments.at(0), _given(event)):
        _flag(m, result, READ_ONLY)


def reverse(m: Machine, result: Value, subscript: t.Index) -> None:
    """`result` has been taken by `subscript`: does it go backwards?"""
    if is_backwards(m, subscript):
        _flag(m, result, REVERSED)


def is_backwards(m: Machine, subscript: t.Index) -> bool:
    """Whether a slice of an index has a negative step, as it is written: `x[::-1]`."""
    steps = [part.step for part in subscript if isinstance(part, t.Slice) and part.step != t.NO_REGISTER]
    return any(_is_negative(m, step) for step in steps)


def set_writeable(m: Machine, target: Value, wanted: Value) -> None:
    """`array.flags.writeable = wanted`, or `array.setflags(write=wanted)`."""
    for ref in target.refs:
        obj = m.state.object(ref)
        flags = obj.flags | {SEALED} if wanted.const is False else obj.flags - {SEALED, READ_ONLY}
        m.state.set_object(ref, obj._replace(flags=flags))
    if isinstance(target.root, tuple) and target.root[1].startswith(".") and m.unit.name == "__init__":
        m.world.sealed(m.state.object(target.root[0]), target.root[1][1:], wanted.const is False)


def _is_negative(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register]
    return isinstance(made, t.Operate) and made.symbol == "-" and len(made.operands) == 1


def _flag(m: Machine, value: Value, flag: str) -> None:
    for ref in value.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(flags=obj.flags | {flag}))


# -- tensors from something


def _legacy(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    dotted = m.dotted_of(event)
    if len(arguments.positional) == 1:
        _construct(m, dotted, arguments, event, name, LEGACY[dotted])
        _window(m, arguments, event, name)


def _copying(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    _construct(m, COPYING, arguments, event, name, "")
    _window(m, arguments, event, name)


def _converting(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    _construct(m, m.dotted_of(event), arguments, event, name, "")
    _window(m, arguments, event, name)


def _variable(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    _construct(m, VARIABLE, arguments, event, name, "")


def _window(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    value = _data(arguments)
    if not value.refs:
        return
    if m.dotted_of(event) == "torch.from_numpy":
        # It takes nothing else.
        memory.refine(m, value, Kind.ARRAY, Sure.LIKELY)
    text = _text_of(m, event)
    found = [_odd_layout(m, ref) for ref in value.refs]
    first = next((odd for odd in found if odd is not None), None)
    if first is None:
        return
    form, since, sure = first
    if any(odd is None for odd in found):
        if form != "negative" or not _is_turned_on_a_path(m, value, since, event.site):
            return
        sure = min(sure, Sure.LIKELY)
    if form == "negative" and m.blocks.guards:
        return
    if form == "readonly" and (m.dotted_of(event) not in WINDOWS or "dtype" in arguments.keywords):
        return
    if form == "readonly" and pictures.is_copied(m, event.out):
        return
    m.fact(LayoutRefused(event.site, text, f"{name}({text})", form, since, sure))


def _is_turned_on_a_path(m: Machine, value: Value, since: int, site: int) -> bool:
    """Whether an array has been turned round on one of the paths that come here, and is else that array as it was:
    `if flip: image = image[::-1]`. What is copied on some path may be just what was turned."""
    if since < 0 or site in m.index.on_arms:
        return False
    for event in m.index.events:
        if isinstance(event, t.Return | t.Continue | t.Break | t.Raise) and since < event.site < site:
            return False
    objects = [m.state.object(ref) for ref in value.refs]
    storages = [{share.storage | 1 for share in obj.shares} for obj in objects]
    return all(obj.site <= since for obj in objects) and all(held and held == storages[0] for held in storages)


def _buffer(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    """A tensor over `bytes` must not be written; one that is copied at once is not."""
    use = m.consumer_of(event.out)
    copied = isinstance(use, t.Invoke) and use.base == event.out and use.name in _COPIES
    if not copied and byte_strings.are_given(m, arguments.at(0), _given(event)):
        text = _text_of(m, event)
        m.fact(LayoutRefused(event.site, text, f"{name}({text})", "readonly", -1, Sure.LIKELY))


def _odd_layout(m: Machine, ref: int) -> tuple[str, int, Sure] | None:
    """How an array is laid out as no tensor can be: the form, and where that came about, or -1."""
    turned = -1
    straightened = False
    sure = Sure.PROVEN
    for _ in range(MAX_STEPS):
        obj = m.state.object(ref)
        if obj.kind not in (Kind.ARRAY, Kind.UNKNOWN):
            return None
        if READ_ONLY in obj.flags:
            return ("readonly", obj.site, sure)
        if SEALED in obj.flags:
            return ("readonly", -1, sure)
        # What one slice was taken of may be a list, unless it is known to be an array: `torch.tensor(rows[::-1])`.
        listed = turned < 0 and obj.kind is Kind.UNKNOWN and any(share.when == memory.IF_TENSOR for share in obj.shares)
        if REVERSED in obj.flags and not listed:
            if turned >= 0 or straightened:
                return None
            turned = obj.site
        above = {share.of: share for share in obj.shares if share.of != ref}
        share = above.popitem()[1] if len(above) == 1 else None
        if share is None or share.how not in (How.VIEW, How.INDEX, How.CONDITIONAL):
            break
        if share.when and turned < 0:
            sure = Sure.LIKELY
        # A part without the dimension that was turned, or a copy, because what is turned is not contiguous.
        parted = share.how is How.INDEX and any(part.kind in ("int", "name") for part in share.region)
        straightened = straightened or "contiguous" in share.when or (parted and turned < 0)
        ref = share.of
    return ("negative", turned, sure) if turned >= 0 else None


def _data(arguments: Arguments) -> Value:
    return arguments.first("data")


def _construct(m: Machine, dotted: str, arguments: Arguments, event: t.Call | t.Invoke, name: str, dtype: str) -> None:
    value = _data(arguments)
    kind = kind_of(value, m.state)
    if value.plain or (not value.refs and dotted != VARIABLE):
        return
    # What `Variable` is given may be `None`, which is nothing to hold.
    objects = [m.state.object(ref) for ref in value.refs] or [Object()]
    obj = objects[0]
    for other in objects[1:]:
        obj = join_objects(obj, other)
    if kind in TENSORS and (NO_TENSOR in obj.flags or (dotted != VARIABLE and _is_doubtful(m, objects, event))):
        return
    text = _text_of(m, event)
    outside = any(s.sure and m.state.object(s.storage).owner in OUTSIDE for o in objects for s in o.shares)
    m.fact(
        Constructed(
            site=event.site,
            function=dotted,
            op=f"{name}({text})",
            name=text,
            kind=kind,
            arrays=kind in (Kind.LIST, Kind.TUPLE) and _holds_arrays(m, value),
            requires_grad=obj.requires_grad,
            history={Fact.NO: Fact.YES, Fact.UNKNOWN: Fact.UNKNOWN}.get(obj.leaf, Fact.NO),
            scalar=obj.scalar,
            recording=m.state.mode.recording,
            traced=arguments.flag("requires_grad") is True,
            declared=_is_declared(m, value.refs),
            temporary=value.root is None
            or not _given(event)
            or _is_converted(m, value, event)
            or (
                dotted in LEGACY and (_is_put_back(m, event) or used_up.is_used_up(m, event.out, dtype, named=outside))
            ),
            outside=outside,
            unseen=_is_unseen(m, value, event),
            matches=dtypes.same(obj.dtype, dtype),
            flags=frozenset(key for key in arguments.keywords if arguments.flag(key) is True),
            sure=min(o.sure for o in objects),
        )
    )


_CONVERTED = frozenset({How.OWN, How.CONDITIONAL, How.FROM_NUMPY})


def _is_declared(m: Machine, refs: tuple[int, ...]) -> bool:
    """Whether an argument is a tensor by what the function says of it, and neither by a test nor by what is passed."""
    given = [(ref, obj) for ref in refs if (obj := m.state.object(ref)).owner == ARGUMENT]
    return any(
        TESTED not in obj.flags and SURELY_PASSED not in m.shown.evidence.get(ref | 1, frozenset())
        for ref, obj in given
    )


def _is_converted(m: Machine, value: Value, event: t.Call | t.Invoke) -> bool:
    """Whether what is given has no name, but has just been converted: `torch.FloatTensor(torch.from_numpy(x).float())`.

    What that shares with, and where, the conversion says itself.
    """
    given = [a.register for a in event.arguments if not a.stars and a.keyword in ("", "data")]
    made = m.unit.definitions[given[0]] if given else None
    if not isinstance(made, t.Call | t.Invoke):
        return False
    objects = [m.state.object(ref) for ref in value.refs]
    return all(obj.site == made.site and all(share.how in _CONVERTED for share in obj.shares) for obj in objects)


def _is_put_back(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether an element is exchanged for what is made of it, `rows[i] = torch.LongTensor(rows[i])`: rows of another
    kind become tensors, and that there were tensors before is known from this very statement alone."""
    given = _given(event)
    return giving.is_element_exchanged(m, event.site, given[0]) if given else False


def _is_doubtful(m: Machine, objects: list[Object], event: t.Call | t.Invoke) -> bool:
    """Whether it is a name alone that says that what is made a tensor is one already: `torch.tensor(layer.weight)`.

    That somebody makes a tensor of it says more, unless it belongs to what is known to be a module.
    """
    given = _given(event)
    made = m.unit.definitions[given[0]] if given else None
    named = isinstance(made, t.Attribute) and made.name in PARAMETER_NAMES | BUFFER_NAMES
    if isinstance(made, t.Attribute) and named and kind_of(m.value(made.base), m.state) is Kind.UNKNOWN:
        return True
    return _is_field_exchanged(m, objects, event)


def _is_field_exchanged(m: Machine, objects: list[Object], event: t.Call | t.Invoke) -> bool:
    """Whether a field is exchanged for what is made of it, `self.rate = torch.tensor(self.rate)`, of which nothing else
    in the unit says what it was."""
    given = _given(event)
    made = m.unit.definitions[given[0]] if given else None
    if not isinstance(made, t.Attribute) or any(obj.owner != FIELD for obj in objects):
        return False
    return giving.is_stored_in(m, event.site, naming.text_of(m, given[0]))


def _given(event: t.Call | t.Invoke) -> list[int]:
    return [a.register for a in event.arguments if not a.stars and a.keyword in ("", "data")]


def _is_unseen(m: Machine, value: Value, event: t.Call | t.Invoke) -> bool:
    """Whether what is given is held by one name only, which is not looked at again as long as it holds it."""
    if not isinstance(value.root, str) or not value.refs:
        return False
    for share in [share for ref in value.refs for share in m.state.object(ref).shares]:
        if any(key != value.root and _is_lasting(m, key) for key, _ in m.state.holders_of(share.storage)):
            return False
    given = _given(event)
    return bool(given) and uses.is_last_look(m, value.root, given[0], event.out)


def _is_lasting(m: Machine, key: Key) -> bool:
    """Whether a holder outlives its expression: not a hidden name, nor an element of a tuple that was taken apart."""
    if not isinstance(key, tuple):
        return not str(key).startswith("%")
    held = [holder for holder in m.state.holders.get(key[0], ()) if key[0] in m.state.refs_of(holder)]
    return m.state.object(key[0]).kind is not Kind.TUPLE or any(_is_lasting(m, holder) for holder in held)


def _holds_arrays(m: Machine, value: Value) -> bool:
    """Whether all elements of a list are arrays, and none of them one of NumPy's numbers."""
    slots = [slot for ref in value.refs for slot in m.state.slot_names(ref)]
    held = [m.state.object(ref) for slot in slots for ref in m.state.refs_of(slot)]
    return len(held) >= len(slots) > 0 and all(obj.kind is Kind.ARRAY and NDARRAY in obj.flags for obj in held)


def _text_of(m: Machine, event: t.Call | t.Invoke) -> str:
    """The first argument as the user wrote it."""
    given = _given(event)
    return naming.text_of(m, given[0]) if given else "..."


_OBSERVERS: dict[str, Observer] = {
    COPYING: _copying,
    VARIABLE: _variable,
    **dict.fromkeys(LEGACY, _legacy),
    "torch.frombuffer": _buffer,
    **dict.fromkeys(WINDOWS, _converting),
    **to_arrays.OBSERVERS,
}
assert all(table.canonical(name) == name for name in _OBSERVERS)
