"""Constants that stand for code of this file: functions, classes, `super()`."""

from __future__ import annotations

from typing import NamedTuple


class FunctionReference(NamedTuple):
    """A function of this file, by the number of its unit."""

    unit: int


class ClassReference(NamedTuple):
    """A class of this file, by its number."""

    number: int


class AppliedReference(NamedTuple):
    """What is to be called of an autograd function of this file, by the number of its class: `exp = Exp.apply`."""

    number: int


class Super(NamedTuple):
    """What `super()` gives in a method of a class."""

    number: int


class OneOf(NamedTuple):
    """One of several functions or classes, nobody knows which: what a table has under a key that is not known."""

    options: tuple[object, ...]
