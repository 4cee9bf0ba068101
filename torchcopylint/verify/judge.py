"""From the runs of a slice to a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from torchcopylint.base.finding import Role, Severity
from torchcopylint.base.verification import Evidence, Verdict
from torchcopylint.pages import Page
from torchcopylint.verify.model import Attempt, Group
from torchcopylint.verify.observed import SLEPT, Run
from torchcopylint.verify.predicates import LOOKS, PREDICATES, Case, Opinion, Seen

MOST_FAILED = 4
"""So many attempts of a group may run out of time, or have no answer, before the search ends."""
MOST_UNSEEN = 4
"""So many attempts of a group may get there and show neither the effect nor that there is none."""

Ask = Callable[[Attempt, str, tuple[int, ...]], Run]
"""Runs an attempt with an alteration at some of its marks. Never raises; `Run.failed` says what went wrong."""

SCOUT = "scout"
"""In the place of an alteration: the attempt is only tried, as it is, to see how far it gets."""

_WRITES_LATER = "(in `change`)"
"""How evidence tells of a name in the helper that writes what was passed, as later training would."""

OF_KINDS = frozenset(
    {"TypeError", "AttributeError", "NameError", "ImportError", "NotImplementedError", "AssertionError"}
)
"""Exceptions that seldom come of how much there is of something."""

_COUNTS_ON_GRAPH = re.compile(r"does not require grad|requires_grad=False|not require gradients|NoneType")
"""What torch and Python say where a graph or a gradient is missed."""
_NO_DEVICE = re.compile(r"^Cannot access accelerator device when none|^Torch not compiled with CUDA|No CUDA GPUs")
"""What torch says where a step asks for a GPU, and there is none."""
_APART = "only without a GPU, which the code takes without asking for one: what comes back from there is a copy"
_ASSERTED = "without that, an assertion of the code fails: it counts on what the finding says"
_DELAYED = "the GPU was given half a second of other work before the steps, as it may have had"
_LENT = {
    "graph": "only what stands in for things from elsewhere has a graph here: it is not seen if they require no grad",
    "leaves": "it needs the graph behind what stands in for things from elsewhere: it is not seen if that begins there",
    "recording": "nothing here trains what is run: it is not seen if whoever calls it has switched recording off",
}
_OWN = {"graph": ("graph", "leaves"), "leaves": ("leaves",), "recording": ("recording",)}
"""What else is run for a word of `own`: the effect counts if it is seen there as well."""

EFFECTLESS = frozenset({"equivalent", "none"})
"""Words of `confirm` that no run can confirm: nothing goes wrong, the code is only longer than it has to be."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a page says of verification, for one variant.

    `words` are those of `confirm` that have a predicate, `against` the alterations to compare with, `raises` pairs of
    an exception's type and a regular expression for its message. `conditional`: it is a warning, so it claims to
    happen under a condition. `own`: only a `graph` counts that the code makes itself, or one with a `recording` it
    counts on itself. `told_apart` is the alteration that took the effect away under another setting: it comes first.
    """

    words: tuple[str, ...]
    against: tuple[str, ...]
    raises: tuple[tuple[str, str], ...]
    blame: Role
    conditional: bool
    own: str = ""
    told_apart: str = ""

    @property
    def looks(self) -> frozenset[str]:
        """What has to be looked for in a run."""
        return frozenset[str]().union(*(LOOKS[word] for word in self.words))


def rule_of(page: Page, variant: str, confirm: tuple[str, ...] = ()) -> Rule:
    """The rule's part in a verdict. `confirm` overrides the page's words."""
    words = confirm or tuple(page.get("confirm", variant).replace(",", " ").split())
    expected = []
    for text in page.get("raises", variant).split(" | "):
        kind, _, pattern = text.partition(":")
        if kind.strip():
            expected.append((kind.strip(), pattern.strip()))
    return Rule(
        words=tuple(word for word in words if word in PREDICATES),
        against=tuple(page.get("against", variant).replace(",", " ").split()),
        raises=tuple(expected),
        blame=page.blame(variant),
        conditional=page.severity(variant) is Severity.WARNING,
        own=page.get("own", variant),
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one group: a verdict, its evidence, and the attempt that counted, if any. `branch` as in `Group`.

    `harmless`: the code as it is, with nothing cut away, showed the effect and that it does no harm. `told_apart`: the
    alteration that took away what is confirmed.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    label: str
    attempt: Attempt | None = None
    run: Run | None = None
    branch: str = ""
    harmless: bool = False
    told_apart: str = ""


def judge_group(group: Group, rule: Rule, ask: Ask, *, whole: bool = False) -> Outcome:
    """What comes of a group. `whole`: a few turns of a loop were not enough before, so no loop ends early."""
    outcome = replace(_searched(group, rule, ask, whole=whole), branch=group.branch)
    if group.told is not None:
        group.told(Verdict.INCONCLUSIVE if _is_guess(outcome) else outcome.verdict)
    return outcome


def _searched(group: Group, rule: Rule, ask: Ask, *, whole: bool) -> Outcome:
    """Run the attempts of a group until one that reaches every mark settles it; else the furthest is judged.

    What is tried after the first is only scouted, and runs once more if it gets there. One that gets there and leaves
    it open does not end the search: what was cut away or made for it may hide the effect.
    """
    furthest: _Try | None = None
    stopped: _Try | None = None
    unseen: list[Outcome] = []
    failed = 0
    for attempt in group.attempts:
        tried = _try(replace(attempt, whole=whole), rule, ask, scout=furthest is not None)
        if group.heard is not None:
            group.heard(tried.run)
        if furthest is None or furthest.run.failed or tried.is_there or tried.reached > furthest.reached:
            furthest = tried
        if stopped is None and not tried.is_there and tried.reached == len(tried.attempt.marks):
            stopped = tried
        failed += bool(tried.run.failed)
        if tried.is_there:
            outcome = _settled(tried, rule, ask, group.label)
            if outcome.harmless or (outcome.verdict is not Verdict.INCONCLUSIVE and not _is_guess(outcome)):
                return outcome  # less of the code cannot say more of the harm
            unseen.append(outcome)
        if failed == MOST_FAILED or len(unseen) == MOST_UNSEEN:
            break
    if unseen:
        found = next((outcome for outcome in unseen if outcome.verdict is Verdict.CONFIRMED), None)
        if found is None and stopped is not None:
            # It passed every step and ended at the last one: what was to be seen may have come before.
            last = _settled(stopped, rule, ask, group.label)
            found = last if last.verdict is Verdict.CONFIRMED else None
        return found or unseen[0]
    if furthest is None:
        return Outcome(Verdict.UNSUPPORTED, (Evidence("unsupported", "there was nothing to run"),), group.label)
    return _settled(furthest, rule, ask, group.label)


def _is_guess(outcome: Outcome) -> bool:
    """Whether it only was confirmed with something that was guessed: another attempt may do without."""
    return outcome.verdict is Verdict.CONFIRMED and outcome.attempt is not None and outcome.attempt.guessed


def _settled(tried: _Try, rule: Rule, ask: Ask, label: str) -> Outcome:
    """What comes of an attempt, of one that was only scouted once it has run."""
    attempt, run = tried.attempt, tried.run
    if tried.scouted:
        run = ask(attempt, "", ())
    outcome = _judged(attempt, run, rule, ask, label)
    if (run.shortened or run.cut_short == SLEPT) and not attempt.whole and outcome.verdict is not Verdict.CONFIRMED:
        # What was not seen in a few turns may be seen in all.
        attempt = replace(attempt, whole=True)
        outcome = _judged(attempt, ask(attempt, "", ()), rule, ask, label)
    return outcome


@dataclass(frozen=True, slots=True)
class _Try:
    """An attempt, and how far it got. `scouted`: it only was looked at for that."""

    attempt: Attempt
    run: Run
    is_there: bool
    scouted: bool

    @property
    def reached(self) -> int:
        """The number of steps that were passed."""
        return sum(bool(times) for times in self.run.passes)


def _try(attempt: Attempt, rule: Rule, ask: Ask, *, scout: bool) -> _Try:
    kind = SCOUT if scout else ""
    run = ask(attempt, kind, ())
    if run.shortened and not _got_there(attempt, run, rule) and not _ended_by_kind(run):
        attempt = replace(attempt, whole=True)
        run = ask(attempt, kind, ())
    if scout and _got_there(attempt, run, rule):
        run, scout = ask(attempt, "", ()), False
    return _Try(attempt, run, _got_there(attempt, run, rule), scout)


def _ended_by_kind(run: Run) -> bool:
    """Whether an exception ended a run that more turns of a loop before it would not have kept away."""
    return bool(run.ended and run.raised) and not OF_KINDS.isdisjoint(run.raised[-1].kinds)


def _got_there(attempt: Attempt, run: Run, rule: Rule) -> bool:
    """Whether a run is one to judge: every step was passed, or the exception came that the rule speaks of."""
    if run.failed:
        return False
    return _raised_as_expected(run, rule) or (run.reached(len(attempt.marks)) and not _stopped_at_a_step(run))


def _raised_as_expected(run: Run, rule: Rule) -> bool:
    return any(
        kind in error.kinds and re.search(pattern, error.message) and not error.of_sandbox
        for error in run.raised
        if error.marks or "raises-later" in rule.words
        for kind, pattern in rule.raises
    )


def _stopped_at_a_step(run: Run) -> bool:
    """Whether an exception at a marked statement ended the run: with other inputs that statement may run."""
    return bool(run.ended and run.raised and run.raised[-1].marks)


def _judged(attempt: Attempt, run: Run, rule: Rule, ask: Ask, label: str) -> Outcome:
    if run.failed:
        verdict = Verdict.UNSUPPORTED if run.failed.startswith("no CUDA") else Verdict.INCONCLUSIVE
        text = "needs a CUDA device" if verdict is Verdict.UNSUPPORTED else run.failed
        return Outcome(verdict, (Evidence("failed", text),), label, attempt, run)
    blocked = tuple(Evidence("blocked", f"the sandbox refused {what}") for what in run.blocked)
    if not any(run.passes) and not _raised_as_expected(run, rule):
        # There is nothing to compare.
        return Outcome(Verdict.NOT_TRIGGERED, (*_missed(attempt, run), *blocked), label, attempt, run)
    answers: dict[tuple[str, tuple[int, ...]], Run | None] = {}
    last = [""]

    def asked(kind: str, marks: tuple[int, ...]) -> Run | None:
        # Several words of a rule may ask for the same run.
        last[:] = [kind]
        if (kind, marks) not in answers:
            answers[kind, marks] = _asked(ask, attempt, run, kind, marks)
        return answers[kind, marks]

    case = Case(run, attempt.marks, rule.blame, rule.against, rule.raises, asked, rule.told_apart, attempt.script)
    opinions: dict[str, Opinion] = {}
    for word in rule.words:
        opinions[word] = PREDICATES[word](case)
        if opinions[word].seen is not Seen.NO and any(_asserts(run, a, rule) for a in answers.values()):
            harmless = Evidence("asserted", _ASSERTED)
        elif opinions[word].seen is Seen.YES and attempt.meant:
            harmless = Evidence("meant", attempt.meant)
        elif opinions[word].seen is Seen.YES and _is_apart(attempt, word, rule, ask):
            harmless = Evidence("apart", _APART)
        else:
            harmless = None
        if harmless is not None:
            told = (*opinions[word].evidence, harmless, *blocked)
            return Outcome(Verdict.INCONCLUSIVE, told, label, attempt, run, harmless=True)
        if opinions[word].seen is Seen.YES:
            confirmed = _confirmed(attempt, run, word, opinions[word].evidence, rule, ask)
            evidence = (*confirmed.evidence, *blocked)
            return replace(confirmed, evidence=evidence, label=label, told_apart=last[0])
    evidence = tuple(
        item
        for word, opinion in opinions.items()
        for item in (Evidence(word, f"{word}: {opinion.seen.value}"), *opinion.evidence)
    )
    if not attempt.partial and any(opinion.seen is Seen.HARMLESS for opinion in opinions.values()):
        return Outcome(Verdict.INCONCLUSIVE, (*evidence, *blocked), label, attempt, run, harmless=True)
    if not run.reached(len(attempt.marks)):
        return Outcome(Verdict.NOT_TRIGGERED, (*_missed(attempt, run), *blocked), label, attempt, run)
    if blocked:
        text = "the sandbox refused what the code asked for, so what it does without is not known"
        return Outcome(Verdict.INCONCLUSIVE, (*blocked, Evidence("reason", text)), label, attempt, run)
    if run.ended:
        needs = _NO_DEVICE.search(run.raised[-1].message) if run.raised and run.raised[-1].marks else None
        verdict = Verdict.UNSUPPORTED if needs else Verdict.INCONCLUSIVE
        told = (Evidence("unsupported", "needs a CUDA device"),) if needs else ()
        return Outcome(verdict, (*told, *_ending(run)), label, attempt, run)
    if run.cut_short:
        text = f"not all of it was observed: {run.cut_short}"
        return Outcome(Verdict.INCONCLUSIVE, (Evidence("reason", text),), label, attempt, run)
    if opinions and all(opinion.seen is Seen.NO for opinion in opinions.values()):
        why = _may_be_hidden(attempt, run, rule)
        if not why:
            return Outcome(Verdict.REFUTED, evidence, label, attempt, run)
        return Outcome(Verdict.INCONCLUSIVE, (*evidence, Evidence("reason", why)), label, attempt, run)
    return Outcome(Verdict.INCONCLUSIVE, evidence, label, attempt, run)


def _may_be_hidden(attempt: Attempt, run: Run, rule: Rule) -> str:
    """Why that nothing was observed is no refutation; an empty text if it is one."""
    if attempt.partial:
        return "not observed, but what was cut away or stood in for may hide it"
    if "synchronised" in rule.against:
        return "not observed, but what was in time in this run may be late in another"
    if rule.conditional and rule.blame is Role.KEPT and _waits_for_write(attempt, rule):
        return "not observed, but nothing that is run is known to write what is kept, and whoever does is not told"
    return "" if _in_order(run) else "not observed, but with these inputs the steps did not follow one another"


def _confirmed(attempt: Attempt, run: Run, word: str, evidence: tuple[Evidence, ...], rule: Rule, ask: Ask) -> Outcome:
    """What a run has shown, with what was guessed for that."""
    if attempt.unwritten and any(_WRITES_LATER in item.text for item in evidence):
        attempt = replace(attempt, guessed=True)
    for own in _OWN.get(rule.own, ()):
        if not attempt.guessed and _is_lent(attempt, run, word, rule, ask, own):
            attempt, evidence = replace(attempt, guessed=True), (*evidence, Evidence("lent", _LENT[own]))
    if "synchronised" in rule.against:
        evidence = (*evidence, Evidence("delayed", _DELAYED))
    return Outcome(Verdict.CONFIRMED, evidence, "", attempt, run)


def _asserts(run: Run, altered: Run | None, rule: Rule) -> bool:
    """Whether the code asserts what a finding complains of: an assertion fails in the altered run, and not in it as it
    is, which it did not end before that for what the finding says."""
    if altered is None or altered.ended != "AssertionError" or _raised_as_expected(run, rule):
        return False
    if run.ended != "AssertionError" or not (run.raised and altered.raised):
        return True
    # Another assertion failed later, as for what stands in: the one that fails without it held.
    mine, theirs = run.raised[-1], altered.raised[-1]
    return theirs.rows[-1:] != mine.rows[-1:] and theirs.time < mine.time


def _waits_for_write(attempt: Attempt, rule: Rule) -> bool:
    """Whether a gradient is said to be wrong after a write that is no step: the finding is about every later one."""
    return "gradient-differs" in rule.words and not any(mark.role is Role.WRITTEN for mark in attempt.marks)


def _in_order(run: Run) -> bool:
    """Whether each step was passed after the one before it, as in a second turn of a loop."""
    time = 0
    for times in run.passes:
        later = [t for t in times if t >= time]
        if not later:
            return False
        time = later[0]
    return True


def _is_lent(attempt: Attempt, before: Run, word: str, rule: Rule, ask: Ask, own: str) -> bool:
    """Whether the effect needs a graph, and only what stands in gave one.

    Who hands over a network may have frozen it, and who calls may do so with recording off. Where the code itself fails
    without the graph, as a backward pass does, it counts on one: only a graph of what is computed before the steps is
    shared then. `before` is the run with it, `own` what the other one lacks.
    """
    twin = attempt.unlent(own) if attempt.unlent is not None else None
    if twin is None:
        return False
    twin = replace(twin, whole=attempt.whole)
    run = ask(twin, "", ())
    if run.failed or not run.reached(len(twin.marks)) or _raised_as_expected(run, rule):
        return False
    if run.ended and run.ended != before.ended:
        return not (run.raised and _COUNTS_ON_GRAPH.search(run.raised[-1].message))

    def asked(kind: str, marks: tuple[int, ...]) -> Run | None:
        return _asked(ask, twin, run, kind, marks)

    case = Case(run, twin.marks, rule.blame, rule.against, rule.raises, asked, script=twin.script)
    return PREDICATES[word](case).seen is not Seen.YES


def _is_apart(attempt: Attempt, word: str, rule: Rule, ask: Ask) -> bool:
    """Whether the effect is not there where what the code moves to a GPU really is elsewhere."""
    twin = attempt.apart() if attempt.apart is not None else None
    if twin is None:
        return False
    twin = replace(twin, whole=attempt.whole)
    run = ask(twin, "", ())
    if run.failed or not run.reached(len(twin.marks)):
        return False

    def asked(kind: str, marks: tuple[int, ...]) -> Run | None:
        return _asked(ask, twin, run, kind, marks)

    case = Case(run, twin.marks, rule.blame, rule.against, rule.raises, asked, script=twin.script)
    return PREDICATES[word](case).seen is not Seen.YES


def _asked(ask: Ask, attempt: Attempt, like: Run, kind: str, marks: tuple[int, ...]) -> Run | None:
    """The altered run to compare with `like`, if its loops ended where those of `like` did.

    How many statements run decides where loops end early, and an alteration may change that: what then differs is not
    what was altered.
    """
    run = ask(attempt, kind, marks)
    if run.shortened and not like.shortened:
        run = ask(replace(attempt, whole=True), kind, marks)
    comparable = run.shortened == like.shortened and len(run.passes) == len(attempt.marks)
    return run if comparable and not run.failed else None


def _missed(attempt: Attempt, run: Run) -> tuple[Evidence, ...]:
    missing = [m.user_row for m, times in zip(attempt.marks, run.passes, strict=False) if not times]
    rows = ", ".join(str(row) for row in sorted(set(missing)))
    texts = [f"line {rows} did not run" if rows else "not every step ran"]
    return (*(Evidence("reason", text) for text in texts), *_ending(run))


def _ending(run: Run) -> tuple[Evidence, ...]:
    """The exception that ended a run, if one did."""
    if not run.ended:
        return ()
    error = run.raised[-1] if run.raised else None
    message = error.message.strip().splitlines() if error is not None else []
    return (Evidence("reason", f"the run ended with {run.ended}{': ' + message[0][:160] if message else ''}"),)


def leaves_open(outcome: Outcome, rule: Rule) -> bool:
    """Whether no other group can change the verdict: what an error leaves open under one setting stays open."""
    return outcome.verdict is Verdict.INCONCLUSIVE and not rule.conditional and outcome.branch != "copies"


def combine(outcomes: list[Outcome], rule: Rule) -> tuple[Verdict, tuple[Evidence, ...]]:
    """One verdict for all groups: the same everywhere, or inconclusive with what differs.

    A warning claims that something happens under a condition, so one group in which it happens confirms it.
    """
    branches = _branches(outcomes)
    outcomes = [outcome for outcome in outcomes if outcome.branch != "copies"]
    verdicts = {outcome.verdict for outcome in outcomes}
    confirmed = [outcome for outcome in outcomes if outcome.verdict is Verdict.CONFIRMED]
    others = [outcome for outcome in outcomes if outcome.verdict is not Verdict.CONFIRMED]
    if confirmed:
        first = confirmed[0]
        guessed = [outcome for outcome in confirmed if outcome.attempt is not None and outcome.attempt.guessed]
        if len(guessed) == len(confirmed):
            text = "what kind of value an input is, or that it is written, was guessed: this can happen, if it does"
            return Verdict.INCONCLUSIVE, (*first.evidence, Evidence("guessed", text))
        against = [o for o in others if o.verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE)]
        if not against:
            return Verdict.CONFIRMED, (*first.evidence, *branches)
        where = "; ".join(f"{o.label or 'one setting'}: {o.verdict}" for o in [*confirmed, *against])
        if rule.conditional:
            depends = Evidence("depends", f"it depends on the input: {where}")
            return Verdict.CONFIRMED, (*first.evidence, depends, *branches)
        return Verdict.INCONCLUSIVE, (*first.evidence, Evidence("differs", f"it differs between inputs: {where}"))
    if len(verdicts) == 1:
        return outcomes[0].verdict, outcomes[0].evidence
    ranked = (Verdict.INCONCLUSIVE, Verdict.REFUTED, Verdict.NOT_TRIGGERED, Verdict.UNSUPPORTED)
    for verdict in ranked:
        for outcome in outcomes:
            if outcome.verdict is verdict:
                if verdict is Verdict.REFUTED and not verdicts <= {Verdict.REFUTED, Verdict.NOT_TRIGGERED}:
                    continue
                return verdict, outcome.evidence
    return Verdict.INCONCLUSIVE, ()


def _branches(outcomes: list[Outcome]) -> tuple[Evidence, ...]:
    """Of a copy that is made under a condition, whether it was also observed with inputs that are converted.

    A group in which nothing had to be tried, or that did not get there, says nothing.
    """
    ran = [o for o in outcomes if o.branch == "copies" and o.run is not None and o.attempt is not None]
    ran = [o for o in ran if o.run is not None and o.attempt is not None and o.run.reached(len(o.attempt.marks))]
    if not ran:
        return ()
    if any(outcome.verdict is Verdict.CONFIRMED for outcome in ran):
        text = "it is observed as well with inputs of another type and another order in memory"
    else:
        text = (
            "it is observed where nothing has to be converted, and not with inputs of another type or order in memory"
        )
    return (Evidence("branch", text),)
