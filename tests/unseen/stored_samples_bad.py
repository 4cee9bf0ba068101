"""A data set that adds noise to the sample that it keeps."""

import torch
from torch.utils.data import Dataset


class Noisy(Dataset):
    def __init__(self, count):
        self.items = [torch.zeros(3) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        sample = self.items[index]
        sample += torch.ones(3)  # <- TCL504
        return sample


data = Noisy(2)
assert data[0].sum() == 3
assert data[0].sum() == 6
