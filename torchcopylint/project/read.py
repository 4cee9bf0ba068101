"""Reading a file without being held up or surprised by what it is."""

from __future__ import annotations

import errno
import os
import stat

_KINDS = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISFIFO, "it is a named pipe; standard input is read with `-`"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
_NO_FILE = (errno.ENXIO, errno.EOPNOTSUPP)
"""Errors of opening a socket, whose texts do not say that it is one."""


class CannotRead(Exception):
    """The file cannot be read; the message says why."""


class TooLarge(Exception):
    """The file is over the limit."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def read_file(path: str, maximum: int) -> bytes:
    """The content of a regular file of at most `maximum` bytes. Raises `CannotRead` and `TooLarge`.

    It is opened without blocking before it is looked at, so that neither a pipe without a writer nor a file that is
    exchanged in between can hold the run up.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise CannotRead(_reason(path, error)) from None
    try:
        status = os.fstat(handle)
        for test, kind in _KINDS:
            if test(status.st_mode):
                raise CannotRead(kind)
        if status.st_size > maximum:
            raise TooLarge(status.st_size)
        with os.fdopen(handle, "rb", closefd=False) as file:
            # One byte more than allowed: a file may grow, and some report no size.
            data = file.read(maximum + 1)
    except OSError as error:
        raise CannotRead(_reason(path, error)) from None
    finally:
        os.close(handle)
    if len(data) > maximum:
        raise TooLarge(len(data))
    return data


def _reason(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return "it is a link to a file that does not exist"
    if isinstance(error, IsADirectoryError):
        return "it is a directory"
    if isinstance(error, OSError) and error.errno in _NO_FILE:
        return _kind(path) or reason_of(error)
    return reason_of(error)


def _kind(path: str) -> str:
    """What stands at a path that is no file; empty if it is one or cannot be looked at."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    return next((kind for test, kind in _KINDS if test(mode)), "")


def reason_of(error: OSError | ValueError) -> str:
    """What the system says, to go on a sentence with."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]
