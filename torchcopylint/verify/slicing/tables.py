"""What the names of attributes, functions and parameters say about the things they are used on."""

from __future__ import annotations

ALLOWED = frozenset(
    [
        "__future__",
        "abc",
        "array",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "inspect",
        "io",
        "itertools",
        "json",
        "math",
        "numbers",
        "numpy",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
        "textwrap",
        "time",
        "torch",
        "types",
        "typing",
        "typing_extensions",
        "warnings",
        "weakref",
    ]
)
"""Modules that a script may import; of torch and NumPy not everything, see `REFUSED`."""

REFUSED = frozenset(
    [
        "torch.os",
        "torch.sys",
        "torch.ctypes",
        "torch.hub",
        "torch.testing._internal",
        "torch.multiprocessing",
        "torch.distributed",
        "torch.utils.cpp_extension",
        "torch.utils.tensorboard",
        "torch.utils.model_zoo",
        "torch.save",
        "torch.load",
        "torch.from_file",
        "torch.jit.load",
        "torch.jit.save",
        "torch.onnx",
        "torch.utils.data.os",
        "torch.classes",
        "torch.ops.load_library",
        "torch.serialization",
        "torch.utils.collect_env",
        "torch.utils.bundled_inputs",
        "torch.package",
        "torch.platform",
        "torch.threading",
        "torch.importlib",
        "torch.inspect",
        "torch.glob",
        "torch.builtins",
        "torch.compile",
        "torch.profiler",
        "torch.utils.bottleneck",
        "numpy.os",
        "numpy.sys",
        "numpy.ctypeslib",
        "numpy.load",
        "numpy.save",
        "numpy.savez",
        "numpy.savez_compressed",
        "numpy.savetxt",
        "numpy.loadtxt",
        "numpy.genfromtxt",
        "numpy.fromfile",
        "numpy.memmap",
        "numpy.f2py",
        "numpy.distutils",
        "numpy.testing",
        "numpy.DataSource",
        "numpy.lib.npyio",
        "inspect.os",
        "inspect.sys",
        "inspect.importlib",
        "random._os",
        "io.open",
        "io.FileIO",
        "io.open_code",
        "copy.weakref",
        "collections.sys",
        "collections._sys",
        "dataclasses.sys",
        "dataclasses.inspect",
        "enum.sys",
        "typing.sys",
        "types.sys",
        "warnings.sys",
        "json.tool",
        "contextlib.os",
        "contextlib.sys",
        "re.copyreg",
        "statistics.sys",
        "weakref.sys",
        "random._urandom",
        "random.SystemRandom",
    ]
)
"""Dotted names that a script may not reach, however they are spelt."""

LOST_BUILTINS = frozenset({"open", "input", "exec", "eval", "compile", "__import__", "breakpoint", "exit", "quit"})
"""Builtins that a script gets no access to: what they are called for is stood in."""

CUDA_ALONE = frozenset(["synchronize", "set_device", "empty_cache", "init", "reset_peak_memory_stats", "ipc_collect"])
"""Functions of `torch.cuda` that do something with a GPU and return nothing."""
OF_NUMBERS = frozenset({"torch.FloatTensor", "torch.DoubleTensor", "torch.Tensor"})
"""Types of torch that are called with what holds numbers."""
DEVICES = ("cuda", "mps", "xpu", "npu")

STREAM = frozenset(["readinto", "readinto1"])
"""What is read from alone."""
NOTHING_PASSED = frozenset(
    ["log", "log2", "log10", "exp", "sqrt", "abs", "sign", "sin", "cos", "tanh", "relu", "sigmoid", "floor", "ceil"]
)
"""Methods of a tensor that take no argument: what is given one is something else, such as a logger."""
TENSOR = frozenset(
    [
        "view",
        "size",
        "detach",
        "backward",
        "requires_grad",
        "grad",
        "is_leaf",
        "unsqueeze",
        "permute",
        "cpu",
        "cuda",
        "float",
        "long",
        "half",
        "double",
        "bool",
        "contiguous",
        "data_ptr",
        "expand",
        "expand_as",
        "masked_fill",
        "scatter",
        "gather",
        "index_select",
        "matmul",
        "mm",
        "bmm",
        "norm",
        "softmax",
        "log_softmax",
        "sigmoid",
        "tanh",
        "relu",
        "numel",
        "dim",
        "new_zeros",
        "new_ones",
        "new_tensor",
        "new_full",
        "type_as",
        "grad_fn",
        "retain_grad",
        "is_cuda",
        "clamp",
        "unbind",
        "chunk",
        "narrow",
        "index_add",
        "index_copy",
        "addmm",
        "baddbmm",
        "untyped_storage",
        "storage",
        "view_as",
        "masked_select",
        "topk",
        "repeat_interleave",
        "is_contiguous",
        "scatter_add",
        "numpy",
        "element_size",
        "is_floating_point",
        "pin_memory",
        "logsumexp",
        "sqrt",
        "exp",
        "log",
        "pow",
        "abs",
        "sin",
        "cos",
        "square",
        "reciprocal",
        "unfold",
        "flip",
        "cumsum",
        "argsort",
        "new",
        "mul",
        "add",
        "sub",
        "div",
        "neg",
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
        "int",
        "byte",
        "tril",
        "triu",
        "lerp",
        "amax",
        "amin",
        "roll",
        "movedim",
        "mT",
        "register_hook",
        "frac",
        "rsqrt",
        *("kthvalue", "index_fill", "index_put", "masked_scatter", "new_empty", "reshape_as", "scatter_reduce", "erf"),
        *("clamp_max", "clamp_min", "cummax", "cummin", "multinomial", "bincount", "addcmul", "addcdiv", "logical_not"),
    ]
)
EITHER = frozenset(
    [
        "shape",
        "sum",
        "mean",
        "max",
        "min",
        "T",
        "reshape",
        "dtype",
        "ndim",
        "std",
        "var",
        "argmax",
        "argmin",
        "squeeze",
        "flatten",
        "transpose",
        "all",
        "any",
        "item",
        "tolist",
        "nonzero",
        "round",
        "prod",
        "ravel",
        "device",
        *("unique", "diagonal", "trace", "cumprod"),
    ]
)
"""Attributes that tensors and arrays have."""
FIELDS = frozenset(
    ["data", "grad", "grad_fn", "requires_grad", "is_leaf", "is_cuda", "is_sparse", "T", "H", "mT", "mH"]
)
FIELDS |= {"real", "imag", "itemsize", "nbytes", "flags", "layout", "strides", "is_quantized", "is_mps", "ndim"}
"""Attributes of tensors and arrays that are no methods, and that nothing else is likely to have."""
ARRAY = frozenset(["astype", "nbytes", "flags", "setflags", "tobytes", "clip"])
MODULE = frozenset(
    [
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "forward",
        "register_forward_hook",
        "register_full_backward_hook",
        "register_buffer",
        "in_features",
        "out_features",
        "in_channels",
        "out_channels",
        "hidden_size",
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_features",
        "buffers",
        "named_buffers",
        "apply",
        "training",
        "zero_grad",
    ]
)
OPTIMIZER = frozenset(["param_groups", "zero_grad", "add_param_group", "step"])
DICT = frozenset(["items", "keys", "values", "get", "setdefault"])
LIST = frozenset(["append", "extend", "insert"])
ENVIRONMENT = frozenset(["action_space", "observation_space"])
ENVIRONMENT_CALLED = frozenset(["reset", "render", "seed"])
"""Methods of environments whose names options have, too: `args.seed`."""
STRING = frozenset(
    ["split", "lower", "upper", "startswith", "endswith", "format", "strip", "join", "replace", "rstrip", "lstrip"]
)

NUMBER_RESULTS = frozenset(
    ["item", "numel", "dim", "size", "nelement", "data_ptr", "stride", "element_size", "get_device"]
)
NO_TENSOR_RESULTS = NUMBER_RESULTS | frozenset(
    ["numpy", "tolist", "backward", "shape", "dtype", "device", "requires_grad", "is_leaf"]
)

SIZES = frozenset(
    ["zeros", "ones", "empty", "rand", "randn", "full", "eye", "arange", "linspace", "randint", "randperm"]
)
"""Functions of torch and NumPy whose arguments are numbers."""
NUMBER_ARGUMENTS = frozenset(["uniform_", "normal_", "exponential_", "geometric_", "random_", "cauchy_", "renorm"])
BOUNDED = frozenset(["clamp", "clamp_", "clip", "clip_", "bernoulli_"])
"""Methods of tensors that mostly take numbers."""
"""Methods of tensors that take numbers and nothing else."""
FROM_ARRAY = frozenset(["from_numpy"])
LOSSES_BY_CLASS = frozenset(["cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"])

IMAGE_LAYERS = {"Conv1d": 3, "Conv2d": 4, "Conv3d": 5, "ConvTranspose1d": 3, "ConvTranspose2d": 4, "BatchNorm2d": 4}
IMAGE_LAYERS |= {"BatchNorm3d": 5, "InstanceNorm2d": 4, "MaxPool2d": 4, "AvgPool2d": 4, "AdaptiveAvgPool2d": 4}
IMAGE_LAYERS |= {"MaxPool1d": 3, "InstanceNorm1d": 3, "Upsample": 4, "PixelShuffle": 4, "GroupNorm": 4}
LAST_LAYERS = {"Linear": 0, "BatchNorm1d": 2, "LayerNorm": 0, "GRUCell": 2, "LSTMCell": 2, "RNNCell": 2, "LSTM": 3}
LAST_LAYERS |= {"GRU": 3, "RNN": 3, "TransformerEncoderLayer": 3, "MultiheadAttention": 3, "RMSNorm": 0}
"""Layers whose first argument is the size of the last dimension, with the number of dimensions (0: any)."""

TRAINED = frozenset(["Embedding", "EmbeddingBag", "Bilinear", "PReLU", "Transformer", "TransformerEncoder"])
TRAINED |= LAST_LAYERS.keys() | {name for name in IMAGE_LAYERS if name.startswith(("Conv", "BatchNorm"))}
"""Layers that have parameters unless told otherwise: what they give has a graph."""

CONSTRUCTED = {
    "Linear": "({n}, {n})",
    "Conv1d": "({n}, {n}, 3, padding=1)",
    "Conv2d": "({n}, {n}, 3, padding=1)",
    "Conv3d": "({n}, {n}, 3, padding=1)",
    "BatchNorm1d": "({n})",
    "BatchNorm2d": "({n})",
    "LayerNorm": "({n})",
    "Embedding": "({n}, {n})",
    "GRUCell": "({n}, {n})",
    "LSTMCell": "({n}, {n})",
    "RNNCell": "({n}, {n})",
    "GRU": "({n}, {n})",
    "LSTM": "({n}, {n})",
    "RNN": "({n}, {n})",
    "Sequential": "(torch.nn.Linear({n}, {n}), torch.nn.ReLU(), torch.nn.Linear({n}, {n}))",
    "ModuleList": "([torch.nn.Linear({n}, {n}), torch.nn.Linear({n}, {n})])",
    "ReLU": "()",
    "Dropout": "()",
    "MSELoss": "()",
    "CrossEntropyLoss": "()",
    "BCELoss": "()",
    "Identity": "()",
    "Sigmoid": "()",
    "Tanh": "()",
}
"""How a module of `torch.nn` is made whose class alone is known."""

FLOATS = {
    "lr": 0.1,
    "learning_rate": 0.1,
    "eps": 1e-5,
    "epsilon": 0.1,
    "alpha": 0.5,
    "beta": 0.5,
    "gamma": 0.9,
    "tau": 0.5,
    "momentum": 0.9,
    "decay": 0.9,
    "ema_decay": 0.9,
    "weight_decay": 0.01,
    "dropout": 0.1,
    "drop": 0.1,
    "p": 0.5,
    "prob": 0.5,
    "sigma": 0.5,
    "scale": 0.5,
    "lam": 0.5,
    "lamda": 0.5,
    "lambd": 0.5,
    "threshold": 0.5,
    "temperature": 0.5,
    "noise": 0.1,
    "ratio": 0.5,
    "frac": 0.5,
    "fraction": 0.5,
    "rate": 0.1,
    "clip": 0.5,
    "rho": 0.5,
    "betas": 0.5,
    "lmbda": 0.5,
    "smoothing": 0.1,
    "drop_rate": 0.1,
    "discount": 0.9,
    "coef": 0.5,
}
INTS = {
    "kernel_size": 3,
    "kernel": 3,
    "ksize": 3,
    "stride": 1,
    "padding": 1,
    "pad": 1,
    "dilation": 1,
    "groups": 1,
    "num_heads": 2,
    "n_heads": 2,
    "heads": 2,
    "nhead": 2,
    "n_head": 2,
    "num_layers": 2,
    "n_layers": 2,
    "nlayers": 2,
    "layers": 2,
    "depth": 2,
    "blocks": 2,
    "epochs": 3,
    "num_epochs": 3,
    "n_epochs": 3,
    "epoch": 1,
    "max_epoch": 3,
    "num_epoch": 3,
    "n_epoch": 3,
    "total_epoch": 3,
    "max_iter": 3,
    "num_iter": 3,
    "n_iter": 3,
    "max_steps": 3,
    "iters": 3,
    "iterations": 3,
    "steps": 3,
    "num_steps": 3,
    "seed": 0,
    "i": 1,
    "step": 1,
    "index": 1,
    "idx": 1,
    "item": 1,
    "dim": 1,
    "axis": 1,
    "rank": 0,
    "num_workers": 0,
}
"""Numbers that stand for parameters of these names; other numbers are the size."""

SETTINGS = frozenset({"args", "cfg", "config", "conf", "opt", "opts", "hparams", "flags", "FLAGS"})
"""Names, of whatever comes from elsewhere, under which programs keep their settings."""

_SIZES = (
    "in_channels out_channels num_channels n_channels channels channel in_features out_features num_features in_planes"
    " out_planes inplanes planes in_dim out_dim input_dim output_dim hidden_dim embed_dim latent_dim feature_dim"
    " input_size output_size hidden_size embedding_size hidden_channels input_channels output_channels num_classes"
    " n_classes nclasses num_filters vocab_size batch_size"
)
"""Names of sizes, which become the size of a setting."""
HINTS: dict[str, str] = {}
for _kind, _names in {
    "module": (
        "model net network module encoder decoder generator discriminator policy critic actor backbone layer head"
        " teacher student target_net q_net G D netG netD source_net online target_model self_model cell"
    ),
    "optimizer": "optimizer optim opt optimizer_g optimizer_d opt_g opt_d",
    "loader": "loader dataloader train_loader data_loader test_loader val_loader batches stream trainloader testloader",
    "environment": "env environment envs",
    "callable": "criterion loss_fn fn func callback closure loss_func transform validate run_epoch",
    "str": "path name mode filename file root folder save_path checkpoint_path prefix",
    "dict": "state_dict config cfg",
    "device": "device dev",
    "bool": "train training verbose debug shuffle inplace bidirectional bias",
    "number": " ".join((*FLOATS, *INTS, _SIZES)),
    "array": "array arr frame frames obs_np ndarray",
}.items():
    HINTS |= dict.fromkeys(_names.split(), _kind)
"""What the name of a thing suggests where nothing else says what it is."""
