import numpy as np
import torch


def collect(source: np.ndarray, count: int):
    buffer = np.zeros(4)
    frames = []
    for number in range(3):
        buffer[:] = number
        frames.append(torch.tensor(buffer))  # <- TCL708, kept
    return frames
