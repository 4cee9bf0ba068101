import torch


def zero_head(x: torch.Tensor):
    x = x.clone()
    x[1:][0] = 0  # <- TCL601, written
    return x
