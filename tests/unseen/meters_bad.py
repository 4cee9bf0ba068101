"""One matrix for each split, made once for all of them."""

import torch


class Meter:
    def __init__(self, classes):
        self.matrices = dict.fromkeys(("train", "test"), torch.zeros(classes, classes))  # <- TCL707
        self.seen = dict.fromkeys(("train", "test"), 0)

    def update(self, split, predicted, gold):
        for p, g in zip(predicted.tolist(), gold.tolist(), strict=True):
            self.matrices[split][g, p] += 1
        self.seen[split] += len(predicted)


meter = Meter(2)
meter.update("train", torch.tensor([0, 1]), torch.tensor([0, 1]))
assert meter.matrices["test"].sum() == 2
assert meter.seen["test"] == 0
