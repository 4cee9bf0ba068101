import torch


def train(net: torch.nn.Module, optimizer, batches):
    history = []
    for x, y in batches:
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())  # <- TCL304, kept
    return history
