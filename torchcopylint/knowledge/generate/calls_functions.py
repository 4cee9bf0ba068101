"""How to call the functions of `torch` that are no methods, and those of its function namespaces.

Unlike in `calls`, a recipe spells every argument, the receiver `x` included.
"""

from __future__ import annotations

from torchcopylint.knowledge.generate.calls import Group

TORCH = (
    # The same functions as methods, where they take more than a receiver in front.
    Group("mask, x, y", "where"),
    Group("mask", "where", form="condition"),
    Group("x, y", "ldexp"),
    Group("x, tuple(range(x.dim() - 1, -1, -1))", "permute"),
    Group("x, (-1,)", "reshape"),
    Group("x, x.shape", "reshape"),
    Group("1, x", "polygamma"),
    # One argument.
    Group(
        "x",
        "alias_copy detach_copy t_copy squeeze_copy unbind_copy atleast_1d atleast_2d atleast_3d block_diag "
        "celu selu rrelu celu_ selu_ rrelu_ std_mean var_mean empty_like ones_like zeros_like rand_like randn_like "
        "is_tensor is_storage typename trapezoid trapz gradient cumulative_trapezoid "
        "cartesian_prod combinations pdist real "
        "view_as_real to_dlpack asarray as_tensor tensor scalar_tensor vander",
    ),
    Group("x, dim=-1", "std_mean var_mean", form="dim"),
    Group("x, y", "atleast_1d atleast_2d atleast_3d", form="several"),
    Group("x, dtype=torch.int64", "scalar_tensor tensor"),
    Group("x", "view_as_complex view_as_complex_copy", "pairs"),
    Group("x", "view_as_real view_as_real_copy imag", "complex"),
    Group("x", "pca_lowrank svd_lowrank chain_matmul nuclear_norm", "positive definite"),
    Group("x", "svd_lowrank", "pairs"),
    Group("x", "poisson", "probability"),
    # Several arguments.
    Group("x, -1", "frobenius_norm"),
    Group("x, 2", "full_like randint_like fill"),
    Group(
        "x, 0.5, True",
        "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout_ alpha_dropout_ "
        "feature_dropout_ feature_alpha_dropout_ native_dropout",
    ),
    Group(
        "x, 0.5, False",
        "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout_ alpha_dropout_ "
        "feature_dropout_ feature_alpha_dropout_",
    ),
    Group("x, 0.0, 1.0", "threshold threshold_"),
    Group(
        "x, y",
        "block_diag cosine_similarity pairwise_distance kl_div dsmm cdist "
        "hinge_embedding_loss isin rsub polar complex ",
    ),
    Group("x, rand(2, *x.shape)", "broadcast_tensors"),
    Group("[x, y]", "cat concat concatenate stack hstack vstack dstack column_stack row_stack "),
    Group("x, y", "meshgrid cartesian_prod", "vector"),
    Group("x, y, z", "triplet_margin_loss "),
    Group("x, y, y.sign()", "margin_ranking_loss"),
    Group("x, y, torch.ones(x.shape[0])", "cosine_embedding_loss"),
    Group("x, y, True, False, 1e-8, 1", "poisson_nll_loss"),
    Group("x, y", "binary_cross_entropy_with_logits"),
    Group("x, y, dims=1", "tensordot", "matrix"),
    Group("x, rand(3, 3)", "chain_matmul "),
    Group("x, torch.tensor([-1.0, 0.0, 1.0])", "bucketize"),
    Group("torch.tensor([-1.0, 0.0, 1.0]), x", "searchsorted"),
    Group("x, [2, 2]", "histogramdd", "pairs"),
    Group("x, [torch.tensor([-2.0, 0.0, 2.0])] * 2", "histogramdd", "pairs"),
    Group("x, (1, 1), 0.0", "constant_pad_nd"),
    Group("whole(3, 4), (3, 3)", "unravel_index", "nothing"),
    Group("'ij->ji', x", "einsum"),
    Group("'ij,jk->ik', x, rand(3, 3)", "einsum"),
    Group("x, x.shape", "view_copy expand_copy"),
    Group("x, (2, 2), (2, 1)", "as_strided_copy"),
    Group("x, 0, 1", "select_copy transpose_copy"),
    Group("x, (1, 0)", "permute_copy"),
    Group("x", "diagonal_copy slice_copy"),
    Group("x, 2", "split_copy"),
    Group("x, [1, x.shape[0] - 1]", "split_with_sizes_copy"),
    Group("x, 0, 2, 1", "unfold_copy"),
    Group("x, 0", "unsqueeze_copy"),
    Group("x, y", "result_type "),
    Group("x, 'sum', lengths=whole(1, 2)", "segment_reduce"),
    Group("x", "norm_except_dim"),
    # Normalisation and layers.
    Group("x, rand(4), rand(4), rand(4), rand(4).abs() + 1, True, 0.1, 1e-5, False", "batch_norm ", "image"),
    Group("x, rand(4), rand(4), rand(4), rand(4).abs() + 1, False, 0.1, 1e-5, False", "batch_norm", "image"),
    Group("x, rand(4), rand(4), rand(4), rand(4).abs() + 1, True, 0.1, 1e-5", "native_batch_norm", "image"),
    Group("x, rand(4), rand(4), rand(4), rand(4).abs() + 1, True, 0.1, 1e-5, False", "instance_norm", "image"),
    Group("x, (4, 4), rand(4, 4), rand(4, 4)", "layer_norm", "image"),
    Group("x, (4, 4), rand(4, 4), rand(4, 4), 1e-5", "native_layer_norm", "image"),
    Group("x, (4, 4), rand(4, 4)", "rms_norm", "image"),
    Group("x, 2, rand(4), rand(4)", "group_norm", "image"),
    Group("x, rand(4), rand(4), 2, 4, 16, 2, 1e-5", "native_group_norm", "image"),
    Group(
        "x, 2",
        "pixel_shuffle pixel_unshuffle adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d "
        "max_pool1d_with_indices channel_shuffle native_channel_shuffle",
        "image",
    ),
    Group("x, 2", "max_pool2d", "image"),
    Group("x, 1", "adaptive_avg_pool1d adaptive_max_pool1d", "image"),
    Group("x, 2", "max_pool3d", "volume"),
    Group("x, rand(3, 4, 2), rand(3)", "conv1d", "image"),
    Group("x, rand(3, 4, 2, 2), rand(3)", "conv2d", "image"),
    Group("x, rand(3, 4, 2, 2, 2), rand(3)", "conv3d", "volume"),
    Group("x, rand(4, 3, 2), rand(3)", "conv_transpose1d", "image"),
    Group("x, rand(4, 3, 2, 2), rand(3)", "conv_transpose2d", "image"),
    Group("x, rand(4, 3, 2, 2, 2), rand(3)", "conv_transpose3d", "volume"),
    Group("x, rand(2, 4, 3), rand(3)", "conv_tbc", "image"),
    Group("x, rand(3, 4, 2, 2), rand(3), (1, 1), (0, 0), (1, 1), False, (0, 0), 1", "convolution", "image"),
    Group("x, y, rand(2, 3, 3), rand(2)", "bilinear"),
    Group("x, torch.zeros(2, 3, 3, 2), 0, 0, False", "grid_sampler grid_sampler_2d", "image"),
    Group("x, torch.zeros(2, 3, 3, 3, 3), 0, 0, False", "grid_sampler_3d", "volume"),
    Group("rand(1, 2, 3), (1, 1, 4, 4), False", "affine_grid_generator", "nothing"),
    Group("x, index", "embedding"),
    Group("x, index, whole(0)", "embedding_bag"),
    Group("x, index, 1.0, 2.0", "embedding_renorm_"),
    Group("rand(5, 1, 3).log_softmax(-1), torch.tensor([[1, 2]]), whole(5), whole(2)", "ctc_loss", "nothing"),
    Group("x, rand(3, 2), rand(2, 3), rand(2, 2), rand(2), rand(2)", "rnn_relu_cell rnn_tanh_cell", "matrix"),
    Group("x, rand(3, 2), rand(6, 3), rand(6, 2), rand(6), rand(6)", "gru_cell", "matrix"),
    Group("x, [rand(3, 2), rand(3, 2)], rand(8, 3), rand(8, 2), rand(8), rand(8)", "lstm_cell", "matrix"),
    Group(
        "x, rand(1, 3, 2), [rand(2, 3), rand(2, 2), rand(2), rand(2)], True, 1, 0.0, False, False, False",
        "rnn_relu rnn_tanh",
        "triple",
    ),
    Group(
        "x, rand(1, 3, 2), [rand(6, 3), rand(6, 2), rand(6), rand(6)], True, 1, 0.0, False, False, False",
        "gru",
        "triple",
    ),
    Group(
        "x, [rand(1, 3, 2), rand(1, 3, 2)], [rand(8, 3), rand(8, 2), rand(8), rand(8)], True, 1, 0.0, False, False, "
        "False",
        "lstm",
        "triple",
    ),
    # Sparse, quantized.
    Group("x, rand(3, 3)", "hspmm spmm dsmm hsmm", "sparse"),
    Group("x, x.clone(), rand(3, 3)", "saddmm", "sparse"),
    Group("x, 0.1, 0, torch.qint8", "quantize_per_tensor"),
    Group("x, torch.qint8, False", "quantize_per_tensor_dynamic"),
    Group("x, torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int64), 0, torch.qint8", "quantize_per_channel"),
    Group("x, 0.1, 0, -128, 127", "fake_quantize_per_tensor_affine"),
    Group(
        "x, torch.full((3,), 0.1), torch.zeros(3, dtype=torch.int32), 0, -128, 127", "fake_quantize_per_channel_affine"
    ),
    # Creation.
    Group(
        "4", "arange  bartlett_window blackman_window hamming_window hann_window kaiser_window eye randperm", "nothing"
    ),
    Group("0, 4", "range", "nothing"),
    Group("(2, 3)", "empty ones zeros rand randn", "nothing"),
    Group("(2, 3), 1.5", "full", "nothing"),
    Group("5, (2, 3)", "randint", "nothing"),
    Group("(2, 3), (0, 1)", "empty_permuted", "nothing"),
    Group("(2, 3), (3, 1)", "empty_strided", "nothing"),
    Group("0.0, 1.0, 4", "linspace logspace", "nothing"),
    Group("3, 3", "tril_indices triu_indices", "nothing"),
    Group("x, y.abs()", "normal"),
    Group("torch.full((3, 3), 4.0), rand(3, 3).sigmoid()", "binomial", "nothing"),
    Group("[[0, 1], [1, 0]], rand(2), (2, 2)", "sparse_coo_tensor", "nothing"),
    Group("[0, 1, 2], [0, 1], rand(2)", "sparse_csr_tensor sparse_csc_tensor", "nothing"),
    Group("[0, 1, 2], [0, 1], rand(2, 1, 1)", "sparse_bsr_tensor sparse_bsc_tensor", "nothing"),
    Group("[0, 1, 2], [0, 1], rand(2), (2, 2), layout=torch.sparse_csr", "sparse_compressed_tensor", "nothing"),
    Group("(2, 1), (1, 3)", "broadcast_shapes", "nothing"),
    Group("torch.linalg.lu_factor(x)[0], torch.linalg.lu_factor(x)[1]", "lu_unpack", "positive definite"),
    Group("x", "lobpcg", "positive definite"),
)

NN = (
    Group(
        "x",
        "celu celu_ elu elu_ gelu glu hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid "
        "mish relu relu6 relu_ rrelu rrelu_ selu selu_ sigmoid silu softplus softshrink softsign tanh tanhshrink "
        "hardshrink normalize pdist gumbel_softmax",
    ),
    Group("x, True", "relu", form="inplace"),
    Group("x, -1", "softmax log_softmax softmin"),
    Group("x, 0.0, 1.0", "threshold threshold_"),
    Group("x, rand(1)", "prelu"),
    Group("x, 0.5, True", "dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d"),
    Group("x, 0.5, False", "dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d"),
    Group(
        "x, 2",
        "adaptive_avg_pool1d adaptive_avg_pool2d avg_pool1d avg_pool2d max_pool1d max_pool2d "
        "adaptive_max_pool1d adaptive_max_pool2d max_pool1d_with_indices max_pool2d_with_indices "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices pixel_shuffle pixel_unshuffle "
        "channel_shuffle native_channel_shuffle unfold local_response_norm",
        "image",
    ),
    Group(
        "x, 2",
        "adaptive_avg_pool3d avg_pool3d max_pool3d adaptive_max_pool3d max_pool3d_with_indices "
        "adaptive_max_pool3d_with_indices",
        "volume",
    ),
    Group("x, 1", "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d", "image"),
    Group("x, 1", "adaptive_avg_pool3d adaptive_max_pool3d", "volume"),
    Group(
        "x, 2, return_indices=True",
        "max_pool1d max_pool2d adaptive_max_pool1d adaptive_max_pool2d",
        "image",
        form="return_indices",
    ),
    Group("x, 2, return_indices=True", "max_pool3d adaptive_max_pool3d", "volume", form="return_indices"),
    Group("x, 2, 2, return_indices=True", "fractional_max_pool2d", "image", form="return_indices"),
    Group("x, 2, 2, return_indices=True", "fractional_max_pool3d", "volume", form="return_indices"),
    Group("x, 2.0, 2", "lp_pool1d lp_pool2d", "image"),
    Group("x, 2.0, 2", "lp_pool3d", "volume"),
    Group("x, 2, 2", "fractional_max_pool2d fractional_max_pool2d_with_indices", "image"),
    Group("x, 2, 2", "fractional_max_pool3d fractional_max_pool3d_with_indices", "volume"),
    Group("*F.max_pool1d(x, 2, return_indices=True), 2", "max_unpool1d", "image"),
    Group("*F.max_pool2d(x, 2, return_indices=True), 2", "max_unpool2d", "image"),
    Group("*F.max_pool3d(x, 2, return_indices=True), 2", "max_unpool3d", "volume"),
    Group("x, (4, 4), 2", "fold", "fold"),
    Group("x, scale_factor=2.0", "interpolate upsample upsample_nearest upsample_bilinear", "image"),
    Group("x, (1, 1)", "pad"),
    Group("x, (1, 1), 'reflect'", "pad", "image", form="mode"),
    Group("rand(1, 2, 3), (1, 1, 4, 4)", "affine_grid", "nothing"),
    Group("x, torch.zeros(2, 3, 3, 2), align_corners=False", "grid_sample", "image"),
    Group("x, rand(3, 4, 2), rand(3)", "conv1d", "image"),
    Group("x, rand(3, 4, 2, 2), rand(3)", "conv2d", "image"),
    Group("x, rand(3, 4, 2, 2, 2), rand(3)", "conv3d", "volume"),
    Group("x, rand(4, 3, 2), rand(3)", "conv_transpose1d", "image"),
    Group("x, rand(4, 3, 2, 2), rand(3)", "conv_transpose2d", "image"),
    Group("x, rand(4, 3, 2, 2, 2), rand(3)", "conv_transpose3d", "volume"),
    Group("x, rand(2, 4, 3), rand(3)", "conv_tbc", "image"),
    Group("x, rand(5, x.shape[-1]), rand(5)", "linear"),
    Group("x, y, rand(2, 3, 3), rand(2)", "bilinear"),
    Group("index, rand(4, 3)", "embedding", "nothing"),
    Group("index, rand(4, 3), whole(0, 1)", "embedding_bag", "nothing"),
    Group("index, rand(4, 3), None, 0.1", "embedding", "nothing", form="max_norm"),
    Group("index, rand(4, 3), whole(0, 1), 0.1", "embedding_bag", "nothing", form="max_norm"),
    Group("index", "one_hot", "nothing"),
    Group("x, rand(4), rand(4).abs() + 1, rand(4), rand(4), True", "batch_norm instance_norm", "image"),
    Group("x, rand(4), rand(4).abs() + 1, rand(4), rand(4), False", "batch_norm instance_norm", "image"),
    Group("x, (4, 4), rand(4, 4), rand(4, 4)", "layer_norm", "image"),
    Group("x, (4, 4), rand(4, 4)", "rms_norm", "image"),
    Group("x, 2, rand(4), rand(4)", "group_norm", "image"),
    Group(
        "x, y",
        "cosine_similarity pairwise_distance l1_loss mse_loss smooth_l1_loss huber_loss kl_div "
        "binary_cross_entropy_with_logits poisson_nll_loss soft_margin_loss hinge_embedding_loss "
        "multilabel_soft_margin_loss",
    ),
    Group("x, y.sigmoid()", "binary_cross_entropy", "probability"),
    Group("x, y.sigmoid(), rand(3)", "binary_cross_entropy", "probability"),
    Group("x, y, rand(3)", "binary_cross_entropy_with_logits multilabel_soft_margin_loss"),
    Group("x, y, None, None, None, 'mean', rand(3)", "binary_cross_entropy_with_logits"),
    Group("x, y, torch.ones(3, 3)", "gaussian_nll_loss"),
    Group("x, y, y.sign()", "margin_ranking_loss"),
    Group("x, y, torch.ones(x.shape[0])", "cosine_embedding_loss"),
    Group("x, y, z", "triplet_margin_loss triplet_margin_with_distance_loss"),
    Group("x, whole(0, 1, 2)", "cross_entropy nll_loss multi_margin_loss"),
    Group("x, whole(0, 1, 2), rand(3)", "cross_entropy nll_loss"),
    Group("x, whole(0, 1, 2), 1, 1.0, rand(3)", "multi_margin_loss"),
    Group("x, y.softmax(-1)", "cross_entropy"),
    Group("x, whole([0, 1, -1], [0, 1, -1], [0, 1, -1])", "multilabel_margin_loss"),
    Group("rand(5, 1, 3).log_softmax(-1), torch.tensor([[1, 2]]), whole(5), whole(2)", "ctc_loss", "nothing"),
    Group("x, y, z", "scaled_dot_product_attention", "image"),
    Group(
        "x, x, x, 4, 2, rand(12, 4), rand(12), None, None, False, 0.0, rand(4, 4), rand(4)",
        "multi_head_attention_forward",
        "sequence",
    ),
    Group("x, rand(5, 3), whole(0, 1, 2)", "linear_cross_entropy"),
)

LINALG = (
    Group(
        "x",
        "cholesky cholesky_ex cond det eig eigh eigvals eigvalsh inv inv_ex ldl_factor ldl_factor_ex lu "
        "lu_factor lu_factor_ex matrix_exp matrix_norm norm pinv qr slogdet svd svdvals vector_norm "
        "diagonal",
        "positive definite",
    ),
    Group("x, 'nuc'", "matrix_norm", "positive definite"),
    Group("x", "pinv", "pairs"),
    Group("x, 0", "matrix_power"),
    Group("x", "matrix_rank", "finite"),
    Group("x", "norm vector_norm diagonal vander"),
    Group("x, dim=-1", "norm vector_norm", form="dim"),
    Group("x, 2", "matrix_power"),
    Group("x, y", "cross vecdot matmul"),
    Group("x, rand(3, 3)", "lstsq solve solve_ex", "positive definite"),
    Group("x, rand(3)", "tensorsolve", "positive definite"),
    Group("x, rand(3, 3), upper=False", "solve_triangular", "positive definite"),
    Group("x, ind=1", "tensorinv", "positive definite"),
    Group("[x, rand(3, 3), rand(3, 3)]", "multi_dot"),
    Group("x, rand(3)", "householder_product"),
    Group("*torch.linalg.lu_factor(x), rand(3, 3)", "lu_solve", "positive definite"),
    Group("*torch.linalg.ldl_factor(x), rand(3, 3)", "ldl_solve", "positive definite"),
)

SPECIAL = (
    Group(
        "x",
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 "
        "gammaln i0 i0e i1 i1e log1p log_ndtr logit modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 ndtr ndtri psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc "
        "spherical_bessel_j0",
    ),
    Group("x, y", "gammainc gammaincc xlog1py xlogy zeta"),
    Group(
        "x, whole(2)",
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w",
    ),
    Group("x, -1", "softmax log_softmax logsumexp"),
    Group("x, 1", "multigammaln", "positive definite"),
    Group("1, x", "polygamma"),
)

FFT = (
    Group(
        "x",
        "fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 "
        "irfftn rfft rfft2 rfftn",
    ),
    Group("x, 10", "fft ifft rfft ihfft", "matrix"),
    Group("x, (3, 10)", "fft2 ifft2 rfft2 ihfft2 fftn ifftn rfftn ihfftn", "matrix"),
    Group("4", "fftfreq rfftfreq", "nothing"),
)
