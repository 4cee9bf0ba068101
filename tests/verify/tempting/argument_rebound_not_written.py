import torch


def scale(x: torch.Tensor, factor: float):
    x = x * factor  # <- TCL503, written
    x = x + 1
    return x.sum()
