"""Every row of `overlay.md`, executed: each has a probe, and what the probe sees must be what the row says."""

from __future__ import annotations

import copy
import io
import random
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import einops
import numpy as np
import pytest
import torch
from test_knowledge_observer import Call, contradictions, parts, place, shared, watch
from torch import nn

from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op

Probe = Callable[[Op], None]
PROBES: dict[str, Probe] = {}


def probe(*names: str) -> Callable[[Probe], Probe]:
    """Registers a probe for rows whose facts need more than calls to be watched."""

    def register(function: Probe) -> Probe:
        PROBES.update(dict.fromkeys(names, function))
        return function

    return register


def calls(name: str, *ways: Callable[[], Call]) -> None:
    """Registers a probe for a row that some watched calls must bear out."""

    def check(op: Op) -> None:
        assert not contradictions(op, [way() for way in ways])

    PROBES[name] = check


def _ones(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    tensor = torch.ones(*shape, dtype=dtype)
    return tensor.requires_grad_().clone() if grad else tensor


def _array(dtype: str = "float32") -> Any:
    return np.ones((2, 2), dtype=dtype)


def _grad() -> torch.Tensor:
    return _ones(2, 2, grad=True)


# Tensors from other data.

calls("torch.from_numpy", lambda: watch(torch.from_numpy, _array()), lambda: watch(torch.from_numpy, _array("int64")))
calls("torch.frombuffer", lambda: watch(lambda array: torch.frombuffer(array, dtype=torch.float32), _array()))
calls("torch.from_dlpack", lambda: watch(torch.from_dlpack, _ones(2)), lambda: watch(torch.from_dlpack, _array()))
calls("torch.nn.Buffer", lambda: watch(nn.Buffer, _ones(2)), lambda: watch(nn.Buffer, _grad()))
calls("torch.nn.Parameter", lambda: watch(nn.Parameter, _ones(2)), lambda: watch(nn.Parameter, _grad()))
calls("torch.autograd.Variable", lambda: watch(torch.autograd.Variable, _ones(2)), lambda: watch(_variable, _grad()))

for _function in (torch.as_tensor, torch.asarray):
    _name = f"torch.{_function.__name__}"
    _tensor = (
        lambda function=_function: watch(function, _grad()),
        lambda function=_function: watch(function, _ones(2), dtype=torch.float64),
    )
    _of_array = (
        lambda function=_function: watch(function, _array()),
        lambda function=_function: watch(function, _array(), dtype=torch.float64),
    )
    _of_list = (lambda function=_function: watch(function, [1.0, 2.0]),)
    calls(f"{_name}(tensor)", *_tensor)
    calls(f"{_name}(array)", *_of_array)
    calls(f"{_name}(list)", *_of_list)
    calls(_name, *_tensor, *_of_array, *_of_list)


def _variable(tensor: torch.Tensor) -> Any:
    return torch.autograd.Variable(tensor)


_LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
for _legacy, _dtype in _LEGACY.items():
    calls(
        f"torch.{_legacy}",
        lambda name=_legacy, dtype=_dtype: watch(getattr(torch, name), _array(dtype)),
        lambda name=_legacy, dtype=_dtype: watch(getattr(torch, name), _ones(2, dtype=getattr(torch, dtype))),
        lambda name=_legacy, dtype=_dtype: watch(
            getattr(torch, name), _array("float32" if dtype != "float32" else "int64")
        ),
        lambda name=_legacy: watch(getattr(torch, name), [1, 0]),
    )
calls(
    "torch.BFloat16Tensor",
    lambda: watch(torch.BFloat16Tensor, _ones(2, dtype=torch.bfloat16)),
    lambda: watch(torch.BFloat16Tensor, _array()),
    lambda: watch(torch.BFloat16Tensor, [1, 0]),
)
calls(
    "torch.Tensor(tensor)",
    *(lambda dtype=dtype: watch(torch.Tensor, _ones(2, dtype=dtype)) for dtype in (torch.float32, torch.int64)),
    lambda: watch(torch.Tensor, _grad()),
)
calls("torch.Tensor(array)", lambda: watch(torch.Tensor, _array()), lambda: watch(torch.Tensor, _array("float64")))
calls("torch.Tensor(list)", lambda: watch(torch.Tensor, [1, 2]))
calls(
    "torch.Tensor",
    lambda: watch(torch.Tensor, _ones(2)),
    lambda: watch(torch.Tensor, _array()),
    lambda: watch(torch.Tensor, _array("float64")),
    lambda: watch(torch.Tensor, [1, 2]),
)
calls(
    "torch.Tensor.new",
    lambda: watch(torch.Tensor.new, _ones(2), _ones(2)),
    lambda: watch(torch.Tensor.new, _ones(2), _array()),
    lambda: watch(torch.Tensor.new, _ones(2), _array("float64")),
    lambda: watch(torch.Tensor.new, _ones(2), [1.0, 2.0]),
)


@probe("torch.to_dlpack", "torch.Tensor.__dlpack__")
def _capsule(op: Op) -> None:
    tensor = _ones(2)
    capsule = tensor.__dlpack__() if op.name.startswith("torch.Tensor") else torch.to_dlpack(tensor)
    window = torch.from_dlpack(capsule)
    window[0] = 7
    assert tensor[0] == 7
    assert tensor._version == 0
    assert (op.result, op.shares, op.versioned) == ("object", "unversioned", False)


@probe("torch.load", "torch.save")
def _file(op: Op) -> None:
    tensor, file = _ones(2), io.BytesIO()
    assert torch.save(tensor, file) is None
    file.seek(0)
    loaded = torch.load(file)
    assert not shared(loaded, tensor)
    assert op.shares == "fresh"
    assert not op.writes


# Devices, attributes, autograd.


@probe("torch.Tensor.cuda", "torch.Tensor.xpu", "torch.Tensor.mtia", "torch.Tensor.ipu", "torch.Tensor.pin_memory")
def _device(op: Op) -> None:
    """With such a device, the second move must do nothing. Without, the move is refused, which is all that can be
    executed, and torch's own schema must speak of an alias that is not written."""
    move = getattr(torch.Tensor, op.name.rpartition(".")[2])
    try:
        there = move(_ones(2))
    except (RuntimeError, AssertionError, NotImplementedError):
        schemas = [str(schema) for schema in torch._C._jit_get_schemas_for_operator(f"aten::{move.__name__}")]
        assert all(text.partition("->")[0].count("(a)") and text.endswith("a)") for text in schemas)
    else:
        assert move(there) is there
    assert (op.shares, op.when, op.may_be_same) == ("maybe", "device", True)


@probe("torch.Tensor.record_stream")
def _stream(op: Op) -> None:
    schemas = [str(schema) for schema in torch._C._jit_get_schemas_for_operator("aten::record_stream")]
    assert schemas
    assert all(text.endswith("-> ()") for text in schemas)
    assert (op.result, op.reads) == ("none", False)


calls(
    "torch.Tensor.numpy(force)",
    lambda: watch(lambda tensor: tensor.numpy(force=True), _grad()),
    lambda: watch(lambda tensor: tensor.numpy(force=True), _ones(2, dtype=torch.complex64).conj()),
)
calls("torch.Tensor.backward", lambda: watch(lambda tensor: tensor.sum().backward(), _grad()))
calls("torch.Tensor.set_", lambda: watch(torch.Tensor.set_, _ones(2), _ones(3)))


@probe("torch.Tensor.set_", "torch.Tensor.data=")
def _takes_over(op: Op) -> None:
    receiver, value = _ones(2), _ones(2)
    call = watch(torch.Tensor.set_ if op.result == "self" else _assign("data"), receiver, value)
    assert not call.written
    assert call.reshaped == {0} == set(op.writes)
    assert op.metadata_only
    assert bool(call.bumped) == op.bumps
    assert shared(receiver, value)
    version = value._version
    receiver.add_(1)
    assert value._version == version
    assert (op.shares, op.of) == ("unversioned", 1)


def _assign(attribute: str) -> Callable[[Any, Any], None]:
    return lambda receiver, value: setattr(receiver, attribute, value)


@probe("torch.Tensor.grad")
def _gradient(op: Op) -> None:
    leaf = torch.ones(2, requires_grad=True)
    (leaf * 2).sum().backward()
    assert leaf.grad is leaf.grad
    assert not shared(leaf.grad, leaf)
    assert leaf.grad.grad_fn is None
    assert (op.result, op.shares, op.differentiable) == ("tensor", "fresh", False)


@probe("torch.Tensor.grad=")
def _gradient_assigned(op: Op) -> None:
    leaf, gradient = torch.ones(2, requires_grad=True), torch.ones(2)
    call = watch(_assign("grad"), leaf, gradient)
    assert not call.written
    assert not call.bumped
    assert leaf.grad is gradient
    assert (op.shares, op.of, op.writes, op.metadata_only, op.bumps) == ("same", 1, (0,), True, False)


@probe("torch.Tensor.requires_grad=")
def _flag(op: Op) -> None:
    call = watch(_assign("requires_grad"), _ones(2), True)
    assert (call.written, call.bumped, call.reshaped) == (set(), set(), {0})
    assert (op.writes, op.metadata_only, op.bumps) == ((0,), True, False)


calls("torch.Tensor.real=", lambda: watch(_assign("real"), _ones(2, dtype=torch.complex64), torch.zeros(2)))
calls("torch.Tensor.imag=", lambda: watch(_assign("imag"), _ones(2, dtype=torch.complex64), _ones(2)))


@probe("torch.utils.swap_tensors")
def _swap(op: Op) -> None:
    left, right = _ones(2), torch.zeros(3)
    was = place(left), place(right)
    call = watch(torch.utils.swap_tensors, left, right)
    assert (place(right), place(left)) == was
    assert call.reshaped == {0, 1} == set(op.writes)
    assert op.metadata_only


# Copies.

calls("copy.copy(tensor)", lambda: watch(copy.copy, _ones(2)), lambda: watch(copy.copy, _grad()))
calls("numpy.squeeze(tensor)", lambda: watch(np.squeeze, torch.ones(2, 1)), lambda: watch(np.squeeze, _grad()))
calls(
    "numpy.swapaxes(tensor)",
    lambda: watch(lambda x: np.swapaxes(x, 0, 1), torch.ones(2, 3)),
    lambda: watch(lambda x: np.swapaxes(x, 0, 1), _ones(2, 3, grad=True)),
)
calls("copy.copy(array)", lambda: watch(copy.copy, _array()))
calls(
    "copy.copy",
    lambda: watch(copy.copy, _ones(2)),
    lambda: watch(copy.copy, _array()),
    lambda: watch(copy.copy, _grad()),
)
calls("copy.copy(list)", lambda: watch(copy.copy, [_ones(2), _ones(3)]))
calls("copy.copy(module)", lambda: watch(copy.copy, nn.BatchNorm1d(3)))
calls(
    "copy.deepcopy",
    lambda: watch(copy.deepcopy, _ones(2)),
    lambda: watch(copy.deepcopy, _array()),
    lambda: watch(copy.deepcopy, [_ones(2)]),
    lambda: watch(copy.deepcopy, nn.BatchNorm1d(3)),
)

# torch.nn helpers.

_INIT = {"constant": (2.0,), "sparse": (0.5,), "uniform": (), "normal": (), "eye": (), "orthogonal": ()}


def _initialised(name: str, start: float) -> Call:
    function = getattr(nn.init, name)
    tensor = torch.full((3, 3, 3) if name.startswith("dirac") else (3, 3), start)
    torch.manual_seed(0)
    return watch(function, tensor, *_INIT.get(name.removesuffix("_"), ()))


@probe(*(name for name in table.names("overlay") if name.startswith("torch.nn.init.")))
def _init(op: Op) -> None:
    name = op.name.rpartition(".")[2]
    one, other = _initialised(name, 7.0), _initialised(name, 8.0)
    assert torch.equal(one.result, other.result)
    assert op.overwrites
    parameter = nn.Parameter(torch.ones(3, 3, 3) if name.startswith("dirac") else torch.ones(3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert getattr(nn.init, name)(parameter, *_INIT.get(name.removesuffix("_"), ())) is parameter
    assert parameter.is_leaf
    assert not contradictions(op._replace(differentiable=False), [one, other])


def _clip(name: str) -> tuple[Any, torch.Tensor, int]:
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.full((2,), 5.0)
    version = parameter.grad._version
    function = getattr(nn.utils, name)
    extra = (0.1, torch.tensor(9.0)) if name == "clip_grads_with_norm_" else (0.1,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = watch(lambda value: function(value, *extra), [parameter])
    assert not result.written
    return result.result, parameter.grad, version


@probe(*(name for name in table.names("overlay") if name.startswith("torch.nn.utils.clip_grad")))
def _clipping(op: Op) -> None:
    result, gradient, version = _clip(op.name.rpartition(".")[2])
    assert not torch.equal(gradient, torch.full((2,), 5.0))
    assert gradient._version > version
    assert op.bumps
    assert op.writes == ("0.grad",)
    assert (op.result == "none") == (result is None)
    assert op.scalar == (result is not None and result.dim() == 0)


calls(
    "torch.nn.utils.get_total_norm",
    lambda: watch(nn.utils.get_total_norm, [_ones(2)]),
    lambda: watch(nn.utils.get_total_norm, [_grad()]),
)
calls("torch.nn.utils.parameters_to_vector", lambda: watch(nn.utils.parameters_to_vector, [_ones(2), _grad()]))
NESTED = {
    "torch.nested.nested_tensor": torch.nested.nested_tensor,
    "torch.nested.as_nested_tensor(list)": torch.nested.as_nested_tensor,
}


@probe(*NESTED)
def _nested(op: Op) -> None:
    given = [_ones(2), _ones(3, grad=True)]
    made = NESTED[op.name](given, layout=torch.jagged)
    made.detach().unbind()[0].zero_()
    assert given[0].sum().item() == 2.0
    assert made.unbind()[0].sum().item() == 0.0
    assert made.requires_grad is op.name.endswith("(list)")


calls("torch.nn.utils.rnn.pad_sequence", lambda: watch(nn.utils.rnn.pad_sequence, [_ones(2), _ones(3, grad=True)]))
calls(
    "torch.nn.Embedding.from_pretrained",
    lambda: watch(nn.Embedding.from_pretrained, _ones(3, 2)),
    lambda: watch(lambda table: nn.Embedding.from_pretrained(table, freeze=False), _ones(3, 2)),
)
calls("torch.nn.EmbeddingBag.from_pretrained", lambda: watch(nn.EmbeddingBag.from_pretrained, _ones(3, 2)))
calls("torch.testing.assert_close", lambda: watch(torch.testing.assert_close, _ones(2), _ones(2)))


@probe("torch.nn.utils.vector_to_parameters")
def _vector(op: Op) -> None:
    vector, parameter = torch.ones(4), nn.Parameter(torch.zeros(2, 2))
    call = watch(nn.utils.vector_to_parameters, vector, [parameter])
    assert (call.written, call.bumped, call.reshaped) == (set(), set(), {1})
    assert (op.writes, op.metadata_only, op.bumps) == ((1,), True, False)
    assert shared(vector, parameter)
    version = vector._version
    with torch.no_grad():
        parameter.add_(1)
    assert vector._version == version
    assert vector[0] == 2
    assert (op.shares, op.of) == ("unversioned", 0)


# torch.utils.data.

_data = torch.utils.data
calls(
    "torch.utils.data.default_collate",
    lambda: watch(_data.default_collate, [_ones(2), _ones(2)]),
    lambda: watch(_data.default_collate, [_array()]),
    lambda: watch(_data.default_collate, [_grad()]),
)
calls(
    "torch.utils.data.default_convert(tensor)",
    lambda: watch(_data.default_convert, _ones(2)),
    lambda: watch(_data.default_convert, _grad()),
)
calls("torch.utils.data.default_convert(array)", lambda: watch(_data.default_convert, _array()))
calls(
    "torch.utils.data.default_convert",
    lambda: watch(_data.default_convert, _ones(2)),
    lambda: watch(_data.default_convert, _array()),
    lambda: watch(_data.default_convert, _grad()),
)


@probe("torch.utils.data.TensorDataset")
def _dataset(op: Op) -> None:
    left, right = _ones(2, 3), _ones(2)
    dataset = _data.TensorDataset(left, right)
    assert dataset.tensors[0] is left
    assert dataset.tensors[1] is right
    sample = watch(lambda tensor: _data.TensorDataset(tensor)[0], left)
    assert sample.relations == [("view", 0)]
    assert (op.shares, op.of) == ("same", "*")


@probe("torch.utils.data.Subset", "torch.utils.data.ConcatDataset", "torch.utils.data.random_split")
def _keeps(op: Op) -> None:
    dataset = _data.TensorDataset(_ones(2))
    kept: Any = {
        "Subset": lambda: _data.Subset(dataset, [0]).dataset,
        "ConcatDataset": lambda: _data.ConcatDataset([dataset]).datasets[0],
        "random_split": lambda: _data.random_split(dataset, [1, 1])[0].dataset,
    }[op.name.rpartition(".")[2]]()
    assert kept is dataset
    assert op.shares == "same"


# numpy and the standard library.


@probe("numpy.ndarray.resize")
def _resize(op: Op) -> None:
    array = np.ones(2)
    # The call must hold no further reference to the array, or numpy refuses.
    assert array.resize(3, refcheck=False) is None
    assert array.tolist() == [1.0, 1.0, 0.0]
    assert (op.result, op.writes, op.metadata_only) == ("none", (0,), True)


@probe("numpy.ndarray.flat", "numpy.ndarray.data")
def _window(op: Op) -> None:
    array = np.ones(2)
    getattr(array, op.name.rpartition(".")[2])[0] = 7
    assert array[0] == 7
    assert op.shares == "view"


@probe("numpy.unravel_index")
def _as_the_index_is(op: Op) -> None:
    rows, _ = np.unravel_index(np.argmax(np.ones((2, 2))), (2, 2))
    assert not isinstance(rows, np.ndarray)
    rows, _ = np.unravel_index(np.array([1, 2]), (2, 2))
    assert isinstance(rows, np.ndarray)
    assert op.result == "object"


@probe("numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile")
def _reads_a_file(op: Op) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"1 2\n3 4\n" if op.name != "numpy.fromfile" else np.ones(4).tobytes())
        file.seek(0)
        array = getattr(np, op.name.rpartition(".")[2])(file)
    assert type(array) is np.ndarray
    assert array.size == 4
    assert array.flags.writeable
    assert op.result == "array"
    assert op.shares == "fresh"


@probe("numpy.ndarray.base")
def _base(op: Op) -> None:
    array = np.ones(4)
    assert array[:2].base is array
    assert array.base is None
    assert op.shares == "view"


for _numpy in ("asarray", "asanyarray", "ascontiguousarray", "from_dlpack", "array"):
    calls(f"numpy.{_numpy}(tensor)", lambda name=_numpy: watch(getattr(np, name), _ones(2, 2)))
for _ufunc in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
    calls(
        f"numpy.{_ufunc}.at",
        lambda name=_ufunc: watch(lambda array: getattr(np, name).at(array, [0, 0], 3.0), np.ones(2)),
        lambda name=_ufunc: watch(lambda array: getattr(np, name).at(array, [0, 0], 0.5), np.ones(2)),
    )


@probe("random.shuffle")
def _shuffle(op: Op) -> None:
    tensor = torch.arange(12.0).reshape(6, 2)
    random.seed(1)
    call = watch(random.shuffle, tensor)
    assert call.result is None
    assert call.written == {0} == set(op.writes)
    # Rows are views, so a swap of rows loses one: some row is there twice.
    assert len({tuple(row.tolist()) for row in tensor}) < 6


# OpenCV, where it is installed.

_CORNERS = np.array([[0, 0], [6, 0], [6, 6]], dtype="int32")
_DRAWING: dict[str, tuple[Any, ...]] = {
    "rectangle": ((0, 0), (6, 6)),
    "circle": ((4, 4), 2),
    "line": ((0, 0), (6, 6)),
    "arrowedLine": ((0, 0), (6, 6)),
    "ellipse": ((4, 4), (2, 2), 0, 0, 360),
    "polylines": ([_CORNERS], True),
    "fillPoly": ([_CORNERS],),
    "fillConvexPoly": (_CORNERS,),
    "drawContours": ([_CORNERS], -1),
    "drawMarker": ((4, 4),),
    "putText": ("x", (0, 7), 0, 1.0),
}


@probe(*(name for name in table.names("overlay") if name.startswith("cv2.")))
def _drawing(op: Op) -> None:
    name = op.name.rpartition(".")[2]
    function = getattr(pytest.importorskip("cv2"), name)
    image = np.zeros((8, 8, 3), dtype="uint8")
    assert function(image, *_DRAWING[name], (255, 0, 0)) is image
    assert image.any()
    assert op.writes == (0,)
    assert op.shares == "same"


# einops.

calls(
    "einops.rearrange",
    lambda: watch(lambda x: einops.rearrange(x, "a b -> b a"), _grad()),
    lambda: watch(lambda x: einops.rearrange(x, "a b -> a b"), _ones(2, 2)),
    lambda: watch(lambda x: einops.rearrange(x, "a b -> (b a)"), _ones(2, 2)),
)
calls(
    "einops.repeat",
    lambda: watch(lambda x: einops.repeat(x, "a b -> a b c", c=2), _grad()),
    lambda: watch(lambda x: einops.repeat(x, "a b -> a b"), _ones(2, 2)),
    lambda: watch(lambda x: einops.repeat(x, "a b -> (a c) b", c=2), _ones(2, 2)),
)
calls(
    "einops.repeat(grouped)",
    lambda: watch(lambda x: einops.repeat(x, "a b -> (a c) b", c=2), _grad()),
    lambda: watch(lambda x: einops.repeat(x, "a 1 b -> (c a) b", c=2), _ones(2, 1, 2)),
)
calls(
    "einops.rearrange(array)",
    lambda: watch(lambda x: einops.rearrange(x, "a b -> b a"), np.ones((2, 2))),
    lambda: watch(lambda x: einops.rearrange(x, "a b -> a b"), np.ones((2, 2))),
    lambda: watch(lambda x: einops.rearrange(x, "a b -> (b a)"), np.ones((2, 2))),
)
calls(
    "einops.repeat(array)",
    lambda: watch(lambda x: einops.repeat(x, "a b -> a b c", c=2), np.ones((2, 2))),
    lambda: watch(lambda x: einops.repeat(x, "a b -> a b"), np.ones((2, 2))),
)
calls(
    "einops.reduce(array)",
    lambda: watch(lambda x: einops.reduce(x, "a b -> a", "sum"), np.ones((2, 2))),
    lambda: watch(lambda x: einops.reduce(x, "a b -> a b", "sum"), np.ones((2, 2))),
)
calls(
    "einops.reduce",
    lambda: watch(lambda x: einops.reduce(x, "a b -> a", "sum"), _grad()),
    lambda: watch(lambda x: einops.reduce(x, "a b -> a b", "sum"), _ones(2, 2)),
)


@pytest.mark.parametrize("name", table.names("overlay"))
def test_an_overlay_row_says_what_happens(name: str) -> None:
    assert name in PROBES, "add a probe: a row that nothing executes is not allowed"
    op = table.function(name) or table.tensor_property(name.removeprefix("torch.Tensor."))
    assert op is not None
    PROBES[name](op)


def test_every_probe_belongs_to_a_row() -> None:
    assert sorted(PROBES.keys() - set(table.names("overlay"))) == []


@pytest.mark.parametrize("name", table.names("overlay"))
def test_an_overlay_row_gives_its_reason(name: str) -> None:
    op = table.function(name) or table.tensor_property(name.removeprefix("torch.Tensor."))
    assert op is not None
    assert op.reason


def test_parts_of_a_module_are_its_parameters_and_buffers() -> None:
    assert len(parts(nn.BatchNorm1d(3))) == 5
