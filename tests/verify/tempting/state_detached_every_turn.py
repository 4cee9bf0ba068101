import torch


def train(cell: torch.nn.RNNCell, steps: int = 3):
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(2, 4)
    for _ in range(steps):
        state = cell(torch.ones(2, 4), state.detach())  # <- TCL305, kept
        optimizer.zero_grad()
        state.sum().backward()  # <- read
        optimizer.step()
    return state
