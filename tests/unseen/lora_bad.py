"""An adapter that trains the weight of the layer that it was made from."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=1):
        super().__init__()
        self.weight = nn.Parameter(base.weight.data)  # <- TCL102
        self.down = nn.Parameter(torch.zeros(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return nn.functional.linear(x, self.weight + self.up @ self.down)


base = nn.Linear(2, 2)
before = base.weight.clone()
adapted = Adapted(base)
optimizer = torch.optim.SGD([adapted.weight], lr=1.0)
adapted(torch.ones(1, 2)).sum().backward()
optimizer.step()
assert not torch.equal(before, base.weight)
