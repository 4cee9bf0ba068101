"""Fingerprints: what makes two reports of different runs the same report."""

from __future__ import annotations

VERSION = "v1"


def fingerprint(code: str, filename: str, scope: str, statement: str, ordinal: int) -> str:
    """Fingerprint v1 as 32 hexadecimal digits.

    `filename` is relative to the project root, with forward slashes. `scope` is the qualified name of the enclosing
    function or class, empty at module level. `statement` is the text of the blamed statement, in which white space
    does not matter. `ordinal` counts from 0 among findings that are equal in all of these. There is no line number and
    no message in it, so that an edit elsewhere in the file changes no fingerprint.
    """
    import hashlib  # not needed by runs that find nothing

    parts = (VERSION, code, filename, scope, " ".join(statement.split()), str(ordinal))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
