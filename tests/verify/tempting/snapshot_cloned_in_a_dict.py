import torch


def fit(model: torch.nn.Module, batches, optimizer):
    best = {name: value.clone() for name, value in model.state_dict().items()}  # <- TCL701, shared
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()  # <- written
    model.load_state_dict(best)  # <- read
