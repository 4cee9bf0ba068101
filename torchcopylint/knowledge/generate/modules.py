"""The rows of `modules.md`: what the module classes of `torch.nn` do when they are called."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import torch  # type: ignore[import-not-found, unused-ignore]
from torch import nn  # type: ignore[import-not-found, unused-ignore]

from torchcopylint.knowledge.generate.probe import equal, flat, overlap, snapshot, storages
from torchcopylint.knowledge.generate.rows import NoRow, line
from torchcopylint.knowledge.generate.samples import filled

COLUMNS = ("name", "takes", "output", "shares", "parameters", "buffers", "saves", "notes")

LEGEND = """\
- *takes*: the names of what `forward` is called with, in their order; empty where that is `input` alone.
- *output*: what `forward` returns with default settings; `scalar` is a 0-dim tensor, `tensors` a tuple.
- *shares*: how the output relates to the input's memory: as in `tensor.md`; the condition `mode` is train or eval.
- *parameters*, *buffers*: the names of its own, all options switched on. For recurrent modules those of one layer.
- *saves*: what backward keeps: its `input`, its `output`; neither where the cell is empty.
- *notes*: `inplace=` (the constructor accepts it), `writes-buffers` (forward changes buffers in training mode),
  `nested` (its submodules have parameters), `same-object` (the output can be the input object), `container`.
"""


class Recipe(NamedTuple):
    """Module classes that are built and called alike."""

    arguments: str
    """The source of the constructor's arguments."""
    inputs: str
    """The source of the inputs; `t(*shape)` is a tensor, `i(*values)` an int64 tensor."""
    names: str


_MODULES = (
    Recipe(
        "",
        "t(2, 4, 3)",
        "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU "
        "RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Identity",
    ),
    Recipe("", "t(2, 4, 6)", "GLU"),
    Recipe("-1", "t(2, 4, 3)", "LogSoftmax Softmax Softmin"),
    Recipe("", "t(2, 4, 3, 3)", "Softmax2d"),
    Recipe("0.5", "t(2, 4, 3)", "AlphaDropout Dropout Dropout1d"),
    Recipe("0.5", "t(2, 4, 3, 3)", "Dropout2d FeatureAlphaDropout"),
    Recipe("0.5", "t(2, 4, 3, 3, 3)", "Dropout3d"),
    Recipe("0.1, 0.0", "t(2, 4, 3)", "Threshold"),
    Recipe("", "t(2, 4)", "Flatten"),
    Recipe("", "t(2, 4, 3)", "Flatten"),
    Recipe("", "t(2, 4, 3).transpose(1, 2)", "Flatten"),
    Recipe("1, (2, 2)", "t(2, 4)", "Unflatten"),
    Recipe("4, 5", "t(2, 4)", "Linear"),
    Recipe("4, 3, 5", "t(2, 4), t(2, 3)", "Bilinear"),
    Recipe("5", "t(2, 4)", "LazyLinear"),
    Recipe("4, 5, 3", "t(2, 4, 8)", "Conv1d ConvTranspose1d"),
    Recipe("4, 5, 3", "t(2, 4, 8, 8)", "Conv2d ConvTranspose2d"),
    Recipe("4, 5, 3", "t(2, 4, 5, 5, 5)", "Conv3d ConvTranspose3d"),
    Recipe("5, 3", "t(2, 4, 8)", "LazyConv1d LazyConvTranspose1d"),
    Recipe("5, 3", "t(2, 4, 8, 8)", "LazyConv2d LazyConvTranspose2d"),
    Recipe("5, 3", "t(2, 4, 5, 5, 5)", "LazyConv3d LazyConvTranspose3d"),
    Recipe("4", "t(2, 4, 8)", "BatchNorm1d"),
    Recipe("4", "t(2, 4, 8, 8)", "BatchNorm2d"),
    Recipe("4", "t(2, 4, 3, 3, 3)", "BatchNorm3d"),
    Recipe("", "t(2, 4, 8)", "LazyBatchNorm1d"),
    Recipe("", "t(2, 4, 8, 8)", "LazyBatchNorm2d"),
    Recipe("", "t(2, 4, 3, 3, 3)", "LazyBatchNorm3d"),
    Recipe("4, affine=True, track_running_stats=True", "t(2, 4, 8)", "InstanceNorm1d"),
    Recipe("4, affine=True, track_running_stats=True", "t(2, 4, 8, 8)", "InstanceNorm2d"),
    Recipe("4, affine=True, track_running_stats=True", "t(2, 4, 3, 3, 3)", "InstanceNorm3d"),
    Recipe("affine=True, track_running_stats=True", "t(2, 4, 8)", "LazyInstanceNorm1d"),
    Recipe("affine=True, track_running_stats=True", "t(2, 4, 8, 8)", "LazyInstanceNorm2d"),
    Recipe("affine=True, track_running_stats=True", "t(2, 4, 3, 3, 3)", "LazyInstanceNorm3d"),
    Recipe("2, 4", "t(2, 4, 8)", "GroupNorm"),
    Recipe("(4, 8)", "t(2, 4, 8)", "LayerNorm RMSNorm"),
    Recipe("2", "t(2, 4, 8, 8)", "LocalResponseNorm CrossMapLRN2d"),
    Recipe("2", "t(2, 4, 8)", "AvgPool1d MaxPool1d AdaptiveAvgPool1d AdaptiveMaxPool1d"),
    Recipe("2", "t(2, 4, 8, 8)", "AvgPool2d MaxPool2d AdaptiveAvgPool2d AdaptiveMaxPool2d"),
    Recipe("2", "t(2, 4, 4, 4, 4)", "AvgPool3d MaxPool3d AdaptiveAvgPool3d AdaptiveMaxPool3d"),
    Recipe("1", "t(2, 4, 8)", "AdaptiveAvgPool1d AdaptiveMaxPool1d"),
    Recipe("1", "t(2, 4, 8, 8)", "AdaptiveAvgPool2d AdaptiveMaxPool2d"),
    Recipe("1", "t(2, 4, 4, 4, 4)", "AdaptiveAvgPool3d AdaptiveMaxPool3d"),
    Recipe("2.0, 2", "t(2, 4, 8)", "LPPool1d"),
    Recipe("2.0, 2", "t(2, 4, 8, 8)", "LPPool2d"),
    Recipe("2.0, 2", "t(2, 4, 4, 4, 4)", "LPPool3d"),
    Recipe("2, output_size=2", "t(2, 4, 8, 8)", "FractionalMaxPool2d"),
    Recipe("2, output_size=2", "t(2, 4, 4, 4, 4)", "FractionalMaxPool3d"),
    Recipe("2", "t(1, 1, 2), i([[0, 2]])", "MaxUnpool1d"),
    Recipe("2", "t(1, 1, 1, 2), i([[[0, 2]]])", "MaxUnpool2d"),
    Recipe("2", "t(1, 1, 1, 1, 2), i([[[[0, 2]]]])", "MaxUnpool3d"),
    Recipe("1", "t(2, 4, 8)", "CircularPad1d ReflectionPad1d ReplicationPad1d ZeroPad1d"),
    Recipe("1", "t(2, 4, 8, 8)", "CircularPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d"),
    Recipe("1", "t(2, 4, 4, 4, 4)", "CircularPad3d ReflectionPad3d ReplicationPad3d ZeroPad3d"),
    Recipe("1, 0.0", "t(2, 4, 8)", "ConstantPad1d"),
    Recipe("1, 0.0", "t(2, 4, 8, 8)", "ConstantPad2d"),
    Recipe("1, 0.0", "t(2, 4, 4, 4, 4)", "ConstantPad3d"),
    Recipe("2", "t(2, 4, 8, 8)", "ChannelShuffle PixelShuffle PixelUnshuffle Unfold"),
    Recipe("(4, 4), 2", "t(1, 8, 9)", "Fold"),
    Recipe("scale_factor=2.0", "t(2, 4, 4, 4)", "Upsample UpsamplingBilinear2d UpsamplingNearest2d"),
    Recipe("5, 3", "i(0, 1)", "Embedding"),
    Recipe("5, 3", "i(0, 1), i(0)", "EmbeddingBag"),
    Recipe("4, 3", "t(5, 2, 4)", "RNN LSTM GRU"),
    Recipe("4, 3", "t(2, 4)", "RNNCell LSTMCell GRUCell"),
    Recipe("4, 2, add_bias_kv=True", "t(3, 2, 4), t(3, 2, 4), t(3, 2, 4)", "MultiheadAttention"),
    Recipe("4, 2, 8", "t(3, 2, 4)", "TransformerEncoderLayer"),
    Recipe("4, 2, 8", "t(3, 2, 4), t(3, 2, 4)", "TransformerDecoderLayer"),
    Recipe("4, 2, 1, 1, 8", "t(3, 2, 4), t(3, 2, 4)", "Transformer"),
    Recipe("nn.TransformerEncoderLayer(4, 2, 8), 1", "t(3, 2, 4)", "TransformerEncoder"),
    Recipe("nn.TransformerDecoderLayer(4, 2, 8), 1", "t(3, 2, 4), t(3, 2, 4)", "TransformerDecoder"),
    Recipe(
        "",
        "t(2, 4), t(2, 4)",
        "CosineSimilarity PairwiseDistance L1Loss MSELoss SmoothL1Loss HuberLoss KLDivLoss "
        "BCEWithLogitsLoss PoissonNLLLoss SoftMarginLoss HingeEmbeddingLoss MultiLabelSoftMarginLoss",
    ),
    Recipe("", "t(2, 4).sigmoid(), t(2, 4).sigmoid()", "BCELoss"),
    Recipe("", "t(2, 4), t(2, 4), torch.ones(2, 4)", "GaussianNLLLoss"),
    Recipe("", "t(2, 4), t(2, 4), torch.ones(2, 4)", "MarginRankingLoss"),
    Recipe("", "t(2, 4), t(2, 4), torch.ones(2)", "CosineEmbeddingLoss"),
    Recipe("", "t(2, 4), t(2, 4), t(2, 4)", "TripletMarginLoss TripletMarginWithDistanceLoss"),
    Recipe("", "t(2, 4), i(0, 1)", "CrossEntropyLoss NLLLoss MultiMarginLoss"),
    Recipe("", "t(1, 4, 1, 2), i([[0, 1]])", "NLLLoss2d"),
    Recipe("", "t(2, 3), i([0, 1, -1], [0, 1, -1])", "MultiLabelMarginLoss"),
    Recipe("", "t(5, 1, 3).log_softmax(-1), i([1, 2]), i(5), i(2)", "CTCLoss"),
    Recipe("4, 5", "t(2, 4), i(0, 1)", "LinearCrossEntropyLoss"),
    Recipe("8, 6, [2]", "t(2, 8), i(0, 1)", "AdaptiveLogSoftmaxWithLoss"),
)

_CONTAINERS = "Container DataParallel Module ModuleDict ModuleList ParameterDict ParameterList Sequential"

_SAME_ROW = {"SyncBatchNorm": "BatchNorm1d"}
"""A class that refuses to run on a CPU, and the class whose row it is given: both normalise by batch statistics."""

NO_ROW = {
    "RNNBase RNNCellBase": "base classes without a forward of their own",
}
"""Names of module classes without a generated row, with the reason."""


def module_sections(skipped: Collection[str]) -> dict[str, list[str]]:
    """The table of `modules.md`. Raises `NoRow` for a class without a recipe."""
    rows = []
    excused = [name for names in NO_ROW for name in names.split()]
    for name in (name for name in dir(nn) if _is_module(getattr(nn, name))):
        full = f"torch.nn.{name}"
        if name in excused or full in skipped:
            continue
        if name in _CONTAINERS.split():
            rows.append(line(full, ["", "unknown", "", "", "", "", "container"]))
            continue
        if name in _SAME_ROW:
            rows.append(line(full, _row(_SAME_ROW[name])))
            continue
        rows.append(line(full, _row(name)))
    return {"torch.nn": rows}


def _row(name: str) -> list[str]:
    recipes = [recipe for recipe in _MODULES if name in recipe.names.split()]
    if not recipes:
        raise NoRow(f"torch.nn.{name} has no recipe: add one to generate/modules.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _cells(getattr(nn, name), recipes)


def _is_module(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, nn.Module)


def build(cls: Any, recipe: Recipe) -> tuple[Any, tuple[Any, ...]]:
    """An instance of a module class and inputs for it, after one call, so that lazy parameters exist."""
    torch.manual_seed(0)
    names = {"nn": nn, "torch": torch, "t": _tensor, "i": _whole}
    module = eval(f"make({recipe.arguments})", {"make": cls, **names})
    module.train()
    inputs = eval(f"({recipe.inputs},)", names)
    module(*(value.clone() for value in inputs))
    return module, inputs


def _cells(cls: Any, recipes: Sequence[Recipe]) -> list[str]:
    outputs: set[str] = set()
    relations: dict[str, set[str]] = {"train": set(), "eval": set()}
    saves: list[set[str]] = []
    flags: set[str] = set()
    for recipe in recipes:
        module, inputs = build(cls, recipe)
        parameters = " ".join(name for name, _ in module.named_parameters(recurse=False))
        buffers = " ".join(name for name, _ in module.named_buffers(recurse=False))
        if any("." in name for name, _ in module.named_parameters()):
            flags.add("nested")
        before = [snapshot(buffer).clone() for buffer in module.buffers()]
        result = module(*inputs)
        if not equal(before, [snapshot(buffer) for buffer in module.buffers()]):
            flags.add("writes-buffers")
        outputs.add(_output(result))
        relations["train"].add(_relation(inputs[0], result))
        relations["eval"].add(_relation(inputs[0], module.eval()(*inputs)))
        module.train()
        saves.append(_saved(module, inputs))
    if "inplace" in inspect.signature(cls).parameters:
        flags.add("inplace=")
    if "same" in relations["train"] | relations["eval"]:
        flags.add("same-object")
    (output,) = outputs
    kept = " ".join(sorted(set.intersection(*saves)))
    return [_takes(cls), output, _shares(relations), parameters, buffers, kept, " ".join(sorted(flags))]


def _takes(cls: Any) -> str:
    names = " ".join(list(inspect.signature(cls.forward).parameters)[1:])
    return "" if names == "input" else names


def _shares(relations: dict[str, set[str]]) -> str:
    kinds = relations["train"] | relations["eval"]
    if kinds == {"fresh"}:
        return ""
    if kinds == {"same"}:
        return "same"
    if "fresh" not in kinds:
        return "view"
    return "maybe (mode)" if relations["train"] != relations["eval"] else "maybe (layout)"


def _output(result: Any) -> str:
    if isinstance(result, torch.Tensor):
        return "scalar" if result.dim() == 0 else "tensor"
    return "tensors" if flat(result) else "unknown"


def _relation(value: Any, result: Any) -> str:
    if result is value:
        return "same"
    return "alias" if any(overlap(storages(value), storages(leaf)) for leaf in flat(result)) else "fresh"


def _saved(module: Any, inputs: tuple[Any, ...]) -> set[str]:
    first = inputs[0].clone()
    if first.is_floating_point():
        first = first.requires_grad_().clone()
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = module(first, *inputs[1:])
    found = set()
    for tensor in packed:
        if overlap(storages(tensor), storages(first)):
            found.add("input")
        elif any(overlap(storages(tensor), storages(leaf)) for leaf in flat(result) if leaf.is_floating_point()):
            found.add("output")
    return found


def _tensor(*shape: int) -> Any:
    return filled(shape, torch.float32, "low")


def _whole(*values: Any) -> Any:
    return torch.tensor(list(values), dtype=torch.int64)
