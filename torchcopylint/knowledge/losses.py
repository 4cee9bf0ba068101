"""Which function of `torch.nn.functional` a loss module calls: what that keeps for backward, the module keeps.

`tests/test_knowledge_losses.py` compares the two under torch.
"""

from __future__ import annotations

import re
from functools import lru_cache

from torchcopylint.knowledge import table

WEIGHTS = ("weight", "pos_weight")
"""Buffers of losses, which are the very tensors that their constructors are given."""
_PLACES = {
    "BCELoss": {"weight": 0},
    "CrossEntropyLoss": {"weight": 0},
    "MultiLabelSoftMarginLoss": {"weight": 0},
    "NLLLoss": {"weight": 0},
    "BCEWithLogitsLoss": {"weight": 0, "pos_weight": 4},
    "MultiMarginLoss": {"weight": 2},
}
_SHORT = {
    "bce_loss": "binary_cross_entropy",
    "bce_with_logits_loss": "binary_cross_entropy_with_logits",
    "multi_label_margin_loss": "multilabel_margin_loss",
    "multi_label_soft_margin_loss": "multilabel_soft_margin_loss",
}
_MODULES = re.compile(r"torch\.nn\.(\w+Loss)")


@lru_cache(maxsize=256)
def function_of(dotted: str) -> table.Op | None:
    """The row of the function that a loss module calls: of `torch.nn.MSELoss` that of `mse_loss`. `None` of others."""
    match = _MODULES.fullmatch(dotted)
    if match is None:
        return None
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", match[1]).lower()
    for spelling in (_SHORT.get(name, name), name.removesuffix("_loss")):
        op = table.function(f"torch.nn.functional.{spelling}")
        if op is not None:
            return op
    return None


def weights_of(dotted: str) -> dict[str, int]:
    """The weights that a loss module keeps, by their places among the arguments of its constructor."""
    return _PLACES.get(dotted.removeprefix("torch.nn."), {})
