"""What `--show-settings` and `--show-files` print."""

from __future__ import annotations

import os

from torchcopylint.project.discover import Discovery
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.settings import LIMITS, Settings
from torchcopylint.report.terminal import clean


def shown_settings(settings: Settings, index: RuleIndex) -> str:
    """The settings as comments and TOML, with the rules that can report."""
    selection, limits = settings.selection, settings.limits
    flags = {True: "true", False: "false"}
    lines = [
        f"# project root: {clean(settings.root)}",
        f"# configuration file: {clean(settings.source or 'none')}",
        f"preset = {_quote(selection.preset)}",
        f"min-confidence = {_quote(selection.floor)}",
        f"fail-on = {_quote(settings.fail_on)}",
        f"output-format = {_quote(settings.output_format)}",
        f"force-exclude = {flags[settings.force_exclude]}",
        f"respect-gitignore = {flags[settings.respect_gitignore]}",
        *(f"{name.replace('_', '-')} = {getattr(limits, name)}" for name in LIMITS),
        "exclude = [",
        *(f"    {_quote(line)}," for patterns in settings.exclude.lists for line in patterns.lines),
        "]",
        "# rules that can report:",
        *(
            f"#   {code} {page.name}{' (all variants)' if code in selection.selected else ''}"
            for code, page in index.pages.items()
            if selection.enabled(code)
        ),
        "[per-file-ignores]",
        *(
            f"{_quote(line)} = [{', '.join(_quote(code) for code in sorted(codes))}]"
            for patterns, codes in settings.per_file_ignores
            for line in patterns.lines
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{clean(escaped)}"'


def shown_files(discovery: Discovery, cwd: str) -> str:
    """The files, one a line, relative to the working directory."""
    return "".join(f"{os.path.relpath(found.path, cwd)}\n" for found in discovery.files)
