"""What assertions say of a tensor or array: that it holds, still, the numbers that it was made with."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import StillExpected
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_FILLED = {"zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1, "full": None, "full_like": None, "eye": 1}
"""What functions of torch and NumPy fill a tensor with; `None` is their second argument, `eye` has a diagonal."""
_SAME = frozenset(
    {
        "detach",
        "clone",
        "copy",
        "flatten",
        "ravel",
        "reshape",
        "view",
        "t",
        "transpose",
        "permute",
        "squeeze",
        "unsqueeze",
    }
    | {"numpy", "cpu", "contiguous", "float", "double"}
)
_TURNED = frozenset({"T", "mT"})
_ONE_OF = frozenset({"max", "min", "mean", "amax", "amin", "median", "item", "tolist", "all"})
_ADDING = frozenset({"sum", "norm", "trace"})
_COPYING = frozenset({"clone", "copy"})
_EQUAL = frozenset({"torch.equal", "torch.allclose", "numpy.array_equal", "numpy.allclose"})
_HANDING_ON = frozenset(
    {"builtins.float", "builtins.int", "torch.from_numpy", "torch.as_tensor", "torch.asarray"}
    | {"numpy.asarray", "numpy.ascontiguousarray"}
)
_NUMBERS = (int, float)
_MAX_DEPTH = 8


class _Content(NamedTuple):
    """All of what a name was bound to at the site `since` is one number, or, with `diagonal`, what lies on that is;
    `size` is how many there are, or -1. `sites` are those of the events that look at it."""

    name: str
    since: int
    value: float
    size: int
    diagonal: bool
    sites: tuple[int, ...]


def found(m: Machine) -> Iterator[StillExpected]:
    """Where a unit asserts that something holds what it was made with, or what a copy of it does."""
    before: t.Event | None = None
    repeated = {event.site for loop in m.index.of(t.Loop) for event in loop.test}
    for event in t.events(m.unit.tape) if m.index.of(t.Test) else ():
        if isinstance(event, t.Assume) and isinstance(before, t.Test) and before.register == event.register:
            said = m.unit.definitions[event.register] if event.register >= 0 and event.site not in repeated else None
            yield from _said(m, said)
        before = event


def _said(m: Machine, event: t.Event | None) -> Iterator[StillExpected]:
    """What an assertion says, if it compares something with a number or a copy."""
    while isinstance(event, t.Invoke) and event.name in ("all", "item") and not event.arguments:
        event = m.unit.definitions[event.base]
    if isinstance(event, t.Operate) and event.symbol == "==" and len(event.operands) == 2:
        content, number = _content(m, event.operands[0]), _constant(m, event.operands[1])
        if content is not None and number == content.value and not content.diagonal:
            yield StillExpected(event.site, content.name, content.since, (*content.sites, event.site))
    elif isinstance(event, t.Call | t.Invoke) and m.dotted_of(event) in _EQUAL and len(event.arguments) >= 2:
        pair = [m.unit.definitions[argument.register] for argument in event.arguments[:2]]
        for one, other in (pair, pair[::-1]):
            since = _copied_at(m, other, one.name) if isinstance(one, t.Load) and isinstance(other, t.Load) else -1
            if since >= 0 and isinstance(one, t.Load):
                yield StillExpected(event.site, one.name, since, (one.site, event.site))


def _copied_at(m: Machine, load: t.Load, name: str) -> int:
    """Where a name was bound to a copy of what another one holds, or -1."""
    bound = uses.bindings_before(m, load)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    copied = isinstance(made, t.Invoke) and made.name in _COPYING
    while isinstance(made, t.Invoke) and not made.arguments:
        made = m.unit.definitions[made.base]
    return made.site if copied and isinstance(made, t.Load) and made.name == name else -1


def _content(m: Machine, register: int, depth: int = _MAX_DEPTH) -> _Content | None:
    """What a value was computed from, all of which is one number, and what that comes to."""
    event = m.unit.definitions[register] if register >= 0 and depth else None
    match event:
        case t.Load():
            return _made(m, event)
        case t.Call() | t.Invoke() if _created(m, event):
            return _filled(m, event)
        case t.Attribute() if event.name in _TURNED:
            return _content(m, event.base, depth - 1)
        case t.Item():
            entry = _entry(m, event)
            if entry >= 0:
                held = _content(m, entry, depth - 1)
                return held and held._replace(name=naming.text_of(m, event.out), sites=(event.site,))
            inner = _content(m, event.base, depth - 1)
            known = inner is not None and not inner.diagonal
            return inner._replace(size=-1, sites=(*inner.sites, event.site)) if known and inner is not None else None
        case t.Invoke():
            if m.dotted_of(event) in _HANDING_ON and event.arguments:
                return _content(m, event.arguments[0].register, depth - 1)
            inner = _content(m, event.base, depth - 1)
            return _of_method(event, inner) if inner is not None else None
        case t.Call() if m.dotted_of(event) in _HANDING_ON and event.arguments:
            return _content(m, event.arguments[0].register, depth - 1)
    return None


def _entry(m: Machine, event: t.Item) -> int:
    """What stands at a constant place of a list or dictionary that is written out, or no register."""
    base = m.unit.definitions[event.base]
    bound = uses.bindings_before(m, base) if isinstance(base, t.Load) else []
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    subscript = event.subscript[0] if len(event.subscript) == 1 else None
    key = m.unit.definitions[subscript] if isinstance(subscript, int) and subscript >= 0 else None
    if not isinstance(made, t.Make) or not isinstance(key, t.Const) or any(made.stars):
        return t.NO_REGISTER
    keys = [m.unit.definitions[one] if one >= 0 else None for one in made.keys]
    named = [one.value if isinstance(one, t.Const) else None for one in keys] if keys else [*range(len(made.items))]
    return made.items[named.index(key.value)] if key.value in named else t.NO_REGISTER


def _of_method(event: t.Invoke, inner: _Content) -> _Content | None:
    seen = inner._replace(sites=(*inner.sites, event.site))
    if event.name in _SAME:
        return seen
    if event.name == "abs":
        return seen._replace(value=abs(inner.value))
    if event.name in _ONE_OF and not inner.diagonal and not event.arguments:
        return seen._replace(size=1)
    if event.name in _ADDING and not event.arguments:
        if inner.value == 0:
            return seen._replace(diagonal=False, size=1)
        sums = inner.size >= 0 and (event.name == "sum" or (event.name == "trace" and inner.diagonal))
        return seen._replace(value=inner.value * inner.size, diagonal=False, size=1) if sums else None
    return None


def _made(m: Machine, load: t.Load) -> _Content | None:
    """What a name was made with, if it was bound once, to what is filled with one number, or to an alias of that."""
    bound = uses.bindings_before(m, load)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if not isinstance(made, t.Call | t.Invoke | t.Item):
        return None
    content = _content(m, bound[0])
    return content and content._replace(name=load.name, since=made.site, sites=(load.site,))


def _created(m: Machine, event: t.Call | t.Invoke) -> str:
    """The name of the function that makes something filled with one number, or nothing."""
    package, _, name = m.dotted_of(event).rpartition(".")
    return name if package in ("torch", "numpy") and name in _FILLED else ""


def _filled(m: Machine, made: t.Call | t.Invoke) -> _Content | None:
    """What such a function makes."""
    name = _created(m, made)
    filled, given = _FILLED[name], [argument.register for argument in made.arguments if not argument.keyword]
    value = filled if filled is not None else _constant(m, given[1]) if len(given) > 1 else None
    if value is None:
        return None
    several = not name.startswith("full") and m.dotted_of(made).startswith("torch.")
    sizes = [size for register in given[: None if several else 1] for size in _sizes(m, register)]
    known = bool(sizes) and not name.endswith("_like") and min(sizes) >= 0
    size = (sizes[0] if name == "eye" else prod(sizes)) if known else -1
    return _Content("", made.site, value, size, name == "eye", ())


def _sizes(m: Machine, register: int) -> list[int]:
    """The sizes that an argument says, -1 for one that is not written down."""
    event = m.unit.definitions[register]
    registers = event.items if isinstance(event, t.Make) else (register,)
    numbers = [_constant(m, one) for one in registers]
    return [number if isinstance(number, int) else -1 for number in numbers]


def _constant(m: Machine, register: int) -> float | None:
    event = m.unit.definitions[register] if register >= 0 else None
    value = event.value if isinstance(event, t.Const) else None
    return value if isinstance(value, _NUMBERS) and not isinstance(value, bool) else None
