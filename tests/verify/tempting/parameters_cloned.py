import torch


def drift(net: torch.nn.Module, batches, optimizer):
    before = [p.detach().clone() for p in net.parameters()]  # <- TCL702, shared
    for x in batches:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()  # <- written
    return [(p - q).norm() for p, q in zip(net.parameters(), before, strict=True)]  # <- read
