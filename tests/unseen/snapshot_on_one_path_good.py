"""The snapshot is a copy on either path."""

import copy

import torch
from torch import nn


def fit(model, batches, deep=False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    state = model.state_dict()
    start = copy.deepcopy(state) if deep else {name: value.clone() for name, value in state.items()}
    for inputs, target in batches:
        loss = (model(inputs) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.load_state_dict(start)


net = nn.Linear(1, 1)
weight = net.weight.item()
fit(net, [(torch.ones(1, 1), torch.zeros(1, 1) + 9)] * 3)
assert net.weight.item() == weight
