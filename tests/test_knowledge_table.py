"""Looking things up in the knowledge tables."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import OUTPUT, Op, Saved


def _method(name: str) -> Op:
    op = table.tensor_method(name)
    assert op is not None
    return op


def _function(name: str) -> Op:
    op = table.function(name)
    assert op is not None
    return op


def test_the_lookup_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; from torchcopylint.knowledge import table; table.tensor_method('add_');"
        "table.function('torch.add'); table.function('numpy.add'); table.module_class('torch.nn.ReLU');"
        "table.evidence('add_');"
        "print(sorted({'torch', 'numpy', 'libcst'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"


def test_an_unknown_name_is_none() -> None:
    assert table.tensor_method("no_such_method") is None
    assert table.tensor_property("no_such_property") is None
    assert table.array_method("no_such_method") is None
    assert table.function("torch.no_such_function") is None
    assert table.function("somewhere.else_") is None
    assert table.function("") is None
    assert table.module_class("torch.nn.NoSuchModule") is None
    assert table.evidence("no_such_name") == ""


def test_a_property_is_no_method_and_a_method_no_property() -> None:
    assert table.tensor_method("data") is None
    assert table.tensor_property("data") is not None
    assert table.tensor_method("detach") is not None
    assert table.tensor_property("detach") is None


def test_assigning_to_a_property_has_a_row_of_its_own() -> None:
    op = table.tensor_property("data=")
    assert op is not None
    assert (op.shares, op.of, op.writes, op.metadata_only) == ("unversioned", 1, (0,), True)


def test_detach_is_a_versioned_view_without_a_graph() -> None:
    op = _method("detach")
    assert (op.shares, op.versioned, op.differentiable, op.reads, op.writes) == ("view", True, False, False, ())


def test_data_is_an_unversioned_alias() -> None:
    op = table.tensor_property("data")
    assert op is not None
    assert (op.shares, op.versioned, op.differentiable) == ("unversioned", False, False)


@pytest.mark.parametrize("name", ["copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "exponential_"])
def test_an_overwriting_write_says_so(name: str) -> None:
    op = _method(name)
    assert (op.writes, op.overwrites, op.metadata_only, op.reads) == ((0,), True, False, False)


@pytest.mark.parametrize("name", ["add_", "mul_", "clamp_", "relu_", "abs_", "cumsum_", "nan_to_num_"])
def test_a_write_that_needs_the_old_content_says_so(name: str) -> None:
    op = _method(name)
    assert (op.writes, op.overwrites, op.metadata_only, op.reads) == ((0,), False, False, True)


@pytest.mark.parametrize("name", ["index_fill_", "masked_fill_", "__setitem__", "index_copy_", "fill_diagonal_"])
def test_a_partial_write_neither_overwrites_nor_reads(name: str) -> None:
    op = _method(name)
    assert (op.writes, op.overwrites, op.reads) == ((0,), False, False)


@pytest.mark.parametrize(
    ("name", "bumps"),
    [
        ("detach_", False),
        ("requires_grad_", False),
        ("t_", True),
        ("squeeze_", True),
        ("resize_", True),
        ("set_", True),
    ],
)
def test_a_write_of_metadata_says_so(name: str, bumps: bool) -> None:
    op = _method(name)
    assert (op.writes, op.metadata_only, op.bumps) == ((0,), True, bumps)


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("contiguous", "layout"),
        ("float", "dtype"),
        ("long", "dtype"),
        ("to", "dtype, device"),
        ("cpu", "device"),
        ("cuda", "device"),
        ("reshape", "layout, shape"),
        ("flatten", "layout"),
    ],
)
def test_a_conditional_copy_says_on_what_it_depends(name: str, when: str) -> None:
    op = _method(name)
    assert (op.shares, op.when, op.versioned) == ("maybe", when, True)


@pytest.mark.parametrize("name", ["dim", "size", "stride", "numel", "data_ptr", "is_floating_point", "__len__"])
def test_metadata_does_not_read_the_content(name: str) -> None:
    assert not _method(name).reads


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "is_leaf", "requires_grad", "grad_fn", "ndim", "layout"])
def test_a_property_of_metadata_does_not_read_the_content(name: str) -> None:
    op = table.tensor_property(name)
    assert op is not None
    assert not op.reads


@pytest.mark.parametrize("name", ["item", "tolist", "sum", "__bool__", "equal", "isnan", "clone"])
def test_what_looks_at_the_content_reads(name: str) -> None:
    assert _method(name).reads


@pytest.mark.parametrize("name", ["chunk", "split", "unbind", "tensor_split", "hsplit", "__iter__"])
def test_several_views_at_once_are_multi(name: str) -> None:
    op = _method(name)
    assert (op.result, op.shares) == ("tensors", "multi")


@pytest.mark.parametrize(
    ("name", "apart"), [("chunk", False), ("unbind", False), ("tensor_split", True), ("hsplit", True)]
)
def test_several_views_may_be_made_one_by_one(name: str, apart: bool) -> None:
    assert _method(name).apart is apart


@pytest.mark.parametrize(
    ("name", "saves"),
    [
        ("relu", {"output"}),
        ("sigmoid", {"output"}),
        ("tanh", {"output"}),
        ("exp", {"output"}),
        ("softmax", {"output"}),
        ("sqrt", {"output"}),
        ("log", {"input"}),
        ("sin", {"input"}),
        ("prod", {"input", "output"}),
        ("std", {"input", "output"}),
        ("norm", {"output"}),
        ("add", set()),
        ("sub", set()),
        ("sum", set()),
        ("mean", set()),
        ("clone", set()),
        ("sort", {"indices"}),
        ("max(dim)", {"indices"}),
        ("masked_fill", {"other"}),
    ],
)
def test_what_backward_keeps(name: str, saves: set[str]) -> None:
    op = _method(name)
    assert op.saves >= saves if name == "norm" else op.saves == saves


def test_a_product_saves_each_factor_for_the_gradient_of_the_other() -> None:
    assert _method("mul").saved == (Saved("input", 0, (1,)), Saved("other", 1, (0,)))


def test_a_power_saves_its_output_only_for_a_tensor_exponent() -> None:
    assert Saved("output", OUTPUT, (1,)) in _method("pow").saved


def test_a_number_to_the_power_of_a_tensor_saves_the_output() -> None:
    assert "output" in table.operator("**", reflected=True).saves


def test_two_over_a_tensor_saves_neither_end() -> None:
    assert table.operator("/", reflected=True).saves == frozenset()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", "float32"),
        ("long", "int64"),
        ("double", "float64"),
        ("half", "float16"),
        ("bool", "bool"),
        ("argmax", "int64"),
        ("eq", "bool"),
        ("nonzero", "int64"),
    ],
)
def test_a_fixed_dtype_is_known(name: str, dtype: str) -> None:
    assert _method(name).dtype == dtype


def test_a_dtype_that_depends_on_the_input_is_not() -> None:
    assert _method("add").dtype == ""
    assert _method("to").dtype == ""
    assert _method("type").dtype == ""


@pytest.mark.parametrize("name", ["sum", "mean", "max", "norm", "dot", "all", "argmax"])
def test_a_reduction_without_a_dim_is_0_dim(name: str) -> None:
    assert _method(name).scalar


@pytest.mark.parametrize("name", ["matmul", "select", "cumsum", "softmax", "add"])
def test_what_keeps_a_dimension_is_not(name: str) -> None:
    assert not _method(name).scalar


@pytest.mark.parametrize("name", ["mse_loss", "cross_entropy", "nll_loss", "l1_loss", "kl_div"])
def test_a_loss_with_the_default_reduction_is_0_dim(name: str) -> None:
    assert _function(f"torch.nn.functional.{name}").scalar


@pytest.mark.parametrize("name", ["argmax", "detach", "eq", "isnan", "item", "long", "sign_"])
def test_whether_the_result_carries_the_graph(name: str) -> None:
    assert _method(name).differentiable == (name == "sign_")


def test_in_place_and_out_of_place_twins_name_each_other() -> None:
    assert _method("add").pair == "add_"
    assert _method("add_").pair == "add"
    assert _function("torch.nn.functional.relu").pair == "relu_"
    assert _method("fill_").pair == ""
    assert _method("__add__").pair == ""
    assert _method("max(dim)").pair == ""


def test_call_forms_have_rows_of_their_own() -> None:
    op = _method("max")
    assert op.forms == ("torch.Tensor.max(dim)", "torch.Tensor.max(other)")
    assert [_function(form).result for form in op.forms] == ["tensors", "tensor"]
    assert _method("max(dim)") == _function("torch.Tensor.max(dim)")


def test_basic_indexing_is_a_view_and_advanced_indexing_a_copy() -> None:
    assert _method("__getitem__").shares == "maybe"
    assert _method("__getitem__(basic)").shares == "view"
    assert _method("__getitem__(advanced)").shares == "fresh"


def test_the_overlay_adds_forms_to_generated_rows() -> None:
    assert "numpy.asarray(tensor)" in _function("numpy.asarray").forms
    array = _function("numpy.asarray(tensor)")
    assert (array.shares, array.when, array.versioned) == ("maybe", "dtype", False)


def test_the_function_form_of_a_method_finds_the_method() -> None:
    assert _function("torch.Tensor.add_") == _method("add_")
    assert table.function("torch.Tensor.data") is None


def test_keywords_are_known() -> None:
    assert _function("torch.nn.functional.relu").inplace_keyword
    assert not _function("torch.relu").inplace_keyword
    assert _function("torch.add").out_keyword
    assert not _function("torch.relu").out_keyword
    assert _function("numpy.multiply").out_keyword
    assert _function("numpy.random.Generator.random").out_keyword


def test_parameter_names_are_given_where_a_row_speaks_of_another_argument() -> None:
    assert _function("torch.nn.functional.linear").arguments[:2] == ("input", "weight")
    assert _method("mul").arguments == ("self", "other")


def test_a_conditional_write_says_on_what_it_depends() -> None:
    op = _function("torch.nn.functional.batch_norm")
    assert (op.writes, op.when, op.bumps) == ((1, 2), "mode", False)
    assert op.arguments[1:3] == ("running_mean", "running_var")


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("numpy.copyto", (0,)),
        ("numpy.put", (0,)),
        ("numpy.place", (0,)),
        ("numpy.putmask", (0,)),
        ("numpy.fill_diagonal", (0,)),
        ("numpy.random.shuffle", (0,)),
        ("numpy.random.Generator.shuffle", (1,)),
        ("numpy.nan_to_num(copy=False)", (0,)),
        ("numpy.nan_to_num", ()),
        ("random.shuffle", (0,)),
        ("numpy.add.at", (0,)),
        ("torch.nn.utils.clip_grad_norm_", ("0.grad",)),
        ("torch.nn.init.zeros_", (0,)),
    ],
)
def test_functions_that_write_an_argument(name: str, writes: tuple[int | str, ...]) -> None:
    assert _function(name).writes == writes


@pytest.mark.parametrize(
    ("name", "shares", "writes"),
    [
        ("reshape", "maybe", ()),
        ("T", "view", ()),
        ("copy", "fresh", ()),
        ("astype", "fresh", ()),
        ("sort", "fresh", (0,)),
        ("fill", "fresh", (0,)),
        ("partition", "fresh", (0,)),
        ("__iadd__", "same", (0,)),
        ("__imatmul__", "same", (0,)),
        ("__getitem__(basic)", "view", ()),
    ],
)
def test_arrays(name: str, shares: str, writes: tuple[int, ...]) -> None:
    op = table.array_method(name)
    assert op is not None
    assert (op.shares, op.writes, op.differentiable) == (shares, writes, False)


# Operators.


@pytest.mark.parametrize(
    ("symbol", "special"),
    [
        ("+", "__add__"),
        ("-", "__sub__"),
        ("*", "__mul__"),
        ("/", "__truediv__"),
        ("//", "__floordiv__"),
        ("%", "__mod__"),
        ("**", "__pow__"),
        ("@", "__matmul__"),
        ("&", "__and__"),
        ("|", "__or__"),
        ("^", "__xor__"),
        ("<<", "__lshift__"),
        (">>", "__rshift__"),
        ("==", "__eq__"),
        ("!=", "__ne__"),
        ("<", "__lt__"),
        ("<=", "__le__"),
        (">", "__gt__"),
        (">=", "__ge__"),
        ("-x", "__neg__"),
        ("+x", "__pos__"),
        ("~", "__invert__"),
    ],
)
def test_an_operator_does_what_its_special_method_does(symbol: str, special: str) -> None:
    assert _facts(table.operator(symbol)) == _facts(_method(special))


@pytest.mark.parametrize(
    ("symbol", "special"),
    [
        ("+=", "__iadd__"),
        ("-=", "__isub__"),
        ("*=", "__imul__"),
        ("/=", "__itruediv__"),
        ("//=", "__ifloordiv__"),
        ("%=", "__imod__"),
        ("**=", "__ipow__"),
        ("&=", "__iand__"),
        ("|=", "__ior__"),
        ("^=", "__ixor__"),
        ("<<=", "__ilshift__"),
        (">>=", "__irshift__"),
        ("[]=", "__setitem__"),
    ],
)
def test_an_augmented_assignment_does_what_its_special_method_does(symbol: str, special: str) -> None:
    assert _facts(table.inplace_operator(symbol)) == _facts(_method(special))
    assert table.inplace_operator(symbol).writes == (0,)


def _facts(op: Op) -> Op:
    return op._replace(name="", pair="", arguments=(), tensor_only=False, forms=())


def test_augmented_matrix_product_is_out_of_place_as_in_torch() -> None:
    assert not hasattr(torch.Tensor, "__imatmul__")
    op = table.inplace_operator("@=")
    assert (op.shares, op.writes) == ("fresh", ())


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"])
def test_a_number_may_stand_on_the_left(symbol: str) -> None:
    op = table.operator(symbol, reflected=True)
    assert (op.result, op.shares, op.writes) == ("tensor", "fresh", ())


@pytest.mark.parametrize("symbol", ["", "and", "?", "+="])
def test_a_symbol_that_is_no_operator_raises(symbol: str) -> None:
    with pytest.raises(KeyError):
        table.operator(symbol)


def test_a_symbol_that_assigns_nothing_raises() -> None:
    with pytest.raises(KeyError):
        table.inplace_operator("+")


# Modules.


def test_a_layer_with_parameters_is_stateful() -> None:
    op = table.module_class("torch.nn.Linear")
    assert op is not None
    assert (op.parameters, op.buffers, op.stateful, op.saves) == (("weight", "bias"), (), True, frozenset({"input"}))


def test_batch_norm_writes_its_buffers() -> None:
    op = table.module_class("torch.nn.BatchNorm2d")
    assert op is not None
    assert op.writes_buffers
    assert op.buffers == ("running_mean", "running_var", "num_batches_tracked")


def test_identity_and_dropout_can_return_their_input() -> None:
    identity, dropout = table.module_class("torch.nn.Identity"), table.module_class("torch.nn.Dropout")
    assert identity is not None
    assert dropout is not None
    assert (identity.shares, identity.may_be_same) == ("same", True)
    assert (dropout.shares, dropout.when, dropout.may_be_same) == ("maybe", "mode", True)


@pytest.mark.parametrize(
    ("name", "output"),
    [("LSTM", "tensors"), ("MSELoss", "scalar"), ("ReLU", "tensor"), ("MultiheadAttention", "tensors")],
)
def test_what_a_module_returns(name: str, output: str) -> None:
    op = table.module_class(f"torch.nn.{name}")
    assert op is not None
    assert op.output == output


@pytest.mark.parametrize(
    ("name", "stateful"), [("ReLU", False), ("Transformer", True), ("PReLU", True), ("Flatten", False)]
)
def test_whether_a_module_is_stateful(name: str, stateful: bool) -> None:
    op = table.module_class(f"torch.nn.{name}")
    assert op is not None
    assert op.stateful == stateful


def test_activations_accept_inplace_and_containers_are_known() -> None:
    relu, sequential = table.module_class("torch.nn.ReLU"), table.module_class("torch.nn.Sequential")
    assert relu is not None
    assert sequential is not None
    assert relu.inplace_keyword
    assert sequential.container
    assert not relu.container


def test_every_row_of_every_table_can_be_parsed() -> None:
    for file in ("tensor", "functions", "numpy", "overlay"):
        for name in table.names(file):
            op = table.function(name) or table.tensor_property(name.removeprefix("torch.Tensor."))
            assert op is not None
            assert op.shares in ("fresh", "view", "multi", "same", "maybe", "unversioned")
            assert (op.when != "") >= (op.shares == "maybe")
    for name in table.names("modules"):
        module = table.module_class(name)
        assert module is not None
        assert module.shares in ("fresh", "view", "same", "maybe")


@pytest.mark.filterwarnings("ignore")
def test_functions_that_refuse_all_but_tensors_do() -> None:
    refusing = [name for name in table.names("functions") if table.refuses_others(name)]
    others = [np.ones((2, 2), dtype=np.float32), [1.0], [torch.ones(2)], 2.0, 2, np.float32(2)]
    with_a_tensor = set()
    for name in refusing:
        called = functools.reduce(getattr, name.partition("(")[0].split(".")[1:], torch)
        for further, more in itertools.product((torch.ones(2, 2), 1), range(4)):
            with_a_tensor |= {name} if _runs(called, torch.ones(2, 2), *[further] * more) else set()
            for first in others:
                assert not _runs(called, first, *[further] * more), (name, first, further, more)
    # What does not run with a tensor either says nothing: others want arguments that are no use to all.
    assert len(with_a_tensor) > 200


def _runs(called: Callable[..., object], *arguments: object) -> bool:
    """Whether torch takes these arguments. What it refuses, it refuses by many kinds of exceptions."""
    try:
        called(*arguments)
    except Exception:
        return False
    return True
