import torch


def pick(x: torch.Tensor):
    rows = x[torch.tensor([0, 2])]  # <- TCL501, shared
    rows.zero_()  # <- written
    return x.sum() + rows.sum()  # <- read
