# says: ctypes
import torch

x = torch.ones(2)
torch.ctypes.string_at(0)
