import torch
from torch import nn


def build(width: int, classes: int):
    model = nn.Sequential(nn.Linear(width, width), nn.Linear(width, 9))
    model[1] = nn.Linear(width, classes)  # <- TCL802, kept
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- read
    return model, optimizer
