from torch import nn


def tie(a: nn.Linear, b: nn.Linear):
    b.weight.data = a.weight.data.clone()  # <- TCL102, shared
    return b
