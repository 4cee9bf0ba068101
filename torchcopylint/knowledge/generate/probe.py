"""Calls one operation once or a few times and records what it did: returned, shared, wrote, read, saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np  # type: ignore[import-not-found, unused-ignore]
import torch  # type: ignore[import-not-found, unused-ignore]
from numpy.lib.array_utils import byte_bounds  # type: ignore[import-not-found, unused-ignore]

from torchcopylint.knowledge.generate.samples import CONTENTS, Helpers, Variant, short
from torchcopylint.knowledge.table import OUTPUT, Argument

_SEED = 20
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, torch.Size, tuple, list)


class NotCallable(Exception):
    """The operation does not accept these arguments."""


class Case(NamedTuple):
    """One operation, the source of its arguments, and the receiver to try it on.

    Without `whole`, the receiver is put in front of the arguments that `recipe` spells; with it, `recipe` spells all.
    """

    target: Callable[..., Any]
    recipe: str
    variant: Variant
    whole: bool = False

    def arguments(self, content: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments, newly built with that content in the first."""
        try:
            receiver = self.variant.build(content)
            positional, keywords = eval(f"call({self.recipe})", {"call": _call}, Helpers(receiver))
        except Exception as error:
            raise NotCallable(f"the arguments could not be built: {error}") from error
        if self.whole:
            return (_altered(positional[0], receiver, content), *positional[1:]) if positional else (), keywords
        return (receiver, *positional), keywords


@dataclass
class Seen:
    """What was observed of one case."""

    case: Case
    result: str = "none"
    relations: list[tuple[str, Argument]] = field(default_factory=list)
    """For each tensor or array that came back: `same`, `alias` or `fresh`, and of which argument."""
    versioned: bool = True
    written: dict[Argument, str] = field(default_factory=dict)
    """`content`, `metadata` or `version` (only the counter went up) for each argument that was changed."""
    bumped: bool = True
    reads: bool = False
    overwrites: bool = False
    dtypes: tuple[str, ...] = ()
    zero_dim: bool = False
    differentiable: bool = False
    saved: dict[Argument, set[tuple[str, Argument]]] = field(default_factory=dict)
    """For each argument through which a gradient can flow: what is saved (`input`, `output`, `indices` or `other`,
    and which argument) when it alone requires grad."""
    apart: bool | None = None
    """Of several views: whether autograd lets one of them be written in place, `None` if that was not to be seen."""
    tensors: set[Argument] = field(default_factory=set)
    """The arguments that are, or hold, tensors or arrays."""


def observe(case: Case, *, content: bool = True, graph: bool = True) -> Seen:
    """Everything about one case; without `content`, `graph` not those two costly parts.

    Raises `NotCallable` when the operation refuses the arguments.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = Seen(case)
        _observe_memory(case, seen)
        seen.overwrites = seen.written.get(0) == "content"
        if content:
            _observe_content(case, seen)
        if graph:
            _observe_graph(case, seen)
        return seen


def run(case: Case, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The result of the call, with the random number generators seeded. Raises `NotCallable`."""
    # Not `torch.manual_seed`, which formats a stack for every accelerator that is not there.
    torch.default_generator.manual_seed(_SEED)
    np.random.seed(_SEED)
    # So that `empty` and its like come back filled with nan rather than with what was there before.
    unfilled = "empty" in getattr(case.target, "__name__", "")
    torch.use_deterministic_algorithms(unfilled, warn_only=True)
    try:
        result = case.target(*positional, **keywords)
        if unfilled and isinstance(result, np.ndarray):
            result.fill(0)
        return list(result) if isinstance(result, Iterator) else result
    except Exception as error:
        raise NotCallable(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from error


def leaves(positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[tuple[Argument, Any]]:
    """Every tensor and array among the arguments, with the argument that it belongs to."""
    found: list[tuple[Argument, Any]] = []
    for place, value in enumerate(positional):
        found.extend((place, leaf) for leaf in flat(value))
    for name, value in keywords.items():
        found.extend((name, leaf) for leaf in flat(value))
    return found


def flat(value: Any) -> list[Any]:
    """The tensors and arrays in a value, also in lists, tuples, dicts, modules and packed sequences."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in flat(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return []


def storages(value: Any) -> tuple[tuple[int, int], ...]:
    """The address ranges of the memory blocks behind a tensor (several for a sparse one) or an array."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return (byte_bounds(value),) if value.size else ()
    if value.layout == torch.sparse_coo:
        return storages(value._values()) + storages(value._indices())
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return storages(value.values()) + storages(value.crow_indices()) + storages(value.col_indices())
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        return storages(value.values()) + storages(value.ccol_indices()) + storages(value.row_indices())
    if value.is_mkldnn or value.is_meta or value.untyped_storage().nbytes() == 0:
        return ()
    start = value.untyped_storage().data_ptr()
    return ((start, start + value.untyped_storage().nbytes()),)


def overlap(left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]) -> bool:
    """Whether two sets of address ranges meet."""
    return any(low < end and start < high for low, high in left for start, end in right)


def snapshot(value: Any) -> Any:
    """The whole content of a tensor's memory, or of an array, to be compared with `equal`."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if value.is_nested:
        return [part.detach().clone() for part in value.unbind()]
    if value.layout != torch.strided or value.is_mkldnn:
        return value.detach().to_dense().clone().nan_to_num()
    return _bytes(value.untyped_storage()).clone()


def equal(left: Any, right: Any) -> bool:
    """Whether two snapshots, or two plain values, are the same."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.shape == right.shape and left.dtype == right.dtype and bool(torch.equal(left, right))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(equal(one, other) for one, other in zip(left, right, strict=True))
    return repr(left) == repr(right)


def metadata(tensor: Any) -> tuple[Any, ...]:
    """What a metadata-only write changes: shape, strides, offset, storage, flags."""
    if isinstance(tensor, np.ndarray):
        return (tensor.shape, tensor.strides, tensor.flags.writeable, tensor.dtype)
    dense = tensor.layout == torch.strided and not tensor.is_mkldnn and not tensor.is_nested
    place = (tensor.stride(), tensor.storage_offset(), tensor.untyped_storage()._cdata) if dense else ()
    shape = () if tensor.is_nested else tuple(tensor.shape)
    return (shape, place, tensor.requires_grad, tensor.is_leaf, tensor.dtype)


def _call(*positional: Any, **keywords: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return positional, keywords


def _altered(value: Any, receiver: Any, content: str) -> Any:
    """A first argument that a recipe spelled itself, changed a little for the second content of each pair."""
    if all(content != other for _, other in CONTENTS) or any(leaf is receiver for leaf in flat(value)):
        return value
    for leaf in flat(value):
        if isinstance(leaf, np.ndarray):
            leaf[...] = leaf[::-1] if leaf.ndim else leaf
        elif _plain(leaf) and leaf.dtype == torch.bool:
            leaf.logical_not_()
        elif _plain(leaf) and _floating(leaf):
            leaf.data = leaf * 0.75 + 0.125
        elif _plain(leaf) and leaf.dim():
            leaf.data = leaf.flip(0)
    return value


def _observe_memory(case: Case, seen: Seen) -> None:
    """Result kind, sharing, writes. No argument requires grad."""
    positional, keywords = case.arguments("low")
    inputs = leaves(positional, keywords)
    seen.tensors = {key for key, _ in inputs}
    held = [leaf.untyped_storage() if _plain(leaf) else None for _, leaf in inputs]
    before = [(snapshot(leaf), metadata(leaf), _version(leaf), storages(leaf)) for _, leaf in inputs]
    result = run(case, positional, keywords)
    seen.result = kind(result, positional[0] if positional else None)
    outputs = flat(result)
    bumps = []
    for (key, leaf), (content, shape, version, _), storage in zip(inputs, before, held, strict=True):
        now = snapshot(leaf) if storage is None else _bytes(storage)
        if not equal(*_common(content, now)):
            seen.written[key] = "content"
        elif metadata(leaf) != shape and seen.written.get(key) != "content":
            seen.written[key] = "metadata"
        elif _version(leaf) != version and key not in seen.written:
            seen.written[key] = "version"
        if key in seen.written and isinstance(leaf, torch.Tensor):
            bumps.append(_version(leaf) != version)
    seen.bumped = all(bumps)
    for output in outputs:
        seen.relations.append(_relation(output, inputs, [blocks for *_, blocks in before]))
    if seen.result == "object" and hasattr(result, "data_ptr") and not isinstance(result, type):
        block = (result.data_ptr(), result.data_ptr() + 1)
        shared = [key for (key, _), (*_, blocks) in zip(inputs, before, strict=True) if overlap((block,), blocks)]
        seen.relations.extend(("alias", key) for key in shared)
        seen.versioned = False
    seen.versioned &= all(_shares_version(output, inputs) for output in outputs)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    seen.dtypes = tuple(short(output.dtype) for output in outputs)
    seen.zero_dim = len(tensors) == 1 and tensors[0].dim() == 0


def _observe_content(case: Case, seen: Seen) -> None:
    """Whether the outcome depends on the content of the first argument, and whether a write leaves any of it."""
    for one, other in CONTENTS:
        try:
            left, right = _outcome(case, one), _outcome(case, other)
        except NotCallable:
            continue
        if not equal(left.rest, right.rest):
            # A result that is never twice the same (an address, uninitialised memory) says nothing.
            seen.reads |= equal(left.rest, _outcome(case, one).rest)
        if seen.written.get(0) == "metadata":
            continue
        if isinstance(left.after, torch.Tensor) and isinstance(right.after, torch.Tensor):
            if left.after.shape != right.after.shape or left.before.shape != left.after.shape:
                continue
            if not bool((left.after == left.before).all() & (right.after == right.before).all()):
                seen.written.setdefault(0, "content")
            same = (left.after == right.after).all(-1)
            kept = (left.after == left.before).all(-1) & (right.after == right.before).all(-1)
            seen.overwrites &= bool(same.all())
            seen.reads |= not bool((same | kept).all())


class _Outcome(NamedTuple):
    rest: Any
    """What came back freshly and what other arguments became."""
    before: Any
    after: Any
    """The receiver before and after, if it was written: bit patterns, so that nan equals nan."""
    held: Any
    """Arguments and result, kept so that no later call gets memory at the same address: `data_ptr` and `__hash__`
    return one, and would seem to read their argument whenever an address happened to come back."""


def _outcome(case: Case, content: str) -> _Outcome:
    positional, keywords = case.arguments(content)
    inputs = leaves(positional, keywords)
    receiver = inputs[0][1] if inputs and inputs[0][0] == 0 else None
    blocks = [storages(leaf) for _, leaf in inputs]
    comparable = isinstance(receiver, np.ndarray) or _plain(receiver)
    before = _bits(receiver) if comparable else None
    others = [snapshot(leaf) if key != 0 else None for key, leaf in inputs]
    result = run(case, positional, keywords)
    rest: list[Any] = []
    for output in flat(result):
        if _relation(output, inputs, blocks)[0] == "fresh":
            rest.append(_comparable(output))
    if isinstance(result, _PLAIN) and not flat(result):
        rest.append(repr(result))
    rest.extend(
        _comparable(leaf)
        for (key, leaf), old in zip(inputs, others, strict=True)
        if key != 0 and not equal(old, snapshot(leaf))
    )
    return _Outcome(rest, before, _bits(receiver) if comparable else None, (positional, keywords, result))


def _observe_graph(case: Case, seen: Seen) -> None:
    """Which arguments pass a gradient, and what is packed for backward when each alone requires grad."""
    positional, keywords = case.arguments("low")
    candidates = sorted(
        {key for key, leaf in leaves(positional, keywords) if _floating(leaf)},
        key=lambda key: (isinstance(key, str), key),
    )
    # Some operations insist on all or none of their arguments requiring grad.
    for wanted in [*({key} for key in candidates), set(candidates)]:
        try:
            differentiable, saved = _packed(case, wanted)
        except NotCallable:
            continue
        if differentiable and (len(wanted) == 1 or not seen.saved):
            seen.saved.update(dict.fromkeys(wanted, saved))
    seen.differentiable = bool(seen.saved)
    if seen.differentiable and seen.result == "tensors" and not seen.written:
        seen.apart = _apart(case)


def _apart(case: Case) -> bool | None:
    """Whether each of several results can be written in place, when the first argument has a graph: what one operation
    has made at once cannot, what was made one by one can."""
    positional, keywords = case.arguments("low")
    receiver = _requiring(positional[0])
    if not isinstance(receiver, torch.Tensor) or not receiver.requires_grad:
        return None
    base = receiver.clone()
    for output in flat(run(case, (base, *positional[1:]), keywords)):
        if not _plain(output) or not output.requires_grad or not overlap(storages(output), storages(base)):
            return None
        try:
            output.mul_(1)
        except RuntimeError as error:
            return False if "multiple views" in str(error) else None
    return True


def _packed(case: Case, wanted: set[Argument]) -> tuple[bool, set[tuple[str, Argument]]]:
    """Whether the result carries a graph, and what was saved, when exactly the wanted arguments require grad."""
    positional, keywords = case.arguments("low")
    positional = tuple(_requiring(value) if place in wanted else value for place, value in enumerate(positional))
    keywords = {name: _requiring(value) if name in wanted else value for name, value in keywords.items()}
    inputs = leaves(positional, keywords)
    # Kept until the comparison: a freed block's address could be taken by another tensor.
    original = [(key, storages(leaf)) for key, leaf in inputs]
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run(case, positional, keywords)
    outputs = [output for output in flat(result) if isinstance(output, torch.Tensor)]
    written = [leaf for key, leaf in inputs if any(leaf is output for output in outputs)]
    differentiable = any(output.requires_grad for output in outputs)
    found: set[tuple[str, Argument]] = set()
    for tensor in packed:
        blocks = storages(tensor)
        own = [key for key, before in original if overlap(before, blocks)]
        output = [one for one in outputs if overlap(storages(one), blocks)]
        if not _watched(tensor, [*output, *(leaf for _, leaf in inputs if overlap(storages(leaf), blocks))]):
            continue
        # What an in-place operation saves of its receiver is the new content, so it counts as output.
        if output and (not own or any(one is leaf for one in output for leaf in written)):
            found.add(("output" if _floating(output[0]) else "indices", OUTPUT))
        elif own:
            found.add(("input" if own[0] == 0 else "other", own[0]))
    return differentiable, found


def _watched(tensor: Any, owners: list[Any]) -> bool:
    """Whether backward would notice a write: `kron` keeps an alias with a counter of its own."""
    for owner in owners:
        version = tensor._version
        torch.autograd.graph.increment_version(owner)
        if tensor._version == version:
            return False
    return True


def _requiring(value: Any) -> Any:
    """The same value with its floating tensors replaced by non-leaves that require grad."""
    if isinstance(value, torch.Tensor):
        if not _floating(value):
            return value
        return value.detach().requires_grad_().clone()
    if isinstance(value, list | tuple):
        return type(value)(_requiring(item) for item in value)
    return value


def kind(result: Any, receiver: Any = None) -> str:
    """The word of `Op.result` for a value that came back."""
    if result is None:
        return "none"
    if result is receiver and isinstance(receiver, torch.Tensor | np.ndarray):
        return "self"
    if isinstance(result, torch.Tensor):
        return "tensor"
    if isinstance(result, np.ndarray | np.generic):
        return "array" if isinstance(result, np.ndarray) else "number"
    if isinstance(result, bool):
        return "bool"
    if isinstance(result, int | float | complex):
        return "number"
    if isinstance(result, str):
        return "string"
    if isinstance(result, torch.Size):
        return "size"
    if isinstance(result, torch.nn.Module):
        return "module"
    found = flat(result) if isinstance(result, list | tuple | Mapping) else []
    if found:
        return "tensors" if isinstance(found[0], torch.Tensor) else "arrays"
    if isinstance(result, tuple) and all(isinstance(item, int | float | complex | np.generic) for item in result):
        return "size"
    return "list" if isinstance(result, list) else "object"


def _relation(output: Any, inputs: list[tuple[Argument, Any]], blocks: list[Any]) -> tuple[str, Argument]:
    """How one output relates to the inputs, given the address ranges that they had before the call."""
    for key, leaf in inputs:
        if output is leaf:
            return "same", key
    own = storages(output)
    for (key, _), before in zip(inputs, blocks, strict=True):
        if overlap(own, before):
            return "alias", key
    return "fresh", 0


def _shares_version(output: Any, inputs: list[tuple[Argument, Any]]) -> bool:
    """Whether a write through this output bumps the version counter of the input that it shares memory with."""
    for _, leaf in inputs:
        if output is leaf or not overlap(storages(output), storages(leaf)):
            continue
        if isinstance(output, np.ndarray) and isinstance(leaf, np.ndarray):
            continue
        if isinstance(output, np.ndarray) or isinstance(leaf, np.ndarray):
            return False
        version = leaf._version
        torch.autograd.graph.increment_version(output)
        if leaf._version == version:
            return False
    return True


def _plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_mkldnn and not leaf.is_nested


def _floating(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _version(leaf: Any) -> int:
    return int(leaf._version) if isinstance(leaf, torch.Tensor) else 0


def _bytes(storage: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


def _common(left: Any, right: Any) -> tuple[Any, Any]:
    """Two snapshots cut to the shorter: `resize_` may change the length of a storage, or a sparse shape, only."""
    if not isinstance(left, torch.Tensor) or left.shape == right.shape:
        return left, right
    size = min(left.numel(), right.numel()) if left.dim() == 1 else 0
    return left.reshape(-1)[:size], right.reshape(-1)[:size]


def _bits(tensor: Any) -> Any:
    """The content as rows of bytes, one for each element, so that nan equals nan."""
    if isinstance(tensor, np.ndarray):
        rows = np.frombuffer(tensor.tobytes(), dtype=np.uint8).reshape(tensor.size, tensor.itemsize)
        return torch.from_numpy(rows.copy())
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
    return plain.view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def _comparable(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.tobytes()
    if leaf.is_nested:
        return [_comparable(part) for part in leaf.unbind()]
    if not _plain(leaf):
        leaf = leaf.to_dense()
    return _bits(leaf)
