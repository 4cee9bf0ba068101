"""Putting things into containers, one after the other: the same memory again, overwritten in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Collected, FieldCollected
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    CONTAINERS,
    FIELD,
    LOCAL,
    PICKED,
    Cell,
    Fact,
    How,
    Kind,
    Mark,
    Share,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.program import whichever
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.storages import keeping, reading, repeating, slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 2
"""How deep an item is looked into: `traj.append((obs, action))`."""
PARTS = frozenset({How.PARAMETERS, How.STATE})
FOR_ALL = frozenset({"step", "load"})
"""Writes of all parts at once. Of parts that a loop visits one by one, the next turn's is another one."""


def put(m: Machine, slot: Slot, item: Value, site: int, form: str) -> None:
    """An item joins what a slot holds, which stands for many elements."""
    if form == "append":
        slots.moved_from_end(m, slot[0])
    before = m.state.cell(slot)
    if before is not None and (before.marks or _has_containers(m, before)):
        note_again(m, slot, before, item, site, form)
    if form != "yield":
        note_field(m, slot, item, site)
        repeating.note_put_again(m, before, item, site, m.state.object(slot[0]).text)
    slots.bind_slot(m, slot, item, site, weak=True)


def note_field(m: Machine, slot: Slot, item: Value, site: int) -> None:
    """A field of `self`, or what sits on its memory, is put into a container that another field of it holds.

    On its own, or in a tuple, a dictionary or a record.
    """
    container = m.state.object(slot[0])
    if container.owner != FIELD or not m.fields.initial:
        return
    fields = {m.number("slot", key): key for key in m.fields.initial.values()}
    for leaf in _parts_of(m, Cell(item.refs, item.kind), MAX_DEPTH):
        obj = m.state.object(leaf)
        # What a module has in a field is a part of it, too.
        own = [share for share in obj.shares if m.state.object(share.storage).owner != "self"]
        # Of what nobody knows yet, a write behind it may say what it is.
        known = obj.kind in BUFFERS
        if not (known or obj.kind is Kind.UNKNOWN) or len(own) != 1 or not own[0].sure or own[0].when:
            continue
        key = fields.get(own[0].storage)
        if key is None or slot[0] in m.state.refs_of(key):
            continue
        chain = [link for _, link in reading.chain_of(m, leaf, own[0]) if link.how is not None]
        if not {link.how for link in chain} <= _SAME_MEMORY:
            continue
        itself = leaf == own[0].storage
        lasting = known and not keeping.is_reset(m, key[1][1:], updates=False) and (itself or not _sets(m, key[1][1:]))
        whole = not own[0].region and not {link.how for link in chain} & {How.INDEX, How.ROW}
        m.fact(
            FieldCollected(
                site,
                naming.key_text(m, key),
                container.text,
                m.unit.name,
                lasting,
                obj.sure if known else Sure.LIKELY,
                whole,
                tuple(reversed(chain)),
                uses.own_callers(m),
                own[0].storage,
                dated=_is_dated(m, item),
                anew=_sets(m, key[1][1:]),
            )
        )
        return


def _is_dated(m: Machine, item: Value) -> bool:
    """Whether a number is put in with it: `(self.frames, self.total)` is meant to be how things are at that time."""
    cells = (m.state.cell(slot) for ref in item.refs for slot in m.state.slot_names(ref))
    packed = all(m.state.object(ref).kind in CONTAINERS for ref in item.refs)
    return packed and any(cell is not None and cell.kind is Kind.NUMBER for cell in cells)


def settled(m: Machine, fact: FieldCollected) -> FieldCollected:
    """The same with the writes behind it, whatever other methods set the field to: this call has put that in."""
    writes = [write for write in m.writes.values() if write.kind in BUFFERS and fact.storage in write.storages]
    sites = [write.site for write in writes if write.site > fact.site]
    after = frozenset(site for site in sites if not m.index.arms.are_apart(fact.site, site))
    return fact._replace(after=after, lasting=fact.lasting and not _goes_on_with_another(m, fact))


def _goes_on_with_another(m: Machine, fact: FieldCollected) -> bool:
    """Whether the unit, when it has put a field into a container, always sets the field to memory of its own: the next
    call writes, and puts in, that. `self.all_scores.append(self.scores); self.scores = best`"""
    around = uses.loops_around(m, fact.site)
    for store in m.index.stores.get(fact.field.rpartition(".")[2], ()):
        always = store.site not in m.index.on_arms and uses.loops_around(m, store.site) == around
        if always and store.site > fact.site and not store.augmented and uses.is_self(m, store.base):
            objects = [m.state.object(ref) for ref in m.value(store.value).refs]
            return bool(objects) and all(share.storage != fact.storage for obj in objects for share in obj.shares)
    return False


_SAME_MEMORY = frozenset({How.VIEW, How.INDEX, How.ROW, How.DETACH, How.DATA, How.NUMPY, How.FROM_NUMPY})


def _sets(m: Machine, name: str) -> bool:
    """Whether the unit sets a field of that name anew."""
    return any(event.name == name and not event.augmented for event in m.index.of(t.StoreAttribute))


def _parts_of(m: Machine, cell: Cell, depth: int) -> Iterator[int]:
    """The only object that a cell holds, or, if that is a container or record, what each of its slots holds."""
    if len(cell.refs) != 1:
        return
    if m.state.object(cell.refs[0]).kind not in CONTAINERS | {Kind.INSTANCE}:
        yield cell.refs[0]
    elif depth:
        for name in m.state.slot_names(cell.refs[0]):
            inner = m.state.cell(name)
            if inner is not None and inner.site >= 0:
                yield from _parts_of(m, inner, depth - 1)


def hand_out(m: Machine, item: Value, site: int) -> None:
    """A generator hands out an item: whoever calls it may collect them."""
    put(m, (m.number("yielded", site), ANY_ELEMENT), item, site, "yield")


def _has_containers(m: Machine, cell: Cell) -> bool:
    return any(m.state.object(ref).kind in CONTAINERS | {Kind.INSTANCE} for ref in cell.refs)


def note_again(m: Machine, slot: Slot, before: Cell, item: Value, site: int, form: str) -> None:
    """The item sits on memory that the slot holds already, and that was overwritten since it was put there."""
    held: dict[int, list[tuple[Cell, Share]]] = {}
    # Where an earlier turn's object is known, the newest stands for a path on which none was made in this turn,
    # unless it was made before this loop began.
    for leaf in _leaves(m, _of_earlier_turns(m, before, site), MAX_DEPTH):
        cell = _of_earlier_turns(m, leaf, site)
        for share in _shares(m, cell):
            held.setdefault(share.storage, []).append((cell, share))
    now = Cell(item.refs, item.kind, None, item.marks, site, item.root)
    for cell in _leaves(m, now, MAX_DEPTH) if held else ():
        if len({ref | 1 for ref in cell.refs}) != 1:
            continue
        for share in _shares(m, cell):
            for earlier, sat_on in held.get(share.storage, ()):
                mark = _overwritten(m, slot, earlier, sat_on, cell, share, site)
                if mark is not None and _note(m, slot, cell, share, mark, earlier.site, site, form):
                    return
    for cell in _leaves(m, now, MAX_DEPTH):
        hit = whichever.overwritten(m, before, cell)
        if hit is not None and _note(m, slot, cell, *hit, before.site, site, form):
            return


def _of_earlier_turns(m: Machine, cell: Cell, site: int) -> Cell:
    known = (ref for ref in cell.refs if ref & 1 or ref | 1 not in cell.refs or _is_made_around(m, ref, site))
    return cell._replace(refs=tuple(known))


def _is_made_around(m: Machine, ref: int, site: int) -> bool:
    """Whether every turn of a loop makes an object anew, and a loop inside of it goes on putting that in at `site`."""
    made = m.state.object(ref).site
    if made < 0 or uses.on_some_paths(m, made):
        return False
    outer, inner = uses.loops_around(m, made), uses.loops_around(m, site)
    return len(outer) < len(inner) and inner[: len(outer)] == outer


def _leaves(m: Machine, cell: Cell, depth: int, seen: dict[int, int] | None = None) -> Iterator[Cell]:
    """A cell, or, for the containers in it, what they hold. `seen` has those that were looked into, and how deep: lists
    of lists can hold one another in many ways."""
    seen = {} if seen is None else seen
    kinds = {ref: m.state.object(ref).kind for ref in cell.refs}
    plain = tuple(ref for ref, kind in kinds.items() if kind in BUFFERS or kind is Kind.STATE_DICT)
    if plain and Kind.UNKNOWN not in kinds.values():
        # What may be something unknown as well may be something new.
        yield cell._replace(refs=plain)
    if depth:
        for ref in cell.refs:
            record = m.state.object(ref).kind is Kind.INSTANCE
            if seen.get(ref, 0) < depth and (record or m.state.object(ref).kind in CONTAINERS):
                seen[ref] = depth
                for name in m.state.slot_names(ref):
                    inner = m.state.cell(name)
                    if inner is not None and inner.site >= 0 and name[1].startswith("." if record else "["):
                        yield from _leaves(m, inner, depth - 1, seen)


def _shares(m: Machine, cell: Cell) -> Iterator[Share]:
    """The storages that what a cell holds surely sits on, or unless a conversion has copied it; those of a loop's
    earlier turns are several."""
    for ref in cell.refs:
        for share in m.state.object(ref).shares:
            if share.storage & 1 == 0 and ((share.sure and not share.when) or _condition(m, ref, share)):
                yield share


def _condition(m: Machine, ref: int, share: Share) -> str:
    """When an object sits on a storage, if that hangs on a conversion."""
    return reading.condition_of(tuple(link for _, link in reading.chain_of(m, ref, share)))


def _overwritten(
    m: Machine, slot: Slot, earlier: Cell, sat_on: Share, cell: Cell, share: Share, site: int
) -> Mark | None:
    """The write that hit what was put in a slot earlier, and not only what is put in now, at `site`."""
    values = all(m.state.object(ref).kind is not Kind.PARAMETER for ref in cell.refs)
    if overlap(sat_on.region, share.region) is not Fact.YES and not (values and _are_alike(sat_on, share)):
        return None
    regions = (*sat_on.region, *share.region)
    each = any(part.kind == "each" for part in regions)
    # A field of a module may be another tensor by now; what it owned is its own. An optimizer moves it where it is.
    field = any(part.kind == "field" for part in regions)
    once_more = frozenset(_between_turns(m, slot, earlier, cell, site))
    for mark in sorted((earlier.marks - cell.marks) | once_more):
        write = m.writes.get(mark.write)
        if write is None or mark.own or mark.late or write.form in ("assign", "gradient"):
            continue
        if share.storage not in m.hits.certain_storages[mark.write]:
            continue
        if mark.write == share.site and any(PICKED in m.state.object(ref).flags for ref in cell.refs):
            # What each call writes is what it returns, and the next is asked for another part.
            continue
        if (each and write.form not in FOR_ALL) or (field and write.form != "step"):
            continue
        if _is_parted(m, earlier, share, mark):
            continue
        if overlap(m.hits.regions[mark.write].get(share.storage | 1, ()), sat_on.region) is Fact.YES:
            return mark
    return None


def _are_alike(one: Share, other: Share) -> bool:
    """Whether two parts are elements that loops come upon in the same place: what one turn puts in of each, the next
    puts in of each."""
    pairs = zip(one.region, other.region, strict=False)
    return len(one.region) == len(other.region) and all(a == b or a.kind == b.kind == "each" for a, b in pairs)


def _between_turns(m: Machine, slot: Slot, earlier: Cell, cell: Cell, site: int) -> Iterator[Mark]:
    """The steps of optimizers between two turns of a loop that put one and the same object into a container.

    Such an object brings along the marks of all writes before it is put in, that of the last turn among them. Of a loop
    that makes the container anew at each turn, nothing of an earlier turn is in there.
    """
    if cell.refs != earlier.refs or m.state.refs_of(slot) != cell.refs:
        # In a record, beside a copy of it, a parameter says whose copy that is.
        return
    anew = uses.loops_around(m, m.state.object(slot[0]).site)
    lasting = {loop for loop in uses.loops_around(m, site) if loop not in anew}
    for mark in earlier.marks & cell.marks:
        write = m.writes.get(mark.write)
        if write is not None and write.form == "step" and not lasting.isdisjoint(uses.loops_around(m, write.site)):
            yield mark


def _is_parted(m: Machine, earlier: Cell, share: Share, mark: Mark) -> bool:
    """Whether its source was put on other memory, by `p.data = ...`, after something was put in and before a write."""

    def turn(site: int) -> tuple[bool, int]:
        return site < earlier.site, site

    return any(
        m.writes[other.write].form == "assign"
        and share.storage in m.hits.certain_storages[other.write]
        and turn(other.write) < turn(mark.write)
        for other in earlier.marks
    )


def _note(m: Machine, slot: Slot, cell: Cell, share: Share, mark: Mark, first: int, site: int, form: str) -> bool:
    obj = m.state.object(cell.refs[0])
    chain = reading.chain_of(m, cell.refs[0], share)
    if any(link.how in PARTS for _, link in chain) and m.writes[mark.write].form not in FOR_ALL:
        return False
    container = m.state.object(slot[0])
    m.fact(
        Collected(
            site=site,
            name=naming.key_text(m, cell.origin) or obj.text,
            source=m.state.object(share.storage).text,
            container=container.text,
            outside=form == "yield" or container.owner not in ("", LOCAL),
            write=mark.write,
            links=tuple(link for _, link in chain if link.how is not None),
            storage=share.storage | 1,
            put=frozenset({site, first, cell.site, *(link.site for _, link in chain)}) - {-1},
            form=form,
            kind=obj.kind,
            sure=obj.sure,
            when="" if share.sure else reading.condition_of(tuple(link for _, link in chain)),
        )
    )
    return True
