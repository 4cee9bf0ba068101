import torch


def normalise(x: torch.Tensor):
    x = x.clone()
    x -= x.mean()  # <- TCL503, written
    x /= x.std()
    return x
