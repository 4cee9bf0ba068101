# says: subprocess
import torch

process = torch.importlib.import_module("subprocess")
process.run(["touch", "VICTIM/written"])
