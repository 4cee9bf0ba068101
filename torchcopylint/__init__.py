"""A linter that understands copying in PyTorch: what is copied, what is shared, what autograd cannot see."""

from __future__ import annotations

# Type checkers take this name for true. Importing it from `typing` would cost more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from torchcopylint.base.finding import Finding

__version__ = "0.1.0"
__all__ = ["Finding", "__version__", "check_paths", "check_source"]


def check_source(
    text: str,
    filename: str = "<string>",
    *,
    preset: str | None = None,
    select: Sequence[str] | None = None,
    extend_select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    min_confidence: str | None = None,
) -> list[Finding]:
    """Check one source text and return its findings in order.

    `filename` is the name that stands in the findings, and says where the files are that the text imports; it is not
    read itself, and no configuration file is used. A name in angle brackets is no file's. The other arguments are the
    options of the command line of the same names. A text that does not parse is a finding (TCL000), not an exception.
    Raises `ValueError` for an unknown rule, preset or confidence.
    """
    from torchcopylint import api

    return api.check_source(text, filename, api.arguments(preset, select, extend_select, ignore, min_confidence))


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    config: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    preset: str | None = None,
    select: Sequence[str] | None = None,
    extend_select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    min_confidence: str | None = None,
) -> list[Finding]:
    """Check files and directories and return the findings, file by file in order of path.

    Relative paths are relative to the working directory. The arguments are the options of the command line of the same
    names; configuration files are found as there. A file that cannot be read or parsed is a finding (TCL000). Raises
    `FileNotFoundError` for a path that does not exist, and `ValueError` for wrong settings, in a configuration file
    or here.
    """
    from torchcopylint import api

    chosen = api.arguments(preset, select, extend_select, ignore, min_confidence)
    return api.check_paths(paths, chosen, config=config, isolated=isolated)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load `Finding` when it is first asked for: importing this package alone stays light."""
        if name == "Finding":
            from torchcopylint.base.finding import Finding

            return Finding
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
