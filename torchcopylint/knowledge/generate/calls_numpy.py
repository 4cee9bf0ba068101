"""How to call the methods of `numpy.ndarray` and the functions of `numpy`: recipes, grouped by their arguments.

For methods a recipe is the source of the arguments after the array; for functions it spells every argument.
"""

from __future__ import annotations

from torchcopylint.knowledge.generate.calls import Group

METHODS = (
    Group(
        "",
        "all any argmax argmin argsort byteswap conj conjugate copy cumprod cumsum diagonal dumps "
        "flatten item max mean min nonzero prod ravel round sort squeeze std sum tobytes tolist trace transpose var "
        "view",
        "array",
    ),
    Group("0", "all any argmax argmin max mean min prod std sum var", "array", form="axis"),
    Group("np.float32", "astype", "array"),
    Group("np.float32, copy=False", "astype", "array", form="copy=False"),
    Group("x.dtype, copy=False", "astype", "array", form="copy=False"),
    Group("True", "byteswap", "array", form="inplace"),
    Group("1", "argpartition partition", "array"),
    Group("[y, y]", "choose", "index array"),
    Group("0.2, 0.7", "clip", "array"),
    Group("[True, False, True], 0", "compress", "array"),
    Group("y", "dot", "array"),
    Group("2", "fill repeat", "array"),
    Group("np.int8", "getfield", "array"),
    Group("np.float32(1.5), np.float32", "setfield", "array"),
    Group("[0, 1], [2.0, 3.0]", "put", "array"),
    Group("-1", "reshape", "array"),
    Group("x.shape", "reshape", "array"),
    Group("[0.0, 0.5]", "searchsorted", "sorted array"),
    Group("write=False", "setflags", "array"),
    Group("0, 1", "swapaxes", "array"),
    Group("[0, 1]", "take", "array"),
    Group("x.dtype", "view", "array"),
    Group("'cpu'", "to_device", "array"),
)

SPECIAL = (
    Group("", "__abs__ __neg__ __pos__ __len__ __copy__ __iter__ __bool__ __float__ __int__ __array__", "array"),
    Group("", "__invert__", "array"),
    Group("{}", "__deepcopy__", "array"),
    Group("1", "__lshift__ __rshift__ __ilshift__ __irshift__", "array"),
    Group(
        "y",
        "__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __matmul__ __and__ __or__ __xor__ "
        "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __iadd__ __isub__ __imul__ __itruediv__ "
        "__ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__ __ior__ __ixor__",
        "array",
    ),
    Group("0.5", "__contains__", "array"),
    Group("0", "__getitem__", "array"),
    Group("slice(0, 2)", "__getitem__", "array"),
    Group("[0, 1]", "__getitem__", "array"),
    Group("x > 0", "__getitem__", "array"),
    Group("slice(0, 2)", "__getitem__", "array", form="basic"),
    Group("...", "__getitem__", "array", form="basic"),
    Group("None", "__getitem__", "array", form="basic"),
    Group("[0, 1]", "__getitem__", "array", form="advanced"),
    Group("x > 0", "__getitem__", "array", form="advanced"),
    Group("0, 2.0", "__setitem__", "array"),
    Group("slice(0, 2), 2.0", "__setitem__", "array"),
    Group("[0, 1], 2.0", "__setitem__", "array"),
    Group("every_second, 2.0", "__setitem__", "array"),
)

PROPERTIES = (Group("", "T dtype device flags imag itemsize mT nbytes ndim real shape size strides", "array"),)

_ALIASES_OF_METHODS = (
    Group(
        "x",
        "all any argmax argmin argsort amax amin max mean min prod std sum var ptp median average nanmax nanmin "
        "nanmean nanmedian nanprod nanstd nansum nanvar nanargmax nanargmin count_nonzero",
        "array",
    ),
    Group(
        "x, 0",
        "all any argmax argmin amax amin max mean min prod std sum var ptp median average nanmax nanmin "
        "nanmean nanmedian nanprod nanstd nansum nanvar count_nonzero",
        "array",
        form="axis",
    ),
    Group("x, 50", "percentile nanpercentile", "array"),
    Group("x, 0.5", "quantile nanquantile", "array"),
)

FUNCTIONS = (
    *_ALIASES_OF_METHODS,
    Group(
        "x",
        "angle argwhere around array array2string array_repr array_str asanyarray asarray asarray_chkfinite "
        "ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d copy corrcoef cov cumprod cumsum "
        "diag diagflat diagonal diff ediff1d empty_like fix flatnonzero flip fliplr flipud gradient histogram i0 imag "
        "iscomplex iscomplexobj isfortran isneginf isposinf isreal isrealobj isscalar iterable matrix_transpose "
        "nan_to_num nancumprod nancumsum ndim nonzero ones_like ravel real real_if_close rot90 round shape sinc size "
        "sort sort_complex squeeze trace transpose tril triu unique unstack unwrap vander zeros_like permute_dims "
        "common_type result_type histogram_bin_edges tril_indices_from triu_indices_from diag_indices_from "
        "unique_all unique_counts unique_inverse unique_values trim_zeros min_scalar_type",
        "array",
    ),
    Group("x, copy=False", "array", "array", form="copy=False"),
    Group("x, copy=False", "nan_to_num", "array", form="copy=False"),
    Group("x, dtype=np.float32", "asarray asanyarray array ascontiguousarray", "array"),
    Group("x, np.float32", "astype asarray_chkfinite", "array"),
    Group("x, dtype=np.float64", "asarray_chkfinite", "array"),
    Group("x + 0j", "real_if_close", "array"),
    Group("x, requirements=['C']", "require", "array"),
    Group("x, 0", "expand_dims delete rollaxis", "array"),
    Group("x, axis=0", "cumulative_prod cumulative_sum", "array"),
    Group("x, 0, 1", "moveaxis swapaxes", "array"),
    Group("x, 1, 0", "rollaxis", "array"),
    Group("x, 1", "argpartition partition roll array_split split", "array"),
    Group("x, 2", "repeat tile full_like", "array"),
    Group("x, [1]", "hsplit vsplit dsplit", "array"),
    Group("x, -1", "reshape", "array"),
    Group("x, x.shape", "reshape", "array"),
    Group("x, (2, 2)", "resize", "array"),
    Group("x, (2, *x.shape)", "broadcast_to", "array"),
    Group(
        "x, y",
        "meshgrid allclose array_equal array_equiv may_share_memory shares_memory append "
        "convolve correlate dot inner intersect1d isclose isin kron outer polyadd polymul polysub polydiv "
        "polyval setdiff1d setxor1d tensordot union1d vdot",
        "array",
    ),
    Group("x, np.stack([y, y])", "broadcast_arrays", "array"),
    Group("x, y, sparse=True, copy=False", "meshgrid", "flat array", form="copy=False"),
    Group("[x, y]", "column_stack concat concatenate dstack hstack stack vstack row_stack block lexsort", "array"),
    Group("x, y", "cross", "array"),
    Group("x, y", "searchsorted ", "sorted array"),
    Group("x, np.array([0.0, 0.5])", "digitize", "array"),
    Group("x, [-1.0, 0.0], [1.0, 2.0]", "interp", "array"),
    Group("x, 0.2, 0.7", "clip", "array"),
    Group("x, [0, 1]", "take", "array"),
    Group("x, np.zeros(x.shape, dtype=int), 0", "take_along_axis", "array"),
    Group("x, np.zeros(x.shape, dtype=int), 2.0, 0", "put_along_axis", "array"),
    Group("x, [0, 1], [2.0, 3.0]", "put", "array"),
    Group("x, every_second, [2.0, 3.0]", "place putmask", "array"),
    Group("x, y", "copyto", "array"),
    Group("x, 2.0", "fill_diagonal", "array"),
    Group("[True, False, True], x", "compress ", "array"),
    Group("x > 0, x", "extract", "array"),
    Group("x, [x, y]", "choose", "index array"),
    Group("[x > 0], [x]", "select", "array"),
    Group("x > 0, x, y", "where", "array"),
    Group("x > 0", "where", "array", form="condition"),
    Group("x, [x > 0], [2.0]", "piecewise", "array"),
    Group("x, 1", "pad", "array"),
    Group("x, 0, 2.0", "insert", "array"),
    Group("'ij->ji', x", "einsum", "array"),
    Group("'ij,jk->ik', x, y", "einsum", "array"),
    Group("np.sum, 0, x", "apply_along_axis", "array"),
    Group("np.sum, x, [0]", "apply_over_axes", "array"),
    Group("x", "trapezoid", "array"),
    Group("x", "bincount", "index array"),
    Group("x", "packbits unpackbits", "byte array"),
    Group("x, y, 2", "histogram2d", "flat array"),
    Group("x + np.arange(3.0), y, 2", "polyfit", "flat array"),
    Group("x, 2", "histogramdd", "array"),
    Group("x", "poly polyder polyint roots", "flat array"),
    Group("x, x", "ix_", "index array"),
    Group("[0, 4], (3, 3)", "unravel_index", "nothing"),
    Group("([0, 1], [1, 2]), (3, 3)", "ravel_multi_index", "nothing"),
    Group(
        "4",
        "arange bartlett blackman eye hamming hanning identity tri tril_indices triu_indices diag_indices",
        "nothing",
    ),
    Group("4, 14.0", "kaiser", "nothing"),
    Group("(2, 3)", "empty ones zeros indices", "nothing"),
    Group("(2, 3), 1.5", "full", "nothing"),
    Group("1.0, 2.0, 4", "linspace logspace geomspace", "nothing"),
    Group("(2, 1), (1, 3)", "broadcast_shapes", "nothing"),
    Group("3, np.triu", "mask_indices", "nothing"),
    Group("lambda row, column: row + column, (2, 3)", "fromfunction", "nothing"),
    Group("range(4), float", "fromiter", "nothing"),
    Group("'1 2', sep=' '", "fromstring", "nothing"),
    Group("x", "frombuffer", "whole array"),
    Group("x", "from_dlpack", "array"),
)

LINALG = (
    Group(
        "x",
        "cholesky cond det eig eigh eigvals eigvalsh inv pinv qr slogdet svd svdvals norm "
        "matrix_norm vector_norm trace diagonal matrix_transpose",
        "regular array",
    ),
    Group("x, y", "cross matmul solve tensordot vecdot", "regular array"),
    Group("x, y", "lstsq", "regular array"),
    Group("x, y", "outer", "flat array"),
    Group("np.clip(np.nan_to_num(x), -9, 9)", "matrix_rank", "array"),
    Group("x, 2", "matrix_power", "regular array"),
    Group("[x, y]", "multi_dot", "regular array"),
    Group("x, 1", "tensorinv", "regular array"),
    Group("x, y[0]", "tensorsolve", "regular array"),
)

FFT = (
    Group(
        "x",
        "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "regular array",
    ),
    Group("4", "fftfreq rfftfreq", "nothing"),
)

STRIDE_TRICKS = (
    Group("x, (2, 2), (8, 8)", "as_strided", "array"),
    Group("x, 2, 0", "sliding_window_view", "array"),
)

_DISTRIBUTIONS = (
    Group("2.0, 4", "exponential poisson standard_gamma standard_t chisquare rayleigh weibull power pareto", "nothing"),
    Group("2.0, 4", "zipf", "nothing"),
    Group("0.5, 4", "geometric logseries", "nothing"),
    Group("0.0, 1.0, 4", "normal uniform laplace logistic gumbel lognormal", "nothing"),
    Group("0.5, 2.0, 4", "beta gamma f wald vonmises", "nothing"),
    Group("3, 0.5, 4", "binomial negative_binomial", "nothing"),
    Group("0.0, 1.0, 2.0, 4", "triangular", "nothing"),
    Group("3, 3, 2, 4", "hypergeometric", "nothing"),
    Group("(1.0, 2.0), 4", "dirichlet", "nothing"),
    Group("3, (0.5, 0.5), 4", "multinomial", "nothing"),
    Group("(0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)), 4", "multivariate_normal", "nothing"),
)

RANDOM = (
    Group("x", "shuffle permutation", "array"),
    Group(
        "4",
        "bytes choice random random_sample rand randn standard_normal standard_exponential standard_cauchy",
        "nothing",
    ),
    Group("5", "randint", "nothing"),
    *_DISTRIBUTIONS,
)

GENERATOR = (
    Group("x", "shuffle permutation permuted choice", "array"),
    Group("4", "bytes random standard_normal standard_exponential standard_cauchy integers", "nothing"),
    *_DISTRIBUTIONS,
)
"""Methods of `numpy.random.Generator`; the recipe spells the arguments after the generator, which is argument 0."""

NO_ROW = (
    "asmatrix base_repr binary_repr bmat busday_count busday_offset can_cast datetime_as_string datetime_data dump "
    "tofile einsum_path format_float_positional format_float_scientific fromfile frompyfunc fromregex genfromtxt "
    "get_include get_printoptions getbufsize geterr geterrcall info is_busday isdtype issubdtype load loadtxt "
    "mintypecode nested_iters printoptions promote_types save savetxt savez savez_compressed set_printoptions "
    "setbufsize seterr seterrcall show_config show_runtime test typename"
)
"""Functions of `numpy` without a row: they take no array, or read and write files."""
