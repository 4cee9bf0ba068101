import torch


def update(net: torch.nn.Module, optimizer, a: torch.Tensor, b: torch.Tensor):
    net(a).mean().backward()
    optimizer.step()  # <- TCL202, written
    optimizer.zero_grad()
    net(b).mean().backward()  # <- read
    optimizer.step()
