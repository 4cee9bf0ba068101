"""Parts of storages: whether two of them overlap."""

from __future__ import annotations

from typing import TypeGuard

from torchcopylint.flow.model import WHOLE, Bound, Fact, Part, Region, older

_COMPONENT = "component"


def overlap(a: Region, b: Region) -> Fact:
    """Whether two parts of one storage overlap: `NO`, `YES`, or `UNKNOWN` where indices cannot be compared.

    A part covers everything below it, so the shorter of two equal beginnings contains the other.
    """
    if not a or not b:
        return Fact.YES
    answer = Fact.YES
    if _COMPONENT in (a[0].kind, b[0].kind):
        if _disjoint_components(a[0], b[0]):
            return Fact.NO
        a, b = _of_either_component(a), _of_either_component(b)
    for one, two in zip(a, b, strict=False):
        if "?" in (one.kind, two.kind):
            behind = _behind_dots(one, two)
            if behind is Fact.NO:
                return Fact.NO
            answer = min(answer, behind)
            continue
        if one.kind == two.kind == "each" and _other_turns(one.value, two.value):
            answer = Fact.UNKNOWN
            continue
        if (one == two and Bound.UNTOLD not in one) or one.kind in WHOLE or two.kind in WHOLE:
            continue
        if _disjoint(one, two) or _disjoint(two, one):
            return Fact.NO
        if not (_surely_meet(one, two) or _lies_in(one, two) or _lies_in(two, one)):
            answer = Fact.UNKNOWN
    return answer


def _disjoint_components(one: Part, two: Part) -> bool:
    """Whether one part is made of the real parts of complex numbers, and the other of the imaginary ones."""
    return one.kind == two.kind == _COMPONENT and one.value != two.value


def _of_either_component(region: Region) -> Region:
    """The same elements, real and imaginary parts alike, so that places behind and without a component compare."""
    return region[1:] if region and region[0].kind == _COMPONENT else region


_KEEPING = frozenset({"slice", "stride", "all"})
_INDICES = frozenset({"int", "slice", "stride", "name", "all"})


def within(region: Region, part: Region) -> Region:
    """A part of a part: `x[a:b][:, i]` is `x[a:b, i]`, and `x[:, 0][i]` is `x[i, 0]`, since a slice leaves a dimension
    behind. What is a part of a slice itself goes behind it, as does what is of other kinds."""
    if not region or not part:
        return region or part
    steps = len(region) - next((i for i, one in enumerate(reversed(region)) if one.kind == "field"), len(region))
    found, rest = list(region), list(part)
    for place in range(steps, len(region)):
        if not rest:
            break
        if region[place].kind not in _KEEPING:
            continue
        if rest[0].kind not in _INDICES or (rest[0].kind != "all" and region[place].kind != "all"):
            return (*region, *part)
        if rest[0].kind != "all":
            found[place] = rest[0]
        del rest[0]
    return (*found, *rest)


def covers(a: Region, b: Region) -> bool:
    """Whether one part of a storage surely holds all of another, though it is not the whole storage.

    What is named by the same expression is the same part, as in `overlap`.
    """
    if all(part.kind in WHOLE for part in a) or any(part.kind not in WHOLE for part in a[len(b) :]):
        return False
    return all(_holds(one, two) for one, two in zip(a, b, strict=False))


def _holds(one: Part, two: Part) -> bool:
    if one.kind == "all" or (one == two and Bound.UNTOLD not in one and one.kind in ("int", "name", "slice", "stride")):
        return True
    if two.kind != "slice" or one.kind not in ("int", "slice"):
        return False
    lower, upper = (one.value, one.upper) if one.kind == "slice" else (one.value, _next(one.value))
    below = two.value or 0
    from_there = not lower or (_is_count(lower) and _is_count(below) and lower <= below)
    return from_there and (upper is None or (_is_count(upper) and _is_count(two.upper) and two.upper <= upper))


def _next(value: object) -> object:
    return value + 1 if _is_count(value) else Bound.UNTOLD


def _behind_dots(one: Part, two: Part) -> Fact:
    """Whether `x[..., :2]` and `x[..., 2:]` overlap: they are compared from the end, where both have as many parts."""
    mine, other = one.value, two.value
    if not isinstance(mine, tuple) or not isinstance(other, tuple) or len(mine) != len(other):
        return Fact.UNKNOWN
    # A new dimension among the parts shifts those before it.
    if any(part.kind == "?" for part in (*mine, *other)):
        return Fact.UNKNOWN
    return overlap(mine, other)


def _other_turns(one: object, two: object) -> bool:
    """Whether two parts that a loop visits one by one were visited on different turns, for all one knows."""
    if not isinstance(one, int) or not isinstance(two, int):
        return False
    return older(one) == older(two) and (one != two or one == older(one))


def _disjoint(one: Part, two: Part) -> bool:
    if one.kind == two.kind == "field":
        return True
    if one.kind == two.kind == "int":
        # Counted from the same end; `x[0]` and `x[-1]` may be one.
        return _is_count(one.value) == _is_count(two.value)
    if one.kind == two.kind == "stride":
        return _interleave(one, two)
    if one.kind == two.kind == "slice":
        upper, lower = one.upper, two.value
        if upper is None or lower is None or upper is Bound.UNTOLD:
            return False
        return upper == lower or (_is_count(upper) and _is_count(lower) and upper <= lower)
    if one.kind == "int" and two.kind == "slice" and _is_count(one.value):
        below = _is_count(two.value) and one.value < two.value
        above = _is_count(two.upper) and one.value >= two.upper
        return below or above
    return False


def _interleave(one: Part, two: Part) -> bool:
    """Whether two strided parts take turns: `x[::2]` and `x[1::2]`."""
    first, second = (part.value[0] or 0 if isinstance(part.value, tuple) else None for part in (one, two))
    step = one.upper
    if step != two.upper or not _is_count(step) or not step or not _is_count(first) or not _is_count(second):
        return False
    return (first - second) % step != 0


def _surely_meet(one: Part, two: Part) -> bool:
    slices = one.kind == two.kind == "slice"
    known = one.value is not Bound.UNTOLD, one.upper is not Bound.UNTOLD
    if slices and all(_is_count(bound) for bound in (one.value or 0, one.upper, two.value or 0, two.upper)):
        # `x[0:2]` and `x[1:3]`
        return max(_count(one.value), _count(two.value)) < min(_count(one.upper), _count(two.upper))
    shifted = slices and {_but_one(one), _but_one(two)} == {"first", "last"}
    return shifted or (slices and ((known[0] and one.value == two.value) or (known[1] and one.upper == two.upper)))


def _but_one(part: Part) -> str:
    """Which end a slice leaves out: `ids[:-1]` and `ids[1:]` have all but two elements in common."""
    if _is_count(part.value) and part.value == 1 and part.upper is None:
        return "first"
    return "last" if not part.value and part.upper == -1 else ""


def _count(value: object) -> int:
    return value if _is_count(value) else 0


def _lies_in(one: Part, two: Part) -> bool:
    """Whether an index is one of those that a slice goes over."""
    if one.kind != "int" or two.kind != "slice" or not _is_count(one.value):
        return False
    lower, upper = two.value or 0, two.upper
    return _is_count(lower) and lower <= one.value and (upper is None or (_is_count(upper) and one.value < upper))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
