# says: not observed|cannot be compared
import torch

atexit = torch.importlib.import_module("atexit")
atexit.register(lambda: open("VICTIM/written", "w"))
x = torch.ones(2)
