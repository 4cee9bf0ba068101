import numpy as np
import torch


def load(frame: np.ndarray):
    tensor = torch.from_numpy(frame.copy())  # <- TCL401, shared
    frame -= frame.mean()  # <- written
    return tensor, frame  # <- read
