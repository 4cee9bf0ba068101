"""What a script's names hold: every tensor and array that can be reached from its frames, with the path to it."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum, auto
from itertools import islice
from typing import Any, NamedTuple

import torch

from .instrument import FILENAME, OBSERVER

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

DEEPEST = 6
MOST_VALUES = 4000
MOST_ITEMS = 64
MOST_FRAMES = 24
ALSO_ENTERED = ("torch.utils.data",)
"""Packages whose objects are entered as those of the script are: their attributes hold the user's data."""


class Held(NamedTuple):
    """One path to one value. `scope` is the qualified name of the function whose name it starts with, or empty."""

    scope: str
    path: str
    value: Any


class Category(IntEnum):
    """What a type is to a walk. Numbers, as they are looked up for every value and those of `Enum` hash slowly."""

    PLAIN = auto()
    TENSOR = auto()
    CONTENT = auto()
    MODULE = auto()
    DICT = auto()
    SEQUENCE = auto()
    SET = auto()
    OPTIMIZER = auto()
    FUNCTION = auto()
    METHOD = auto()
    GENERATOR = auto()
    ENTERED = auto()
    OTHER = auto()


def frames_of_script(frame: types.FrameType | None) -> list[types.FrameType]:
    """The innermost frames of the script among `frame` and its callers, innermost first."""
    found: list[types.FrameType] = []
    while frame is not None and len(found) < MOST_FRAMES:
        if frame.f_code.co_filename == FILENAME:
            found.append(frame)
        frame = frame.f_back
    return found


def is_array(value: Any) -> bool:
    """Whether a value is a NumPy array."""
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_number(value: Any) -> bool:
    """Whether a value is a NumPy scalar, such as `np.float32(1)`."""
    return numpy is not None and isinstance(value, numpy.generic)


def has_graph(value: torch.Tensor) -> bool:
    """Whether a tensor was computed and requires grad. One whose view may not be asked has none that can be told."""
    try:
        return value.requires_grad and not value.is_leaf
    except RuntimeError:
        return False


class Reach:
    """Walks from names to tensors, arrays, byte arrays and modules. Bounded in depth and in the number of values."""

    def __init__(self) -> None:
        self.modules: list[Held] = []
        self.trained: set[tuple[str, str]] = set()
        """Scopes and paths at which something has stood that an optimizer holds."""
        self.exceeded = False
        self._left = 0
        self._entered: set[int] = set()

    def held(self, frames: list[types.FrameType], *, alone: bool = False) -> list[Held]:
        """Every tensor, array and byte array that the names of these frames, and the script's globals, reach.

        `alone`: the globals are left out, if none of the frames is the module's.
        """
        self._left = MOST_VALUES
        self.modules = []
        found: list[Held] = []
        namespaces: list[tuple[str, dict[str, Any]]] = []
        for frame in reversed(frames):
            scope = "" if frame.f_code.co_name == "<module>" else frame.f_code.co_qualname
            namespaces.append((scope, dict(frame.f_locals)))
        if frames and not alone and not any(scope == "" for scope, _ in namespaces):
            namespaces.insert(0, ("", dict(frames[-1].f_globals)))
        for scope, namespace in namespaces:
            found.extend(self._names(scope, namespace))
        return found

    def walk_names(self, scope: str, names: dict[str, Any]) -> list[Held]:
        """The same of one namespace."""
        self._left = MOST_VALUES
        self.modules = []
        return self._names(scope, names)

    def _names(self, scope: str, names: dict[str, Any]) -> list[Held]:
        found: list[Held] = []
        for name, value in list(names.items()):
            if not name.startswith((OBSERVER, "__", ".")):
                self._entered = set()
                self._walk(scope, name, value, 0, found)
        return found

    def _walk(self, scope: str, path: str, value: Any, depth: int, found: list[Held]) -> None:
        category = _CATEGORIES.get(type(value)) or _category(type(value))
        if category is Category.PLAIN:
            return
        self._left -= 1
        if self._left < 0:
            self.exceeded = True
            return
        if category is Category.TENSOR:
            found.append(Held(scope, path, value))
            if depth < DEEPEST:
                found.extend(self._gradient(scope, path, value))
            return
        if category is Category.CONTENT:
            found.append(Held(scope, path, value))
            return
        if category is Category.MODULE:
            self.modules.append(Held(scope, path, value))
        parts = _PARTS.get(category)
        if parts is None or depth >= DEEPEST or id(value) in self._entered:
            return
        self._entered.add(id(value))
        for inner_path, inner in parts(path, value):
            self._walk(scope, inner_path, inner, depth + 1, found)

    def _gradient(self, scope: str, path: str, value: torch.Tensor) -> Iterator[Held]:
        try:
            if (value.is_leaf or value.retains_grad) and value.grad is not None:
                yield Held(scope, f"{path}.grad", value.grad)
        except RuntimeError:
            return


def _is_plain(value: Any) -> bool:
    return (_CATEGORIES.get(type(value)) or _category(type(value))) is Category.PLAIN


def _category(kind: type) -> Category:
    """What a type is; remembered."""
    found = next((category for base, category in _BASES if issubclass(kind, base)), None)
    if found is None and numpy is not None and issubclass(kind, numpy.ndarray):
        found = Category.CONTENT
    if found is None:
        found = Category.ENTERED if _is_entered(kind) else Category.OTHER
    _CATEGORIES[kind] = found
    return found


def _parts_of_dict(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    for key, inner in list(islice(value.items(), MOST_ITEMS)):
        if not _is_plain(inner):
            yield f"{path}[{_key(key)}]", inner


def _parts_of_sequence(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    for index, inner in enumerate(list(islice(value, MOST_ITEMS))):
        if not _is_plain(inner):
            yield f"{path}[{index}]", inner


def _parts_of_set(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    for inner in list(value)[:MOST_ITEMS]:
        yield f"{path}{{...}}", inner


def _parts_of_optimizer(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    # It may be in the middle of its `__init__`.
    yield f"{path}.param_groups", getattr(value, "param_groups", [])
    for index, state in enumerate(list(getattr(value, "state", {}).values())[:MOST_ITEMS]):
        yield f"{path}.state[{index}]", state


def _parts_of_method(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield f"{path}.__self__", value.__self__


def _parts_of_generator(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value.gi_frame is not None and value.gi_code.co_filename == FILENAME:
        yield from ((f"{path}:{name}", inner) for name, inner in dict(value.gi_frame.f_locals).items())


def _parts_of_object(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        for name, inner in list(attributes.items())[:MOST_ITEMS]:
            if not _is_plain(inner):
                yield f"{path}.{name}", inner


def _parts_of_module(path: str, module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    attributes = module.__dict__
    for part in ("_parameters", "_buffers", "_modules"):
        held = attributes.get(part)
        if held:
            for name, inner in list(islice(held.items(), MOST_ITEMS)):
                yield f"{path}[{name}]" if name.isdigit() else f"{path}.{name}", inner
    for name in [name for name in islice(attributes, MOST_ITEMS) if name not in _OWN]:
        inner = attributes[name]
        if not name.startswith("_") and not _is_plain(inner) and not name.endswith("_hooks"):
            yield f"{path}.{name}", inner


def _parts_of_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    if function.__code__.co_filename != FILENAME:
        return
    for index, inner in enumerate(function.__defaults__ or ()):
        yield f"{path}.__defaults__[{index}]", inner
    for name, inner in (function.__kwdefaults__ or {}).items():
        yield f"{path}.__kwdefaults__[{name!r}]", inner
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"{path}:{name}", cell.cell_contents
        except ValueError:
            continue


def _is_entered(kind: type) -> bool:
    module = getattr(kind, "__module__", "")
    return isinstance(module, str) and (module == "__main__" or module.startswith(ALSO_ENTERED))


def _key(key: Any) -> str:
    return repr(key)[:40] if isinstance(key, (str, int, float, bool, tuple)) else type(key).__name__


_BASES: tuple[tuple[Any, Category], ...] = (
    ((int, float, str, bool, type(None), type, types.ModuleType), Category.PLAIN),
    (torch.Tensor, Category.TENSOR),
    (bytearray, Category.CONTENT),
    (dict, Category.DICT),
    ((list, tuple, deque), Category.SEQUENCE),
    ((set, frozenset), Category.SET),
    (torch.nn.Module, Category.MODULE),
    (torch.optim.Optimizer, Category.OPTIMIZER),
    (types.FunctionType, Category.FUNCTION),
    (types.MethodType, Category.METHOD),
    (types.GeneratorType, Category.GENERATOR),
)
_OWN = frozenset(vars(torch.nn.Module()))
"""What every module keeps for itself, which is asked for in many."""
_CATEGORIES: dict[type, Category] = {}
_PARTS: dict[Category, Callable[[str, Any], Iterator[tuple[str, Any]]]] = {
    Category.MODULE: _parts_of_module,
    Category.DICT: _parts_of_dict,
    Category.SEQUENCE: _parts_of_sequence,
    Category.SET: _parts_of_set,
    Category.OPTIMIZER: _parts_of_optimizer,
    Category.FUNCTION: _parts_of_function,
    Category.METHOD: _parts_of_method,
    Category.GENERATOR: _parts_of_generator,
    Category.ENTERED: _parts_of_object,
}
