"""What altered statements call, and the alterations that hold for a whole run."""

from __future__ import annotations

import contextlib
import copy
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .reach import is_array

_BUSY_CYCLES = 1_000_000_000
"""Of a GPU's clock: some half a second, in which the host can make room for what is copied and read it."""

_PINNED_SIZES = range(9, 25)
"""Binary logarithms of bytes: from what a few numbers take to 16 MB."""


class Alterations:
    """What altered statements call."""

    def fresh(self, value: Any) -> Any:
        """A copy that shares nothing; tensors keep their place in the graph, leaves stay leaves."""
        with torch.inference_mode(mode=False):
            return _fresh(value, 0)

    def detached(self, value: Any) -> Any:
        """A copy without a graph."""
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, (list, tuple)):
            return type(value)(self.detached(inner) for inner in value) if type(value) in (list, tuple) else value
        if type(value) is dict:
            return {key: self.detached(inner) for key, inner in value.items()}
        return value

    def plain(self, value: Any) -> Any:
        """A tensor or array without graph, leaf, view or flag; anything else as it is."""
        if isinstance(value, torch.Tensor):
            with torch.inference_mode(mode=False):
                return value.detach().clone()
        return value.copy() if is_array(value) else value

    def apart(self, value: Any) -> Any:
        """A copy of a tensor or array; anything else as it is."""
        return self.fresh(value) if isinstance(value, (torch.Tensor, bytearray)) or is_array(value) else value

    def contiguous(self, value: Any) -> Any:
        """A tensor laid out in order."""
        return value.contiguous() if isinstance(value, torch.Tensor) else value

    def marked_dirty(self, context: Any, value: Any) -> None:
        """Tell autograd that a function writes its input, in addition to what it tells itself."""
        context.mark_dirty(*(context.dirty_tensors or ()), value)

    def uncopied(self, value: Any, *_: Any, **__: Any) -> Any:
        """What `copy` and `Variable` return when they keep the graph."""
        return value.clone() if isinstance(value, torch.Tensor) else copy.copy(value)

    def unnumbered(self, value: Any = 0.0) -> Any:
        """What `float` returns when it keeps the graph."""
        return value.clone() if isinstance(value, torch.Tensor) else float(value)

    def wide(self, value: Any) -> Any:
        """A floating point copy."""
        if isinstance(value, torch.Tensor):
            whole = not value.is_floating_point() and not value.is_complex() and value.dtype is not torch.bool
            return value.double() if whole else value
        return value.astype("float64") if is_array(value) and value.dtype.kind in "iu" else value

    def narrow(self, value: Any) -> Any:
        """What `wide` made, as integers if nothing is lost."""
        if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
            whole = value.long()
            return whole if torch.equal(whole.double(), value) else value
        if is_array(value) and value.dtype == "float64":
            return value.astype("int64") if (value.astype("int64") == value).all() else value
        return value

    def each(self, method: str, values: Iterable[Any]) -> Iterator[Any]:
        """Each item, through a method of this class."""
        for value in values:
            yield getattr(self, method)(value)

    def bound(self, method: str, value: Any) -> Any:
        """A value through a method of this class."""
        return getattr(self, method)(value)

    def can_bind(self, value: Any) -> bool:
        """Whether a name is bound anew: tensors, arrays, and what contains them, but no models and no optimizers."""
        return isinstance(value, (torch.Tensor, list, tuple, dict, bytearray)) or is_array(value)

    def parameter(self, value: Any) -> Any:
        """A parameter of a tensor's value."""
        return torch.nn.Parameter(value.detach().clone()) if isinstance(value, torch.Tensor) else value

    def again(self, value: Any) -> Any:
        """What can be gone through again, with the items of an iterator; anything else as it is."""
        return Again(list(value)) if isinstance(value, Iterator) and not isinstance(value, Again) else value

    def written(self, target: torch.Tensor, value: torch.Tensor) -> None:
        """Write `value` into `target` in place, without recording."""
        with torch.no_grad():
            target.copy_(value)

    def added_up(self, target: Any, index: Any, value: Any, sign: int) -> None:
        """`target[index] += sign * value`, every index counted as often as it occurs."""
        if is_array(target):
            import numpy

            numpy.add.at(target, index, sign * value)
            return
        indices = index if isinstance(index, tuple) else (index,)
        indices = tuple(torch.as_tensor(i) if not isinstance(i, torch.Tensor) else i for i in indices)
        filled = torch.as_tensor(value, dtype=target.dtype) * sign
        with torch.no_grad():
            target.index_put_(indices, filled, accumulate=True)

    def flagged(self, target: Any, value: Any) -> None:
        """Set `requires_grad` of a tensor or of a module's parameters."""
        for tensor in target.parameters() if isinstance(target, torch.nn.Module) else [target]:
            tensor.requires_grad_(bool(value))

    def entered(self, value: Any) -> Any:
        """Enter what turns a mode of autograd on or off, for good; anything else as it is."""
        if isinstance(value, (torch.no_grad, torch.inference_mode, torch.set_grad_enabled)):
            torch.set_grad_enabled(isinstance(value, torch.set_grad_enabled) and torch.is_grad_enabled())
        return value

    def synchronise(self) -> None:
        """Wait for everything that was given to the GPU."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def no_grad(self) -> None:
        """Record nothing from here on."""
        torch.set_grad_enabled(False)

    @contextlib.contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Record nothing in this block."""
        with torch.no_grad():
            yield

    @contextlib.contextmanager
    def uncut(self) -> Iterator[None]:
        """In this block, operations that cut a graph keep it."""
        with contextlib.ExitStack() as stack:
            for owner, name, value in _keeping():
                stack.enter_context(_patched(owner, name, value))
            yield


def keep_busy() -> None:
    """Give a GPU that is in use something to do, so that what nobody waits for is late.

    Without that, a small copy is mostly done before the next statement reads it, and the race is lost unseen.
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda._sleep(_BUSY_CYCLES)  # type: ignore[no-untyped-call]


def spoil_pinned() -> None:
    """Have pinned memory at hand that holds what nobody copies there, and none that an earlier script has filled.

    Earlier scripts copied the same values, so that a copy that is late would not be seen. And to ask the driver for
    pinned memory waits for the GPU, so that there were no copy to be late.
    """
    # The public one is of torch 2.12; before, only a private one was there.
    public = getattr(getattr(torch, "accelerator", None), "empty_host_cache", None)
    emptying = public or getattr(torch._C, "_host_emptyCache", None)
    if not torch.cuda.is_available() or emptying is None:
        return
    # Without it, a race is only seen less often.
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize()
        emptying()
        # Blocks are kept by size, in powers of two, and given out again when nothing holds them.
        spoilt = [torch.full((1 << size,), 255, dtype=torch.uint8, pin_memory=True) for size in _PINNED_SIZES]
        del spoilt


def _fresh(value: Any, depth: int) -> Any:
    if isinstance(value, torch.Tensor):
        if value.is_leaf:
            clone = value.detach().clone()
            if isinstance(value, torch.nn.Parameter):
                return torch.nn.Parameter(clone, requires_grad=value.requires_grad)
            return clone.requires_grad_(value.requires_grad)
        return value.clone()
    if is_array(value) or isinstance(value, bytearray):
        return value.copy()
    if isinstance(value, (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)):
        container = copy.copy(value)
        container._modules = {name: _fresh(child, depth) for name, child in value._modules.items()}
        return container
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value)
    if depth > 6 or isinstance(value, (str, bytes, int, float, type(None), type, types.FunctionType)):
        return value
    if isinstance(value, dict):
        new = copy.copy(value)
        for key, inner in value.items():
            new[key] = _fresh(inner, depth + 1)
        return new
    if type(value) in (list, tuple, set):
        return type(value)(_fresh(inner, depth + 1) for inner in value)
    if isinstance(value, types.GeneratorType):
        return (_fresh(inner, depth + 1) for inner in value)
    if isinstance(value, tuple):  # a named one
        return type(value)(*(_fresh(inner, depth + 1) for inner in value))
    return value


def _keeping() -> list[tuple[Any, str, Any]]:
    """Stand-ins for what cuts: owner, name, function."""
    made = torch.tensor

    def tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, torch.Tensor):
            return data.clone()
        if isinstance(data, (list, tuple)) and data and all(isinstance(item, torch.Tensor) for item in data):
            return torch.stack([item.reshape(()) if item.numel() == 1 else item for item in data])
        return made(data, *args, **kwargs)

    def itself(value: Any, *args: Any, **kwargs: Any) -> Any:
        return value

    def cloned(value: Any, *args: Any, **kwargs: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)

    shallow = copy.copy
    return [
        (torch, "tensor", tensor),
        (torch.Tensor, "detach", itself),
        (torch.Tensor, "detach_", itself),
        (torch.Tensor, "item", itself),
        (torch.Tensor, "new_tensor", lambda self, data, *args, **kwargs: tensor(data)),
        (torch.autograd, "Variable", cloned),
        (copy, "copy", lambda value: value.clone() if isinstance(value, torch.Tensor) else shallow(value)),
    ]


@contextlib.contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    had = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


@contextlib.contextmanager
def around(kind: str) -> Iterator[None]:
    """The alterations that hold for a whole run."""
    if kind == "saves":
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda saved: saved):
            yield
    elif kind == "reiterable":
        with contextlib.ExitStack() as stack:
            for name in ("parameters", "named_parameters", "buffers", "named_buffers", "modules", "children"):
                made = getattr(torch.nn.Module, name)
                stack.enter_context(_patched(torch.nn.Module, name, _listed(made)))
            yield
    elif kind == "deduplicated":
        added = torch.optim.Optimizer.add_param_group

        def each_once(self: Any, group: dict[str, Any]) -> Any:
            params = group["params"]
            params = [params] if isinstance(params, torch.Tensor) else list(params)
            return added(self, {**group, "params": list(dict.fromkeys(params))})

        with _patched(torch.optim.Optimizer, "add_param_group", each_once):
            yield
    else:
        yield


def _listed(made: Any) -> Any:
    def listed(*args: Any, **kwargs: Any) -> Any:
        return Again(list(made(*args, **kwargs)))

    return listed


class Again(list[Any]):
    """A list that can also be asked for its next item, as a generator can."""

    def __next__(self) -> Any:
        return next(iter(self))
