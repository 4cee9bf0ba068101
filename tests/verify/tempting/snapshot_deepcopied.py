import copy

import torch


def fit(model: torch.nn.Module, batches, optimizer):
    best = copy.deepcopy(model.state_dict())  # <- TCL701, shared
    for x, y in batches:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- written
    model.load_state_dict(best)  # <- read
    return model
