import copy

import torch


class Agent:
    def __init__(self, online: torch.nn.Module):
        self.online = online
        self.target = copy.deepcopy(online)  # <- TCL703, shared
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)

    def learn(self, x: torch.Tensor):
        loss = (self.online(x) - self.target(x).detach()).pow(2).mean() + self.online(x).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  # <- written
        return self.target(x)  # <- read
