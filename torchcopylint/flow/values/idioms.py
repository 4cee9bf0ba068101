"""Where writing `.data` is a legitimate idiom: initialisers, averages, optimizers, conversion of weights.

From reading public code: of 555 writes through `.data`, 357 stand in functions that initialise, fuse, convert or load,
and 20 in optimizers; none of a sample of them was a fault.
"""

from __future__ import annotations

import re

from torchcopylint.flow.model import Kind

INITIALISER = "an initialiser"
AVERAGE = "an averaging update"
OPTIMIZER = "an optimizer"
CONVERSION = "weight conversion"
BULK = "an update of every parameter"

_INITIALISER = re.compile(
    r"^_*__init__$|(?:^|_)(?:re)?init(?:iali[sz]e)?(?:_|$)|(?:^|_)reset(?:_|$)|initiali[sz]er?|weights?_init|xavier|glorot|kaiming|orthogonal|trunc_normal|^(?:normal|uniform|zeros|ones|constant)_?$",
    re.I,
)
_AVERAGE = re.compile(
    r"(?:^|_)(?:ema|polyak|moving_average|momentum_update|soft_update|hard_update|sync|average|accumulate|update_target|target_update|update_average|update_moving|swap|restore|store|copy_params|copy_to)(?:_|$)|(?:soft|hard)_?(?:update|copy)|target_?(?:update|net)|_momentum_|update_(?:target|teacher|ema)",
    re.I,
)
_AVERAGE_CLASS = re.compile(r"EMA|MovingAverage|Polyak|Averag|SWA|Lookahead", 0)
_CONVERSION = re.compile(
    r"(?:^|_)(?:convert|conversion|load|from|(?:un)?fuse|fold|(?:un)?merge|export|import|port|tie|prune|mask|quantize|dequantize|deploy|reparam\w*|resize|expand|(?<!style_)transfer|copy|clone|surgery|remap|rename|inflate|set_weights?|switch_to_deploy|to_fp\w*|cast|upcast|offload|unload|flatten|unflatten|shard|broadcast|sync\w*|set_flat\w*|set_param\w*)(?:_|$)",
    re.I,
)
_CONVERTS = re.compile(
    r"(?:^|_)(?:convert|conversion|(?:un)?fused?|fold|unfold|quanti[sz]e|dequanti[sz]e|freeze|unfreeze|replace|surgery|reparam\w*|switch_to_deploy|merge|unmerge|(?:from|to)_(?:float|native|torch|hf))(?:_|$)",
    re.I,
)
_CONSTRUCTOR = re.compile(r"^(?:[A-Z][A-Za-z0-9]*)$")


def converts(function: str) -> bool:
    """Whether a function's name says that it turns modules into others, which take over the tensors of the old."""
    return bool(_CONVERTS.search(function))


def context_of(function: str, class_name: str, class_kind: Kind) -> str:
    """The idiom that a function's name, and its class, stand for; empty if none."""
    if (class_kind is Kind.OPTIMIZER and function in ("step", "zero_grad", "_step")) or re.search(r"Optim", class_name):
        return OPTIMIZER
    if _AVERAGE.search(function) or _AVERAGE_CLASS.search(class_name):
        return AVERAGE
    if _INITIALISER.search(function) or _CONSTRUCTOR.match(function):
        return INITIALISER
    if _CONVERSION.search(function):
        return CONVERSION
    return ""
