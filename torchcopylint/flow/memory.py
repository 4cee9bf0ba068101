"""Objects and storages: making, aliasing, writing, reading.

The engine's rules, by number (see docs/flow.md):

1. A fresh object owns a storage of its own.
2. An alias sits on every storage of what it was taken from, in the way that its operation says.
3. A write to a storage marks every name and slot that holds an object on it: `own` where the write went through that
   very holder, foreign elsewhere. Rebinding a holder drops its marks.
4. Reading the content of a value that carries marks is a fact: it was read after that write.
5. A write to a storage that backward keeps spoils what was saved; reaching backward with it is a fact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow import idioms
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Clobbered, DataAccess, Link, ReadAfter, ReadAfterCut, Write
from torchcopylint.flow.model import (
    ARGUMENT,
    BLANK,
    BUFFERS,
    CONTAINERS,
    FIELD,
    GLOBAL,
    MAX_MARKS,
    NAMELESS,
    UNVERSIONED,
    Cell,
    Fact,
    How,
    Key,
    Kind,
    Mark,
    Object,
    Region,
    Share,
    Slot,
    Sure,
    Value,
    overlap,
)

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine

Chain: TypeAlias = "tuple[tuple[int, Link], ...]"
"""Objects from an alias up to the owner of its storage, each with the link that it came by. Numbers are those of the
older object of the site, so that chains remain comparable when a loop has gone on."""
MAX_CHAIN = 12
MAX_DEPTH = 3
"""How deep a read of a container looks into its elements."""


def fresh(m: Machine, site: int, obj: Object, tag: str = "") -> Value:
    """A new object with a storage of its own (rule 1)."""
    ref = m.number(site, tag)
    m.state.make(ref, obj._replace(shares=(Share(ref, How.OWN, site, ref),), site=site))
    return Value((ref,), obj.kind)


def unknown(m: Machine, site: int, text: str = "", tag: str = "") -> Value:
    """A new object of which nothing is known."""
    return fresh(m, site, Object(text=text), tag)


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
    ref = m.number(site, tag)
    if m.state.retire(ref):
        # The site's earlier object has become an older one: `source` may speak of it.
        source = _renamed(source, ref)
    certain = sure and not when and len({base | 1 for base in source.refs}) == 1
    shares = [
        Share(share.storage, how, site, base, (*share.region, *region), when, certain and share.sure)
        for base in source.refs
        for share in m.state.object(base).shares
    ]
    if when or not shares:
        shares.append(Share(ref, How.OWN, site, ref))
    m.state.make(ref, obj._replace(shares=tuple(shares), site=site))
    marks = frozenset({mark._replace(late=True) for mark in source.marks}) if source.marks else source.marks
    return Value((ref,), obj.kind, marks=marks, root=source.root)


def _renamed(value: Value, ref: int) -> Value:
    if ref not in value.refs:
        return value
    return value._replace(refs=tuple(sorted({r | 1 if r == ref else r for r in value.refs})))


def text_of(m: Machine, register: int) -> str:
    """A register's expression as the user wrote it, as far as names, attributes and plain indices go."""
    if not 0 <= register < len(m.unit.definitions):
        return "..."
    event = m.unit.definitions[register]
    if isinstance(event, t.Load):
        return event.name.partition("#")[0] if not event.name.startswith("%") else "..."
    if isinstance(event, t.Attribute):
        return f"{text_of(m, event.base)}.{event.name}"
    if isinstance(event, t.Item):
        return f"{text_of(m, event.base)}[{index_text(m, event.subscript)}]"
    if isinstance(event, t.Unpack):
        return f"{text_of(m, event.value)}[{event.position if event.position >= 0 else '...'}]"
    if isinstance(event, t.Const):
        return repr(event.value) if event.value is not ... else "..."
    if isinstance(event, t.Invoke):
        return f"{text_of(m, event.base)}.{event.name}({'...' if event.arguments else ''})"
    if isinstance(event, t.Call):
        return f"{text_of(m, event.function)}({'...' if event.arguments else ''})"
    return "..."


def index_text(m: Machine, index: t.Index) -> str:
    """What stands in square brackets, as the user wrote it."""
    return ", ".join(_part_text(m, part) for part in index)


def _part_text(m: Machine, part: int | t.Slice) -> str:
    if isinstance(part, t.Slice):
        bounds = ["" if r == t.NO_REGISTER else text_of(m, r) for r in (part.lower, part.upper)]
        step = "" if part.step == t.NO_REGISTER else f":{text_of(m, part.step)}"
        return ":".join(bounds) + step
    return text_of(m, part)


def key_text(m: Machine, key: Key | None) -> str:
    """A name or slot as the user would write it."""
    if isinstance(key, str):
        return key.partition("#")[0]
    if isinstance(key, tuple):
        owner = m.state.object(key[0]).text or "..."
        return owner + key[1]
    return ""


def place_of(m: Machine, slot: Slot, cell: Cell) -> Key:
    """The place that an element is read through: the slot, or, if its container has no name, where it came from."""
    if cell.origin is not None and m.state.object(slot[0]).text == NAMELESS:
        before = m.state.cell(cell.origin)
        if before is not None and before.refs == cell.refs:
            return cell.origin
    return slot


# -- reading


def read(m: Machine, value: Value, site: int, consumer: str, target: str = "") -> None:
    """The content of a value is looked at (rule 4), its elements included if it is a container."""
    if value.marks:
        _report_reads(m, value, key_text(m, value.root), site, consumer, target)
    for ref in value.refs:
        if m.state.object(ref).kind in CONTAINERS:
            _read_elements(m, ref, site, consumer, target, MAX_DEPTH)


def _read_elements(m: Machine, ref: int, site: int, consumer: str, target: str, depth: int) -> None:
    for slot in m.state.slot_names(ref):
        cell = m.state.cell(slot)
        if cell is None:
            continue
        if cell.marks:
            place = place_of(m, slot, cell)
            value = Value(cell.refs, cell.kind, None, cell.marks, place)
            _report_reads(m, value, key_text(m, place), site, consumer, target)
        if depth:
            for inner in cell.refs:
                if inner != ref and m.state.object(inner).kind in CONTAINERS:
                    _read_elements(m, inner, site, consumer, target, depth - 1)


def _report_reads(m: Machine, value: Value, name: str, site: int, consumer: str, target: str) -> None:
    for mark in sorted(value.marks):
        if mark.write in m.cuts:
            _report_cut(m, value, name, mark, site, consumer)
            continue
        write = m.writes.get(mark.write)
        if write is None:
            continue
        for ref in value.refs:
            fact = _read_after(m, value, ref, mark, write, name)
            if fact is not None:
                m.fact(fact._replace(site=site, consumer=consumer, target=target))
                break


def _report_cut(m: Machine, value: Value, name: str, mark: Mark, site: int, consumer: str) -> None:
    if m.cuts[mark.write]:
        shared = _naming(m, mark.write, value.root)
        m.fact(ReadAfterCut(mark.write, name, mark.own, site, consumer, tuple(shared) if not mark.own else ()))


def _read_after(m: Machine, value: Value, ref: int, mark: Mark, write: Write, name: str) -> ReadAfter | None:
    obj = m.state.object(ref)
    if obj.kind in (Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE):
        # Their parameters are read one by one, or by calling them, which is what they were written for.
        return None
    written = {storage | 1 for storage in write.storages}
    share = next((share for share in obj.shares if share.storage | 1 in written), None)
    if share is None:
        return None
    chain = held_part(m, value.root, chain_of(m, ref, share))
    below_written, below_read = relation(m, write, chain, value.root)
    if mark.late and not _kept_from_before(m, value.root, mark):
        below_read = ()
    return ReadAfter(
        write=mark.write,
        name=name or obj.text or "this value",
        own=mark.own,
        site=-1,
        consumer="",
        target="",
        below_written=below_written,
        below_read=below_read,
        element=_is_element(value.root),
        certain=share.sure
        and share.storage & 1 == 0
        and share.storage in m.certain_storages[mark.write]
        and (_is_element(value.root) or all(_sits_on(m, other, share.storage) for other in value.refs))
        and all(link.sure for link in (*below_written, *below_read))
        and overlap(m.regions[mark.write].get(share.storage | 1, ()), share.region) is Fact.YES,
        sure=obj.sure,
        kind=obj.kind,
        flags=obj.flags,
    )


def _is_element(root: Key | None) -> bool:
    return isinstance(root, tuple) and root[1].startswith("[")


def _sits_on(m: Machine, ref: int, storage: int) -> bool:
    return any(share.storage == storage for share in m.state.object(ref).shares)


def _kept_from_before(m: Machine, root: Key | None, mark: Mark) -> bool:
    """Whether the place that a value was derived from held its object already when the write happened."""
    cell = m.state.cell(root) if root is not None else None
    return cell is not None and mark._replace(late=False) in cell.marks


def held_part(m: Machine, root: Key | None, chain: Chain) -> Chain:
    """A chain from the object that a place holds on: without what one expression derives from it on the way."""
    cell = m.state.cell(root) if root is not None else None
    if cell is None:
        return chain
    held = {ref | 1 for ref in cell.refs}
    position = next((index for index, (number, _) in enumerate(chain) if number in held), 0)
    return chain[position:]


def chain_of(m: Machine, ref: int, share: Share) -> Chain:
    """From an object up to the owner of the storage: each object passed, and the link that it came by."""
    chain: list[tuple[int, Link]] = []
    seen = set()
    while ref not in seen and len(chain) < MAX_CHAIN:
        seen.add(ref)
        how = None if share.how is How.OWN else share.how
        source = m.state.object(share.of).text
        chain.append((ref | 1, Link(how, share.site, source, m.state.object(ref).text, share.when, share.sure)))
        if share.of == ref:
            break
        ref = share.of
        above = next((s for s in m.state.object(ref).shares if s.storage | 1 == share.storage | 1), None)
        if above is None:
            break
        share = above
    return tuple(chain)


def relation(m: Machine, write: Write, reader: Chain, root: Key | None) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """How the written and the read came to share: the links below their nearest common object, on either side."""
    ups = {number for number, _ in reader}
    below_written: list[Link] = []
    common = None
    for number, link in m.chains.get(write.site, ()):
        if number in ups:
            common = number
            break
        below_written.append(link)
    below_read: list[Link] = []
    for number, link in reader:
        if number == common:
            break
        below_read.append(link)
    written = tuple(link for link in below_written if link.how is not None)
    read_links = tuple(link for link in below_read if link.how is not None)
    if not written and not read_links:
        read_links = tuple(_naming(m, write.site, root))
    return written, read_links


def _naming(m: Machine, write: int, root: Key | None) -> list[Link]:
    """Two holders of one object: the sharing happened where the later of the two was bound."""
    candidates = []
    for key in (root, m.roots.get(write)):
        cell = m.state.cell(key) if key is not None else None
        if cell is not None and cell.site >= 0:
            candidates.append((cell.site, key_text(m, key)))
    if not candidates:
        return []
    site, name = max(candidates)
    return [Link(None, site, min(candidates)[1], name)]


def mark_cut(m: Machine, key: Key, cell: Cell, site: int, *, own: bool) -> None:
    """A holder's object has lost its history at `site`."""
    marks = cell.marks | {Mark(site, own)}
    if len(marks) <= MAX_MARKS:
        m.state.put_cell(key, cell._replace(marks=marks))


# -- writing


def write(
    m: Machine,
    value: Value,
    site: int,
    *,
    op: str,
    form: str,
    name: str,
    reads_old: bool = True,
    versioned: bool = True,
    region: Region = (),
    derived: bool = False,
    cause: str = "",
    also_own: Key | None = None,
) -> Write | None:
    """The content of a value is changed in place (rules 3 and 5). Returns the fact, if it has any memory we know of."""
    shares = [(ref, share) for ref in value.refs for share in m.state.object(ref).shares]
    if not shares:
        return None
    ref, share = shares[0]
    chain = chain_of(m, ref, share)
    m.certain_storages[site] = frozenset(
        s.storage for _, s in shares if all(_sits_on(m, other, s.storage) for other in value.refs)
    )
    m.regions[site] = {s.storage | 1: (*s.region, *region) for _, s in shares}
    m.chains[site] = held_part(m, value.root, chain)
    m.roots[site] = value.root
    storages = tuple(sorted({s.storage for _, s in shares}))
    owners = [m.state.object(storage) for storage in storages]
    owner = next((o for o in owners if o.owner in (ARGUMENT, FIELD, GLOBAL)), owners[0])
    through = versioned and not any(link.how in UNVERSIONED for _, link in chain)
    fact = Write(
        site=site,
        name=name,
        op=op,
        form=form,
        root=key_text(m, value.root),
        derived=derived,
        chain=tuple(link for _, link in m.chains[site]),
        owner=owner.owner,
        owner_name=owner.text,
        reads_old=reads_old,
        partial=bool(region) or any(s.region for _, s in shares),
        versioned=through,
        recording=m.state.mode.recording,
        blank=all(BLANK in o.flags for o in owners),
        named=value.root is not None and any(link.how is not None for _, link in m.chains[site]),
        sure=min((m.state.object(r).sure for r in value.refs), default=Sure.NOT),
        kind=m.state.object(ref).kind,
        storages=storages,
        cause=cause,
    )
    m.writes[site] = fact
    for base, base_share in shares:
        _mark_holders(m, (value.root, also_own), base_share, region, fact)
        _spoil_saved(m, base_share, fact)
    _note_data(m, chain, fact)
    return fact


def current(m: Machine, value: Value) -> Value:
    """A value as it is after a write through it: the marks of the place that it was loaded from."""
    cell = m.state.cell(value.root) if value.root is not None else None
    if cell is None:
        return value
    if cell.refs == value.refs:
        return value._replace(marks=cell.marks)
    return value._replace(marks=value.marks | {mark._replace(late=True) for mark in cell.marks})


def _note_data(m: Machine, chain: Chain, fact: Write) -> None:
    """A write goes through `.data`: what was taken for a read of `.data` is a write."""
    for _, link in chain:
        if link.how is not How.DATA:
            continue
        for index, read_fact in enumerate(m.facts.get(link.site, ())):
            if isinstance(read_fact, DataAccess) and read_fact.form == "read":
                del m.facts[link.site][index]
                context = read_fact.context or (idioms.BULK if How.PARAMETERS in {l.how for _, l in chain} else "")
                m.fact(read_fact._replace(site=fact.site, form=fact.form, op=fact.op, context=context))
                return


def _mark_holders(m: Machine, roots: tuple[Key | None, ...], share: Share, region: Region, fact: Write) -> None:
    written = (*share.region, *region)
    # A name that was loaded from a slot is short for it: writing one is writing the other.
    cells = [m.state.cell(root) for root in roots if root is not None]
    roots = (*roots, *[cell.origin for cell in cells if cell is not None and isinstance(cell.origin, tuple)])
    for key, cell in m.state.holders_of(share.storage):
        marks = set(cell.marks)
        own = key in roots
        if own and not fact.reads_old and not fact.partial and not fact.derived:
            # The holder itself has been filled anew: what happened before is of no consequence for it.
            marks.clear()
        for other in cell.refs:
            for held in m.state.object(other).shares:
                if held.storage == share.storage and overlap(written, held.region) is not Fact.NO:
                    marks.add(Mark(fact.site, own))
        if marks != cell.marks and len(marks) <= MAX_MARKS:
            m.state.put_cell(key, cell._replace(marks=frozenset(marks)))


def _spoil_saved(m: Machine, share: Share, fact: Write) -> None:
    for saved in m.state.object(share.storage).saved:
        key = f"@spoilt{saved}"
        before = m.state.get(key)
        spoilt = before if isinstance(before, frozenset) else frozenset()
        m.state.put(key, spoilt | {fact.site})


def needed_by_backward(m: Machine, value: Value, site: int, consumer: str) -> None:
    """Backward runs, or may run later, over the graph of a value: what it saved and was spoilt is a fact (rule 5)."""
    for ref in value.refs:
        obj = m.state.object(ref)
        for saved in sorted(obj.graph):
            spoilt = m.state.get(f"@spoilt{saved}")
            if not isinstance(spoilt, frozenset) or m.state.get(f"@freed{saved}"):
                continue
            for written in sorted(spoilt):
                if written in m.writes and saved in m.saves:
                    sure = min(obj.sure, m.writes[written].sure)
                    links = _links_to(m, written, m.saved_objects.get(saved, -1))
                    m.fact(Clobbered(m.saves[saved], written, site, consumer, links, sure))


def _links_to(m: Machine, written: int, saved: int) -> tuple[Link, ...]:
    """The links from the saved object down to the place that was written through, in program order."""
    links = []
    for number, link in m.chains.get(written, ()):
        if number == saved | 1:
            break
        links.append(link)
    return tuple(reversed([link for link in links if link.how is not None]))


def evidence_tensor(m: Machine, value: Value, sure: Sure = Sure.LIKELY) -> None:
    """Its use shows that a value of unknown kind is a tensor."""
    refine(m, value, Kind.TENSOR, sure)


def refine(m: Machine, value: Value, kind: Kind, sure: Sure, **changes: object) -> None:
    """What is unknown of a value's objects becomes known."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.UNKNOWN or (obj.kind is kind and obj.sure < sure):
            m.state.set_object(ref, obj._replace(kind=kind, sure=sure, **changes))  # type: ignore[arg-type]
            if kind is Kind.TENSOR:
                _note_data_of_tensor(m, obj, sure)


def _note_data_of_tensor(m: Machine, obj: Object, sure: Sure) -> None:
    """What some `.data` gave turns out to be a tensor: so is what it was taken from."""
    for share in obj.shares:
        if share.how is How.DATA:
            for index, fact in enumerate(m.facts.get(share.site, ())):
                if isinstance(fact, DataAccess) and fact.sure < sure:
                    m.facts[share.site][index] = fact._replace(sure=sure)
            refine(m, Value((share.of,)), Kind.TENSOR, sure)


def is_buffer(m: Machine, value: Value) -> bool:
    """Whether every object of a value is a tensor or an array."""
    return bool(value.refs) and all(m.state.object(ref).kind in BUFFERS for ref in value.refs)


def bind(m: Machine, key: Key, value: Value, site: int) -> None:
    """A name or slot now holds a value. Marks come along: an alias of something overwritten is overwritten as well.

    A name that is bound to the object it holds already (`x += 1`, `x = x.relu_()`) has held it since before.
    """
    before = m.state.cell(key)
    origin = value.root if isinstance(value.root, tuple) and m.state.refs_of(value.root) == value.refs else None
    if before is not None and before.refs == value.refs and value.refs and value.root == key:
        site, origin = before.site, before.origin
    m.state.put_cell(key, Cell(value.refs, value.kind, value.const, value.marks, site, origin))
