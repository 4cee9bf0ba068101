"""What is known of an object wherever it goes: into a field, to a parameter, to another file."""

from __future__ import annotations

from collections.abc import Iterable

from torchcopylint.flow.model import (
    ARCHIVE,
    EXPANDED,
    HANDED,
    INFERENCE,
    OUTPUT,
    PART,
    PINNED,
    SURELY_PASSED,
    Object,
    Sure,
    join_objects,
)
from torchcopylint.flow.values import devices

_PASSED_ON = frozenset({ARCHIVE, INFERENCE, EXPANDED, HANDED, OUTPUT, PINNED})


def unplaced(obj: Object) -> Object:
    """What is known of an object, apart from where it is."""
    return obj._replace(shares=(), saved=frozenset(), owner="")


def as_passed(obj: Object) -> Object:
    """What a parameter may be taken to be when such an object is passed for it."""
    flags = frozenset({SURELY_PASSED}) if obj.sure is Sure.PROVEN else frozenset[str]()
    # One of several things that a network returns may be no tensor.
    kept = _PASSED_ON - {OUTPUT} if PART in obj.flags else _PASSED_ON
    return Object(
        obj.kind,
        min(obj.sure, Sure.LIKELY),
        leaf=obj.leaf,
        requires_grad=obj.requires_grad,
        type=obj.type,
        dtype=obj.dtype,
        flags=flags | obj.flags & kept,
        config=devices.passed_on(obj),
    )


def joined(objects: Iterable[Object]) -> Object | None:
    """What all of some objects are taken to be where they are passed; `None` if there is none."""
    found: Object | None = None
    for obj in map(as_passed, objects):
        found = obj if found is None else join_objects(found, obj)
    return found
