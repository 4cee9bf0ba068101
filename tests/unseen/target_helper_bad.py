"""A helper that hands back the network it was given."""

import torch
from torch import nn


def make_target(net: nn.Module) -> nn.Module:
    return net.eval()


class Agent:
    def __init__(self, inputs, outputs, rate=0.5):
        self.actor = nn.Linear(inputs, outputs)
        self.target = make_target(self.actor)  # <- TCL704
        self.rate = rate

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.target.parameters(), self.actor.parameters(), strict=True):
            slow.lerp_(fast, self.rate)


agent = Agent(2, 1)
agent.follow()
assert agent.target is agent.actor
