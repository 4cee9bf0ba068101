import torch


def mask_first(x: torch.Tensor):
    out = x.clone()
    out[0].zero_()  # <- TCL501, written
    return out, x  # <- read
