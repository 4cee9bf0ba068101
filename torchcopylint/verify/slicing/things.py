"""What the slicer knows of a thing that it has to make: votes for a kind, and its parts, unified as uses show them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torchcopylint.verify.slicing import tables

PROVEN, USED, WEAK = 100, 10, 1
"""Weights of a vote: an annotation or a constructor, a use that only this kind has, a use that fits it."""


@dataclass(eq=False, slots=True)
class Thing:
    """Something that a name, a field or an expression holds.

    `votes` weigh kinds; `attributes`, `items` (by constant key), `element` and `result` (of a call) are its parts.
    `near` are things that are probably of the same kind. Of tensors: `dimensions`, at least `dimensions_least`, `last`
    and `second` (sizes: numbers or things), `dtype`. `constant` is its value if it is a constant that is known,
    `formula` an arithmetic expression over things. `made` is the dotted class that the code made it of, with
    `arguments`. `graph`: it was computed from parameters of a module.
    `key_of` is what a loop over it gives this thing. `methods` are the attributes that were called. `tested`: it is
    a condition by itself. `least` is the least number that it can be, `options` are texts that
    it is compared with. `missing`: some of its numbers are NaN. `whole` is what it is a slice of, `function`
    the definition inside of another function that it is. `longest`: it is asked for so many items. `ways`: it is one of
    these. `keys` are the texts under which a dict that is written out has something.
    """

    name: str = ""
    votes: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, Thing] = field(default_factory=dict)
    items: dict[object, Thing] = field(default_factory=dict)
    element: Thing | None = None
    result: Thing | None = None
    near: list[Thing] = field(default_factory=list)
    dimensions: int | None = None
    dimensions_least: int = 0
    last: Thing | int | None = None
    second: Thing | int | None = None
    dtype: str = ""
    constant: object = None
    formula: tuple[str, Thing, Thing] | None = None
    made: str = ""
    arguments: tuple[Thing, ...] = ()
    dotted: str = ""
    arity: int = 0
    graph: bool = False
    key_of: Thing | None = None
    methods: set[str] = field(default_factory=set)
    tested: bool = False
    least: int = 0
    options: list[str] = field(default_factory=list)
    missing: bool = False
    whole: Thing | None = None
    function: ast.FunctionDef | None = None
    longest: int = 0
    ways: tuple[Thing, ...] = ()
    keys: tuple[str, ...] = ()
    same: Thing | None = None

    def vote(self, kind: str, weight: int) -> None:
        """Count evidence for a kind."""
        it = find(self)
        it.votes[kind] = it.votes.get(kind, 0) + weight

    def attribute(self, name: str) -> Thing:
        """The thing in an attribute."""
        it = find(self)
        if name not in it.attributes:
            it.attributes[name] = Thing(name)
        return find(it.attributes[name])

    def item(self, key: object) -> Thing:
        """The thing under a constant key."""
        it = find(self)
        if key not in it.items:
            it.items[key] = Thing(str(key) if isinstance(key, str) else it.name)
        return find(it.items[key])

    def each(self) -> Thing:
        """What iterating over it gives."""
        it = find(self)
        if it.element is None:
            it.element = Thing(it.name[:-1] if it.name.endswith("s") else "")
        return find(it.element)

    def called(self) -> Thing:
        """What calling it gives."""
        it = find(self)
        if it.result is None:
            it.result = Thing()
        return find(it.result)


def find(thing: Thing) -> Thing:
    """The representative of a thing that was unified with others."""
    while thing.same is not None:
        if thing.same.same is not None:
            thing.same = thing.same.same
        thing = thing.same
    return thing


def looked_up(whole: Thing, key: Thing) -> None:
    """What is looked up in a dict that is written out is one of its keys."""
    if whole.keys and key.constant is None:
        key.vote("str", USED)
        find(key).options += whole.keys


def unify(first: Thing, second: Thing) -> Thing:
    """Two things are one: what is known of each is known of both."""
    pending = [(first, second)]
    while pending:
        a, b = (find(thing) for thing in pending.pop())
        if a is b:
            continue
        if _are_of_two_classes(a, b):
            # What holds now the one and now the other makes them no one object.
            a.near.append(b)
            continue
        b.same = a
        a.name = a.name or b.name
        for kind, weight in b.votes.items():
            a.votes[kind] = a.votes.get(kind, 0) + weight
        pending += [(part, b.attributes[key]) for key, part in a.attributes.items() if key in b.attributes]
        pending += [(part, b.items[key]) for key, part in a.items.items() if key in b.items]
        a.attributes = {**b.attributes, **a.attributes}
        a.items = {**b.items, **a.items}
        for slot in ("element", "result"):
            one, two = getattr(a, slot), getattr(b, slot)
            if one is not None and two is not None:
                pending.append((one, two))
            setattr(a, slot, one or two)
        a.near += b.near
        for slot in ("dimensions", "last", "second", "constant", "formula"):
            if getattr(a, slot) is None:
                setattr(a, slot, getattr(b, slot))
        a.dimensions_least = max(a.dimensions_least, b.dimensions_least)
        a.arity = max(a.arity, b.arity)
        a.dtype = a.dtype or b.dtype
        a.graph = a.graph or b.graph
        a.tested = a.tested or b.tested
        a.least = max(a.least, b.least)
        a.longest = max(a.longest, b.longest)
        a.dotted = a.dotted or b.dotted
        a.key_of = a.key_of or b.key_of
        a.methods |= b.methods
        a.options += b.options
        a.missing = a.missing or b.missing
        a.whole = a.whole or b.whole
        a.function = a.function or b.function
        a.ways = a.ways or b.ways
        a.keys = a.keys or b.keys
        if not a.made:
            a.made, a.arguments = b.made, b.arguments
    return find(first)


def _are_of_two_classes(one: Thing, other: Thing) -> bool:
    """Whether two things are surely objects of classes of the file, and not of the same."""
    classes = [
        {kind for kind, weight in thing.votes.items() if kind.startswith("instance ") and weight >= PROVEN}
        for thing in (one, other)
    ]
    return all(classes) and not classes[0] & classes[1]


def kind_of(thing: Thing) -> tuple[str, int]:
    """The likeliest kind of a thing and the weight that speaks for it; 0 for one that only its name suggests.

    ("", 0) if nothing does.
    """
    seen: set[int] = set()
    layer = [find(thing)]
    weak = ("", 0)
    for _ in range(4):
        votes: dict[str, int] = {}
        following: list[Thing] = []
        for node in layer:
            if id(node) in seen:
                continue
            seen.add(id(node))
            for kind, weight in node.votes.items():
                votes[kind] = votes.get(kind, 0) + weight
            following += [find(other) for other in node.near]
        if votes:
            best = max(sorted(votes), key=lambda kind: votes[kind])
            if best in ("tensor", "array") and votes[best] < PROVEN and _has_settings(find(thing)):
                best, votes = "object", {"object": votes[best]}
            # What fits several kinds is asked of what is near as well.
            if not weak[0] and (votes[best] > 3 * WEAK or set(votes) != {"tensor", "module"}):
                return best, votes[best]
            if weak[0] and best == "module" and votes[best] >= USED:
                return best, votes[best]
            weak = weak if weak[0] else (best, votes[best])
        layer = following
    return weak if weak[0] else (hinted(thing), 0)


def _has_settings(thing: Thing) -> bool:
    """Whether a thing has attributes that no tensor and no array has, not called, and none that only these have.

    Settings have names such as `device` and `size` as well.
    """
    fields = thing.attributes.keys() - thing.methods
    if fields & tables.FIELDS or thing.methods & (tables.TENSOR | tables.ARRAY):
        return False
    return bool(fields - tables.TENSOR - tables.ARRAY - tables.EITHER)


def miss(thing: Thing) -> None:
    """Somebody asks whether numbers are NaN: of a thing, and of what it was computed from, some are."""
    layer = [find(thing)]
    for _ in range(4):
        for node in layer:
            node.missing = True
        layer = [found for node in layer for found in map(find, node.near) if not found.missing]


def scalar(thing: Thing, depth: int = 0) -> None:
    """Somebody asks for the gradient of this alone: it is one number, and so is all that it is a sum or product of."""
    thing = find(thing)
    thing.dimensions = 0
    parts = (*(thing.formula[1:] if thing.formula is not None else ()), *thing.ways)
    for part in parts if depth < 8 else ():
        if find(part).dimensions is None:
            scalar(part, depth + 1)


def has_graph(thing: Thing) -> bool:
    """Whether a thing was computed from parameters of a module, as far as its making was seen."""
    seen: set[int] = set()
    layer = [find(thing)]
    for _ in range(6):
        if any(node.graph for node in layer):
            return True
        seen |= {id(node) for node in layer}
        layer = [node for other in layer for node in map(find, other.near) if id(node) not in seen]
    return False


def hinted(thing: Thing) -> str:
    """The kind that the name of a thing suggests, or an empty text."""
    name = find(thing).name
    if name.startswith("lr_"):
        return "number"
    return tables.HINTS.get(name) or tables.HINTS.get(name.lower().rsplit("_", 1)[-1], "")


def is_taken_apart(thing: Thing) -> bool:
    """Whether what a thing becomes is asked for its elements."""
    return any(other.element is not None or other.items for other in map(find, find(thing).near))


def is_bare(thing: Thing) -> bool:
    """Whether nothing is known of a thing but what it is near."""
    return not (thing.votes or thing.attributes or thing.items or thing.element or thing.result)
