"""What runs the kept functions and methods: calls of them, a backward pass, a later write."""

from __future__ import annotations

import ast
from functools import lru_cache

from torchcopylint.base.finding import Finding, Role
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.making import Maker
from torchcopylint.verify.slicing.narrow import FIELD, RENEWED
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.source import FunctionNode, Scope, children, is_autograd_function, walked
from torchcopylint.verify.slicing.things import Thing, kind_of
from torchcopylint.verify.slicing.world import is_static, method_named


class Driver:
    """Writes the calls for one finding; `confirm` are the words of its page."""

    def __init__(self, world: Inference, finding: Finding, confirm: tuple[str, ...]) -> None:
        self._world = world
        self._finding = finding
        self._confirm = confirm

    def text(self, plan: Plan, maker: Maker) -> str:
        """The statements that call what a plan keeps, with arguments that the maker makes."""
        lines: list[str] = []
        objects: dict[str, str] = {}
        backward = bool({"raises-later", "gradient-differs"} & set(self._confirm))
        handed_on = not backward and self._hands_on(plan)
        calls: list[str] = []
        for number, chain in enumerate(plan.targets):
            extra = plan.made[number] if plan.made else ()
            if isinstance(chain[0], FunctionNode):
                call = self._call_function(chain[0], maker)
            else:
                call = self._call_method(chain, maker, objects, extra)
            if call and extra:
                call = self._with_locals(call, chain[-1], extra, maker, self._self_of(chain))
            if call:
                calls.append(call)
        once = len(calls) == 1 and not objects and not any(map(_is_cached, self._world.functions.values()))
        # What one call leaves behind shows in a later one, and whether it grows in one more.
        more = "returns-differ" in self._confirm or ("graph-kept" in self._confirm and objects)
        for turn in range(3 if more else 1 if once else 2):
            if turn and backward:
                # Each call gets inputs of its own: the graph of the first ones was freed.
                lines += [f"{name} = {name}.detach().requires_grad_() * 1.0" for name in maker.grown]
            for number, call in enumerate(calls):
                name = f"result_{turn * len(calls) + number + 1}"
                lines.append(f"{name} = {call}")
                if backward or handed_on:
                    maker.helpers.add("backpropagate")
                    lines.append(f"backpropagate({name})")
        if backward and any(is_autograd_function(chain[0]) for chain in plan.targets):
            applied = [call for call in calls if ".apply(" in call]
            lines += [line for call in applied for line in _beside(call)]
            maker.assumed.append("what is returned is added to something else that gets a gradient")
            maker.helpers.add("use_later")
            lines += [f"given_{n} = use_later({call.replace('(', ', ', 1)}" for n, call in enumerate(applied, 1)]
            maker.assumed.append("what a function of autograd is given is used afterwards")
        if self.written_later():
            made = [name for cls, name in objects.items() if self._world.is_module(cls)]
            things = [name for name in (*maker.arguments_given, *made) if name.isidentifier()]
            if things:
                maker.helpers.add("change")
                lines += [f"change({name})" for name in things]
                maker.assumed.append("what was passed is written in place afterwards")
        if backward or handed_on:
            maker.assumed.append("what is returned goes into a backward pass")
        return "\n".join(lines) + "\n"

    def _hands_on(self, plan: Plan) -> bool:
        """Whether a step is that backward runs over what is returned there: whoever calls has that done."""
        rows = {step.span.start.row for step in self._finding.steps if "backward runs over" in step.message}
        called = [chain[-1] for chain in plan.targets if isinstance(chain[-1], FunctionNode)]
        return any(isinstance(node, ast.Return) and node.lineno in rows for one in called for node in walked(one))

    def _with_locals(
        self, call: str, function: Scope, names: tuple[str, ...], maker: Maker, fields: Thing | None = None
    ) -> str:
        """A call with arguments for the local names, and the fields of `self`, whose making was cut away."""
        things = dict(self._world.locals.get(id(function), {}))
        if fields is not None:
            things |= {f"{FIELD}{name}": thing for name, thing in fields.attributes.items()}
        things |= {f"{RENEWED}{name}": thing for name, thing in things.items()}
        parts = []
        for name in sorted(names, key=lambda name: kind_of(things.get(name, Thing(name)))[0] == "optimizer"):
            thing = things.get(name) or self._world.globals.get(name) or Thing(name)
            parts.append(f"{name}={maker._argument(thing, name.removeprefix(FIELD).removeprefix(RENEWED), 1)}")
        tail = "))" if call.startswith("list(") else ")"
        head = call.removesuffix(tail)
        return f"{head}{'' if head.endswith('(') else ', '}{', '.join(parts)}{tail}"

    def _self_of(self, chain: tuple[Scope, ...]) -> Thing | None:
        return self._world.self_of(chain[0].name) if isinstance(chain[0], ast.ClassDef) else None

    def written_later(self) -> bool:
        """Whether the finding is about every later write, and has none of its own."""
        words = {"two-names-change", "two-tensors-change"} & set(self._confirm)
        return bool(words) and not any(step.role is Role.WRITTEN for step in self._finding.steps)

    def _call_function(self, function: FunctionNode, maker: Maker) -> str:
        arguments = maker.arguments(function, None, 1)
        call = f"{function.name}({arguments})"
        return f"list({call})" if _is_generator(function) else call

    def _call_method(
        self, chain: tuple[Scope, ...], maker: Maker, objects: dict[str, str], made: tuple[str, ...]
    ) -> str:
        """The call of a method. `made` are the local names that are passed to it: `__init__` gets them here."""
        cls = chain[0]
        assert isinstance(cls, ast.ClassDef)
        method = chain[1] if len(chain) > 1 else None
        decorators = (
            {ast.unparse(item).split("(")[0] for item in method.decorator_list} if method is not None else set()
        )
        if method is not None and is_autograd_function(cls) and isinstance(method, FunctionNode):
            return self._apply(cls, maker)
        if decorators & {"staticmethod", "classmethod"} and isinstance(method, FunctionNode):
            skip = "classmethod" in decorators
            arguments = maker.arguments(method, cls.name if skip else None, 1)
            return f"{cls.name}.{method.name}({arguments})"
        if cls.name not in objects:
            variable = f"{cls.name.lower()}_object"
            text = maker.expression(self._world.self_of(cls.name), cls.name)
            if made and method is not None and method.name == "__init__" and text.startswith(f"{cls.name}("):
                text = self._with_locals(text, method, made, maker, self._self_of(chain))
            objects[cls.name] = variable
            maker.named[id(self._world.self_of(cls.name))] = variable
            (maker.modules if self._world.is_module(cls.name) else maker.others).append(variable)
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
        given, _ = self._world.signature(forward, None)
        names = [parameter.arg for parameter in forward.args.args[1:]]
        if not is_static(forward):
            maker.definitions += self._fields_of_context(cls, maker)
        texts = [maker._argument(given[name], name, 1) for name in names]
        return f"{cls.name}.apply({', '.join(texts)})"

    def _fields_of_context(self, cls: ast.ClassDef, maker: Maker) -> list[str]:
        """Of a function of autograd in the old style, which is its own context, the fields that `__init__` sets."""
        init = method_named(cls, "__init__")
        inside = list(walked(init)) if init is not None else []
        set_here = {node.attr for node in inside if isinstance(node, ast.Attribute) and not _is_read(node)}
        fields = self._world.self_of(cls.name).attributes
        lines = []
        for name in sorted(set_here & fields.keys()):
            lines.append(f"{cls.name}._backward_cls.{name} = {maker.expression(fields[name], name)}\n")
        if lines:
            maker.standins.append(f"the context of `{cls.name}` has the fields that its `__init__` sets")
        return lines


def _is_read(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_cached(function: FunctionNode) -> bool:
    """Whether a function gives back what it gave before."""
    return any("cache" in ast.unparse(decorator) for decorator in function.decorator_list)


@lru_cache(maxsize=64)
def _is_generator(function: FunctionNode) -> bool:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Scope | ast.Lambda):
            pending.extend(children(node))
    return False


def _beside(call: str) -> list[str]:
    """A call whose gradient goes to another branch of the graph as well, and to that one afterwards."""
    return [
        f"branch = torch.ones_like({call}, requires_grad=True)",
        "earlier = branch * 1.0",
        f"backpropagate(({call} + earlier) * 1.0)",
    ]
