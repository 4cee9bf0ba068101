"""An observer of single calls that shares no code with the generator, and the proof that it notices wrong claims."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from torchcopylint.knowledge.table import Argument, Op


@dataclass
class Call:
    """What one call did to its arguments, and how its result relates to them."""

    arguments: Mapping[Argument, list[Any]]
    result: Any
    relations: list[tuple[str, Argument | None]]
    """`same`, `view`, `unversioned` or `fresh` for each tensor or array that came back, and of which argument."""
    written: set[Argument] = field(default_factory=set)
    """The arguments whose elements, in any part of their memory, are not what they were."""
    bumped: set[Argument] = field(default_factory=set)
    reshaped: set[Argument] = field(default_factory=set)
    """The arguments whose shape, strides, place or flags changed."""
    asked_for_gradient: bool = False
    carries: bool = False
    """Whether a result has a graph."""


def watch(function: Callable[..., Any], *positional: Any, **keywords: Any) -> Call:
    """Calls the function and compares before with after."""
    arguments = {key: parts(value) for key, value in [*enumerate(positional), *keywords.items()]}
    every = [(key, part) for key, values in arguments.items() for part in values]
    held = [blocks(part) for _, part in every]
    before = [([content(block) for block in blocks(part)], version(part), place(part)) for _, part in every]
    asked = any(isinstance(part, torch.Tensor) and part.requires_grad for _, part in every)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*positional, **keywords)
        if hasattr(result, "__next__"):
            result = list(result)
    carries = any(isinstance(part, torch.Tensor) and part.grad_fn is not None for part in parts(result))
    call = Call(arguments, result, [], asked_for_gradient=asked, carries=carries)
    for (key, part), (contents, count, where), memory in zip(every, before, held, strict=True):
        if any(not same_start(old, content(block)) for old, block in zip(contents, memory, strict=True)):
            call.written.add(key)
        if version(part) != count:
            call.bumped.add(key)
        if place(part) != where:
            call.reshaped.add(key)
    call.relations = [relation(part, every) for part in parts(result)]
    return call


def parts(value: Any) -> list[Any]:
    """The tensors and arrays in a value."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, torch.utils.data.TensorDataset):
        return list(value.tensors)
    if isinstance(value, Mapping):
        return parts(list(value.values()))
    if isinstance(value, list | tuple):
        return [part for item in value for part in parts(item)]
    return []


def blocks(part: Any) -> list[Any]:
    """The memory blocks behind a tensor, as byte tensors that stay on them, or the array that owns the memory."""
    if isinstance(part, np.ndarray):
        while isinstance(part.base, np.ndarray):
            part = part.base
        return [part]
    if part.is_nested or (part.layout == torch.strided and not part.is_mkldnn):
        return [torch.empty(0, dtype=torch.uint8).set_(part.untyped_storage())]
    if part.layout == torch.sparse_coo:
        return [*blocks(part._values()), *blocks(part._indices())]
    if part.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [*blocks(part.values()), *blocks(part.crow_indices()), *blocks(part.col_indices())]
    if part.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [*blocks(part.values()), *blocks(part.ccol_indices()), *blocks(part.row_indices())]
    return []


def content(block: Any) -> bytes:
    return block.tobytes() if isinstance(block, np.ndarray) else block.numpy().tobytes()


def same_start(left: bytes, right: bytes) -> bool:
    """Whether two contents agree as far as both go: a block that only grew was not written."""
    size = min(len(left), len(right))
    return left[:size] == right[:size]


def version(part: Any) -> int:
    return part._version if isinstance(part, torch.Tensor) else 0


def place(part: Any) -> tuple[Any, ...]:
    if isinstance(part, np.ndarray):
        return part.shape, part.strides, part.flags.writeable
    if part.is_nested:
        return ()
    if part.layout != torch.strided or part.is_mkldnn:
        return (part.shape,)
    return part.shape, part.stride(), part.data_ptr(), part.requires_grad


def shared(left: Any, right: Any) -> bool:
    """Whether two tensors or arrays stand on one memory block."""
    ours, theirs = ([np.asarray(block) for block in blocks(part)] for part in (left, right))
    return any(one.size and other.size and np.may_share_memory(one, other) for one in ours for other in theirs)


def relation(part: Any, arguments: Iterable[tuple[Argument, Any]]) -> tuple[str, Argument | None]:
    """How a tensor or array that came back relates to the arguments."""
    arguments = list(arguments)
    for key, argument in arguments:
        if part is argument:
            return "same", key
    for key, argument in arguments:
        if shared(part, argument):
            if isinstance(part, np.ndarray) or isinstance(argument, np.ndarray):
                both = isinstance(part, np.ndarray) and isinstance(argument, np.ndarray)
                return ("view" if both else "unversioned"), key
            count = argument._version
            torch.autograd.graph.increment_version(part)
            return ("view" if argument._version > count else "unversioned"), key
    return "fresh", None


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "tensor": lambda value: isinstance(value, torch.Tensor),
    "tensors": lambda value: (
        isinstance(value, list | tuple) and all(isinstance(item, torch.Tensor | list | tuple) for item in value)
    ),
    "iterator": lambda value: hasattr(value, "__next__"),
    "number": lambda value: isinstance(value, int | float | complex | np.generic),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "size": lambda value: isinstance(value, tuple | int),
    "string": lambda value: isinstance(value, str),
    "none": lambda value: value is None,
    "array": lambda value: isinstance(value, np.ndarray | np.generic | int | float),
    "arrays": lambda value: isinstance(value, list | tuple | np.ndarray),
    "list": lambda value: isinstance(value, list | int | float | complex | bool),
    "module": lambda value: isinstance(value, torch.nn.Module),
    "object": lambda value: not isinstance(value, torch.Tensor | np.ndarray),
    "input": lambda value: True,
}


def contradictions(op: Op, calls: list[Call]) -> list[str]:
    """What the calls show that the row denies, and what the row claims that no call shows."""
    wrong = []
    for call in calls:
        wrong += _kind(op, call)
        wrong += _sharing(op, call)
        wrong += _writing(op, call)
        wrong += _graph(op, call)
    seen = {word for call in calls for word, _ in call.relations}
    if op.shares == "maybe" and not ({"same", "view", "unversioned"} & seen):
        wrong.append("claims that it may share, but no call does")
    if op.may_be_same and op.result != "module" and "same" not in seen:
        wrong.append("claims that it may return its argument, but no call does")
    if op.writes and not op.metadata_only and not any(call.written for call in calls):
        wrong.append("claims a write, but no call wrote")
    if op.metadata_only and not any(call.reshaped for call in calls):
        wrong.append("claims a change of metadata, but no call changed any")
    if op.differentiable and not any(call.carries for call in calls if call.asked_for_gradient):
        wrong.append("claims to carry the graph, but no result requires grad")
    return wrong


def _kind(op: Op, call: Call) -> list[str]:
    if op.result == "self":
        first = call.arguments.get(0, [None])
        return [] if any(call.result is part for part in first) else ["claims to return its receiver"]
    if op.result == "unknown" or _KINDS[op.result](call.result):
        return []
    return [f"claims to return {op.result}, returned {type(call.result).__name__}"]


def _sharing(op: Op, call: Call) -> list[str]:
    allowed = {
        "fresh": {"fresh"},
        "view": {"view", "same"},
        "multi": {"view", "same"},
        "same": {"same"},
        "unversioned": {"unversioned"},
        "maybe": {"fresh", "view", "same", "unversioned"},
    }[op.shares]
    wrong = []
    for word, key in call.relations:
        if word not in allowed:
            wrong.append(f"claims {op.shares}, saw {word}")
        if word == "unversioned" and op.versioned:
            wrong.append("claims that aliases share the version counter")
        if word == "same" and not (op.may_be_same or op.result == "self"):
            wrong.append("returned its argument itself, without saying so")
        if key is not None and op.of != "*" and key != op.of:
            wrong.append(f"shares argument {key}, claims {op.of}")
    return wrong


def _writing(op: Op, call: Call) -> list[str]:
    wrong = [f"wrote argument {key} without saying so" for key in call.written if key not in op.writes]
    if op.metadata_only and call.written:
        wrong.append("claims to change metadata only, but elements changed")
    if not op.bumps and call.bumped & set(op.writes):
        wrong.append("claims that the write does not bump the version counter")
    for key in call.written & set(op.writes):
        tensors = any(isinstance(part, torch.Tensor) for part in call.arguments[key])
        if op.bumps and tensors and key not in call.bumped:
            wrong.append("claims that the write bumps the version counter")
    return wrong


def _graph(op: Op, call: Call) -> list[str]:
    wrong = []
    if not op.differentiable and call.asked_for_gradient and call.carries:
        wrong.append("claims not to carry the graph, but the result requires grad")
    produced = [part for part in parts(call.result) if isinstance(part, torch.Tensor)]
    if op.dtype and any(str(part.dtype) != f"torch.{op.dtype}" for part in produced):
        wrong.append(f"claims dtype {op.dtype}")
    if op.scalar and any(part.dim() for part in produced):
        wrong.append("claims a 0-dim result")
    return wrong


def _claim(**facts: Any) -> Op:
    return Op("probe", **{"result": "tensor", "differentiable": True, **facts})


def test_fresh_is_denied_by_a_view() -> None:
    assert contradictions(_claim(), [watch(torch.Tensor.t, torch.ones(2, 3, requires_grad=True))]) == [
        "claims fresh, saw view"
    ]


def test_view_is_denied_by_a_copy() -> None:
    assert "claims view, saw fresh" in contradictions(
        _claim(shares="view"), [watch(torch.Tensor.clone, torch.ones(2, requires_grad=True))]
    )


def test_versioned_is_denied_by_data() -> None:
    wrong = contradictions(_claim(shares="view"), [watch(lambda tensor: tensor.data, torch.ones(2))])
    assert "claims view, saw unversioned" in wrong
    assert "claims that aliases share the version counter" in wrong


def test_unversioned_is_denied_by_detach() -> None:
    wrong = contradictions(_claim(shares="unversioned"), [watch(torch.Tensor.detach, torch.ones(2))])
    assert "claims unversioned, saw view" in wrong


def test_a_write_that_is_not_claimed_is_noticed() -> None:
    wrong = contradictions(_claim(shares="same", may_be_same=True), [watch(torch.Tensor.add_, torch.ones(2), 1)])
    assert "wrote argument 0 without saying so" in wrong


def test_a_write_outside_the_view_is_noticed() -> None:
    base = torch.ones(4)
    call = watch(lambda part: _zero(base), base[:2])
    assert call.written == {0}


def _zero(tensor: torch.Tensor) -> None:
    tensor.zero_()


def test_a_claimed_write_that_does_not_happen_is_noticed() -> None:
    wrong = contradictions(_claim(writes=(0,)), [watch(torch.Tensor.add, torch.ones(2, requires_grad=True), 1)])
    assert "claims a write, but no call wrote" in wrong


def test_metadata_only_is_denied_by_a_write_of_elements() -> None:
    claim = _claim(result="self", shares="same", writes=(0,), metadata_only=True)
    assert "claims to change metadata only, but elements changed" in contradictions(
        claim, [watch(torch.Tensor.add_, torch.ones(2), 1)]
    )


def test_a_bump_is_noticed() -> None:
    claim = _claim(result="self", shares="same", writes=(0,), bumps=False)
    assert "claims that the write does not bump the version counter" in contradictions(
        claim, [watch(torch.Tensor.add_, torch.ones(2), 1)]
    )


def test_a_cut_graph_is_noticed() -> None:
    assert "claims to carry the graph, but no result requires grad" in contradictions(
        _claim(shares="view"), [watch(torch.Tensor.detach, torch.ones(2, requires_grad=True))]
    )


def test_a_kept_graph_is_noticed() -> None:
    assert "claims not to carry the graph, but the result requires grad" in contradictions(
        _claim(differentiable=False), [watch(torch.Tensor.exp, torch.ones(2, requires_grad=True))]
    )


def test_a_wrong_kind_dtype_and_shape_are_noticed() -> None:
    claim = _claim(result="tensors", dtype="int64", scalar=True)
    wrong = contradictions(claim, [watch(torch.Tensor.exp, torch.ones(2, requires_grad=True))])
    assert wrong == ["claims to return tensors, returned Tensor", "claims dtype int64", "claims a 0-dim result"]


def test_the_wrong_owner_is_noticed() -> None:
    call = watch(torch.Tensor.set_, torch.zeros(2), torch.ones(2))
    assert call.reshaped == {0}
    swapped = watch(lambda left, right: right.view(-1), torch.zeros(2), torch.ones(2, requires_grad=True))
    assert "shares argument 1, claims 0" in contradictions(_claim(shares="view"), [swapped])
