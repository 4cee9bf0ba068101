"""What a script's names hold: every tensor and array that can be reached from its frames, with the path to it."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Held:
    """One path to one value. `scope` is the qualified name of the function whose name it starts with, or empty."""

    scope: str
    path: str
    value: Any


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
        self.exceeded = False
        self._left = 0
        self._entered: set[int] = set()

    def held(self, frames: list[types.FrameType]) -> list[Held]:
        """Every tensor, array and byte array that the names of these frames, and the script's globals, reach."""
        self._left = MOST_VALUES
        self.modules = []
        found: list[Held] = []
        namespaces: list[tuple[str, dict[str, Any]]] = []
        for frame in reversed(frames):
            scope = "" if frame.f_code.co_name == "<module>" else frame.f_code.co_qualname
            namespaces.append((scope, dict(frame.f_locals)))
        if frames and not any(scope == "" for scope, _ in namespaces):
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
                found.extend(self._walk(scope, name, value, 0))
        return found

    def _walk(self, scope: str, path: str, value: Any, depth: int) -> Iterator[Held]:
        if isinstance(value, (int, float, str, bool, type(None), type, types.ModuleType)):
            return
        self._left -= 1
        if self._left < 0:
            self.exceeded = True
            return
        if isinstance(value, torch.Tensor):
            yield Held(scope, path, value)
            if depth < DEEPEST:
                yield from self._gradient(scope, path, value)
            return
        if is_array(value) or isinstance(value, bytearray):
            yield Held(scope, path, value)
            return
        if isinstance(value, torch.nn.Module):
            self.modules.append(Held(scope, path, value))
        if depth >= DEEPEST or id(value) in self._entered:
            return
        self._entered.add(id(value))
        for inner_path, inner in _parts(path, value):
            yield from self._walk(scope, inner_path, inner, depth + 1)

    def _gradient(self, scope: str, path: str, value: torch.Tensor) -> Iterator[Held]:
        try:
            if (value.is_leaf or value.retains_grad) and value.grad is not None:
                yield Held(scope, f"{path}.grad", value.grad)
        except RuntimeError:
            return


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in list(value.items())[:MOST_ITEMS]:
            yield f"{path}[{_key(key)}]", inner
    elif isinstance(value, (list, tuple, deque)):
        for index, inner in enumerate(list(value)[:MOST_ITEMS]):
            yield f"{path}[{index}]", inner
    elif isinstance(value, (set, frozenset)):
        for inner in list(value)[:MOST_ITEMS]:
            yield f"{path}{{...}}", inner
    elif isinstance(value, torch.nn.Module):
        yield from _parts_of_module(path, value)
    elif isinstance(value, torch.optim.Optimizer):
        # It may be in the middle of its `__init__`.
        yield f"{path}.param_groups", getattr(value, "param_groups", [])
        for index, state in enumerate(list(getattr(value, "state", {}).values())[:MOST_ITEMS]):
            yield f"{path}.state[{index}]", state
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(path, value)
    elif isinstance(value, types.MethodType):
        yield f"{path}.__self__", value.__self__
    elif isinstance(value, types.GeneratorType):
        if value.gi_frame is not None and value.gi_code.co_filename == FILENAME:
            yield from ((f"{path}:{name}", inner) for name, inner in dict(value.gi_frame.f_locals).items())
    elif _is_entered(type(value)):
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            yield from ((f"{path}.{name}", inner) for name, inner in list(attributes.items())[:MOST_ITEMS])


def _parts_of_module(path: str, module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    for part in ("_parameters", "_buffers", "_modules"):
        for name, inner in list((module.__dict__.get(part) or {}).items())[:MOST_ITEMS]:
            yield f"{path}[{name}]" if name.isdigit() else f"{path}.{name}", inner
    for name, inner in list(module.__dict__.items())[:MOST_ITEMS]:
        if not name.startswith("_") and not name.endswith("_hooks"):
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
