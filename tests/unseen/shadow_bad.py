"""A moving average whose shadow is made of the parameters themselves."""

import torch
from torch import nn


class MovingAverage:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.detach()  # <- TCL702

    @torch.no_grad()
    def update(self):
        for name, param in self.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(param, alpha=1 - self.decay)


net = nn.Linear(1, 1, bias=False)
average = MovingAverage(net, decay=0.5)
average.register()
before = net.weight.item()
with torch.no_grad():
    net.weight.add_(1.0)
average.update()
assert average.shadow["weight"].item() == net.weight.item() != before + 0.5
