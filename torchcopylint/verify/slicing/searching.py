"""Which ways of running what is around a finding are tried, with which inputs, in which order."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Verdict
from torchcopylint.verify.model import Attempt, Group
from torchcopylint.verify.observed import Run
from torchcopylint.verify.slicing.asking import asked as asked_of
from torchcopylint.verify.slicing.best import Best
from torchcopylint.verify.slicing.conditions import writes_compared
from torchcopylint.verify.slicing.learning import Learner, Lesson
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.script import Script
from torchcopylint.verify.slicing.scripting import GRADIENT, Scripting
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.skipping import Skipper
from torchcopylint.verify.slicing.source import Source, nodes_of, walked
from torchcopylint.verify.slicing.things import WEAK, scalar
from torchcopylint.verify.slicing.tries import NUMBERS, Heard, ends_before, is_of_kinds
from torchcopylint.verify.slicing.unpacking import take_apart

_SIZES = (4, 6)
_LARGE = 64
"""What depends on the amount of data, such as an operation that works in blocks, is not refuted by small inputs."""
_SIDES = (28, 32, 64, 84, 96, 128, 224)
"""Usual sides of images."""
_CONVERSIONS = ("to", "float", "type", "type_as")
_ASKED = 8
"""So many times a way of running is tried with the inputs that an exception asks for."""
_ALIKE = 3
"""So often the inputs are made that one statement's exception asks for if it says the same again, but for numbers."""
_MORE_ITEMS = 8
"""So many batches a loader gives where two were too few."""
_SEVERAL = "Boolean value of Tensor with more than one"
"""The beginning of what torch says where one number was meant, and inputs had more."""
_LESSONS = 24
"""So many times the least part is run again without what failed."""
_SKIPS = 16
"""So many times the file is run again without what failed."""


class Search(Scripting):
    """The attempts at showing one finding. `conditional`: it holds under a condition, so that inputs are tried as well
    which have to be converted; `brief`: what takes many runs is not tried."""

    def __init__(
        self,
        source: Source,
        finding: Finding,
        confirm: tuple[str, ...],
        device: str,
        made_on: str,
        *,
        conditional: bool,
        brief: bool = False,
    ) -> None:
        super().__init__(source, finding, confirm, device, made_on)
        self._brief = brief
        self._conditional = conditional
        self._converts = "result-lost" in confirm and any(f"`{name}()`" in finding.message for name in _CONVERSIONS)
        self._orders = "result-lost" in confirm and "`contiguous()`" in finding.message
        self._worked: tuple[Plan, Setting] | None = None
        self._failed = False
        self._heard: dict[str, Run] = {}
        self._furthest: tuple[tuple[int, ...], Setting] | None = None
        self._given = ""
        self._following: dict[tuple[Plan, Setting], tuple[Attempt | None, Script | None]] = {}
        self._best = Best(self.source.tree, self.plans.rows if "two-names-change" in confirm else ())
        self._spread = writes_compared(self.source.tree, self.plans.rows)

    def groups(self) -> tuple[Group, ...]:
        """The settings to try: two seeds with a size each, and a large one if these refute the finding."""
        settings = [(f"seed {seed}, size {size}", size, seed) for seed, size in enumerate(_SIZES)]
        groups = tuple(
            Group(label, self._attempts(size, seed), self._hear, told=self._told) for label, size, seed in settings
        )
        doubting = Group(f"seed 0, size {_LARGE}", self._enlarged(), self._hear, doubts=True)
        if not self._conditional:
            return (*groups, doubting)
        copied = Group("inputs that are converted", self._converted(), self._hear, "copies")
        return (*(replace(group, branch="shares") for group in (*groups, doubting)), copied)

    def _enlarged(self) -> Iterator[Attempt]:
        """What worked, with large inputs."""
        if self._worked is not None:
            plan, like = self._worked
            attempt = self._attempt(plan, replace(like, size=_LARGE, seed=0))
            if attempt is not None:
                self._given = attempt.script
                yield attempt

    def _converted(self) -> Iterator[Attempt]:
        """What worked, with inputs of another type and another order in memory: a conversion then copies."""
        if self._worked is not None:
            plan, like = self._worked
            attempt = self._attempt(plan, replace(like, dtype="float64", turned=True))
            before = self._attempt(plan, like)
            if attempt is not None and before is not None and attempt.script != before.script:
                self._given = attempt.script
                yield attempt

    def _hear(self, run: Run) -> None:
        """What came of the attempt that was given last."""
        self._heard[self._given] = run
        ranks = "write-lost" in self.confirm and not run.failed and bool(run.ended and run.raised)
        self._misshapen = self._misshapen or (ranks and run.raised[-1].message.startswith(_SEVERAL))

    def _told(self, verdict: Verdict) -> None:
        """What came of a setting: where it was left open, or not reached, the next one is not searched again."""
        if verdict not in (Verdict.CONFIRMED, Verdict.REFUTED):
            self._worked, self._failed = None, True

    def _attempts(self, size: int, seed: int) -> Iterator[Attempt]:
        """Attempts until the caller has what it wants. What worked under one setting comes first under the next."""
        seen: set[str] = set()
        heard = Heard()
        tries = self._tries(size, seed)
        self._furthest = None
        wants: list[tuple[Plan, Setting]] = []
        asked: dict[str, int] = {}
        blind: set[tuple[int, Setting]] = set()
        while True:
            wanted = bool(wants)
            found = wants.pop() if wanted else next(tries, None)
            if found is None:
                break
            plan, setting = found
            in_vain = plan.label in heard.spent or (id(plan), setting) in blind
            attempt = self._attempt(plan, setting) if wanted or not in_vain else None
            if attempt is not None and attempt.script not in seen:
                seen.add(attempt.script)
                self._worked = (plan, setting)
                self._given = attempt.script
                yield self._with_next(attempt, plan, setting)
                run = self._heard.get(attempt.script)
                if run is not None:
                    heard.add(plan.label, run, len(attempt.marks), self._row_of_end(run))
                    self._compare(plan, setting, run)
                    if not wanted and ends_before(run):
                        blind.add((id(plan), replace(setting, grad=True)))
                    again = self._again(plan, setting, run, attempt)
                    complaint = self._complaint(plan.label, run)
                    if again is not None and asked.get(plan.label, 0) < _ASKED and asked.get(complaint, 0) < _ALIKE:
                        for key in (plan.label, complaint):
                            asked[key] = asked.get(key, 0) + 1
                        wants.append(again)
        if not self._failed and not self._brief:
            yield from self._learning(size, seed, seen)
            yield from self._skipping(size, seed, seen)
        self._worked, self._failed = None, True

    def _with_next(self, attempt: Attempt, plan: Plan, setting: Setting) -> Attempt:
        """An attempt under the first setting, with the one that comes first under the second if it does there."""
        if setting.seed != 0:
            return attempt

        def following() -> Attempt | None:
            key = (plan, _under(setting, _SIZES[1], 1))
            if key not in self._following:
                now = self.script
                made = self._attempt(*key)
                self._following[key], self.script = (made, self.script), now
            return self._following[key][0]

        return replace(attempt, next=following, likely=plan.label == "the whole file")

    def _again(self, plan: Plan, setting: Setting, run: Run, attempt: Attempt) -> tuple[Plan, Setting] | None:
        """The same with the inputs that the exception which ended a run asks for."""
        once = self._best.once(plan) if not run.ended and run.reached(len(attempt.marks)) else None
        if once is not None:
            return once, setting
        wanted = _asked(setting, run, attempt)
        if wanted is not None:
            return plan, wanted
        assert self.script is not None
        if self._supplied(run, self.script):
            return plan, setting
        kinds = dict(self._reader.kinds(run, self.script.rows()))
        if kinds.items() <= dict(plan.kinds).items():
            return None
        return replace(plan, kinds=tuple({**dict(plan.kinds), **kinds}.items())), setting

    def _complaint(self, label: str, run: Run) -> str:
        """What ended a way of running, and at which statement, whatever the numbers are."""
        said = NUMBERS.sub("0", run.raised[-1].message) if run.ended and run.raised else ""
        return f"{label}|{self._row_of_end(run)}|{said}"

    def _compare(self, plan: Plan, setting: Setting, run: Run) -> None:
        """Keep the setting under which the way that leaves out least got furthest: it knows most of what is asked."""
        if plan is not next(self.plans.plans()) or self.script is None or not run.ended or not run.raised:
            return
        rows = self.script.rows()
        ended = tuple(rows[row] for row in run.raised[-1].rows if row in rows)
        if self._furthest is None or ended > self._furthest[0]:
            self._furthest = (ended, setting)

    def _row_of_end(self, run: Run) -> int:
        """The row of the file in which an exception ended the run of the script that was written last, or 0."""
        if not run.ended or not run.raised or self.script is None:
            return 0
        rows = self.script.rows()
        return next((rows[row] for row in reversed(run.raised[-1].rows) if row in rows), 0)

    def _supplied(self, run: Run, script: Script) -> bool:
        """Whether something lacked a key that ended a run, or had another number of parts than it is taken apart into,
        and is now made as it has to be."""
        parts = [take_apart(self.world, apart) for apart in self._reader.apart(run, script.rows())]
        for name in self._reader.single(run, script.rows()):
            more = [thing for thing in self.world.things_called(name) if thing.dimensions != 0]
            parts += [bool(more)]
            for thing in more:
                scalar(thing)
        fresh = [
            (thing, key)
            for name, key in self._reader.lacks(run, script.rows())
            for thing in self.world.things_called(name)
            if key not in thing.items
        ]
        for thing, key in fresh:
            thing.item(key)
            thing.vote("dict", WEAK)
        return bool(fresh) or any(parts)

    @cached_property
    def _reader(self) -> Learner:
        """Reads what exceptions anywhere in the file say of names."""
        return Learner(self.source.tree, (), self.plans.rows)

    def _tries(self, size: int, seed: int) -> Iterator[tuple[Plan, Setting]]:
        """Ways of running with their settings, in the order in which they are tried."""
        # If nothing got there under another setting, this one says the same in one run.
        tries = islice(self._untried(size, seed), 1 if self._failed else None)
        if self._worked is None:
            return tries
        plan, like = self._worked
        # Where another size does not fit, another seed does.
        return chain([(plan, _under(like, size, seed)), (plan, replace(like, seed=seed))], tries)

    def _untried(self, size: int, seed: int) -> Iterator[tuple[Plan, Setting]]:
        for plan in self.plans.plans():
            settings = list(self._settings(plan, size, seed))
            if plan.label != "a call":
                most = 8 if len(settings) > 12 else 4
                settings = [*settings[:most], *(setting for setting in settings if setting.channels)]
            # A program that makes its own inputs does not change with ours, but for its datasets.
            if not plan.targets and not plan.bound:
                settings = [*settings[:2], *(setting for setting in settings[2:] if setting.channels)]
            yield from ((plan, setting) for setting in settings)

    def _skipping(self, size: int, seed: int, seen: set[str]) -> Iterator[Attempt]:
        """As much of the file as runs: again and again, each time without the statement that ended the run before."""
        skipper = Skipper(self.plans.rows)
        plan = next(self.plans.plans())
        settings = list(self._settings(plan, size, seed))
        setting = self._furthest[1] if self._furthest is not None else settings[0]
        asked = made = 0
        for _ in range(2 * _SKIPS):
            attempt = self._attempt(skipper.plan(plan), setting)
            script = self.script
            if attempt is None or script is None:
                return
            if attempt.script not in seen:
                made += 1
                if made > _SKIPS:
                    return
                seen.add(attempt.script)
                self._given, self._worked = attempt.script, (skipper.plan(plan), setting)
                yield self._with_next(attempt, *self._worked)
            run = self._heard.get(attempt.script)
            if run is not None and self._supplied(run, script):
                continue
            wanted = _asked(setting, run, attempt) if run is not None and asked < _ASKED else None
            kinds = dict(self._reader.kinds(run, script.rows())) if run is not None else {}
            if wanted is not None:
                setting, asked = wanted, asked + 1
            elif not kinds.items() <= dict(plan.kinds).items():
                plan = replace(plan, kinds=tuple({**dict(plan.kinds), **kinds}.items()))
            elif run is None or not skipper.learns(run, script.rows()):
                # What it is given may need a graph.
                if run is None or setting.grad or not any(other.grad for other in settings):
                    return
                setting = replace(setting, grad=True)

    def _learning(self, size: int, seed: int, seen: set[str]) -> Iterator[Attempt]:
        """The least part again and again, each time without what did not run the time before."""
        lesson: Lesson | None = Lesson()
        asked: list[Setting] = []
        complaints = Counter[str]()
        heard = Heard()
        graded = False
        inside = [scopes[-1] for scopes in self.plans.targets() if scopes]
        learner = Learner(self.source.tree, inside, self.plans.rows)
        for _ in range(_LESSONS):
            if lesson is None:
                return
            plan = next(self.plans.least(lesson.without, bare=lesson.bare, changes=lesson.changes), None)
            if plan is None and not lesson.bare:
                lesson = replace(lesson, bare=True)
                plan = next(self.plans.least(lesson.without, bare=True, changes=lesson.changes), None)
            if plan is None:
                return
            plan = replace(plan, plain=lesson.plain, kinds=lesson.kinds, flat=lesson.flat)
            # What is made in the middle of a function has the graph that what came before gave it.
            settings = sorted(self._settings(plan, size, seed), key=lambda setting: not setting.grad)
            if lesson.setting >= len(settings):
                return
            setting = asked[-1] if asked else replace(settings[lesson.setting], graded=graded)
            attempt = self._attempt(plan, setting)
            script = self.script
            if attempt is None or script is None:
                return
            if attempt.script not in seen:
                seen.add(attempt.script)
                self._given, self._worked = attempt.script, (plan, setting)
                yield self._with_next(attempt, plan, setting)
            run = self._heard.get(attempt.script)
            if run is None:
                return
            if self._supplied(run, script):
                continue
            complaint = self._complaint("", run)
            wanted = _asked(setting, run, attempt) if len(asked) < _ASKED and complaints[complaint] < _ALIKE else None
            if wanted is None and self._steps and not graded and not run.ended and run.reached(len(attempt.marks)):
                # What a backward pass has run over was made, and nothing got a gradient of it.
                wanted = replace(setting, graded=True)
            if wanted is not None:
                complaints[complaint] += 1
                asked.append(wanted)
                graded = graded or wanted.graded
                continue
            before = lesson.setting
            lesson = learner.after(lesson, run, attempt.marks, script.rows())
            if lesson is not None and lesson.setting != before:
                asked.clear()
                if is_of_kinds(run):
                    # Nothing else was learnt of it, and other inputs are of the same kinds.
                    heard.add("", run, len(attempt.marks))
                if heard.spent:
                    return

    def _settings(self, plan: Plan, size: int, seed: int) -> Iterator[Setting]:
        gradient = bool(GRADIENT & set(self.confirm))
        graphs = (False, True) if gradient and plan.targets else (False,)
        sizes = [size, *(number for number in self._sizes if number != size)]
        # Where there is nothing to convert, nothing is computed that could be lost.
        dtype, turned = "float64" if self._converts else "float32", self._orders
        for dimensions, batch in ((2, 0), (4, 0), (3, 0), (1, 0), (2, 1), (0, 0)):
            for grad in graphs:
                yield Setting(
                    size,
                    dimensions,
                    seed,
                    grad=grad,
                    dtype=dtype,
                    device=self.device,
                    batch=batch,
                    turned=turned,
                    spread=self._spread,
                )
        for side in [number for number in _SIDES if number in sizes][:1]:
            for channels in (1, 3):
                yield Setting(side, 4, seed, grad=graphs[-1], device=self.device, channels=channels)
        for other in sizes[1:4]:
            for dimensions in (2, 4) if other <= 32 else (2,):
                yield Setting(other, dimensions, seed, grad=graphs[-1], device=self.device)

    @cached_property
    def _steps(self) -> bool:
        """Whether a step of an optimizer is a step of the finding."""
        inside = (node for node in nodes_of(self.source.tree) if isinstance(node, ast.Call))
        calls = (node.func for node in inside if node.lineno in self.plans.rows)
        return any(isinstance(func, ast.Attribute) and func.attr == "step" for func in calls)

    @cached_property
    def _sizes(self) -> list[int]:
        """Numbers in the code around the steps that may be sizes of what it is given, the frequent ones first."""
        counts: dict[int, int] = {}
        for scopes in self.scopes:
            for node in walked(scopes[0] if scopes else self.source.tree):
                if isinstance(node, ast.Constant) and type(node.value) is int and 2 <= node.value <= 1024:
                    counts[node.value] = counts.get(node.value, 0) + 1
        return sorted(counts, key=lambda number: (-counts[number], number))

    def _attempt(self, plan: Plan, setting: Setting) -> Attempt | None:
        """One script, or `None` if a step is not in it. It may have been written ahead."""
        if (plan, setting) in self._following:
            attempt, self.script = self._following.pop((plan, setting))
            return attempt
        return self.written(plan, setting)


def _under(like: Setting, size: int, seed: int) -> Setting:
    """A setting that did, with another seed and, if its size was one of the first ones, another size."""
    return replace(like, size=size if like.size in _SIZES else like.size, seed=seed)


def _asked(setting: Setting, run: Run, attempt: Attempt) -> Setting | None:
    """The setting that the exception which ended a run asks for."""
    if not run.ended or not run.raised:
        return None
    error, lines = run.raised[-1], attempt.script.split("\n")
    if error.kind == "StopIteration":
        return replace(setting, items=_MORE_ITEMS) if setting.items < _MORE_ITEMS else None
    row = error.rows[-1] if error.rows else 0
    return asked_of(setting, error.message, lines[row - 1] if 0 < row <= len(lines) else "")
