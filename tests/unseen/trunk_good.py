"""A stack of layers of its own each, with one activation for all of them."""

import torch
from torch import nn


class Trunk(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        activation = nn.Tanh()
        layers = []
        for _ in range(depth):
            hidden = nn.Linear(width, width)
            layers.append(hidden)
            layers.append(activation)
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


trunk = Trunk(2, 3)
assert trunk(torch.ones(1, 2)).shape == (1, 2)
assert sum(p.numel() for p in trunk.parameters()) == 18
