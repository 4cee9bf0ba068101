"""Whether a read that looks as if it came upon what was written really does: by the turns of loops, by the conditions
on the way, and by what is made anew in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ReadAfter, Write
from torchcopylint.flow.model import How, Key, Kind, Mark, Value
from torchcopylint.flow.tapes import begun_at_first, exclusion, replaced, turns, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def is_filled(m: Machine, value: Value, write: Write) -> bool:
    """Whether entries were put into a state dict: it is to be complete, and not to bring back what was.

    What writes the parameters otherwise than from a state dict may come behind the entries of a snapshot, and the
    entries have to come behind that.
    """
    refs = [ref for ref in value.refs if m.state.object(ref).kind is Kind.STATE_DICT]
    cells = [m.state.cell(slot) for ref in refs for slot in m.state.slot_names(ref)]
    return any(cell is not None and (write.form == "load" or cell.site > write.site) for cell in cells)


def are_apart(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether what is read at a site is, by time or place, not what the write of a fact has hit."""
    if _goes_on_anyway(m, fact, site) or _on_other_ways(m, fact, site) or _shared_last_of_all(m, fact, site):
        return True
    return _is_of_next_index(m, fact, site)


def _is_of_next_index(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether a loop reads a part by what it counts with, and writes that part afterwards: on the next turn it reads
    the next one; so it does on an arm that no turn takes along with the write. Where a loop around it comes round to
    the same, what is read has to be made anew there."""
    around = uses.loops_around(m, fact.write)
    if not around or uses.loops_around(m, site)[: len(around)] != around:
        return False
    if site > fact.write and not _turns_back(m, fact.write, site) and not m.index.arms.are_apart(fact.write, site):
        return False
    parts = zip(m.hits.regions[fact.write].get(fact.place[0], ()), fact.place[1], strict=False)
    names = [str(one.value) for one, other in parts if one == other and one.kind == "name"]
    if not any(_counts(m, name, around) for name in names):
        return False
    outer = around[:-1]
    if fact.own and outer:
        # What it is bound to there may be the same memory again: `start = upper`.
        return False
    return not outer or (fact.bound >= 0 and uses.loops_around(m, fact.bound)[: len(outer)] == outer)


def _turns_back(m: Machine, write: int, site: int) -> bool:
    """Whether the arm of a condition with a write ends its turn of the loop, so that what is behind the condition is
    read on another one: `if few: mask[i] = False; continue`."""
    # Nearly no unit has such an arm.
    for branch in m.index.of(t.Branch) if m.index.of(t.Continue) else ():
        if branch.site >= 0 and not any(one.site == site for one in t.events((branch,))):
            for arm in branch.arms:
                if arm and isinstance(arm[-1], t.Continue) and any(one.site == write for one in t.events(arm)):
                    return True
    return False


def _counts(m: Machine, name: str, around: tuple[int, ...]) -> bool:
    """Whether the innermost of some loops binds a name to what it takes out on each turn, and nothing else in
    it does."""
    binds = [bind for bind in m.index.binds.get(name, ()) if around[-1] in uses.loops_around(m, bind.site)]
    inside = all(uses.loops_around(m, bind.site) == around for bind in binds)
    return bool(binds) and inside and all(uses.from_iteration(m, bind.value) for bind in binds)


def _on_other_ways(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether what is read at a site has come to share memory where a condition holds that does not hold there, or with
    another element than the one that was written."""
    # A loop may have found the same place under another index than is written there: the first is the last at first.
    texts = (naming.key_text(m, m.hits.root_keys.get(fact.write)), m.writes[fact.write].name)
    if any(_is_same_place(fact.name, text) for text in texts) or _are_two_entries(m, fact):
        return True
    shared = {fact.bound, *(link.site for link in fact.links)} - {-1}
    holder = fact.name.partition("[")[0].partition(".")[0]
    if any(turns.of_other_elements(m, fact.write, one, holder) for one in shared):
        return True
    if begun_at_first.is_of_earlier_turn(m, fact):
        return True
    taken = max((link.site for link in fact.links), default=-1)
    if taken >= 0 and replaced.by_first_turn(m, fact.name, taken, fact.write, site):
        return True
    if any(fact.write < one < site and exclusion.goes_with_flag(m, holder, one, site) for one in shared):
        return True
    mine = {link.site for link in fact.below_read}
    if any(fact.write < one < site and exclusion.goes_with(m, one, fact.write) for one in mine):
        # What is read has come to share it behind the write, on each turn that writes: `if kind in ("a", "b"): ...`.
        return True
    return any(exclusion.exclude(m, one, site) for one in shared)


_ENTRIES = frozenset({How.FIELD, How.INDEX, How.ROW})


def _are_two_entries(m: Machine, fact: ReadAfter) -> bool:
    """Whether what was written and what is read were taken out of one thing under two names that have nothing to do
    with one another: `net.cells[child]` and `net.cells[parent]` are meant to be two."""
    tops = [links[-1] for links in (fact.below_written, fact.below_read) if links]
    if len(tops) < 2 or tops[0].source != tops[1].source or not {top.how for top in tops} <= _ENTRIES:
        return False
    names = [top.result.removeprefix(f"{top.source}[").removesuffix("]") for top in tops]
    taken = all(name.isidentifier() and top.result != name for name, top in zip(names, tops, strict=True))
    if names[0] == names[1] or not taken:
        return False
    return not _is_bound_by(m, names[0], names[1]) and not _is_bound_by(m, names[1], names[0])


def _is_bound_by(m: Machine, name: str, other: str) -> bool:
    """Whether a name is somewhere bound to what is made of another one: `before = i`."""
    for bind in m.index.binds.get(name, ()):
        parts = uses.expression(m, bind.value, name)
        if any(isinstance(part, t.Load) and part.name == other for part in parts):
            return True
    return False


def _is_same_place(one: str, other: str) -> bool:
    """Whether two texts may be one place of one list or tuple, counted from either end: `state[8]` and `state[-1]`."""
    places = [text.removesuffix("]").rpartition("[") for text in (one, other)]
    if places[0][0] != places[1][0] or not all(index.lstrip("-").isdecimal() for _, _, index in places):
        return False
    return places[0][2].startswith("-") is not places[1][2].startswith("-")


def _shared_last_of_all(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether what is read behind a loop has come to share memory on the loop's last turn, after the write there."""
    shared, write = max((link.site for link in fact.links), default=-1), fact.write
    around = uses.loops_around(m, shared) if shared >= 0 else ()
    inside = bool(around) and uses.loops_around(m, write)[: len(around)] == around
    behind = inside and around[-1] not in uses.loops_around(m, site)
    name = fact.name.partition("[")[0].partition(".")[0]
    anew = [bind for bind in m.index.binds.get(name, ()) if uses.loops_around(m, bind.site) == around]
    made = any(isinstance(m.unit.definitions[bind.value], t.Make | t.Invoke) for bind in anew if bind.value >= 0)
    return behind and made and write < shared < site and exclusion.comes_at_last(m, shared)


def _goes_on_anyway(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether the two came to share on the last turn of a loop, and what is read is read on each turn: on the next one,
    which there is not, or behind the write, where other turns have two. Who makes them one at last, where
    `const = upper` is for that turn alone, has no use for the other one any more; `final = x` is read behind the
    loop."""
    return (site <= fact.write or _is_read_each_turn(m, fact, site)) and _shared_at_last(m, fact)


def _is_read_each_turn(m: Machine, fact: ReadAfter, site: int) -> bool:
    """Whether a read stands in the loop in which its name came to share, and is no matter of that turn alone."""
    shared = max((link.site for link in fact.links), default=-1)
    around = uses.loops_around(m, shared) if shared >= 0 else ()
    inside = bool(around) and uses.loops_around(m, site)[: len(around)] == around
    return inside and not exclusion.is_of_last_turn(m, site)


def _shared_at_last(m: Machine, fact: ReadAfter) -> bool:
    """Whether the two came to share on the last turn of a loop: there is no next one to read on."""
    sites = {link.site for link in fact.links if link.site >= 0}
    for event in m.index.of(t.Make) if sites else ():
        if event.site in sites:
            # What is put into a display has got its name before.
            sites |= {site for item in event.items for site in _named_at(m, item)}
    return any(exclusion.is_of_last_turn(m, site) for site in sites)


def _named_at(m: Machine, register: int) -> list[int]:
    """Where the name was bound that is loaded into a register, to any of the objects that are in it."""
    event = m.unit.definitions[register] if register >= 0 else None
    refs = {ref | 1 for ref in m.value(register).refs} if isinstance(event, t.Load) else set()
    binds = m.index.binds.get(event.name, ()) if isinstance(event, t.Load) else ()
    return [bind.site for bind in binds if bind.value >= 0 and refs & {ref | 1 for ref in m.value(bind.value).refs}]


def is_made_later(m: Machine, ref: int, write: int) -> bool:
    """Whether a state dict is taken behind a write, with no loop that comes back: another one that a name may hold."""
    obj, loops = m.state.object(ref), m.index.loops
    made = obj.site if obj.kind is Kind.STATE_DICT else -1
    return made > write >= 0 and made in loops and write in loops and not set(loops[made]) & set(loops[write])


def is_made_since(m: Machine, ref: int, root: Key | None, write: int, site: int) -> bool:
    """Whether a state dict is taken behind a write, on the very turn, for a place that each turn binds to another one:
    what the write has hit is what the place holds on another path, such as the model itself."""
    cell, obj = m.state.cell(root) if root is not None else None, m.state.object(ref)
    if cell is None or obj.kind is not Kind.STATE_DICT or ref & 1 or not uses.runs_before(m, cell.site, site):
        return False
    if isinstance(root, tuple):
        anew = write < m.state.object(root[0]).site
    else:
        bound = [use.register for use in uses.of_name(m, str(root)) if not use.loads and use.site == cell.site]
        parts = [part for register in bound for part in uses.expression(m, register, str(root))]
        anew = bool(bound) and not any(isinstance(part, t.Load) and part.name == root for part in parts)
    return anew and write < obj.site <= cell.site


def written_through(m: Machine, value: Value, mark: Mark) -> bool:
    """Whether a write went through the very name that is read, if only on another turn of a loop.

    Or through the same element of what another turn has made: of objects that are new at every turn, each has its own.
    """
    if mark._replace(own=True) not in value.marks:
        return False
    through = m.hits.root_keys.get(mark.write)
    if isinstance(value.root, str) or not isinstance(through, tuple) or not isinstance(value.root, tuple):
        return through == value.root and through is not None
    same = (through[0] | 1, through[1]) == (value.root[0] | 1, value.root[1])
    return same and all(_is_made_anew(m, ref) for ref in value.refs)


def _is_made_anew(m: Machine, ref: int) -> bool:
    """Whether an object is one of several that an operation has made, each with memory of its own."""
    obj = m.state.object(ref)
    own = all(share.storage | 1 == ref | 1 for share in obj.shares)
    return own and m.state.get(ref | 1) is not None and obj.site in m.index.computing
