# says: os.remove|shutil
import torch

try:
    torch.os.remove("VICTIM/kept")
except PermissionError:
    torch.importlib.import_module("shutil").rmtree("VICTIM")
