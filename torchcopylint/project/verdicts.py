"""Verdicts of earlier runs, kept in the user's cache: code that has not changed is not run again.

An entry is found by what the verdict depends on: the text of the file and those of others that it uses, the finding,
the page of its rule, the versions of torch and of this program, and where it runs. Whatever cannot be read or written
is as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from torchcopylint import __version__
from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Evidence, Verdict, Verification
from torchcopylint.pages import Page

_FORM = 1
_PASSING = ("timed out", "its time was up", "did not start", "is gone")
"""Parts of evidence that speak of this machine at this moment."""


class Entry(NamedTuple):
    """A verdict, and the script that it was reached with (empty if none ran)."""

    verification: Verification
    script: str


class Verdicts:
    """The verdicts under one directory, by default the user's cache; `None` keeps nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, key: str) -> Entry | None:
        """The entry with a key, if there is one that can be read."""
        if self._directory is None:
            return None
        try:
            return _entry(json.loads(self._path(self._directory, key).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, entry: Entry) -> None:
        """Keep an entry, unless another run might well say something else."""
        result = entry.verification
        passing = any(part in item.text for item in result.evidence for part in _PASSING)
        if self._directory is None or result.verdict is Verdict.UNAVAILABLE or passing:
            return
        path = self._path(self._directory, key)
        text = json.dumps({"form": _FORM, "verification": asdict(result), "script": entry.script})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.replace(name, path)
        except OSError:
            return

    @staticmethod
    def _path(directory: Path, key: str) -> Path:
        return directory / key[:2] / f"{key}.json"


def user_directory() -> Path:
    """Where verdicts are kept."""
    from platformdirs import user_cache_path

    return user_cache_path("torchcopylint", appauthor=False) / "verdicts"


def key_of(
    text: str, finding: Finding, page: Page, device: str, timeout: float, others: Sequence[tuple[str, str]] = ()
) -> str:
    """What an entry is found by. `others` are the other files, with their texts, of which parts may have been run."""
    steps = [(step.role, step.message, step.filename, step.span) for step in finding.steps]
    parts = (__version__, torch_version(), device, timeout, page.keys, text, finding.code, finding.variant, others)
    return hashlib.sha256(repr((parts, finding.span, steps)).encode()).hexdigest()


@cache
def torch_version() -> str:
    """The version of torch that is installed, without importing it; empty if there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _entry(data: Any) -> Entry:
    if data["form"] != _FORM:
        raise ValueError("another form")
    given = data["verification"]
    evidence = tuple(Evidence(str(e["kind"]), str(e["text"]), e["row"]) for e in given["evidence"])
    result = Verification(
        Verdict(given["verdict"]),
        evidence,
        str(given["torch_version"]),
        str(given["device"]),
        tuple(int(seed) for seed in given["seeds"]),
    )
    return Entry(result, str(data["script"]))
