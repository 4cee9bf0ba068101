import torch

logits = torch.randn(3, 2)
first, second, third = logits.unbind(0)
first.add_(1)  # <- TCL205, written
print(logits)
