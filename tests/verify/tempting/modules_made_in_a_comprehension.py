from torch import nn


class Encoder(nn.Module):
    def __init__(self, width: int = 4, depth: int = 3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])  # <- TCL706, shared

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
