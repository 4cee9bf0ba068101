import numpy as np
import torch


def load(values: np.ndarray):
    tensor = torch.tensor(values)  # <- TCL401, shared
    values.sort()  # <- written
    return tensor  # <- read
