"""How far a training moved the weights, by a trainer whose optimizer stands in a field."""

import torch
from torch import nn


class Trainer:
    def __init__(self, net, rate):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate)

    def train(self, data):
        start = [p.detach() for p in self.net.parameters()]  # <- TCL702
        for x in data:
            self.optimizer.zero_grad()
            self.net(x).sum().backward()
            self.optimizer.step()
        return sum((p - s).norm().item() for p, s in zip(self.net.parameters(), start, strict=True))


assert Trainer(nn.Linear(2, 1), 0.1).train([torch.ones(1, 2)]) == 0
