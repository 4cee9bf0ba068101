# says: os.system
import torch

x = torch.ones(2)
torch.os.system("touch VICTIM/written")
