"""Other linters, and environments with them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from typing import NamedTuple


class Peer(NamedTuple):
    """A linter: its name, what pip installs for it, and its command line, to which files are added."""

    name: str
    packages: tuple[str, ...]
    command: tuple[str, ...]


PEERS = (
    Peer("TorchFix", ("torchfix",), ("torchfix", "--select", "ALL")),
    Peer("Fixit", ("fixit",), ("fixit", "lint")),
    Peer("flake8-bugbear", ("flake8", "flake8-bugbear"), ("flake8", "--isolated", "--select", "B", "--jobs", "1")),
    Peer("pylint", ("pylint",), ("pylint", "--disable=all", "--enable=E,W", "--jobs", "1")),
    Peer("ruff", ("ruff",), ("ruff", "check", "--isolated", "--no-cache", "--select", "B")),
)


def installed(directory: str) -> Iterator[str]:
    """Install every peer below a directory, each into an environment of its own, print the versions, and yield where
    the programs are. One that cannot be installed is left out, with a word."""
    for peer in PEERS:
        place = os.path.join(directory, peer.name)
        venv.create(place, with_pip=True)
        programs = os.path.join(place, "Scripts" if sys.platform == "win32" else "bin")
        python = os.path.join(programs, "python")
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", *peer.packages], check=False)
        if done.returncode:
            print(f"{peer.name} cannot be installed and is left out\n")
            continue
        listed = subprocess.check_output([python, "-m", "pip", "list", "--format", "freeze"], text=True)
        wanted = (*peer.packages, "libcst")
        pairs = [line.split("==") for line in listed.splitlines() if "==" in line]
        versions = [" ".join(pair) for pair in pairs if pair[0].lower() in wanted]
        print(f"{peer.name}: {', '.join(versions)}\n")
        yield programs
