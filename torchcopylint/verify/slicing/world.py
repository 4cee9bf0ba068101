"""What a file defines, as things: its imports, its functions' parameters and results, one `self` for each class."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torchcopylint.verify.slicing.source import FunctionNode, bound_by, nodes_of
from torchcopylint.verify.slicing.things import PROVEN, WEAK, Thing, find, unify

_ANNOTATIONS = {
    "Tensor": "tensor",
    "FloatTensor": "tensor",
    "LongTensor": "tensor",
    "Parameter": "tensor",
    "Variable": "tensor",
    "ndarray": "array",
    "NDArray": "array",
    "ArrayLike": "array",
    "Module": "module",
    "Optimizer": "optimizer",
    "DataLoader": "loader",
    "Iterable": "list",
    "Iterator": "list",
    "Sequence": "list",
    "List": "list",
    "list": "list",
    "Dict": "dict",
    "dict": "dict",
    "Mapping": "dict",
    "OrderedDict": "dict",
    "Tuple": "tuple",
    "tuple": "tuple",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Path": "path",
    "Callable": "callable",
    "device": "device",
    "dtype": "dtype",
    "Namespace": "object",
    "bytes": "bytearray",
    "bytearray": "bytearray",
    "memoryview": "bytearray",
    "BufferedIOBase": "stream",
    "RawIOBase": "stream",
    "BytesIO": "stream",
    "BinaryIO": "stream",
}
CONVENTIONAL = {
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "optim": "torch.optim",
    "Variable": "torch.autograd.Variable",
}
"""What these names are in most programs, where they come with all of another file."""
_RECORDS = frozenset({"NamedTuple", "BaseModel", "BaseSettings"})
_ENUMERATIONS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_FILLED = frozenset({"zeros", "ones", "empty", "rand", "randn", "full"})
"""Functions of torch that are given the sizes of what they make."""


class World:
    """The things that a file's own definitions stand for.

    `functions` and `classes` are those at module level; what is not in them, nor bound by the module, is unknown.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions = {node.name: node for node in tree.body if isinstance(node, FunctionNode)}
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.globals: dict[str, Thing] = {}
        self.selves: dict[str, Thing] = {}
        self.parameters: dict[int, dict[str, Thing]] = {}
        self.locals: dict[int, dict[str, Thing]] = {}
        self._results: dict[int, Thing] = {}
        self._imports(tree)

    def _imports(self, tree: ast.Module) -> None:
        for node in nodes_of(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.globals[name] = Thing(name, dotted=alias.name if alias.asname else name)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    self.globals[name] = Thing(name, dotted=f"{'.' * node.level}{node.module or ''}.{alias.name}")

        if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in tree.body):
            bound = self.globals.keys() | {name for node in tree.body for name in bound_by(node)}
            for name, dotted in CONVENTIONAL.items():
                if name not in bound:
                    self.globals[name] = Thing(name, dotted=dotted)

    def self_of(self, class_name: str) -> Thing:
        """The one thing that stands for every `self` of a class."""
        if class_name not in self.selves:
            thing = self.selves[class_name] = Thing("self")
            thing.vote(f"instance {class_name}", PROVEN)
        return find(self.selves[class_name])

    def signature(self, function: FunctionNode, class_name: str | None) -> tuple[Mapping[str, Thing], Thing]:
        """The parameters of a function by name, and its result."""
        key = id(function)
        if key not in self.parameters:
            given = self.parameters[key] = {}
            arguments = function.args
            ordered = [*arguments.posonlyargs, *arguments.args]
            defaults = [None] * (len(ordered) - len(arguments.defaults)) + list(arguments.defaults)
            pairs = [
                *zip(ordered, defaults, strict=True),
                *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
            ]
            for parameter, default in pairs:
                thing = given[parameter.arg] = Thing(parameter.arg)
                if parameter.annotation is not None:
                    self.annotate(thing, parameter.annotation)
                if isinstance(default, ast.Constant) and default.value is not None:
                    thing.constant = default.value
                    thing.vote(type(default.value).__name__, WEAK)
                self._shaped(thing, default)
            for extra in (arguments.vararg, arguments.kwarg):
                if extra is not None:
                    given[extra.arg] = Thing(extra.arg)
            if class_name is not None and ordered and not is_static(function):
                given[ordered[0].arg] = self.self_of(class_name)
                if function.name == "__init__" and len(ordered) > 1 and self._is_optimizer(class_name):
                    given[ordered[1].arg].vote("parameters", PROVEN)
            self._results[key] = Thing(function.name)
        return self.parameters[key], self._results[key]

    def _shaped(self, thing: Thing, default: ast.expr | None) -> None:
        """A default that is a tensor of given sizes says of which shape others are."""
        sizes = default.args if isinstance(default, ast.Call) else []
        dotted = self.dotted(default.func) if isinstance(default, ast.Call) else ""
        if not sizes or not dotted.startswith("torch.") or dotted.rpartition(".")[2] not in _FILLED:
            return
        thing.vote("tensor", WEAK)
        sizes = sizes[0].elts if isinstance(sizes[0], ast.Tuple | ast.List) else sizes
        last = sizes[-1] if sizes else None
        if isinstance(last, ast.Constant) and isinstance(last.value, int):
            thing.dimensions, thing.last = len(sizes), last.value

    def _is_optimizer(self, class_name: str) -> bool:
        """Whether a class of the file is an optimizer by its first base."""
        bases = self.classes[class_name].bases if class_name in self.classes else []
        return bool(bases) and self.dotted(bases[0]).endswith("Optimizer")

    def annotate(self, thing: Thing, annotation: ast.expr) -> None:
        """What an annotation says."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return
        if isinstance(annotation, ast.BinOp):
            self.annotate(thing, annotation.left)
            return
        if isinstance(annotation, ast.Subscript):
            base = ast.unparse(annotation.value).rsplit(".", 1)[-1]
            inner = annotation.slice
            if base in ("Optional", "Union"):
                self.annotate(thing, inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
                return
            self.annotate(thing, annotation.value)
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if base in ("Tuple", "tuple"):
                for number, part in enumerate(parts):
                    if not (isinstance(part, ast.Constant) and part.value is ...):
                        self.annotate(thing.item(number), part)
                thing.arity = len(parts)
            elif base == "Callable":
                self.annotate(thing.called(), parts[-1])
            elif base in _ANNOTATIONS and base not in ("ndarray", "NDArray"):
                self.annotate(thing.each(), parts[-1])
            return
        dotted = self.dotted(annotation)
        name = dotted.rsplit(".", 1)[-1]
        if name in self.classes:
            if thing.same is None and not thing.attributes:
                unify(self.self_of(name), thing)
            thing.vote(f"instance {name}", PROVEN)
        elif name in _ANNOTATIONS:
            thing.vote(_ANNOTATIONS[name], PROVEN)
            if name == "LongTensor":
                thing.dtype = "long"
        elif dotted.startswith("torch.nn.") and name[:1].isupper():
            thing.vote("module", PROVEN)
            thing.made = dotted

    def is_module(self, class_name: str) -> bool:
        """Whether a class of the file is an `nn.Module`, as far as its bases say."""
        seen: set[str] = set()
        while class_name in self.classes and class_name not in seen:
            seen.add(class_name)
            node = self.classes[class_name]
            bases = [self.dotted(base) for base in node.bases]
            if any(base.startswith("torch.nn.") or base.endswith("Module") for base in bases):
                return True
            if bases and any(isinstance(item, FunctionNode) and item.name == "forward" for item in node.body):
                return bases[0].rsplit(".", 1)[-1] != "Function"
            class_name = bases[0] if bases else ""
        return False

    def is_record(self, class_name: str) -> bool:
        """Whether a class of the file is one of records, as a `NamedTuple` or a data class is: its objects are made of
        all their fields."""
        return any(
            any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
            or any(self.dotted(base).rpartition(".")[2] in _RECORDS for base in node.bases)
            for node in self.family(class_name)
        )

    def family(self, class_name: str) -> list[ast.ClassDef]:
        """A class of the file and its bases there, each but once, the class first."""
        found: dict[str, ast.ClassDef] = {}
        waiting = [class_name]
        while waiting:
            name = waiting.pop(0)
            if name in self.classes and name not in found:
                found[name] = self.classes[name]
                waiting += [base.id for base in found[name].bases if isinstance(base, ast.Name)]
        return list(found.values())

    def is_enumeration(self, class_name: str) -> bool:
        """Whether all objects of a class of the file are those that it names."""
        bases = self.classes[class_name].bases if class_name in self.classes else []
        return any(self.dotted(base).rpartition(".")[2] in _ENUMERATIONS for base in bases)

    def things_called(self, name: str) -> list[Thing]:
        """What a name stands for, in every function, at module level, and as a field of a class."""
        tables = (*self.parameters.values(), *self.locals.values(), self.globals)
        found = [table[name] for table in tables if name in table]
        found += [it.attributes[name] for it in map(find, self.selves.values()) if name in it.attributes]
        return list({id(thing): thing for thing in map(find, found)}.values())

    def methods_of(self, class_name: str) -> set[str]:
        """The names of the methods and properties of a class of the file, those of its bases in the file included."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [class_name]
        while waiting:
            node = self.classes.get(waiting.pop())
            if node is not None and node.name not in seen:
                seen.add(node.name)
                found |= {item.name for item in node.body if isinstance(item, FunctionNode)}
                waiting += [self.dotted(base) for base in node.bases]
        return found

    def bases_of(self, class_name: str) -> list[str]:
        """The classes of the file that a class is derived from, the nearest first."""
        found: list[str] = []
        waiting = [class_name]
        while waiting:
            node = self.classes.get(waiting.pop(0))
            for base in node.bases if node is not None else ():
                name = self.dotted(base)
                if name in self.classes and name not in found and name != class_name:
                    found.append(name)
                    waiting.append(name)
        return found

    def dotted(self, node: ast.expr) -> str:
        """The full name of an expression made of an import and attributes, else its own text; empty for others."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        known = self.globals.get(node.id)
        return ".".join([known.dotted if known and known.dotted else node.id, *reversed(parts)])


def instance_of(thing: Thing) -> str:
    """The class of the same file that a thing is surely an instance of, or an empty text."""
    for kind, weight in find(thing).votes.items():
        if kind.startswith("instance ") and weight >= PROVEN:
            return kind.removeprefix("instance ")
    return ""


def method_named(node: ast.ClassDef, name: str) -> FunctionNode | None:
    """The method of a class with a name."""
    return next((item for item in node.body if isinstance(item, FunctionNode) and item.name == name), None)


def is_static(function: FunctionNode) -> bool:
    """Whether a method gets no `self`."""
    return any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in function.decorator_list)
