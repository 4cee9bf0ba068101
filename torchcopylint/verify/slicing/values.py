"""Makes the things that a slice needs: an expression for each, with what had to be assumed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.conditions import Value, Wanted
from torchcopylint.verify.slicing.fitting import is_filled, is_plain, is_zero, likeliest, rank
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.sizes import Setting, Sizes, is_one_number
from torchcopylint.verify.slicing.source import FunctionNode
from torchcopylint.verify.slicing.things import Thing, find, has_graph, hinted, is_taken_apart, kind_of

_ARITHMETIC = {"Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Div": "/", "Pow": "**", "Mod": "%"}
_DEEPEST = 5
_MOST_ITEMS = 16
_NO_LEAF = ("requires_grad=True) * 1.0", "requires_grad=True) * 10.0")


def _is_bare(thing: Thing) -> bool:
    """Whether nothing is known of a thing but what it is near."""
    return not (thing.votes or thing.attributes or thing.items or thing.element or thing.result)


def _length(thing: Thing) -> int:
    """How many items a list has: two, or as many as it is asked for."""
    return min(max(2, find(thing).longest), _MOST_ITEMS)


@dataclass(slots=True)
class Maker:
    """Makes expressions for things under one setting, and keeps the account of what was assumed.

    `bare` has the fields of objects that are made without their `__init__`, by class; `plain`: objects of other classes
    of the file are stood in for. `kinds` are those of names that a run has shown. `wanted` is what the way to the steps
    asks of names. `flat`: modules that stand in have no parameter but a matrix.
    `frozen` are the last names of what the file switches off, with the rows.
    """

    world: Inference
    setting: Setting
    bare: Mapping[str, frozenset[str]] = field(default_factory=dict)
    plain: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    flat: bool = False
    frozen: Mapping[str, int] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    standins: list[str] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    trained: set[str] = field(default_factory=set)
    modules: list[str] = field(default_factory=list)
    named: dict[int, str] = field(default_factory=dict)
    instanced: set[str] = field(default_factory=set)
    sizes: Sizes = field(init=False)
    _busy: list[str] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self.sizes = Sizes(self.setting)

    # -- expressions

    def expression(self, thing: Thing, name: str, depth: int = 0) -> str:
        """An expression that makes a thing; `name` is what it is called by, for the account."""
        text = self._expression(thing, name, depth)
        row = self.frozen.get(name.rpartition(".")[2])
        if row is None or text.isidentifier() or not self._is_module(find(thing), name):
            return text
        self.assumed.append(f"`{name}` is frozen, as in line {row}")
        return f"{text}.requires_grad_(False)"

    def _is_module(self, thing: Thing, name: str) -> bool:
        kind = self.kinds.get(name) or kind_of(thing)[0]
        return kind == "module" or self.world.is_module(kind.removeprefix("instance "))

    def _expression(self, thing: Thing, name: str, depth: int) -> str:
        thing = find(thing)
        if id(thing) in self.named:
            return self.named[id(thing)]
        kind, weight = kind_of(thing)
        last = name.rsplit(".", 1)[-1]
        for asked in (self.wanted.values, self.wanted.truths) if name not in self.kinds else ():
            if last in asked and is_plain(thing, kind, asked[last]):
                return self._as_wanted(name, asked[last])
        if isinstance(thing.constant, int | float | str | bool) and not depth:
            return repr(thing.constant)
        if depth > _DEEPEST:
            return "None"
        shown = self.kinds.get(name) or self.kinds.get(last)
        if shown:
            told: str = getattr(self, f"_{shown}")(thing, name, depth)
            return told
        if kind.startswith("instance "):
            class_name = kind.removeprefix("instance ")
            if not self.plain or class_name in self.bare:
                return self._instance(class_name, name, depth)
            kind = "module" if self.world.is_module(class_name) else "object"
        if thing.made.startswith("torch.nn.") and kind == "module":
            return self._layer(thing, name)
        if not kind and _is_bare(thing):
            # A base keeps it, and something is asked of it there.
            kept = next((other for other in map(find, thing.near) if other.attributes and not other.votes), None)
            if kept is not None:
                return self.expression(kept, name, depth)
        if weight == 0 and (thing.attributes or thing.items) and kind in ("bool", "str", "number", "callable", "array"):
            # What is done with it says more than its name.
            kind = ""
        if not kind:
            kind = self._by_parts(thing)
        elif weight == 0 and kind in ("module", "loader", "array", "dict", "optimizer", "environment"):
            self.guessed.add(name)
        elif kind == "list" and weight == 1 and not thing.items and thing.element is None:
            kind = "tensor"
        elif kind in ("tensor", "array") and weight < 3 and thing.result is not None:
            kind = "callable"
        if kind == "callable" and weight < 5 and hinted(thing) == "module":
            kind = "module"
        if thing.arity and kind in ("tuple", "list", "tensor", ""):
            kind = "tuple"
        maker = getattr(self, f"_{kind.replace(' ', '_')}", None) if kind else None
        if maker is None:
            return self._anything(name)
        text: str = maker(thing, name, depth)
        return text

    def _by_parts(self, thing: Thing) -> str:
        """A kind for a thing that no vote and no name says anything of."""
        if thing.result is not None:
            return "callable"
        if not thing.votes and not thing.items and thing.element is None:
            # What it becomes is taken apart, as by a base that keeps it.
            apart = next((other for other in map(find, thing.near) if other.element is not None or other.items), None)
            if apart is not None and not apart.votes:
                return self._by_parts(apart)
        if thing.items:
            return "tuple" if all(isinstance(key, int) for key in thing.items) else "dict"
        if thing.attributes:
            return "object"
        if thing.element is not None:
            return "list"
        if thing.tested:
            return "bool"
        self.guessed.add(thing.name)
        return "tensor"

    def _tensor(self, thing: Thing, name: str, depth: int) -> str:
        shape, setting = self.sizes.shape(thing), self.setting
        written = f"{shape[0]}" if len(shape) == 1 else f"{shape}" if not shape else ", ".join(map(str, shape))
        dtype = self._dtype_of(thing)
        if dtype == "long":
            text = f"torch.randint(0, 2, {shape})"
        elif dtype == "bool":
            text = f"torch.rand({written}) > 0.5"
        else:
            exact = ", dtype=torch.float64" if setting.dtype == "float64" else ""
            known = has_graph(thing)
            text = f"torch.randn({written}{exact}{', requires_grad=True' if setting.grad or known else ''})"
            # What a function is given is seldom a leaf.
            if setting.spread:
                text = f"{text} * 10.0"
            if find(thing).missing:
                self.assumed.append(f"some elements of `{name}` are NaN")
                text = f"({text}).masked_fill(torch.rand({written}) > 0.5, float('nan'))"
            # `_NO_LEAF` is what such a text ends with.
            text += " * 1.0" if (setting.grad or known) and not setting.spread else ""
            if known:
                self.assumed.append(f"`{name}` has a graph, since a module computes it")
                return text
        if setting.turned and len(shape) > 1:
            text = f"({text}).transpose(0, -1).contiguous().transpose(0, -1)"
        kind = {"long": "of integers", "bool": "of booleans"}.get(dtype, f"of {setting.dtype}")
        graph = ", with a graph" if setting.grad and not dtype else ""
        if graph:
            self.trained.add(name)
        self.assumed.append(f"`{name}` is a tensor {kind} with shape {list(shape)}{graph}")
        return text

    def _indices(self, thing: Thing, name: str, depth: int) -> str:
        self.assumed.append(f"`{name}` is a tensor of indices")
        return "torch.tensor([0, 1])"

    def _dtype_of(self, thing: Thing) -> str:
        return find(thing).dtype

    def _array(self, thing: Thing, name: str, depth: int) -> str:
        shape = self.sizes.shape(thing) or (1,)
        counted = self._dtype_of(thing) == "long"
        kind = "integers" if counted else self.setting.dtype
        self.assumed.append(f"`{name}` is an array of {kind} with shape {list(shape)}")
        if counted:
            return f"np.random.randint(0, 2, {shape})"
        order = ", order='F'" if self.setting.turned else ""
        written = ", ".join(map(str, shape))
        if find(thing).missing:
            self.assumed.append(f"some elements of `{name}` are NaN")
            text = f"np.where(np.random.rand({written}) > 0.5, np.nan, np.random.randn({written}))"
            return f"{text}.astype(np.{self.setting.dtype}{order})"
        spread = "10.0 * " if self.setting.spread else ""
        return f"{spread}np.random.randn({written}).astype(np.{self.setting.dtype}{order})"

    def _as_wanted(self, name: str, value: Value) -> str:
        self.assumed.append(f"`{name}` is {value!r}, which leads to the steps")
        return repr(value)

    def _number_(self, thing: Thing, name: str) -> str:
        value = self.sizes.number(thing)
        last = name.rsplit(".", 1)[-1]
        if thing.formula is None:
            value = self.wanted.number(last, value)
        if isinstance(value, float) and not value.is_integer():
            return repr(round(value, 6))
        return repr(int(value))

    def _number(self, thing: Thing, name: str, depth: int) -> str:
        text = self._number_(thing, name)
        self.assumed.append(f"`{name}` is {text}")
        return text

    _int = _float = _size = _index = _number

    def _bool(self, thing: Thing, name: str, depth: int) -> str:
        self.assumed.append(f"`{name}` is True")
        return "True"

    def _str(self, thing: Thing, name: str, depth: int) -> str:
        if find(thing).options:
            self.assumed.append(f"`{name}` is {find(thing).options[0]!r}")
            return repr(find(thing).options[0])
        last = name.rsplit(".", 1)[-1]
        return repr(self.setting.device if last.lower().endswith("device") else last)

    def _path(self, thing: Thing, name: str, depth: int) -> str:
        self.helpers.add("Location")
        return f"Location({name.rsplit('.', 1)[-1]!r})"

    def _device(self, thing: Thing, name: str, depth: int) -> str:
        return f"torch.device({self.setting.device!r})"

    def _dtype(self, thing: Thing, name: str, depth: int) -> str:
        return "torch.float32"

    def _list(self, thing: Thing, name: str, depth: int) -> str:
        if thing.items and all(isinstance(key, int) for key in thing.items) and thing.element is None:
            return self._tuple(thing, name, depth)
        element = thing.element or Thing(name)
        if thing.items:
            for part in thing.items.values():
                element.near.append(part)
        if any(not hasattr(list, key) for key in thing.attributes):
            return self._loader(thing, name, depth)
        if find(element).arity or find(element).items:
            return self._loader(thing, name, depth)
        if "index" in find(element).votes:
            self.assumed.append(f"`{name}` is a list of indices")
            return "[0, 1]"
        if not find(element).votes and find(element).near:
            # What arithmetic alone is known of is a number, which fits every shape.
            self.assumed.append(f"`{name}` is a list of numbers")
            return f"[0.5] * {max(self.setting.size, 4)}"
        count = _length(thing)
        self.assumed.append(f"`{name}` has {'two' if count == 2 else count} elements")
        return f"[{self.expression(element, f'{name}[0]', depth + 1)} for _ in range({count})]"

    _set = _list

    def _loader(self, thing: Thing, name: str, depth: int) -> str:
        element = self.expression(thing.each(), f"{name}[0]", depth + 1)
        self.assumed.append(f"`{name}` gives two batches")
        self.helpers.add("Batches")
        attributes = [
            f"{key}={self.expression(part, f'{name}.{key}', depth + 2)}"
            for key, part in thing.attributes.items()
            if not hasattr(list, key)
        ]
        text = f"Batches([{element} for _ in range({self.setting.items})])"
        if attributes:
            self.definitions.append(
                "def with_attributes(thing, **attributes):\n    vars(thing).update(attributes)\n    return thing\n"
            )
            text = f"with_attributes({text}, {', '.join(attributes)})"
        return text

    def _tuple(self, thing: Thing, name: str, depth: int) -> str:
        numbers = [key for key in thing.items if isinstance(key, int) and key >= 0]
        count = max([thing.arity, *(number + 1 for number in numbers)], default=0) or 2
        parts = [self.expression(thing.item(n), thing.item(n).name or f"{name}[{n}]", depth + 1) for n in range(count)]
        return f"({', '.join(parts)},)"

    def _dict(self, thing: Thing, name: str, depth: int) -> str:
        keys = {key: part for key, part in thing.items.items() if isinstance(key, str)}
        if any(not hasattr(dict, key) for key in thing.attributes):
            # Settings that are asked for either way, a registry.
            return self._object(thing, name, depth)
        if not keys:
            if thing.element is not None and kind_of(thing.element)[0] not in ("tensor", ""):
                part_text = self.expression(thing.element, f"{name}[...]", depth + 1)
                return f"{{'one': {part_text}, 'two': {part_text}}}"
            self.helpers.add("Keyed")
            self.assumed.append(f"`{name}` has a tensor under every key")
            return "Keyed()"
        parts = [f"{key!r}: {self.expression(part, f'{name}[{key!r}]', depth + 1)}" for key, part in keys.items()]
        return f"{{{', '.join(parts)}}}"

    def _parameters(self, thing: Thing, name: str, depth: int) -> str:
        self.helpers.add("trained")
        self.assumed.append(f"`{name}` are two parameters with gradients")
        return f"trained({self.setting.size})"

    def _state_dict(self, thing: Thing, name: str, depth: int) -> str:
        if self.modules:
            return f"{{key: value.clone() for key, value in {self.modules[0]}.state_dict().items()}}"
        # The keys of a model that stands in: see `_module`.
        n = self.setting.size
        self.assumed.append(f"`{name}` has the keys of a model that stands in")
        keys = f"'scale': torch.ones(1), 'linear.weight': torch.randn({n}, {n}), 'linear.bias': torch.randn({n})"
        return f"{{{keys}}}"

    def _object(self, thing: Thing, name: str, depth: int) -> str:
        items = {key: part for key, part in thing.items.items() if isinstance(key, str) and key.isidentifier()}
        held = {**items, **thing.attributes}
        parts = [f"{key}={self.expression(part, f'{name}.{key}', depth + 1)}" for key, part in held.items()]
        self.assumed.append(f"`{name}` has the attributes {', '.join(held) or 'that are read'}")
        self.helpers.add("Anything")
        return f"Anything({', '.join([repr(name), *parts])})"

    def _environment(self, thing: Thing, name: str, depth: int) -> str:
        step = thing.attributes.get("step")
        results = find(find(step).result).arity if step is not None and find(step).result is not None else 4  # type: ignore[arg-type]
        self.helpers.add("Environment")
        self.standins.append(f"`{name}`: an environment with random observations")
        return f"Environment({results})"

    def _optimizer(self, thing: Thing, name: str, depth: int) -> str:
        chosen = likeliest(name, self.modules)
        if chosen:
            self.assumed.append(f"`{name}` optimises the parameters of `{chosen}`, with SGD")
            self.helpers.add("descent")
            return f"descent({chosen})"
        self.assumed.append(f"`{name}` optimises a parameter of its own, with SGD")
        size = self.setting.size
        return f"torch.optim.SGD([torch.nn.Parameter(torch.randn({size}, {size}))], lr=0.1)"

    def _anything(self, name: str) -> str:
        self.helpers.add("Anything")
        self.standins.append(f"`{name}`: an object that takes everything")
        return f"Anything({name!r})"

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
        if result is None:
            return produced
        result = find(result)
        kind, _ = kind_of(result)
        if depth > _DEEPEST:
            return produced  # one of its own parts
        if kind == "str" and not result.votes and result.attributes.keys() - tables.STRING:
            # What is done with it says more than what it was made from.
            return self._object(result, f"{name}(...)", depth + 1)
        if result.result is not None and result.attributes and result.arity < 2:
            return self._module(result, f"{name}(...)", depth + 1)
        if kind in ("", "tensor") and not result.votes and result.attributes and result.arity < 2:
            return self.expression(result, f"{name}(...)", depth + 1)
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
        return self.expression(result, f"{name}(...)", depth + 1)

    def _layer(self, thing: Thing, name: str) -> str:
        """A module of a known class of `torch.nn`."""
        cls = thing.made.rsplit(".", 1)[-1]
        arguments = tables.CONSTRUCTED.get(cls)
        if cls in ("ParameterList", "ModuleList"):
            element = (
                "torch.nn.Parameter(torch.randn({n}, {n}))" if cls == "ParameterList" else "torch.nn.Linear({n}, {n})"
            )
            arguments = f"([{element} for _ in range({_length(thing)})])"
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
        self.trained.add(name)
        return f"{class_name}()"

    # -- classes of the file

    def _instance(self, class_name: str, name: str, depth: int) -> str:
        """An object of a class of the file, by its own `__init__`."""
        if class_name in self._busy:
            return self._anything(name)
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
            fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and item.value is None]
            if fields and (
                self.world.is_record(current) or any("dataclass" in ast.unparse(d) for d in node.decorator_list)
            ):
                parts = []
                for item in fields:
                    if isinstance(item.target, ast.Name):
                        thing = self.world.self_of(current).attribute(item.target.id)
                        self.world.annotate(thing, item.annotation)
                        parts.append(f"{item.target.id}={self.expression(thing, item.target.id, depth)}")
                return ", ".join(parts)
            names = [base.id for base in node.bases if isinstance(base, ast.Name)]
            current = names[0] if names else None
        return ""

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
                needed.append(parameter.arg)
                continue
            if is_zero(default) and "drop" in parameter.arg.lower():
                # Nobody writes a layer that drops in order to drop nothing.
                dropped.append(parameter.arg)
                self.assumed.append(f"`{parameter.arg}` is 0.5")
            unset = isinstance(default, ast.Constant) and default.value is None
            used = unset and (kind_of(given[parameter.arg])[1] >= 3 or is_taken_apart(given[parameter.arg]))
            if used and (parameter.arg in self.wanted.made or not is_filled(function, parameter.arg)):
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
        if text.endswith(_NO_LEAF):
            self.grown.append(variable)
        if self._is_module(thing, name):
            self.modules.append(variable)
        return variable

    taken: set[str] = field(default_factory=set)
    arguments_given: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
