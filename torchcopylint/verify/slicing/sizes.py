"""Numbers and shapes: what a thing that is a size, an index or a tensor's shape becomes under one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.things import Thing, find, kind_of

_DEEPEST = 8
"""So many formulas are followed into one another."""
Formula = tuple[str, Thing, Thing]


@dataclass(frozen=True, slots=True)
class Setting:
    """What one attempt chooses: the size of unknown dimensions, how many there are, and the kind of unknown inputs.

    `dimensions` is for tensors that do not say themselves. `grad` gives floating inputs a graph. `dtype` is that of
    floating inputs: `float32` or `float64`. `turned`: what has two or more dimensions is not contiguous. `last` and
    `second` are those dimensions of tensors that do not say them themselves, 0 if they are like the others. `graded`:
    the parameters of modules have gradients. `items` are the batches of a loader. `layers`: what is made by a class
    from elsewhere is a layer. `spread`: floating inputs are ten times as far from zero. `frozen`: no parameter of what
    stands in requires grad. `unrecorded`: what is called is called with recording off. `apart`: what is moved to a GPU
    is copied where it comes back. `leaves`: inputs with a graph are where it begins, so that two things that are
    computed of one share nothing else.
    """

    size: int
    dimensions: int
    seed: int
    grad: bool = False
    dtype: str = "float32"
    device: str = "cpu"
    spatial: int = 16
    batch: int = 0
    channels: int = 0
    turned: bool = False
    last: int = 0
    second: int = 0
    graded: bool = False
    items: int = 2
    layers: bool = False
    spread: bool = False
    frozen: bool = False
    unrecorded: bool = False
    apart: bool = False
    leaves: bool = False

    @property
    def sample(self) -> tuple[int, ...]:
        """The shape of one sample of a batch."""
        if self.channels:
            return (self.channels, self.size, self.size)
        shape = [self.size] * max(self.dimensions - 1, 1)
        if self.last:
            shape[-1] = self.last
        if self.second and len(shape) > 1:
            shape[0] = self.second
        return tuple(shape)


class Sizes:
    """The numbers of one script: the same thing is the same number everywhere."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._indices: dict[int, int] = {}

    def number(self, thing: Thing | int | None, depth: int = 0) -> int | float:
        """The number that a thing stands for."""
        if isinstance(thing, int | float):
            return thing
        if thing is None or depth > _DEEPEST:
            return self._setting.size
        thing = find(thing)
        constant = thing.constant
        if isinstance(constant, int | float) and not isinstance(constant, bool):
            return constant
        if thing.formula is not None and not _is_of(thing, thing.formula, depth):
            operator, left, right = thing.formula
            one, two = self.number(left, depth + 1), self.number(right, depth + 1)
            try:
                return {
                    "Add": one + two,
                    "Sub": one - two,
                    "Mult": one * two,
                    "FloorDiv": one // (two or 1),
                    "Div": one / (two or 1),
                }.get(operator, self._setting.size)
            except (ArithmeticError, ValueError):
                return self._setting.size
        name = thing.name.lower()
        if "size" in thing.votes and name in ("dim", "step", "steps", "index", "idx", "i", "item"):
            return self._setting.size
        if "stride" in thing.votes:
            # There are two turns at least.
            return max(1, self._setting.size // 2)
        if "index" in thing.votes and "size" not in thing.votes:
            # Different indices are different numbers: a swap of an element with itself shows nothing.
            return self._indices.setdefault(id(thing), (len(self._indices) + 1) % 3)
        numbers: Mapping[str, int | float]
        for numbers in (tables.INTS, tables.FLOATS):
            for word in _words(name):
                if word in numbers and (len(word) > 1 or word == name):
                    return max(numbers[word], thing.least)
        return 0.5 if kind_of(thing)[0] == "float" else self._setting.size

    def size(self, thing: Thing | int | None) -> int:
        """A dimension: a positive whole number."""
        return max(1, int(self.number(thing)))

    def shape(self, thing: Thing) -> tuple[int, ...]:
        """The shape of a tensor or array."""
        thing = find(thing)
        for _ in range(3):
            if thing.dimensions is not None or thing.last is not None or thing.second is not None:
                break
            likely = [other for other in map(find, thing.near) if other.dimensions or other.last or other.second]
            if not likely or likely[0].made:
                break
            thing = likely[0]
        count = thing.dimensions
        if count is None:
            least = max(thing.dimensions_least, 1 if thing.last is not None else 0)
            count = 0 if not least and is_one_number(thing) else max(self._setting.dimensions, least)
        shape = [self._setting.size] * count
        if thing.second is not None and count > 2:
            shape[2:] = [self._setting.spatial] * (count - 2)
            shape[1] = self.size(thing.second)
        if thing.last is not None and count:
            shape[-1] = self.size(thing.last)
        if self._setting.last and thing.last is None and count and thing.dimensions != 1:
            shape[-1] = self._setting.last
        if self._setting.second and thing.second is None and count > 2:
            shape[1] = self._setting.second
        if self._setting.channels and count == 4 and thing.second is None:
            shape[:2] = [2, self._setting.channels]
        if self._setting.batch and count > 1:
            shape[0] = self._setting.batch
        return tuple(shape)


def _is_of(thing: Thing, formula: Formula, depth: int) -> bool:
    """Whether a formula asks for the thing that it computes, as where a size and its multiple are one thing to all that
    is known: it then says nothing, and a number grew with each time it is asked."""
    parts = [find(part) for part in formula[1:]]
    deeper = (part for part in parts if part.formula is not None and depth < _DEEPEST)
    return thing in parts or any(_is_of(thing, part.formula, depth + 1) for part in deeper if part.formula is not None)


def is_one_number(thing: Thing) -> bool:
    """Whether a tensor has no dimensions. What is called a loss has none, if nothing says otherwise."""
    named = thing.name.lower().rsplit("_", 1)[-1] == "loss"
    return thing.dimensions == 0 or (thing.dimensions is None and not thing.dimensions_least and named)


def _words(name: str) -> tuple[str, ...]:
    """What a name that is made of several words, or numbered, may be called by."""
    return (name, name.rstrip("0123456789"), name.rsplit("_", 1)[-1], *(("lr",) if name.startswith("lr_") else ()))
