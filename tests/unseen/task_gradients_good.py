"""Gradients of several tasks, each of them copied."""

import torch
from torch import nn


def conflicts(model, losses):
    kept = []
    for loss in losses:
        model.zero_grad(set_to_none=False)
        loss.backward()
        kept.append([p.grad.clone() for p in model.parameters()])
    one, other = kept
    return sum((a * b).sum() for a, b in zip(one, other, strict=True)) < 0


net = nn.Linear(1, 1, bias=False)
x = torch.ones(1, 1)
assert conflicts(net, [net(x).sum(), -net(x).sum()])
