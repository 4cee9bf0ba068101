"""What verification costs: the time of each finding beside that of torch's import, in one run of this program."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks.measure import cost
from torchcopylint.cli.progress import progress
from torchcopylint.pages import load_pages
from torchcopylint.project.config import read_table
from torchcopylint.project.discover import discover
from torchcopylint.project.pipeline import Checker, RunResult
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of

IMPORTS = 3


class Times(NamedTuple):
    """Wall times in seconds: of importing torch in a fresh interpreter, and of each finding that was run."""

    importing: float
    findings: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median finding, in imports of torch."""
        return median(self.findings) / self.importing


def times(paths: Sequence[str]) -> Times:
    """Check files and directories, and run what is found. Raises `ValueError` if nothing that can be run is found."""
    pages = load_pages()
    importing = median(cost((sys.executable, "-c", "import torch")).wall for _ in range(IMPORTS))
    taken = []
    with Verifier() as verifier:
        reason = verifier.available()
        if reason:
            raise ValueError(reason)
        found = [
            (finding, file.text)
            for file in _checked(paths).files
            for finding in file.findings
            if file.text is not None and finding.code in pages and pages[finding.code].get("confirm", finding.variant)
        ]
        bar = progress(len(found), False, os.environ)
        for finding, text in found:
            page = pages[finding.code]
            if bar is not None:
                bar(finding.filename)
            start = time.perf_counter()
            verifier.ahead(page, finding.variant)
            verifier.verify(slice_of(text, finding, page), page)
            taken.append(time.perf_counter() - start)
        if bar is not None:
            bar.clear()
    if not taken:
        raise ValueError("there is no finding that could be run")
    return Times(importing, tuple(taken))


def _checked(paths: Sequence[str]) -> RunResult:
    index = RuleIndex(load_pages())
    cwd = os.getcwd()
    resolver = Resolver(index, cwd=cwd, command_line=read_table("arguments", {}, cwd, index), isolated=True)
    return Checker(index).check(discover(paths, resolver))


def table(measured: Times) -> str:
    """The times as Markdown."""
    rows = [
        ("importing torch, once for all findings", measured.importing),
        ("a finding, median", median(measured.findings)),
    ]
    if len(measured.findings) > 1:
        rows.append(("a finding, 9 of 10 take at most", quantiles(measured.findings, n=10)[-1]))
    lines = ["| | Seconds | Of the import |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {seconds:.3f} | {seconds / measured.importing:.3f} |" for name, seconds in rows]
    return "\n".join([f"{len(measured.findings)} findings", "", *lines])
