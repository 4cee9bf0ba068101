"""The command `verify`: `check --verify`."""

from __future__ import annotations

from typing import Any

import click

from torchcopylint.cli.check import run
from torchcopylint.cli.options import check_options


@click.command(short_help="Check, then run the code around each finding under torch.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@check_options
def verify(**given: Any) -> int:
    """Check, then run the code around each finding under torch and say what happened: `check --verify`.

    It executes code that is derived from the files, in a guarded process of its own. Do not use it on files that you
    do not trust. It needs torch: pip install torchcopylint[verify].
    """
    return run({**given, "verify": True})
