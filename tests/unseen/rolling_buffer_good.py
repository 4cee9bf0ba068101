"""The row is copied before it is kept."""

import torch


class Ring:
    def __init__(self, size, width):
        self.rows = torch.zeros(size, width)
        self.position = 0

    def push(self, row):
        self.rows[self.position] = row
        self.position = (self.position + 1) % len(self.rows)

    def last(self):
        return self.rows[self.position - 1]


ring, seen = Ring(2, 2), []
for t in range(4):
    ring.push(torch.full((2,), float(t)))
    seen.append(ring.last().clone())
assert seen[0].tolist() == [0.0, 0.0]
