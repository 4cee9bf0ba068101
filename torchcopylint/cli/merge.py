"""The command `merge`: the parts of a run that several machines have made, as one result."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from torchcopylint.cli.streams import Failure, require_writable, say, wants_color, write
from torchcopylint.cli.values import choice
from torchcopylint.pages import PageError, load_pages
from torchcopylint.project.read import reason_of
from torchcopylint.project.settings import FORMATS
from torchcopylint.report import FOR_PEOPLE, render
from torchcopylint.report.as_shard import CannotMerge, read
from torchcopylint.report.as_shard import merge as merge_reports
from torchcopylint.report.model import Look, Report
from torchcopylint.report.summary import statistics as counted


@click.command(short_help="Put the shards of a run together.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@choice("--output-format", choices=FORMATS, default="full", help="How to write findings. [default: full]")
@click.option("-o", "--output-file", metavar="FILE", help="Write findings to a file instead of standard output.")
@click.option("--statistics", is_flag=True, help="Add counts by rule, and what the analysis could not see.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings only.")
@choice("--color", choices=("auto", "always", "never"), default="auto", help="When to use colours. [default: auto]")
def merge(
    files: tuple[str, ...],
    output_format: str,
    output_file: str | None,
    statistics: bool,
    exit_zero: bool,
    quiet: bool,
    color: str,
) -> int:
    """Put together what runs with `--shard I/N --output-format shard` have written, each in a FILE.

    What comes out, and the exit code, are those of a run without `--shard`. All N shards are needed.
    """
    require_writable(output_file)
    report = _merged(files)
    to_file = output_file is not None
    colored = wants_color("never" if to_file and color == "auto" else color, sys.stdout, os.environ)
    look = Look(color=colored, quiet=quiet, statistics=statistics)
    write(render(report, output_format, look), output_file)
    if statistics and output_format not in FOR_PEOPLE:
        say("\n".join(counted(report)))
    return 0 if report.exit_code == 1 and exit_zero else report.exit_code


def _merged(files: tuple[str, ...]) -> Report:
    try:
        pages = load_pages()
    except PageError as error:
        raise Failure(str(error)) from None
    reports = []
    for name in files:
        try:
            reports.append(read(Path(name).read_text(encoding="utf-8"), pages))
        except (OSError, UnicodeDecodeError, CannotMerge) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise Failure(f"{name}: {reason}") from None
    try:
        return merge_reports(reports)
    except CannotMerge as error:
        raise Failure(str(error)) from None
