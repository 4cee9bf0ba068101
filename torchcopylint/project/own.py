"""The tool's own reports, TCL000 to TCL005, as findings made from their pages."""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.analysis import OverLimit
from torchcopylint.base.finding import Confidence, Finding, Position, Role, Span, Step
from torchcopylint.base.fingerprint import fingerprint
from torchcopylint.pages import Page
from torchcopylint.source.suppress import Problem
from torchcopylint.source.text import START

WHOLE_FILE = Span(START, START)


class OwnReports:
    """Makes the tool's own findings about one file.

    `filename` is relative to the project root, with forward slashes. Fingerprints count equal findings from 0, in the
    order in which they are made.
    """

    def __init__(self, pages: Mapping[str, Page], filename: str) -> None:
        self._pages = pages
        self.filename = filename
        self._seen: dict[tuple[str, str], int] = {}

    def unreadable(self, reason: str, position: Position | None = None, line: str = "") -> Finding:
        """TCL000. `reason` goes on the sentence "the file cannot be read or parsed: ..."; `line` is the line there."""
        position = position or START
        return self.make("TCL000", Span(position, position), {"reason": reason}, line)

    def too_large(self, size: int, maximum: int) -> Finding:
        """TCL004 for a file of `size` bytes."""
        values = {"limit": "size", "value": f"{size} bytes", "maximum": f"{maximum} bytes", "option": "--max-file-size"}
        return self.make("TCL004", WHOLE_FILE, values)

    def over_limit(self, limit: OverLimit) -> Finding:
        """TCL004."""
        values = {
            "limit": limit.limit,
            "value": str(limit.value),
            "maximum": str(limit.maximum),
            "option": limit.option,
        }
        position = Position(max(limit.row, 1), 1)
        return self.make("TCL004", Span(position, position), values)

    def internal(self, reason: str) -> Finding:
        """TCL005. `reason` names the exception."""
        return self.make("TCL005", WHOLE_FILE, {"reason": reason})

    def about(self, problem: Problem, text: str) -> Finding:
        """TCL001 to TCL003. `text` is what stands at the problem's span."""
        return self.make(problem.code, problem.span, problem.values, text, advised=problem.advised)

    def make(
        self, code: str, span: Span, values: Mapping[str, str], statement: str = "", *, advised: bool = True
    ) -> Finding:
        """A finding of one step at one place, worded by its page."""
        page = self._pages[code]
        ordinal = self._seen.get((code, statement), 0)
        self._seen[(code, statement)] = ordinal + 1
        message = page.fill("message", "", values)
        return Finding(
            code=code,
            name=page.name,
            message=message,
            severity=page.severity(),
            confidence=Confidence.HIGH,
            filename=self.filename,
            span=span,
            statement=span,
            steps=(Step(Role.HERE, "here", self.filename, span),),
            fingerprint=fingerprint(code, self.filename, "", statement, ordinal),
            url=page.url,
            advice=page.fill("fix_title", "", values) if advised else "",
        )
