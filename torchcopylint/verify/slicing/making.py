"""Makes what is called, functions, modules that stand in, objects of the file's classes, and what they are given."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.fitting import is_filled, is_plain, is_zero, rank
from torchcopylint.verify.slicing.sizes import is_one_number
from torchcopylint.verify.slicing.source import FunctionNode
from torchcopylint.verify.slicing.things import PROVEN, Thing, find, hinted, is_taken_apart, kind_of
from torchcopylint.verify.slicing.values import DEEPEST, NO_LEAF, Values, length


@dataclass(slots=True)
class Maker(Values):
    """Makes expressions for all things: also for those that are called, and for what they are given."""

    # -- callables and modules

    def _callable(self, thing: Thing, name: str, depth: int) -> str:
        return f"lambda *given, **named: {self._answer(thing.result, name, 'given', depth)}"

    _function = _callable

    def _answer(self, result: Thing | None, name: str, given: str, depth: int, respond: str = "") -> str:
        """What a stand-in returns from the tensors in `given`."""
        scale = ", self.scale" if respond == "self.linear" and not self.flat else ""
        produced = f"respond({respond}, {given}{scale})" if respond else f"blend(*{given})"
        self.helpers.add("respond" if respond else "blend")
        if not respond:
            self.standins.append(f"`{name}(...)`: returns something computed from its arguments")
        if self.setting.layers and not respond and name.rpartition(".")[2][:1].isupper():
            # It is made of a class, and has to be a layer.
            self.helpers.add("LayerElsewhere")
            return "LayerElsewhere()"
        if result is None:
            return produced
        result = find(result)
        kind, _ = kind_of(result)
        if depth > DEEPEST:
            return produced  # one of its own parts
        if kind == "str" and not result.votes and result.attributes.keys() - tables.STRING:
            # What is done with it says more than what it was made from.
            return self._object(result, f"{name}(...)", depth + 1)
        if result.result is not None and result.attributes and result.arity < 2:
            return self._module(result, f"{name}(...)", depth + 1)
        if kind in ("", "tensor") and not result.votes and result.attributes and result.arity < 2:
            return self._answer_in_parts(result, f"{name}(...)", given, depth + 1, respond)
        if result.arity > 1:
            parts = [
                self._answer(result.item(number), f"{name}(...)[{number}]", given, depth + 1, respond)
                for number in range(result.arity)
            ]
            return f"({', '.join(parts)})"
        if kind in ("int", "float", "number") and result.dimensions is None:
            return "random.random()"
        if kind in ("tensor", "", "int", "float", "number") and is_one_number(result):
            return f"({produced}).mean()"
        if kind in ("tensor", ""):
            keys = [key for key in result.items if isinstance(key, str)]
            return f"{{{', '.join(f'{key!r}: {produced}' for key in keys)}}}" if keys else produced
        if kind == "dict" and result.items and result.attributes.keys() <= tables.DICT:
            return self._answer_in_parts(result, f"{name}(...)", given, depth + 1, respond)
        return self.expression(result, f"{name}(...)", depth + 1)

    def _answer_in_parts(self, result: Thing, name: str, given: str, depth: int, respond: str) -> str:
        """What a stand-in returns that has its tensors under keys or in attributes: each is computed as well."""
        keyed = not result.attributes.keys() - tables.DICT and bool(result.items)
        held: dict[object, Thing] = dict(result.items)
        for attribute, part in () if keyed else result.attributes.items():
            held[attribute] = part
        if not all(isinstance(key, str) and (keyed or key.isidentifier()) for key in held):
            return self.expression(result, name, depth)
        parts: dict[object, str] = {}
        for key, part in held.items():
            part = find(part)
            kind = kind_of(part)[0]
            computed = part.result is None and (kind == "tensor" or (not kind and self._by_parts(part) == "tensor"))
            inner = f"{name}[{key!r}]" if keyed else f"{name}.{key}"
            parts[key] = (
                self._answer(part, inner, given, depth, respond) if computed else self.expression(part, inner, depth)
            )
        if keyed:
            return f"{{{', '.join(f'{key!r}: {text}' for key, text in parts.items())}}}"
        self.assumed.append(f"`{name}` has the attributes {', '.join(map(str, held))}")
        self.helpers.add("Anything")
        return f"Anything({', '.join([repr(name), *(f'{key}={text}' for key, text in parts.items())])})"

    def _layer(self, thing: Thing, name: str) -> str:
        """A module of a known class of `torch.nn`."""
        cls = thing.made.rsplit(".", 1)[-1]
        arguments = tables.CONSTRUCTED.get(cls)
        if cls in ("ParameterList", "ModuleList"):
            element = (
                "torch.nn.Parameter(torch.randn({n}, {n}))" if cls == "ParameterList" else "torch.nn.Linear({n}, {n})"
            )
            arguments = f"([{element} for _ in range({length(thing)})])"
        if arguments is None:
            arguments = f"({', '.join(str(self.sizes.number(argument)) for argument in thing.arguments)})"
        self.assumed.append(f"`{name}` is a new `{cls}`")
        return f"{thing.made}{arguments.format(n=self.setting.size)}"

    def _module(self, thing: Thing, name: str, depth: int) -> str:
        """A small model with what is used of it."""
        size = self.setting.size
        self._count += 1
        class_name = f"Model{self._count}"
        base, setup = "torch.nn.Module", ""
        if {"running_mean", "running_var", "num_features"} & thing.attributes.keys():
            base, setup = "torch.nn.BatchNorm1d", f"{size}"
        elif {"weight", "bias", "in_features", "out_features"} & thing.attributes.keys():
            base, setup = "torch.nn.Linear", f"{size}, {size}"
        body = [f"class {class_name}({base}):", f'    """Stands in for `{name}`."""', "", "    def __init__(self):"]
        body.append(f"        super().__init__({setup})")
        answering = "self" if base.endswith("Linear") else "self.linear"
        if answering != "self" and self.flat:
            body.append(f"        self.linear = torch.nn.Linear({size}, {size}, bias=False)")
        elif answering != "self":
            body.append("        self.scale = torch.nn.Parameter(torch.ones(1))")
            body.append(f"        self.linear = torch.nn.Linear({size}, {size})")
        methods: list[str] = []
        for key, part in thing.attributes.items():
            part = find(part)
            if key in tables.MODULE | tables.TENSOR | tables.EITHER or key in ("to", "step", "linear", "scale"):
                continue
            if key in ("_modules", "_parameters", "_buffers"):
                continue  # every module has its own
            kind = kind_of(part)[0]
            if part.result is not None and kind in ("", "callable", "tensor"):
                methods.append(f"    def {key}(self, *given, **named):")
                methods.append(
                    f"        return {self._answer(part.result, f'{name}.{key}', 'given', depth, answering)}"
                )
            elif kind == "tensor" or (not kind and self._by_parts(part) == "tensor"):
                body.append(f"        self.{key} = torch.nn.Parameter(torch.randn({size}, {size}))")
            else:
                body.append(f"        self.{key} = {self.expression(part, f'{name}.{key}', depth + 1)}")
        if self.setting.frozen:
            body.append("        self.requires_grad_(False)")
        if base == "torch.nn.Module":
            answer = self._answer(thing.result, name, "(*given, *named.values())", depth, answering)
            methods += ["    def forward(self, *given, **named):", f"        return {answer}"]
        self.definitions.append("\n".join([*body, "", *methods, ""]))
        self.standins.append(f"`{name}`: a small model, {base} with {size} inputs")
        shown = thing.methods & (tables.MODULE | tables.EITHER) - {"parameters", "named_parameters"}
        other = thing.methods - tables.MODULE - tables.EITHER
        proven = shown or hinted(thing) == "module" or max(thing.votes.values(), default=0) >= PROVEN
        if other and thing.result is None and not proven:
            self.only_listed = True
        self.trained.add(name)
        return f"{class_name}()"

    # -- classes of the file

    def _instance(self, class_name: str, name: str, depth: int) -> str:
        """An object of a class of the file, by its own `__init__`."""
        if class_name in self._busy:
            return self._anything(name)
        if self.world.is_enumeration(class_name):
            self.instanced.add(class_name)
            self.assumed.append(f"`{name}` is the first of `{class_name}`")
            return f"next(iter({class_name}))"
        self._busy.append(class_name)
        self.instanced.add(class_name)
        try:
            if class_name in self.bare and not self.world.is_record(class_name):
                return self._bare(class_name, name, depth)
            return f"{class_name}({self.arguments_of_class(class_name, depth + 1)})"
        finally:
            self._busy.pop()

    def _bare(self, class_name: str, name: str, depth: int) -> str:
        """An object of a class of the file with the fields that are read, made without its `__init__`."""
        whole = self.world.self_of(class_name)
        methods = self.world.methods_of(class_name)
        parts = []
        names = [key for key in whole.attributes if key in self.bare[class_name] and key not in methods]
        for key in sorted(names, key=lambda key: rank(kind_of(whole.attributes[key])[0])):
            if key in tables.MODULE and key not in ("weight", "bias"):
                continue
            thing = find(whole.attributes[key])
            if thing.made == "torch.nn.Parameter" and self.world.is_module(class_name) and id(thing) not in self.named:
                shape = ", ".join(map(str, self.sizes.shape(thing))) or "()"
                self.assumed.append(f"`{key}` is a parameter with shape [{shape}]")
                parts.append(f"{key}=torch.nn.Parameter(torch.randn({shape}))")
                continue
            parts.append(f"{key}={self._argument(thing, key, depth + 1)}")
        self.helpers.add("without_init")
        self.standins.append(f"`{name}`: an object of `{class_name}` with the fields that are read")
        return f"without_init({', '.join([class_name, *parts])})"

    def arguments_of_class(self, class_name: str, depth: int) -> str:
        """The arguments that making an object of a class takes."""
        seen = set()
        current: str | None = class_name
        while current in self.world.classes and current not in seen:
            seen.add(current)
            node = self.world.classes[current]
            init = next((m for m in node.body if isinstance(m, FunctionNode) and m.name == "__init__"), None)
            if init is not None:
                return self.arguments(init, current, depth)
            if self.world.is_record(current):
                return self._fields_of_record(current, depth)
            names = [base.id for base in node.bases if isinstance(base, ast.Name)]
            current = names[0] if names else None
        return ""

    def _fields_of_record(self, class_name: str, depth: int) -> str:
        """All fields of a class of records that have no value, those of its bases in the file included."""
        parts: dict[str, str] = {}
        for node in self.world.family(class_name):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    name = item.target.id
                    thing = self.world.self_of(class_name).attribute(name)
                    if item.value is None and name not in parts and "ClassVar" not in ast.unparse(item.annotation):
                        self.world.annotate(thing, item.annotation)
                        parts[name] = f"{name}={self.expression(thing, name, depth)}"
        return ", ".join(parts.values())

    def arguments(self, function: FunctionNode, class_name: str | None, depth: int) -> str:
        """The arguments that a call of a function has to pass, without `self`, those of an optimizer last."""
        given, _ = self.world.signature(function, class_name)
        parameters = function.args
        ordered = [*parameters.posonlyargs, *parameters.args]
        if class_name is not None and not any("staticmethod" in ast.unparse(d) for d in function.decorator_list):
            ordered = ordered[1:]
        missing = len(parameters.posonlyargs) + len(parameters.args) - len(parameters.defaults)
        missing -= len(parameters.posonlyargs) + len(parameters.args) - len(ordered)
        needed = [parameter.arg for parameter in ordered[: max(missing, 0)]]
        dropped: list[str] = []
        told: dict[str, str] = {}
        for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
            if default is None:
                needed.append(parameter.arg)
        own = [*zip(reversed(ordered), reversed(parameters.defaults), strict=False)]
        own += [(p, d) for p, d in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if d is not None]
        for parameter, default in own:
            instead = self.wanted.instead_of(parameter.arg, default)
            if not isinstance(instead, ast.expr):
                if is_plain(find(given[parameter.arg]), "", instead):
                    told[parameter.arg] = self._as_wanted(parameter.arg, instead)
                continue
            if parameter.arg in self.kinds:
                needed += [parameter.arg] if self.kinds[parameter.arg] != "nothing" else []
                continue
            if is_zero(default) and "drop" in parameter.arg.lower():
                # Nobody writes a layer that drops in order to drop nothing.
                dropped.append(parameter.arg)
                self.assumed.append(f"`{parameter.arg}` is 0.5")
            unset = isinstance(default, ast.Constant) and default.value is None
            used = unset and (kind_of(given[parameter.arg])[1] >= 3 or is_taken_apart(given[parameter.arg]))
            if (unset and parameter.arg in self.wanted.made) or (used and not is_filled(function, parameter.arg)):
                # A default of `None` is often one that a caller never leaves.
                needed.append(parameter.arg)
        keyword = {parameter.arg for parameter in (*parameters.args, *parameters.kwonlyargs)}
        texts = {name: self._argument(given[name], name, depth) for name in self._in_order(needed, given)}
        passed = [f"{name}={texts[name]}" if name in keyword else texts[name] for name in needed]
        passed += [f"{name}={text}" for name, text in told.items() if name in keyword and name not in needed]
        return ", ".join((*passed, *(f"{name}=0.5" for name in dropped if name in keyword)))

    def _in_order(self, needed: list[str], given: object) -> list[str]:
        """Optimizers after the modules that they are made for."""
        things = given if isinstance(given, dict) else {}
        return sorted(needed, key=lambda name: rank(kind_of(things[name])[0]))

    def _argument(self, thing: Thing, name: str, depth: int) -> str:
        """A variable for an argument, so that one can speak of it, and the same thing is one object everywhere."""
        thing = find(thing)
        if id(thing) in self.named:
            return self.named[id(thing)]
        text = self.expression(thing, name, 0 if depth <= 1 else depth)
        plain = text.replace(".", "").replace("-", "").isalnum() and not text.isidentifier()
        if plain or text in ("True", "None") or text.startswith(("'", '"')):
            return text
        variable = name
        while variable in self.taken:
            variable = f"{variable}_"
        self.taken.add(variable)
        self.definitions.append(f"{variable} = {text}\n")
        self.named[id(thing)] = variable
        self.arguments_given.append(variable)
        if text.endswith(NO_LEAF):
            self.grown.append(variable)
        if self._is_module(thing, name):
            self.modules.append(variable)
        return variable
