"""Sample tensors to call operations on, and the values that a recipe may name as further arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np  # type: ignore[import-not-found, unused-ignore]
import torch  # type: ignore[import-not-found, unused-ignore]

CONTENTS = (("low", "low again"), ("high", "high again"), ("zero", "odd"), ("other", "low again"))
"""Pairs of contents. An operation whose outcome is the same for both members of each pair does not read its input."""

_SEEDS = {"low": 1, "low again": 2, "high": 3, "high again": 4, "zero": 5, "odd": 6, "other": 7}


class Variant(NamedTuple):
    """A way to build a receiver, and the three properties in which variants differ from each other."""

    label: str
    build: Callable[[str], Any]
    dtype: str = "float32"
    layout: str = "contiguous"
    shape: str = "2-d"


def filled(shape: tuple[int, ...], dtype: Any, content: str) -> Any:
    """A contiguous tensor with reproducible content: `low` lies in (-1, 1), `high` in (1, 3), `odd` holds nan, inf."""
    generator = torch.Generator().manual_seed(_SEEDS[content])
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
    if content == "zero":
        values = torch.zeros(shape, dtype=torch.float64)
    elif content.startswith("high"):
        values = 1.0 + 2.0 * uniform
    elif content == "odd":
        odd = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.5], dtype=torch.float64)
        values = odd[torch.arange(uniform.numel()) % 4].reshape(shape)
    else:
        values = 2.0 * uniform - 1.0
    if dtype == torch.bool:
        return values > {"zero": 0.0, "odd": -2.0, "high": 2.0, "high again": 2.0}.get(content, 0.0)
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.nan_to_num(values * 4.0, 3.0, 7.0, 1.0).to(dtype)
    if dtype.is_complex:
        return torch.complex(values, values if content == "zero" else 0.5 - values).to(dtype)
    return values.to(dtype)


def _dense(*shape: int, dtype: Any = torch.float32) -> Callable[[str], Any]:
    return lambda content: filled(shape, dtype, content)


def _positive_definite(content: str, *batch: int) -> Any:
    # Without nan and infinity: some LAPACK builds end the process when they meet them.
    base = filled((*batch, 3, 3), torch.float32, content).nan_to_num(0.0, 1.0, -1.0)
    return base @ base.mT + 3.0 * torch.eye(3)


_DTYPES = (
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.complex32,
)


def _array(*shape: int, dtype: Any = torch.float64) -> Callable[[str], Any]:
    return lambda content: np.array(filled(shape, dtype, content).numpy())


def short(dtype: Any) -> str:
    """`torch.float32`, or `dtype('float32')`, as `float32`."""
    return str(dtype).removeprefix("torch.")


BASELINE = Variant("contiguous", _dense(3, 3))

_ANY = (
    BASELINE,
    *(Variant(short(dtype), _dense(3, 3, dtype=dtype), dtype=short(dtype)) for dtype in _DTYPES),
    Variant("transposed", lambda content: filled((3, 3), torch.float32, content).t(), layout="transposed"),
    Variant("strided", lambda content: filled((3, 6), torch.float32, content)[:, ::2], layout="strided"),
    Variant("expanded", lambda content: filled((3, 1), torch.float32, content).expand(3, 3), layout="expanded"),
    Variant("conj", lambda content: filled((3, 3), torch.complex64, content).conj(), dtype="complex64", layout="conj"),
    Variant("neg", lambda content: filled((3, 3), torch.complex64, content).conj().imag, layout="neg"),
    Variant("0-d", _dense(), shape="0-d"),
    Variant("0-d int", _dense(dtype=torch.int64), dtype="int64", shape="0-d"),
    Variant("one element", _dense(1), shape="1 element"),
    Variant("1-d", _dense(3), shape="1-d"),
    Variant("1-d int", _dense(3, dtype=torch.int64), dtype="int64", shape="1-d"),
    Variant("1-d strided", lambda content: filled((6,), torch.float32, content)[::2], layout="strided", shape="1-d"),
    Variant("3-d", _dense(2, 3, 3), shape="3-d"),
    Variant("3-d int", _dense(2, 3, 3, dtype=torch.int64), dtype="int64", shape="3-d"),
    Variant(
        "3-d permuted",
        lambda content: filled((3, 2, 3), torch.float32, content).permute(1, 0, 2),
        layout="transposed",
        shape="3-d",
    ),
    Variant("4-d", _dense(2, 4, 4, 4), shape="4-d"),
    Variant("5-d", _dense(1, 4, 4, 4, 4), shape="5-d"),
)

_ARRAYS = (
    *(
        Variant(short(dtype), _array(3, 3, dtype=dtype), dtype=short(dtype))
        for dtype in (torch.float64, torch.float32, torch.int64, torch.bool, torch.complex128)
    ),
    Variant("transposed", lambda content: _array(3, 3)(content).T, dtype="float64", layout="transposed"),
    Variant("strided", lambda content: _array(3, 6)(content)[:, ::2], dtype="float64", layout="strided"),
    Variant("0-d", _array(), dtype="float64", shape="0-d"),
    Variant("1-d", _array(3), dtype="float64", shape="1-d"),
    Variant("1-d strided", lambda content: _array(6)(content)[::2], dtype="float64", layout="strided", shape="1-d"),
    Variant("3-d", _array(2, 3, 3), dtype="float64", shape="3-d"),
    Variant("1 row", _array(1, 3), dtype="float64", shape="row"),
)

RECEIVERS: Mapping[str, tuple[Variant, ...]] = {
    "any": _ANY,
    "positive definite": (
        Variant("positive definite", _positive_definite),
        Variant("batch", lambda content: _positive_definite(content, 2), shape="3-d"),
    ),
    "triangular": (Variant("triangular", lambda content: torch.linalg.cholesky(_positive_definite(content))),),
    "probability": (Variant("probability", lambda content: filled((3, 3), torch.float32, content).sigmoid()),),
    "vector": tuple(variant for variant in _ANY if variant.shape == "1-d"),
    "image": (
        Variant("3-d", _dense(2, 4, 4), shape="3-d"),
        Variant("4-d", _dense(2, 4, 4, 4), shape="4-d"),
    ),
    "volume": (Variant("5-d", _dense(2, 4, 4, 4, 4), shape="5-d"),),
    "sparse": (
        Variant("sparse", lambda content: _holed(content), layout="sparse"),
        Variant("uncoalesced", lambda content: torch.cat([_holed(content)] * 2), layout="uncoalesced"),
    ),
    "csr": (Variant("csr", lambda content: _holed(content).to_sparse_csr(), layout="csr"),),
    "csc": (Variant("csc", lambda content: _holed(content).to_sparse_csc(), layout="csc"),),
    "mkldnn": (Variant("mkldnn", lambda content: filled((3, 3), torch.float32, content).to_mkldnn(), layout="mkldnn"),),
    "quantized": (
        Variant(
            "quantized",
            lambda content: torch.quantize_per_tensor(
                filled((3, 3), torch.float32, content).nan_to_num(), 0.1, 0, torch.qint8
            ),
            dtype="qint8",
        ),
    ),
    "quantized per channel": (
        Variant(
            "quantized per channel",
            lambda content: torch.quantize_per_channel(
                filled((3, 3), torch.float32, content).nan_to_num(),
                torch.full((3,), 0.1),
                torch.zeros(3, dtype=torch.int64),
                0,
                torch.qint8,
            ),
            dtype="qint8",
        ),
    ),
    "nested": (
        Variant(
            "nested",
            lambda content: torch.nested.nested_tensor(
                [filled((2, 3), torch.float32, content), filled((1, 3), torch.float32, content)]
            ),
            layout="nested",
        ),
    ),
    "complex": (
        Variant("complex64", _dense(3, 3, dtype=torch.complex64), dtype="complex64"),
        Variant(
            "conj", lambda content: filled((3, 3), torch.complex64, content).conj(), dtype="complex64", layout="conj"
        ),
    ),
    "signal": (Variant("signal", _dense(16), shape="1-d"), Variant("signals", _dense(2, 16))),
    "spectrum": (
        Variant("spectrum", lambda content: torch.stft(filled((16,), torch.float32, content), 4, return_complex=True)),
    ),
    "matrix": (BASELINE, *(variant for variant in _ANY if variant.dtype == "float64")),
    "triple": (
        Variant("3-d", _dense(2, 3, 3), shape="3-d"),
        Variant("3-d double", _dense(2, 3, 3, dtype=torch.float64)),
    ),
    "finite": (Variant("finite", lambda content: filled((3, 3), torch.float32, content).nan_to_num(1.0, 2.0, -1.0)),),
    "fold": (Variant("columns", _dense(1, 8, 9), shape="3-d"),),
    "sequence": (Variant("sequence", _dense(3, 2, 4), shape="3-d"),),
    "pairs": (Variant("pairs", _dense(3, 2)),),
    "graph": (Variant("result", lambda content: filled((3, 3), torch.float32, content).requires_grad_().clone()),),
    "leaf": (Variant("leaf", lambda content: filled((3, 3), torch.float32, content).requires_grad_()),),
    "counts": (Variant("counts", lambda content: filled((5,), torch.int64, content).abs(), dtype="int64"),),
    "array": _ARRAYS,
    "whole array": (Variant("owner", lambda content: np.array(filled((3, 3), torch.float64, content).numpy())),),
    "flat array": (
        Variant("flat", lambda content: np.clip(np.nan_to_num(_array(3)(content)), -9.0, 9.0), dtype="float64"),
    ),
    "sorted array": (Variant("sorted", lambda content: np.sort(filled((5,), torch.float64, content).numpy())),),
    "index array": (Variant("index", lambda content: filled((3,), torch.int64, content).remainder(2).numpy()),),
    "byte array": (Variant("bytes", lambda content: filled((3,), torch.uint8, content).clamp(0, 1).numpy()),),
    "regular array": (Variant("regular", lambda content: _positive_definite(content).numpy()),),
    "nothing": (Variant("nothing", lambda content: None),),
}
"""Every kind of receiver that a recipe may ask for, with its variants."""


def _holed(content: str) -> Any:
    """A sparse tensor that stores five elements, also where they are zero."""
    places = torch.tensor([[0, 0, 1, 2, 2], [0, 2, 1, 0, 2]])
    return torch.sparse_coo_tensor(places, filled((5,), torch.float32, content), (3, 3)).coalesce()


class Helpers(dict[str, Any]):
    """The names that a recipe may use, computed from the receiver `x` when asked for.

    `y` is like `x` with other content, `z` likewise; `mask`, `where` have its shape; `index` holds two positions along
    dimension 0; `positions` is an index of the shape of `x`; `every_second` is
    a mask for an array; `vector` fits its last dimension; `rand(*shape)` has its
    dtype; `whole(*values)` is an int64 tensor; `ones(*shape)`.
    """

    def __init__(self, x: Any) -> None:
        super().__init__(x=x, torch=torch, np=np, F=torch.nn.functional, whole=self.whole, rand=self.rand)
        self._x = x
        self._count = 0

    def __missing__(self, name: str) -> Any:
        method = getattr(self, "_get_" + name, None)
        if method is None:
            raise KeyError(name)
        return method()

    @staticmethod
    def whole(*values: Any) -> Any:
        """An int64 tensor of these values."""
        return torch.tensor(list(values), dtype=torch.int64)

    def rand(self, *shape: int) -> Any:
        """A fresh tensor of that shape with the receiver's dtype (float32 without a receiver)."""
        self._count += 1
        if isinstance(self._x, np.ndarray):
            dtype = torch.from_numpy(np.empty(0, self._x.dtype)).dtype
            return np.array(filled(shape, dtype, "other").numpy())
        dtype = torch.float32 if self._x is None or self._x.is_quantized else self._x.dtype
        return filled(shape, dtype, "other") * self._count if dtype != torch.bool else filled(shape, dtype, "other")

    def _get_y(self) -> Any:
        return self.rand(*self._x.shape)

    _get_z = _get_y

    def _get_mask(self) -> Any:
        mask = torch.zeros(self._x.shape, dtype=torch.bool)
        return mask.logical_not_() if mask.dim() == 0 else mask.index_fill_(-1, self.whole(0), True)

    def _get_every_second(self) -> Any:
        return np.arange(self._x.size).reshape(self._x.shape) % 2 == 0

    def _get_index(self) -> Any:
        return self.whole(0, 1)

    def _get_positions(self) -> Any:
        return torch.zeros(self._x.shape, dtype=torch.int64)

    def _get_vector(self) -> Any:
        return self.rand(self._x.shape[-1])
