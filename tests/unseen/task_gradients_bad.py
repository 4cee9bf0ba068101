"""Gradients of several tasks, of which each is kept where the next one is accumulated."""

import torch
from torch import nn


def conflicts(model, losses):
    kept = []
    for loss in losses:
        model.zero_grad(set_to_none=False)
        loss.backward()
        kept.append([p.grad for p in model.parameters()])  # <- TCL703
    one, other = kept
    return sum((a * b).sum() for a, b in zip(one, other, strict=True)) < 0


net = nn.Linear(1, 1, bias=False)
x = torch.ones(1, 1)
assert not conflicts(net, [net(x).sum(), -net(x).sum()])
