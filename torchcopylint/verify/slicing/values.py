"""Makes the plain things that a slice needs, tensors, numbers, containers: an expression for each, with what had to be
assumed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.conditions import Value, Wanted
from torchcopylint.verify.slicing.fitting import as_used, is_plain, likeliest
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.sizes import Setting, Sizes
from torchcopylint.verify.slicing.things import PROVEN, Thing, find, has_graph, hinted, is_bare, kind_of
from torchcopylint.verify.slicing.world import instance_of

_ARITHMETIC = {"Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Div": "/", "Pow": "**", "Mod": "%"}
DEEPEST = 5
_MOST_ITEMS = 16
NO_LEAF = ("requires_grad=True) * 1.0", "requires_grad=True) * 10.0")


def length(thing: Thing) -> int:
    """How many items a list has: two, or as many as it is asked for."""
    return min(max(2, find(thing).longest), _MOST_ITEMS)


@dataclass(slots=True)
class Values(ABC):
    """Makes expressions for plain things under one setting, and keeps the account of what was assumed.

    `bare` has the fields of objects that are made without their `__init__`, by class; `plain`: objects of other classes
    of the file are stood in for. `kinds` are those of names that a run has shown. `wanted` is what the way to the steps
    asks of names. `flat`: modules that stand in have no parameter but a matrix.
    `frozen` are the last names of what the file switches off, with the rows. `only_listed`: something with
    methods of its own was taken for a module because it is asked for its parameters, and may give them in a list.
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
    only_listed: bool = False
    trained: set[str] = field(default_factory=set)
    single: set[str] = field(default_factory=set)
    modules: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    named: dict[int, str] = field(default_factory=dict)
    instanced: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    arguments_given: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
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
        own = instance_of(thing)
        if own in self.world.classes:
            # Whatever else was read of it, as of others that go where it goes.
            kind, weight = f"instance {own}", PROVEN
        last = name.rsplit(".", 1)[-1]
        for asked in (self.wanted.values, self.wanted.truths) if name not in self.kinds else ():
            if last in asked and is_plain(thing, kind, asked[last]):
                return self._as_wanted(name, asked[last])
        if isinstance(thing.constant, int | float | str | bool) and not depth:
            return repr("cpu" if self._is_absent_device(thing.constant) else thing.constant)
        if depth > DEEPEST:
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
        if not kind and is_bare(thing):
            # A base keeps it, and something is asked of it there.
            kept = next((other for other in map(find, thing.near) if other.attributes and not other.votes), None)
            if kept is not None:
                return self.expression(kept, name, depth)
        if weight == 0 and (thing.attributes or thing.items) and kind in ("bool", "str", "number", "callable", "array"):
            # What is done with it says more than its name.
            kind = ""
        kind = kind if weight >= PROVEN else as_used(kind, thing)
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

    def _is_absent_device(self, value: object) -> bool:
        """Whether a text names a device that scripts are run without, as a default of the file may."""
        return self.setting.device == "cpu" and isinstance(value, str) and value.split(":")[0] in tables.DEVICES

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
        if not shape and find(thing).dimensions is None:
            self.single.add(name)
        written = f"{shape[0]}" if len(shape) == 1 else f"{shape}" if not shape else ", ".join(map(str, shape))
        dtype = self._dtype_of(thing)
        if dtype == "long":
            # Of one class there is the first alone.
            text = f"torch.randint(0, {min(2, max(setting.size, 1))}, {shape})"
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
            # `NO_LEAF` is what such a text ends with.
            computed = known or (setting.grad and not setting.leaves)
            text += " * 1.0" if computed and not setting.spread else ""
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

    def _nothing(self, thing: Thing, name: str, depth: int) -> str:
        self.assumed.append(f"`{name}` is `None`")
        return "None"

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

    def _bytearray(self, thing: Thing, name: str, depth: int) -> str:
        self.assumed.append(f"`{name}` are 64 bytes of small numbers")
        return "bytearray(np.arange(16, dtype=np.float32).tobytes())"

    def _stream(self, thing: Thing, name: str, depth: int) -> str:
        self.assumed.append(f"`{name}` gives 256 bytes")
        self.helpers.add("io")
        return "io.BytesIO(bytes(range(256)))"

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
        count = length(thing)
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
        if not numbers and thing.element is not None and find(thing.element).votes:
            return f"({', '.join(self.expression(thing.element, f'{name}[{n}]', depth + 1) for n in range(count))},)"
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

    # -- what `Maker` makes

    @abstractmethod
    def _instance(self, class_name: str, name: str, depth: int) -> str:
        """An object of a class of the file."""

    @abstractmethod
    def _layer(self, thing: Thing, name: str) -> str:
        """A layer of `torch.nn`."""
