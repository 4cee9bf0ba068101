"""Starts the child: makes the directory of this file importable as a package of its own name, and serves."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "torchcopylint_child"


def main() -> int:
    """Serve requests from standard input; returns the exit code."""
    here = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(NAME, here / "__init__.py", submodule_search_locations=[str(here)])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    serving = importlib.import_module(f"{NAME}.serving")
    return int(serving.main(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
