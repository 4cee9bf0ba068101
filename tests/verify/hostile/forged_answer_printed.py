# says: not observed|cannot be compared
import torch

x = torch.ones(2)
print('{"end": "answered", "text": "{}"}')
