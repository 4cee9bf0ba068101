"""What an examination depends on besides its own text and the settings: other files, and where names led.

Each file is told of with what it made use of directly; who wants to know what lies behind that follows the `Used`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Dependency(NamedTuple):
    """A file that was made use of, and the digest of its content; empty if it could not be read."""

    path: str
    digest: str


class Lookup(NamedTuple):
    """A name that was looked up, and the files that it led to: another answer today makes an analysis out of date."""

    importer: str
    dotted: str
    found: tuple[str, ...]


class Dependencies(NamedTuple):
    """What one file made use of directly, in order of path and name."""

    files: tuple[Dependency, ...]
    lookups: tuple[Lookup, ...]


class Callee(NamedTuple):
    """A function of a file by its name and that of its class (empty: none); `nested` is one inside a function. With a
    `parameter`, it is that which is meant."""

    path: str
    owner: str
    name: str
    nested: bool = False
    parameter: str = ""


class About(StrEnum):
    """What the whole project is asked about a function: whether all that call it do so with recording off, or somebody
    surely does so with recording on; of a parameter, whether all pass a network for it that is frozen, or what nobody
    else holds or looks at again."""

    OFF = "off"
    RECORDED = "recorded"
    FROZEN = "frozen"
    LET_GO = "let go"


class Question(NamedTuple):
    """A question to the whole project."""

    about: About
    callee: Callee


class Asked(NamedTuple):
    """A question that was asked, and what the answer was."""

    question: Question
    answer: bool


NOTHING = Dependencies((), ())


class Used(NamedTuple):
    """A file that others may have made use of, as it was then, and what it made use of itself."""

    path: str
    digest: str
    dependencies: Dependencies


def digest_of(data: bytes) -> str:
    """What stands for a content, in every run: 32 hexadecimal digits."""
    from hashlib import blake2b  # not needed where every file is known by its date

    return blake2b(data, digest_size=16).hexdigest()


def digest(text: str) -> str:
    """What stands for the content of which nothing but the text is known."""
    return digest_of(text.encode("utf-8", "surrogatepass"))
