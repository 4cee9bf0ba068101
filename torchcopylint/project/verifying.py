"""Runs the code around each finding of a run and attaches what happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Evidence, Verdict, Verification
from torchcopylint.pages import Page
from torchcopylint.project.neighbours import Neighbours
from torchcopylint.project.pipeline import FileResult, RunResult
from torchcopylint.project.verdicts import Entry, Verdicts, key_of, user_directory
from torchcopylint.verify.reproducer import reproducer, showing
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of, texts_of_others

TIMEOUT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifying:
    """How findings are to be run.

    `policy`: `annotate` says what happened, `gate` drops findings that were refuted, `require` lets only confirmed ones
    make the exit code 1. `timeout` is in seconds, for one run of one script. `scripts` is a directory for stand-alone
    scripts, created if need be, or `None`. `cached`: verdicts of earlier runs are reused.
    """

    policy: str = "annotate"
    timeout: float = TIMEOUT
    scripts: Path | None = None
    device: str = "cpu"
    cached: bool = True


def to_verify(run: RunResult, pages: Mapping[str, Page]) -> int:
    """How many findings of a run have a rule that can be verified."""
    return sum(_verifiable(finding, pages) for file in run.files for finding in file.findings)


def verified(
    run: RunResult,
    pages: Mapping[str, Page],
    how: Verifying,
    advanced: Callable[[str], None] = lambda path: None,
) -> RunResult:
    """The run with a verdict on every finding that has one. `advanced` is called with a path before each finding.

    Raises `OSError` when a script cannot be written.
    """
    if how.scripts is not None:
        how.scripts.mkdir(parents=True, exist_ok=True)
    kept = Verdicts(user_directory() if how.cached else None)
    with Verifier(timeout=how.timeout, device=how.device) as verifier:
        session = _Session(pages, how, kept, verifier)
        files = tuple(session.file(file, advanced) for file in run.files)
    return replace(run, files=files, confirmed_only=how.policy == "require")


def without_torch(run: RunResult) -> bool:
    """Whether some finding could not be run for want of torch."""
    return any(
        finding.verification is not None and finding.verification.verdict is Verdict.UNAVAILABLE
        for file in run.files
        for finding in file.findings
    )


def _verifiable(finding: Finding, pages: Mapping[str, Page]) -> bool:
    return finding.code in pages and bool(pages[finding.code].get("confirm", finding.variant))


class _Session:
    def __init__(self, pages: Mapping[str, Page], how: Verifying, kept: Verdicts, verifier: Verifier) -> None:
        self._pages = pages
        self._how = how
        self._kept = kept
        self._verifier = verifier
        self._projects: dict[str, Neighbours] = {}

    def file(self, file: FileResult, advanced: Callable[[str], None]) -> FileResult:
        """A file with its findings verified, those that the policy drops left out."""
        if file.text is None:
            return file
        project = self._projects.setdefault(file.settings.root, Neighbours(file.settings.root))
        findings = []
        for finding in file.findings:
            if _verifiable(finding, self._pages):
                advanced(file.path)
                finding = self._finding(finding, file.text, project)
                result = finding.verification
                if self._how.policy == "gate" and result is not None and result.verdict is Verdict.REFUTED:
                    continue
            findings.append(finding)
        return replace(file, findings=tuple(findings))

    def _finding(self, finding: Finding, text: str, project: Neighbours) -> Finding:
        page = self._pages[finding.code]
        key = key_of(text, finding, page, self._how.device, self._how.timeout, texts_of_others(text, finding, project))
        entry = self._kept.find(key)
        if entry is None:
            entry = self._run(finding, text, page, project)
            self._kept.keep(key, entry)
        result = entry.verification
        if self._how.scripts is not None and entry.script:
            path = self._how.scripts / f"{finding.code}-{finding.fingerprint[:12]}.py"
            path.write_text(reproducer(finding, result, entry.script), encoding="utf-8")
            result = replace(result, reproducer=str(path).replace(os.sep, "/"))
        return replace(finding, verification=result)

    def _run(self, finding: Finding, text: str, page: Page, project: Neighbours) -> Entry:
        """Run one finding. A fault of ours costs this verdict alone."""
        try:
            self._verifier.ahead(page, finding.variant)
            piece = slice_of(text, finding, page, device=self._how.device, project=project)
            result = self._verifier.verify(piece, page)
        except Exception as error:
            reason = f"the verification itself failed: {type(error).__name__}: {error}"[:300]
            return Entry(Verification(Verdict.INCONCLUSIVE, (Evidence("failed", reason),)), "")
        counted = self._verifier.counted
        return Entry(result, showing(counted) if counted is not None else "")
