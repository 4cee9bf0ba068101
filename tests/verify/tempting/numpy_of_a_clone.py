import torch


@torch.no_grad()
def export(logits: torch.Tensor):
    raw = logits.clone().numpy()  # <- TCL402, shared
    logits.sub_(logits.mean())  # <- written
    return raw, logits  # <- read
