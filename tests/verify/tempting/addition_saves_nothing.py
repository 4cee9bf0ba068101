import torch


class Block(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.second = torch.nn.Linear(width, width)

    def forward(self, x):
        out = self.second(torch.relu(self.first(x)))
        out += x  # <- TCL202, written
        return out.sum()
