"""How many elements there is room for in memory that NumPy or a buffer owns, where the numbers are written out."""

from __future__ import annotations

from math import ceil, prod
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("bfloat16", "float16", "half", "int16"), 2),
    **dict.fromkeys(("float", "float32", "int", "int32"), 4),
    **dict.fromkeys(("double", "float64", "int64", "long"), 8),
}
"""How many bytes an element takes."""
_PACKAGES = ("torch", "numpy")
_MAKERS = frozenset(f"{package}.{name}" for package in _PACKAGES for name in ("empty", "ones", "rand", "zeros", "full"))
_RANGES = frozenset(f"{package}.arange" for package in _PACKAGES)
_LISTED = frozenset({"torch.tensor", "numpy.array", "numpy.asarray"})
_KEEPING = frozenset({"numpy", "reshape", "view", "flatten", "ravel", "detach", "contiguous", "squeeze", "unsqueeze"})
"""Methods that give as many elements as there were, on the same memory where that matters."""
_WINDOWS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.asarray"})
MAX_STEPS = 8


def fits(m: Machine, site: int) -> bool:
    """Whether `x.resize_(...)` at a site asks for no more elements than there surely are."""
    event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(event, t.Invoke):
        return False
    wanted = _count(m, tuple(argument.register for argument in event.arguments if not argument.keyword))
    there = _elements(m, event.base, MAX_STEPS) if wanted is not None else None
    return wanted is not None and there is not None and wanted <= there


def stays(m: Machine, site: int) -> bool:
    """Whether `array.resize(...)` at a site asks for as many elements as there surely are."""
    event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(event, t.Invoke):
        return False
    wanted = _count(m, tuple(argument.register for argument in event.arguments if not argument.keyword))
    return wanted is not None and wanted == _elements(m, event.base, MAX_STEPS)


def _elements(m: Machine, register: int, steps: int) -> int | None:
    """The elements of a tensor or an array, or the bytes of a buffer."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        return _elements(m, bound[0], steps - 1) if len(bound) == 1 and steps else None
    if isinstance(event, t.Const):
        return len(event.value) if isinstance(event.value, bytes) else None
    dotted = m.dotted_of(event) if isinstance(event, t.Call | t.Invoke) else ""
    if isinstance(event, t.Invoke) and event.name in _KEEPING and not dotted.startswith(("torch.", "numpy.")):
        return _elements(m, event.base, steps - 1) if steps else None
    if not isinstance(event, t.Call | t.Invoke) or not event.arguments or not steps:
        return None
    first = event.arguments[0].register
    given = tuple(argument.register for argument in event.arguments if not argument.keyword)
    if dotted in _MAKERS:
        # NumPy takes the shape first, and then a dtype; so does `full`, and a value.
        alone = dotted.startswith("numpy.") or dotted.endswith(".full")
        return _count(m, given[:1] if alone else given)
    if dotted in _RANGES:
        return _between([m.value(one).const for one in given])
    if dotted in _LISTED:
        return _listed(m, first, steps - 1)
    if dotted == "builtins.bytearray":
        number = m.value(first).const
        return number if isinstance(number, int) else _elements(m, first, steps - 1)
    if dotted not in (*_WINDOWS, "torch.frombuffer"):
        return None
    told = [naming.text_of(m, argument.register) for argument in event.arguments if argument.keyword == "dtype"]
    room = _elements(m, first, steps - 1)
    if dotted in _WINDOWS or room is None:
        return room if not told else None
    size = _BYTES.get(told[0].rpartition(".")[2]) if len(event.arguments) == 2 and told else None
    return room // size if size is not None else None


def _between(bounds: list[object]) -> int | None:
    """How many numbers `arange` gives, by ones."""
    known = [bound for bound in bounds if isinstance(bound, int | float)]
    if len(known) != len(bounds) or not 1 <= len(known) <= 2:
        return None
    return max(ceil(known[-1] - (known[0] if len(known) == 2 else 0)), 0)


def _listed(m: Machine, register: int, steps: int) -> int | None:
    """How many numbers stand in a list of numbers, or of lists of them."""
    made = m.unit.definitions[register] if register >= 0 and steps else None
    if not isinstance(made, t.Make) or made.kind not in ("list", "tuple") or any(made.stars):
        return None
    held = [m.unit.definitions[item] for item in made.items]
    if all(isinstance(one, t.Const) for one in held):
        return len(held)
    counts = [_listed(m, item, steps - 1) for item in made.items]
    return sum(count or 0 for count in counts) if None not in counts else None


def _count(m: Machine, registers: tuple[int, ...]) -> int | None:
    """The product of sizes that are written out, alone or in a tuple."""
    made = m.unit.definitions[registers[0]] if len(registers) == 1 and registers[0] >= 0 else None
    sizes = [m.value(one).const for one in (made.items if isinstance(made, t.Make) else registers)]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if known and len(known) == len(sizes) else None
