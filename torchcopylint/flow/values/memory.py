"""Objects and storages: making them, aliasing them, binding them to names.

Rules of the engine (numbered as in docs/flow.md):

1. A fresh object owns a storage of its own.
2. An alias sits on every storage of what it was taken from, in the way that its operation says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataAccess, Discarded
from torchcopylint.flow.model import (
    ARCHIVE,
    BUFFERS,
    CONTAINERS,
    EITHER,
    FIELD,
    FOREIGN,
    INFERENCE,
    LISTED,
    NO_GRAD_VIEW,
    NO_MARKS,
    OTHERWISE,
    PARTS,
    TENSORS,
    Fact,
    How,
    Key,
    Kind,
    Object,
    Region,
    Share,
    Sure,
    Value,
    bounded,
    join_objects,
    whole_cell,
    whole_share,
    whole_value,
)
from torchcopylint.flow.regions import within
from torchcopylint.flow.values import kinds

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

VIEWS = frozenset({How.VIEW, How.INDEX, How.ROW, How.DETACH})


IF_TENSOR = "if it is a tensor"
"""The condition under which a method that others have as well returns a view."""


def fresh(m: Machine, site: int, obj: Object, tag: str = "") -> Value:
    """A new object with a storage of its own (rule 1)."""
    ref = m.made_at(site, tag)
    own = whole_share((ref, How.OWN, site, ref, (), "", True))
    m.state.make(ref, obj._replace(shares=(own,), site=site))
    return whole_value(((ref,), obj.kind, None, NO_MARKS, None, False))


def unknown(m: Machine, site: int, text: str = "", tag: str = "") -> Value:
    """A new object of which nothing is known."""
    return fresh(m, site, Object(text=text), tag)


def beside(m: Machine, ref: int, site: int, obj: Object) -> Value:
    """A new object in the place of another one, on the very memory of that: what else is known of it holds for it
    alone."""
    made = m.made_at(site, "beside")
    m.state.retire(made)
    m.state.make(made, obj._replace(shares=m.state.object(ref).shares, site=site))
    return Value((made,), obj.kind)


def alias(
    m: Machine,
    source: Value,
    site: int,
    how: How,
    obj: Object,
    *,
    region: Region = (),
    when: str = "",
    sure: bool = True,
    tag: str = "",
) -> Value:
    """A new object on the storages of `source` (rule 2). A conditional one may have a storage of its own as well."""
    ref = m.made_at(site, tag)
    if m.state.retire(ref):
        # The site's earlier object has become an older one: `source` may speak of it.
        source = renamed(source, ref)
    certain = sure and not when
    shares = [
        Share(
            share.storage,
            how,
            site,
            base,
            within(share.region, region),
            when,
            certain and _sits_surely(m, source, share),
        )
        for base in source.refs
        for share in m.state.object(base).shares
    ]
    if when or not shares:
        shares.append(Share(ref, How.OWN, site, ref))
    m.state.make(ref, obj._replace(shares=bounded(tuple(shares)), site=site, flags=_flags(m, source, how, obj)))
    marks = frozenset({mark._replace(late=True) for mark in source.marks}) if source.marks else source.marks
    return Value((ref,), obj.kind, marks=marks, root=source.root)


def _sits_surely(m: Machine, source: Value, share: Share) -> bool:
    """Whether a value surely sits on a storage in a certain way, whichever of its objects it is."""
    if len(source.refs) == 1 or not share.sure:
        return share.sure
    return all(share.is_among(m.state.object(ref).shares) for ref in source.refs)


def _flags(m: Machine, source: Value, how: How, obj: Object) -> frozenset[str]:
    """What autograd remembers of an alias: that it was made without grad, or on an inference tensor."""
    flags = obj.flags
    inherits = bool(source.refs) and all(INFERENCE in m.state.object(ref).flags for ref in source.refs)
    if how not in VIEWS and how is not How.PARAMETERS:
        # Where it is a copy, it was made in inference mode as well.
        if how is How.CONDITIONAL and inherits and m.state.mode.inference > 0:
            return flags | {INFERENCE}
        return flags - {INFERENCE} if INFERENCE in flags else flags
    if how is not How.DETACH and m.state.mode.recording is Fact.NO and (obj.kind in TENSORS or PARTS in flags):
        flags |= {NO_GRAD_VIEW}
    return flags | {INFERENCE} if inherits else flags - {INFERENCE}


def renamed(value: Value, ref: int) -> Value:
    """A value that speaks of the newest object of a site, where there is a newer one by now."""
    if ref not in value.refs:
        return value
    return value._replace(refs=tuple(sorted({r | 1 if r == ref else r for r in value.refs})))


def by_kind(m: Machine, value: Value) -> list[tuple[Value, Object]]:
    """A value that may be any of several objects, as one value per kind of treatment, each with what is known of it.

    Tensors are taken together, and so are arrays, and what may be either: an operation on "one of these two" makes one
    object, on one of two storages, and writes neither for sure. Of anything else, each object is taken by itself.
    """
    if len(value.refs) == 1:
        only = m.state.object(value.refs[0])
        return [(whole_value((value.refs, only.kind, None, value.marks, value.root, False)), only)]
    groups: dict[object, list[int]] = {}
    for ref in value.refs:
        kind = m.state.object(ref).kind
        alike = kind in BUFFERS or kind is Kind.UNKNOWN
        groups.setdefault(Kind.TENSOR if kind in TENSORS else kind if alike else ref, []).append(ref)
    found = []
    for refs in groups.values():
        obj = m.state.object(refs[0])
        for ref in refs[1:]:
            obj = join_objects(obj, m.state.object(ref))
        found.append((Value(tuple(refs), obj.kind, None, value.marks, value.root), obj))
    return found


def is_buffer(m: Machine, value: Value) -> bool:
    """Whether every object of a value is a tensor or an array."""
    return bool(value.refs) and all(m.state.object(ref).kind in BUFFERS for ref in value.refs)


def bind(m: Machine, key: Key, value: Value, site: int) -> None:
    """A name or slot now holds a value. Marks come along: an alias of something overwritten is overwritten as well.

    A name that is bound to the object it holds already (`x += 1`, `x = x.relu_()`) has held it since before.
    """
    before = m.state.cell(key)
    origin: Key | None = value.root if value.root.__class__ is tuple else None
    if origin is not None and m.state.refs_of(origin) != value.refs:
        origin = None
    if before is not None and before.refs == value.refs and value.refs and value.root == key:
        site, origin = before.site, before.origin
    m.state.put_cell(key, whole_cell((value.refs, value.kind, value.const, value.marks, site, origin, value.plain)))


WINDOW = "memoryview"
"""The type of bytes whose slices are windows on them: those of a `bytearray` are copies."""
GENERATOR = "numpy.random.Generator"
"""The type of what `numpy.random.default_rng` makes."""
RANDOM_STATE = "numpy.random.RandomState"
"""The type of the older source of random numbers: its methods are what the functions of `numpy.random` are."""
_OF_ANY_FRAMEWORK = CONTAINERS | {Kind.ARRAY, Kind.BYTES, Kind.NUMBER, Kind.STRING}


_SENDING = frozenset({"to", "cuda", "cpu", "float", "double", "half", "contiguous"})
"""Methods that make nothing else of something than what it is, and leave it as it is if it is there already."""


def refine(m: Machine, value: Value, kind: Kind, sure: Sure, by: str = "", flag: str = "", **changes: object) -> None:
    """What is unknown of a value's objects becomes known, if it may be torch's or NumPy's at all.

    `by` is the method that is called on it, if that is what shows it: its own dropped results it does not tell of.
    `flag` is put on what was unknown.
    """
    if sure < Sure.PROVEN and kind not in _OF_ANY_FRAMEWORK and m.world.is_of_another_framework:
        return
    for ref in value.refs:
        obj = m.state.object(ref)
        if FOREIGN in obj.flags and kind not in _OF_ANY_FRAMEWORK:
            continue
        if (
            obj.kind is Kind.UNKNOWN
            or (EITHER in obj.flags and kind in BUFFERS)
            or (obj.kind is kind and obj.sure < sure)
        ):
            flags = obj.flags - {EITHER} | ({flag} if flag else frozenset())
            m.state.set_object(ref, obj._replace(kind=kind, sure=sure, flags=flags, **changes))  # type: ignore[arg-type]
            if kind is Kind.TENSOR and len({one | 1 for one in value.refs}) == 1:
                # Of what is one of several, the others may show it.
                _note_data_of_tensor(m, obj, sure)
                _note_view(m, ref, sure)
                _note_converted(m, ref, sure)
                if EITHER in obj.flags:
                    _note_whole(m, ref, sure)
            if obj.kind is Kind.UNKNOWN and kind in BUFFERS:
                _note_written(m, ref, kind, sure)
                if kind is Kind.TENSOR and ref in m.shown.dropped:
                    _note_dropped(m, ref, sure, by)


def _note_view(m: Machine, ref: int, sure: Sure) -> None:
    """What is a view if its source is a tensor turns out to be a tensor, and so is that: `y = x.transpose(1, 2)`."""
    obj = m.state.object(ref)
    views = [share for share in obj.shares if share.when == IF_TENSOR]
    if not views or len({share.of for share in views}) != 1:
        return
    source = m.state.object(views[0].of)
    certain = {share.storage for share in source.shares if share.sure}
    shares = tuple(
        s._replace(how=How.VIEW if s.how is How.CONDITIONAL else s.how, when="", sure=s.storage in certain)
        for s in views
    )
    m.state.set_object(ref, obj._replace(shares=shares))
    refine(m, Value((views[0].of,)), Kind.TENSOR, sure)


def _note_whole(m: Machine, ref: int, sure: Sure) -> None:
    """A part of what may be an array or a tensor turns out to be a tensor, and so is the whole: `x[:, 1:].add_(1)`."""
    for source in {share.of for share in m.state.object(ref).shares if share.how in (How.INDEX, How.VIEW)}:
        if source != ref and EITHER in m.state.object(source).flags:
            refine(m, Value((source,)), Kind.TENSOR, sure)


def _note_converted(m: Machine, ref: int, sure: Sure) -> None:
    """What was sent somewhere turns out to be a tensor, and so is what was sent: `x = batch["image"].to(device)`."""
    obj = m.state.object(ref)
    made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
    sent = {share.of for share in obj.shares if share.how is How.CONDITIONAL and share.when not in ("", IF_TENSOR)}
    if not isinstance(made, t.Invoke) or made.name not in _SENDING or len(sent) != 1:
        return
    source = sent.pop()
    if source != ref and m.state.object(source).kind is Kind.UNKNOWN:
        refine(m, Value((source,)), Kind.TENSOR, min(sure, Sure.LIKELY))


def evidence_array(m: Machine, value: Value) -> None:
    """Its use shows that what `numpy.load` returned is an array, and no archive of several."""
    if value.refs and all(ARCHIVE in m.state.object(ref).flags for ref in value.refs):
        refine(m, value, Kind.ARRAY, Sure.LIKELY)


def may_be_made_anew(obj: Object) -> bool:
    """What is found in a field under an index may be made at each look, by a file or another dataset; in a list it is
    not."""
    return obj.owner == FIELD and obj.text.endswith("]") and LISTED not in obj.flags


def _note_written(m: Machine, ref: int, kind: Kind, sure: Sure) -> None:
    """What has been written already turns out to be a tensor or an array: so the write was one."""
    if may_be_made_anew(m.state.object(ref)):
        return
    for site, write in m.writes.items():
        if write.sure is Sure.NOT and write.kind is Kind.UNKNOWN and write.storages == (ref,):
            m.writes[site] = write._replace(kind=kind, sure=sure)


def note_dropped(m: Machine, value: Value, by: str) -> None:
    """A method that is called on what is likely a tensor shows that it is one, whatever it was called with before."""
    for ref in value.refs:
        if ref in m.shown.dropped:
            _note_dropped(m, ref, m.state.object(ref).sure, by)


def _note_dropped(m: Machine, ref: int, sure: Sure, by: str) -> None:
    """What a method was called on, whose result was dropped, turns out to be a tensor."""
    for site in m.shown.dropped[ref]:
        for index, fact in enumerate(m.facts.get(site, ())):
            if isinstance(fact, Discarded) and fact.sure < sure and fact.op != by:
                m.facts[site][index] = fact._replace(sure=sure)


def _note_data_of_tensor(m: Machine, obj: Object, sure: Sure) -> None:
    """What some `.data` gave turns out to be a tensor: so is what it was taken from, unless that may be of a class of
    the file, which has a field of that name."""
    if any(share.how is How.DATA for share in obj.shares) and _is_own_field(m, "data"):
        return
    for share in obj.shares:
        source = m.state.object(share.of)
        if share.how is How.DATA and OTHERWISE not in source.flags and not kinds.named_otherwise(source.text):
            for index, fact in enumerate(m.facts.get(share.site, ())):
                if isinstance(fact, DataAccess) and fact.sure < sure:
                    m.facts[share.site][index] = fact._replace(sure=sure)
            refine(m, Value((share.of,)), Kind.TENSOR, sure)


def _is_own_field(m: Machine, name: str) -> bool:
    """Whether a method of a class of the file sets a field of its object of that name."""
    for unit in m.world.program.units:
        for store in m.world.index(unit).stores.get(name, ()) if unit.owner >= 0 else ():
            base = unit.definitions[store.base] if store.base >= 0 else None
            if isinstance(base, t.Load) and base.name == unit.first:
                return True
    return False


def evidence_tensor(m: Machine, value: Value, sure: Sure = Sure.LIKELY) -> None:
    """Its use shows that a value of unknown kind is a tensor."""
    refine(m, value, Kind.TENSOR, sure)
