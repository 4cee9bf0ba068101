"""Writing into memory.

3. A write to a storage marks every name and slot that holds an object on it: `own` where the write went through that
   very holder, foreign elsewhere. Rebinding a holder drops its marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataAccess, Write
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    BLANK,
    CONTAINERS,
    EARLIER,
    FIELD,
    GLOBAL,
    INDEX_COPY,
    INDEX_COPY_LIKELY,
    LOCAL,
    MAX_MARKS,
    UNVERSIONED,
    Cell,
    Fact,
    How,
    Key,
    Kind,
    Mark,
    Region,
    Share,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.program import called_parts
from torchcopylint.flow.regions import overlap, within
from torchcopylint.flow.storages import conditional, other_memory, queues, reading
from torchcopylint.flow.storages.reading import Chain
from torchcopylint.flow.tapes import by_default, by_kind, turns, uses
from torchcopylint.flow.values import idioms, naming
from torchcopylint.flow.values.sites import STATISTICS
from torchcopylint.flow.values.state import TRAINING, in_stable_order, written_kind

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def note_root(m: Machine, site: int, root: Key | None) -> None:
    """Remember where the name that a write at `site` goes through was bound, as it was then."""
    cell = m.state.cell(root) if root is not None else None
    if cell is not None:
        m.hits.roots[site] = (cell.site, naming.key_text(m, root))
        m.hits.root_keys[site] = root
    else:
        m.hits.roots.pop(site, None)


def mark_cut(m: Machine, key: Key, cell: Cell, site: int, *, own: bool) -> None:
    """A holder's object has lost its history at `site`."""
    marks = cell.marks | {Mark(site, own)}
    if len(marks) <= MAX_MARKS:
        m.state.put_cell(key, cell._replace(marks=marks))


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
    also_own: Sequence[Key | None] = (),
    every: bool = False,
    also: bool = False,
) -> Write | None:
    """The content of a value is changed in place (rules 3 and 5). Returns the fact, if it has any memory we know of.

    A value is one of its objects; with `every`, all of them are written. With `also`, what the same call has written
    before was written too: that makes one fact.
    """
    shares = [(ref, share) for ref in value.refs for share in m.state.object(ref).shares]
    if not shares:
        return None
    ref, share = shares[0]
    chain = reading.chain_of(m, ref, share)
    before = m.writes.get(site) if also else None
    if before is None:
        m.hits.certain_storages[site], m.hits.regions[site], m.hits.chains[site] = frozenset(), {}, {}
    _note_places(m, value, shares, site, region, every=every or _goes_through_all(m, value, site))
    held = reading.held_part(m, value.root, chain)
    m.hits.chains[site][share.storage | 1] = held
    note_root(m, site, value.root)
    storages = tuple(sorted({s.storage for _, s in shares}))
    owners = [m.state.object(storage) for storage in storages]
    owner = next((o for o in owners if o.owner in (ARGUMENT, FIELD, GLOBAL)), owners[0])
    through = versioned and not any(link.how in UNVERSIONED for _, link in chain)
    fact = Write(
        site=site,
        name=name,
        op=op,
        form=form,
        root=naming.key_text(m, value.root),
        derived=derived,
        chain=tuple(link for _, link in held),
        owner=owner.owner,
        owner_name=owner.text,
        reads_old=reads_old,
        partial=bool(region) or any(s.region for _, s in shares),
        versioned=through,
        recording=m.state.mode.recording,
        blank=all(BLANK in o.flags for o in owners),
        named=value.root is not None and any(link.how is not None for _, link in held) and not _is_owner(m, value.root),
        sure=min((m.state.object(r).sure for r in value.refs), default=Sure.NOT),
        kind=written_kind(value, m.state) if len(value.refs) > 1 else m.state.object(ref).kind,
        storages=storages,
        cause=cause,
        copied=_index_copy(m, storages, value.root, site),
        bound=m.hits.roots[site][0] if site in m.hits.roots else -1,
        held=_held_in(m, value.root),
    )
    if before is not None:
        fact = before._replace(storages=tuple(sorted({*before.storages, *storages})), sure=min(before.sure, fact.sure))
    m.writes[site] = fact
    if any(not sat_on.sure for _, sat_on in shares):
        conditional.note_write(m, value, fact)
    if not m.blocks.failing:
        # What is there to fail, a test of refusals, writes nothing.
        _spread(m, (value.root, *also_own), shares, region, fact)
    if m.holding.queues:
        queues.note_write(m, fact)
    _note_data(m, chain, fact)
    return fact


def _spread(
    m: Machine, roots: tuple[Key | None, ...], shares: Sequence[tuple[int, Share]], region: Region, fact: Write
) -> None:
    """A write marks the holders of what it writes, and spoils what backward needs of it; `roots` are holders that it
    is no surprise to, of which the first is written through."""
    _note_alike(m, shares, fact.site)
    for other, sat_on in shares:
        start = turns.behind(m, roots[0], other)
        _mark_holders(m, roots, (other, sat_on), region, fact, start)
        plain = _in_plain_field(m, other, sat_on)
        certain = sat_on.sure and not sat_on.when and sat_on.storage in m.hits.certain_storages[fact.site]
        unseen = fact.form == STATISTICS
        spoil_saved(m, sat_on, fact.site, certain=certain, statistics=unseen, start=start, by_field=plain)


def _note_alike(m: Machine, shares: Sequence[tuple[int, Share]], site: int) -> None:
    """A write hits what a loop's last turn has made at a site, or what an earlier one has made there: an element of a
    list of such, whichever. It spoils what has been kept of each of them, by whatever number that goes."""
    own = [ref for ref, share in shares if share.how is How.OWN and share.storage == ref]
    if len(own) != len(shares) or len(own) != 2 or own[0] | 1 != own[1] | 1:
        return
    first, second = (m.state.object(ref).saved for ref in own)
    for saved in first | second:
        number = saved & ~EARLIER
        numbers = frozenset({number, number | EARLIER})
        if saved in first & second:
            m.needed.met_alike[number, site] = frozenset({saved})
        elif first & numbers and second & numbers:
            m.needed.met_alike[number, site] = numbers


def _goes_through_all(m: Machine, value: Value, site: int) -> bool:
    """Whether a write goes through the name of a loop over a few things that are named there: `for t in (a, b):`."""
    if len(value.refs) < 2 or not m.in_loop or not isinstance(value.root, str) or uses.on_some_paths(m, site):
        return False
    bound = [event for event in m.index.binds.get(value.root, ()) if event.value >= 0]
    made = m.unit.definitions[bound[0].value] if len(bound) == 1 else None
    if not isinstance(made, t.Iterate):
        return False
    through = m.unit.definitions[made.iterable]
    if isinstance(through, t.Load):
        several = uses.bindings_before(m, through)
        through = m.unit.definitions[several[0]] if len(several) == 1 and several[0] >= 0 else None
    return isinstance(through, t.Make) and not any(through.stars) and len(through.items) == len(value.refs)


def _note_places(
    m: Machine, value: Value, shares: list[tuple[int, Share]], site: int, region: Region, *, every: bool
) -> None:
    """What a write surely hits, which parts of it, and by which links the written name holds each but the first."""
    # What a method writes of its receiver is one of all objects that the receiver may be, of whatever kind.
    refs = by_kind.others(m, by_default.others(m, value.refs))
    refs = (*refs, *m.beside[1]) if m.beside[1] and m.beside[0].issuperset(value.refs) else refs
    m.hits.certain_storages[site] |= {
        s.storage for _, s in shares if every or all(reading.sits_on(m, other, s.storage) for other in refs)
    }
    m.hits.regions[site].update({s.storage | 1: within(s.region, region) for _, s in shares})
    for other, sat_on in reversed(shares[1:]):
        m.hits.chains[site][sat_on.storage | 1] = reading.held_part(m, value.root, reading.chain_of(m, other, sat_on))
    if m.first_turn:
        m.hits.in_first_turn[site] = (m.hits.certain_storages[site], m.hits.chains[site])


def _is_owner(m: Machine, root: Key) -> bool:
    """Whether what is written through is, on some path, what the caller handed in itself, and not made of it."""
    objects = [m.state.object(ref) for ref in m.state.refs_of(root)]
    return any(obj.owner == ARGUMENT and obj.shares and obj.shares[0].how is How.OWN for obj in objects)


def _held_in(m: Machine, root: Key | None) -> str:
    """The element of a field that a name was taken out of."""
    cell = m.state.cell(root) if root is not None else None
    origin = cell.origin if cell is not None else None
    if cell is not None and origin is None and isinstance(root, str):
        origin = _origin_on_some_paths(m, root, cell)
    if not isinstance(origin, tuple) or not origin[1].startswith("[") or m.state.object(origin[0]).owner != FIELD:
        return ""
    return naming.key_text(m, origin).replace(ANY_ELEMENT, "[...]")


def _origin_on_some_paths(m: Machine, name: str, cell: Cell) -> Key | None:
    """The element that a name was taken out of on one path, where another one has bound it to something else."""
    for bind in m.index.binds.get(name, ()) if len(cell.refs) > 1 else ():
        taken = bind.value >= 0 and isinstance(m.unit.definitions[bind.value], t.Item)
        value = m.value(bind.value) if taken else None
        if value is not None and not set(value.refs).isdisjoint(cell.refs):
            return value.root
    return None


def _in_plain_field(m: Machine, ref: int, share: Share) -> bool:
    """Whether an object sits on a module's memory as a tensor in one of its fields that is no parameter: of what the
    module is called with or holds, backward keeps its parameters."""
    for _ in range(reading.MAX_CHAIN):
        if share.how is How.FIELD:
            return m.state.object(ref).kind is Kind.TENSOR
        above = next((s for s in m.state.object(share.of).shares if s.storage == share.storage), None)
        if share.of == ref or above is None:
            return False
        ref, share = share.of, above
    return False


def _index_copy(m: Machine, storages: tuple[int, ...], root: Key | None, site: int) -> Sure:
    """How sure it is that only the copy that an advanced index made is written, and nobody else holds it."""
    if len(storages) != 1:
        return Sure.NOT
    flags = m.state.object(storages[0]).flags
    if INDEX_COPY not in flags and INDEX_COPY_LIKELY not in flags:
        return Sure.NOT
    # What has been unpacked at once, `values, places = x.topk(3)`, stands in a tuple as well that nobody holds.
    held = [key for key, _ in m.state.holders_of(storages[0]) if key != root]
    if any(not isinstance(key, tuple) or m.state.holders.get(key[0]) for key in held):
        return Sure.NOT
    if root is not None and not (isinstance(root, str) and uses.is_only_written(m, root)):
        return Sure.NOT
    sure = Sure.PROVEN if INDEX_COPY in flags else Sure.LIKELY
    if root is None or m.unit.kind != "module":
        return sure
    # Who imports the file may look at what its names hold.
    source = re.match(r"[^\W\d]\w*", m.state.object(storages[0]).text)
    read = source is not None and any(use.loads and use.site > site for use in uses.of_name(m, source[0]))
    return Sure.LIKELY if read and "__all__" not in m.index.binds else Sure.NOT


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
                bulk = any(above.how is How.PARAMETERS for _, above in chain)
                context = read_fact.context or (idioms.BULK if bulk else "")
                m.fact(read_fact._replace(site=fact.site, form=fact.form, op=fact.op, context=context))
                return


def _mark_holders(
    m: Machine,
    roots: tuple[Key | None, ...],
    hit: tuple[int, Share],
    region: Region,
    fact: Write,
    start: turns.Started | None,
) -> None:
    """Mark who holds the storage that an object sits on, of which `hit` is one share."""
    ref, share = hit
    written = within(share.region, region)
    # A name that was loaded from a slot is short for it: writing one is writing the other.
    written_through: set[Key | None] = set(roots)
    for root in roots:
        through = m.state.cell(root) if root is not None else None
        if through is not None and through.origin.__class__ is tuple:
            written_through.add(through.origin)
    fields = {root: m.state.refs_of(root) for root in written_through if root.__class__ is tuple}
    filled = not fact.reads_old and not region
    anew, all_anew = filled and not fact.derived, filled and _is_whole(share)
    around = uses.loops_around(m, fact.site)
    let_go: dict[int, bool] = {}
    own_mark, mark = Mark(fact.site, True), Mark(fact.site, False)
    marked: list[tuple[Key, Cell]] = []
    for key, cell in m.state.each_holder_of(share.storage):
        if key.__class__ is tuple:
            held_by = key[0]
            if held_by not in let_go:
                let_go[held_by] = held_by in m.returned_beside or _is_let_go(m, held_by)
            # It may be of another object that the receiver may be that the call has returned this.
            if let_go[held_by]:
                continue
            if around and cell.site >= fact.site and _is_of_earlier_turn(m, key, cell, around, fact.site):
                continue
        if start is not None and key not in start.holders:
            continue
        if fact.form == other_memory.ASSIGN and not other_memory.reaches(m, (ref,), share, cell):
            continue
        own = key in written_through or (
            bool(fields) and any(refs == cell.refs and _is_tied(m, key, root) for root, refs in fields.items())
        )
        # If the holder itself, be it a part of something, has been filled anew, what happened before is of no
        # consequence for it; nor if all of its memory has been, as by `x.data.copy_(y)`.
        covered = (own and anew) or (all_anew and _is_all_of(m, cell, share))
        before = frozenset() if covered else cell.marks
        new = own_mark if own else mark
        marks = before if new in before or not _is_hit(m, cell, share.storage, written) else before | {new}
        if marks != cell.marks and len(marks) <= MAX_MARKS:
            marked.append((key, cell._replace(marks=marks)))
    for key, cell in in_stable_order(marked):
        m.state.put_cell(key, cell)


def _is_hit(m: Machine, cell: Cell, storage: int, written: Region) -> bool:
    """Whether what a holder holds may sit on a part of a storage that is written."""
    for ref in cell.refs:
        for held in m.state.object(ref).shares:
            if held.storage == storage and (not written or overlap(written, held.region) is not Fact.NO):
                return True
    return False


def _is_all_of(m: Machine, cell: Cell, share: Share) -> bool:
    """Whether what a holder holds surely sits on all of the storage that a share sits on, and on nothing else."""
    held = m.state.object(cell.refs[0]).shares if len(cell.refs) == 1 else ()
    alone = held[0] if len(held) == 1 else None
    return alone is not None and alone.storage == share.storage and _is_whole(alone)


def _is_whole(share: Share) -> bool:
    """Whether an object surely sits on all of a storage: as its owner, or as `.data` or `detach()` of that."""
    direct = share.how is How.OWN or (share.how in (How.DATA, How.DETACH) and share.of | 1 == share.storage | 1)
    return direct and not share.region and share.sure and not share.when


def _is_of_earlier_turn(m: Machine, key: Slot, cell: Cell, around: tuple[int, ...], write: int) -> bool:
    """Whether what a container has had put in behind a write was put there by the loop around that (the innermost of
    `around`), on earlier turns: each turn takes out another parameter, or another module that it writes. If a loop
    around that comes round, it has to begin the container anew."""
    if uses.loops_around(m, cell.site) != around:
        return False
    made = m.state.object(key[0]).site
    outer = around[: -turns.nested(m, around)]
    anew = not outer or (made >= 0 and uses.loops_around(m, made)[: len(outer)] == outer)
    if not anew or not cell.refs:
        return False
    return all(_is_earlier_element(m, ref, around) for ref in cell.refs) or _is_of_own_element(m, cell, write)


def _is_of_own_element(m: Machine, cell: Cell, write: int) -> bool:
    """Whether a loop writes a part of what it takes out, and each element has a part of its own: what stands in a
    container is of several. One that all elements were given is one memory, which each turn writes."""
    shares = [share for ref in cell.refs for share in m.state.object(ref).shares]
    return len({share.storage for share in shares if not share.region}) > 1 and turns.is_on_element(m, write)


def _is_earlier_element(m: Machine, ref: int, around: tuple[int, ...]) -> bool:
    """Whether an object stands for what the earlier turns of the innermost loop have taken out of a module."""
    obj = m.state.object(ref)
    regions = [share.region for share in obj.shares]
    each = bool(regions) and all(region[-1:] and region[-1].kind == "each" for region in regions)
    return bool(ref & 1) and each and uses.loops_around(m, obj.site) == around


def _is_let_go(m: Machine, ref: int) -> bool:
    """Whether an object was made here, to hold others, and what held it holds it no more: nobody will look into it.

    On the next turn of a loop its name may stand for it again, but that is what it was when the loop began.
    """
    obj = m.state.object(ref)
    if obj.kind not in CONTAINERS or obj.owner not in ("", LOCAL):
        return False
    held = m.state.holders.get(ref, ())
    return bool(held) and not any(ref in m.state.refs_of(key) for key in held)


def _is_tied(m: Machine, key: Key, root: Slot) -> bool:
    """Whether two holders of the same are fields of modules that hold one parameter, which is what tying is:
    `b.weight = a.weight`."""
    if not isinstance(key, tuple):
        return False
    modules = all(m.state.object(ref).kind is Kind.MODULE for ref, _ in (key, root))
    return modules and all(m.state.object(ref).kind is Kind.PARAMETER for ref in m.state.refs_of(key))


def spoil_saved(
    m: Machine,
    share: Share,
    site: int,
    *,
    certain: bool,
    statistics: bool = False,
    start: turns.Started | None = None,
    by_field: bool = False,
) -> None:
    """What backward needs, once it has been saved and until it has been used, knows who wrote it.

    Of a network as a whole it needs the parameters, and not the statistics that its layers write; `by_field` is whether
    what is written is no parameter, so that only what keeps that very field needs it.
    """
    for saved in m.state.object(share.storage).saved:
        if statistics and saved in m.needed.saves and m.needed.saves[saved].what in ("network", "buffer"):
            continue
        if by_field and (saved & ~EARLIER, share.storage | 1) not in m.needed.fields:
            continue
        if start is not None and saved not in start.saved:
            continue
        if saved in m.needed.saves and turns.is_of_other_element(m, site, m.needed.saves[saved].site):
            continue
        key = f"@spoilt{saved}"
        spoilt = m.state.get(key)
        field = m.needed.fields.get((saved & ~EARLIER, share.storage | 1))
        if field is not None and overlap(field, share.region) is Fact.NO:
            continue
        if (
            saved in m.needed.saves
            and m.needed.saves[saved].what == "network"
            and not called_parts.needs(m, saved, share)
        ):
            continue
        if isinstance(spoilt, frozenset):
            m.state.put(key, spoilt | {site})
            if m.state.get(TRAINING) is False:
                m.needed.in_evaluation.add(site)
            if certain:
                # What a loop's earlier turn has saved goes by another number: see `grads`.
                m.needed.met.add((saved & ~EARLIER, site))
