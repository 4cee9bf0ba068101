"""A process that examines files for another: requests come in as lines of JSON, and what each came to goes out as one.

In between it asks for, and tells, what is known of the files that others use, so that no other worker need follow them
too (`project.exchange`). It is a program of its own, started anew on every system, so that nothing of the process that
starts it is needed or copied. It ends when nobody asks any more.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from torchcopylint.analysis import Limits
from torchcopylint.base.collecting import rare_collections
from torchcopylint.base.packed import pack, unpack
from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import load_pages
from torchcopylint.project.examined import Projects, Request, examine_file
from torchcopylint.project.exchange import LOST, key_of
from torchcopylint.project.modules import Known

READY = b"ready\n"
"""The first line that a worker writes."""
ASK, TELL, ANSWER = "ask", "tell", "answer"
"""The first item of each other line: a file is to be known (its key), is known (its key and what is), or has been
examined (what it came to, and the files that were used). The first two are answered by a line with what is known, or
null."""


def main() -> None:
    """Serve on standard input and output. What anything prints goes to standard error instead."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, answers)
    except (BrokenPipeError, KeyboardInterrupt):
        # Whoever asked is gone.
        os._exit(0)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer request after request until there are no more."""
    pages = load_pages()
    line = _Line(requests, answers)
    projects = Projects(others=line)
    answers.write(READY)
    answers.flush()
    with rare_collections():
        for text in requests:
            seen = examine_file(from_plain(Request, json.loads(text)), pages, projects)
            line.say(ANSWER, to_plain(seen.examined), to_plain(seen.used))


class _Line:
    """The line to the process that asks, and through it to other workers."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests = requests
        self._answers = answers

    def say(self, *what: Any) -> None:
        """Write one line."""
        self._answers.write(json.dumps(what, separators=(",", ":")).encode() + b"\n")
        self._answers.flush()

    def ask(self, root: str, limits: Limits, path: str) -> Known | None:
        """See `project.modules.Others`."""
        self.say(ASK, key_of(root, limits, path))
        return _read(self._answer())

    def tell(self, root: str, limits: Limits, found: Mapping[str, Known]) -> dict[str, Known]:
        """See `project.modules.Others`."""
        items = [(key_of(root, limits, path), f"{known.digest} {pack(known.facts)}") for path, known in found.items()]
        self.say(TELL, items)
        earlier = map(_read, self._answer())
        return {path: before or known for (path, known), before in zip(found.items(), earlier, strict=True)}

    def _answer(self) -> Any:
        line = self._requests.readline()
        if not line:
            raise BrokenPipeError
        return json.loads(line)


def _read(text: str | None) -> Known | None:
    """What somebody else knows of a file, out of its text: the digest, and what it defines."""
    if text is None:
        return None
    digest, _, packed = text.partition(" ")
    return Known(unpack(packed, "torchcopylint.flow") if text != LOST else None, digest)
