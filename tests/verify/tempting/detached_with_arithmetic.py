import torch


def centre(x: torch.Tensor):
    flat = x.detach() - x.mean()  # <- TCL303, shared
    flat.mul_(2)  # <- written
    return flat, x  # <- read
