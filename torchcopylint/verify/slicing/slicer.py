"""From a finding to the scripts that show what its code does: which statements, which inputs, in which order."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torchcopylint.base.finding import Finding, Role
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.pages import Page
from torchcopylint.verify.model import Attempt, Group, Slice
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.narrow import Narrower, narrowed
from torchcopylint.verify.slicing.prune import Pruner, imported
from torchcopylint.verify.slicing.script import assemble, marks_of, names_spoken, prelude
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

_SIZES = (4, 6)
_SIDES = (28, 32, 64, 84, 96, 128, 224)
"""Usual sides of images."""
_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
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
    """One way of running: the statements that are kept, and the scopes that the driver calls, `()` for none.

    `made` are local names that have to be passed to what is called, by its number in `targets`. `bare`: objects of the
    file's classes are not made by their own `__init__`. `bound` are names at module level that have to be made.
    """

    label: str
    kept: tuple[ast.stmt, ...]
    targets: tuple[tuple[Scope, ...], ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    bare: bool = False
    bound: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    cut: bool = False


class _Slicer:
    def __init__(self, source: Source, finding: Finding, confirm: tuple[str, ...], device: str) -> None:
        self.source = source
        self.finding = finding
        self.confirm = confirm
        self.device = device
        self._worked: tuple[int, Setting] | None = None
        self._failed = False
        self.world = Inference(source.tree)
        self.imports = imported(source.tree)
        self._known_names = {
            name for node in ast.walk(source.tree) if isinstance(node, ast.stmt) for name in bound_by(node)
        }
        spans = [step.span for step in finding.steps if step.filename == finding.filename] or [finding.span]
        if any(step.filename != finding.filename for step in finding.steps):
            raise NotRunnable("a step stands in another file")
        self.scopes = [scopes_at(source.tree, span.start.row, span.start.column, source.lines) for span in spans]
        if any(isinstance(scope, ast.AsyncFunctionDef) for scopes in self.scopes for scope in scopes):
            raise NotRunnable("a step stands in an asynchronous function")

    def groups(self) -> tuple[Group, ...]:
        """The settings to try: two seeds with two sizes each on its own."""
        settings = [(f"seed {seed}, size {size}", size, seed) for seed, size in enumerate(_SIZES)]
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
            yield _Plan("what the steps depend on", self._narrow(), cut=True)
            yield from self._cut_module()
        if targets:
            yield from self._cut_functions(targets)

    def _rows(self) -> set[int]:
        rows = {step.span.start.row for step in self.finding.steps if step.filename == self.finding.filename}
        return rows or {self.finding.span.start.row}

    def _module_names(self) -> set[str]:
        return set().union(*(bound_by(node) for node in self.source.tree.body if not isinstance(node, _IMPORTS)), set())

    def _cut_module(self) -> Iterator[_Plan]:
        """The module's own statements, cut down."""
        body = self.source.tree.body
        definitions = [node for node in body if isinstance(node, (*_SCOPES, *_IMPORTS))]
        narrower = Narrower(self._rows(), self.imports, {name for node in definitions for name in bound_by(node)})
        plain = [node for node in body if node not in definitions]
        wanted = self._closure(narrower.cut(plain, ()), definitions)
        kept = narrower.cut(plain, (), {name for node in wanted for name in names_in(node)})
        if kept:
            wanted = self._closure(kept, definitions)
            bound = tuple(name for name in narrower.free if name not in self.imports)
            yield _Plan("a part", (*wanted, *kept), bound=bound, assumed=tuple(narrower.assumed), cut=True)

    def _cut_functions(self, targets: tuple[tuple[Scope, ...], ...]) -> Iterator[_Plan]:
        """The called functions, cut down."""
        yield from self._cut(targets, "a part", changes=True, bare=False)
        bare = any(isinstance(chain[0], ast.ClassDef) for chain in targets)
        yield from self._cut(targets, "the least part", changes=False, bare=bare)

    def _cut(self, targets: tuple[tuple[Scope, ...], ...], label: str, *, changes: bool, bare: bool) -> Iterator[_Plan]:
        known = self._module_names()
        cut: dict[int, FunctionNode] = {}
        made = []
        assumed: list[str] = []
        for chain in targets:
            function = chain[-1]
            narrower = Narrower(self._rows(), self.imports, known, changes=changes)
            found = narrowed(function, narrower) if isinstance(function, _FUNCTIONS) else None
            if found is not None:
                cut[id(function)] = found
            made.append(tuple(narrower.free) if found is not None else ())
            assumed += narrower.assumed
        if cut or bare:
            roots = {id(chain[0]): self._with_cut(chain[0], cut, keep_init=not bare) for chain in targets}
            kept = self._replaced(roots)
            yield _Plan(label, kept, targets, tuple(made), bare, assumed=tuple(assumed), cut=True)

    def _replaced(self, roots: dict[int, ast.stmt]) -> tuple[ast.stmt, ...]:
        """What cut scopes depend on, with them in the place of their originals."""
        originals = [node for node in self.source.tree.body if id(node) in roots]
        others = [node for node in self.source.tree.body if id(node) not in roots]
        wanted = {id(node) for node in self._closure(list(roots.values()), others)}
        wanted |= {id(node) for node in originals}
        return tuple(roots.get(id(node), node) for node in self.source.tree.body if id(node) in wanted)

    def _with_cut(self, scope: Scope, cut: dict[int, FunctionNode], *, keep_init: bool) -> ast.stmt:
        """A function or class with its cut parts, and of a class only the methods that those need."""
        if not isinstance(scope, ast.ClassDef):
            return cut.get(id(scope), scope)
        methods = {item.name: item for item in scope.body if isinstance(item, _FUNCTIONS)}
        wanted = {chain[1].name for chain in self._targets() if len(chain) > 1 and chain[0] is scope}
        wanted |= {"__init__"} & methods.keys() if keep_init else set()
        pending = list(wanted)
        while pending:
            method = methods.get(pending.pop())
            for node in ast.walk(cut.get(id(method), method)) if method is not None else ():
                if isinstance(node, ast.Attribute) and node.attr in methods and node.attr not in wanted:
                    wanted.add(node.attr)
                    pending.append(node.attr)
        made = copy.copy(scope)
        made.body = [
            cut.get(id(item), item) for item in scope.body if not isinstance(item, _FUNCTIONS) or item.name in wanted
        ] or [ast.Pass(lineno=scope.lineno)]
        return made

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

    def _closure(self, roots: Sequence[ast.stmt], among: Sequence[ast.stmt] | None = None) -> tuple[ast.stmt, ...]:
        """The statements at module level, or among some, that some statements depend on, in the file's order."""
        body = self.source.tree.body if among is None else among
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
                if bound[id(statement)] & needed or (plain and changed[id(statement)] & needed - self.imports.keys()):
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
        """Attempts until the caller has what it wants. What worked under one setting comes first under the next."""
        seen: set[str] = set()
        plans = list(self._plans())
        if self._worked is not None:
            number, like = self._worked
            ordered = [(number, replace(like, size=size if like.size in _SIZES else like.size, seed=seed))]
        else:
            ordered = []
        tries = []
        for number, plan in enumerate(plans):
            settings = list(self._settings(plan, size, seed))
            settings = (
                settings
                if plan.label == "a call"
                else [*settings[: 8 if len(settings) > 12 else 4], *(s for s in settings if s.channels)]
            )
            # A program that makes its own inputs does not change with ours, but for its datasets.
            if not plan.targets and not plan.bound:
                settings = [*settings[:2], *(setting for setting in settings[2:] if setting.channels)]
            tries += [(number, setting) for setting in settings]
        if self._failed:
            # Nothing got there under another setting; this one says the same in one run.
            tries = tries[:1]
        for number, setting in (*ordered, *tries):
            attempt = self._attempt(plans[number], setting)
            if attempt is not None and attempt.script not in seen:
                seen.add(attempt.script)
                self._worked = (number, setting)
                yield attempt
        self._worked, self._failed = None, True

    def _settings(self, plan: _Plan, size: int, seed: int) -> Iterator[Setting]:
        gradient = bool(_GRADIENT & set(self.confirm))
        graphs = (False, True) if gradient and plan.targets else (False,)
        sizes = [size, *(number for number in self._sizes() if number != size)]
        for dimensions, batch in ((2, 0), (4, 0), (3, 0), (1, 0), (2, 1), (0, 0)):
            for grad in graphs:
                yield Setting(size, dimensions, seed, grad=grad, device=self.device, batch=batch)
        for side in [number for number in _SIDES if number in sizes][:1]:
            for channels in (1, 3):
                yield Setting(side, 4, seed, grad=graphs[-1], device=self.device, channels=channels)
        for other in sizes[1:4]:
            for dimensions in (2, 4) if other <= 32 else (2,):
                yield Setting(other, dimensions, seed, grad=graphs[-1], device=self.device)

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
        pruner.known = self._known_names
        tree = pruner.visit(ast.Module(kept, []))
        tree.body = [statement for statement in tree.body if not isinstance(statement, ast.Pass)]
        maker = Maker(self.world, setting, bare=_bare_classes(tree, plan))
        maker.taken |= set().union(*(bound_by(statement) for statement in tree.body)) | set(self.imports)
        unknown = dict.fromkeys((*self._unknown(tree, pruner), *plan.bound))
        bindings = []
        firsts = self.world.locals.get(0, {})
        for name in unknown:
            thing = firsts.get(name) or self.world.globals.get(name) or Thing(name)
            dotted = pruner.unknown.get(name, "")
            bindings.append(f"{name} = {self._elsewhere(maker, thing, name, dotted)}")
        before = maker.definitions
        maker.definitions = []
        driver = self._driver(plan, maker) if plan.targets else ""
        head = [prelude(setting.seed), helpers(maker.helpers | pruner.helpers, setting.size, setting.sample)]
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
            assumed=tuple(dict.fromkeys((*maker.assumed, *plan.assumed))),
            standins=tuple(dict.fromkeys((*maker.standins, *pruner.replaced))),
            guessed=self._is_guess(maker),
            partial=bool(maker.standins) or plan.cut or self._hangs_on_inputs(maker),
        )

    def _hangs_on_inputs(self, maker: Maker) -> bool:
        """Whether the effect needs a graph, and inputs were made that may not have the one that the user's have."""
        return bool(_GRADIENT & set(self.confirm)) and any("is a tensor" in text for text in maker.assumed)

    def _is_guess(self, maker: Maker) -> bool:
        """Whether something that the finding names was guessed: its kind, from its name alone, or that it requires
        grad, where the finding is about that and what is named was made."""
        texts = (self.finding.message, *(step.message for step in self.finding.steps))
        roots = {name.split(".")[0].split("[")[0] for text in texts for name in names_spoken(text)}
        grad = bool({"raises", "raises-later", "gradient-differs"} & set(self.confirm))
        return bool(roots & maker.guessed) or (grad and bool(roots & maker.trained))

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
        for number, chain in enumerate(plan.targets):
            if isinstance(chain[0], FunctionNode):
                call = self._call_function(chain[0], maker)
            else:
                call = self._call_method(chain, maker, objects, lines)
            extra = plan.made[number] if plan.made else ()
            if call and extra:
                call = self._with_locals(call, chain[-1], extra, maker)
            if call:
                calls.append(call)
        once = len(calls) == 1 and not objects
        for turn in range(1 if once else 2):
            for number, call in enumerate(calls):
                name = f"result_{turn * len(calls) + number + 1}"
                lines.append(f"{name} = {call}")
                if backward:
                    maker.helpers.add("backpropagate")
                    lines.append(f"backpropagate({name})")
        if self._written_later():
            made = [name for cls, name in objects.items() if maker.is_module(cls)]
            things = [name for name in (*maker.arguments_given, *made) if name.isidentifier()]
            if things:
                maker.helpers.add("change")
                lines += [f"change({name})" for name in things]
                maker.assumed.append("what was passed is written in place afterwards")
        if backward:
            maker.assumed.append("what is returned goes into a backward pass")
        return "\n".join(lines) + "\n"

    def _with_locals(self, call: str, function: Scope, names: tuple[str, ...], maker: Maker) -> str:
        """A call with arguments for the local names whose making was cut away."""
        things = self.world.locals.get(id(function), {})
        parts = []
        for name in sorted(names, key=lambda name: kind_of(things.get(name, Thing(name)))[0] == "optimizer"):
            parts.append(f"{name}={maker._argument(things.get(name, Thing(name)), name, 1)}")
        tail = "))" if call.startswith("list(") else ")"
        head = call.removesuffix(tail)
        return f"{head}{'' if head.endswith('(') else ', '}{', '.join(parts)}{tail}"

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


def _bare_classes(tree: ast.Module, plan: _Plan) -> Mapping[str, frozenset[str]]:
    """For each class whose objects are stood in for, the fields that its kept methods read."""
    found: dict[str, frozenset[str]] = {}
    for node in tree.body if plan.bare else ():
        if isinstance(node, ast.ClassDef):
            read = {
                part.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
            }
            found[node.name] = frozenset(read)
    return found


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
