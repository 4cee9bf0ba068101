"""A process that examines files for another: requests come in as lines of JSON, and what each came to goes out as one.

It is a program of its own, started anew on every system, so that nothing of the process that starts it is needed or
copied. It ends when nobody asks any more.
"""

from __future__ import annotations

import json
import os
import sys
from typing import BinaryIO

from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import load_pages
from torchcopylint.project.examined import Projects, Request, examine_file

READY = b"ready\n"
"""The first line that a worker writes."""


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
    projects = Projects()
    answers.write(READY)
    answers.flush()
    for line in requests:
        seen = examine_file(from_plain(Request, json.loads(line)), pages, projects)
        answers.write(json.dumps(to_plain(seen.examined), separators=(",", ":")).encode() + b"\n")
        answers.flush()
