"""A character model whose state goes on from chunk to chunk."""

import torch
from torch import nn


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, x, state):
        y, state = self.lstm(self.embedding(x), state)
        return self.out(y), state

    def start(self, batch):
        return torch.zeros(1, batch, self.lstm.hidden_size), torch.zeros(1, batch, self.lstm.hidden_size)


def train(model, chunks):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    state = model.start(2)
    for x, y in chunks:
        optimizer.zero_grad()
        logits, state = model(x, state)  # <- TCL305
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()  # <- raises
        optimizer.step()


train(CharRNN(5, 4), [(torch.randint(0, 5, (2, 3)), torch.randint(0, 5, (2, 3))) for _ in range(3)])
