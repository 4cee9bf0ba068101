"""What has to be seen to confirm a finding, one predicate for each word that a page's `confirm` may have.

A predicate looks at a run of the code as it is, and at runs in which one thing was changed (an *alteration*: the sharing
cut, the write left out, ...). It confirms only what the altered run no longer shows: an observation that is there either
way has another cause than the finding says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence
from torchcopylint.verify.model import Mark
from torchcopylint.verify.observed import Change, Holder, Name, Raised, Run


class Seen(Enum):
    """What came of one predicate on one attempt."""

    YES = "observed"
    NO = "not observed"
    EITHER_WAY = "observed, but also without what the finding says"
    UNCLEAR = "cannot be compared"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a predicate says, with its evidence."""

    seen: Seen
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a predicate is given.

    `run` is the code as it is. `ask` runs the script with an alteration at the marks of some roles and returns the run,
    or `None` if that cannot be had. `against` are the alterations that the page names, `expected` the exceptions as
    (type, beginning or part of the message), `blame` the role that takes the blame.
    """

    run: Run
    marks: tuple[Mark, ...]
    blame: Role
    against: tuple[str, ...]
    expected: tuple[tuple[str, str], ...]
    ask: Callable[[str, tuple[int, ...]], Run | None]

    def at(self, *roles: Role) -> tuple[int, ...]:
        """The indices of the marks with one of these roles."""
        return tuple(index for index, mark in enumerate(self.marks) if mark.role in roles)

    @property
    def sharing(self) -> tuple[int, ...]:
        """The marks where something is shared, or else kept, or moved."""
        return self.at(Role.SHARED) or self.at(Role.KEPT) or self.at(Role.MOVED)

    @property
    def blamed(self) -> tuple[int, ...]:
        """The marks of the role that takes the blame, or all."""
        return self.at(self.blame) or tuple(range(len(self.marks)))

    def row(self, index: int) -> int | None:
        """The user's row of a mark."""
        return self.marks[index].user_row if 0 <= index < len(self.marks) else None

    def altered(
        self, defaults: Iterable[tuple[str, tuple[int, ...]]], *, whole: bool = True
    ) -> Iterator[tuple[str, Run]]:
        """The runs to compare with: by the page's alterations, else by `defaults`; only those that could be had.

        `whole` leaves out runs that only end with an exception because of the alteration: their ends say nothing.
        """
        wanted = list(defaults)
        if self.against:
            wanted = [(kind, self._marks_for(kind)) for kind in self.against]
        for kind, marks in wanted:
            if not marks and kind not in WHOLE_RUN:
                continue
            run = self.ask(kind, marks)
            if run is not None and not run.failed and (not whole or not run.ended or self.run.ended):
                yield kind, run

    def _marks_for(self, kind: str) -> tuple[int, ...]:
        if kind in ("copies", "detached", "unretained", "registered"):
            return self.sharing or self.at(Role.WRITTEN) or self.blamed
        if kind in ("targets", "wide", "added-up", "versioned", "marked-dirty", "apart", "inputs"):
            return self.at(Role.WRITTEN) or self.blamed
        if kind == "retained":
            return self.at(Role.DISCARDED) or self.blamed
        if kind == "uncut":
            return self.at(Role.CUT) or self.blamed
        return self.blamed


WHOLE_RUN = frozenset({"saves", "retain", "reiterable", "deduplicated"})
"""Alterations that need no marks."""

ALTERED = {
    "apart": "when the statement is given copies",
    "inputs": "when what is only read is copied first",
    "contiguous": "when its tensors are contiguous",
    "retained": "when the graph is retained",
    "deduplicated": "when every parameter is held once",
    "copies": "with a copy instead of what is shared",
    "targets": "when what is written is copied first",
    "skipped": "when the statement is left out",
    "operands": "when its tensors are plain copies",
    "saves": "when what autograd saves is copied",
    "uncut": "when the graph is kept",
    "detached": "when the graph is left behind",
    "versioned": "when the tensor itself is written",
    "added-up": "when every index is counted",
    "assigned-back": "when the result is used",
    "retain": "when gradients of computed tensors are retained",
    "reiterable": "when the generators can be iterated again",
    "wide": "when what is written is floating point",
    "unretained": "when the graph is not retained",
    "mode-entered": "when the mode is entered",
    "flag-set": "when the flag is set",
    "registered": "when it is a parameter",
    "marked-dirty": "when the write is told to autograd",
}
"""Each alteration, as the end of a sentence "without it, ..."."""


def text_of(name: Name) -> str:
    """A name as the user would say it, in backticks."""
    scope, path = name
    return f"`{path}`" if not scope else f"`{path}` (in `{scope}`)"


# two-names-change


def two_names_change(case: Case) -> Opinion:
    """One statement changes what two names hold, because they share memory, and the one that was kept is read."""
    return _changing(case, lambda one, other: True)


def two_tensors_change(case: Case) -> Opinion:
    """One statement changes what two names hold that are different tensors on the same memory."""
    return _changing(case, lambda one, other: one.identity != other.identity)


def _changing(case: Case, allowed: Callable[[Holder, Holder], bool]) -> Opinion:
    pairs = _pairs(case, case.run, allowed)
    if not pairs:
        return Opinion(Seen.NO)
    compared = unread = False
    written, sharing = case.at(Role.WRITTEN), case.sharing
    defaults = (("copies", sharing), ("apart", sharing)) if sharing else (("targets", written),)
    for kind, run in case.altered(defaults):
        if written and not any(run.passes[index] for index in written):
            continue
        compared = True
        theirs = _pairs(case, run, allowed)
        changed = {name for change in run.changes for holder in change.holders for name in holder.names}
        lost = sorted(set(pairs) - set(theirs), key=_pair_order)
        read = [pair for pair in lost if _is_read(case, pairs[pair], pair, changed)]
        if read:
            change, one, other = pairs[read[0]]
            return Opinion(Seen.YES, (_told(case, change, one, other, read[0]), _without(kind)))
        unread = unread or bool(lost)
    if unread:
        return Opinion(Seen.NO, (Evidence("unread", "what was changed along is not read at the place of the reading"),))
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
    for state in case.run.states:
        if state.mark not in marks or state.when != "enter" or state.time < change.times[0]:
            continue
        for name, holder in sides:
            chains = [chain for chain, identities in state.mentions if holder.identity in identities]
            named = any(chain.rpartition(".")[2] in _WORD.findall(name[1]) for chain in chains)
            # One object under two names, both read: the one is taken for what the other was.
            both = len({chain.partition(".")[0] for chain in chains}) > 1
            if chains and (named or both or not same):
                return True
    return False


_WORD = re.compile(r"[A-Za-z_]\w*")

Pair = tuple[int, Name, Name]


def _pair_order(pair: Pair) -> tuple[int, int, Pair]:
    # Names of the user's own come before what an optimizer or a gradient holds, short ones before long ones.
    return (sum(".param_groups" in n[1] or ".grad" in n[1] for n in pair[1:]), len(pair[1][1]) + len(pair[2][1]), pair)


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
                    pair = (statement, sides[0][0], sides[1][0])
                    found.setdefault(pair, (change, sides[0][1], sides[1][1]))
    return found


def _told(case: Case, change: Change, one: Holder, other: Holder, pair: Pair) -> Evidence:
    row = next((case.row(index) for index in sorted(change.marks)), None)
    where = f"line {row} changed " if row else "one statement changed "
    values = f": {one.before} -> {one.after}" if one.before else ""
    return Evidence("two-names-change", f"{where}{text_of(pair[1])} and {text_of(pair[2])}: same storage{values}", row)


def _without(kind: str) -> Evidence:
    return Evidence("differential", f"{ALTERED.get(kind, kind)}, this is not observed")


# raises, raises-later


def raises(case: Case) -> Opinion:
    """The exception that the page names, at the blamed statement, and not when its cause is taken away."""
    blamed = set(case.blamed)
    return _raising(
        case,
        [e for e in _expected(case, case.run) if e.marks & blamed],
        (
            ("copies", case.sharing),
            ("operands", case.blamed),
            ("saves", ()),
            ("copies", case.blamed),
            ("targets", case.blamed),
            ("skipped", case.blamed),
        ),
        "raises",
    )


def raises_later(case: Case) -> Opinion:
    """The exception that the page names, anywhere, caused by the marked statements."""
    return _raising(
        case,
        list(_expected(case, case.run)),
        (("saves", ()), ("targets", case.at(Role.WRITTEN)), ("skipped", case.blamed)),
        "raises-later",
    )


def _raising(
    case: Case, found: list[Raised], defaults: tuple[tuple[str, tuple[int, ...]], ...], word: str
) -> Opinion:
    if not found:
        return Opinion(Seen.NO)
    error = found[0]
    compared = False
    for kind, run in case.altered(defaults):
        compared = True
        if not any(other.row == error.row and other.kind == error.kind for other in _expected(case, run)):
            row = next((case.row(index) for index in sorted(error.marks)), None)
            first = error.message.strip().splitlines()[0][:160] if error.message.strip() else ""
            told = Evidence(word, f"line {row or error.row} raised {error.kind}: {first}", row)
            return Opinion(Seen.YES, (told, _without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def _expected(case: Case, run: Run) -> Iterator[Raised]:
    for error in run.raised:
        if not error.of_sandbox and any(
            kind in error.kinds and re.search(pattern, error.message) for kind, pattern in case.expected
        ):
            yield error


# values-differ, gradient-differs, write-lost


def values_differ(case: Case) -> Opinion:
    """What the script prints, returns or ends with is not what it is in the altered run."""
    compared = False
    for kind, run in case.altered((("copies", case.sharing), ("targets", case.at(Role.WRITTEN)))):
        compared = True
        difference = _difference(case.run, run, gradients=kind != "retain")
        if difference:
            return Opinion(Seen.YES, (Evidence("values-differ", f"{ALTERED[kind]}, {difference}"),))
    return Opinion(Seen.NO if compared else Seen.UNCLEAR)


def returns_differ(case: Case) -> Opinion:
    """What functions return, or the script prints, is not what it is in the altered run."""
    compared = False
    for kind, run in case.altered((("copies", case.sharing), ("targets", case.at(Role.WRITTEN)))):
        compared = True
        difference = _difference(replace(case.run, ends=()), replace(run, ends=()), gradients=False)
        if difference:
            return Opinion(Seen.YES, (Evidence("returns-differ", f"{ALTERED[kind]}, {difference}"),))
    return Opinion(Seen.NO if compared else Seen.UNCLEAR)


def gradient_differs(case: Case) -> Opinion:
    """A gradient is not what it is in the altered run."""
    defaults: tuple[tuple[str, tuple[int, ...]], ...] = ()
    written = set(case.at(Role.WRITTEN))
    if any(state.in_backward and state.mark in written for state in case.run.states):
        defaults = (("targets", case.at(Role.WRITTEN)),)
    if case.at(Role.SAVED):
        defaults = (("saves", (0,)),)
    elif case.sharing:
        defaults = (("copies", case.sharing),)
    compared = False
    for kind, run in case.altered(defaults):
        compared = True
        mine, theirs = dict(case.run.ends), dict(run.ends)
        for name in sorted(mine.keys() & theirs.keys()):
            if name.endswith(".grad") and mine[name] != theirs[name]:
                text = f"{ALTERED[kind]}, `{name.partition('|')[2]}` is {_short(theirs[name])}; it is {_short(mine[name])}"
                return Opinion(Seen.YES, (Evidence("gradient-differs", text),))
    return Opinion(Seen.NO if compared or not defaults else Seen.UNCLEAR)


def write_lost(case: Case) -> Opinion:
    """Without the marked statement everything that outlives it is the same, although it wrote."""
    marks = set(case.blamed)
    writes = [write for write in case.run.writes if write.marks & marks]
    if not writes:
        return Opinion(Seen.NO)
    own = {name for write in writes for name in write.bound}
    named = {
        f"{state.scope}|{chain}" for state in case.run.states if state.mark in marks for chain, _ in state.mentions
    }
    for change in case.run.changes:
        for holder in change.holders if change.marks & marks else ():
            names = {f"{scope}|{path}" for scope, path in holder.names}
            if not names <= named:
                return Opinion(Seen.NO)  # it reached something that the statement does not name
            own |= names
    for _, run in case.altered((("skipped", case.blamed),)):
        if _difference(case.run, run, gradients=True, apart=own):
            return Opinion(Seen.NO)
        row = case.row(case.blamed[0])
        text = f"line {row} writes ({writes[0].op}), and without it all that is printed, returned or kept is the same"
        return Opinion(Seen.YES, (Evidence("write-lost", text, row),))
    return Opinion(Seen.UNCLEAR)


def _difference(mine: Run, theirs: Run, *, gradients: bool, apart: Iterable[str] = ()) -> str:
    """The first difference in what two runs printed, raised, returned and ended with; empty if there is none."""
    if mine.ended != theirs.ended:
        return f"it ends {_ending(theirs)}, not {_ending(mine)}"
    if mine.printed != theirs.printed:
        pairs = zip(mine.printed.splitlines(), theirs.printed.splitlines(), strict=False)
        one, other = next(((a, b) for a, b in pairs if a != b), (mine.printed[-80:], theirs.printed[-80:]))
        return f"it prints {other[:120]!r}, not {one[:120]!r}"
    if mine.values != theirs.values:
        scope = next((a[1] for a, b in zip(mine.values, theirs.values, strict=False) if a != b), "a function")
        return f"`{scope}` returns something else"
    left, right = dict(mine.ends), dict(theirs.ends)
    excepted = tuple(apart)
    for name in sorted(left.keys() & right.keys()):
        if any(name == own or name.startswith((f"{own}.", f"{own}[")) for own in excepted):
            continue
        if left[name] != right[name] and (gradients or not name.endswith(".grad")):
            return f"`{name.partition('|')[2]}` ends as {_short(right[name])}, not {_short(left[name])}"
    return ""


def _ending(run: Run) -> str:
    return f"with {run.ended}" if run.ended else "without an exception"


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


# version-bypassed


def version_bypassed(case: Case) -> Opinion:
    """The content of a tensor changed and its version did not."""
    written = set(case.at(Role.WRITTEN)) or set(case.blamed)
    found = {
        name: (change, holder)
        for change in case.run.changes
        if change.marks & written
        for holder in change.holders
        if holder.version == holder.old_version and holder.kind not in ("ndarray", "bytearray")
        for name in holder.names
    }
    if not found:
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("versioned", tuple(sorted(written))),)):
        compared = True
        counted = {
            name
            for change in run.changes
            if change.marks & written
            for holder in change.holders
            if holder.version != holder.old_version
            for name in holder.names
        }
        for name in sorted(found.keys() & counted, key=lambda name: (len(name[1]), name)):
            change, holder = found[name]
            row = next((case.row(index) for index in sorted(change.marks & written)), None)
            text = f"line {row} changed {text_of(name)}, {holder.before} -> {holder.after}"
            text = f"{text}, and its version stayed {holder.version}"
            return Opinion(Seen.YES, (Evidence("version-bypassed", text, row), _without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


# same-object


def same_object(case: Case) -> Opinion:
    """Two names lead to one object, and it matters: with copies, the script ends with other values."""
    mine = _same(case, case.run)
    if not mine:
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("copies", case.sharing),)):
        compared = True
        lost = sorted(mine - _same(case, run), key=lambda pair: (len(pair[0][1]) + len(pair[1][1]), pair))
        difference = _difference(case.run, run, gradients=True) or _more(lost, case.run, run)
        if lost and (difference or case.against):
            row = case.row((case.sharing or case.blamed)[0])
            text = f"after line {row}, {text_of(lost[0][0])} and {text_of(lost[0][1])} are one object"
            differs = Evidence("differential", f"{ALTERED[kind]}, {difference}") if difference else _without(kind)
            return Opinion(Seen.YES, (Evidence("same-object", text, row), differs))
        if lost:
            return Opinion(Seen.NO)
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


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


# graph-kept, graph-cut, not-held


def graph_kept(case: Case) -> Opinion:
    """Something has a graph, or still holds what a graph saved, that has none in the altered run."""
    compared = False
    kept, read = case.at(Role.KEPT), case.at(Role.READ)
    if kept and read and not any(len(case.run.passes[index]) > 1 for index in read):
        return Opinion(Seen.NO)  # the graphs are used once, after they were all kept
    whole = "unretained" not in case.against
    for kind, run in case.altered((("detached", case.at(Role.KEPT) or case.blamed),), whole=whole):
        compared = True
        row = case.row(case.blamed[0])
        lost = _shortest(_graphs(case, case.run) - _graphs(case, run))
        if lost:
            what = "still holds what its graph saved" if "unretained" in case.against else "has a graph"
            text = f"after line {row}, {text_of(lost[0])} {what}"
            return Opinion(Seen.YES, (Evidence("graph-kept", text, row), _without(kind)))
        ends = kind not in ("unretained", "detached")
        lost = _shortest(_with_gradient(case.run) - _with_gradient(run)) if ends else []
        if lost:
            what = "is computed" if lost[0][1].endswith(".grad") else "requires grad"
            text = f"after line {row}, {text_of(lost[0])} {what}"
            return Opinion(Seen.YES, (Evidence("graph-kept", text, row), _without(kind)))
    return Opinion(Seen.NO if compared else Seen.UNCLEAR)


def _shortest(names: Iterable[Name]) -> list[Name]:
    return sorted(names, key=lambda name: (len(name[1]), name))


def _graphs(case: Case, run: Run) -> set[Name]:
    """What has a graph after the blamed statements; for a retained one, what still holds what it saved.

    Where something is kept turn after turn, only what grows counts: the graph itself, or the number of those kept.
    """
    blamed = set(case.blamed)
    states = [state for state in run.states if state.mark in blamed and state.when == "leave"]
    if "unretained" in case.against:
        return {name for state in states for name in state.buffers}
    first: dict[Name, int] = {}
    grown = set()
    many = len(case.at(Role.KEPT)) > 0 and len(case.at(Role.READ)) > 0
    for turn, state in enumerate(states):
        for name, size in state.graphs:
            if turn == 0:
                first[name] = size
            if not many or size > first.get(name, 0):
                grown.add(name)
    return grown


def _with_gradient(run: Run) -> set[Name]:
    """What requires grad at the end, and what has a gradient."""
    named = {*run.flagged, *(name for name, _ in run.ends if name.endswith(".grad"))}
    return {(scope, path) for scope, _, path in (name.partition("|") for name in named)}


def graph_cut(case: Case) -> Opinion:
    """Something has no graph, or no gradient, that has one when the graph is not cut."""
    cut = case.at(Role.CUT) or case.blamed
    row = case.row(cut[0])
    mine = {name for name, _ in case.run.ends}
    compared = False
    for kind, run in case.altered((("uncut", cut),)):
        compared = True
        theirs = {name for name, _ in run.ends if name.endswith(".grad")}
        gained = sorted(theirs - mine)
        if case.at(Role.READ) and not _no_gradient(case, theirs & mine):
            continue
        if gained:
            text = f"after line {row}, `{gained[0].partition('|')[2]}` is None; {ALTERED[kind]}, it is a gradient"
            return Opinion(Seen.YES, (Evidence("graph-cut", text, row),))
        flagged = sorted(run.flagged - case.run.flagged, key=lambda name: (len(name), name))
        if flagged and not case.at(Role.READ):
            text = f"after line {row}, `{flagged[0].partition('|')[2]}` does not require grad"
            return Opinion(Seen.YES, (Evidence("graph-cut", text, row), _without(kind)))
    return Opinion(Seen.NO if compared else Seen.UNCLEAR)


def _no_gradient(case: Case, computed: set[str]) -> bool:
    """Whether, where something is read after the cut, the backward pass reaches nothing at all."""
    cut = min((t for index in case.at(Role.CUT) for t in case.run.passes[index]), default=0)
    return not computed and any(t > cut for index in case.at(Role.READ) for t in case.run.passes[index])


def flag_lost(case: Case) -> Opinion:
    """A name that the statement does not bind anew no longer requires grad, and does when the graph is kept."""
    cut = set(case.at(Role.CUT) or case.blamed)
    bound = {name for write in case.run.writes for name in write.bound if write.marks & cut}
    lost = [
        name
        for flip in case.run.flips
        if flip.marks & cut and flip.before and not flip.after
        for name in flip.names
        if f"{name[0]}|{name[1]}" not in bound
    ]
    if not lost:
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("uncut", tuple(sorted(cut))),), whole=False):
        compared = True
        if not any(flip.marks & cut and flip.before and not flip.after for flip in run.flips):
            row = case.row(min(cut))
            text = f"line {row} cut {text_of(_shortest(lost)[0])} from its graph: it required grad, and no longer does"
            return Opinion(Seen.YES, (Evidence("flag-lost", text, row), _without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def not_held(case: Case) -> Opinion:
    """A parameter that no optimizer holds, and that would be held without the marked statement."""
    if not case.run.unheld:
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("skipped", case.at(Role.KEPT) or case.blamed),)):
        compared = True
        lost = sorted(case.run.unheld - run.unheld)
        if lost:
            row = case.row(case.blamed[0])
            text = f"after line {row}, no optimizer holds {text_of(lost[0])}"
            return Opinion(Seen.YES, (Evidence("not-held", text, row), _without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


PREDICATES: dict[str, Callable[[Case], Opinion]] = {
    "two-names-change": two_names_change,
    "raises": raises,
    "raises-later": raises_later,
    "values-differ": values_differ,
    "gradient-differs": gradient_differs,
    "write-lost": write_lost,
    "version-bypassed": version_bypassed,
    "same-object": same_object,
    "graph-kept": graph_kept,
    "graph-cut": graph_cut,
    "flag-lost": flag_lost,
    "returns-differ": returns_differ,
    "two-tensors-change": two_tensors_change,
    "not-held": not_held,
}
"""The words of `confirm` and what they mean."""
