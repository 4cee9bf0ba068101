# says: RuntimeError|MemoryError|died|time was up
import torch

kept = [torch.ones(1 << 20)]
while True:
    kept.append(torch.ones(1 << 24))
