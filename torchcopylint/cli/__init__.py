"""The command line: arguments in, exit code out."""

from __future__ import annotations

COMMANDS = ("check", "clean", "explain", "merge", "rules", "verify")
"""Every command is a function of its own name in a module of its own name."""
