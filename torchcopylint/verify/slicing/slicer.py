"""From a finding to the scripts that show what its code does: which statements, which inputs, in which order."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchcopylint.base.finding import Finding, Role
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.pages import Page
from torchcopylint.verify.model import Attempt, Group, Slice
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.prune import Pruner, imported
from torchcopylint.verify.slicing.script import assemble, marks_of, prelude
from torchcopylint.verify.slicing.source import (
    FunctionNode,
    NotRunnable,
    Scope,
    Source,
    bound_by,
    changed_by,
    names_in,
    parse,
    scopes_at,
)
from torchcopylint.verify.slicing.standins import helpers
from torchcopylint.verify.slicing.things import Thing, kind_of
from torchcopylint.verify.slicing.values import Maker, Setting

_GRADIENT = frozenset({"raises-later", "gradient-differs", "graph-cut", "graph-kept", "raises"})


def slice_of(text: str, finding: Finding, page: Page, *, device: str = "cpu") -> Slice:
    """What is to be run for one finding of a file with this text. `page` is the page of its rule.

    `device` is where tensors are made and calls of `.cuda()` go. Never raises for what the file contains.
    """
    confirm = _words(page.get("confirm", finding.variant))
    try:
        with deep_recursion():
            slicer = _Slicer(parse(text), finding, confirm, device)
            return Slice(finding.code, finding.variant, confirm, slicer.groups())
    except (NotRunnable, RecursionError) as error:
        return Slice(finding.code, finding.variant, confirm, unsupported=str(error) or "the code nests too deeply")


def _words(confirm: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in confirm.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class _Plan:
    """One way of running: the statements that are kept, and the scopes that the driver calls, `()` for none."""

    label: str
    kept: tuple[ast.stmt, ...]
    targets: tuple[tuple[Scope, ...], ...] = ()


class _Slicer:
    def __init__(self, source: Source, finding: Finding, confirm: tuple[str, ...], device: str) -> None:
        self.source = source
        self.finding = finding
        self.confirm = confirm
        self.device = device
        self.world = Inference(source.tree)
        self.imports = imported(source.tree)
        spans = [step.span for step in finding.steps if step.filename == finding.filename] or [finding.span]
        if any(step.filename != finding.filename for step in finding.steps):
            raise NotRunnable("a step stands in another file")
        self.scopes = [scopes_at(source.tree, span.start.row, span.start.column, source.lines) for span in spans]
        if any(isinstance(scope, ast.AsyncFunctionDef) for scopes in self.scopes for scope in scopes):
            raise NotRunnable("a step stands in an asynchronous function")

    def groups(self) -> tuple[Group, ...]:
        """The settings to try: two seeds with two sizes each on its own."""
        settings = [("seed 0, size 4", 4, 0), ("seed 1, size 6", 6, 1)]
        return tuple(Group(label, self._attempts(size, seed)) for label, size, seed in settings)

    # -- ways of running

    def _plans(self) -> Iterator[_Plan]:
        body = self.source.tree.body
        targets = tuple(dict.fromkeys(chain for chain in self._targets() if chain))
        outer = {chain[0].name for chain in targets}
        if not targets or self._reached_from_module(outer):
            yield _Plan("the whole file", tuple(body))
        if targets:
            yield _Plan("a call", self._closure([chain[0] for chain in targets]), targets)
        if any(not chain for chain in self._targets()):
            yield _Plan("what the steps depend on", self._narrow())

    def _targets(self) -> Iterator[tuple[Scope, ...]]:
        """For each step the function, or the class and method, that has to be called for it."""
        for scopes in self.scopes:
            if not scopes:
                yield ()
            elif isinstance(scopes[0], FunctionNode):
                yield scopes[:1]
            else:
                inner = next((scope for scope in scopes[1:] if isinstance(scope, FunctionNode)), None)
                yield (scopes[0], inner) if inner is not None else (scopes[0],)

    def _reached_from_module(self, wanted: set[str]) -> bool:
        """Whether statements at module level use one of these functions or classes, themselves or through others."""
        reached: set[str] = set()
        definitions = {node.name: node for node in self.source.tree.body if isinstance(node, Scope)}
        pending = [name for node in self.source.tree.body if not isinstance(node, Scope) for name in names_in(node)]
        while pending:
            name = pending.pop()
            if name in reached:
                continue
            reached.add(name)
            if name in definitions:
                pending.extend(names_in(definitions[name]))
        return bool(wanted & reached)

    def _closure(self, roots: Sequence[ast.stmt]) -> tuple[ast.stmt, ...]:
        """The statements at module level that some of them depend on, in the file's order."""
        body = self.source.tree.body
        kept = {id(root) for root in roots}
        needed: set[str] = set()
        pending: list[ast.stmt] = list(roots)
        bound = {id(statement): bound_by(statement) for statement in body}
        changed = {
            id(statement): changed_by(statement) if not isinstance(statement, Scope) else set() for statement in body
        }
        while pending:
            needed |= set(names_in(pending.pop()))
            for statement in body:
                if id(statement) in kept:
                    continue
                plain = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign)
                if bound[id(statement)] & needed or (plain and changed[id(statement)] & needed):
                    kept.add(id(statement))
                    pending.append(statement)
        return tuple(statement for statement in body if id(statement) in kept)

    def _narrow(self) -> tuple[ast.stmt, ...]:
        """The statements at module level that the steps stand in, and what they depend on."""
        rows = [step.span.start.row for step in self.finding.steps] or [self.finding.span.start.row]
        roots = [
            statement
            for statement in self.source.tree.body
            if any(statement.lineno <= row <= (statement.end_lineno or row) for row in rows)
        ]
        return self._closure(roots)

    # -- attempts

    def _attempts(self, size: int, seed: int) -> Iterator[Attempt]:
        seen: set[str] = set()
        for plan in self._plans():
            for setting in self._settings(plan, size, seed):
                attempt = self._attempt(plan, setting)
                if attempt is not None and attempt.script not in seen:
                    seen.add(attempt.script)
                    yield attempt

    def _settings(self, plan: _Plan, size: int, seed: int) -> Iterator[Setting]:
        gradient = bool(_GRADIENT & set(self.confirm))
        graphs = (False, True) if gradient and plan.targets else (False,)
        sizes = [size, *(number for number in self._sizes() if number != size)]
        for dimensions, batch in ((2, 0), (4, 0), (3, 0), (1, 0), (2, 1), (0, 0)):
            for grad in graphs:
                yield Setting(size, dimensions, seed, grad=grad, device=self.device, batch=batch)
        for other in sizes[1:5]:
            for dimensions in (2, 4, 3, 1):
                for grad in graphs:
                    yield Setting(other, dimensions, seed, grad=grad, device=self.device)

    def _sizes(self) -> list[int]:
        """Numbers in the code around the steps that may be sizes of what it is given, the frequent ones first."""
        counts: dict[int, int] = {}
        for scopes in self.scopes:
            for node in ast.walk(scopes[0] if scopes else self.source.tree):
                if isinstance(node, ast.Constant) and type(node.value) is int and 2 <= node.value <= 1024:
                    counts[node.value] = counts.get(node.value, 0) + 1
        return sorted(counts, key=lambda number: (-counts[number], number))

    def _attempt(self, plan: _Plan, setting: Setting) -> Attempt | None:
        """One script, or `None` if a step is not in it."""
        kept = copy.deepcopy(list(plan.kept))
        pruner = Pruner(self.imports, self.device, frozenset())
        tree = pruner.visit(ast.Module(kept, []))
        tree.body = [statement for statement in tree.body if not isinstance(statement, ast.Pass)]
        maker = Maker(self.world, setting)
        maker.taken |= set().union(*(bound_by(statement) for statement in tree.body)) | set(self.imports)
        unknown = self._unknown(tree, pruner)
        bindings = []
        for name in unknown:
            thing = self.world.globals.get(name, Thing(name))
            dotted = pruner.unknown.get(name, "")
            bindings.append(f"{name} = {self._elsewhere(maker, thing, name, dotted)}")
        before = maker.definitions
        maker.definitions = []
        driver = self._driver(plan, maker) if plan.targets else ""
        head = [prelude(setting.seed), helpers(maker.helpers | pruner.helpers, setting.size)]
        classes = [text for text in maker.definitions if text.startswith(("class ", "def "))]
        variables = [text for text in maker.definitions if not text.startswith(("class ", "def "))]
        head += [*before, *classes, "\n".join(bindings)]
        after = "".join(variables) + driver
        script, placed = assemble(
            "\n\n".join(part.strip("\n") for part in head if part.strip()), tree.body, after, self.source.lines
        )
        marks = marks_of(self.finding, placed)
        if marks is None:
            return None
        return Attempt(
            script,
            marks,
            setting.seed,
            label=f"{plan.label}, {setting.dimensions} dimensions{', with a graph' if setting.grad else ''}",
            assumed=tuple(dict.fromkeys(maker.assumed)),
            standins=tuple(dict.fromkeys((*maker.standins, *pruner.replaced))),
            guessed=self._is_guess(maker),
        )

    def _is_guess(self, maker: Maker) -> bool:
        """Whether the kind of something that the finding names was guessed from its name alone."""
        from torchcopylint.verify.slicing.script import _NAMES

        spoken = {name for step in self.finding.steps for name in _NAMES.findall(step.message)}
        roots = {part.split(".")[0].split("[")[0] for part in spoken}
        return bool(roots & maker.guessed)

    def _unknown(self, tree: ast.Module, pruner: Pruner) -> list[str]:
        """The names that the statements need and nothing gives, in the order of their first use."""
        bound = set(pruner.helpers) | {"np", "torch", "random", "types", "Anything", "few"}
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt):
                bound |= bound_by(node)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
                bound.add(node.name)
        annotations = _annotation_names(tree)
        found = dict.fromkeys(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name)
            and node.id not in bound
            and not hasattr(builtins, node.id)
            and id(node) not in annotations
        )
        return list(found)

    def _elsewhere(self, maker: Maker, thing: Thing, name: str, dotted: str) -> str:
        """What a name from elsewhere is bound to."""
        _kind, weight = kind_of(thing)
        if dotted.split(".")[-1] in ("tqdm", "trange"):
            return "lambda given=(), *_, **__: given" if dotted.endswith("tqdm") else "range"
        if thing.result is not None and not thing.attributes:
            return maker.expression(thing, name)
        if dotted or (thing.attributes and weight < 3):
            if thing.attributes:
                return self._module_of(maker, thing, name)
            return maker._anything(name)
        return maker.expression(thing, name)

    def _module_of(self, maker: Maker, thing: Thing, name: str) -> str:
        """What stands for a module from elsewhere: what is called of it, and everything else."""
        return maker._anything(name)

    # -- the driver

    def _driver(self, plan: _Plan, maker: Maker) -> str:
        lines: list[str] = []
        objects: dict[str, str] = {}
        backward = bool({"raises-later", "gradient-differs"} & set(self.confirm))
        calls: list[str] = []
        for chain in plan.targets:
            if isinstance(chain[0], FunctionNode):
                calls.append(self._call_function(chain[0], maker))
            else:
                made = self._call_method(chain, maker, objects, lines)
                if made:
                    calls.append(made)
        once = len(calls) == 1 and not objects
        for turn in range(1 if once else 2):
            for number, call in enumerate(calls):
                name = f"result_{turn * len(calls) + number + 1}"
                lines.append(f"{name} = {call}")
                if backward:
                    maker.helpers.add("backpropagate")
                    lines.append(f"backpropagate({name})")
        if self._written_later():
            things = [name for name in maker.arguments_given if name.isidentifier()]
            if things:
                maker.helpers.add("change")
                lines += [f"change({name})" for name in things]
                maker.assumed.append("what was passed is written in place afterwards")
        if backward:
            maker.assumed.append("what is returned goes into a backward pass")
        return "\n".join(lines) + "\n"

    def _written_later(self) -> bool:
        """Whether the finding is about every later write, and has none of its own."""
        words = {"two-names-change", "two-tensors-change"} & set(self.confirm)
        return bool(words) and not any(step.role is Role.WRITTEN for step in self.finding.steps)

    def _call_function(self, function: FunctionNode, maker: Maker) -> str:
        arguments = maker.arguments(function, None, 1)
        call = f"{function.name}({arguments})"
        return f"list({call})" if _is_generator(function) else call

    def _call_method(self, chain: tuple[Scope, ...], maker: Maker, objects: dict[str, str], lines: list[str]) -> str:
        cls = chain[0]
        assert isinstance(cls, ast.ClassDef)
        method = chain[1] if len(chain) > 1 else None
        decorators = (
            {ast.unparse(item).split("(")[0] for item in method.decorator_list} if method is not None else set()
        )
        if method is not None and _is_autograd_function(cls) and isinstance(method, FunctionNode):
            return self._apply(cls, maker)
        if decorators & {"staticmethod", "classmethod"} and isinstance(method, FunctionNode):
            skip = "classmethod" in decorators
            arguments = maker.arguments(method, cls.name if skip else None, 1)
            return f"{cls.name}.{method.name}({arguments})"
        if cls.name not in objects:
            variable = f"{cls.name.lower()}_object"
            text = maker.expression(self.world.self_of(cls.name), cls.name)
            objects[cls.name] = variable
            maker.named[id(self.world.self_of(cls.name))] = variable
            if maker.is_module(cls.name):
                maker.modules.append(variable)
            maker.definitions.append(f"{variable} = {text}\n")
        it = objects[cls.name]
        if method is None or not isinstance(method, FunctionNode) or method.name == "__init__":
            return ""
        if "property" in decorators:
            return f"{it}.{method.name}"
        arguments = maker.arguments(method, cls.name, 1)
        called = f"{it}({arguments})" if method.name in ("forward", "__call__") else f"{it}.{method.name}({arguments})"
        return f"list({called})" if _is_generator(method) else called

    def _apply(self, cls: ast.ClassDef, maker: Maker) -> str:
        """A custom autograd Function is applied."""
        forward = next((m for m in cls.body if isinstance(m, FunctionNode) and m.name == "forward"), None)
        if forward is None:
            return ""
        given, _ = self.world.signature(forward, None)
        names = [parameter.arg for parameter in forward.args.args[1:]]
        texts = [maker._argument(given[name], name, 1) for name in names]
        return f"{cls.name}.apply({', '.join(texts)})"


def _annotation_names(tree: ast.Module) -> set[int]:
    """The names in annotations, which are never evaluated."""
    found: set[int] = set()
    for node in ast.walk(tree):
        annotations = []
        if isinstance(node, ast.arg) and node.annotation is not None:
            annotations.append(node.annotation)
        elif isinstance(node, FunctionNode) and node.returns is not None:
            annotations.append(node.returns)
        elif isinstance(node, ast.AnnAssign):
            annotations.append(node.annotation)
        for annotation in annotations:
            found |= {id(inner) for inner in ast.walk(annotation)}
    return found


def _is_generator(function: FunctionNode) -> bool:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Scope | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return False


def _is_autograd_function(cls: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rsplit(".", 1)[-1] == "Function" for base in cls.bases)
