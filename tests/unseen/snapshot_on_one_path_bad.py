"""A snapshot is deep-copied on request only."""

import copy

import torch
from torch import nn


def fit(model, batches, keep_copy=False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    start = copy.deepcopy(model.state_dict()) if keep_copy else model.state_dict()  # <- TCL701
    for inputs, target in batches:
        loss = (model(inputs) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.load_state_dict(start)


net = nn.Linear(1, 1)
weight = net.weight.item()
fit(net, [(torch.ones(1, 1), torch.zeros(1, 1) + 9)] * 3)
assert net.weight.item() != weight
