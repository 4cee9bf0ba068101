"""Standard output and standard error: colours, characters that a console lacks, and readers that leave."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import click


class Failure(click.ClickException):
    """Wrong use, shown as one line on standard error; exit code 2."""

    exit_code = 2


def say(message: str) -> None:
    """Write a line for people to standard error."""
    click.echo(message, err=True)


def forgive_encoding() -> None:
    """Let both streams write escapes for characters that the console's encoding lacks, instead of failing.

    A stream that was closed before the start is replaced by one that nobody reads.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def to_nowhere() -> None:
    """Send what is still to be written to standard output nowhere, so that closing it does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def wants_color(choice: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour what goes to a stream.

    `--color always` and `never` decide. Else `NO_COLOR`, if it is set and not empty, forbids colours, and `FORCE_COLOR`
    asks for them; else they are for terminals that are not dumb.
    """
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return environment["FORCE_COLOR"] != "0"
    return stream.isatty() and environment.get("TERM") != "dumb"


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise Failure("standard input is closed")
    return sys.stdin.buffer.read()


def require_writable(output_file: str | None) -> None:
    """Raise `Failure` before the run if its result could not be written after it."""
    if output_file is None:
        return
    directory = os.path.dirname(os.path.abspath(output_file))
    if not os.path.isdir(directory):
        raise Failure(f"cannot write {output_file}: there is no directory {directory}")
    if os.path.isdir(output_file):
        raise Failure(f"cannot write {output_file}: it is a directory")


def write(text: str, output_file: str | None = None) -> None:
    """Write the result to a file or to standard output. Raises `Failure` if that is not possible."""
    try:
        if output_file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            Path(output_file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"cannot write {output_file or 'standard output'}: {error.strerror or error}") from None
