"""Runs slices and says what happened: the door to verification for the command line and for tests."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence, Verdict, Verification
from torchcopylint.pages import Page, load_pages
from torchcopylint.verify.client import Besides, Child, ChildEnded, default_python
from torchcopylint.verify.judge import EFFECTLESS, SCOUT, Outcome, Rule, combine, judge_group, leaves_open, rule_of
from torchcopylint.verify.model import Attempt, Slice
from torchcopylint.verify.observed import Malformed, Run, read_run
from torchcopylint.verify.predicates import within
from torchcopylint.verify.told import as_told, with_files

MEMORY = 1 << 30
"""Bytes that a script may take beyond what torch itself has."""
_OF_SCOUTS = 5
"""What is only tried gets a part of the time, in seconds of the processor. Nothing is looked at there: what takes
longer is not going to end when it is judged, and smaller inputs or less code may."""
_NEEDS = {"cuda": "a CUDA device", "processes": "sockets between processes"}
"""What a page's `needs` stands for. No script may open sockets."""
_SETTLED = (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.UNAVAILABLE)
_WITHOUT_KEEPING = frozenset({Role.WRITTEN, Role.READ, Role.DISCARDED})
"""Steps after which nothing holds anything that it did not hold before."""


class Verifier:
    """Runs slices in a guarded process that is started when the first one comes. Use it as a context manager.

    `timeout` is in seconds, for one run of one script; a finding takes several. `device` is `cpu` or `cuda`. `python`
    is the interpreter that has torch, by default this one. `fork` False starts a process for every script, as it is
    done where there is no fork. `counted` is the attempt that the last verdict rests on, if something was run for it.
    """

    def __init__(
        self,
        *,
        timeout: float = 5.0,
        device: str = "cpu",
        python: str = "",
        memory: int = MEMORY,
        fork: bool = True,
    ) -> None:
        self._timeout = timeout
        self._device = device
        self._python = python or default_python()
        self._memory = memory
        self._fork = fork
        self._child: Child | None = None
        self._unavailable = ""
        self._lock = threading.Lock()
        self.torch_version = ""
        self.runs = 0
        self.counted: Attempt | None = None
        self._rule = Rule((), (), (), Role.HERE, conditional=False)
        self._parallel: bool | None = None if device == "cpu" else False
        self._begun = ("", False)
        self._harmless = False

    def __enter__(self) -> Verifier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process. It is started again if another slice comes."""
        if self._child is not None:
            self._child.end()
            self._child = None

    @property
    def process_id(self) -> int:
        """The child's process, or 0 if none runs."""
        return self._child.process_id if self._child is not None else 0

    def available(self) -> str:
        """Start the process if it is not running; why it cannot be had (`there is no torch`), or empty."""
        if self._child is None and not self._unavailable:
            try:
                self._start()
            except (ChildEnded, OSError) as error:
                self._unavailable = f"the process that runs scripts did not start: {error}"
        return self._unavailable

    def ahead(self, page: Page, variant: str) -> None:
        """Have a process made for a finding of this rule, while its slice is. To be followed by `verify`."""
        with self._lock:
            try:
                if self._child is not None and rule_of(page, variant).words:
                    self._child.ahead(self._timeout, self._memory, self._device)
            except (ChildEnded, OSError):
                self._child = None

    def verify(self, piece: Slice, page: Page | None = None) -> Verification:
        """The verdict on one slice. `page` is its rule's, by default the one of its code. Raises nothing."""
        try:
            return self._first_or_other(piece, page)
        finally:
            self._rest()

    def _first_or_other(self, piece: Slice, page: Page | None) -> Verification:
        """The verdict on a slice, or on another that it names, if that is confirmed, or settled on another device."""
        best, kept = self._verified(piece, page), self.counted
        # That nothing is seen where everything is on one device says nothing about where it is not.
        last = _SETTLED if self._device == "cpu" else (Verdict.CONFIRMED, Verdict.UNAVAILABLE)
        while best.verdict not in last and piece.otherwise is not None and not self._harmless:
            piece = piece.otherwise()
            other = self._verified(piece, page)
            settles = best.verdict not in _SETTLED and other.verdict in _SETTLED and self._device != "cpu"
            if other.verdict is Verdict.CONFIRMED or settles:
                best, kept = other, self.counted
        self.counted = kept
        return best

    def _rest(self) -> None:
        """Let no process of a script run on."""
        with self._lock:
            try:
                if self._child is not None:
                    self._child.rest()
            except (ChildEnded, OSError):
                self._child = None

    def _verified(self, piece: Slice, page: Page | None) -> Verification:
        self.counted, self._harmless = None, False
        if piece.unsupported:
            return Verification(Verdict.UNSUPPORTED, (Evidence("unsupported", piece.unsupported),))
        page = page or load_pages()[piece.code]
        words = piece.confirm or tuple(page.get("confirm", piece.variant).replace(",", " ").split())
        rule = rule_of(page, piece.variant, piece.confirm)
        if not rule.words:
            told = "nothing goes wrong at run time that could be observed"
            if any(word in EFFECTLESS for word in words):
                told = "the code does what it should; the finding is about how it is written"
            return Verification(Verdict.UNSUPPORTED, (Evidence("unsupported", told),))
        reason = self.available()
        if reason:
            return Verification(Verdict.UNAVAILABLE, (Evidence("unavailable", reason),))
        for need in page.keys.get("needs", "").split():
            if need != "cuda" or self._device == "cpu":
                return self._answer(Verdict.UNSUPPORTED, (Evidence("unsupported", f"needs {_NEEDS[need]}"),), [])
        self._rule, self._begun = rule, ("", False)
        outcomes: list[Outcome] = []
        for group in piece.groups:
            if group.doubts and not all(outcome.verdict is Verdict.REFUTED for outcome in outcomes):
                continue
            whole = any(outcome.attempt is not None and outcome.attempt.whole for outcome in outcomes)
            outcome = judge_group(group, rule, self._run, whole=whole)
            if outcome.verdict is Verdict.CONFIRMED or not group.doubts:
                outcomes.append(outcome)
            if leaves_open(outcome, rule):
                break
            rule = replace(rule, told_apart=outcome.told_apart or rule.told_apart)
        if not outcomes:
            nothing = Evidence("unsupported", "there is nothing to run")
            return Verification(Verdict.UNSUPPORTED, (nothing,))
        verdict, evidence = combine(outcomes, rule)
        # Less of the code says no more of that.
        self._harmless = any(outcome.harmless for outcome in outcomes)
        if piece.elsewhere and self._device == "cpu" and verdict is not Verdict.CONFIRMED:
            told = f"needs {_NEEDS['cuda']}: on the processor, the conversion hands back what it is given"
            verdict, evidence = Verdict.UNSUPPORTED, (Evidence("unsupported", told),)
        answer = self._answer(verdict, evidence, outcomes)
        self.counted = with_files(self.counted, piece) if self.counted is not None else None
        return replace(answer, evidence=as_told(answer.evidence, piece))

    def _answer(self, verdict: Verdict, evidence: tuple[Evidence, ...], outcomes: list[Outcome]) -> Verification:
        ran = [o for o in outcomes if o.attempt is not None]
        counted = [o for kind in (verdict, Verdict.CONFIRMED) for o in ran if o.verdict is kind] or outcomes
        shown: list[Evidence] = list(evidence)
        seeds = []
        for outcome in outcomes:
            if outcome.attempt is not None:
                seeds.append(outcome.attempt.seed)
        if counted and counted[0].attempt is not None:
            attempt = self.counted = counted[0].attempt
            shown += [Evidence("setting", attempt.label)] if attempt.label else []
            if counted[0].run is not None and counted[0].run.shortened:
                shown.append(Evidence("assumed", "a loop does in its first turns what it does in all"))
            shown += [Evidence("assumed", text) for text in attempt.assumed]
            shown += [Evidence("stand-in", text) for text in attempt.standins]
        if counted and counted[0].run is not None and counted[0].run.protections:
            shown.append(Evidence("protection", ", ".join(counted[0].run.protections)))
        return Verification(verdict, tuple(shown), self.torch_version, self._device, tuple(dict.fromkeys(seeds)))

    def _start(self) -> Child:
        self._child = Child(self._python, device=self._device, fork=self._fork)
        hello = self._child.hello
        self.torch_version = hello.torch.partition("+")[0]
        if not hello.torch:
            self._unavailable = f"torch cannot be imported by {self._python}: {hello.reason}"
            self.close()
            raise ChildEnded(self._unavailable)
        return self._child

    def _run(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Run:
        def besides() -> Iterator[dict[str, Any]]:
            return self._besides(attempt, kind, marks)

        parallel = _has_idle_processors() if self._parallel is None else self._parallel
        return self.observe(self._request(attempt, kind, marks), besides if parallel else None)

    def _besides(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        """What comes under the next setting if this attempt does, and the altered twin like the one that runs."""
        if attempt.next is None or kind == SCOUT or not (kind or attempt.likely):
            return
        following = attempt.next()
        if following is None:
            return
        following = replace(following, whole=attempt.whole)
        if self._begun != (following.script, following.whole):
            self._begun = (following.script, following.whole)
            yield self._request(following, "", ())
        if kind:
            yield self._request(following, kind, marks)

    def _request(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> dict[str, Any]:
        return {
            "script": attempt.script,
            "fixed": attempt.fixed,
            "marks": [
                {
                    "row": m.row,
                    "end_row": m.end_row,
                    "column": m.column,
                    "end_column": m.end_column,
                    "keeps": m.role not in _WITHOUT_KEEPING,
                }
                for m in attempt.marks
            ],
            "alter": {"kind": "" if kind == SCOUT else kind, "marks": list(marks)},
            "seed": attempt.seed,
            "seconds": self._timeout,
            "memory": self._memory,
            "device": self._device,
            "quiet": "synchronised" in self._rule.against,
            "few": not attempt.whole,
            "scout": kind == SCOUT,
            "processor": self._timeout / _OF_SCOUTS if kind == SCOUT else 0.0,
            "looks": [] if kind == SCOUT else sorted(self._rule.looks),
            "within": within(self._rule.words, [m.role for m in attempt.marks], self._rule.blame),
        }

    def observe(self, request: dict[str, Any], meanwhile: Besides | None = None) -> Run:
        """Hand one request to the child, and read its answer. Never raises: `Run.failed` says what went wrong.

        What `meanwhile` gives is begun beside it.
        """
        self.runs += 1
        with self._lock:
            try:
                child = self._child if self._child is not None else self._start()
                end, text = child.ask(request, self._timeout, meanwhile)
                if not child.hello.forks:
                    self.close()
            except (ChildEnded, OSError) as error:
                self._child = None
                return Run(failed=str(error))
        if end != "answered":
            return Run(failed=_ENDS.get(end, f"the process of the script {end}"))
        try:
            return read_run(text)
        except Malformed as error:
            return Run(failed=f"its answer was malformed: {error}")


def _has_idle_processors() -> bool:
    """Whether there is a processor for a second process, by what all processes have asked for in the last minute."""
    asked = getattr(os, "sched_getaffinity", None)
    processors = len(asked(0)) if asked is not None else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    return processors > 1 and busy < processors + 1


_ENDS = {
    "timed out": "it was stopped because its time was up",
    "too much": "its answer was too large",
    "stopped": "it was stopped",
}
