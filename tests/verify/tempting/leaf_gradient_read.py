import torch


def gradient(x: torch.Tensor):
    leaf = x.detach().requires_grad_()
    leaf.pow(2).sum().backward()
    return leaf.grad  # <- TCL603, read
