"""The command `clean`: remove what earlier runs have remembered."""

from __future__ import annotations

import os

import click

from torchcopylint.cli.options import cache_dir_option
from torchcopylint.cli.streams import Failure, write
from torchcopylint.project.read import reason_of
from torchcopylint.project.store import clean as clean_directory
from torchcopylint.project.store import default_directory


@click.command(short_help="Remove the cache.")
@cache_dir_option
def clean(cache_dir: str | None) -> int:
    """Remove the caches of all projects: those of the user, or those in `--cache-dir`."""
    directory = os.path.abspath(cache_dir) if cache_dir else default_directory(os.environ)
    try:
        removed = clean_directory(directory)
    except OSError as error:
        raise Failure(f"cannot clean {directory}: {reason_of(error)}") from None
    write(f"Removed {removed} cache{'' if removed == 1 else 's'} from {directory}.\n" if removed else "No cache.\n")
    return 0
