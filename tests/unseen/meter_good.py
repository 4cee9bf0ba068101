"""The training loop of a classifier, with a meter that averages the loss."""

import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.val = 0
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.val = value
        self.sum += value * n
        self.count += n


def train(model, loader, optimizer):
    losses, correct = AverageMeter(), AverageMeter()
    for x, y in loader:
        output = model(x)
        loss = nn.functional.cross_entropy(output, y)
        losses.update(loss.item(), len(x))
        correct.update((output.argmax(1) == y).float().mean(), len(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, correct


net = nn.Linear(4, 3)
batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(3)]
losses, correct = train(net, batches, torch.optim.SGD(net.parameters(), lr=0.1))
assert isinstance(losses.sum, float)
assert not correct.sum.requires_grad
