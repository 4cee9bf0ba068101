"""An environment that updates its observation in place, as many do."""

import numpy as np
import torch


class Environment:
    def __init__(self):
        self.state = np.zeros(2, dtype=np.float32)

    def reset(self):
        self.state[:] = 0
        return self.state

    def step(self, action):
        self.state += action
        return self.state, 1.0, False


environment = Environment()
observation = environment.reset()
rollout = []
for _t in range(3):
    rollout.append(torch.from_numpy(observation))  # <- TCL708
    observation, reward, done = environment.step(1.0)
assert torch.stack(rollout)[0].tolist() == [3.0, 3.0]
