# says: os.listdir|os.scandir|opening
import torch

path = torch.os
for home in ("/root", "/home", "VICTIM"):
    try:
        print(path.listdir(home))
    except PermissionError:
        print(open(home + "/kept").read())
