"""Exceptions, values, and writes that are lost or not counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence
from torchcopylint.verify.observed import Name, Raised, Run, is_users
from torchcopylint.verify.predicates.case import ALTERED, DISCARDED, Case, Opinion, Seen, text_of, without

_UNUSED = "it computes one number of what nobody uses afterwards, and what for cannot be seen"

_COPIED = "it copies what it is called on, and the program does the same with the copy"
_COPY = re.compile(r"\.clone\([^()]*\)\s*(?:#.*)?$|^\s*copy\.(?:deep)?copy\(")
"""A statement that makes a copy, and nothing else of it."""

_UNFIT = "in the place of what it is computed from it raises {}, so that what it is meant for cannot be seen"

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b|(?<![.\d])\d{14,15}(?![.\d])")
"""An address in memory, as it is printed or as `id` and `data_ptr` give it."""


def raises(case: Case) -> Opinion:
    """The exception that the page names, at the statement that torch refuses, and not when its cause is taken away."""
    refused = set(case.refused)
    return _raising(
        case,
        [e for e in _expected(case, case.run) if e.marks & refused],
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


def _raising(case: Case, found: list[Raised], defaults: tuple[tuple[str, tuple[int, ...]], ...], word: str) -> Opinion:
    if not found:
        return Opinion(Seen.NO)
    error = found[0]
    compared = False
    for kind, run in case.altered(defaults):
        compared = True
        if not any(other.row == error.row and other.kind == error.kind for other in _expected(case, run)):
            row = next((case.row(index) for index in sorted(error.marks)), None)
            first = error.message.strip().splitlines()[0][:160] if error.message.strip() else ""
            told = Evidence(word, f"{f'line {row}' if row else 'a later line'} raised {error.kind}: {first}", row)
            return Opinion(Seen.YES, (told, without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def _expected(case: Case, run: Run) -> Iterator[Raised]:
    for error in run.raised:
        if not error.of_sandbox and any(
            kind in error.kinds and re.search(pattern, error.message) for kind, pattern in case.expected
        ):
            yield error


def values_differ(case: Case) -> Opinion:
    """What the script prints, returns or ends with is not what it is in the altered run."""
    compared = False
    for kind, run in case.altered((("copies", case.sharing), ("targets", case.at(Role.WRITTEN)))):
        compared = True
        if kind == "assigned-back" and _only_reduces(case.run, run):
            return Opinion(Seen.HARMLESS, (Evidence("unused", _UNUSED),))
        # What is a tensor either way is no gradient that is not there.
        apart = _tensors_in(case.run) & _tensors_in(run) if kind == "retain" else frozenset[str]()
        differing = difference(case.run, run, gradients=kind != "retain", apart=apart)
        if not differing and kind == "reiterable":
            differing = _more(case.run, run)
        if differing:
            return Opinion(Seen.YES, (Evidence("values-differ", f"{ALTERED[kind]}, {differing}"),))
    return Opinion(Seen.NO if compared else Seen.UNCLEAR)


def _tensors_in(run: Run) -> frozenset[str]:
    """The names that hold tensors in the end."""
    return frozenset(name for name, value in run.ends if value.startswith("tensor("))


def _only_reduces(mine: Run, theirs: Run) -> bool:
    """Whether, with the result in the place of what it is computed from, all is the same, but for that one, which is a
    single number then: nobody meant to change it, and nobody asks for it."""
    left, right = dict(mine.ends), dict(theirs.ends)
    differing = {name for name in left.keys() & right.keys() if left[name] != right[name]}
    reduced = all(right[n].startswith("tensor():") and not left[n].startswith("tensor():") for n in differing)
    return bool(differing) and reduced and not difference(mine, theirs, gradients=True, apart=differing)


def _more(mine: Run, theirs: Run) -> str:
    """Whether containers hold items in the other run that they do not hold in this one.

    What holds none here may be no container, but a generator that was altered to be one, or another name for that.
    """
    known = {name for name, _ in mine.ends}
    holding = {name.partition("[")[0] for name in known if name.endswith("]")}
    fresh: dict[str, list[tuple[str, str]]] = {}
    for name, value in theirs.ends:
        if name not in known and name.endswith("]"):
            fresh.setdefault(name.rpartition("[")[0], []).append((name.rpartition("[")[2], value))
    given = [items for parent, items in fresh.items() if parent.partition("[")[0] not in holding]
    more = sorted(p for p, items in fresh.items() if p.partition("[")[0] in holding and items not in given)
    return f"`{more[0].partition('|')[2]}` holds {len(fresh[more[0]])} more" if more else ""


def nothing_left(case: Case) -> Opinion:
    """The loop at the marked statement has nothing to go through, and has in the altered run."""
    marks = case.blamed
    if not any(case.run.idle[index] for index in marks):
        return Opinion(Seen.NO)
    for kind, run in case.altered((("reiterable", ()),), whole=False):
        if all(run.passes[index] and not run.idle[index] for index in marks):
            row = case.row(marks[0])
            told = Evidence("nothing-left", f"line {row} has nothing to go through, and does nothing", row)
            return Opinion(Seen.YES, (told, without(kind)))
        return Opinion(Seen.EITHER_WAY)
    return Opinion(Seen.UNCLEAR)


def returns_differ(case: Case) -> Opinion:
    """What functions return, or the script prints, is not what it is in the altered run."""
    compared = False
    for kind, run in case.altered((("copies", case.sharing), ("targets", case.at(Role.WRITTEN)))):
        compared = True
        differing = difference(replace(case.run, ends=()), replace(run, ends=()), gradients=False)
        if differing:
            return Opinion(Seen.YES, (Evidence("returns-differ", f"{ALTERED[kind]}, {differing}"),))
    # Where nothing is returned or printed, nothing could differ.
    told = bool(case.run.printed) or any(is_users(scope) and value != "None" for _, scope, value in case.run.values)
    return Opinion(Seen.NO if compared and told else Seen.UNCLEAR)


def write_lost(case: Case) -> Opinion:
    """Without the marked statement everything that outlives it is the same, although it wrote."""
    marks = set(case.blamed)
    writes = [write for write in case.run.writes if write.marks & marks]
    if not writes:
        return Opinion(Seen.NO)
    if case.run.ended:
        return Opinion(Seen.UNCLEAR)  # what did not run may have read it
    own = {name.removesuffix("[]") for write in writes for name in write.bound}
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
        if difference(case.run, run, gradients=True, apart=own):
            return Opinion(Seen.NO)
        row = case.row(case.blamed[0])
        text = f"line {row} writes ({writes[0].op}), and without it all that is printed, returned or kept is the same"
        return Opinion(Seen.YES, (Evidence("write-lost", text, row),))
    return Opinion(Seen.UNCLEAR)


def result_lost(case: Case) -> Opinion:
    """The marked statement computes something new that nothing holds, and without it all is the same."""
    marks = case.at(Role.DISCARDED) or case.blamed
    named, skipped = case.ask("named", marks), case.ask("uncalled", marks)
    if named is None or skipped is None or named.failed or skipped.failed or named.ended != case.run.ended:
        return Opinion(Seen.UNCLEAR)
    results = {name: value for name, value in named.ends if name.endswith(f"|{DISCARDED}")}
    if not results:
        return Opinion(Seen.NO)
    row = case.row(marks[0])
    given_back = {name[1] for state in named.states for group in state.same if _names(group) for name in group}
    if given_back - {DISCARDED}:
        text = f"with these inputs, line {row} gives back what it was given"
        # What it was given was written, or there was nothing to convert.
        seen = Seen.NO if difference(case.run, skipped, gradients=True) else Seen.UNCLEAR
        return Opinion(seen, (Evidence("same-object", text, row),))
    if difference(case.run, skipped, gradients=True):
        return Opinion(Seen.NO)
    back = case.ask("assigned-back", marks)
    if back is not None and not back.failed:
        if _only_reduces(case.run, back):
            return Opinion(Seen.HARMLESS, (Evidence("unused", _UNUSED),))
        if all(_COPY.search(case.statement(m)) for m in marks) and not difference(case.run, back, gradients=True):
            return Opinion(Seen.HARMLESS, (Evidence("unused", _COPIED),))
        if back.ended and back.ended != case.run.ended and not _is_elsewhere(back, set(marks)):
            # Nobody means to put it there; who reads what an interpreter shows, say, holds nothing.
            return Opinion(Seen.HARMLESS, (Evidence("unused", _UNFIT.format(back.ended)),))
    made = short(next(iter(results.values())))
    text = (
        f"line {row} computes {made}, which nothing holds; without it all that is printed, returned or kept is the same"
    )
    return Opinion(Seen.YES, (Evidence("result-lost", text, row),))


def _is_elsewhere(run: Run, marks: set[int]) -> bool:
    """Whether a run ended because something was on another device, as where a dropped move is made up for, or because
    nothing can be put in the place of what it was computed from, as in a record."""
    error = run.raised[-1] if run.raised else None
    return error is not None and ("meta" in error.message or "device" in error.message or bool(error.marks & marks))


def _names(group: Iterable[Name]) -> bool:
    return any(path == DISCARDED for _, path in group)


def difference(mine: Run, theirs: Run, *, gradients: bool, apart: Iterable[str] = ()) -> str:
    """The first difference in what two runs printed, raised, returned and ended with; empty if there is none."""
    if mine.ended != theirs.ended:
        # That one of two exceptions comes before the other says more of the inputs than of the code.
        return "" if mine.ended and theirs.ended else f"it ends {_ending(theirs)}, not {_ending(mine)}"
    # Where an object lies in memory hangs on everything that was made before it.
    printed, other_printed = (_ADDRESS.sub("0x", run.printed) for run in (mine, theirs))
    if printed != other_printed:
        pairs = zip(printed.splitlines(), other_printed.splitlines(), strict=False)
        one, other = next(((a, b) for a, b in pairs if a != b), (printed[-80:], other_printed[-80:]))
        return f"it prints {other[:120]!r}, not {one[:120]!r}"
    values, others = ([value for value in run.values if is_users(value[1])] for run in (mine, theirs))
    if values != others:
        scope = next((a[1] for a, b in zip(values, others, strict=False) if a != b), "a function")
        return f"`{scope}` returns something else"
    left, right = (
        {name: value for name, value in run.ends if is_users(name.partition("|")[0])} for run in (mine, theirs)
    )
    if gradients:
        for name in sorted(left.keys() ^ right.keys()):
            if name.endswith(".grad") and name.removesuffix(".grad") in left.keys() & right.keys():
                is_not = "is" if name in right else "is not"
                return f"`{name.partition('|')[2]}` {is_not} computed"
    excepted = tuple(apart)
    for name in sorted(left.keys() & right.keys()):
        if any(name == own or name.startswith((f"{own}.", f"{own}[")) for own in excepted):
            continue
        if left[name] != right[name] and (gradients or not name.endswith(".grad")):
            return f"`{name.partition('|')[2]}` ends as {short(right[name])}, not {short(left[name])}"
    return ""


def _ending(run: Run) -> str:
    return f"with {run.ended}" if run.ended else "without an exception"


def short(text: str) -> str:
    """A value as it is shown in a sentence: at most 100 characters."""
    return text if len(text) <= 100 else f"{text[:97]}..."


def version_bypassed(case: Case) -> Opinion:
    """The content of a tensor changed and its version did not, where a graph waits for it or the program differs."""
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
    # Where autograd sees the write, it may refuse what comes later: that is a difference, too.
    for kind, run in case.altered((("versioned", tuple(sorted(written))),), whole=False):
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
            entered = [state for state in case.run.states if state.mark in written and state.when == "enter"]
            waiting = any(low < holder.high and holder.low < high for s in entered for low, high in s.saved)
            told = Evidence("version-bypassed", text, row)
            if waiting or difference(case.run, run, gradients=True):
                return Opinion(Seen.YES, (told, without(kind)))
            text = "at that moment no graph needed what was written, and the program does the same without"
            return Opinion(Seen.HARMLESS, (told, Evidence("harmless", text)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)
