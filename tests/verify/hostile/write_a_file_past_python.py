# says: RuntimeError|OSError|opening
import torch

x = torch.ones(1)
torch.from_file("VICTIM/kept", shared=True, size=4, dtype=torch.uint8).zero_()
