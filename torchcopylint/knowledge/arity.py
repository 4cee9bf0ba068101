"""What the methods of tensors cannot be given: a call that gives it is a call of somebody else's method."""

from __future__ import annotations

# fmt: off
BARE = frozenset(
    {"abs_", "absolute_", "acos", "acos_", "acosh", "acosh_", "angle", "arccos_", "arccosh_", "arcsin_",
        "arcsinh_", "arctan_", "arctanh_", "argwhere", "asin", "asin_", "asinh", "asinh_", "atan", "atan_",
        "atanh", "atanh_", "bitwise_not", "bitwise_not_", "ceil_", "conj_physical", "conj_physical_", "corrcoef",
        "cos_", "cosh_", "deg2rad_", "dense_dim", "dequantize", "detach", "detach_", "digamma", "digamma_", "dim",
        "erf_", "erfc_", "erfinv", "erfinv_", "exp2", "exp2_", "exp_", "expm1_", "fix", "fix_", "fliplr", "flipud",
        "floor_", "frac", "frac_", "frexp", "i0", "i0_", "int_repr", "is_coalesced", "is_contiguous",
        "is_inference", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lgamma", "lgamma_",
        "log10_", "log1p_", "log2", "log2_", "log_", "logical_not", "logical_not_", "matrix_exp", "msort",
        "ndimension", "neg_", "negative", "negative_", "nelement", "positive", "rad2deg_", "reciprocal",
        "reciprocal_", "relu", "relu_", "resolve_conj", "resolve_neg", "retain_grad", "rsqrt", "rsqrt_", "sgn",
        "sgn_", "share_memory_", "sigmoid", "sigmoid_", "sign_", "signbit", "sin_", "sinc", "sinc_", "sinh_",
        "slogdet", "sparse_dim", "sqrt_", "square", "square_", "storage_offset", "t_", "tan_", "tanh_", "trunc_",
        "untyped_storage", "zero_"}
)
# fmt: on
"""Methods of tensors that take nothing by its position: with an argument, they are somebody else's."""
OF_OTHERS = frozenset({"name"})
"""Keywords that no method of a tensor takes, by the schemas of torch 2.13: `x.to(Dense(10), name="head")`."""
