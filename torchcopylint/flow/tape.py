"""The tape: what a function does, as a list of small events in execution order, and three brackets.

LibCST's tree is lowered to this once. Python has no `goto`, so three brackets are enough for control flow: `Branch`
(one of several arms), `Loop` and `Try`; `Break`, `Continue`, `Return` and `Raise` leave them. Every expression puts its
value into a register of its own, a small integer that is written once. Nothing on a tape refers to the syntax tree:
`site` is the ordinal of an entry in the program's table of sites, from which lines and columns are found at the end.

Names of comprehension variables carry a `#n` suffix, which keeps them apart from the function's own; names that
start with `%` are hidden and hold the value of a conditional expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from torchcopylint.base.tuples import replace_quickly

NO_REGISTER = -1
"""Stands where an event has no operand: `return` without a value, a missing bound of a slice."""


UNION = "|"
"""The name of an annotation that is a union, optional ones included."""


class Dotted(str):
    """The canonical dotted name of something imported, such as `torch.nn.functional.relu`."""

    __slots__ = ()


class Annotation(NamedTuple):
    """A type annotation as written: a dotted name and its arguments; unions have the name `|`."""

    name: str
    arguments: tuple[Annotation, ...] = ()


class Argument(NamedTuple):
    """One argument of a call: its register, its keyword or an empty string, and the stars before it (0, 1 or 2)."""

    register: int
    keyword: str = ""
    stars: int = 0


class Slice(NamedTuple):
    """A slice inside square brackets; a missing bound is `NO_REGISTER`."""

    lower: int
    upper: int
    step: int


Index: TypeAlias = "tuple[int | Slice, ...]"
"""What stands in square brackets, one entry per dimension; a register or a slice."""


class Load(NamedTuple):
    """`out` becomes the value of a name."""

    out: int
    name: str
    site: int


class Const(NamedTuple):
    """`out` becomes a literal."""

    out: int
    value: object
    site: int


class Import(NamedTuple):
    """`out` becomes something imported."""

    out: int
    dotted: Dotted
    site: int


class Attribute(NamedTuple):
    """`out` becomes `base.name`."""

    out: int
    base: int
    name: str
    site: int


class Item(NamedTuple):
    """`out` becomes `base[subscript]`."""

    out: int
    base: int
    subscript: Index
    site: int


class Call(NamedTuple):
    """`out` becomes `function(arguments)`."""

    out: int
    function: int
    arguments: tuple[Argument, ...]
    site: int


class Invoke(NamedTuple):
    """`out` becomes `base.name(arguments)`."""

    out: int
    base: int
    name: str
    arguments: tuple[Argument, ...]
    site: int


class Operate(NamedTuple):
    """`out` becomes the result of an arithmetic operator or a comparison over `operands` (one or two)."""

    out: int
    symbol: str
    operands: tuple[int, ...]
    site: int


class Logic(NamedTuple):
    """`out` becomes one of `operands` (`and`, `or`), or a truth value (`not`, `is`, `is not`, `in`, `not in`)."""

    out: int
    symbol: str
    operands: tuple[int, ...]
    site: int


class Make(NamedTuple):
    """`out` becomes a new container: `tuple`, `list`, `set` or `dict`.

    `keys` are registers for a `dict` (`NO_REGISTER` for `**`), else empty. `stars` says which items are unpacked.
    """

    out: int
    kind: str
    keys: tuple[int, ...]
    items: tuple[int, ...]
    stars: tuple[bool, ...]
    site: int


class Collect(NamedTuple):
    """A comprehension's turn adds `item` (under `key`, if it is a dict) to the container in register `container`."""

    container: int
    key: int
    item: int
    site: int


class Text(NamedTuple):
    """`out` becomes a formatted string that looked at `parts`."""

    out: int
    parts: tuple[int, ...]
    site: int


class Function(NamedTuple):
    """`out` becomes a function: the program's unit of that number. `defaults` pair a parameter with a register."""

    out: int
    unit: int
    defaults: tuple[tuple[str, int], ...]
    decorators: tuple[int, ...]
    site: int


class Class(NamedTuple):
    """`out` becomes a class: the program's class of that number. `bases` are registers."""

    out: int
    number: int
    bases: tuple[int, ...]
    decorators: tuple[int, ...]
    site: int


class Bind(NamedTuple):
    """A name is bound to a value. `annotation` is what the statement itself says of its type."""

    name: str
    value: int
    site: int
    annotation: Annotation | None = None


class StoreAttribute(NamedTuple):
    """`base.name = value`; `augmented` when it ends an augmented assignment."""

    base: int
    name: str
    value: int
    augmented: bool
    site: int


class StoreItem(NamedTuple):
    """`base[subscript] = value`; `augmented` when it ends an augmented assignment."""

    base: int
    subscript: Index
    value: int
    augmented: bool
    site: int


class Augment(NamedTuple):
    """`out` becomes `target op= value`, before it is stored back. `symbol` has the equals sign."""

    out: int
    symbol: str
    target: int
    value: int
    site: int


class Unpack(NamedTuple):
    """`out` becomes the element of `value` at `position`, or any of them (-1: from a starred target on).

    Each target's element is taken just before it is stored, so that what an earlier target's store did to it is seen.
    """

    out: int
    position: int
    value: int
    site: int


class Iterate(NamedTuple):
    """At the head of a turn: `out` becomes the next element of `iterable`."""

    out: int
    iterable: int
    site: int


class Enter(NamedTuple):
    """A `with` item is entered; `out` becomes what `as` binds."""

    out: int
    manager: int
    site: int


class Exit(NamedTuple):
    """A `with` item is left."""

    manager: int
    site: int


class Assume(NamedTuple):
    """From here on, the value in a register is known to be true or false."""

    register: int
    truth: bool
    site: int


class Test(NamedTuple):
    """A condition is looked at."""

    register: int
    site: int


class Discard(NamedTuple):
    """An expression statement: the value is dropped."""

    value: int
    site: int


class Delete(NamedTuple):
    """`del name`."""

    name: str
    site: int


class DeleteItem(NamedTuple):
    """`del base.name` or `del base[subscript]` (then `name` is empty)."""

    base: int
    name: str
    site: int
    subscript: Index = ()


class Yield(NamedTuple):
    """`out` becomes what is sent in; `value` goes out."""

    out: int
    value: int
    site: int


class Return(NamedTuple):
    """The function returns; `value` may be `NO_REGISTER`. `manager` is the outermost `with` item that it leaves."""

    value: int
    site: int
    manager: int = NO_REGISTER


class Raise(NamedTuple):
    """An exception is raised."""

    site: int


class Break(NamedTuple):
    """`break`."""

    site: int


class Continue(NamedTuple):
    """`continue`."""

    site: int


class StarImport(NamedTuple):
    """`from dotted import *`."""

    dotted: Dotted
    site: int


class Reveal(NamedTuple):
    """Somebody asks what is known here of a name or dotted path, or of a register; see `asking`."""

    name: str
    register: int
    site: int


class Branch(NamedTuple):
    """Exactly one of the arms runs."""

    arms: tuple[Tape, ...]
    site: int


class Loop(NamedTuple):
    """`test` and `body` run again and again; `orelse` runs when the loop ends by itself.

    `endless` loops end by `break` alone. For a `for` loop, `test` is empty and the body starts with `Iterate`.
    """

    test: Tape
    body: Tape
    orelse: Tape
    endless: bool
    site: int


class Try(NamedTuple):
    """`body` runs; if it raises, one of the `handlers` does, else `orelse`; `final` runs in every case."""

    body: Tape
    handlers: tuple[Tape, ...]
    orelse: Tape
    final: Tape
    site: int


Event: TypeAlias = (
    "Load | Const | Import | Attribute | Item | Call | Invoke | Operate | Logic | Make | Collect | Text | Function"
    " | Class | Bind | StoreAttribute | StoreItem | Augment | Unpack | Iterate | Enter | Exit | Assume | Test | Discard"
    " | Delete | DeleteItem | Yield | Return | Raise | Break | Continue | StarImport | Reveal | Branch | Loop | Try"
)
Tape: TypeAlias = "tuple[Event, ...]"


class Parameter(NamedTuple):
    """A parameter: `kind` is `plain`, `star` (`*args`) or `stars` (`**kwargs`); `by_name` if it is passed by its name
    alone. What a function takes out of such a parameter is one itself (see `lower.gathering`): part `of` that, and
    passed by the name `key` or by its place."""

    name: str
    kind: str
    annotation: Annotation | None
    has_default: bool
    by_name: bool = False
    key: str = ""
    of: str = ""


HANDED_TO = "-> "
FROM_NUMPY = "from_numpy"
"""The last name of a function that takes nothing but an array."""
OF_TENSOR = "torch"
"""A function of torch that takes a tensor there, and nothing else, or a size that is asked for by its dimension."""
OF_FIELD = "self."
"""Before the name of a field of `self` that is called: what it takes is known where it is known what it is."""
ASKED = "asked"
"""`isinstance` and the like, and functions of NumPy, which take many things: what is a tensor may not be one there."""
WITH_MORE = "more"
"""A method of tensors that takes nothing is given something there: it is another one of that name."""
OPERAND = "operand"
"""Arithmetic: networks, storages and most of what holds tensors is no operand of it."""
KEEPDIM = "keepdim"
"""A keyword that methods of tensors alone have: NumPy's is `keepdims`."""


class Unit(NamedTuple):
    """One body that runs as a whole: a module, a function, a lambda or a class body.

    `parent` is the number of the enclosing unit, -1 for the module; `owner` the number of the class that a method
    belongs to, else -1. `bound` are the names that belong to this unit's own scope. `definitions` gives, for each
    register, the event that wrote it. `uses` gives, for each binding (a parameter `name`, or `name@site` of a `Bind`),
    the attributes and methods (`name()`) that are used on it before the next binding in source order, and what takes it
    as its first argument, or is passed to a method of it, and tells of one kind only (`HANDED_TO`). What `x += 1` binds
    counts as what `x` was before.
    """

    number: int
    name: str
    qualname: str
    kind: str
    parent: int
    owner: int
    parameters: tuple[Parameter, ...]
    returns: Annotation | None
    bound: frozenset[str]
    tape: Tape
    definitions: tuple[Event | None, ...]
    uses: dict[str, frozenset[str]]
    is_generator: bool
    site: int

    @property
    def first(self) -> str:
        """The name of the first parameter, by which a method knows its object; an empty text if there is none."""
        return self.parameters[0].name if self.parameters else ""


class ClassInfo(NamedTuple):
    """One class: its name, its bases as written, its body's unit, its methods' units by name."""

    number: int
    name: str
    qualname: str
    bases: tuple[Annotation, ...]
    body: int
    methods: dict[str, int]
    fields: dict[str, Annotation]
    site: int


class Program(NamedTuple):
    """One file, lowered. Unit 0 is the module.

    `statements` gives, for each site, the site of the statement around it; `scopes` the unit it stands in. `asked` are
    the `Reveal` events, if there are any.
    """

    units: tuple[Unit, ...]
    classes: tuple[ClassInfo, ...]
    statements: tuple[int, ...]
    scopes: tuple[int, ...]
    asked: tuple[Reveal, ...] = ()


def events(tape: Tape) -> Iterator[Event]:
    """Every event of a tape, brackets included, in source order."""
    pending = [iter(tape)]
    brackets = _INNER
    while pending:
        for event in pending[-1]:
            yield event
            inner = brackets.get(event.__class__)
            if inner is not None:
                pending.append(chain.from_iterable(inner(event)))
                break
        else:
            pending.pop()


def inner_tapes(event: Event) -> tuple[Tape, ...]:
    """The tapes inside a bracket, in source order; empty for any other event."""
    inner = _INNER.get(event.__class__)
    return inner(event) if inner is not None else ()


_INNER: dict[type[Any], Callable[[Any], tuple[Tape, ...]]] = {
    Branch: lambda event: event.arms,
    Loop: lambda event: (event.test, event.body, event.orelse),
    Try: lambda event: (event.body, *event.handlers, event.orelse, event.final),
}


def changed_inside(event: Event, change: Callable[[Tape], Tape]) -> dict[str, Any]:
    """The fields of a bracket that change when each tape inside becomes another one; none of any other event."""
    if event.__class__ is Branch:
        return {"arms": tuple([change(arm) for arm in event.arms])}
    if event.__class__ is Loop:
        return {"test": change(event.test), "body": change(event.body), "orelse": change(event.orelse)}
    if event.__class__ is Try:
        body, handlers = change(event.body), tuple([change(handler) for handler in event.handlers])
        return {"body": body, "handlers": handlers, "orelse": change(event.orelse), "final": change(event.final)}
    return {}


def operands(event: Event) -> tuple[int, ...]:
    """The registers that an event uses."""
    used = _OPERANDS.get(type(event))
    return used(event) if used is not None else ()


_OPERANDS: dict[type[Any], Callable[[Any], tuple[int, ...]]] = {
    **dict.fromkeys((Attribute, Item, DeleteItem), lambda event: (event.base,)),
    Call: lambda event: (event.function, *[argument.register for argument in event.arguments]),
    Invoke: lambda event: (event.base, *[argument.register for argument in event.arguments]),
    **dict.fromkeys((Operate, Logic), lambda event: event.operands),
    Make: lambda event: (*event.keys, *event.items),
    Collect: lambda event: (event.key, event.item),
    Text: lambda event: event.parts,
    **dict.fromkeys((Bind, Discard, Return, Yield, Unpack), lambda event: (event.value,)),
    **dict.fromkeys((StoreAttribute, StoreItem), lambda event: (event.base, event.value)),
    Augment: lambda event: (event.target, event.value),
    Iterate: lambda event: (event.iterable,),
    **dict.fromkeys((Enter, Exit), lambda event: (event.manager,)),
    **dict.fromkeys((Test, Assume), lambda event: (event.register,)),
}


for _class in {*_OPERANDS, *_INNER, Load, Const, Import, Argument}:
    # Where a helper stands in the place of its call, every event of it is another one.
    replace_quickly(_class)
