"""The noise is added to a new tensor; what stands in a list of numbers is no tensor."""

import torch
from torch.utils.data import Dataset


class Noisy(Dataset):
    def __init__(self, count):
        self.items = [torch.zeros(3) for _ in range(count)]
        self.labels = [0 for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        sample = self.items[index].clone()
        sample += torch.ones(3)
        label = self.labels[index]
        label += 1
        return sample, label


data = Noisy(2)
assert data[0][0].sum() == 3
assert data[0][0].sum() == 3
assert data[0][1] == 1
