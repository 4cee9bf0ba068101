"""Which of several reports about one place is told."""

from __future__ import annotations

import pytest

from torchcopylint.analysis import analyse
from torchcopylint.base.finding import Confidence
from torchcopylint.base.report import Report
from torchcopylint.narrate import Told, settle
from torchcopylint.registry import load_rules

PAGES = {rule.page.code: rule.page for rule in load_rules()}


def _told(code: str, site: int, confidence: Confidence, statement: int = 0) -> Told:
    page = PAGES[code]
    variant = next(iter(page.variants), "")
    return Told(page, Report(site, (), {}, confidence, variant), statement)


def _codes(*told: Told) -> set[str]:
    return {item.code for item in settle(list(told))}


class TestOneReportForAFault:
    def test_what_a_page_supersedes_goes_from_its_whole_statement(self) -> None:
        assert "TCL501" in PAGES["TCL201"].supersedes
        assert _codes(_told("TCL201", 1, Confidence.HIGH), _told("TCL501", 2, Confidence.HIGH)) == {"TCL201"}

    def test_other_statements_keep_theirs(self) -> None:
        both = (_told("TCL201", 1, Confidence.HIGH), _told("TCL501", 2, Confidence.HIGH, statement=1))
        assert _codes(*both) == {"TCL201", "TCL501"}

    def test_the_most_severe_of_one_place_stays(self) -> None:
        worse, milder = _told("TCL202", 1, Confidence.MEDIUM), _told("TCL903", 1, Confidence.HIGH)
        assert worse.severity.rank < milder.severity.rank
        assert _codes(worse, milder) == {"TCL202"}

    @pytest.mark.parametrize("copied", ["self.net.state_dict().copy()", "dict(self.net.state_dict())"])
    def test_what_a_method_and_its_class_see_is_told_once(self, copied: str) -> None:
        """Both see it, and blame the two calls of one expression."""
        text = f"""
import torch
from torch import nn

class Trainer:
    def __init__(self, net: nn.Module, loader):
        self.net, self.loader = net, loader
        self.opt, self.best = torch.optim.Adam(self.net.parameters()), None

    def epoch(self):
        for x in self.loader:
            self.opt.zero_grad()
            self.net(x).sum().backward()
            self.opt.step()

    def fit(self, path, least=9.0):
        for _ in range(9):
            self.epoch()
            if score(self.net) < least:
                self.best = {copied}
        if path:
            self.net.load_state_dict(torch.load(path))
        elif self.best is not None:
            self.net.load_state_dict(self.best)
"""
        found = [finding.code for finding in analyse(text, filename="trainer.py").findings]
        assert found == ["TCL701"]


class TestWhatIsHiddenSilencesNothingShown:
    def test_a_low_one_supersedes_low_ones_only(self) -> None:
        low = _told("TCL201", 1, Confidence.LOW)
        assert _codes(low, _told("TCL501", 1, Confidence.LOW)) == {"TCL201"}
        assert "TCL501" in _codes(low, _told("TCL501", 1, Confidence.MEDIUM))

    def test_a_severe_low_one_leaves_a_milder_sure_one_in_its_place(self) -> None:
        assert "TCL903" in _codes(_told("TCL202", 1, Confidence.LOW), _told("TCL903", 1, Confidence.HIGH))
