"""Rewrites what is kept of a file so that it can run alone: imports, long loops, devices, files, the command line.

Nodes keep the places that they had, so that steps can be found again.
"""

from __future__ import annotations

import ast
import builtins

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.source import Rewriter, cloned, local_to, nodes_of, walked

_BASES = ("Module", "LightningModule", "PreTrainedModel", "Encoder", "Decoder", "Layer", "Model", "Net", "Network")
_EMPTY = {"ABC", "abc.ABC", "object"}
"""Bases that are a base for nothing."""
_GUARD = {"__name__ == '__main__'", "'__main__' == __name__"}


LEFT_OUT = " is left out"
"""Ends what is said of a move to a GPU where there is none."""


class Pruner(Rewriter):
    """One pass over statements. `unknown` are the names of imports that are not made, with what they named; `helpers`
    the helpers that the result needs; `replaced` sentences on what was replaced.

    `apart`: what is moved to a GPU is told from what is not. `moved` are the places of calls that move to another
    device, which is torch's `meta` where there is no other, and `copied` of those that copy there, and do here as well;
    `known` the names that the file binds, `foreign` those that it binds to what is made elsewhere; `loops` counts
    those for which a name was made."""

    def __init__(
        self,
        imports: dict[str, str],
        device: str,
        moved: frozenset[tuple[int, int]],
        known: set[str],
        foreign: frozenset[str],
        loops: int = 0,
        copied: frozenset[tuple[int, int]] = frozenset(),
        *,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self.imports = imports
        self.device = device
        self.moved = moved
        self.copied = copied
        self.known = known
        self.foreign = foreign
        self.unknown: dict[str, str] = {}
        self.helpers: set[str] = set()
        self.replaced: list[str] = []
        self.loops = loops

    # -- imports

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        """An import of what is not allowed is left out."""
        kept = []
        for alias in node.names:
            if allowed(alias.name):
                kept.append(alias)
            else:
                self._refuse(alias.asname or alias.name.split(".")[0], alias.name)
        node.names = kept
        return node if kept else ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        """The same, name by name."""
        module = f"{'.' * node.level}{node.module or ''}"
        if module == "__future__":
            return ast.copy_location(ast.Pass(), node)
        kept = []
        for alias in node.names:
            if alias.name == "*":
                if allowed(module) and module.split(".")[0] == "torch":
                    kept.append(alias)
            elif node.level == 0 and allowed(f"{module}.{alias.name}"):
                kept.append(alias)
            else:
                self._refuse(alias.asname or alias.name, f"{module}.{alias.name}")
        node.names = kept
        return node if kept else ast.copy_location(ast.Pass(), node)

    def _refuse(self, name: str, dotted: str) -> None:
        self.unknown[name] = dotted
        self.replaced.append(f"`{dotted}` is not imported")

    # -- definitions

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Bases from elsewhere are replaced."""
        forward = any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in node.body)
        bases: list[ast.expr] = []
        replaced: list[bool] = []
        for base in node.bases:
            dotted = self._dotted(base)
            if self._is_unknown(base):
                name = dotted.rsplit(".", 1)[-1]
                if name.endswith("Optimizer"):
                    told = ast.parse("torch.optim.Optimizer", mode="eval").body
                    self.replaced.append(f"`{ast.unparse(base)}`, a base of `{node.name}`, is that of torch")
                    bases.append(told)
                    continue
                module = forward or name.endswith(_BASES)
                instead = (
                    "nn.Module, with layers where they are named like some"
                    if module
                    else "a class that takes everything"
                )
                self.replaced.append(f"`{ast.unparse(base)}`, a base of `{node.name}`, is {instead}")
                if module:
                    self.helpers.add("ModuleElsewhere")
                    bases.append(ast.Name("ModuleElsewhere", ast.Load()))
                replaced.append(module)
                continue
            bases.append(base)
        if replaced and all(ast.unparse(base) in _EMPTY for base in bases):
            self.helpers.add("Elsewhere")
            bases.insert(0, ast.Name("Elsewhere", ast.Load()))
        if replaced:
            _name_given(node)
        node.bases = bases
        node.keywords = [keyword for keyword in node.keywords if not self._is_unknown(keyword.value)]
        node.decorator_list = self._decorators(node.decorator_list)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Decorators from elsewhere are left out. A name that the function has for itself is no import."""
        node.decorator_list = self._decorators(node.decorator_list)
        before = self.imports
        hidden = local_to(node) & before.keys()
        if hidden:
            self.imports = {name: dotted for name, dotted in before.items() if name not in hidden}
        self.generic_visit(node)
        self.imports = before
        return node

    def _decorators(self, decorators: list[ast.expr]) -> list[ast.expr]:
        kept = []
        for decorator in decorators:
            root, _, last = self._dotted(decorator).partition(".")
            # Tables in which things are registered; what stands in for an object of an abstract class is one of it.
            if (
                self._is_unknown(decorator)
                or root in self.foreign
                or (last or root).rpartition(".")[2] == "abstractmethod"
            ):
                self.replaced.append(f"the decorator `{ast.unparse(decorator)}` is left out")
            else:
                kept.append(decorator)
        return kept

    def _is_unknown(self, node: ast.expr) -> bool:
        dotted = self._dotted(node)
        root = dotted.split(".")[0]
        if root in self.imports:
            return not allowed(self._full(dotted))
        # What comes with `import *`, or is nowhere: a name that nothing defines.
        return bool(dotted) and root not in self.known and not hasattr(builtins, root)

    def _full(self, dotted: str) -> str:
        root, _, rest = dotted.partition(".")
        return ".".join(filter(None, (self.imports.get(root, root), rest)))

    def _dotted(self, node: ast.expr) -> str:
        while isinstance(node, ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""

    # -- loops

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        """It turns a few times only."""
        self.generic_visit(node)
        self.loops += 1
        name = f"turns_{self.loops}"
        start = ast.parse(f"{name} = 0").body
        guard = ast.parse(f"{name} += 1\nif {name} > 4:\n    break").body
        for made in (*start, *guard):
            _unplace(made)
        node.body = [*guard, *node.body]
        return [*start, node]

    def visit_For(self, node: ast.For) -> ast.stmt:
        """A long range is cut."""
        self.generic_visit(node)
        node.iter = self._shorter(node.iter)
        return node

    def _shorter(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Call):
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "Progress" and node.args:
            return self._shorter(node.args[0])
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if len(values) == len(node.args) and all(isinstance(v, int) and abs(v) <= 8 for v in values):
                return node
            self.helpers.add("few")
            return ast.Call(ast.Name("few", ast.Load()), [node], [])
        if isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "zip", "reversed", "list"):
            node.args = [self._shorter(argument) for argument in node.args]
        return node

    # -- calls and constants

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Devices, the command line, and what must not be called."""
        self.generic_visit(node)
        for keyword in node.keywords:
            # Batches are made in this process: others may not be started.
            if keyword.arg == "num_workers":
                keyword.value = ast.copy_location(ast.Constant(0), keyword.value)
            if keyword.arg == "retain_variables":
                self.replaced.append("`retain_variables` is `retain_graph`, as it was called before")
                keyword.arg = "retain_graph"
            # What stands in has fewer items than a batch, and would give none.
            if keyword.arg == "drop_last":
                keyword.value = ast.copy_location(ast.Constant(False), keyword.value)
        func = node.func
        dotted = self._full(self._dotted(func)) if self._dotted(func) else ""
        last = dotted.rsplit(".", 1)[-1]
        if isinstance(func, ast.Attribute):
            if (node.lineno, node.col_offset) in self.moved and func.attr in (*tables.DEVICES, "to"):
                return _to_meta(node, func)
            if (node.lineno, node.col_offset) in self.copied and func.attr in (*tables.DEVICES, "to"):
                return ast.copy_location(ast.Call(_method_of(func, "clone"), [], []), node)
            if func.attr in tables.DEVICES and self.device == "cpu":
                self.replaced.append(f"`.{func.attr}()`{LEFT_OUT}")
                if not self._apart:
                    return func.value
                self.helpers.add("on_gpu")
                return ast.copy_location(ast.Call(ast.Name("on_gpu", ast.Load()), [func.value], []), node)
        if shows_progress(dotted) and node.args:
            inner = node.args[0]
            if last == "trange":
                inner = ast.Call(ast.Name("range", ast.Load()), node.args, [])
                ast.copy_location(inner, node)
            self.helpers.add("Progress")
            return ast.copy_location(ast.Call(ast.Name("Progress", ast.Load()), [self._shorter(inner)], []), node)
        if dotted in ("argparse.ArgumentParser", "configargparse.ArgumentParser"):
            self.helpers.add("ArgumentParser")
            self.replaced.append("the command line is empty")
            node.func = ast.copy_location(ast.Name("ArgumentParser", ast.Load()), func)
            return node
        if self.device == "cpu" and dotted.startswith("torch.cuda.") and last in tables.CUDA_ALONE:
            self.replaced.append(f"`{dotted}(...)` is left out")
            return ast.copy_location(ast.Constant(None), node)
        if (
            last == "load_state_dict"
            and isinstance(func, ast.Attribute)
            and node.args
            and self._is_loaded(node.args[0])
        ):
            self.replaced.append(f"`{ast.unparse(func)}` is given what is there: there is nothing to load")
            node.args[0] = ast.copy_location(ast.Call(_method_of(func, "state_dict"), [], []), node.args[0])
        if dotted in tables.OF_NUMBERS and len(node.args) == 1 and isinstance(node.args[0], ast.Name | ast.Subscript):
            # They take what has a function of torch for a storage.
            self.helpers.add("numbers")
            node.args = [ast.copy_location(ast.Call(ast.Name("numbers", ast.Load()), node.args, []), node.args[0])]
        if dotted.startswith("pathlib."):
            self._at_location(node, dotted)
        elif dotted and not self._builtin_kept(dotted):
            self.helpers.add("Anything")
            self.replaced.append(f"`{dotted}(...)` is not called")
            node.func = ast.copy_location(
                ast.Call(ast.Name("Anything", ast.Load()), [ast.Constant(dotted)], []), node.func
            )
        return node

    def _is_loaded(self, node: ast.expr) -> bool:
        """Whether an expression is, or is part of, what was read from elsewhere."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("Anything("):
                return True
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in self.foreign

    def _at_location(self, node: ast.Call, dotted: str) -> None:
        """Paths, and what their class is asked for, are those of what stands in for one."""
        self.helpers.add("Location")
        self.replaced.append("paths are made, and the file system is never asked")
        func: ast.expr = ast.Name("Location", ast.Load())
        for name in dotted.split(".")[2:]:
            func = ast.Attribute(func, name, ast.Load())
        node.func = ast.copy_location(func, node.func)
        ast.fix_missing_locations(node)

    def _builtin_kept(self, dotted: str) -> bool:
        if dotted in tables.LOST_BUILTINS:
            return dotted in self.imports
        return allowed(dotted) or dotted.split(".")[0] not in self.imports.values()

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """What an allowed module must not be asked for."""
        if not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        dotted = self._dotted(node)
        if dotted and dotted.split(".")[0] in self.imports:
            full = self._full(dotted)
            if full.startswith("torch.cuda.") and full.endswith("Tensor") and self.device == "cpu":
                self.replaced.append(f"`{full}` is that of the CPU")
                return ast.copy_location(ast.Attribute(ast.Name("torch", ast.Load()), node.attr, ast.Load()), node)
            if full.split(".")[0] in tables.ALLOWED and not allowed(full):
                self.helpers.add("Anything")
                self.replaced.append(f"`{full}` is not reached")
                made = ast.Call(ast.Name("Anything", ast.Load()), [ast.Constant(full)], [])
                return ast.copy_location(made, node)
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """The name of a device that is not there."""
        if isinstance(node.value, str) and self.device == "cpu" and node.value.split(":")[0] in tables.DEVICES:
            return ast.copy_location(ast.Constant("cpu"), node)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        """The script is the main program."""
        if ast.unparse(node.test) in _GUARD:
            node.test = ast.copy_location(ast.Constant(True), node.test)
        self.generic_visit(node)
        return node


def _name_given(node: ast.ClassDef) -> None:
    """What a class hands to the `__init__` of a base that stands in goes there by its name, so that it is kept."""
    for call in walked(node):
        func = call.func if isinstance(call, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr == "__init__" and ast.unparse(func.value).startswith("super("):
            assert isinstance(call, ast.Call)
            named = [part for part in call.args if isinstance(part, ast.Name)]
            known = {word.arg for word in call.keywords}
            call.args = [part for part in call.args if part not in named]
            call.keywords += [
                ast.copy_location(ast.keyword(part.id, part), part) for part in named if part.id not in known
            ]


def _method_of(func: ast.Attribute, name: str) -> ast.expr:
    """Another method of what a method is called of."""
    return ast.copy_location(ast.Attribute(cloned(func.value), name, ast.Load()), func)


def _to_meta(node: ast.Call, func: ast.Attribute) -> ast.expr:
    """A move to a device that holds no content: there is one everywhere, and what is moved there is a copy."""
    to = ast.copy_location(ast.Attribute(func.value, "to", ast.Load()), func)
    return ast.copy_location(ast.Call(to, [ast.copy_location(ast.Constant("meta"), node)], []), node)


def allowed(dotted: str) -> bool:
    """Whether a script may import a module or reach a name, given in full."""
    if dotted.split(".")[0] not in tables.ALLOWED:
        return False
    parts = dotted.split(".")
    prefixes = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return not any(prefix in tables.REFUSED for prefix in prefixes)


def shows_progress(dotted: str) -> bool:
    """Whether what has this name, given in full, goes through something and shows how far it is."""
    return dotted.rpartition(".")[2] in ("tqdm", "trange") and dotted.split(".")[0] not in ("torch", "numpy")


def foreign(tree: ast.Module, imports: dict[str, str]) -> frozenset[str]:
    """The names that a file binds to what a call of something from elsewhere gives."""
    found: set[str] = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Name):
            root: ast.expr = node.value
            while isinstance(root, ast.Call | ast.Attribute):
                root = root.func if isinstance(root, ast.Call) else root.value
            made = isinstance(node.value, ast.Call)
            if isinstance(root, ast.Name) and (
                (made and root.id in imports and not allowed(imports[root.id])) or (not made and root.id in found)
            ):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def imported(tree: ast.Module) -> dict[str, str]:
    """What each imported name of a file stands for, in full."""
    found: dict[str, str] = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return found


def _unplace(node: ast.AST) -> None:
    """Nodes that are made have no place in the user's file."""
    for part in walked(node):
        for name in ("end_lineno", "col_offset", "end_col_offset"):
            if hasattr(part, name):
                delattr(part, name)
        if isinstance(part, ast.stmt):
            # Unparsing an assignment asks for it.
            part.lineno = 0
