"""Every row of `tensor.md`, `functions.md` and `numpy.md` against what the operation does to many sample tensors.

The arguments come from the generator's recipes; the samples and the observer do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from test_knowledge_observer import Call, contradictions, watch

from torchcopylint.knowledge import table
from torchcopylint.knowledge.generate import arrays, calls, calls_numpy, operations
from torchcopylint.knowledge.generate.calls import Group
from torchcopylint.knowledge.generate.samples import RECEIVERS, Helpers

_DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.complex32),
)


def _whole(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    count = int(np.prod(shape)) if shape else 1
    return (torch.arange(1, count + 1).remainder(5) - 1.5).reshape(shape).to(dtype)


SAMPLES: dict[str, Callable[[], Any]] = {
    **{str(dtype): lambda dtype=dtype: _whole(3, 3, dtype=dtype) for dtype in _DTYPES},
    "transposed": lambda: _whole(3, 3).t(),
    "strided": lambda: _whole(3, 9)[:, ::3],
    "row of a transposed": lambda: _whole(3, 4).t()[1],
    "expanded": lambda: _whole(3, 1).expand(3, 3),
    "conjugated": lambda: _whole(3, 3, dtype=torch.complex64).conj(),
    "0-d": lambda: _whole().reshape(()),
    "0-d whole": lambda: torch.tensor(2),
    "1 row": lambda: _whole(1, 3),
    "not numbers": lambda: torch.tensor([[1.0, float("nan")], [float("inf"), -1.0]]),
    "1-d": lambda: _whole(3),
    "1-d whole": lambda: _whole(3, dtype=torch.int64),
    "3-d": lambda: _whole(2, 3, 3),
    "3-d permuted": lambda: _whole(3, 2, 3).permute(1, 0, 2),
    "4-d": lambda: _whole(2, 4, 4, 4),
    "5-d": lambda: _whole(1, 4, 4, 4, 4),
    "requires grad": lambda: _whole(3, 3).requires_grad_() * 1,
    "requires grad, 1-d": lambda: _whole(3).requires_grad_() * 1,
    "requires grad, 3-d": lambda: _whole(2, 3, 3).requires_grad_() * 1,
    "requires grad, 4-d": lambda: _whole(2, 4, 4, 4).requires_grad_() * 1,
    "requires grad, complex": lambda: _whole(3, 3, dtype=torch.complex64).requires_grad_() * 1,
    "requires grad, double": lambda: _whole(3, 3, dtype=torch.float64).requires_grad_() * 1,
}
ARRAYS: dict[str, Callable[[], Any]] = {
    **{
        name: lambda name=name: np.array((np.arange(9).reshape(3, 3) % 5 - 1.5).astype(name))
        for name in ("float64", "float32", "int64", "bool", "complex128")
    },
    "transposed": lambda: np.array(np.arange(9.0).reshape(3, 3)).T,
    "strided": lambda: np.array(np.arange(27.0).reshape(3, 9))[:, ::3],
    "not numbers": lambda: np.array([1.0, np.nan, np.inf]),
    "0-d": lambda: np.array(1.5),
    "1-d": lambda: np.array(np.arange(3.0) - 1),
    "3-d": lambda: np.array(np.arange(18.0).reshape(2, 3, 3)),
    "1 row": lambda: np.array(np.arange(3.0).reshape(1, 3)),
}


def _receivers(kind: str) -> Iterator[Callable[[], Any]]:
    if kind == "any":
        yield from SAMPLES.values()
    elif kind == "array":
        yield from ARRAYS.values()
    else:
        for variant in RECEIVERS[kind]:
            yield lambda variant=variant: variant.build("low")
            yield lambda variant=variant: _asking(variant.build("low"))


def _asking(value: Any) -> Any:
    """The same tensor as a non-leaf that requires grad, if it can."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()) and not value.is_quantized:
        return value if value.requires_grad else value.detach().requires_grad_().clone()
    if isinstance(value, list):
        return [_asking(item) for item in value]
    return value


def _arguments(build: Callable[[], Any], recipe: str, asking: int | None, *, whole: bool) -> tuple[Any, Any]:
    receiver = build()
    positional, keywords = eval(f"call({recipe})", {"call": lambda *a, **k: (a, k)}, Helpers(receiver))
    if not whole:
        positional = (receiver, *positional)
    return tuple(_asking(value) if place == asking else value for place, value in enumerate(positional)), keywords


def _calls(target: Callable[..., Any], groups: list[Group], form: str, *, whole: bool) -> list[Call]:
    """A call on every sample that the operation accepts; for functions also with each argument requiring grad."""
    found = []
    for group in (group for group in groups if group.form == form):
        for build in _receivers(group.receiver):
            for asking in (None, 0, 1, 2) if whole and group.receiver != "any" else (None,):
                try:
                    positional, keywords = _arguments(build, group.recipe, asking, whole=whole)
                    found.append(watch(target, *positional, **keywords))
                except Exception:
                    continue
    return found


def _split(name: str) -> tuple[str, str]:
    base, _, form = name.partition("(")
    return base, form.rstrip(")")


def _tensor_calls(name: str) -> list[Call]:
    base, form = _split(name)
    last = base.rpartition(".")[2]
    groups = operations.by_name((*calls.METHODS, *calls.SPECIAL))
    properties = operations.by_name(calls.PROPERTIES)
    if last in properties:
        return _calls(lambda tensor: getattr(tensor, last), properties[last], form, whole=False)
    return _calls(getattr(torch.Tensor, last), groups.get(last) or groups[last.removesuffix("_")], form, whole=False)


def _function_calls(name: str) -> list[Call]:
    base, form = _split(name)
    namespace, _, last = base.rpartition(".")
    module, recipes = operations.NAMESPACES[namespace]
    own = operations.by_name(recipes)
    if last in own:
        return _calls(getattr(module, last), own[last], form, whole=True)
    methods = operations.by_name(calls.METHODS)
    return _calls(getattr(module, last), methods.get(last) or methods[last.removesuffix("_")], form, whole=False)


def _array_calls(name: str) -> list[Call]:
    base, form = _split(name)
    namespace, _, last = base.rpartition(".")
    if namespace == "numpy.ndarray":
        properties = operations.by_name(calls_numpy.PROPERTIES)
        if last in properties:
            return _calls(lambda array: getattr(array, last), properties[last], form, whole=False)
        groups = operations.by_name((*calls_numpy.METHODS, *calls_numpy.SPECIAL))
        return _calls(getattr(np.ndarray, last), groups[last], form, whole=False)
    module, recipes = arrays.NAMESPACES[namespace]
    target = getattr(module, last)
    group = operations.by_name(recipes).get(last) or [Group(", ".join("xyz"[: target.nin]), last, "array")]
    return _calls(target, group, form, whole=True)


def _check(name: str, found: list[Call]) -> None:
    op = table.function(name) or table.tensor_property(name.rpartition(".")[2])
    assert op is not None
    assert found, "no sample could be used"
    assert not contradictions(op, found)


@pytest.mark.parametrize("name", table.names("tensor"))
def test_a_row_of_tensor_md_says_what_torch_does(name: str) -> None:
    _check(name, _tensor_calls(name))


@pytest.mark.parametrize("name", table.names("functions"))
def test_a_row_of_functions_md_says_what_torch_does(name: str) -> None:
    _check(name, _function_calls(name))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in table.names("numpy")
        if not name.startswith("numpy.random.") and name.rpartition(".")[2] not in ("matvec", "vecmat", "isnat")
    ],
)
def test_a_row_of_numpy_md_says_what_numpy_does(name: str) -> None:
    _check(name, _array_calls(name))


@pytest.mark.parametrize("name", ["shuffle", "permutation"])
def test_a_row_of_numpy_random_says_what_numpy_does(name: str) -> None:
    legacy = [watch(getattr(np.random.RandomState(seed), name), np.arange(9.0)) for seed in range(3)]
    _check(f"numpy.random.{name}", legacy)
    modern = [
        watch(lambda generator, array: getattr(generator, name)(array), np.random.default_rng(seed), np.arange(9.0))
        for seed in range(3)
    ]
    _check(f"numpy.random.Generator.{name}", modern)
