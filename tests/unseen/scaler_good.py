"""The same with a copy."""

import copy

import torch
from torch import nn

net = nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu", enabled=False)
best, lowest, weight = None, float("inf"), 0.0
for step in range(2):
    loss = net(torch.ones(1, 1)).sum()
    if loss.item() < lowest or step == 0:
        lowest, weight = loss.item(), net.weight.item()
        best = copy.deepcopy(net.state_dict())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
net.load_state_dict(best)
assert net.weight.item() == weight
