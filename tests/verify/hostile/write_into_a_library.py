# says: opening
import torch

x = torch.ones(2)
open(torch.__file__, "a").write("mine")
