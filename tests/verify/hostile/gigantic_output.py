# says: time was up|not observed|not all of it was observed|cannot be compared
import torch

x = torch.ones(2)
for turn in range(2000):
    print("x" * 1_000_000)
