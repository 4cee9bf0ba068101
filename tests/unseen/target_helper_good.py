"""A helper that makes a copy."""

import copy

import torch
from torch import nn


def make_target(net: nn.Module) -> nn.Module:
    target = copy.deepcopy(net).eval()
    return target.requires_grad_(False)


class Agent:
    def __init__(self, inputs, outputs, rate=0.5):
        self.actor = nn.Linear(inputs, outputs)
        self.target = make_target(self.actor)
        self.rate = rate

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.target.parameters(), self.actor.parameters(), strict=True):
            slow.lerp_(fast, self.rate)


agent = Agent(2, 1)
agent.follow()
assert agent.target is not agent.actor
