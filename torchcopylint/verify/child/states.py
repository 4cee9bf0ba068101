"""How things stand at one moment, as data: who is one object with whom, what has a graph, what values are."""

from __future__ import annotations

import ast
import hashlib
import types
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from .contents import extent
from .reach import Held, Reach, has_graph, is_array, is_number

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

MOST_PATHS = 60
MOST_ENDS = 400
MOST_NODES = 300
SHORT = 16
"""So many numbers are told in full, if there is room."""
MANTISSA = float(1 << 17)


def state(reach: Reach, frames: list[types.FrameType], looks: frozenset[str]) -> dict[str, Any]:
    """What holds in these frames, of what is looked for; what is not is empty.

    `graphs`: paths of tensors that have a graph, with how many nodes it has. `same`: groups of paths to one tensor,
    array or module. `unheld`: paths of parameters that no optimizer in sight holds (none if there is no optimizer), and
    of tensors that stand where one has stood that is held.
    `buffers`: paths of tensors whose graph still holds what it saved, `saved`: from where to where in memory that is.
    """
    paths: dict[int, list[list[str]]] = {}
    graphs: list[list[Any]] = []
    graphed = "graphs" in looks
    walked = bool(looks & {"graphs", "same", "unheld"})
    held = reach.held(frames) if walked else []
    for one in [*held, *reach.modules] if walked else ():
        paths.setdefault(id(one.value), []).append([one.scope, one.path])
        if graphed and isinstance(one.value, torch.Tensor) and has_graph(one.value):
            graphs.append([one.scope, one.path, _size_of_graph(one.value) if len(graphs) < MOST_PATHS else 0])
    optimizers = []
    for frame in frames if "unheld" in looks else ():
        for value in list(frame.f_locals.values()):
            optimizers += [value] if isinstance(value, torch.optim.Optimizer) else []
            attributes = vars(value) if hasattr(value, "__dict__") and not isinstance(value, type) else {}
            optimizers += [v for v in list(attributes.values()) if isinstance(v, torch.optim.Optimizer)]
    return {
        "graphs": graphs[:MOST_PATHS],
        "same": [group[:6] for group in paths.values() if len(group) > 1][:MOST_PATHS] if "same" in looks else [],
        "unheld": _unheld(reach, optimizers, held)[:MOST_PATHS] if "unheld" in looks else [],
        "buffers": [
            [one.scope, one.path]
            for one in (held if graphed else ())
            if isinstance(one.value, torch.Tensor) and _holds_buffers(one.value)
        ],
        "saved": _extents_saved([one.value for one in held]) if "saved" in looks else [],
    }


def scope_of(frame: types.FrameType) -> str:
    """The qualified name of a frame's function; empty for the module."""
    return "" if frame.f_code.co_name == "<module>" else frame.f_code.co_qualname


def mentions(chains: tuple[str, ...], frame: types.FrameType) -> list[list[Any]]:
    """What the names of a statement lead to: each chain of names with the identities of the tensors and arrays."""
    found: list[list[Any]] = []
    for chain in chains[:MOST_PATHS]:
        root, *attributes = chain.split(".")
        value = frame.f_locals.get(root, frame.f_globals.get(root))
        for attribute in attributes:
            value = _plain_attribute(value, attribute)
        held = Reach().walk_names("", {"it": value})
        found.append([chain, [id(one.value) for one in held[:MOST_PATHS]]])
    return found


def attributes_made(targets: list[ast.expr], frame: types.FrameType) -> tuple[list[str], list[str]]:
    """Of attributes that an assignment sets, those that are plain ones of a tensor or a module, and those of what is
    neither, as far as that can be seen: what stands in for something else says nothing of tensors and modules."""
    found, elsewhere = [], []
    for target in targets:
        chain: list[str] = []
        root = target
        while isinstance(root, ast.Attribute):
            chain.insert(0, root.attr)
            root = root.value
        if not chain or not isinstance(root, ast.Name):
            continue
        owner = frame.f_locals.get(root.id, frame.f_globals.get(root.id))
        for name in chain[:-1]:
            owner = _plain_attribute(owner, name)
        place = f"{scope_of(frame)}|{'.'.join([root.id, *chain])}"
        if not isinstance(owner, (torch.Tensor, torch.nn.Module)):
            elsewhere.append(place)
        elif chain[-1] in getattr(owner, "__dict__", {}):
            found.append(place)
    return found, elsewhere


def _plain_attribute(value: Any, name: str) -> Any:
    """An attribute that is stored, not computed: asking must run no code of the script."""
    if isinstance(value, torch.Tensor):
        return value if name in ("data", "T") else None
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict):
        return None
    for part in (attributes, *(attributes.get(p) or {} for p in ("_parameters", "_buffers", "_modules"))):
        if isinstance(part, dict) and name in part:
            return part[name]
    return None


def _size_of_graph(value: torch.Tensor) -> int:
    try:
        waiting = [value.grad_fn]
    except RuntimeError:
        return 0
    seen = set(waiting)
    for node in waiting:
        if len(waiting) > 1000:
            break
        for next_node, _ in getattr(node, "next_functions", ()):
            if next_node is not None and next_node not in seen:
                seen.add(next_node)
                waiting.append(next_node)
    return len(waiting)


def _holds_buffers(value: torch.Tensor) -> bool:
    """Whether the graph behind a tensor still holds what it saved for backward. A graph that saved nothing does not."""
    return next(_saved(value), None) is not None


def _saved(value: torch.Tensor) -> Iterator[torch.Tensor]:
    """What the graph behind a tensor saved for backward, until something of it was freed. Of a large graph, the first
    nodes."""
    if not has_graph(value):
        return
    try:
        waiting = [value.grad_fn]
    except RuntimeError:  # a view that was written and may not be asked
        return
    for node in waiting:
        if len(waiting) > MOST_NODES:
            return
        for name in dir(node):
            if name.startswith("_saved_"):
                try:
                    part = getattr(node, name)
                except RuntimeError:
                    return
                if isinstance(part, torch.Tensor):
                    yield part
        waiting += [next_node for next_node, _ in getattr(node, "next_functions", ()) if next_node is not None]


def _extents_saved(values: list[Any]) -> list[list[int]]:
    """Where in memory lies what the graphs behind some tensors saved."""
    parts = (part for value in values if isinstance(value, torch.Tensor) for part in _saved(value))
    return [list(found) for found in dict.fromkeys(extent(part) for part in islice(parts, MOST_NODES))]


def _unheld(reach: Reach, optimizers: list[torch.optim.Optimizer], found: list[Held]) -> list[list[str]]:
    """The parameters of modules that no optimizer holds, and the places where one that is held has stood before."""
    if not optimizers:
        return []
    held = {
        id(p) for optimizer in optimizers for group in getattr(optimizer, "param_groups", []) for p in group["params"]
    }
    return [
        [module.scope, f"{module.path}.{name}"]
        for module in reach.modules
        for name, parameter in module.value.__dict__.get("_parameters", {}).items()
        if parameter is not None and id(parameter) not in held
    ] + _displaced(reach, held, found)


def _displaced(reach: Reach, held: set[int], found: list[Held]) -> list[list[str]]:
    """Where a tensor stands that no optimizer holds, and one has stood that is held."""
    tensors = [one for one in found if isinstance(one.value, torch.Tensor)]
    reach.trained |= {(one.scope, one.path) for one in tensors if id(one.value) in held}
    others = [one for one in tensors if id(one.value) not in held]
    return [[one.scope, one.path] for one in others if (one.scope, one.path) in reach.trained]


def flagged(last: dict[tuple[str, str], Any]) -> list[str]:
    """The names of tensors that require grad, of everything that was ever reached, then of the graphs of these."""
    named = ((f"{scope}|{path}", value) for (scope, path), value in last.items())
    tensors = [(name, value) for name, value in named if isinstance(value, torch.Tensor) and value.requires_grad]
    tensors = tensors[:MOST_ENDS]
    return [name for name, _ in tensors] + [f"{name}.grad_fn" for name, value in tensors if has_graph(value)]


def unheld_at_end(reach: Reach, names: dict[str, Any]) -> list[list[str]]:
    """The parameters that the script's globals reach and that no optimizer among them holds."""
    found = reach.walk_names("", names)
    optimizers = []
    for value in names.values():
        attributes = getattr(value, "__dict__", {}) if not isinstance(value, type) else {}
        optimizers += [v for v in (value, *list(attributes.values())) if isinstance(v, torch.optim.Optimizer)]
    return _unheld(reach, optimizers, found)[:MOST_PATHS]


def ends(last: dict[tuple[str, str], Any], names: dict[str, Any]) -> dict[str, str]:
    """The end values of everything that was ever reached, by scope and path, and of plain values of the globals."""
    found = {}
    # What a name holds itself comes before what is deep inside something.
    ordered = sorted(last.items(), key=lambda item: item[0][1].count(".") + item[0][1].count("["))
    for (scope, path), value in ordered[:MOST_ENDS]:
        found[f"{scope}|{path}"] = summary(value)
    for name, value in list(names.items()):
        plain = isinstance(value, (bool, int, float, str, type(None))) or is_number(value)
        if plain and not name.startswith("_"):
            found.setdefault(f"|{name}", summary(value))
    return found


_ADDRESSES = (1 << 42, 1 << 48)
"""Numbers of this size are taken for what `id` or `data_ptr` gave."""


def summary(value: Any, depth: int = 0) -> str:
    """A value as one short text that is equal where values are equal: digests for content, no addresses."""
    if isinstance(value, torch.Tensor):
        return _summary_of_tensor(value)
    if is_array(value):
        digest = hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest() if not value.dtype.hasobject else "objects"
        return f"array{tuple(value.shape)}:{value.dtype}:{digest}"
    if is_number(value):
        number = value.item()
        # Equal to within rounding, as a tensor's content.
        return f"{value.dtype}({number:.5g})" if isinstance(number, float) else f"{value.dtype}({number!r})"
    if isinstance(value, int) and _ADDRESSES[0] <= value < _ADDRESSES[1]:
        return "an address"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, bytearray)):
        text = repr(value)
        return text if len(text) < 200 else text[:80] + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    if depth > 4:
        return type(value).__name__
    if isinstance(value, dict):
        inner = ",".join(f"{k!s:.60}:{summary(v, depth + 1)}" for k, v in list(value.items())[:64])
        return f"{{{inner}}}"
    if isinstance(value, (list, tuple, deque)):
        return f"[{','.join(summary(inner, depth + 1) for inner in islice(value, 64))}]"
    if isinstance(value, (set, frozenset)):
        # Where a set has an item may hang on its address.
        return f"{{{','.join(sorted(summary(inner, depth + 1) for inner in value)[:64])}}}"
    if isinstance(value, torch.nn.Module):
        parts = [f"{name}={summary(p, depth + 1)}" for name, p in list(value.named_parameters())[:64]]
        parts += [f"{name}={summary(b, depth + 1)}" for name, b in list(value.named_buffers())[:64]]
        return f"{type(value).__name__}({','.join(parts)})"
    if isinstance(value, torch.optim.Optimizer):
        return f"{type(value).__name__}({sum(len(g['params']) for g in value.param_groups)})"
    if type(value).__module__ == "__main__" and isinstance(getattr(value, "__dict__", None), dict):
        inner = ",".join(f"{k}={summary(v, depth + 1)}" for k, v in list(vars(value).items())[:64])
        return f"{type(value).__name__}({inner})"
    return type(value).__name__


def _summary_of_tensor(value: torch.Tensor) -> str:
    try:
        flat = value.detach().cpu().contiguous().clone().reshape(-1)
        floating = flat.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        if floating and len(flat) > SHORT:
            content = _rounded(flat[:4096].double())
        elif floating:
            # Equal to within rounding: two orders of summation are no difference.
            content = ",".join(f"{x:.5g}" for x in flat.double().tolist())
        else:
            content = str(flat[:4096].tolist())
    except (RuntimeError, NotImplementedError):
        return f"tensor{tuple(value.shape)}"
    digest = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    text = content if len(content) < 80 else digest
    return f"tensor{tuple(value.shape)}:{value.dtype}:{text}"


def _rounded(values: torch.Tensor) -> str:
    """Many numbers as a digest that is equal where they are equal to within rounding, as five digits say it."""
    mantissas, exponents = torch.frexp(values)
    mantissas = torch.round(mantissas * MANTISSA)
    over = mantissas.abs() == MANTISSA
    mantissas[over] /= 2
    exponents[over] += 1
    whole = torch.ldexp(mantissas, exponents)
    # These are ours alone: sharing them with NumPy shows nowhere.
    content = whole.numpy().tobytes() if numpy is not None else str(whole.tolist()).encode()
    return hashlib.blake2b(content, digest_size=20).hexdigest()
