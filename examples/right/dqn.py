"""Deep Q-learning on a small grid of continuous positions, with a replay memory of NumPy arrays."""

import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

GAMMA = 0.95
BATCH_SIZE = 32
TARGET_UPDATE = 50
ACTIONS = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]], dtype=np.float32)


class PointEnv:
    """Walk to the origin; an episode is 30 steps."""

    def reset(self):
        self.position = np.random.uniform(-1, 1, size=2).astype(np.float32)
        self.steps = 0
        return self.position.copy()

    def step(self, action):
        self.position = np.clip(self.position + ACTIONS[action], -1, 1)
        self.steps += 1
        reward = -float(np.linalg.norm(self.position))
        return self.position.copy(), reward, self.steps >= 30


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, batch_size):
        states, actions, rewards, next_states, dones = zip(*random.sample(self.memory, batch_size))
        return (
            torch.stack(states),
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.stack(next_states),
            torch.tensor(dones, dtype=torch.float32),
        )

    def __len__(self):
        return len(self.memory)


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 32)
        self.fc2 = nn.Linear(32, len(ACTIONS))

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def select_action(q_net, state, epsilon):
    if random.random() < epsilon:
        return random.randrange(len(ACTIONS))
    with torch.no_grad():
        return q_net(state).argmax().item()


def optimize(q_net, target_net, memory, optimizer):
    states, actions, rewards, next_states, dones = memory.sample(BATCH_SIZE)
    q = q_net(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        next_q = target_net(next_states).max(1)[0]
    target = rewards + GAMMA * next_q * (1 - dones)
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q_net.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)

    env = PointEnv()
    q_net, target_net = QNetwork(), QNetwork()
    target_net.load_state_dict(q_net.state_dict())
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
    memory = ReplayMemory(2000)
    initial_weights = copy.deepcopy(q_net.state_dict())

    total_steps, losses = 0, []
    for episode in range(8):
        obs = env.reset()
        done, episode_return = False, 0.0
        while not done:
            state = torch.from_numpy(obs)
            action = select_action(q_net, state, epsilon=0.2)
            next_obs, reward, done = env.step(action)
            next_state = torch.from_numpy(next_obs)
            obs = next_obs
            memory.push(state, action, reward, next_state, done)
            episode_return += reward
            total_steps += 1
            if len(memory) >= BATCH_SIZE:
                losses.append(optimize(q_net, target_net, memory, optimizer))
            if total_steps % TARGET_UPDATE == 0:
                target_net.load_state_dict(q_net.state_dict())
        print(f"episode {episode}: return {episode_return:.2f}")

    moved = sum((w - initial_weights[name]).abs().sum().item() for name, w in q_net.state_dict().items())
    print(f"mean loss {np.mean(losses):.4f}, weights moved by {moved:.3f}")


if __name__ == "__main__":
    main()
