"""What messages name: the things that a reader can tell apart."""

from __future__ import annotations

from torchcopylint.analysis import analyse

BOTH_HANDED_ON = """\
import torch


class Search:
    def __init__(self, repeat, turns):
        self.repeat, self.turns = repeat, turns

    def adjust(self, const, upper):
        mask = upper > 2
        upper[mask] = torch.min(upper[mask], const[mask])
        const[mask] = upper[mask] / 2

    def run(self):
        const = torch.ones(3) * 3
        upper = torch.ones(3) * 5
        for turn in range(self.turns):
            if self.repeat and turn == self.turns - 2:
                const = upper
            self.adjust(const, upper)
        return upper


print(Search(True, 3).run())
"""


def test_two_names_for_one_tensor_that_a_call_is_handed_are_both_named() -> None:
    (finding,) = analyse(BOTH_HANDED_ON, filename="search.py").findings
    assert finding.code == "TCL501"
    assert finding.message.startswith("`upper` and `const` share memory")
