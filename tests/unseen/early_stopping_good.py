"""A regression that stops when the loss no longer falls, and goes back to the best weights."""

import copy

import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.counter = 0
        self.best_score = None
        self.best_state = None

    def __call__(self, score, model):
        if self.best_score is None or score < self.best_score:
            self.best_score = score
            self.counter = 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def fit(model, x, y, scores):
    stopper = EarlyStopping(patience=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = {name: value.clone() for name, value in model.state_dict().items()}
    for score in scores:
        if stopper(score, model):
            break
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.load_state_dict(stopper.best_state)
    return first


torch.manual_seed(0)
net = nn.Linear(2, 1)
start = fit(net, torch.randn(8, 2), torch.randn(8, 1), [1.0, 2.0, 3.0])
assert torch.equal(start["weight"], net.weight)
