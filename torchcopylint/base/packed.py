"""Named tuples and what stands in them as text and back, each with its class: for data of many types, some open.

What `plain` reads by annotations is data of one declared form. Here every value brings the name of its class along, and
reading makes none but named tuples, enumerations and texts of the package that is told: a text from elsewhere yields
such data or an error, and runs nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final

_TUPLE: Final = 0
_SET: Final = 1
_MAPPING: Final = 2
_COMPLEX: Final = 3
_BYTES: Final = 4
_ELLIPSIS: Final = 5
_CLASSES: Final = 6
"""A value that is no plain text, number or nothing is a list: one of these numbers, and what it consists of. Classes
have numbers from the last one on."""
_LEAVES: Final = frozenset({str, int, bool, float, type(None)})


class NotPacked(ValueError):
    """A text is not what `pack` makes."""


def pack(value: object) -> str:
    """The value as text. Raises `TypeError` if something in it is of another kind than those."""
    classes: dict[type, int] = {}
    packed = _packed(value, classes, {})
    return json.dumps([[f"{kind.__module__}:{kind.__qualname__}" for kind in classes], packed], separators=(",", ":"))


def _packed(value: Any, classes: dict[type, int], members: dict[int, list[Any]]) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is tuple:
        return [_TUPLE, *[item if type(item) in _LEAVES else _packed(item, classes, members) for item in value]]
    if kind is frozenset:
        return [_SET, *[item if type(item) in _LEAVES else _packed(item, classes, members) for item in value]]
    # Members of enumerations are the most frequent of all, and there are few of them.
    if (known := members.get(id(value))) is not None:
        return known
    if isinstance(value, Mapping):
        pairs = [[_packed(key, classes, members), _packed(item, classes, members)] for key, item in value.items()]
        return [_MAPPING, *pairs]
    if kind is complex:
        return [_COMPLEX, value.real, value.imag]
    if kind is bytes:
        return [_BYTES, value.decode("latin-1")]
    if value is ...:
        return [_ELLIPSIS]
    number = classes.setdefault(kind, _CLASSES + len(classes))
    if isinstance(value, Enum):
        members[id(value)] = [number, value.value]
        return members[id(value)]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [number, *[item if type(item) in _LEAVES else _packed(item, classes, members) for item in value]]
    if isinstance(value, str):
        return [number, str(value)]
    raise TypeError(f"{kind.__name__} cannot be packed")


def unpack(text: str, package: str) -> Any:
    """The value that `pack` made a text of. All classes in it are of `package`, or of what lies below it.

    Raises `NotPacked`.
    """
    try:
        names, packed = json.loads(text)
        return _unpacked(packed, [_maker(name, package) for name in names])
    except (ValueError, TypeError, LookupError, AttributeError, ImportError, RecursionError) as error:
        raise NotPacked(str(error)) from None


def _maker(name: str, package: str) -> Callable[[list[Any]], Any]:
    """What makes the values of a class of its parts."""
    module, _, qualname = name.partition(":")
    if module != package and not module.startswith(f"{package}."):
        raise NotPacked(f"{module} is not of {package}")
    kind = getattr(sys.modules.get(module) or import_module(module), qualname)
    if not isinstance(kind, type) or kind.__module__ != module:
        raise NotPacked(f"{name} is no class")
    if issubclass(kind, tuple) and hasattr(kind, "_make"):
        make: Callable[[list[Any]], Any] = kind._make
        return make
    if issubclass(kind, Enum | str):
        return lambda parts: kind(*parts)
    raise NotPacked(f"{name} is none of the classes that are packed")


def _unpacked(packed: Any, makers: list[Callable[[list[Any]], Any]]) -> Any:
    if type(packed) is not list:
        return packed
    number = packed[0]
    if type(number) is not int or number < 0:
        raise NotPacked(f"{number} is no class")
    if number == _MAPPING:
        return {_unpacked(key, makers): _unpacked(item, makers) for key, item in packed[1:]}
    parts = [_unpacked(item, makers) if type(item) is list else item for item in packed[1:]]
    if number == _TUPLE:
        return tuple(parts)
    if number == _SET:
        return frozenset(parts)
    if number == _COMPLEX:
        return complex(*parts)
    if number == _BYTES:
        return parts[0].encode("latin-1")
    if number == _ELLIPSIS:
        return ...
    return makers[number - _CLASSES](parts)
