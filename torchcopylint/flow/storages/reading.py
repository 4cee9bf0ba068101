"""Reading the content of a value, and the story of how it came to be overwritten.

4. Reading the content of a value that carries marks is a fact: it was read after that write.
5. A write to a storage that backward keeps spoils what was saved; reaching backward with it is a fact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Link, ReadAfter, ReadAfterCut, Write
from torchcopylint.flow.graphs import stale_views
from torchcopylint.flow.model import (
    CONTAINERS,
    FIELD,
    LOCAL,
    Fact,
    How,
    Key,
    Kind,
    Mark,
    Object,
    Region,
    Share,
    Value,
)
from torchcopylint.flow.regions import covers, overlap
from torchcopylint.flow.storages import kept_while_trained, read_apart, transfers, visiting
from torchcopylint.flow.tapes import alternatives, first_turns, over_turns, rectified, uses
from torchcopylint.flow.tapes.activations import FORM
from torchcopylint.flow.values import memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

Chain: TypeAlias = "tuple[tuple[int, Link], ...]"
"""Objects from an alias up to the owner of its storage, each with the link that it came by. Numbers are those of the
older object of the site, so that chains remain comparable when a loop has gone on."""
MAX_CHAIN = 12
VIEWS = frozenset({How.VIEW, How.INDEX, How.ROW})
PASSED = "passed"
"""What reads the entries of something that is passed, of which nobody knows what it is: who gets it may look at any."""
MAX_DEPTH = 3
"""How deep a read of a container looks into its elements."""


def read(m: Machine, value: Value, site: int, consumer: str, target: str = "") -> None:
    """The content of a value is looked at (rule 4), its elements included if it is a container."""
    if value.marks:
        _report_reads(m, value, naming.key_text(m, value.root), site, consumer, target, whole=False)
        kept_while_trained.note_use(m, value, site, consumer)
    for ref in value.refs:
        kind = m.state.object(ref).kind
        looks = kind in CONTAINERS
        looks = looks or (consumer == "return" and (kind is Kind.UNKNOWN or _has_elements(m, ref, consumer)))
        if (
            not looks
            and consumer == "argument"
            and kind is Kind.UNKNOWN
            and _holds_marks(m, ref, PASSED, MAX_DEPTH, {})
        ):
            _read_elements(m, ref, site, PASSED, target, MAX_DEPTH, value.root)
        if looks and _holds_marks(m, ref, consumer, MAX_DEPTH, {}):
            _read_elements(m, ref, site, consumer, target, MAX_DEPTH, value.root)


def _holds_marks(m: Machine, ref: int, consumer: str, depth: int, seen: dict[int, int]) -> bool:
    """Whether something that was written stands in a container, so deep that a read looks at it. `seen` has what was
    looked into, and how deep: containers of containers hold one another in many ways."""
    seen[ref] = depth
    for name in m.state.slots.get(ref, ()):
        cell = m.state.cell((ref, name))
        if cell is None:
            continue
        if cell.marks:
            return True
        for inner in cell.refs if depth else ():
            deeper = seen.get(inner, -1) < depth - 1 and inner != ref and _has_elements(m, inner, consumer)
            if deeper and _holds_marks(m, inner, consumer, depth - 1, seen):
                return True
    return False


def _read_elements(
    m: Machine, ref: int, site: int, consumer: str, target: str, depth: int, holder: Key | None = None
) -> None:
    """`holder` is the place of the container itself."""
    names = m.state.slot_names(ref)
    if names and m.state.object(ref).kind is Kind.UNKNOWN:
        # What has an item by name is a dictionary, or a record.
        names = [slot for slot in names if slot[1].startswith("['")]
    for slot in names:
        cell = m.state.cell(slot)
        if cell is None:
            continue
        if cell.marks:
            place = naming.place_of(m, slot, cell)
            value = Value(cell.refs, cell.kind, None, cell.marks, place)
            text = naming.key_text(m, place)
            _report_reads(m, value, text, site, consumer, target, whole=True, holder=holder)
        if depth:
            for inner in cell.refs:
                if inner != ref and _has_elements(m, inner, consumer):
                    _read_elements(m, inner, site, consumer, target, depth - 1, naming.place_of(m, slot, cell))


def _has_elements(m: Machine, ref: int, consumer: str) -> bool:
    """Whether who looks at an object looks at what is in it: a container, or an object that is handed out by the unit
    that has made it, or has taken it out of a list in a field."""
    obj = m.state.object(ref)
    whole = obj.owner in ("", LOCAL) or (obj.owner == FIELD and obj.text.endswith("]"))
    return obj.kind in CONTAINERS or (obj.kind is Kind.INSTANCE and consumer == "return" and whole)


def _report_reads(
    m: Machine,
    value: Value,
    name: str,
    site: int,
    consumer: str,
    target: str,
    *,
    whole: bool,
    holder: Key | None = None,
) -> None:
    """`whole` is whether a value stands for all the elements of a container: one of them that was written suffices.

    `holder` is the place that may have been put aside for later turns of a loop: that of the container, or its own.
    """
    for mark in sorted(value.marks):
        if mark.write in m.shown.cuts:
            _report_cut(m, value, name, mark, site, consumer)
            continue
        if mark.write in m.holding.flights and transfers.is_read(m, value, name, mark, site, consumer, target):
            continue
        write = m.writes.get(mark.write)
        if write is None or (not mark.own and read_apart.written_through(m, value, mark)):
            continue
        if consumer == "load_state_dict" and (mark.write == site or read_apart.is_filled(m, value, write)):
            # A call loads what it is given before it has written that.
            continue
        if write.form == FORM and rectified.is_rectified(m, write.op, site, value.refs):
            continue
        between = _bound_between(m, value.root, write.site, site)
        for ref in value.refs:
            if between and ref & 1 == 0 and ref | 1 in value.refs and _is_element(value.root):
                # The turn's own object was written first and put in then; those of earlier turns were in already.
                continue
            if len(value.refs) > 1 and (
                read_apart.is_made_later(m, ref, write.site)
                or (between and read_apart.is_made_since(m, ref, value.root, write.site, site))
            ):
                continue
            fact = _read_after(m, value, ref, mark, write, site, name, whole)
            if fact is not None and not read_apart.are_apart(m, fact, site):
                window = m.state.object(ref).type == memory.WINDOW
                if not mark.own and (window or naming.is_asked(m, name, write.root, fact.links)):
                    # Who looks through a window wants what is there by then.
                    fact = fact._replace(asked=True)
                if fact.conditional and between and not _kept_from_before(m, value.root, mark):
                    fact = fact._replace(conditional=False)
                put = uses.put_at(m, site) if fact.is_parameters_value(copied=target == "clone") else -1
                if write.form == "step" and not mark.own:
                    aside = kept_while_trained.is_put_aside(m, holder or value.root, mark.write, site)
                    fact = fact._replace(aside=aside)
                m.fact(fact._replace(site=site, consumer=consumer, target=target, put=put))
                if consumer == "operand" and not mark.own and fact.certain:
                    stale_views.note_use(m, ref, fact.name, write, site)
                if fact.kind is not Kind.STATE_DICT:
                    # Of snapshots, each was taken at a place of its own, all of which are to be put right.
                    break


def _report_cut(m: Machine, value: Value, name: str, mark: Mark, site: int, consumer: str) -> None:
    if m.shown.cuts[mark.write]:
        shared = _naming(m, mark.write, value.root)
        m.fact(ReadAfterCut(mark.write, name, mark.own, site, consumer, tuple(shared) if not mark.own else ()))


def _read_after(
    m: Machine, value: Value, ref: int, mark: Mark, write: Write, site: int, name: str, whole: bool
) -> ReadAfter | None:
    obj = m.state.object(ref)
    if obj.kind in (Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE):
        # Their parameters are read one by one, or by calling them, which is what they were written for.
        return None
    written = {storage | 1 for storage in write.storages}
    share = _written_share(obj, written)
    if share is None:
        return None
    chain = held_part(m, value.root, chain_of(m, ref, share))
    certain = share.storage in m.hits.certain_storages[mark.write]
    below_written, below_read = relation(m, write, share.storage | 1, chain, value.root)
    at_first = _hit_at_first(m, mark, share.storage)
    if at_first and not (certain and all(link.sure for link in below_written)):
        certain = True
        below_written, below_read = relation(m, write, share.storage | 1, chain, value.root, at_first=True)
    derived = mark.late and not _kept_from_before(m, value.root, mark)
    taken = _taken_of_whichever(m, value, write, share, chain, site)
    below_written, below_read = _made_sure(below_written, taken), () if derived else _made_sure(below_read, taken)
    region = m.hits.regions[mark.write].get(share.storage | 1, ())
    met = overlap(region, share.region) is Fact.YES or over_turns.are_hit(m, region, mark.write, share.region, site)
    met = met and not (_is_of_earlier_turn(m, value, mark) and over_turns.is_another(m, region, mark.write))
    there = (certain or taken >= 0) and met and _is_one(ref, obj, share)
    hit = {other for other in value.refs if _is_hit(m, other, share, region)}
    each = taken >= 0 or (whole and _is_element(value.root)) or len(hit) == len(value.refs)
    each = each or alternatives.are_all_hit(m, value, written) or visiting.goes_through_all(m, value, site)
    of_turns = first_turns.held(m, value, mark.write, site) if not each else None
    if of_turns is not None and at_first and of_turns.is_hit_at_first(hit, mark.write, site):
        each, below_written, below_read = True, of_turns.named_before(below_written), of_turns.named_before(below_read)
    elif of_turns is not None:
        each = of_turns.is_hit_later(hit, mark.write, site)
    each = each or alternatives.are_bound_on_arms(m, value, hit, mark.write)
    meets = there and each
    kept = meets and not derived and value.root is not None
    partly = there and not each and _copied_otherwise(m, value, share.storage)
    one = value.refs == (ref,) and not below_written and _is_by_name(share, below_read)
    linked = (share.sure or one or taken >= 0) and all(link.sure for link in (*below_written, *below_read))
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
        certain=meets and linked,
        partly=partly and linked and _cloned_otherwise(m, value, share.storage, chain),
        sure=obj.sure,
        kind=obj.kind,
        flags=obj.flags,
        place=(share.storage | 1, share.region),
        bound=_put_aside(m, ref, mark) if _hits_gradient(write) else _bound(m, value.root),
        conditional=kept and _but_for_a_condition(below_written, below_read),
        replaced=met and covers(region, share.region),
        second=len(value.refs) == 1 and not (meets and linked) and _is_second(m, value.root, write, below_read),
    )


def _is_of_earlier_turn(m: Machine, value: Value, mark: Mark) -> bool:
    """Whether what a name holds has been written by that name when it held something else: on an earlier turn."""
    return not mark.own and value.root is not None and value.root == m.hits.root_keys.get(mark.write)


def _taken_of_whichever(m: Machine, value: Value, write: Write, share: Share, chain: Chain, site: int) -> int:
    """Where a view was made of the one of several things that its base is, if one of the two is written, and the other
    one read; -1 if that is not so."""
    if len(value.refs) == 1 and share.sure:
        return -1
    if len(value.refs) > 1:
        held = {one.storage for ref in value.refs for one in m.state.object(ref).shares}
        links = m.hits.chains[write.site].get(share.storage | 1, ())
        return alternatives.view_of_whichever(m, links, value.root, held, write.site, site)
    return alternatives.view_of_whichever(m, chain, write.root, set(write.storages), write.site, site)


def _made_sure(links: tuple[Link, ...], site: int) -> tuple[Link, ...]:
    return tuple(link._replace(sure=True) if link.site == site else link for link in links)


def _written_share(obj: Object, written: set[int]) -> Share | None:
    """How an object sits on what was written: surely, if it does so somewhere. What a conversion has returned is
    written whether it has copied or not."""
    sharing = [share for share in obj.shares if share.storage | 1 in written]
    return next((share for share in sharing if share.sure), next(iter(sharing), None))


def _is_by_name(share: Share, below_read: tuple[Link, ...]) -> bool:
    """Whether what is read is a second name for what a conversion has returned, whether that has copied or not."""
    return share.when != "" and all(link.how is None for link in below_read)


def _is_second(m: Machine, root: Key | None, write: Write, links: tuple[Link, ...]) -> bool:
    """Whether of the name that is read and the one that was written one is a second name for the other."""
    if not isinstance(root, str) or len(links) != 1 or not links[0].sure:
        return False
    names = {root, write.root}
    both = names == {links[0].result, links[0].source} and len(names) == 2
    return both and uses.is_second_name(m, links[0].result, links[0].source, links[0].site)


def _is_one(ref: int, obj: Object, share: Share) -> bool:
    """Whether a storage is the newest of its site, and an object does not sit on older ones of that site as well."""
    return share.storage & 1 == 0 and (ref & 1 == 1 or not any(s.storage == share.storage + 1 for s in obj.shares))


def _hit_at_first(m: Machine, mark: Mark, storage: int) -> bool:
    """Whether a write in a loop surely hit a storage on the first turn, which there is only one of: `adv = x.detach()`
    before an attack's loop, and something of its own on later turns."""
    hit = m.hits.in_first_turn.get(mark.write)
    return hit is not None and storage in hit[0] and m.state.get(storage | 1) is None


def _copied_otherwise(m: Machine, value: Value, storage: int) -> bool:
    """Whether what a place holds on the other paths is a copy: not one of several things that are all shared."""
    if _is_element(value.root):
        return False
    others = [m.state.object(ref) for ref in value.refs if not sits_on(m, ref, storage)]
    return all(share.how is How.OWN for obj in others for share in obj.shares)


def _cloned_otherwise(m: Machine, value: Value, storage: int, chain: Chain) -> bool:
    """Whether what a name holds is the very object that was written, and on the other paths a clone of it.

    What is something else there may be this object on purpose, and so may what one test chooses between:
    `x.clone() if keep else x`.
    """
    if any(link.how is not None for _, link in chain):
        return True
    name = m.state.object(storage).text
    others = [m.state.object(ref).site for ref in value.refs if not sits_on(m, ref, storage)]
    made = [m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None for site in others]
    return all(
        isinstance(event, t.Invoke)
        and event.name == "clone"
        and naming.text_of(m, event.base) == name
        and not alternatives.are_chosen(m, event.out, event.site)
        for event in made
    )


def condition_of(links: tuple[Link, ...]) -> str:
    """On what the topmost conditional copy of a chain depends, if all above it is sure; else an empty text.

    Links lead from an alias up. What is below a conditional copy is not sure for that reason alone.
    """
    for link in reversed(links):
        if link.when.startswith("when "):
            return link.when
        if not link.sure:
            return ""
    return ""


def _bound_between(m: Machine, root: Key | None, write: int, site: int) -> bool:
    """Whether a place got its object after the write and is read after that: it holds what was made of the written."""
    cell = m.state.cell(root) if root is not None else None
    return cell is not None and write < cell.site < site


def _but_for_a_condition(*sides: tuple[Link, ...]) -> bool:
    conditions = [condition_of(side) for side in sides]
    return any(conditions) and all(
        condition or all(link.sure for link in side) for side, condition in zip(sides, conditions, strict=True)
    )


def _hits_gradient(write: Write) -> bool:
    return write.form == "gradient" or write.root.endswith(".grad")


def _put_aside(m: Machine, ref: int, mark: Mark) -> int:
    """Where an object that a write has hit was first bound to anything but the `.grad` that it is.

    A view that an expression takes of it on the way is bound nowhere: then what it was taken of counts.
    """
    for _ in range(MAX_CHAIN):
        sites = [
            cell.site
            for key in m.state.holders.get(ref, ())
            if (cell := m.state.cell(key)) is not None
            and ref in cell.refs
            and {mark, mark._replace(late=False)} & cell.marks
            and not (isinstance(key, tuple) and key[1] == ".grad")
        ]
        bound = min((site for site in sites if site >= 0), default=-1)
        above = sorted({share.of for share in m.state.object(ref).shares if share.how in VIEWS})
        if bound >= 0 or len(above) != 1:
            return bound
        ref = above[0]
    return -1


def _bound(m: Machine, root: Key | None) -> int:
    cell = m.state.cell(root) if root is not None else None
    return cell.site if cell is not None else -1


def _is_element(root: Key | None) -> bool:
    return isinstance(root, tuple) and root[1].startswith("[")


def sits_on(m: Machine, ref: int, storage: int) -> bool:
    """Whether an object sits on a storage, surely or not."""
    return any(share.storage == storage for share in m.state.object(ref).shares)


def _is_hit(m: Machine, ref: int, share: Share, region: Region) -> bool:
    """Whether an object sits where another does, on a storage of which a region was written: not on other parts."""
    sharing = [s for s in m.state.object(ref).shares if s.storage == share.storage]
    return any(s == share or overlap(region, s.region) is Fact.YES for s in sharing)


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


def relation(
    m: Machine, write: Write, storage: int, reader: Chain, root: Key | None, *, at_first: bool = False
) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """How the written and the read came to share a storage: the links below their nearest common object, on either
    side. `at_first` is whether that is asked of the first turn of a loop."""
    chains = m.hits.in_first_turn[write.site][1] if at_first else m.hits.chains.get(write.site, {})
    ups = {number for number, _ in reader}
    below_written: list[Link] = []
    common = None
    for number, link in chains.get(storage, ()):
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
    cell = m.state.cell(root) if root is not None else None
    bound = [m.hits.roots[write]] if write in m.hits.roots else []
    if cell is not None:
        bound.append((cell.site, naming.key_text(m, root)))
    known = [(site, name) for site, name in bound if site >= 0]
    if not known:
        return []
    site, name = max(known)
    return [Link(None, site, min(bound)[1], name)]
