"""What an examination depends on besides its own text and the settings: other files, and where names led.

Each file is told of with what it made use of directly; who wants to know what lies behind that follows the `Used`.
"""

from __future__ import annotations

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
    `parameter`, it is that which is asked about: whether a network that is passed for it is frozen, or, if `given`,
    whether what is passed for it is let go of. `recorded` asks whether somebody calls it with recording on."""

    path: str
    owner: str
    name: str
    nested: bool = False
    parameter: str = ""
    given: bool = False
    recorded: bool = False


class Asked(NamedTuple):
    """What was asked of the whole project: whether all that call a function do so with recording off, whether somebody
    surely does so with recording on, or, of a parameter, whether all pass a network for it that is frozen, or what
    nobody else holds or looks at again."""

    callee: Callee
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
