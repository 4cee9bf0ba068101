"""What the linter says: a finding with its steps, as data. Formats render it; nothing here formats anything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from torchcopylint.base.verification import Verification


class Severity(StrEnum):
    """How bad a finding is: `error` raises or is silently wrong, `warning` is a hazard, `info` is a nicer spelling."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for error, 1 for warning, 2 for info: smaller is worse."""
        return ("error", "warning", "info").index(self.value)


class Confidence(StrEnum):
    """How sure the facts behind a finding are."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for high, 1 for medium, 2 for low: smaller is surer."""
        return ("high", "medium", "low").index(self.value)


class Effect(StrEnum):
    """What happens at run time."""

    RAISES = "raises"
    SILENT = "silent"
    WASTES = "wastes"


class Role(StrEnum):
    """What a step of a narration does. A closed set: blame, JSON `related.role` and example markers use it."""

    SHARED = "shared"
    WRITTEN = "written"
    READ = "read"
    KEPT = "kept"
    SAVED = "saved"
    MOVED = "moved"
    CUT = "cut"
    DISCARDED = "discarded"
    HERE = "here"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text. Row and column are 1-based; columns count code points."""

    row: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text; `end` is exclusive."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a narration: what happened at a span, in execution order.

    `message` is a phrase without a line number ("written here: moves the parameters of `model`").
    `filename` is relative to the project root, with forward slashes. `cell` is the 1-based notebook cell that the span
    is relative to, `None` outside notebooks.
    """

    role: Role
    message: str
    filename: str
    span: Span
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One report about one place.

    `span` is the blamed place, one of the steps' spans. `statement` is the whole statement around it: a suppression
    may stand on any of its lines. `variant` names the page's variant that severity, default and message came from,
    or is empty. `advice` is the imperative last line ("best = copy.deepcopy(model.state_dict())"), or empty.
    `cell` is the 1-based notebook cell, `None` outside notebooks. `filename` is relative to the project root, with
    forward slashes. `verification` is what running the code showed, `None` if it was not run.
    """

    code: str
    name: str
    message: str
    severity: Severity
    confidence: Confidence
    filename: str
    span: Span
    statement: Span
    steps: tuple[Step, ...]
    fingerprint: str
    url: str
    variant: str = ""
    advice: str = ""
    cell: int | None = None
    verification: Verification | None = None

    @property
    def order(self) -> tuple[str, int, Position, str, str]:
        """Total sort key: file, cell, place, code, fingerprint."""
        return (self.filename, self.cell or 0, self.span.start, self.code, self.fingerprint)
