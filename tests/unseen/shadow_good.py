"""A moving average whose shadow is a copy, and whose backup makes room for it."""

import torch
from torch import nn


class MovingAverage:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.detach().clone()

    @torch.no_grad()
    def update(self):
        for name, param in self.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(param, alpha=1 - self.decay)

    def apply(self):
        for name, param in self.model.named_parameters():
            self.backup[name] = param.detach()
            self.model._parameters[name] = nn.Parameter(self.shadow[name])


net = nn.Linear(1, 1, bias=False)
average = MovingAverage(net, decay=0.5)
average.register()
before = net.weight.item()
with torch.no_grad():
    net.weight.add_(1.0)
average.update()
assert abs(average.shadow["weight"].item() - (before + 0.5)) < 1e-6
average.apply()
assert abs(average.backup["weight"].item() - (before + 1.0)) < 1e-6
