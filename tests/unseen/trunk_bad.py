"""A stack of layers that a loop fills with one layer."""

import torch
from torch import nn


class Trunk(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        hidden = nn.Linear(width, width)
        layers = []
        for _ in range(depth):
            layers.append(hidden)  # <- TCL706
            layers.append(nn.Tanh())
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


trunk = Trunk(2, 3)
assert trunk(torch.ones(1, 2)).shape == (1, 2)
assert sum(p.numel() for p in trunk.parameters()) == 6
