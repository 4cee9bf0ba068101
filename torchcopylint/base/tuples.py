"""Named tuples that are changed often."""

from __future__ import annotations

from typing import Any


def replace_quickly(cls: type[Any]) -> None:
    """Give a class of tuples a `_replace` that costs a third of what the one does that it has from `NamedTuple`."""
    places = {name: place for place, name in enumerate(cls._fields)}
    make = tuple.__new__

    def _replace(self: tuple[object, ...], /, **changes: object) -> tuple[object, ...]:
        values = list(self)
        for name, value in changes.items():
            values[places[name]] = value
        return make(cls, values)

    cls._replace = _replace
