"""Reads functions and says what their free things are: one walk over statements, every use a vote.

Names are followed in order, fields of `self` are one thing for the whole class, arguments and parameters of functions
of the same file are one thing. Nothing is decided here: see `things.kind_of`.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Callable, Iterable, Mapping

from torchcopylint.base.recursion import deep_recursion
from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.source import FunctionNode
from torchcopylint.verify.slicing.things import PROVEN, USED, WEAK, Thing, find, unify

_IN_PLACE = re.compile(r"[a-z][a-z_0-9]*[a-z0-9]_")
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
    "Path": "str",
    "Callable": "callable",
    "device": "device",
    "dtype": "dtype",
    "Namespace": "object",
}
_OF_BOTH = frozenset({"cuda", "cpu", "to", "float", "half", "double", "requires_grad_", "train", "eval"})
"""Methods that tensors and modules, or modules alone, have, and that give the same kind back."""
_TRANSPARENT = frozenset(
    {"tqdm", "trange", "iter", "next", "list", "tuple", "sorted", "reversed", "Variable", "deepcopy"}
)


class Inference:
    """What is known of the things in the functions and classes of a file.

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
        self._walked: set[int] = set()
        self._imports(tree)
        top = _Walk(self, self.globals, None)
        top.first = self.locals.setdefault(0, {})
        with deep_recursion():
            top.body([node for node in tree.body if not isinstance(node, FunctionNode | ast.ClassDef)])
            for function in self.functions.values():
                self.walk(function, None)
            for name, node in self.classes.items():
                for method in node.body:
                    if isinstance(method, FunctionNode):
                        self.walk(method, name)

    def _imports(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.globals[name] = Thing(name, dotted=alias.name if alias.asname else name)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    self.globals[name] = Thing(name, dotted=f"{'.' * node.level}{node.module or ''}.{alias.name}")

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
            for extra in (arguments.vararg, arguments.kwarg):
                if extra is not None:
                    given[extra.arg] = Thing(extra.arg)
            if class_name is not None and ordered and not _is_static(function):
                given[ordered[0].arg] = self.self_of(class_name)
            self._results[key] = Thing(function.name)
        return self.parameters[key], self._results[key]

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

    def walk(self, function: FunctionNode, class_name: str | None) -> None:
        """Read a function once."""
        if id(function) in self._walked:
            return
        self._walked.add(id(function))
        given, result = self.signature(function, class_name)
        walk = _Walk(self, dict(given), result, self.globals)
        walk.first = self.locals.setdefault(id(function), {})
        walk.body(function.body)


class _Walk:
    """One walk over the body of a function, with what its names hold at the moment."""

    def __init__(
        self, world: Inference, names: dict[str, Thing], result: Thing | None, outer: dict[str, Thing] | None = None
    ) -> None:
        self.world = world
        self.names = names
        self.result = result
        self.outer = outer if outer is not None else {}
        self.first: dict[str, Thing] = {}

    # -- statements

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Read statements in order."""
        for statement in statements:
            handler: Callable[[ast.stmt], None] | None = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is not None:
                handler(statement)
            else:
                self._parts(statement)

    def _parts(self, node: ast.AST) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.value(part)
            elif isinstance(part, ast.stmt):
                self.body([part])
            elif not isinstance(part, ast.expr_context | ast.operator | ast.arguments):
                self._parts(part)

    def _functiondef(self, node: ast.FunctionDef) -> None:
        given, result = self.world.signature(node, None)
        self.names[node.name] = Thing(node.name, result=result)
        _Walk(self.world, {**self.names, **given}, result, self.outer).body(node.body)

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        self.names[node.name] = Thing(node.name)

    def _import(self, node: ast.stmt) -> None:
        pass

    _importfrom = _global = _nonlocal = _pass = _import

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self.value(node.value)
            if self.result is not None:
                find(self.result).near.append(value)
                if isinstance(node.value, ast.Tuple):
                    for number, _ in enumerate(node.value.elts):
                        find(self.result).item(number).near.append(value.item(number))

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)
            if isinstance(target, ast.Subscript) and not value.votes:
                value.near.append(self.value(target))

    def _annassign(self, node: ast.AnnAssign) -> None:
        value = self.value(node.value) if node.value is not None else Thing()
        self.world.annotate(value, node.annotation)
        self.bind(node.target, value)

    def _augassign(self, node: ast.AugAssign) -> None:
        target = self.value(node.target)
        value = self.value(node.value)
        target.near.append(value)
        value.near.append(target)

    def _for(self, node: ast.For) -> None:
        self.bind(node.target, self._element(node.iter))
        self.body(node.body)
        self.body(node.orelse)

    _asyncfor = _for

    def _element(self, iterated: ast.expr) -> Thing:
        """What a loop over an expression gets, turn by turn."""
        if isinstance(iterated, ast.Call):
            name = self.world.dotted(iterated.func).rsplit(".", 1)[-1]
            if name == "enumerate" and iterated.args:
                pair = Thing()
                pair.item(0).vote("int", USED)
                unify(pair.item(1), self._element(iterated.args[0]))
                return pair
            if name == "zip":
                row = Thing()
                for number, part in enumerate(iterated.args):
                    unify(row.item(number), self._element(part))
                return row
            if name in _TRANSPARENT and iterated.args:
                return self._element(iterated.args[0])
            if name in ("range", "trange"):
                self.value(iterated)
                number_ = Thing()
                number_.vote("int", USED)
                return number_
            if isinstance(iterated.func, ast.Attribute) and name in ("items", "values", "keys"):
                owner = self.value(iterated.func.value)
                owner.vote("dict", USED)
                pair = Thing()
                pair.item(0).vote("str", WEAK)
                unify(pair.item(1), owner.each())
                return pair if name == "items" else pair.item(1) if name == "values" else pair.item(0)
        owner = self.value(iterated)
        if "tensor" not in owner.votes and not owner.made:
            owner.vote("list", WEAK)
            return owner.each()
        element = Thing(owner.name)
        element.near.append(owner)
        return element

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Thing(near=[value]))
        self.body(node.body)

    _asyncwith = _with

    def _if(self, node: ast.If) -> None:
        self.value(node.test)
        before = dict(self.names)
        self.body(node.body)
        after, self.names = self.names, before
        self.body(node.orelse)
        for name in after.keys() | self.names.keys():
            one, two = after.get(name), self.names.get(name)
            if one is not two and one is not None and two is not None and find(one) is not find(two):
                self.names[name] = Thing(name, near=[one, two])
            elif one is not None:
                self.names[name] = one

    # -- binding

    def bind(self, target: ast.expr, value: Thing) -> None:
        """A target gets a value."""
        if isinstance(target, ast.Name):
            if not find(value).name:
                find(value).name = target.id
            self.names[target.id] = value
            self.first.setdefault(target.id, value)
        elif isinstance(target, ast.Attribute):
            unify(self.value(target.value).attribute(target.attr), value)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(part, ast.Starred) for part in target.elts)
            if find(value).element is None and not starred:
                find(value).arity = max(find(value).arity, len(target.elts))
                find(value).vote("tuple", WEAK)
            for number, part in enumerate(target.elts):
                if not isinstance(part, ast.Starred):
                    self.bind(part, value.item(number))
        elif isinstance(target, ast.Subscript):
            self.value(target)

    # -- expressions

    def value(self, node: ast.expr) -> Thing:
        """What an expression gives; looking is a vote."""
        handler: Callable[[ast.expr], Thing] | None = getattr(self, f"_x_{type(node).__name__.lower()}", None)
        if handler is not None:
            return find(handler(node))
        self._parts(node)
        return Thing()

    def _x_constant(self, node: ast.Constant) -> Thing:
        thing = Thing(constant=node.value)
        if node.value is not None and node.value is not ...:
            thing.vote(type(node.value).__name__, USED)
        return thing

    def _x_name(self, node: ast.Name) -> Thing:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.outer:
            return self.outer[node.id]
        if hasattr(builtins, node.id) or node.id in self.world.functions or node.id in self.world.classes:
            return Thing(node.id)
        return self.world.globals.setdefault(node.id, Thing(node.id))

    def _x_attribute(self, node: ast.Attribute) -> Thing:
        owner = self.value(node.value)
        name = node.attr
        if owner.dotted:
            part = owner.attribute(name)
            part.dotted = f"{owner.dotted}.{name}"
            return part
        if _instance(owner) in self.world.classes:
            own = self.world.self_of(_instance(owner))
            unify(own, owner)
            return own.attribute(name)
        if name in _OF_BOTH:
            owner.vote("tensor", WEAK + 1)
            owner.vote("module", WEAK)
        elif name in tables.TENSOR or (name not in ("", "_") and _IN_PLACE.fullmatch(name)):
            owner.vote("tensor", USED)
        elif name in tables.EITHER:
            owner.vote("tensor", WEAK + 1)
            owner.vote("array", WEAK)
        elif name in tables.ARRAY:
            owner.vote("array", USED)
        elif name == "data":
            owner.vote("tensor", WEAK + 1)
        for names, kind in (
            (tables.MODULE, "module"),
            (tables.OPTIMIZER, "optimizer"),
            (tables.DICT, "dict"),
            (tables.LIST, "list"),
            (tables.ENVIRONMENT, "environment"),
            (tables.STRING, "str"),
        ):
            if name in names:
                owner.vote(kind, USED if name != "step" else WEAK)
        if name in ("data", "grad", "T", "mT"):
            result = Thing(near=[owner], dimensions=owner.dimensions, last=owner.last)
            result.vote("tensor", WEAK)
            return result
        if name in ("shape", "dtype", "device"):
            return Thing(name, near=[], made=f".{name}", arguments=(owner,))
        return owner.attribute(name)

    def _x_subscript(self, node: ast.Subscript) -> Thing:
        owner = self.value(node.value)
        index = node.slice
        if owner.made == ".shape":
            if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
                shaped = find(owner.arguments[0])
                shaped.dimensions_least = max(shaped.dimensions_least, index.value + 1)
            size = Thing()
            size.vote("int", WEAK)
            return size
        inner = self.value(index)
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Name) and not self.value(part).near:
                self.value(part).vote("index", WEAK)
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            owner.vote("dict", USED)
            return owner.item(index.value)
        if isinstance(index, ast.Tuple):
            for part in index.elts:
                mask = self.value(part)
                if mask.dtype == "bool" and mask.near:
                    find(mask.near[0]).dimensions = find(mask.near[0]).dimensions or 1
            used = [part for part in index.elts if not (isinstance(part, ast.Constant) and part.value is None)]
            plain = sum(not (isinstance(part, ast.Constant) and part.value is ...) for part in used)
            find(owner).dimensions_least = max(owner.dimensions_least, plain)
            owner.vote("tensor", WEAK + 1)
            owner.vote("array", WEAK)
        if isinstance(index, ast.Slice | ast.Tuple):
            return Thing(owner.name, near=[owner])
        if "tensor" in inner.votes and not isinstance(index, ast.Constant):
            owner.vote("tensor", WEAK)
            return Thing(owner.name, near=[owner])
        if isinstance(index, ast.Constant) and index.value in owner.items:
            return owner.item(index.value)
        if "tensor" in owner.votes or "array" in owner.votes:
            return Thing(owner.name, near=[owner])
        return owner.each()

    def _x_tuple(self, node: ast.Tuple) -> Thing:
        whole = Thing()
        for number, part in enumerate(node.elts):
            unify(whole.item(number), self.value(part))
        return whole

    def _x_list(self, node: ast.List) -> Thing:
        whole = Thing()
        whole.vote("list", USED)
        for part in node.elts:
            whole.each().near.append(self.value(part))
        return whole

    def _x_namedexpr(self, node: ast.NamedExpr) -> Thing:
        value = self.value(node.value)
        self.bind(node.target, value)
        return value

    def _x_starred(self, node: ast.Starred) -> Thing:
        owner = self.value(node.value)
        owner.vote("list", WEAK)
        return owner.each()

    def _x_lambda(self, node: ast.Lambda) -> Thing:
        inner = {parameter.arg: Thing(parameter.arg) for parameter in node.args.args}
        walk = _Walk(self.world, {**self.names, **inner}, None, self.outer)
        return Thing(result=walk.value(node.body))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Thing:
        walk = _Walk(self.world, dict(self.names), None, self.outer)
        for clause in node.generators:
            walk.bind(clause.target, walk._element(clause.iter))
            for test in clause.ifs:
                walk.value(test)
        whole = Thing()
        whole.vote("dict" if isinstance(node, ast.DictComp) else "list", USED)
        if isinstance(node, ast.DictComp):
            walk.value(node.key)
        whole.element = walk.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        return whole

    _x_listcomp = _x_setcomp = _x_generatorexp = _x_dictcomp = _comprehension

    def _x_ifexp(self, node: ast.IfExp) -> Thing:
        self.value(node.test)
        return Thing(near=[self.value(node.body), self.value(node.orelse)])

    def _x_boolop(self, node: ast.BoolOp) -> Thing:
        return Thing(near=[self.value(part) for part in node.values])

    def _x_unaryop(self, node: ast.UnaryOp) -> Thing:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Invert):
            operand.dtype = operand.dtype or "bool"
            operand.vote("tensor", WEAK)
        return Thing(near=[operand], dtype=operand.dtype)

    def _x_compare(self, node: ast.Compare) -> Thing:
        sides = [self.value(node.left), *(self.value(part) for part in node.comparators)]
        if isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return Thing()
        for one, two in itertools.pairwise(sides):
            one.near.append(two)
            two.near.append(one)
        return Thing(near=sides, dtype="bool")

    def _x_binop(self, node: ast.BinOp) -> Thing:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            for side in (left, right):
                side.vote("tensor", WEAK + 1)
                side.dimensions_least = max(side.dimensions_least, 1)
            if right.made == ".sized" and right.arguments:
                left.last = left.last or find(right.arguments[0])
            return Thing(near=[left])
        result = Thing(near=[left, right], formula=(type(node.op).__name__, left, right))
        if not isinstance(node.op, ast.Mod) or "str" not in left.votes:
            left.near.append(right)
            right.near.append(left)
        return result

    # -- calls

    def _x_call(self, node: ast.Call) -> Thing:
        arguments = [self.value(argument) for argument in node.args]
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, arguments, named)
        if isinstance(node.func, ast.Name) and node.func.id not in self.names:
            name = node.func.id
            if name in self.world.functions:
                return self._known(self.world.functions[name], None, arguments, named, 0)
            if name in self.world.classes:
                return self._construct(name, arguments, named)
            if hasattr(builtins, name):
                return self._builtin(name, arguments)
        function = self.value(node.func)
        if function.dotted:
            return self._library(function, function.dotted, arguments, named)
        return self._unknown(function, arguments)

    def _known(
        self,
        function: FunctionNode,
        class_name: str | None,
        arguments: list[Thing],
        named: Mapping[str | None, Thing],
        skip: int,
    ) -> Thing:
        given, result = self.world.signature(function, class_name)
        ordered = [p.arg for p in (*function.args.posonlyargs, *function.args.args)][skip:]
        for name, thing in (*zip(ordered, arguments, strict=False), *named.items()):
            if name is not None and name in given:
                parameter, argument = find(given[name]), find(thing)
                if argument.constant is None and not argument.formula and parameter.constant is None:
                    unify(argument, parameter)
                else:
                    argument.near.append(parameter)
                    parameter.near.append(argument)
        return result

    def _construct(self, name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing:
        init = _method_named(self.world.classes[name], "__init__")
        if init is not None:
            self._known(init, name, arguments, named, 1)
        return self.world.self_of(name)

    def _builtin(self, name: str, arguments: list[Thing]) -> Thing:
        result = Thing()
        if name in ("range", "int", "float", "abs", "round", "pow") and arguments:
            kind = "int" if name == "range" else "number"
            for argument in arguments:
                if argument.constant is None:
                    argument.vote(kind, USED if name == "range" else WEAK)
            result.vote("list" if name == "range" else kind, WEAK)
        elif name in ("min", "max", "sum"):
            result.near += arguments
        elif name in ("list", "tuple", "iter", "sorted", "reversed", "dict") and arguments:
            return Thing(near=arguments, element=arguments[0].each())
        elif name == "next" and arguments:
            arguments[0].vote("list", WEAK)
            return arguments[0].each()
        elif name in ("len",) and arguments:
            result.vote("int", WEAK)
        return result

    def _unknown(self, function: Thing, arguments: list[Thing]) -> Thing:
        if function.made:
            return self._layer(function, arguments)
        instance = _instance(function)
        if instance in self.world.classes:
            cls = self.world.classes[instance]
            for name in ("forward", "__call__"):
                method = _method_named(cls, name)
                if method is not None:
                    return self._known(method, instance, arguments, {}, 1)
        function.vote("callable", WEAK + 1)
        result = function.called()
        result.near += arguments[:1]
        return result

    def _method(
        self, node: ast.Call, func: ast.Attribute, arguments: list[Thing], named: Mapping[str | None, Thing]
    ) -> Thing:
        if isinstance(func.value, ast.Call) and ast.unparse(func.value.func) == "super":
            return Thing()
        owner = self.value(func.value)
        name = func.attr
        if owner.dotted:
            return self._library(owner.attribute(name), f"{owner.dotted}.{name}", arguments, named)
        if isinstance(func.value, ast.Name) and func.value.id in self.world.classes and func.value.id not in self.names:
            instance = func.value.id
        else:
            instance = _instance(owner)
        if instance in self.world.classes:
            unify(self.world.self_of(instance), owner)
            method = _method_named(self.world.classes[instance], name)
            if method is not None:
                return self._known(method, instance, arguments, named, 0 if _is_static(method) else 1)
            return self._unknown(self.world.self_of(instance).attribute(name), arguments)
        field = self.value(func)
        if name == "step":
            owner.vote("environment" if arguments and arguments[0].constant is None else "optimizer", USED - 1)
        if name == "size" and arguments and isinstance(arguments[0].constant, int) and arguments[0].constant >= 0:
            owner.dimensions_least = max(owner.dimensions_least, arguments[0].constant + 1)
        if name in ("size", "numel", "dim", "item") or name in tables.NUMBER_RESULTS:
            result = Thing(made=".shape" if name == "size" and not arguments else "", arguments=(owner,))
            result.vote("int" if name != "item" else "number", WEAK)
            return result
        if name == "backward" and not arguments:
            owner.dimensions = 0
        if name in ("permute", "transpose", "swapaxes"):
            axes = [a.constant for a in arguments if isinstance(a.constant, int)]
            if name == "permute" and len(axes) == len(arguments):
                owner.dimensions = len(axes) or None
            elif axes:
                owner.dimensions_least = max(owner.dimensions_least, max(axes) + 1)
        tensor = name not in _OF_BOTH and (name in tables.TENSOR or _IN_PLACE.fullmatch(name))
        if tensor or name in tables.EITHER:
            for argument in arguments:
                if argument.constant is None and name not in (
                    "view",
                    "reshape",
                    "expand",
                    "to",
                    "permute",
                    "new_zeros",
                ):
                    argument.near.append(owner)
            if (
                name in ("gather", "index_select", "scatter", "scatter_", "index_add_", "index_copy_")
                and len(arguments) > 1
            ):
                find(arguments[1]).dtype = "long"
            if name.startswith("masked_") and arguments:
                find(arguments[0]).dtype = "bool"
            if name == "numpy":
                result = Thing()
                result.vote("array", USED)
                return result
            if name not in tables.NO_TENSOR_RESULTS:
                reduced = name in ("sum", "mean") and not arguments and not named
                result = Thing(near=[owner], dimensions=0 if reduced else None)
                if tensor:
                    result.vote("tensor", WEAK)
                return result
        if name in ("append", "add", "extend") and arguments:
            owner.each().near.append(arguments[0])
            return Thing()
        if name in ("parameters", "buffers"):
            element = Thing("p")
            element.vote("tensor", PROVEN)
            return Thing(element=element, votes={"list": USED})
        if name in ("named_parameters", "state_dict", "items"):
            pair = Thing()
            pair.item(0).vote("str", USED)
            pair.item(1).vote("tensor", USED)
            return Thing(element=pair if name == "named_parameters" else pair.item(1), votes={"dict": WEAK})
        if name in ("copy", "clone"):
            return Thing(near=[owner])
        if name in _OF_BOTH:
            return owner
        if name == "load_state_dict" and arguments:
            arguments[0].vote("state dict", USED)
            return Thing()
        return self._unknown(field, arguments)

    def _library(
        self, function: Thing, dotted: str, arguments: list[Thing], named: Mapping[str | None, Thing]
    ) -> Thing:
        """A call of something that is imported."""
        root, _, name = dotted.rpartition(".")
        first = arguments[0] if arguments else None
        result = Thing()
        if name in _TRANSPARENT and first is not None:
            return first if name == "Variable" else Thing(near=[first], element=first.element)
        if not root.startswith(("torch", "numpy", "copy")):
            function.vote("callable", WEAK)
            outcome = function.called()
            outcome.near += arguments[:1]
            return outcome
        if name == "DataLoader":
            result.vote("loader", PROVEN)
            return result
        if root.startswith("torch.optim"):
            result.vote("optimizer", PROVEN)
            result.made = dotted
            return result
        if root in ("torch.nn", "torch.nn.modules") and name[:1].isupper():
            result.made, result.arguments = dotted, tuple(arguments)
            result.vote("tensor" if name == "Parameter" else "module", PROVEN)
            if name in ("Sequential", "ModuleList") and first is not None:
                result.arguments = tuple(arguments)
            for argument in arguments:
                if argument.constant is None and name not in ("Sequential", "ModuleList", "ModuleDict", "Parameter"):
                    argument.vote("size", WEAK)
            return result
        if name in tables.SIZES:
            for argument in arguments:
                if argument.constant is None:
                    argument.vote("size", WEAK)
            result.vote("array" if root.startswith("numpy") else "tensor", PROVEN)
            result.made, result.arguments = ".sized", tuple(arguments)
            return result
        if root.startswith("numpy"):
            for argument in arguments[:2]:
                if argument.constant is None:
                    argument.vote("array", WEAK + 1)
            result.near += arguments[:1]
            result.vote("array", WEAK)
            return result
        return self._torch_function(root, name, arguments, named)

    def _torch_function(self, root: str, name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing:
        result = Thing()
        first = arguments[0] if arguments else None
        if name in tables.FROM_ARRAY and first is not None:
            first.vote("array", USED)
        elif name in ("as_tensor", "asarray", "tensor", "FloatTensor", "Tensor") and first is not None:
            if not first.votes and first.constant is None:
                first.vote("array" if name != "tensor" else "list", WEAK)
            if "list" in first.votes and first.element is None and name != "as_tensor":
                first.each().vote("index", WEAK)
        elif name in ("cat", "stack", "hstack", "vstack") and first is not None:
            for part in (*first.items.values(), first.each()):
                part.vote("tensor", WEAK + 1)
            first.vote("list", WEAK)
            result.near.append(first.each())
        elif name in ("device", "manual_seed", "no_grad", "set_grad_enabled", "enable_grad", "Generator"):
            return result
        elif root in ("torch", "torch.nn.functional", "torch.linalg", "torch.nn.init", "torch.special"):
            for argument in arguments[:1] if name not in ("where", "addmm", "mm", "bmm", "matmul") else arguments:
                if argument.constant is None:
                    argument.vote("tensor", USED)
            if len(arguments) > 1 and root == "torch.nn.functional" and arguments[1].constant is None:
                arguments[1].vote("tensor", WEAK + 1)
            if name == "where" and first is not None:
                first.dtype = first.dtype or "bool"
            if name in tables.LOSSES_BY_CLASS and len(arguments) > 1:
                _classes(arguments[0], arguments[1])
            if name in ("conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d", "interpolate") and first is not None:
                first.dimensions = 3 if name == "conv1d" else 4
            if name == "bmm":
                for argument in arguments:
                    argument.dimensions = 3
            if name == "one_hot" and first is not None:
                first.dtype = "long"
            result.near += [argument for argument in arguments if argument.constant is None][:1]
        result.vote("tensor", WEAK + 1)
        return result

    def _layer(self, module: Thing, arguments: list[Thing]) -> Thing:
        """A module whose class is known is called: it says something of its input."""
        result = Thing()
        result.vote("tensor", WEAK + 1)
        if not arguments:
            return result
        given = find(arguments[0])
        if not module.made.startswith("torch.nn."):
            return result
        given.vote("tensor", USED)
        layer = module
        for _ in range(4):
            if layer.made.endswith(".Sequential") and layer.arguments:
                layer = find(layer.arguments[0])
        name = layer.made.rsplit(".", 1)[-1]
        size = find(layer.arguments[0]) if layer.arguments else None
        if name in tables.IMAGE_LAYERS:
            given.dimensions = given.dimensions or tables.IMAGE_LAYERS[name]
            if size is not None and name not in ("MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "Upsample"):
                given.second = given.second or size
        elif name in tables.LAST_LAYERS:
            given.last = given.last or size
            given.dimensions = given.dimensions or tables.LAST_LAYERS[name] or None
        elif name.startswith("Embedding"):
            given.dtype = "long"
        elif name in tables.LOSSES_BY_CLASS and len(arguments) > 1:
            _classes(given, find(arguments[1]))
        elif name.endswith("Loss"):
            for argument in arguments:
                argument.vote("tensor", WEAK + 1)
            result.dimensions = 0
        else:
            result.near.append(given)
        return result


def _classes(scores: Thing, target: Thing) -> None:
    """A loss over classes: scores have two dimensions, the target is integers."""
    scores.vote("tensor", USED)
    target.vote("tensor", USED)
    if not scores.made:
        scores.dimensions = scores.dimensions or 2
    target.dtype, target.dimensions = "long", 1


def _instance(thing: Thing) -> str:
    """The class of the same file that a thing is surely an instance of, or an empty text."""
    for kind, weight in find(thing).votes.items():
        if kind.startswith("instance ") and weight >= PROVEN:
            return kind.removeprefix("instance ")
    return ""


def _method_named(node: ast.ClassDef, name: str) -> FunctionNode | None:
    return next((item for item in node.body if isinstance(item, FunctionNode) and item.name == name), None)


def _is_static(function: FunctionNode) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in function.decorator_list)
