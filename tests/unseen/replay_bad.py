"""A replay buffer that is filled from an environment which changes its observation in place."""

import numpy as np
import torch


class ReplayBuffer:
    def __init__(self, capacity):
        self.capacity = capacity
        self.storage = []

    def push(self, obs, action, reward):
        if len(self.storage) >= self.capacity:
            self.storage.pop(0)
        self.storage.append((obs, action, reward))  # <- TCL708

    def batch(self):
        obs, actions, rewards = zip(*self.storage, strict=True)
        return torch.as_tensor(np.stack(obs)), torch.as_tensor(actions), torch.as_tensor(rewards)


def collect(steps):
    buffer = ReplayBuffer(100)
    state = np.zeros(2, dtype=np.float32)
    for step in range(steps):
        action = step % 2
        buffer.push(state, action, 1.0)
        state[action] += 1.0
        state *= 0.5
    return buffer


obs, _, _ = collect(4).batch()
assert torch.equal(obs[0], obs[3])
