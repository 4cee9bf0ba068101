"""How to call the methods of a tensor and the functions of `torch`: recipes, grouped by their arguments.

A recipe is the source of the arguments after the receiver; `samples.Helpers` lists the names it may use. A name may
stand in several groups. An in-place twin without a recipe of its own (`add_`) takes that of its base (`add`).
"""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Operations that are called alike."""

    recipe: str
    names: str
    """Separated by blanks; without `torch.`."""
    receiver: str = "any"
    """A key of `samples.RECEIVERS`."""
    form: str = ""
    """Names a call form that gets a row of its own, if its facts differ: `dim` gives `max(dim)`."""


METHODS = (
    # Elementwise, one argument.
    Group(
        "",
        "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj "
        "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 lgamma log log10 "
        "log1p log2 logit neg negative positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh "
        "sqrt square tan tanh trunc nan_to_num hardshrink resolve_conj resolve_neg bitwise_not logical_not "
        "isfinite isinf isnan isneginf isposinf isreal signbit frexp clone contiguous detach",
    ),
    Group("0.1", "logit"),
    Group("1", "mvlgamma polygamma", "any"),
    Group("1", "mvlgamma", "positive definite"),
    # Elementwise, two or more.
    Group(
        "y",
        "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power atan2 "
        "arctan2 hypot copysign fmax fmin maximum minimum logaddexp logaddexp2 xlogy igamma igammac nextafter "
        "heaviside eq ne not_equal lt less le less_equal gt greater ge greater_equal logical_and logical_or "
        "logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm ldexp isclose allclose equal is_same_size is_set_to "
        "dist copy_ clamp clamp_min clamp_max clip view_as expand_as reshape_as type_as",
    ),
    Group(
        "2",
        "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power copysign eq "
        "ne not_equal lt less le less_equal gt greater ge greater_equal bitwise_and bitwise_or bitwise_xor xlogy "
        "copy_ fill_ clamp_min clamp_max",
    ),
    Group("y, rounding_mode='floor'", "div divide", form="rounding_mode"),
    Group("1", "pow norm"),
    Group("float('inf')", "norm"),
    Group("y, 1", "dist"),
    Group("1", "bitwise_left_shift bitwise_right_shift"),
    Group("whole(1)", "bitwise_left_shift bitwise_right_shift"),
    Group("rand()", "fill_"),
    Group("0.2, 0.7", "clamp clip"),
    Group("y, z", "addcdiv addcmul lerp clamp clip"),
    Group("y, 0.5", "lerp"),
    Group("2.0, 0, 1.0", "renorm"),
    # Reductions.
    Group(
        "",
        "sum nansum mean nanmean prod std var norm all any argmax argmin max min amax amin aminmax median nanmedian "
        "logdet count_nonzero trace hash_tensor mode numel nelement",
    ),
    Group("-1", "max min median nanmedian", form="dim"),
    Group("y", "max min", form="other"),
    Group(
        "dim=-1", "sum nansum mean nanmean prod std var all any argmax argmin amax amin aminmax norm mode", form="dim"
    ),
    Group("dim=-1", "count_nonzero", form="dim"),
    Group("-1", "logsumexp"),
    Group("0.5", "quantile nanquantile"),
    Group("0.5, 0", "quantile nanquantile", form="dim"),
    Group("1", "kthvalue"),
    Group("-1", "cummax cummin cumprod cumsum logcumsumexp softmax log_softmax"),
    # Sorting and searching.
    Group("", "sort argsort msort nonzero argwhere unique unique_consecutive histc"),
    Group("", "bincount", "counts"),
    Group("2", "topk"),
    Group("5, 0.0, 1.0", "histc"),
    Group("size=4", "nonzero_static"),
    Group("2", "histogram", "vector"),
    Group("as_tuple=True", "nonzero", form="as_tuple"),
    Group("True, True", "unique unique_consecutive", form="return_inverse"),
    # Views and shapes.
    Group(
        "",
        "t adjoint diagonal squeeze ravel flatten unbind view_as_real diag tril triu diagflat diag_embed fliplr flipud "
        "rot90 diff cov corrcoef",
    ),
    Group("0, 1", "transpose swapaxes swapdims movedim moveaxis"),
    Group("-1", "view reshape", form=""),
    Group("x.shape", "view reshape expand broadcast_to sum_to_size"),
    Group("x.dtype", "view"),
    Group("x.shape[1:]", "sum_to_size"),
    Group("2, *x.shape", "expand"),
    Group("(2, *x.shape)", "broadcast_to repeat tile"),
    Group("*range(x.dim() - 1, -1, -1)", "permute"),
    Group("0", "unsqueeze"),
    Group("0, 0, 2", "narrow narrow_copy"),
    Group("0, 1", "select"),
    Group("0, [1, -1]", "unflatten"),
    Group("-1, 2, 1", "unfold"),
    Group("3", "chunk tensor_split unsafe_chunk"),
    Group("2", "split unsafe_split"),
    Group("[1, x.shape[0] - 1]", "split_with_sizes unsafe_split_with_sizes split"),
    Group("[1]", "hsplit vsplit dsplit tensor_split"),
    Group("(2, 2), (2, 1)", "as_strided", "any"),
    Group("1", "roll"),
    Group("(0,)", "flip"),
    Group("2", "repeat_interleave"),
    Group("x.clone()", "slice_inverse"),
    Group("(2, 3)", "new_empty new_ones new_zeros resize_"),
    Group("*x.shape[::-1]", "resize"),
    Group("(2, 3), 4", "new_full"),
    Group("(2, 3), (3, 1)", "new_empty_strided"),
    Group("[1.0, 2.0]", "new_tensor"),
    Group("y", "resize_as"),
    Group("rand(2, 2)", "resize_as_", "matrix"),
    # Indexing.
    Group("0, index", "index_select"),
    Group("0, index, rand(2, *x.shape[1:])", "index_add index_copy"),
    Group("0, index, rand(2, *x.shape[1:]), 'amax'", "index_reduce"),
    Group("0, index, 2", "index_fill"),
    Group("(index,), rand(2, *x.shape[1:])", "index_put"),
    Group("0, positions", "gather"),
    Group("0, positions, y", "scatter scatter_add"),
    Group("0, positions, 2", "scatter"),
    Group("0, positions, y, 'sum'", "scatter_reduce"),
    Group("mask", "masked_select"),
    Group("mask, 2", "masked_fill"),
    Group("mask, y", "masked_scatter"),
    Group("index", "take"),
    Group("positions, 0", "take_along_dim"),
    Group("index, rand(2)", "put"),
    Group("rand(*x.shape[1:]), 0, 1", "select_scatter"),
    Group("rand(*x.shape[1:]).unsqueeze(0), 0, 0, 1", "slice_scatter"),
    Group("rand(3)", "diagonal_scatter"),
    Group("rand(2, 2), (2, 2), (2, 1)", "as_strided_scatter"),
    Group("2", "fill_diagonal_"),
    Group("mask, y", "where"),
    # Products and linear algebra.
    # Where batches must be broadcast, a copy is saved: an exception that is left out.
    Group("rand(x.shape[-1], 3)", "matmul mm"),
    Group("rand(x.shape[0], x.shape[-1], 3)", "bmm matmul", "triple"),
    Group("vector", "mv matmul"),
    Group("y", "dot vdot inner outer ger cross kron"),
    Group("rand(2, 3, 3), rand(2, 3, 3)", "addbmm baddbmm"),
    Group("rand(3, 3), rand(3, 3)", "addmm _addmm_activation"),
    Group("rand(3, 3), rand(3)", "addmv"),
    Group("rand(3), rand(3)", "addr"),
    Group("2", "matrix_power"),
    Group("0", "matrix_power"),
    Group("", "matrix_exp pinverse inverse det slogdet svd qr geqrf cholesky cholesky_inverse", "positive definite"),
    Group("", "logdet", "positive definite"),
    Group("rand(3, 3)", "cholesky_solve", "triangular"),
    Group("torch.eye(3)", "triangular_solve", "positive definite"),
    Group("*torch.linalg.lu_factor(torch.eye(3))", "lu_solve"),
    Group("", "lu", "positive definite"),
    Group("rand(3)", "orgqr", "any"),
    Group("rand(3), rand(3, 3)", "ormqr"),
    # Random numbers.
    Group("", "cauchy_ exponential_ log_normal_ normal_ random_ uniform_ bernoulli_"),
    Group("", "bernoulli", "probability"),
    Group("1", "multinomial", "probability"),
    Group("0.5", "geometric_ bernoulli_"),
    # Dtypes, layouts, devices.
    Group(
        "",
        "bfloat16 bool byte cdouble cfloat chalf char double float half int long short cpu to_dense to_sparse "
        "to_sparse_coo to_sparse_csr to_sparse_csc to_mkldnn dequantize share_memory_ requires_grad_ detach_ zero_",
    ),
    Group("(1, 1)", "to_sparse_bsr to_sparse_bsc"),
    Group("torch.float32", "to type"),
    Group("torch.float64", "to type"),
    Group("'cpu'", "to"),
    Group("y", "to"),
    Group("torch.ones(1)", "type_as"),
    Group("", "type", form="string"),
    Group("", "int_repr q_scale q_zero_point qscheme dequantize", "quantized"),
    Group("", "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points", "quantized per channel"),
    Group("", "indices values coalesce to_dense is_coalesced sparse_dim dense_dim clone detach", "sparse"),
    Group("", "crow_indices col_indices values to_dense", "csr"),
    Group("", "ccol_indices row_indices", "csc"),
    Group("", "to_dense", "mkldnn"),
    Group("0.0", "to_padded_tensor", "nested"),
    Group("", "unbind", "nested"),
    Group("(4, 4), 2, 0", "sparse_resize_ sparse_resize_and_clear_", "sparse"),
    Group("torch.cat([x, x])", "resize_as_sparse_", "sparse"),
    Group("x.clone()", "sparse_mask", "sparse"),
    Group("rand(3, 3)", "smm", "sparse"),
    Group("x.clone(), rand(3, 3)", "sspaddmm", "sparse"),
    # Metadata and plain values.
    Group(
        "",
        "dim ndimension size stride storage_offset element_size data_ptr const_data_ptr dim_order get_device "
        "is_complex is_conj is_contiguous is_distributed is_floating_point is_inference is_neg is_pinned is_signed "
        "is_shared sparse_dim dense_dim storage_type item tolist is_nonzero untyped_storage storage numpy",
    ),
    Group("", "retain_grad", "graph"),
    Group("", "detach_", "graph"),
    Group("lambda gradient: None", "register_hook", "graph"),
    Group("lambda leaf: None", "register_post_accumulate_grad_hook", "leaf"),
    Group("y", "module_load"),
    Group("y, z, lambda one, other, third: one + third", "map2_"),
    Group("0", "size stride"),
    Group("lambda value: value + 1", "apply_"),
    Group("y, lambda one, other: one + other", "map_"),
    Group("torch.Tensor", "as_subclass"),
    # Transforms.
    Group("4, hop_length=2, return_complex=True, window=torch.ones(4)", "stft", "signal"),
    Group("4", "istft", "spectrum"),
    Group("rand(1)", "prelu"),
)
"""For methods of `torch.Tensor`, and for functions `torch.<name>` that take the same arguments after the tensor."""

SPECIAL = (
    Group(
        "",
        "__abs__ __neg__ __pos__ __invert__ __len__ __bool__ __float__ __int__ __complex__ __index__ __hash__ "
        "__repr__ __array__ __iter__ __reversed__ __dlpack_device__",
    ),
    Group(
        "y",
        "__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __and__ __or__ __xor__ __lshift__ "
        "__rshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __iadd__ __isub__ __imul__ __itruediv__ "
        "__ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__",
    ),
    Group(
        "2",
        "__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __and__ __or__ __xor__ __lshift__ "
        "__rshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __radd__ __rsub__ __rmul__ __rtruediv__ "
        "__rfloordiv__ __rmod__ __rpow__ __rand__ __ror__ __rxor__ __rlshift__ __rrshift__ __contains__ "
        "__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ "
        "__ilshift__ __irshift__",
    ),
    Group("1", "__pow__ __ipow__"),
    Group("rand(x.shape[-1], 3)", "__matmul__"),
    Group("vector", "__matmul__"),
    Group("rand(3, x.shape[0])", "__rmatmul__", "matrix"),
    Group("{}", "__deepcopy__"),
    Group("''", "__format__"),
    Group("0", "__getitem__"),
    Group("slice(0, 2)", "__getitem__"),
    Group("index", "__getitem__"),
    Group("mask", "__getitem__"),
    Group("0", "__getitem__", form="basic"),
    Group("slice(0, 2)", "__getitem__", form="basic"),
    Group("...", "__getitem__", form="basic"),
    Group("None", "__getitem__", form="basic"),
    Group("(slice(None), 0)", "__getitem__", form="basic"),
    Group("index", "__getitem__", form="advanced"),
    Group("mask", "__getitem__", form="advanced"),
    Group("[0, 1]", "__getitem__", form="advanced"),
    Group("(slice(None), [0, 1])", "__getitem__", form="advanced"),
    Group("0, 2.0", "__setitem__"),
    Group("slice(0, 2), 2.0", "__setitem__"),
    Group("index, rand(2, *x.shape[1:])", "__setitem__"),
    Group("mask, 2.0", "__setitem__"),
)
"""For the special methods. `__getitem__` in `basic` form has numbers, slices, `...` and `None` only."""

PROPERTIES = (
    Group("", "grad_fn requires_grad is_leaf", "graph"),
    Group(
        "",
        "H T data device dtype grad_dtype grad_fn imag is_cpu is_cuda is_ipu is_leaf is_maia is_meta is_mkldnn "
        "is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout mH mT "
        "name nbytes ndim output_nr real requires_grad retains_grad shape volatile",
    ),
)
"""For the properties that can be read from a tensor."""

CONDITIONS = {
    "mode": "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d batch_norm "
    "instance_norm native_batch_norm",
    "layout, shape": "reshape",
    "shape": "sum_to_size",
    "dtype, device": "to type type_as",
    "device": "cpu",
    "dtype": "asanyarray asarray asarray_chkfinite astype real_if_close",
    "dtype, layout": "ascontiguousarray require",
}
"""What a conditional copy or write depends on, for operations whose samples cannot show it all (there is one device
here, and a mode is an argument to a function), with their names."""

NO_ROW = {
    "torch.Tensor": "eig index lstsq reinforce solve symeig",
    "torch": "eig from_file lstsq matrix_rank solve symeig",
}
"""Names without a row. All but two were removed from torch: a call raises. `index` belongs to functorch's first-class
dimensions, and `from_file` needs a file."""
