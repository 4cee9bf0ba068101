import torch
from torch import nn

online, target = nn.Linear(2, 1), nn.Linear(2, 1)
state = online.state_dict()
target.load_state_dict(state)
kept = target.weight  # <- TCL702, shared
optimizer = torch.optim.SGD(online.parameters(), lr=0.5)
online(torch.ones(1, 2)).sum().backward()
optimizer.step()  # <- written
print(kept)  # <- read
