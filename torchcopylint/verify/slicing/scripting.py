"""Writes the script of one attempt: what is kept of a file, what it is given, and what drives it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from textwrap import indent

from torchcopylint.base.finding import Finding
from torchcopylint.verify.model import Attempt
from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.conditions import wanted_for
from torchcopylint.verify.slicing.driver import Driver
from torchcopylint.verify.slicing.dtypes import dtypes_asked, index_types_asked
from torchcopylint.verify.slicing.freezing import is_made_frozen
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.making import Maker
from torchcopylint.verify.slicing.meaning import meant
from torchcopylint.verify.slicing.moves import copied_elsewhere, only_elsewhere
from torchcopylint.verify.slicing.narrow import RENEWED
from torchcopylint.verify.slicing.needing import is_run_back
from torchcopylint.verify.slicing.opening import opened
from torchcopylint.verify.slicing.pieces import Piece, Pieces, pieces_of, unknown_in
from torchcopylint.verify.slicing.plans import Plan, Plans
from torchcopylint.verify.slicing.prune import LEFT_OUT
from torchcopylint.verify.slicing.refreshing import is_refreshed
from torchcopylint.verify.slicing.script import Script, assemble, marks_of, names_spoken, prelude
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    NotRunnable,
    Scope,
    Source,
    names_in,
    nodes_of,
    scopes_at,
    walked,
)
from torchcopylint.verify.slicing.standins import helpers, layers_guessed, rows_of_helpers
from torchcopylint.verify.slicing.switches import called_at_top, frozen, takes_nothing
from torchcopylint.verify.slicing.taking import is_taken_singly
from torchcopylint.verify.slicing.things import USED, Thing, find, is_bare, kind_of
from torchcopylint.verify.slicing.turns import often
from torchcopylint.verify.slicing.world import CONVENTIONAL
from torchcopylint.verify.slicing.writers import is_written

GRADIENT = frozenset({"raises-later", "gradient-differs", "graph-cut", "graph-kept", "raises"})
"""What is observed of gradients and graphs alone."""
_OF_TRAINING = frozenset({"backward", "optim", "training", "zero_grad", "enable_grad"})
"""What is only named where something is trained."""
_OF_SETTINGS = frozenset({"easydict.EasyDict", "addict.Dict", "munch.Munch", "ml_collections.ConfigDict"})
"""Dicts whose keys are attributes."""
_FIELD = re.compile(r"self\.\w+")


class Scripting:
    """The code around one finding, and how it is written as a script under a plan and a setting.

    `device` is where `.cuda()` goes, and `made_on` where tensors are made that do not say where. `script` is the last
    that was written, if any. `_misshapen`: a write is said to be lost, which hangs on how many dimensions an index has,
    and the code asked for one number where inputs gave more. `of_forms`: the exception that the rule means comes of how
    many numbers there are, and of no graph. Raises `NotRunnable`.
    """

    def __init__(self, source: Source, finding: Finding, confirm: tuple[str, ...], device: str, made_on: str) -> None:
        self.finding = finding
        self.confirm = confirm
        self.device = device
        self._made_on = made_on
        self.script: Script | None = None
        self._misshapen = self.of_forms = False
        spans = [step.span for step in finding.steps if step.filename == finding.filename] or [finding.span]
        self._step_rows = [span.start.row for span in spans]
        source, made_open = opened(source, {span.start.row for span in spans})
        source, made_often = often(source, {span.start.row for span in spans})
        self._opened = made_open + made_often
        self.source = source
        self.world = Inference(source.tree)
        self.scopes = [scopes_at(source.tree, span.start.row, span.start.column, source.lines) for span in spans]
        if any(isinstance(scope, ast.AsyncFunctionDef) for scopes in self.scopes for scope in scopes):
            raise NotRunnable("a step stands in an asynchronous function")
        self._moved = frozenset[tuple[int, int]]()
        if device == "cpu" and "result-lost" in confirm:
            self._moved = self._dropped_move()
        elif device == "cpu" and "graph-kept" in confirm:
            self._moved = only_elsewhere(source, finding)
        # A read of a gradient that is not there.
        reads = device == "cpu" and {"raises", "values-differ"} <= set(confirm)
        self._copied = copied_elsewhere(source, finding) if reads else frozenset[tuple[int, int]]()
        self.pieces = pieces_of(source, device, self._moved, self._copied)
        self.imports = self.pieces.imports
        graphs = bool({*GRADIENT, "flag-lost"} & set(confirm))
        self.plans = Plans(source.tree, self.scopes, {span.start.row for span in spans}, self.imports, graphs=graphs)
        self._wanted = wanted_for(source.tree, self.plans.rows)
        self.driver = Driver(self.world, finding, confirm)

    def written(self, plan: Plan, setting: Setting, *, again: bool = False) -> Attempt | None:
        """One script, or `None` if a step is not in it. `again`: what it needs beside the plan was put there."""
        kept = (self._apart if setting.apart else self.pieces).of(plan.kept)
        needed = frozenset[str]().union(*(piece.helpers for piece in kept))
        refused = {name: dotted for piece in kept for name, dotted in piece.refused.items()}
        bare = _bare_classes(kept, plan)
        kinds = dict(plan.kinds)
        maker = Maker(self.world, setting, bare, plan.plain, kinds, self._wanted, plan.flat, self._frozen)
        maker.taken |= set(self.imports).union(*(piece.binds for piece in kept))
        bindings = self._bindings(maker, dict.fromkeys((*unknown_in(kept, needed), *plan.bound)), refused)
        before = maker.definitions
        maker.definitions = []
        driver = self.driver.text(plan, maker) if plan.targets else ""
        if setting.unrecorded and driver.strip():
            driver = f"with torch.no_grad():\n{indent(driver, '    ')}"
        if setting.graded:
            maker.helpers.add("give_gradients")
        head = [prelude(setting.seed, self._made_on), helpers(maker.helpers | needed, setting, self._wanted)]
        classes = [text for text in maker.definitions if text.startswith(("class ", "def "))]
        variables = [text for text in maker.definitions if not text.startswith(("class ", "def "))]
        fixed = rows_of_helpers("\n\n".join(part.strip("\n") for part in head if part.strip()))
        head += [*before, *classes, "\n".join(bindings)]
        graded = [name for name in maker.modules if name.isidentifier()] if setting.graded else []
        maker.assumed += [f"the parameters of `{name}` have gradients" for name in graded]
        if setting.graded and maker.others:
            maker.assumed += [f"backward has run over what the fields of `{name}` hold" for name in maker.others]
            graded += maker.others
        after = "".join(variables) + "".join(f"give_gradients({name})\n" for name in graded) + driver
        missing = maker.instanced - frozenset[str]().union(*(piece.binds for piece in kept))
        if missing and not again:
            return self.written(
                replace(plan, kept=self.plans.with_definitions(plan.kept, missing)), setting, again=True
            )
        script = assemble("\n\n".join(part.strip("\n") for part in head if part.strip()), kept, after)
        self.script = script
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
            guessed=self._is_guess(maker, {name for names in plan.made for name in names})
            or (plan.cut and (self._misshapen or self._loses_result(script) or self._loses_write(script)))
            or (plan.cut and self._forgets_dtypes(plan, script))
            or self._nobody_collects
            or self._is_run_back
            or self._is_made_frozen
            or ("nothing-left" in self.confirm and maker.only_listed),
            unwritten=bool(plan.targets) and self._nobody_writes,
            unlent=self._unlent(plan, setting, script.text) if not setting.frozen else None,
            apart=self._made_apart(plan, setting, kept) if not setting.apart else None,
            fixed=fixed,
            meant=self._meant,
            partial=bool(maker.standins or self._moved)
            or plan.cut
            or bool(self._opened)
            or self._hangs_on_inputs(maker)
            or setting.size == 1,  # where all is one, much that happens cannot be seen
        )

    def _bindings(self, maker: Maker, unknown: Iterable[str], refused: Mapping[str, str]) -> list[str]:
        """Statements that bind names which nothing gives. `refused` are those of imports that are not made."""
        made = []
        things = {name: self._thing_at_module_level(name.removeprefix(RENEWED)) for name in unknown}
        # What is made for a model comes after it.
        for name in sorted(things, key=lambda name: kind_of(things[name])[0] != "module"):
            thing = things[name]
            dotted = refused.get(name, "")
            made.append(f"{name} = {self._elsewhere(maker, thing, name.removeprefix(RENEWED), dotted)}")
            if kind_of(thing)[0] == "module" and not dotted:
                maker.modules.append(name)
        return made

    def _thing_at_module_level(self, name: str) -> Thing:
        found = [part[name] for part in (self.world.locals.get(0, {}), self.world.globals) if name in part]
        # What the module makes of something from elsewhere says less than what functions do with it.
        return next((thing for thing in found if not is_bare(find(thing))), (*found, Thing(name))[0])

    def _unlent(self, plan: Plan, setting: Setting, text: str) -> Callable[[str], Attempt | None]:
        """What writes the same script with nothing that stands in requiring grad, and, where it is about `recording`
        and nothing in the file trains or calls it as a program does, with that off for what is called; or with inputs
        that are `leaves`; if that is another script."""

        def made(own: str) -> Attempt | None:
            if own == "recording" and (self._trains or self._is_called):
                return None
            now = self.script
            if own == "leaves":
                attempt = self.written(plan, replace(setting, leaves=True))
            else:
                attempt = self.written(plan, replace(setting, frozen=True, grad=False, unrecorded=own == "recording"))
            self.script = now
            return attempt if attempt is not None and attempt.script != text else None

        return made

    def _made_apart(self, plan: Plan, setting: Setting, kept: Sequence[Piece]) -> Callable[[], Attempt | None] | None:
        """What writes the same script with a GPU that stands in, if a step comes back from one."""
        moves = any(text.endswith(LEFT_OUT) and text.startswith("`.") for piece in kept for text in piece.replaced)
        if not moves or "two-names-change" not in self.confirm:
            return None
        if not any(".cpu()" in step.message or ".to()" in step.message for step in self.finding.steps):
            return None

        def made() -> Attempt | None:
            now = self.script
            attempt = self.written(plan, replace(setting, apart=True))
            self.script = now
            return attempt

        return made

    @cached_property
    def _apart(self) -> Pieces:
        """What `pieces` are where what is moved to a GPU is told from what is not."""
        return Pieces(self.source, self.device, self._moved, self._copied, apart=True)

    def _told_of_moves(self) -> list[str]:
        """What was assumed of the move that is dropped."""
        told = [f"the other device of line {row} is torch's `meta`" for row, _ in sorted(self._moved)]
        return [*told, *(f"line {row} copies, as to another device" for row, _ in sorted(self._copied))]

    def _hangs_on_inputs(self, maker: Maker) -> bool:
        """Whether the effect needs a graph, and inputs were made that may not have the one that the user's have."""
        return bool(GRADIENT & set(self.confirm)) and any("is a tensor" in text for text in maker.assumed)

    def _is_guess(self, maker: Maker, cut_away: set[str]) -> bool:
        """Whether something that the finding names was guessed: its kind, from its name alone, or that it requires
        grad, where the finding is about that and what is named was made. So it is where a step runs backward over what
        was made once, as what computes it is `cut_away`. Where it is about how many numbers there are, that what is
        called a loss is one is a guess."""
        texts = (self.finding.message, *(step.message for step in self.finding.steps))
        spoken = {name for text in texts for name in names_spoken(text)}
        roots = {name.split(".")[0].split("[")[0] for name in spoken}
        roots |= {found[0] for name in spoken if (found := _FIELD.match(name))} | self._fields_at_steps
        if self.of_forms:
            return bool(roots & (maker.guessed | maker.single))
        grad = bool({"raises", "raises-later", "gradient-differs"} & set(self.confirm))
        return bool(roots & maker.guessed) or (grad and bool(roots & maker.trained | self._backwards & cut_away))

    def _loses_result(self, script: Script) -> bool:
        """Whether a write that is said to be lost may only be lost because what returns it was cut away."""
        if "write-lost" not in self.confirm:
            return False
        kept = set(script.rows().values())
        return any(row not in kept for row in self._returning)

    def _loses_write(self, script: Script) -> bool:
        """Whether what is said to be one object was written before as well, and that was cut away: it may have been the
        same write."""
        if "same-object" not in self.confirm:
            return False
        kept = set(script.rows().values())
        return any(row not in kept for row in self._written_before)

    @cached_property
    def _written_before(self) -> frozenset[int]:
        """The rows in which elements are written of what some step names, before that in the same function."""
        found = set()
        for scopes, row in zip(self.scopes, self._step_rows, strict=True):
            inside = [node for node in walked(scopes[-1] if scopes else self.source.tree) if isinstance(node, ast.stmt)]
            named = {name for node in inside if node.lineno == row for name in names_in(node)}
            for node in inside:
                stored = [
                    part for part in walked(node) if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
                ]
                if node.lineno < row and {root for part in stored for root in names_in(part.value)} & named:
                    found |= {node.lineno} if not hasattr(node, "body") else set()
        return frozenset(found)

    def _forgets_dtypes(self, plan: Plan, script: Script) -> bool:
        """Whether it is cut away, or taken as met, that something is of another type than inputs are."""
        kept = set(script.rows().values())
        taken = {row for row in self._dtypes_asked for text in plan.assumed if f"branch of line {row} is" in text}
        return bool(taken or self._dtypes_asked - kept)

    @cached_property
    def _dtypes_asked(self) -> frozenset[int]:
        inner = [scope for scopes in self.scopes for scope in scopes[-1:]]
        asked = dtypes_asked(inner, self.plans.rows)
        return asked | index_types_asked(inner, self.plans.rows) if "write-lost" in self.confirm else asked

    @cached_property
    def _meant(self) -> str:
        return meant(self.source.tree, self.source.lines, self.scopes, self.plans.rows, self.confirm)

    @cached_property
    def _nobody_collects(self) -> bool:
        """Whether it is only assumed that somebody holds what a generator gives while it gives the next."""
        return "values-differ" in self.confirm and is_taken_singly(self.source.tree, self.scopes, self.plans.rows)

    @cached_property
    def _is_run_back(self) -> bool:
        """Whether a graph is kept for whoever in the file runs backward over what is handed back."""
        return "graph-kept" in self.confirm and is_run_back(
            self.source.tree, self.scopes, self.plans.rows, self._returning
        )

    @cached_property
    def _is_made_frozen(self) -> bool:
        """Whether a backward pass over what the steps are a part of is only assumed: who makes it freezes it."""
        return "raises-later" in self.confirm and is_made_frozen(self.source.tree, self.scopes)

    @cached_property
    def _returning(self) -> frozenset[int]:
        """The rows in which functions around the steps give back something that statements with a step in them name."""
        inside = [node for node in nodes_of(self.source.tree) if isinstance(node, ast.stmt)]
        spoken = {name for node in inside if node.lineno in self.plans.rows for name in names_in(node)}
        functions = [scope for scopes in self.scopes for scope in scopes if isinstance(scope, FunctionNode)]
        giving = (node for function in functions for node in walked(function))
        return frozenset(
            node.lineno
            for node in giving
            if isinstance(node, ast.Return | ast.Yield)
            and node.value is not None
            and spoken & set(names_in(node.value))
        )

    @cached_property
    def _frozen(self) -> dict[str, int]:
        """What the file switches off around the steps or at module level. It is so where it is made as well."""
        outer = {scope[0].name for scope in self.scopes if scope}
        body = self.source.tree.body
        return frozen(node for node in body if not isinstance(node, Scope) or node.name in outer)

    @cached_property
    def _trains(self) -> bool:
        """Whether something in the file is for training, or does other things in it: it counts on being recorded."""
        return any(
            (isinstance(node, ast.Attribute) and node.attr in _OF_TRAINING)
            or (isinstance(node, ast.Name) and node.id in _OF_TRAINING)
            for node in nodes_of(self.source.tree)
        )

    @cached_property
    def _is_called(self) -> bool:
        """Whether the steps stand where an object is made, in what the file itself calls at module level, or in what
        takes nothing from anybody, as a whole program does."""
        inner = {scopes[-1].name for scopes in self.scopes if scopes}
        names = {scope.name for scopes in self.scopes for scope in scopes[:1]}
        functions = [next((part for part in scopes if isinstance(part, FunctionNode)), None) for scopes in self.scopes]
        alone = all(function is not None and takes_nothing(function) for function in functions)
        return alone or "__init__" in inner or bool(names & called_at_top(self.source.tree))

    @cached_property
    def _nobody_writes(self) -> bool:
        """Whether it is only assumed that what is shared is written and then used: nothing in the file writes it, or
        all uses have it shared anew."""
        if not self.driver.written_later():
            return False
        return not is_written(self.source.tree, self.plans.rows) or is_refreshed(self.scopes, self.plans.rows)

    @cached_property
    def _backwards(self) -> set[str]:
        """The names that statements with a step in them run backward over."""
        called = (
            node.func
            for node in nodes_of(self.source.tree)
            if isinstance(node, ast.Call) and node.lineno in self.plans.rows and isinstance(node.func, ast.Attribute)
        )
        return {name for func in called if func.attr == "backward" for name in names_in(func.value)}

    @cached_property
    def _fields_at_steps(self) -> set[str]:
        """The fields of `self` that statements with a step in them name."""
        inside = (
            node
            for node in nodes_of(self.source.tree)
            if isinstance(node, ast.Attribute) and node.lineno in self.plans.rows
        )
        return {text for node in inside if _FIELD.fullmatch(text := ast.unparse(node))}

    def _elsewhere(self, maker: Maker, thing: Thing, name: str, dotted: str) -> str:
        """What a name from elsewhere is bound to."""
        if thing.dotted in CONVENTIONAL.values() and not dotted:
            maker.assumed.append(f"`{name}` is `{thing.dotted}`, as it mostly is")
            return thing.dotted
        _kind, weight = kind_of(thing)
        if name in self._raised:
            maker.standins.append(f"`{name}`: an exception")
            return f"type({name!r}, (Exception,), {{}})"
        if dotted.split(".")[0] == "pathlib":
            maker.helpers.add("Location")
            maker.standins.append(f"`{name}`: paths of which the file system is never asked")
            return "types.SimpleNamespace(Path=Location, PurePath=Location)" if dotted == "pathlib" else "Location"
        if dotted in _OF_SETTINGS and self._is_filled_here(name):
            maker.helpers.add("Options")
            maker.standins.append(f"`{name}`: a dict whose keys are attributes")
            return "Options"
        if dotted == "sklearn.model_selection.train_test_split":
            maker.helpers.add("in_two")
            maker.standins.append(f"`{name}`: every second item, and the others")
            return "in_two"
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

    def _is_filled_here(self, name: str) -> bool:
        """Whether all settings that a class from elsewhere makes are written down in what is run."""
        calls = [node for node in nodes_of(self.source.tree) if isinstance(node, ast.Call)]
        given = [part for call in calls if ast.unparse(call.func) == name for part in call.args]
        own = (ast.Dict, ast.DictComp)
        return all(isinstance(p, own) or (isinstance(p, ast.Call) and ast.unparse(p.func) == "dict") for p in given)

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

    def _dropped_move(self) -> frozenset[tuple[int, int]]:
        """Where a copy on another device is made and dropped: on the one that everything is on, there is none."""
        row = self.finding.span.start.row
        for node in nodes_of(self.source.tree):
            if isinstance(node, ast.Expr) and node.lineno == row and isinstance(node.value, ast.Call):
                func = node.value.func
                method = func.attr if isinstance(func, ast.Attribute) else ""
                told = ast.unparse(node.value).rpartition(f".{method}(")[2].lower()
                if method in tables.DEVICES or (method == "to" and ("device" in told or "cuda" in told)):
                    return frozenset({(node.value.lineno, node.value.col_offset)})
        return frozenset()

    @cached_property
    def _raised(self) -> frozenset[str]:
        """The names that are raised or caught: what they stand for is an exception, wherever it comes from."""
        found: list[ast.expr] = []
        for node in nodes_of(self.source.tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                found.append(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                found += node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        return frozenset(node.id for node in found if isinstance(node, ast.Name))


def _bare_classes(kept: Sequence[Piece], plan: Plan) -> Mapping[str, frozenset[str]]:
    """For each class whose objects are stood in for, the fields that its kept methods read."""
    found: dict[str, frozenset[str]] = {}
    for node in (node for piece in kept for node in piece.nodes) if plan.bare else ():
        if isinstance(node, ast.ClassDef):
            read = {
                part.attr
                for part in walked(node)
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
            }
            found[node.name] = frozenset(read)
    return found
