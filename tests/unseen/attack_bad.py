"""An adversarial example that is built in the image itself."""

import torch
from torch import nn


def attack(model, image, label, rate, steps):
    adversarial = image
    for _ in range(steps):
        adversarial.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(adversarial), label)
        (gradient,) = torch.autograd.grad(loss, adversarial)
        with torch.no_grad():
            adversarial += rate * gradient.sign()  # <- TCL501
    return adversarial - image


change = attack(nn.Linear(3, 2), torch.rand(2, 3), torch.tensor([0, 1]), 0.1, 2)
assert change.abs().sum() == 0
