"""Findings made by hand, for tests of everything that comes after the analysis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torchcopylint.analysis import Analysis
from torchcopylint.base.finding import Confidence, Finding, Position, Role, Severity, Span, Step
from torchcopylint.base.gap import Gap
from torchcopylint.pages import load_pages
from torchcopylint.project.dependencies import NOTHING, Dependencies
from torchcopylint.project.examined import Request
from torchcopylint.report.model import FileReport, Report, Source

TRAINING = """\
import torch


def train(model, optimizer, batches):
    best = None
    for batch in batches:
        best = model.state_dict()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
    model.load_state_dict(best)
"""


def span(row: int, column: int, end_column: int, end_row: int | None = None) -> Span:
    return Span(Position(row, column), Position(end_row or row, end_column))


def step(role: Role, message: str, where: Span, filename: str = "train.py") -> Step:
    return Step(role, message, filename, where)


def finding(
    code: str = "TCL104",
    where: Span | None = None,
    *,
    filename: str = "train.py",
    message: str = "`x.data` is read",
    severity: Severity = Severity.WARNING,
    confidence: Confidence = Confidence.HIGH,
    statement: Span | None = None,
    steps: tuple[Step, ...] | None = None,
    variant: str = "",
    advice: str = "",
    fingerprint: str = "0" * 32,
) -> Finding:
    """A finding of one step unless `steps` are given; the statement is the whole row unless given."""
    page = load_pages()[code]
    where = where or span(1, 1, 2)
    return Finding(
        code=code,
        name=page.name,
        message=message,
        severity=severity,
        confidence=confidence,
        filename=filename,
        span=where,
        statement=statement or Span(Position(where.start.row, 1), Position(where.end.row, 999)),
        steps=steps if steps is not None else (Step(Role.HERE, "here", filename, where),),
        fingerprint=fingerprint,
        url=page.url,
        variant=variant,
        advice=advice,
    )


def snapshot_finding() -> Finding:
    """What TCL701 says of `TRAINING`: shared, written, read."""
    shared = span(7, 16, 34)
    return finding(
        "TCL701",
        shared,
        message="`best` still shares memory with `model`, so later training changes it",
        severity=Severity.ERROR,
        steps=(
            step(Role.SHARED, "shared here", shared),
            step(Role.WRITTEN, "written here: moves the parameters of `model`", span(10, 9, 25)),
            step(Role.READ, "read here", span(11, 27, 31)),
        ),
        advice="best = copy.deepcopy(model.state_dict())",
        fingerprint="0123456789abcdef0123456789abcdef",
    )


def source(name: str, text: str | None) -> Source:
    """A file that is shown by its own name everywhere."""
    lines = None if text is None else tuple(text.split("\n"))
    return Source(shown=name, annotated=name, uri=name, inside=True, lines=lines)


def report(*findings: Finding, texts: Mapping[str, str] | None = None, gaps: tuple[Gap, ...] = ()) -> Report:
    """A report of one file with these findings."""
    texts = {"train.py": TRAINING} if texts is None else texts
    sources = {name: source(name, text) for name, text in texts.items()}
    return Report(
        files=(FileReport(findings, sources),) if findings else (),
        pages=load_pages(),
        version="1.2.3",
        source_root="file:///project/",
        checked=1,
        gaps=gaps,
    )


class ScriptedAnalysis:
    """Stands in for the analysis: answers by the name of the file, with findings, with what
    it depended on, or by raising an exception."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, text: str, request: Request, modules: object, digest: str) -> tuple[Analysis, Dependencies]:
        self.asked.append(request.filename)
        answer = self.answers.get(Path(request.filename).name, ())
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Analysis):
            return answer, NOTHING
        if isinstance(answer, Dependencies):
            return Analysis((), ()), answer
        assert isinstance(answer, tuple)
        return Analysis(answer, ()), NOTHING
