# says: os.rename
import torch

torch.os.rename("VICTIM/kept", "VICTIM/other")
