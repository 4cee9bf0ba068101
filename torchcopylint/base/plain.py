"""Frozen data types as JSON values and back, by their annotations: for what is kept in files and sent between machines.

A dataclass or named tuple becomes the list of its fields, in order, an enumeration its value; tuples become lists.
Reading checks every value against the annotations, so that a file from elsewhere yields well-formed data or an error.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

Reader = Callable[[Any], Any]


class NotPlain(ValueError):
    """A value is not of the form that its type has as JSON."""


def to_plain(value: object) -> Any:
    """The value as what `json` can write. Raises `TypeError` for what is no plain data."""
    if value is None or type(value) in (str, int, bool, float):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [to_plain(getattr(value, name)) for name in _names(type(value))]
    raise TypeError(f"{type(value).__name__} is no plain data")


def from_plain(kind: Any, value: Any) -> Any:
    """The value of a type that `to_plain` made `value` of. Raises `NotPlain`."""
    return _reader(kind)(value)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _reader(kind: Any) -> Reader:
    """What reads values of a type. Raises `TypeError` for a type that is no plain data."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(kind, arguments)
    if origin is tuple:
        return _sequence(arguments[0]) if arguments[1:] == (...,) else _row(arguments, lambda *items: items)
    if origin is Mapping or origin is dict:
        return _mapping(arguments[1])
    if isinstance(kind, type):
        if issubclass(kind, Enum):
            return _enumeration(kind)
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            return _row([hints[name] for name in _names(kind)], kind)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            hints = typing.get_type_hints(kind)
            return _row([hints[name] for name in kind._fields], kind)
        if kind in (str, int, bool, float):
            return _leaf(kind)
    raise TypeError(f"{kind} is no plain data")


def _leaf(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise NotPlain(f"{kind.__name__} expected, not {type(value).__name__}")
        return value

    return read


def _enumeration(kind: type[Enum]) -> Reader:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Any:
        try:
            return members[value]
        except (KeyError, TypeError):
            raise NotPlain(f"{value!r} is no {kind.__name__}") from None

    return read


def _optional(kind: Any, arguments: tuple[Any, ...]) -> Reader:
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) != 1 or len(arguments) != 2:
        raise TypeError(f"{kind} is no plain data")
    inner = _reader(others[0])
    return lambda value: None if value is None else inner(value)


def _sequence(item: Any) -> Reader:
    inner = _reader(item)

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise NotPlain(f"a list expected, not {type(value).__name__}")
        return tuple(inner(element) for element in value)

    return read


def _row(kinds: typing.Sequence[Any], make: Callable[..., Any]) -> Reader:
    readers = [_reader(kind) for kind in kinds]

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            raise NotPlain(f"a list of {len(readers)} expected")
        return make(*[reader(element) for reader, element in zip(readers, value, strict=True)])

    return read


def _mapping(item: Any) -> Reader:
    inner = _reader(item)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise NotPlain(f"an object expected, not {type(value).__name__}")
        return {key: inner(element) for key, element in value.items()}

    return read
