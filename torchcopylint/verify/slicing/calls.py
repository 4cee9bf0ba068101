"""What calls say of the things that they are given and give: functions of the file, of libraries, and methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.source import FunctionNode
from torchcopylint.verify.slicing.things import PROVEN, USED, WEAK, Thing, find, looked_up, miss, scalar, unify
from torchcopylint.verify.slicing.world import World, instance_of, is_static, method_named

IN_PLACE = re.compile(r"[a-z][a-z_0-9]*[a-z0-9]_")
"""The names of methods that write their tensor."""
OF_BOTH = frozenset({"cuda", "cpu", "to", "float", "half", "double", "requires_grad_", "train", "eval"})
"""Methods that tensors and modules, or modules alone, have, and that give the same kind back."""
TRANSPARENT = frozenset(
    {"tqdm", "trange", "iter", "next", "list", "tuple", "sorted", "reversed", "Variable", "deepcopy"}
)
"""Functions that give what they are given, or what is in it."""
_WITH_BIAS = frozenset({"linear", "conv1d", "conv2d", "conv3d"})
"""Functions whose third argument is a bias, or nothing."""
_OF_OPTIMIZERS = frozenset({"lr", "betas", "weight_decay", "momentum", "eps", "alpha", "dampening"})
"""What optimizers are told by name, and may not be anything."""
_ALIKE = frozenset({"long", "cuda", "cpu", "contiguous"})
"""Methods of tensors that give one of the same shape, with the same content or all that is needed of it."""
_NO_METHODS = frozenset({"data", "grad", "shape", "dtype", "device", "T"})
"""What tensors have that is no method: what is called under such a name is something else's."""
_SIZED = frozenset({"view", "reshape", "expand", "to", "permute", "new_zeros"})
"""Methods of tensors whose arguments are no tensors of a kind with it."""
_RESHAPED = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "ravel", "t"})
"""Methods of tensors that give the same elements in another shape."""
_INDEXED = frozenset({"gather", "index_select", "scatter", "scatter_", "index_add_", "index_copy_"})


class Calls:
    """Reads calls whose arguments have been read. Methods give the thing that comes back."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._of_one: dict[int, tuple[Thing, Thing]] = {}

    def known(
        self,
        function: FunctionNode,
        class_name: str | None,
        arguments: list[Thing],
        named: Mapping[str | None, Thing],
        skip: int,
    ) -> Thing:
        """A function of the file is called; the first `skip` parameters are not passed."""
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

    def construct(self, name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing:
        """An object of a class of the file is made."""
        init = method_named(self.world.classes[name], "__init__")
        if init is not None:
            self.known(init, name, arguments, named, 1)
        return self.world.self_of(name)

    def builtin(self, name: str, arguments: list[Thing]) -> Thing:
        """A builtin function is called."""
        result = Thing()
        if name in ("range", "int", "float", "abs", "round", "pow") and arguments:
            kind = "int" if name == "range" else "number"
            for argument in arguments:
                if argument.constant is None:
                    argument.vote(kind, USED if name == "range" else WEAK)
            if name == "range" and len(arguments) == 3 and arguments[2].constant is None:
                arguments[2].vote("stride", WEAK)
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

    def unknown(self, function: Thing, arguments: list[Thing]) -> Thing:
        """Something of which nothing is known is called, or a module."""
        if function.made:
            return self._layer(function, arguments)
        instance = instance_of(function)
        if instance in self.world.classes:
            cls = self.world.classes[instance]
            for name in ("forward", "__call__"):
                method = method_named(cls, name)
                if method is not None:
                    return self.known(method, instance, arguments, {}, 1)
        function.vote("callable", WEAK + 1)
        result = function.called()
        result.near += arguments[:1]
        return result

    def method(
        self,
        owner: Thing,
        name: str,
        field: Callable[[], Thing],
        arguments: list[Thing],
        named: Mapping[str | None, Thing],
        class_name: str = "",
    ) -> Thing:
        """A call of a method of a thing; `class_name` says that the owner is that class itself.

        `field` looks the method up as an attribute: looking is a vote.
        """
        if owner.dotted:
            return self.library(owner.attribute(name), f"{owner.dotted}.{name}", arguments, named)
        instance = class_name or instance_of(owner)
        if instance in self.world.classes:
            unify(self.world.self_of(instance), owner)
            method = method_named(self.world.classes[instance], name)
            if method is not None:
                return self.known(method, instance, arguments, named, 0 if is_static(method) else 1)
            return self.unknown(self.world.self_of(instance).attribute(name), arguments)
        found = field()
        find(owner).methods.add(name)
        if _is_given_more(name, arguments, named):
            # A module is told at most whether it trains: what is given data is something else that trains.
            owner.vote("object", 2 * USED)
            return self.unknown(found, arguments)
        if name in _NO_METHODS:
            owner.vote("object", 2 * USED)
        if name == "step":
            owner.vote("environment" if arguments and arguments[0].constant is None else "optimizer", USED - 1)
        if name in tables.NUMBER_RESULTS:
            return _number_of(owner, name, arguments)
        if name == "backward" and not arguments and "gradient" not in named:
            scalar(owner)
        if name in tables.NUMBER_ARGUMENTS | tables.BOUNDED:
            for argument in (*arguments, *named.values()):
                if argument.constant is None:
                    argument.vote("number", USED + 1 if name in tables.NUMBER_ARGUMENTS else WEAK + 1)
        if name in ("isnan", "isfinite"):
            miss(owner)
        if name in ("permute", "transpose", "swapaxes"):
            _axes(owner, name, arguments)
        tensor = name not in OF_BOTH and (name in tables.TENSOR or IN_PLACE.fullmatch(name))
        if tensor or name in tables.EITHER:
            result = _of_tensor(owner, name, arguments, named)
            if result is not None:
                if tensor and name != "numpy":
                    result.vote("tensor", WEAK)
                return result
        result = _of_container(owner, name, arguments)
        return result if result is not None else self.unknown(found, arguments)

    def library(self, function: Thing, dotted: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing:
        """A call of something that is imported."""
        root, _, name = dotted.rpartition(".")
        first = arguments[0] if arguments else None
        result = Thing()
        if name in ("isnan", "isfinite", "nan_to_num") and first is not None:
            miss(first)
        if name in TRANSPARENT and first is not None:
            if name == "deepcopy":
                # What is done with a copy fits what was copied.
                result.near.append(first)
                first.near.append(result)
                return result
            return first if name == "Variable" else Thing(near=[first], element=first.element)
        if not root.startswith(("torch", "numpy", "copy")):
            function.vote("callable", WEAK)
            outcome = function.called()
            outcome.near += arguments[:1]
            return outcome
        if name == "DataLoader":
            for word in ("batch_size", "num_workers"):
                if word in named and named[word].constant is None:
                    named[word].vote("size", USED)
            result.vote("loader", PROVEN)
            if first is not None and not first.votes and first.constant is None:
                # Of samples of one kind batches of that kind are made.
                first.vote("list", USED)
                unify(first.each(), result.each())
            return result
        if root.startswith("torch.optim"):
            _numbers_of_optimizer(named)
            result.vote("optimizer", PROVEN)
            result.made = dotted
            return result
        if root in ("torch.nn", "torch.nn.modules") and name[:1].isupper():
            result.made, result.arguments = dotted, tuple(arguments)
            result.vote("tensor" if name == "Parameter" else "module", PROVEN)
            if name in ("ModuleDict", "ParameterDict") and first is not None and "dict" in first.votes:
                for key in first.arguments:
                    key.vote("str", USED)
            if name == "Parameter" and first is not None and id(first) in self._of_one:
                # Nobody trains the numbers that are in a list: it is how many there are.
                self._of_one[id(first)][1].vote("size", USED)
            for argument in arguments:
                if argument.constant is None and name not in ("Sequential", "ModuleList", "ModuleDict", "Parameter"):
                    argument.vote("size", WEAK)
            return result
        if name in tables.SIZES or (name.endswith("Tensor") and len(arguments) > 1):
            for argument in arguments:
                if argument.constant is None:
                    argument.vote("size", WEAK)
            result.vote("array" if root.startswith("numpy") else "tensor", PROVEN)
            result.made, result.arguments = ".sized", tuple(arguments)
            return result
        if root.startswith("numpy"):
            for argument in arguments[:2]:
                if argument.constant is None:
                    # NumPy hands an axis on to a method, which those of tensors refuse.
                    argument.vote("array", USED if argument is first and "axis" in named else WEAK + 1)
            result.near += arguments[:1]
            result.vote("array", WEAK)
            return result
        return self._torch_function(root, name, arguments, named)

    def _torch_function(self, root: str, name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing:
        result = Thing()
        first = arguments[0] if arguments else None
        if name in tables.FROM_ARRAY and first is not None:
            first.vote("array", USED)
        elif name == "frombuffer" and first is not None:
            first.vote("bytearray", USED)
        elif name in ("as_tensor", "asarray", "tensor", "FloatTensor", "Tensor") and first is not None:
            if name.endswith("Tensor") and first.constant is None:
                self._of_one[id(result)] = (result, first)
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
                arguments[1].vote("tensor", USED if name.endswith("_loss") else WEAK + 1)
            if root == "torch.nn.functional" and name in _WITH_BIAS and len(arguments) > 2:
                arguments[2].vote("tensor", USED)
                arguments[2].dimensions = arguments[2].dimensions or 1
            if name == "where" and first is not None:
                first.dtype = first.dtype or "bool"
            if name in tables.LOSSES_BY_CLASS and len(arguments) > 1:
                _classes(arguments[0], arguments[1])
                if "weight" in named:
                    find(named["weight"]).dimensions = find(named["weight"]).dimensions or 1
            if name in ("conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d", "interpolate") and first is not None:
                first.dimensions = 3 if name == "conv1d" else 4
            if name in ("split", "split_with_sizes") and first is not None:
                _parted(first, arguments, named)
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
        result.graph = module.made.startswith("torch.nn.") and module.made.rsplit(".", 1)[-1] in tables.TRAINED
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


def _parted(whole: Thing, arguments: list[Thing], named: Mapping[str | None, Thing]) -> None:
    """What is split along its last dimension into parts of given sizes is as long as these together."""
    sizes = find(arguments[1]).arguments if len(arguments) > 1 else ()
    along = named.get("dim") or (arguments[2] if len(arguments) > 2 else None)
    if sizes and along is not None and along.constant == -1:
        total = find(sizes[0])
        for size in sizes[1:]:
            total = Thing(formula=("Add", total, find(size)))
        whole.last = whole.last or total


def _numbers_of_optimizer(named: Mapping[str | None, Thing]) -> None:
    """What an optimizer of torch is told by these names are fractions."""
    for word in _OF_OPTIMIZERS & named.keys():
        thing = named[word]
        for number in find(thing).items.values() if word == "betas" else (thing,):
            if find(number).constant is None:
                number.vote("float", USED + 1)


def _is_given_more(name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> bool:
    """Whether a method is passed more than that of a module, or of a tensor, takes."""
    if name == "train":
        return len(arguments) + len(named) > 1 or bool(named.keys() - {"mode"})
    return bool(arguments or named) and (name == "eval" or name in tables.NOTHING_PASSED)


def _number_of(owner: Thing, name: str, arguments: list[Thing]) -> Thing:
    """What a method gives that answers with a number or a shape."""
    if name == "size" and arguments and isinstance(arguments[0].constant, int) and arguments[0].constant >= 0:
        owner.dimensions_least = max(owner.dimensions_least, arguments[0].constant + 1)
    result = Thing(made=".shape" if name == "size" and not arguments else "", arguments=(owner,))
    result.vote("int" if name != "item" else "number", WEAK)
    return result


def _axes(owner: Thing, name: str, arguments: list[Thing]) -> None:
    """What the axes that are named say of the number of dimensions."""
    axes = [argument.constant for argument in arguments if isinstance(argument.constant, int)]
    if name == "permute" and len(axes) == len(arguments):
        owner.dimensions = len(axes) or None
    elif axes:
        owner.dimensions_least = max(owner.dimensions_least, max(axes) + 1)


def _of_tensor(owner: Thing, name: str, arguments: list[Thing], named: Mapping[str | None, Thing]) -> Thing | None:
    """What a method of tensors gives, or `None` if that is no tensor."""
    if name in ("view", "reshape", "expand", "repeat") and len(arguments) > 1:
        for argument in arguments:
            if argument.constant is None:
                argument.vote("size", WEAK)
    elif name not in _SIZED:
        for argument in arguments:
            if argument.constant is None:
                argument.near.append(owner)
    if name in _ALIKE and not arguments:
        if name == "long" and not owner.formula:
            # Labels and masks are what is made whole.
            owner.dtype = owner.dtype or "long"
        return owner
    if name in _INDEXED and len(arguments) > 1:
        find(arguments[1]).dtype = "long"
        _whole_as(arguments[1])
    if name.startswith("masked_") and arguments:
        find(arguments[0]).dtype = "bool"
    if name == "numpy":
        result = Thing()
        result.vote("array", USED)
        return result
    if name in tables.NO_TENSOR_RESULTS:
        return None
    reduced = name in ("sum", "mean") and not arguments and not named
    return Thing(near=[owner], dimensions=0 if reduced else None, whole=owner if name in _RESHAPED else None)


def _of_container(owner: Thing, name: str, arguments: list[Thing]) -> Thing | None:
    """What a method of lists, dicts and modules gives, or `None` for any other."""
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
    if name == "get" and arguments:
        looked_up(owner, arguments[0])
    if name in OF_BOTH:
        return owner
    if name == "load_state_dict" and arguments:
        arguments[0].vote("state dict", USED)
        return Thing()
    return None


def _classes(scores: Thing, target: Thing) -> None:
    """A loss over classes: scores have two dimensions, the target is integers."""
    scores.vote("tensor", USED)
    target.vote("tensor", USED)
    if not scores.made:
        scores.dimensions = scores.dimensions or 2
    target.dtype, target.dimensions = "long", 1
    _whole_as(target)


def _whole_as(target: Thing) -> None:
    """What something is with another shape, is of integers as well; a name may be another shape of itself."""
    seen = {id(find(target))}
    while target.whole is not None and id(find(target.whole)) not in seen:
        target = find(target.whole)
        target.dtype = target.dtype or "long"
        seen.add(id(target))
