"""Two names on one memory, or one object: what shows that sharing matters."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence
from torchcopylint.verify.observed import Change, Holder, Name, Run
from torchcopylint.verify.predicates.case import ALTERED, Case, Opinion, Seen, statements_of, text_of, without
from torchcopylint.verify.predicates.outcomes import difference

MOST_TIMES = 40
WORD = re.compile(r"[A-Za-z_]\w*")


def two_names_change(case: Case) -> Opinion:
    """One statement changes what two names hold, because they share memory, and the one that was kept is read."""
    return _changing(case, lambda one, other: True)


def two_tensors_change(case: Case) -> Opinion:
    """One statement changes what two names hold that are different tensors on the same memory."""
    return _changing(case, lambda one, other: one.identity != other.identity)


def _changing(case: Case, allowed: Callable[[Holder, Holder], bool]) -> Opinion:
    pairs = _pairs(case, case.run, allowed)
    written, sharing = case.at(Role.WRITTEN), case.sharing
    if not pairs:
        if written and not any(change.marks & set(written) for change in case.run.changes):
            # As through a mask that no element fits.
            return Opinion(Seen.UNCLEAR, (Evidence("unwritten", "with these inputs, what writes changes nothing"),))
        return Opinion(Seen.NO)
    if not all(case.run.passes[index] for index in sharing):
        # What shares memory here is not all that the finding speaks of.
        return Opinion(Seen.UNCLEAR)
    compared = unread = False
    defaults: tuple[tuple[str, tuple[int, ...]], ...] = (("targets", written),)
    if sharing:
        apart = () if statements_of(case, sharing) & statements_of(case, written) else sharing
        defaults = (("copies", sharing), ("apart", apart))
    for kind, run in case.altered(defaults):
        if written and not any(run.passes[index] for index in written):
            continue
        compared = True
        theirs = _pairs(case, run, allowed)
        changed = {
            name
            for change in run.changes
            if not written or change.marks & set(written)
            for holder in change.holders
            for name in holder.names
        }
        # Where only the first of many times are compared, a later one of mine may be one of theirs as well.
        often = {pair[:3] for pair, (change, _, _) in theirs.items() if len(change.times) > MOST_TIMES}
        lost = sorted({pair for pair in pairs if pair not in theirs and pair[:3] not in often}, key=_pair_order)
        read = [pair for pair in lost if _is_read(case, pairs[pair], pair, changed)]
        if read:
            change, one, other = pairs[read[0]]
            return Opinion(Seen.YES, (_told(case, change, one, other, read[0]), without(kind)))
        unread = unread or bool(lost)
    if unread:
        text = "it was changed along, but it was not seen that it is read where the finding says"
        return Opinion(Seen.UNCLEAR, (Evidence("unread", text),))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def _is_read(case: Case, found: tuple[Change, Holder, Holder], pair: Pair, changed: set[Name]) -> bool:
    """Whether a reading mark, after the change, names what is only changed because it shares. True without marks."""
    marks = case.at(Role.READ)
    if not marks:
        return True
    change, one, other = found
    sides = [(name, holder) for name, holder in ((pair[1], one), (pair[2], other)) if name not in changed]
    sides = sides or [(pair[1], one), (pair[2], other)]
    same = one.identity == other.identity
    shares = sorted(t for index in case.sharing for t in case.run.passes[index])
    bound = {name for write in case.run.writes if write.marks & set(case.sharing) for name in write.bound}
    for state in case.run.states:
        if state.mark not in marks or state.when != "enter" or state.time < pair[3]:
            continue
        # A call that writes and shares binds its result after it has written.
        anew = any(pair[3] < t <= state.time for t in shares) or bool(change.marks & set(case.sharing))
        for name, holder in sides:
            if anew and f"{name[0]}|{WORD.findall(name[1])[0]}" in bound:
                continue  # the name was bound again in between
            chains = [chain for chain, identities in state.mentions if holder.identity in identities]
            named = any(chain.rpartition(".")[2] in WORD.findall(name[1]) for chain in chains)
            # One object under two names, both read: the one is taken for what the other was.
            both = len({chain.partition(".")[0] for chain in chains}) > 1
            if chains and (named or both or not same):
                return True
    return False


Pair = tuple[int, Name, Name, int]
"""A statement, two names whose memory it changed, and when: a loop may share anew in one turn and not in another."""


def _pair_order(pair: Pair) -> tuple[int, int, int, Pair]:
    # Names of the user's own come before what an optimizer or a gradient holds, short ones before long ones.
    names = (pair[1][1], pair[2][1])
    foreign = sum(".param_groups" in name or ".grad" in name for name in names)
    return (foreign, sum(map(len, names)), pair[3], pair)


def _pairs(
    case: Case, run: Run, allowed: Callable[[Holder, Holder], bool]
) -> dict[Pair, tuple[Change, Holder, Holder]]:
    """Every two names whose shared memory one statement changed: at the written marks if there are any."""
    written = set(case.at(Role.WRITTEN))
    reads = [time for index in case.at(Role.READ) for time in (run.passes[index] if index < len(run.passes) else ())]
    first = min((t for index in case.sharing for t in run.passes[index][:1]), default=0)
    found: dict[Pair, tuple[Change, Holder, Holder]] = {}
    for change in run.changes:
        if written and not written & change.marks:
            continue
        if change.times[-1] < first and not written:
            continue
        if reads and change.times[0] > max(reads):
            continue
        names = [(name, holder) for holder in change.holders for name in holder.names]
        for position, (name, holder) in enumerate(names):
            for other_name, other in names[position + 1 :]:
                shared = holder.low < other.high and other.low < holder.high
                if name != other_name and shared and allowed(holder, other):
                    statement = change.stack[0] if change.stack else -1
                    sides = sorted(((name, holder), (other_name, other)), key=lambda side: side[0])
                    for time in change.times[:MOST_TIMES]:
                        found[statement, sides[0][0], sides[1][0], time] = (change, sides[0][1], sides[1][1])
    return found


def _told(case: Case, change: Change, one: Holder, other: Holder, pair: Pair) -> Evidence:
    row = next((case.row(index) for index in sorted(change.marks)), None)
    where = f"line {row} changed " if row else "one statement changed "
    values = f": {one.before} -> {one.after}" if one.before else ""
    return Evidence("two-names-change", f"{where}{text_of(pair[1])} and {text_of(pair[2])}: same storage{values}", row)


def same_object(case: Case) -> Opinion:
    """Two names lead to one object, and it matters: with copies, the script ends with other values."""
    mine = _same(case, case.run)
    if not mine and _holds_one(case.run):
        text = "with these inputs, what should hold several things holds one alone"
        return Opinion(Seen.UNCLEAR, (Evidence("same-object", text),))
    if not mine or not _in_order(case):
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("copies", case.sharing),)):
        compared = True
        lost = sorted(mine - _same(case, run), key=lambda pair: (len(pair[0][1]) + len(pair[1][1]), pair))
        if kind == "deduplicated":
            lost = [pair for pair in lost if all(".param_groups[" in name[1] for name in pair)]
        lost = [pair for pair in lost if _is_named(case, pair)]
        differing = difference(case.run, run, gradients=True) or _more(lost, case.run, run)
        if lost and (differing or case.against):
            row = case.row((case.sharing or case.blamed)[0])
            text = f"after line {row}, {text_of(lost[0][0])} and {text_of(lost[0][1])} are one object"
            differs = Evidence("differential", f"{ALTERED[kind]}, {differing}") if differing else without(kind)
            return Opinion(Seen.YES, (Evidence("same-object", text, row), differs))
        if lost:
            # They are one, and what would tell may only not have happened here.
            names = f"{text_of(lost[0][0])} and {text_of(lost[0][1])}"
            text = f"{names} are one object, and nothing that is printed, returned or kept tells"
            return Opinion(Seen.UNCLEAR, (Evidence("same-object", text),))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def _holds_one(run: Run) -> bool:
    """Whether containers hold one item at the end, and none holds more: then there is nothing that could be shared."""
    first, second = (
        {name.partition(key)[0] for name, _ in run.ends if key in name.partition("|")[2]} for key in ("[0]", "[1]")
    )
    return bool(first) and not first & second


def _in_order(case: Case) -> bool:
    """Whether something is shared before it is written, and written before it is read, for the marks there are."""
    time = 0
    for role in (Role.SHARED, Role.WRITTEN, Role.READ):
        marks = case.at(role)
        times = [t for index in marks for t in case.run.passes[index] if t >= time]
        if marks and not times:
            return False
        time = min(times, default=time)
    return True


def _is_named(case: Case, pair: tuple[Name, Name]) -> bool:
    """Whether a reading mark names one of the two. True without such marks."""
    marks = case.at(Role.READ)
    words = {word for name in pair for word in WORD.findall(name[1])}
    chains = {chain for state in case.run.states if state.mark in marks for chain, _ in state.mentions}
    return not marks or any(chain.rpartition(".")[2] in words for chain in chains)


def _more(lost: list[tuple[Name, Name]], mine: Run, theirs: Run) -> str:
    """Whether items of one container, once they are copies, have tensors of their own: a container of modules."""
    containers = {
        f"{one[0]}|{one[1].rpartition('[')[0]}["
        for one, other in lost
        if one[0] == other[0] and one[1].rpartition("[")[0] == other[1].rpartition("[")[0] and one[1].endswith("]")
    }
    known = {name for name, _ in mine.ends}
    more = sorted(n for n, _ in theirs.ends if n not in known and n.startswith(tuple(containers)) and "]." in n)
    return f"there are {len(more)} tensors more" if more else ""


def _same(case: Case, run: Run) -> set[tuple[Name, Name]]:
    found = set()
    for state in run.states:
        for group in state.same:
            names = sorted(group)
            found |= {(one, other) for i, one in enumerate(names) for other in names[i + 1 :]}
    return found
