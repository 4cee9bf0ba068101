import torch


def bound(x: torch.Tensor):
    x.add_(1)  # <- TCL602, discarded
    return x
