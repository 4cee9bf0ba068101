"""Of which class of the file a parameter is, as its name and use say, where nothing declares it and no call shows it.

`def train(model, batches)` in a file with one network is about that network; `model.init_hidden(4)` is about the one
network that has such a method; `agent.reset()` is about the one network that is a `...Agent`, if that has one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.values import kinds
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes

_LOSS = re.compile(r"loss|criterion|penalty|metric|wrapper|regulari[sz]er", re.I)
_OF_ALL_MODULES = frozenset(
    {
        "add_module",
        "apply",
        "bfloat16",
        "buffers",
        "children",
        "compile",
        "cpu",
        "cuda",
        "double",
        "eval",
        "float",
        "forward",
        "get_parameter",
        "get_submodule",
        "half",
        "load_state_dict",
        "module",
        "modules",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "register_backward_hook",
        "register_buffer",
        "register_forward_hook",
        "register_full_backward_hook",
        "register_parameter",
        "requires_grad_",
        "share_memory",
        "state_dict",
        "to",
        "train",
        "training",
        "type",
        "zero_grad",
    }
)
"""What every module has (`module` is what wrappers have)."""
_OF_CONTAINERS = frozenset({"count", "index", "get", "items", "keys", "values", "pop", "update", "copy", "append"})
"""What is asked of tuples, lists and dictionaries."""
_COMMON = frozenset(
    [
        *("get_state", "set_state", "get_params", "set_params", "get_attr", "set_attr", "fit_transform"),
        *("save_for_backward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads"),
    ]
)
"""Names of two words that methods of many libraries have, and those of the contexts of autograd."""


def class_of(world: Classes, unit: t.Unit, parameter: t.Parameter) -> int | None:
    """The class of this file that a parameter named like a model is surely meant to be an instance of, if there is one.

    Of several classes that have all that is asked of it there is none that is meant.
    """
    if unit.owner >= 0 and unit.name == "__init__":
        return _kept_by_constructor(world, unit, parameter.name)
    if unit.owner < 0 and unit.parent > 0:
        return None
    if not kinds.named_model(parameter.name):
        called = _called_like(world, unit, parameter.name) if unit.owner < 0 else None
        if called is None and parameter.annotation is None:
            called = _used_like(world, unit, parameter.name)
        return called
    uses = {use.removesuffix("()") for use in unit.uses.get(parameter.name, frozenset())} - _OF_ALL_MODULES
    networks = [info for info in world.program.classes if _is_network(world, info)]
    if unit.owner >= 0:
        # A method may be handed what its class keeps company with; what it asks of it says which it is.
        networks = [info for info in networks if info.number not in world.lineage(unit.owner)] if uses else []
    if uses:
        fitting = [info for info in networks if all(_has(world, info, name) for name in uses)]
    elif unit.owner >= 0:
        return None
    else:
        given = _given_to(world, unit, parameter.name)
        parts = _parts(world)
        fitting = [info for info in networks if info.number not in parts]
        if not given or len(fitting) != 1 or not _takes(world, fitting[0], given):
            return None
        if _returns_several(world, fitting[0]) and _is_one_tensor(world, unit, parameter.name):
            return None
    return fitting[0].number if len(fitting) == 1 else None


def _kept_by_constructor(world: Classes, unit: t.Unit, name: str) -> int | None:
    """The one network that has all that a class uses of a model which its constructor is given and keeps in a field:
    `self.net = net`, and elsewhere `self.net.grow()`."""
    fields = {
        event.name
        for event in world.index(unit).of(t.StoreAttribute)
        if isinstance(made := unit.definitions[event.value], t.Load) and made.name == name
    }
    uses = {use.removesuffix("()") for use in unit.uses.get(name, frozenset())}
    for method in world.program.units if fields else ():
        if method.owner == unit.owner and method.kind == "function":
            uses |= _used_of_fields(world, method, fields)
    if not kinds.named_model(name):
        return _named_like(world, name, uses, unit.owner)
    uses -= _OF_ALL_MODULES
    networks = [info for info in world.program.classes if info.number != unit.owner and _is_network(world, info)]
    fitting = [info for info in networks if uses and all(_has(world, info, use) for use in uses)]
    return fitting[0].number if len(fitting) == 1 else None


def _named_like(world: Classes, name: str, uses: set[str], but: int) -> int | None:
    """The one class that is no network, ends in a name, and has all that is used of what has that name: `replay`, of
    `SequenceReplay`."""
    plain = name.replace("_", "").lower()
    called = [info for info in world.program.classes if info.number != but and _ends_in(info.name, plain)]
    one = called[0] if len(called) == 1 and len(plain) > 2 and uses else None
    fitting = one is not None and world.class_kind(one.number)[0] is Kind.INSTANCE
    return one.number if one is not None and fitting and all(_has(world, one, use) for use in uses) else None


def of_name(world: Classes, name: str, uses: frozenset[str]) -> int | None:
    """The class of this file, no network, that a variable is called as: `for client in self.clients`, of `Client`."""
    called = [info for info in world.program.classes if info.name.lower() == name.replace("_", "").lower()]
    methods = {use.removesuffix("()") for use in uses if use.endswith("()")}
    one = called[0] if len(called) == 1 and methods else None
    fitting = one is not None and world.class_kind(one.number)[0] is Kind.INSTANCE
    return one.number if one is not None and fitting and all(_has(world, one, use) for use in methods) else None


def _used_of_fields(world: Classes, unit: t.Unit, fields: set[str]) -> set[str]:
    """The attributes and methods that a method uses of what some fields of its object hold."""
    found: set[str] = set()
    for event in world.index(unit).named:
        if isinstance(event, t.Load):
            continue
        base = unit.definitions[event.base] if event.base >= 0 else None
        if base.__class__ is t.Attribute and base.name in fields:
            owner = unit.definitions[base.base] if base.base >= 0 else None
            if isinstance(owner, t.Load) and owner.name == unit.first:
                found.add(event.name)
    return found


def _called_like(world: Classes, unit: t.Unit, name: str) -> int | None:
    """The one network whose class ends in the name and has all that is used of it: `agent`, of `GRUAgent`."""
    plain = name.replace("_", "").lower()
    called = [info for info in world.program.classes if _ends_in(info.name, plain)] if len(plain) > 3 else []
    uses = {use.removesuffix("()") for use in unit.uses.get(name, frozenset())} - _OF_ALL_MODULES if called else set()
    fitting = uses and all(_is_network(world, info) and all(_has(world, info, use) for use in uses) for info in called)
    return called[0].number if fitting and len(called) == 1 else None


def _used_like(world: Classes, unit: t.Unit, name: str) -> int | None:
    """The one class that has all that is used of a parameter, if a method with a name of its own is among that, or, of
    what is called as a function, a field: `diffusion.add_noise(x)`, `stopper(score)` and `stopper.best_state`."""
    uses = {use for use in unit.uses.get(name, frozenset()) if not use.startswith(t.HANDED_TO)}
    called = bool(_given_to(world, unit, name))
    methods = {use.removesuffix("()") for use in uses if use.endswith("()") or called}
    telling = {method for method in methods - _COMMON - _OF_ALL_MODULES - _OF_CONTAINERS if not table.owners(method)}
    if not any("_" in method.strip("_") for method in telling):
        return None
    asked = {use.removesuffix("()") for use in uses} | ({"__call__"} if called else set())
    fitting = [info for info in world.program.classes if all(_has(world, info, one) for one in asked)]
    one = fitting[0] if len(fitting) == 1 else None
    own = world.lineage(unit.owner) if unit.owner >= 0 else []
    return one.number if one is not None and one.number not in own else None


def _ends_in(name: str, plain: str) -> bool:
    """Whether the last words of a class's name are `plain`: `ReplayBuffer` ends in `buffer`, `Unbuffer` does not."""
    ends = name.lower().endswith(plain)
    return ends and bool(plain) and name[len(name) - len(plain)].isupper()


def _is_network(world: Classes, info: t.ClassInfo) -> bool:
    kind, _ = world.class_kind(info.number)
    return kind is Kind.MODULE and not _LOSS.search(info.name) and not _is_only_begun(world, info)


def _is_only_begun(world: Classes, info: t.ClassInfo) -> bool:
    """Whether a class leaves `forward` to those that inherit from it: nobody hands around an instance of that."""
    if world.method(info.number, "forward") is not None:
        return False
    heirs = (other.number for other in world.program.classes if info.number in world.lineage(other.number))
    return any(world.method(heir, "forward") is not None for heir in heirs)


def _has(world: Classes, info: t.ClassInfo, name: str) -> bool:
    return world.method(info.number, name) is not None or any(
        name in world.fields(number) for number in world.lineage(info.number)
    )


def _parts(world: Classes) -> set[int]:
    """The classes of which other classes make instances, or inherit."""
    found: set[int] = set()
    for unit in world.program.units if len(world.program.classes) > 1 else ():
        for event in unit.definitions if unit.owner >= 0 else ():
            if isinstance(event, t.Load) and (number := world.class_named(event.name)) is not None:
                found.add(number)
    for info in world.program.classes:
        found.update(number for number in world.lineage(info.number) if number != info.number)
    return found


def _given_to(world: Classes, unit: t.Unit, name: str) -> set[int]:
    """With how many positional arguments a name is called, and nothing else."""
    found: set[int] = set()
    for event in world.index(unit).of(t.Call):
        made = unit.definitions[event.function]
        if isinstance(made, t.Load) and made.name == name:
            found.add(
                len(event.arguments)
                if all(not (argument.keyword or argument.stars) for argument in event.arguments)
                else -1
            )
    return found


def _takes(world: Classes, info: t.ClassInfo, given: set[int]) -> bool:
    forward = world.method(info.number, "forward")
    if forward is None:
        return False
    taken = world.unit(forward).parameters[1:]
    return all(0 <= count <= len(taken) for count in given) and all(one.kind == "plain" for one in taken)


def _returns_several(world: Classes, info: t.ClassInfo) -> bool:
    """Whether what a network returns is no tensor: a tuple, a list or a dictionary, on all paths."""
    forward = world.method(info.number, "forward")
    unit = world.unit(forward) if forward is not None else None
    returned = world.index(unit).of(t.Return) if unit is not None else ()
    made = [unit.definitions[one.value] if unit is not None and one.value >= 0 else None for one in returned]
    return bool(made) and all(isinstance(one, t.Make) for one in made)


def _is_one_tensor(world: Classes, unit: t.Unit, name: str) -> bool:
    """Whether what a call of something returns is used as a tensor, or as no container is: `net(x).tanh()`."""
    index = world.index(unit)
    for event in index.of(t.Call):
        made = unit.definitions[event.function]
        if not isinstance(made, t.Load) or made.name != name:
            continue
        asked = [one.name for one in index.of(t.Invoke) if one.base == event.out]
        bound = [f"{one.name}@{one.site}" for one in index.of(t.Bind) if one.value == event.out]
        if not _OF_CONTAINERS.issuperset(asked):
            return True
        if any(kinds.from_uses(unit.uses.get(one, frozenset()))[0] is Kind.TENSOR for one in bound):
            return True
    return False
