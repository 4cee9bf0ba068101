"""From a finding to the scripts that show what its code does: which statements, which inputs, in which order."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

from torchcopylint.base.finding import Finding, Severity
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import Page
from torchcopylint.source.notebook import cells
from torchcopylint.verify.model import Attempt, Group, Slice
from torchcopylint.verify.observed import Run
from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.asking import asked as asked_of
from torchcopylint.verify.slicing.conditions import wanted_for, writes_compared
from torchcopylint.verify.slicing.driver import Driver
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.learning import Learner, Lesson
from torchcopylint.verify.slicing.linking import Linked, Project, linked
from torchcopylint.verify.slicing.moves import only_elsewhere
from torchcopylint.verify.slicing.opening import opened
from torchcopylint.verify.slicing.pieces import Piece, pieces_of, unknown_in
from torchcopylint.verify.slicing.plans import Plan, Plans
from torchcopylint.verify.slicing.script import Script, assemble, marks_of, names_spoken, prelude
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.skipping import Skipper
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    NotRunnable,
    Source,
    in_text,
    names_in,
    parse,
    scopes_at,
)
from torchcopylint.verify.slicing.standins import helpers, layers_guessed
from torchcopylint.verify.slicing.things import USED, WEAK, Thing, find, kind_of
from torchcopylint.verify.slicing.tries import Heard
from torchcopylint.verify.slicing.values import Maker
from torchcopylint.verify.slicing.writers import is_written

_SIZES = (4, 6)
_LARGE = 64
"""What depends on the amount of data, such as an operation that works in blocks, is not refuted by small inputs."""
_SIDES = (28, 32, 64, 84, 96, 128, 224)
"""Usual sides of images."""
_SHARING = frozenset({"two-names-change", "two-tensors-change", "same-object"})
_CONVERSIONS = ("to", "float", "type", "type_as")
_ASKED = 8
"""So many times a way of running is tried with the inputs that an exception asks for."""
_MORE_ITEMS = 8
"""So many batches a loader gives where two were too few."""
_MANY_ROWS = 400
"""If more of other files comes along, the file alone is run before."""
_LESSONS = 24
"""So many times the least part is run again without what failed."""
_SKIPS = 12
"""So many times the file is run again without what failed."""
_FIELD = re.compile(r"self\.\w+")
_GRADIENT = frozenset({"raises-later", "gradient-differs", "graph-cut", "graph-kept", "raises"})


def slice_of(
    text: str,
    finding: Finding,
    page: Page,
    *,
    device: str = "cpu",
    project: Project | None = None,
    instead: bool = False,
) -> Slice:
    """What is to be run for one finding of a file with this text. `page` is the page of its rule.

    `device` is where `.cuda()` goes, and where tensors are made that do not say where. Should that leave the finding
    open, they are made on the processor, as NumPy needs them and a move to the device. Of other files of the `project`
    comes what is needed. Where it leaves the finding open, the file alone may not, or the other way round; `instead`:
    it is that other slice. Never raises for what the files contain.
    """
    if device == "cpu":
        return _slice(text, finding, page, device, device, project, instead=instead)
    there = _slice(text, finding, page, device, device, project, instead=instead)
    return _followed(there, lambda: _slice(text, finding, page, device, "cpu", project, instead=instead))


def _followed(piece: Slice, last: Callable[[], Slice]) -> Slice:
    before = piece.otherwise
    return replace(piece, otherwise=last if before is None else lambda: _followed(before(), last))


def _slice(
    text: str, finding: Finding, page: Page, device: str, made_on: str, project: Project | None, *, instead: bool
) -> Slice:
    confirm, told = _words(page.get("confirm", finding.variant)), finding
    notebook = cells(text) if finding.cell is not None else ()
    finding = in_text(finding, text)
    try:
        with deep_recursion():
            conditional = page.severity(finding.variant) is Severity.WARNING and bool(_SHARING & set(confirm))
            whole, finding = _linked(text, finding, project)
            elsewhere = any(step.span.start.row < 0 for step in finding.steps)
            if whole.rows > _MANY_ROWS and not elsewhere and not instead:
                # The smaller program first.
                alone = _slice(text, told, page, device, made_on, None, instead=False)
                return _followed(alone, lambda: _slice(text, told, page, device, made_on, project, instead=True))
            # Of a long program, what it takes to leave parts of it out is not tried again.
            brief = instead and whole.rows > _MANY_ROWS
            slicer = _Slicer(whole.source, finding, confirm, device, made_on, conditional=conditional, brief=brief)
            piece = Slice(
                finding.code,
                finding.variant,
                confirm,
                slicer.groups(),
                cells=notebook,
                elsewhere="graph-kept" in confirm and only_elsewhere(whole.source, finding),
                place=whole.place,
            )
            if not whole.above or elsewhere or instead:
                return piece
            return _followed(piece, lambda: _slice(text, told, page, device, made_on, None, instead=False))
    except (NotRunnable, RecursionError) as error:
        return Slice(finding.code, finding.variant, confirm, unsupported=str(error) or "the code nests too deeply")


def _linked(text: str, finding: Finding, project: Project | None) -> tuple[Linked, Finding]:
    """The file with what it needs of others, and the finding in it."""
    whole = linked(text, finding, project) if project is not None else Linked(parse(text))
    placed = whole.finding(finding)
    if placed is None:
        raise NotRunnable("a step stands in another file")
    return whole, placed


def texts_of_others(text: str, finding: Finding, project: Project) -> tuple[tuple[str, str], ...]:
    """The other files, with their texts, that a verdict on a finding depends on."""
    try:
        return linked(text, in_text(finding, text), project).read
    except (NotRunnable, RecursionError):
        return ()


def _words(confirm: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in confirm.split(",") if part.strip())


class _Slicer:
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
        self._brief = brief
        self.finding = finding
        self.confirm = confirm
        self.device = device
        self._made_on = made_on
        self._conditional = conditional
        self._converts = "result-lost" in confirm and any(f"`{name}()`" in finding.message for name in _CONVERSIONS)
        self._orders = "result-lost" in confirm and "`contiguous()`" in finding.message
        self._worked: tuple[Plan, Setting] | None = None
        self._failed = False
        self._heard: dict[str, Run] = {}
        self._given = ""
        self._script: Script | None = None
        self._following: dict[tuple[Plan, Setting], tuple[Attempt | None, Script | None]] = {}
        spans = [step.span for step in finding.steps if step.filename == finding.filename] or [finding.span]
        source, self._opened = opened(source, {span.start.row for span in spans})
        self.source = source
        self.world = Inference(source.tree)
        self.scopes = [scopes_at(source.tree, span.start.row, span.start.column, source.lines) for span in spans]
        if any(isinstance(scope, ast.AsyncFunctionDef) for scopes in self.scopes for scope in scopes):
            raise NotRunnable("a step stands in an asynchronous function")
        self._moved = self._dropped_move() if device == "cpu" and "result-lost" in confirm else frozenset()
        self.pieces = pieces_of(source, device, self._moved)
        self.imports = self.pieces.imports
        self.plans = Plans(source.tree, self.scopes, {span.start.row for span in spans}, self.imports)
        self._wanted = wanted_for(source.tree, self.plans.rows)
        self._spread = writes_compared(source.tree, self.plans.rows)
        self.driver = Driver(self.world, finding, confirm)

    def _dropped_move(self) -> frozenset[tuple[int, int]]:
        """Where a copy on another device is made and dropped: on the one that everything is on, there is none."""
        row = self.finding.span.start.row
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Expr) and node.lineno == row and isinstance(node.value, ast.Call):
                func = node.value.func
                method = func.attr if isinstance(func, ast.Attribute) else ""
                told = ast.unparse(node.value).rpartition(f".{method}(")[2].lower()
                if method in tables.DEVICES or (method == "to" and ("device" in told or "cuda" in told)):
                    return frozenset({(node.value.lineno, node.value.col_offset)})
        return frozenset()

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

    @cached_property
    def _raised(self) -> frozenset[str]:
        """The names that are raised or caught: what they stand for is an exception, wherever it comes from."""
        found: list[ast.expr] = []
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                found.append(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                found += node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        return frozenset(node.id for node in found if isinstance(node, ast.Name))

    # -- attempts

    def _hear(self, run: Run) -> None:
        """What came of the attempt that was given last."""
        self._heard[self._given] = run

    def _told(self, verdict: Verdict) -> None:
        """What came of a setting: where it was left open, or not reached, the next one is not searched again."""
        if verdict not in (Verdict.CONFIRMED, Verdict.REFUTED):
            self._worked, self._failed = None, True

    def _attempts(self, size: int, seed: int) -> Iterator[Attempt]:
        """Attempts until the caller has what it wants. What worked under one setting comes first under the next."""
        seen: set[str] = set()
        heard = Heard()
        tries = self._tries(size, seed)
        wants: list[tuple[Plan, Setting]] = []
        asked: dict[str, int] = {}
        while True:
            wanted = bool(wants)
            found = wants.pop() if wanted else next(tries, None)
            if found is None:
                break
            plan, setting = found
            attempt = self._attempt(plan, setting) if wanted or plan.label not in heard.spent else None
            if attempt is not None and attempt.script not in seen:
                seen.add(attempt.script)
                self._worked = (plan, setting)
                self._given = attempt.script
                yield self._with_next(attempt, plan, setting)
                run = self._heard.get(attempt.script)
                if run is not None:
                    heard.add(plan.label, run, len(attempt.marks))
                    again = self._again(plan, setting, run, attempt)
                    if again is not None and asked.get(plan.label, 0) < _ASKED:
                        asked[plan.label] = asked.get(plan.label, 0) + 1
                        wants.append(again)
        if not self._failed and not self._brief:
            yield from self._skipping(size, seed, seen)
            yield from self._learning(size, seed, seen)
        self._worked, self._failed = None, True

    def _with_next(self, attempt: Attempt, plan: Plan, setting: Setting) -> Attempt:
        """An attempt under the first setting, with the one that comes first under the second if it does there."""
        if setting.seed != 0:
            return attempt

        def following() -> Attempt | None:
            key = (plan, _under(setting, _SIZES[1], 1))
            if key not in self._following:
                now = self._script
                made = self._attempt(*key)
                self._following[key], self._script = (made, self._script), now
            return self._following[key][0]

        return replace(attempt, next=following, likely=plan.label == "the whole file")

    def _again(self, plan: Plan, setting: Setting, run: Run, attempt: Attempt) -> tuple[Plan, Setting] | None:
        """The same with the inputs that the exception which ended a run asks for."""
        wanted = _asked(setting, run, attempt)
        if wanted is not None:
            return plan, wanted
        assert self._script is not None
        if self._supplied(run, self._script):
            return plan, setting
        kinds = dict(self._reader.kinds(run, self._script.rows()))
        if kinds.items() <= dict(plan.kinds).items():
            return None
        return replace(plan, kinds=tuple({**dict(plan.kinds), **kinds}.items())), setting

    def _supplied(self, run: Run, script: Script) -> bool:
        """Whether something lacked a key that ended a run, and is now made with it."""
        fresh = [
            (thing, key)
            for name, key in self._reader.lacks(run, script.rows())
            for thing in self.world.things_called(name)
            if key not in thing.items
        ]
        for thing, key in fresh:
            thing.item(key)
            thing.vote("dict", WEAK)
        return bool(fresh)

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
        setting = next(self._settings(plan, size, seed))
        for _ in range(_SKIPS):
            attempt = self._attempt(skipper.plan(plan), setting)
            script = self._script
            if attempt is None or script is None:
                return
            if attempt.script not in seen:
                seen.add(attempt.script)
                self._given, self._worked = attempt.script, (skipper.plan(plan), setting)
                yield self._with_next(attempt, *self._worked)
            run = self._heard.get(attempt.script)
            if run is not None and self._supplied(run, script):
                continue
            if run is None or not skipper.learns(run, script.rows()):
                return

    def _learning(self, size: int, seed: int, seen: set[str]) -> Iterator[Attempt]:
        """The least part again and again, each time without what did not run the time before."""
        lesson: Lesson | None = Lesson()
        asked: list[Setting] = []
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
            script = self._script
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
            wanted = _asked(setting, run, attempt) if len(asked) < _ASKED else None
            if wanted is not None:
                asked.append(wanted)
                graded = graded or wanted.graded
                continue
            before = lesson.setting
            lesson = learner.after(lesson, run, attempt.marks, script.rows())
            if lesson is not None and lesson.setting != before:
                asked.clear()

    def _settings(self, plan: Plan, size: int, seed: int) -> Iterator[Setting]:
        gradient = bool(_GRADIENT & set(self.confirm))
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
    def _sizes(self) -> list[int]:
        """Numbers in the code around the steps that may be sizes of what it is given, the frequent ones first."""
        counts: dict[int, int] = {}
        for scopes in self.scopes:
            for node in ast.walk(scopes[0] if scopes else self.source.tree):
                if isinstance(node, ast.Constant) and type(node.value) is int and 2 <= node.value <= 1024:
                    counts[node.value] = counts.get(node.value, 0) + 1
        return sorted(counts, key=lambda number: (-counts[number], number))

    def _attempt(self, plan: Plan, setting: Setting, *, again: bool = False) -> Attempt | None:
        """One script, or `None` if a step is not in it. `again`: what it needs beside the plan was put there."""
        if (plan, setting) in self._following:
            attempt, self._script = self._following.pop((plan, setting))
            return attempt
        kept = self.pieces.of(plan.kept)
        needed = frozenset[str]().union(*(piece.helpers for piece in kept))
        refused = {name: dotted for piece in kept for name, dotted in piece.refused.items()}
        bare = _bare_classes(kept, plan)
        kinds = dict(plan.kinds)
        maker = Maker(self.world, setting, bare, plan.plain, kinds, self._wanted, plan.flat)
        maker.taken |= set(self.imports).union(*(piece.binds for piece in kept))
        unknown = dict.fromkeys((*unknown_in(kept, needed), *plan.bound))
        bindings = []
        firsts = self.world.locals.get(0, {})
        things = {name: firsts.get(name) or self.world.globals.get(name) or Thing(name) for name in unknown}
        # What is made for a model comes after it.
        for name in sorted(unknown, key=lambda name: kind_of(things[name])[0] != "module"):
            thing = things[name]
            dotted = refused.get(name, "")
            bindings.append(f"{name} = {self._elsewhere(maker, thing, name, dotted)}")
            if kind_of(thing)[0] == "module" and not dotted:
                maker.modules.append(name)
        before = maker.definitions
        maker.definitions = []
        driver = self.driver.text(plan, maker) if plan.targets else ""
        if setting.graded:
            maker.helpers.add("give_gradients")
        head = [prelude(setting.seed, self._made_on), helpers(maker.helpers | needed, setting, self._wanted)]
        classes = [text for text in maker.definitions if text.startswith(("class ", "def "))]
        variables = [text for text in maker.definitions if not text.startswith(("class ", "def "))]
        head += [*before, *classes, "\n".join(bindings)]
        graded = [f"give_gradients({name})" for name in maker.modules if name.isidentifier()] if setting.graded else []
        maker.assumed += [f"the parameters of `{name[15:-1]}` have gradients" for name in graded]
        after = "".join(variables) + "".join(f"{line}\n" for line in graded) + driver
        missing = maker.instanced - frozenset[str]().union(*(piece.binds for piece in kept))
        if missing and not again:
            return self._attempt(
                replace(plan, kept=self.plans.with_definitions(plan.kept, missing)), setting, again=True
            )
        script = assemble("\n\n".join(part.strip("\n") for part in head if part.strip()), kept, after)
        self._script = script
        marks = marks_of(self.finding, script)
        if marks is None:
            return None
        layers = layers_guessed(node for piece in kept for node in piece.nodes)
        maker.standins += [f"`self.{name}`: a layer, which its name alone suggests" for name in sorted(layers)]
        maker.guessed |= {f"self.{name}" for name in layers}
        return Attempt(
            script.text,
            marks,
            setting.seed,
            label=f"{plan.label}, {setting.dimensions} dimensions{', with a graph' if setting.grad else ''}",
            assumed=tuple(dict.fromkeys((*maker.assumed, *self._opened, *plan.assumed, *self._told_of_moves()))),
            standins=tuple(dict.fromkeys((*maker.standins, *(text for piece in kept for text in piece.replaced)))),
            guessed=self._is_guess(maker) or (plan.cut and self._loses_result(script)),
            unwritten=bool(plan.targets) and self._nobody_writes,
            partial=bool(maker.standins or self._moved)
            or plan.cut
            or bool(self._opened)
            or self._hangs_on_inputs(maker)
            or setting.size == 1,  # where all is one, much that happens cannot be seen
        )

    def _told_of_moves(self) -> list[str]:
        """What was assumed of the move that is dropped."""
        return [f"the other device of line {row} is torch's `meta`" for row, _ in sorted(self._moved)]

    def _hangs_on_inputs(self, maker: Maker) -> bool:
        """Whether the effect needs a graph, and inputs were made that may not have the one that the user's have."""
        return bool(_GRADIENT & set(self.confirm)) and any("is a tensor" in text for text in maker.assumed)

    def _is_guess(self, maker: Maker) -> bool:
        """Whether something that the finding names was guessed: its kind, from its name alone, or that it requires
        grad, where the finding is about that and what is named was made."""
        texts = (self.finding.message, *(step.message for step in self.finding.steps))
        spoken = {name for text in texts for name in names_spoken(text)}
        roots = {name.split(".")[0].split("[")[0] for name in spoken}
        roots |= {found[0] for name in spoken if (found := _FIELD.match(name))} | self._fields_at_steps
        grad = bool({"raises", "raises-later", "gradient-differs"} & set(self.confirm))
        return bool(roots & maker.guessed) or (grad and bool(roots & maker.trained))

    def _loses_result(self, script: Script) -> bool:
        """Whether a write that is said to be lost may only be lost because what returns it was cut away."""
        if "write-lost" not in self.confirm:
            return False
        kept = set(script.rows().values())
        return any(row not in kept for row in self._returning)

    @cached_property
    def _returning(self) -> frozenset[int]:
        """The rows in which functions around the steps give back something that statements with a step in them name."""
        inside = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.stmt)]
        spoken = {name for node in inside if node.lineno in self.plans.rows for name in names_in(node)}
        functions = [scope for scopes in self.scopes for scope in scopes if isinstance(scope, FunctionNode)]
        giving = (node for function in functions for node in ast.walk(function))
        return frozenset(
            node.lineno
            for node in giving
            if isinstance(node, ast.Return | ast.Yield)
            and node.value is not None
            and spoken & set(names_in(node.value))
        )

    @cached_property
    def _nobody_writes(self) -> bool:
        """Whether it is only assumed that what is shared is written, and nothing in the file does."""
        return self.driver.written_later() and not is_written(self.source.tree, self.plans.rows)

    @cached_property
    def _fields_at_steps(self) -> set[str]:
        """The fields of `self` that statements with a step in them name."""
        inside = (
            node
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Attribute) and node.lineno in self.plans.rows
        )
        return {text for node in inside if _FIELD.fullmatch(text := ast.unparse(node))}

    def _elsewhere(self, maker: Maker, thing: Thing, name: str, dotted: str) -> str:
        """What a name from elsewhere is bound to."""
        _kind, weight = kind_of(thing)
        if name in self._raised:
            maker.standins.append(f"`{name}`: an exception")
            return f"type({name!r}, (Exception,), {{}})"
        if dotted.split(".")[0] == "pathlib":
            maker.helpers.add("Location")
            maker.standins.append(f"`{name}`: paths of which the file system is never asked")
            return "types.SimpleNamespace(Path=Location, PurePath=Location)" if dotted == "pathlib" else "Location"
        if dotted.split(".")[-1] in ("tqdm", "trange"):
            maker.helpers.add("Progress")
            return "Progress" if dotted.endswith("tqdm") else "lambda *given, **_: Progress(range(*given))"
        if (thing.result is not None and not thing.attributes) or (thing.attributes and name in tables.SETTINGS):
            return maker.expression(thing, name)
        if dotted or (thing.attributes and weight < 3):
            if thing.attributes:
                return self._module_of(maker, thing, name)
            return maker._anything(name)
        return maker.expression(thing, name)

    def _module_of(self, maker: Maker, thing: Thing, name: str) -> str:
        """What stands for a module from elsewhere: what is called of it, and everything else."""
        parts = []
        for key, part in thing.attributes.items():
            made = find(part.result) if part.result is not None and not part.attributes else None
            kind, weight = kind_of(made) if made is not None else ("", 0)
            if made is not None and (made.arity > 1 or (kind == "module" and weight >= USED)):
                parts.append(f"{key}={maker._callable(part, f'{name}.{key}', 1)}")
        text = maker._anything(name)
        return f"{text[:-1]}, {', '.join(parts)})" if parts else text


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


def _bare_classes(kept: Sequence[Piece], plan: Plan) -> Mapping[str, frozenset[str]]:
    """For each class whose objects are stood in for, the fields that its kept methods read."""
    found: dict[str, frozenset[str]] = {}
    for node in (node for piece in kept for node in piece.nodes) if plan.bare else ():
        if isinstance(node, ast.ClassDef):
            read = {
                part.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
            }
            found[node.name] = frozenset(read)
    return found
