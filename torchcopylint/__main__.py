"""`python -m torchcopylint`, and the console script `torchcopylint`."""

from __future__ import annotations

import sys

from torchcopylint import __version__

INTERRUPTED = 130
"""128 + SIGINT, what a shell reports for a command that Ctrl-C ended."""


def main() -> int:
    """Run the command line of this process and return its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        # Answered without loading anything: editors and hooks ask for it often.
        print(f"torchcopylint {__version__}")
        return 0
    try:
        from torchcopylint.cli.main import run

        return run(arguments)
    except KeyboardInterrupt:
        print("torchcopylint: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
