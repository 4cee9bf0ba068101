"""Lists and dictionaries that were copied, hold the same tensors still, and have them edited through one of the two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EntriesEdited
from torchcopylint.flow.model import CONTAINERS, Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_COPYING = frozenset({"builtins.list", "builtins.dict", "builtins.tuple", "copy.copy"})
_OF_TENSORS = ("torch.", "numpy.", "builtins.sum")
_SIZES = frozenset({"size", "dim", "numel", "type", "element_size", "storage_offset", "stride", "is_contiguous"})
_REPLACING = frozenset({"append", "extend", "insert", "pop", "clear", "update", "setdefault", "popitem", "remove"})
_FORMS = frozenset({"method", "augmented", "item"})
_WHOLE = (t.Slice(-1, -1, -1),)
MAX_STEPS = 8


class _Copied(NamedTuple):
    """`name` was bound at `site` to a new container of what `source` holds: of it, or of what that copies, `of`."""

    name: str
    source: str
    site: int
    of: str = ""


def found(m: Machine) -> Iterator[EntriesEdited]:
    """The writes of what a copied container holds, where what the other one holds is computed with afterwards.

    Either of the two may be written. Whoever puts other tensors into one of them has made it a container of its own,
    and whoever does not look at both again has meant the tensors.
    """
    copies = list(_copies(m))
    if not copies:
        return
    pairs = [(one, other) for one in copies for other in copies if one.source == other.source and one.site < other.site]
    copies += [_Copied(other.name, one.name, other.site, one.source) for one, other in pairs]
    told = set()
    for event in _writing(m):
        write = m.writes[event.site]
        name = _container(m, event.target if isinstance(event, t.Augment) else event.base)
        for copied in copies if name else ():
            if name not in (copied.name, copied.source) or event.site < copied.site or event.site in told:
                continue
            other = copied.source if name == copied.name else copied.name
            read = _read_later(m, other, event)
            if write.reads_old and name == copied.name and _is_copied_each_turn(m, copied):
                read = copied.site
            if read >= 0 and _is_seen_again(m, name, event, read):
                told.add(event.site)
                made = (copied.of or copied.source, copied.name, copied.site)
                yield EntriesEdited(event.site, name, other, write.op, *made, read, write.sure)


def _copies(m: Machine) -> Iterator[_Copied]:
    for name, bound in m.index.binds.items():
        source = _source(m, bound[0].value) if len(bound) == 1 and not name.startswith("%") else ""
        if not source or source == name or any(_gets_others(m, one, bound[0].site) for one in (name, source)):
            continue
        if len(m.index.binds.get(source, ())) < 2:
            yield _Copied(name, source, bound[0].site)


def _is_copied_each_turn(m: Machine, copied: _Copied) -> bool:
    """Whether a loop copies anew what it does not bind itself: each turn was to begin with what was there."""
    inside = uses.loops_around(m, copied.site)
    bound = [use.loops for use in uses.of_name(m, copied.source) if not use.loads]
    return bool(inside) and all(loops[: len(inside)] != inside for loops in bound)


def _source(m: Machine, register: int) -> str:
    """The name of the container that a value is a copy of: all that it holds, in a new one."""
    made = m.unit.definitions[register] if register >= 0 else None
    copied = -1
    if (
        (made.__class__ is t.Call or made.__class__ is t.Invoke)
        and len(made.arguments) == 1
        and m.dotted_of(made) in _COPYING
    ):
        copied = made.arguments[0].register
    elif (made.__class__ is t.Invoke and made.name == "copy" and not made.arguments) or (
        made.__class__ is t.Item and made.subscript == _WHOLE
    ):
        copied = made.base
    elif made.__class__ is t.Make and made.kind in ("list", "dict"):
        copied = made.items[0] if made.stars == (True,) else -1 if made.items else _gone_through(m, made)
    load = m.unit.definitions[copied] if copied >= 0 else None
    if load.__class__ is not t.Load:
        return ""
    kinds = {m.state.object(ref).kind for ref in m.value(copied).refs}
    # Arrays have a `copy`, and tensors take `[:]`.
    known = isinstance(made, t.Item) or (isinstance(made, t.Invoke) and not made.arguments)
    allowed = {*CONTAINERS} if known else {*CONTAINERS, Kind.UNKNOWN}
    return load.name if kinds <= allowed and (kinds or not known) else ""


def _gone_through(m: Machine, made: t.Make) -> int:
    """What a comprehension takes all elements of, as they are: `[x for x in xs]`, `{k: v for k, v in xs.items()}`."""
    collected = [event for event in m.index.of(t.Collect) if event.container == made.out]
    # `[x for x in xs if x.dim()]` picks some, to do something to them.
    if len(collected) != 1 or m.index.assumed.get(collected[0].site) != m.index.assumed.get(made.site):
        return -1
    item = m.unit.definitions[collected[0].item]
    bound = uses.bindings_before(m, item) if isinstance(item, t.Load) else []
    if len(bound) != 1:
        return -1
    element = m.unit.definitions[bound[0]]
    if isinstance(element, t.Unpack) and element.position == 1:
        element = m.unit.definitions[element.value]
    iterable = m.unit.definitions[element.iterable] if isinstance(element, t.Iterate) else None
    if isinstance(iterable, t.Invoke) and made.kind == "dict" and iterable.name == "items":
        return iterable.base
    return iterable.out if isinstance(iterable, t.Load) and made.kind == "list" else -1


def _gets_others(m: Machine, name: str, since: int) -> bool:
    """Whether other things are put into a container after the copy was made."""
    loads = {use.register for use in uses.of_name(m, name) if use.loads}
    stored = [event.site for event in m.index.of(t.StoreItem) if event.base in loads and not event.augmented]
    stored += [event.site for event in m.index.of(t.Invoke) if event.base in loads and event.name in _REPLACING]
    return any(site > since for site in stored)


def _writing(m: Machine) -> Iterator[t.Augment | t.Invoke | t.StoreItem]:
    if not any(write.form in _FORMS for write in m.writes.values()):
        return
    events: list[t.Augment | t.Invoke | t.StoreItem] = [*m.index.of(t.Augment), *m.index.of(t.Invoke)]
    for event in [*events, *m.index.of(t.StoreItem)]:
        write: Write | None = m.writes.get(event.site)
        if write is not None and write.form in _FORMS and write.kind in (Kind.TENSOR, Kind.ARRAY):
            yield event


def _container(m: Machine, register: int) -> str:
    """The name of the container that a value is an element of, or a part of one: by an index, or by a loop."""
    through = False
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Load):
            if through:
                return made.name
            bound = uses.bindings_before(m, made)
            if len(bound) != 1:
                return ""
            register = bound[0]
        elif isinstance(made, t.Unpack):
            inner = m.unit.definitions[made.value]
            iterable = m.unit.definitions[inner.iterable] if isinstance(inner, t.Iterate) else None
            register = _of_pair(m, iterable, made.position)
            through = True
        elif isinstance(made, t.Iterate):
            iterable = m.unit.definitions[made.iterable]
            values = isinstance(iterable, t.Invoke) and iterable.name == "values"
            register, through = iterable.base if values and isinstance(iterable, t.Invoke) else made.iterable, True
        elif isinstance(made, t.Item):
            register, through = made.base, True
        else:
            return ""
    return ""


def _of_pair(m: Machine, iterable: t.Event | None, position: int) -> int:
    """What the element at a position of each turn comes from: of `enumerate`, `zip`, and what dictionaries hold."""
    if isinstance(iterable, t.Invoke):
        return iterable.base if iterable.name == "items" and position == 1 else -1
    arguments = iterable.arguments if isinstance(iterable, t.Call) else ()
    if not isinstance(iterable, t.Call) or not arguments or any(one.stars for one in arguments):
        return -1
    called = m.dotted_of(iterable)
    if called == "builtins.enumerate" and position == 1:
        return arguments[0].register
    if called == "builtins.zip" and 0 <= position < len(arguments):
        return arguments[position].register
    return -1


def _read_later(m: Machine, name: str, event: t.Event) -> int:
    """Where something is computed of what a container holds, behind a write or in the loop that it stands in; or -1."""
    for site, registers in _computing(m):
        if site == event.site or not _comes_upon(m, event.site, site):
            continue
        if any(_container(m, register) == name or _is_whole(m, register, name) for register in registers):
            return site
    return -1


def _computing(m: Machine) -> Iterator[tuple[int, tuple[int, ...]]]:
    """What operators and calls compute with, and where; a method that is asked for a size computes nothing."""
    for operation in m.index.of(t.Operate):
        yield operation.site, operation.operands
    for call in m.index.of(t.Call):
        if m.dotted_of(call).startswith(_OF_TENSORS):
            yield call.site, tuple(argument.register for argument in call.arguments)
    for invoke in m.index.of(t.Invoke):
        if invoke.name not in _REPLACING and not invoke.name.endswith("_"):
            computes = table.tensor_method(invoke.name) is not None and invoke.name not in _SIZES
            given = tuple(argument.register for argument in invoke.arguments)
            yield invoke.site, (invoke.base, *given) if computes else given


def _is_whole(m: Machine, register: int, name: str) -> bool:
    """Whether it is the container itself: `torch.stack(xs)`."""
    load = m.unit.definitions[register] if register >= 0 else None
    return isinstance(load, t.Load) and load.name == name


def _comes_upon(m: Machine, written: int, read: int) -> bool:
    """Whether a read comes after a write, or in another turn of a loop that both stand in."""
    inside = uses.loops_around(m, written)
    return read > written or bool(inside and inside[:1] == uses.loops_around(m, read)[:1])


def _is_seen_again(m: Machine, name: str, event: t.Event, read: int) -> bool:
    """Whether what was written is looked at as well, by its own container, or what is read is of use to the writing."""
    inside = uses.loops_around(m, event.site)
    if inside and inside[:1] == uses.loops_around(m, read)[:1]:
        return True
    return any(use.loads and use.site > event.site for use in uses.of_name(m, name))
