"""Graphs that are kept or cut, gradients that are wrong, parameters that nobody trains."""

from __future__ import annotations

import re

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence
from torchcopylint.verify.observed import Name, Run
from torchcopylint.verify.predicates.case import ALTERED, Case, Opinion, Seen, shortest, statements_of, text_of, without
from torchcopylint.verify.predicates.outcomes import short

_STANDING = re.compile(r'^class (\w+)\(.*\):\n    """Stands in for', re.MULTILINE)
"""The classes of a script that stand in for models."""


def gradient_differs(case: Case) -> Opinion:
    """A gradient is not what it is in the altered run."""
    defaults: tuple[tuple[str, tuple[int, ...]], ...] = ()
    if case.at(Role.WRITTEN):
        defaults = (("targets", case.at(Role.WRITTEN)),)
    if case.at(Role.SAVED):
        defaults = (("saves", (0,)),)
    elif case.sharing:
        defaults = (("copies", case.sharing),)
    compared = False
    for kind, run in case.altered(defaults):
        if compared and kind == "targets" and "marked-dirty" in case.against:
            break  # that is for what cannot be marked, as it is not returned
        compared = True
        mine, theirs = dict(case.run.ends), dict(run.ends)
        for name in sorted(mine.keys() & theirs.keys()):
            if name.endswith(".grad") and mine[name] != theirs[name]:
                text = (
                    f"{ALTERED[kind]}, `{name.partition('|')[2]}` is {short(theirs[name])}; it is {short(mine[name])}"
                )
                return Opinion(Seen.YES, (Evidence("gradient-differs", text),))
    return Opinion(Seen.NO if compared or not defaults else Seen.UNCLEAR)


def graph_kept(case: Case) -> Opinion:
    """Something has a graph, or still holds what a graph saved, that has none in the altered run."""
    compared, seen = False, Seen.NO
    if case.at(Role.KEPT) and case.at(Role.READ) and not _used_already(case):
        return Opinion(Seen.NO)  # the graphs are kept to be used
    whole = "unretained" not in case.against
    for kind, run in case.altered((("detached", case.at(Role.KEPT) or case.blamed),), whole=whole):
        compared = True
        row = case.row(case.blamed[0])
        lost = shortest(_graphs(case, case.run) - _graphs(case, run))
        needed = any(error.in_backward for error in run.raised)
        if lost and kind == "unretained" and needed and not _grows(case, run):
            continue  # a later backward pass needs it
        if lost:
            what = "still holds what its graph saved" if "unretained" in case.against else "has a graph"
            text = f"after line {row}, {text_of(lost[0])} {what}"
            return Opinion(Seen.YES, (Evidence("graph-kept", text, row), without(kind)))
        if kind == "detached" and _keeping(case) & {name[1] for name in _graphs(case, case.run)}:
            longer = _longer(case, run)
            if longer:
                name, mine, theirs = longer
                text = f"after line {row}, the graph of {text_of(name)} has {mine} nodes; {ALTERED[kind]}, {theirs}"
                return Opinion(Seen.YES, (Evidence("graph-kept", text, row), without(kind)))
            # Something else keeps it as well: that says nothing of this one.
            seen = Seen.EITHER_WAY
        ends = kind not in ("unretained", "detached")
        lost = shortest(_with_gradient(case.run) - _with_gradient(run)) if ends else []
        if lost:
            what = "is computed" if lost[0][1].endswith(".grad") else "requires grad"
            text = f"after line {row}, {text_of(lost[0])} {what}"
            return Opinion(Seen.YES, (Evidence("graph-kept", text, row), without(kind)))
    return Opinion(seen if compared else Seen.UNCLEAR)


def _longer(case: Case, run: Run) -> tuple[Name, int, int] | None:
    """What the blamed statement keeps something in, if that has a longer graph after it than in the altered run, with
    both lengths: there it has one as well, as another statement has given it one."""
    blamed = set(case.blamed)
    if case.at(Role.KEPT) and case.at(Role.READ):
        return None
    keeping = _keeping(case)
    left = ([s for s in one.states if s.mark in blamed and s.when == "leave"] for one in (case.run, run))
    for mine, theirs in zip(*left, strict=False):
        lengths = dict(theirs.graphs)
        for name, size in mine.graphs:
            if name[1] in keeping and 0 < lengths.get(name, 0) < size:
                return name, size, lengths[name]
    return None


def _keeping(case: Case) -> set[str]:
    """The names that something is kept in: those that the steps speak of first."""
    return {name for index in case.blamed for name in case.marks[index].names[:1]}


def _used_already(case: Case) -> bool:
    """Whether the backward pass, at the reading marks, has freed the graphs of what is kept turn after turn."""
    kept, read = case.at(Role.KEPT), case.at(Role.READ)
    if not any(len(case.run.passes[index]) > 1 for index in read):
        return False
    if statements_of(case, kept) & statements_of(case, read):
        live = {
            name for state in case.run.states if state.mark in kept and state.when == "leave" for name in state.buffers
        }
        graphs = {
            n for state in case.run.states if state.mark in kept and state.when == "leave" for n, _ in state.graphs
        }
        return bool(graphs - live)
    before: frozenset[Name] = frozenset()
    for state in case.run.states:
        if state.mark in read:
            if state.when == "leave" and before - state.buffers:
                return True
            # Who returns what backward runs over is back before it has.
            held = {name for name, _ in state.graphs if name[1].endswith("]")}
            if state.when == "enter" and state.scope and (before & held) - state.buffers:
                return True
            before = state.buffers
    return False


def _grows(case: Case, run: Run) -> bool:
    """Whether what is retained goes on from turn to turn: its graph grows, and without it the same statement raises."""
    blamed = set(case.blamed)
    sizes: dict[Name, set[int]] = {}
    for state in case.run.states:
        if state.mark in blamed and state.when == "leave":
            for name, size in state.graphs:
                sizes.setdefault(name, set()).add(size)
    return any(len(found) > 1 for found in sizes.values()) and any(error.marks & blamed for error in run.raised)


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
    named = {*_requiring(run), *(name for name, _ in run.ends if name.endswith(".grad"))}
    return {(scope, path) for scope, _, path in (name.partition("|") for name in named)}


def _requiring(run: Run) -> set[str]:
    """The names of what requires grad at the end."""
    return {name for name in run.flagged if not name.endswith(".grad_fn")}


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
        flagged = sorted(_requiring(run) - case.run.flagged, key=lambda name: (len(name), name))
        if flagged and not case.at(Role.READ):
            text = f"after line {row}, `{flagged[0].partition('|')[2]}` does not require grad"
            return Opinion(Seen.YES, (Evidence("graph-cut", text, row), without(kind)))
        # A shallow copy requires grad as what it is of does, and is where another graph begins. What cuts a graph and
        # is made to require grad afterwards is so on purpose.
        begun = sorted(name for name in _requiring(case.run) if f"{name}.grad_fn" in run.flagged - case.run.flagged)
        if begun and case.at(Role.SHARED) and not case.at(Role.READ):
            text = f"after line {row}, `{begun[0].partition('|')[2]}` requires grad and has no graph"
            return Opinion(Seen.YES, (Evidence("graph-cut", text, row), without(kind)))
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
            text = f"line {row} cut {text_of(shortest(lost)[0])} from its graph: it required grad, and no longer does"
            return Opinion(Seen.YES, (Evidence("flag-lost", text, row), without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


def attribute_made(case: Case) -> Opinion:
    """The statement makes a plain attribute of a tensor or a module, where the altered run sets the flag."""
    made = _attributes(case, case.run)
    if not made:
        return Opinion(Seen.UNCLEAR if _attributes(case, case.run, _ELSEWHERE) else Seen.NO)
    compared = False
    for kind, run in case.altered((("flag-set", case.blamed),), whole=False):
        compared = True
        if not made & _attributes(case, run):
            row = case.row(case.blamed[0])
            name = min(made).partition("|")[2]
            text = f"after line {row}, `{name}` is a plain attribute, which nothing in torch asks for"
            return Opinion(Seen.YES, (Evidence("attribute-made", text, row), without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)


_PLAIN = "a plain attribute"
_ELSEWHERE = "an attribute of what is no tensor or module"


def _attributes(case: Case, run: Run, op: str = _PLAIN) -> set[str]:
    """The attributes that the blamed statements make, plain ones of tensors and modules if `op` does not say other."""
    writes = [write for write in run.writes if write.op == op and write.marks & set(case.blamed)]
    return {name for write in writes for name in write.bound}


def not_held(case: Case) -> Opinion:
    """A parameter that no optimizer holds, and that would be held without the marked statement."""
    mine = case.run.unheld
    if not mine:
        return Opinion(Seen.NO)
    compared = False
    for kind, run in case.altered((("skipped", case.at(Role.KEPT) or case.blamed),)):
        compared = True
        # What a model that stands in has inside of it is nobody's.
        standing = set(_STANDING.findall(case.script))
        lost = shortest(name for name in mine - run.unheld if name[0].partition(".")[0] not in standing)
        if lost:
            row = case.row(case.blamed[0])
            text = f"after line {row}, no optimizer holds {text_of(lost[0])}"
            return Opinion(Seen.YES, (Evidence("not-held", text, row), without(kind)))
    return Opinion(Seen.EITHER_WAY if compared else Seen.UNCLEAR)
