import torch


def swap(x: torch.Tensor, i: int, j: int):
    x[i], x[j] = x[j].clone(), x[i].clone()  # <- TCL505, written
    return x
