import torch


def halve(x: torch.Tensor):
    y = x.to(torch.float16)  # <- TCL502, shared
    y.mul_(0.5)  # <- written
    return x, y  # <- read
