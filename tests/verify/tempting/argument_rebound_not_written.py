import torch


def scale(x: torch.Tensor, factor: float):
    x = x * factor  # <- TCL503, written
    return x
