"""What sets grad mode."""

from __future__ import annotations

from torchcopylint.flow.model import Fact
from torchcopylint.flow.values.state import Mode

GRAD_MODES = {
    "torch.no_grad": Mode(Fact.NO),
    "torch.autograd.no_grad": Mode(Fact.NO),
    "torch.autograd.grad_mode.no_grad": Mode(Fact.NO),
    "torch.inference_mode": Mode(Fact.NO, Fact.YES),
    "torch.autograd.inference_mode": Mode(Fact.NO, Fact.YES),
    "torch.autograd.grad_mode.inference_mode": Mode(Fact.NO, Fact.YES),
    "torch.enable_grad": Mode(Fact.YES),
    "torch.autograd.enable_grad": Mode(Fact.YES),
    "torch.autograd.grad_mode.enable_grad": Mode(Fact.YES),
}
"""Context managers, and decorators, that set grad mode."""

MODES_BY_NAME = {"no_grad": Mode(Fact.NO), "inference_mode": Mode(Fact.NO, Fact.YES), "enable_grad": Mode(Fact.YES)}
"""What a call of such a name sets, whoever it is asked of: nothing but torch, and what hands torch on, has it."""
