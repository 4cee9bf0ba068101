"""Gradient descent by hand on weights that live in a dictionary of the module."""

import torch

torch.manual_seed(0)
weights = {
    "slope": torch.zeros(1, requires_grad=True),
    "offset": torch.zeros(1, requires_grad=True),
}


def predict(x):
    return weights["slope"] * x + weights["offset"]


def descend(rate):
    for name, weight in weights.items():
        weights[name] -= rate * weight.grad  # <- TCL201


x = torch.linspace(0, 1, 8)
(predict(x) - 3 * x).pow(2).mean().backward()
raised = False
try:
    descend(0.1)
except RuntimeError as error:
    raised = "leaf" in str(error)
assert raised
