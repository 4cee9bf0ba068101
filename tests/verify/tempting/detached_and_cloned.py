import torch


def perturb(x: torch.Tensor):
    noisy = x.detach().clone()  # <- TCL303, shared
    noisy.add_(0.1)  # <- written
    return noisy - x  # <- read
