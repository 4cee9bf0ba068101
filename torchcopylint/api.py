"""The public functions, behind the names that `torchcopylint` exports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from torchcopylint.base.finding import Finding
from torchcopylint.pages import load_pages
from torchcopylint.project.config import read_table
from torchcopylint.project.discover import Found, discover
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex


def arguments(
    preset: str | None,
    select: Sequence[str] | None,
    extend_select: Sequence[str],
    ignore: Sequence[str],
    min_confidence: str | None,
) -> Mapping[str, object]:
    """The arguments that were given, as a configuration file would write them."""
    table = {
        "preset": preset,
        "select": None if select is None else list(select),
        "extend-select": list(extend_select),
        "ignore": list(ignore),
        "min-confidence": min_confidence,
    }
    return {key: value for key, value in table.items() if value is not None}


def check_source(text: str, filename: str, chosen: Mapping[str, object]) -> list[Finding]:
    """See `torchcopylint.check_source`."""
    cwd = os.getcwd()
    index = RuleIndex(load_pages())
    layer = read_table("arguments", chosen, cwd, index)
    settings = Resolver(index, cwd=cwd, command_line=layer, isolated=True).settings_for(cwd)
    # A text without the name of a file has no other files beside it.
    found = Found(filename if filename.startswith("<") else os.path.join(cwd, filename), settings)
    return list(Checker(index).check_text(text, found, filename).findings)


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    chosen: Mapping[str, object],
    *,
    config: str | os.PathLike[str] | None,
    isolated: bool,
) -> list[Finding]:
    """See `torchcopylint.check_paths`."""
    cwd = os.getcwd()
    index = RuleIndex(load_pages())
    layer = read_table("arguments", chosen, cwd, index)
    named = os.fspath(config) if config is not None else None
    resolver = Resolver(index, cwd=cwd, command_line=layer, config=named, isolated=isolated)
    discovery = discover([os.fspath(path) for path in paths], resolver)
    if discovery.missing:
        raise FileNotFoundError(f"no such file or directory: {', '.join(discovery.missing)}")
    run = Checker(index).check(discovery)
    return [finding for file in run.files for finding in file.findings]
