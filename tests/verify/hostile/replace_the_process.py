# says: os.exec
import torch

x = torch.ones(2)
torch.os.execv("/bin/sh", ["sh", "-c", "touch VICTIM/written"])
