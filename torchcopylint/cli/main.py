"""Which command a command line means, and what its exit code is."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from torchcopylint import __version__
from torchcopylint.base.collecting import rare_collections
from torchcopylint.cli import COMMANDS
from torchcopylint.cli.streams import forgive_encoding, say, to_nowhere

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """The commands, each imported when it is asked for: none needs what another does."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of a name, or `None`."""
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"torchcopylint.cli.{name}"), name)
        return command


@click.group(
    cls=_Commands, context_settings=CONTEXT, options_metavar="", subcommand_metavar="[COMMAND] [OPTIONS] [PATHS]..."
)
@click.version_option(__version__, "-V", "--version", prog_name="torchcopylint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find PyTorch code that copies where it means to share, shares where it means to copy, or bypasses autograd.

    Without a command, `check` is meant: `torchcopylint src` is `torchcopylint check src`, and `torchcopylint` alone
    checks the current directory. `torchcopylint check --help` lists the options.

    Exit codes: 0 no findings, 1 findings, 2 wrong use or an internal error.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Lets `KeyboardInterrupt` through."""
    forgive_encoding()
    try:
        # From here on, since an eighth of what it takes to load all modules would be looks at what they define.
        with rare_collections():
            code = cli.main(_with_command(list(arguments)), prog_name="torchcopylint", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough; nobody is left to tell the rest.
        to_nowhere()
        return 1
    return code if isinstance(code, int) else 0


def _with_command(arguments: list[str]) -> list[str]:
    """The arguments with `check` in front where no command is named."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        if os.path.lexists(first):
            say(f"note: `{first}` is the command; the path of this name is `./{first}`")
        return arguments
    if first in ("-h", "--help", "-V", "--version"):
        return arguments
    return ["check", *arguments]
