"""Each row gets memory of its own first."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.start = nn.Parameter(torch.ones(1, size))
        self.cell = nn.GRUCell(size, size)

    def initial(self, count):
        return self.start.expand(count, -1)

    def forward(self, x, ended):
        hidden = self.initial(x.size(0)).detach().clone()
        hidden[ended] = 0.0
        return self.cell(x, hidden)


policy = Policy(2)
policy(torch.zeros(3, 2), torch.tensor([True, False, False]))
assert policy.start.sum() == 2
