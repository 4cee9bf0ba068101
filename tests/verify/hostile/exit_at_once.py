# says: malformed|ended with status 0|did not run
import torch

x = torch.ones(2)
torch.os._exit(0)
