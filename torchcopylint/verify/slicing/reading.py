"""What expressions give, and what each use in them says of the things that it is about."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable
from typing import TypeGuard

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.calls import IN_PLACE, OF_BOTH, TRANSPARENT, Calls
from torchcopylint.verify.slicing.indexing import widened
from torchcopylint.verify.slicing.source import goes_back
from torchcopylint.verify.slicing.things import USED, WEAK, Thing, find, kind_of, looked_up, unify
from torchcopylint.verify.slicing.world import World, instance_of, is_static, method_named


class Reading:
    """Reads expressions, with what names hold at the moment."""

    def __init__(
        self, world: World, names: dict[str, Thing], result: Thing | None, outer: dict[str, Thing] | None = None
    ) -> None:
        self.world = world
        self.calls = Calls(world)
        self.names = names
        self._called: set[ast.expr] = set()
        self.result = result
        self.outer = outer if outer is not None else {}
        self.first: dict[str, Thing] = {}

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
            if find(value).made == ".shape" and not starred:
                shaped = find(find(value).arguments[0])
                shaped.dimensions = shaped.dimensions or len(target.elts)
                for number, _ in enumerate(target.elts):
                    value.item(number).vote("int", WEAK)
            if find(value).element is None and not starred:
                find(value).arity = max(find(value).arity, len(target.elts))
                find(value).vote("tuple", WEAK)
            for number, part in enumerate(target.elts):
                if not isinstance(part, ast.Starred):
                    self.bind(part, value.item(number))
        elif isinstance(target, ast.Subscript):
            self.value(target)

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
            if name in TRANSPARENT and iterated.args:
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
                pair.item(0).key_of = owner
                unify(pair.item(1), owner.each())
                return pair if name == "items" else pair.item(1) if name == "values" else pair.item(0)
        owner = self.value(iterated)
        if "tensor" not in owner.votes and not owner.made:
            owner.vote("list", WEAK)
            element = owner.each()
            element.key_of = element.key_of or owner
            return element
        element = Thing(owner.name)
        element.near.append(owner)
        return element

    # -- expressions

    def value(self, node: ast.expr) -> Thing:
        """What an expression gives; looking is a vote."""
        handler: Callable[[ast.expr], Thing] | None = getattr(self, f"_x_{type(node).__name__.lower()}", None)
        if handler is not None:
            return find(handler(node))
        self._parts(node)
        return Thing()

    def _parts(self, node: ast.AST) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.value(part)
            elif not isinstance(part, ast.expr_context | ast.operator | ast.arguments):
                self._parts(part)

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
        free = self.world.globals.setdefault(node.id, Thing(node.id))
        if node.id == "__file__":
            free.vote("str", USED)
        return free

    def _x_attribute(self, node: ast.Attribute) -> Thing:
        owner = self.value(node.value)
        name = node.attr
        if owner.dotted:
            part = owner.attribute(name)
            part.dotted = f"{owner.dotted}.{name}"
            return part
        if instance_of(owner) in self.world.classes:
            own = self.world.self_of(instance_of(owner))
            unify(own, owner)
            return own.attribute(name)
        if name in OF_BOTH:
            owner.vote("tensor", WEAK + 1)
            owner.vote("module", WEAK)
        elif name in tables.TENSOR or (name not in ("", "_") and IN_PLACE.fullmatch(name)):
            owner.vote("tensor", USED)
            if owner.whole is not None:
                owner.whole.vote("tensor", USED)
        elif name in tables.EITHER:
            owner.vote("tensor", WEAK + 1)
            owner.vote("array", WEAK)
        elif name in tables.ARRAY:
            owner.vote("array", USED)
        elif name == "data":
            owner.vote("tensor", WEAK + 1)
        elif name == "copy":
            owner.vote("array", WEAK + 1)
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("train", "eval", "training"):
            # What has parts of that name is data: those of a module are methods, or whether it is trained.
            self.value(node.value.value).vote("object", 3 * USED)
        for names, kind in (
            (tables.MODULE, "module"),
            (tables.OPTIMIZER, "optimizer"),
            (tables.DICT, "dict"),
            (tables.LIST, "list"),
            (tables.ENVIRONMENT, "environment"),
            (tables.STRING, "str"),
            (tables.STREAM, "stream"),
        ):
            if name in names:
                owner.vote(kind, USED if name != "step" else WEAK)
        if name in tables.ENVIRONMENT_CALLED and node in self._called:
            owner.vote("environment", USED)
        if name in ("data", "grad", "T", "mT"):
            result = Thing(near=[owner], dimensions=owner.dimensions, last=owner.last)
            result.vote("tensor", WEAK)
            return result
        if name in ("shape", "dtype", "device"):
            return Thing(name, near=[], made=f".{name}", arguments=(owner,))
        if name.startswith("__"):
            # Everything has those.
            return Thing()
        return owner.attribute(name)

    def _x_slice(self, node: ast.Slice) -> Thing:
        for part in (node.lower, node.upper, node.step):
            bound = self.value(part) if part is not None else None
            if bound is not None and bound.constant is None:
                bound.vote("int", USED)
                if isinstance(part, ast.Name) and part is not node.step:
                    # What begins somewhere has something in it, what ends there has so many.
                    bound.vote("index" if part is node.lower else "size", WEAK)
        return Thing()

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
        looked_up(owner, inner)
        if inner.key_of is not None and isinstance(index, ast.Name) and self._has_keys(owner, find(inner.key_of)):
            return owner.item(None)
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Name) and not self.value(part).near:
                self.value(part).vote("index", WEAK)
        if inner.constant is not None and type(inner.constant) is int:
            owner.longest = max(owner.longest, inner.constant + 1, -inner.constant)
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
            owner.vote("array", USED if any(map(goes_back, index.elts)) else WEAK)
        if isinstance(index, ast.Slice | ast.Tuple):
            return Thing(owner.name, near=[owner], whole=owner)
        if "tensor" in inner.votes and not isinstance(index, ast.Constant):
            owner.vote("tensor", WEAK)
            return Thing(owner.name, near=[owner])
        if isinstance(index, ast.Constant) and index.value in owner.items:
            return owner.item(index.value)
        if "tensor" in owner.votes or "array" in owner.votes:
            return Thing(owner.name, near=[owner])
        return owner.each()

    def _has_keys(self, owner: Thing, looped: Thing) -> bool:
        """Whether a thing is asked for what is under the keys of a loop, its own or those of another."""
        if owner is looped:
            owner.vote("state dict", 2 * USED)
        elif "state dict" in looped.votes or "dict" in looped.votes:
            owner.vote("state dict", USED)
        else:
            return False
        return True

    def _x_tuple(self, node: ast.Tuple) -> Thing:
        whole = Thing()
        for number, part in enumerate(node.elts):
            unify(whole.item(number), self.value(part))
        return whole

    def _x_dict(self, node: ast.Dict) -> Thing:
        self._parts(node)
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return Thing(keys=tuple(key for key in keys if isinstance(key, str)) if all(keys) else ())

    def _x_list(self, node: ast.List) -> Thing:
        whole = Thing()
        whole.vote("list", USED)
        whole.arguments = tuple(self.value(part) for part in node.elts)
        for part in whole.arguments:
            whole.each().near.append(part)
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
        walk = Reading(self.world, {**self.names, **inner}, None, self.outer)
        return Thing(result=walk.value(node.body))

    def _given_to_base(self, named: dict[str | None, Thing]) -> None:
        """A base keeps what it is given by name, as far as its object is asked for it by that name."""
        own = find(self.names["self"]) if "self" in self.names else None
        for name, value in named.items():
            if own is None or name is None or value.constant is not None:
                continue
            if value.votes:
                unify(own.attribute(name), value)
            else:
                value.near.append(own.attribute(name))

    def _of_base(self, name: str, arguments: list[Thing], named: dict[str | None, Thing]) -> Thing:
        """A method of a base is called, which may be a class of the file."""
        own = instance_of(self.names["self"]) if "self" in self.names else ""
        for base in self.world.bases_of(own):
            method = method_named(self.world.classes[base], name)
            if method is not None:
                return self.calls.known(method, base, arguments, named, 0 if is_static(method) else 1)
        return Thing()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Thing:
        walk = Reading(self.world, dict(self.names), None, self.outer)
        for clause in node.generators:
            walk.bind(clause.target, walk._element(clause.iter))
            for test in clause.ifs:
                walk.value(test)
        whole = Thing()
        whole.vote("dict" if isinstance(node, ast.DictComp) else "list", USED)
        if isinstance(node, ast.DictComp):
            whole.arguments = (walk.value(node.key),)
        whole.element = walk.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        return whole

    _x_listcomp = _x_setcomp = _x_generatorexp = _x_dictcomp = _comprehension

    def _x_ifexp(self, node: ast.IfExp) -> Thing:
        self.value(node.test)
        return either("", self.value(node.body), self.value(node.orelse))

    def _x_boolop(self, node: ast.BoolOp) -> Thing:
        return Thing(near=[self.value(part) for part in node.values])

    def _x_unaryop(self, node: ast.UnaryOp) -> Thing:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(operand.constant, int | float):
            return Thing(constant=-operand.constant, votes=dict(operand.votes))
        if isinstance(node.op, ast.Invert):
            operand.dtype = operand.dtype or "bool"
            operand.vote("tensor", WEAK)
        return Thing(near=[operand], dtype=operand.dtype)

    def _x_compare(self, node: ast.Compare) -> Thing:
        sides = [self.value(node.left), *(self.value(part) for part in node.comparators)]
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(sides[0].constant, str):
            # Should it be a text, it has that in it.
            sides[1].options.append(sides[0].constant)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            looked_up(sides[1], sides[0])
        if isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return Thing()
        for one, two in itertools.pairwise(sides):
            one.near.append(two)
            two.near.append(one)
            if isinstance(two.constant, str) and one.constant is None:
                one.options.append(two.constant)
            if isinstance(node.ops[0], ast.Eq | ast.NotEq):
                _count(one, two)
                _count(two, one)
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
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            _repeats(right)
        result = Thing(near=[left, right], formula=(type(node.op).__name__, left, right))
        # A power says nothing: a whole number is raised to a half.
        if not isinstance(node.op, ast.Pow) and (not isinstance(node.op, ast.Mod) or "str" not in left.votes):
            left.near.append(right)
            right.near.append(left)
        return result

    # -- calls

    def _x_call(self, node: ast.Call) -> Thing:
        arguments = [self.value(argument) for argument in node.args]
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if None in named:
            named[None].vote("dict", USED)
        func = node.func
        self._called.add(func)
        single = widened(node)
        if single is not None:
            labels = self.value(single)
            labels.dtype, labels.dimensions = labels.dtype or "long", labels.dimensions or 1
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Call) and ast.unparse(func.value.func) == "super":
                by_name: dict[str | None, Thing] = {}
                by_name |= {part.id: value for part, value in zip(node.args, arguments, strict=True) if _is_name(part)}
                self._given_to_base({**by_name, **named})
                return self._of_base(func.attr, arguments, named)
            owner = self.value(func.value)
            if func.attr == "apply" and owner.function is not None:
                return self.calls.known(owner.function, None, arguments, named, 1)
            known = isinstance(func.value, ast.Name) and func.value.id not in self.names
            class_name = func.value.id if known and func.value.id in self.world.classes else ""  # type: ignore[attr-defined]
            return self.calls.method(owner, func.attr, lambda: self.value(func), arguments, named, class_name)
        if isinstance(func, ast.Name) and func.id not in self.names:
            name = func.id
            if name in self.world.functions:
                return self.calls.known(self.world.functions[name], None, arguments, named, 0)
            if name in self.world.classes:
                return self.calls.construct(name, arguments, named)
            if hasattr(builtins, name):
                return self.calls.builtin(name, arguments)
        function = self.value(func)
        if function.dotted:
            return self.calls.library(function, function.dotted, arguments, named)
        if function.function is not None:
            return self.calls.known(function.function, None, arguments, named, 0)
        return self.calls.unknown(function, arguments)


def _is_name(node: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def either(name: str, one: Thing, other: Thing) -> Thing:
    """What is one of two things: what is done with it says something of those of which nothing else is known."""
    whole = Thing(name, near=[one, other], ways=(one, other))
    for part in map(find, (one, other)):
        if max(part.votes.values(), default=0) < USED and part.constant is None:
            part.near.append(whole)
    return whole


def _count(whole: Thing, number: Thing) -> None:
    """Numbers are compared for being the same as a whole one: they are whole numbers, and some are the same."""
    if number.constant is None and number.votes.get("int", 0) >= USED and kind_of(whole)[0] in ("tensor", "array"):
        whole.dtype = whole.dtype or "long"
        number.vote("index", WEAK)


def _repeats(number: Thing) -> None:
    """How often something is repeated: twice at least."""
    number.least = 2
    if number.formula is not None and number.formula[0] == "Sub":
        _, whole, taken = number.formula
        constant = find(taken).constant
        if isinstance(constant, int):
            find(whole).least = 2 + constant
