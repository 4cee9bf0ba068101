"""The same with clones, and a norm that is computed before the training goes on."""

import torch
from torch import nn


class Trainer:
    def __init__(self, net, rate):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate)

    def train(self, data):
        start = [p.detach().clone() for p in self.net.parameters()]
        norms = []
        for x in data:
            norms.append(sum(p.detach().norm().item() for p in self.net.parameters()))
            self.optimizer.zero_grad()
            self.net(x).sum().backward()
            self.optimizer.step()
        return sum((p - s).norm().item() for p, s in zip(self.net.parameters(), start, strict=True)), norms


assert Trainer(nn.Linear(2, 1), 0.1).train([torch.ones(1, 2)])[0] > 0
