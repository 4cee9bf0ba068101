"""The scripts in `examples/` and what is marked in them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
FAULTY = sorted(EXAMPLES.glob("faulty/*.py"))
RIGHT = sorted(EXAMPLES.glob("right/*.py"))

_MARK = re.compile(r"#\s*expect:\s*(.*)$")

Planted = tuple[str, int, str]
"""Name of the file, 1-based row, code."""


def planted(path: Path) -> Counter[Planted]:
    """The faults that are marked in a file by `# expect: TCL701` (several codes are separated by commas)."""
    found: Counter[Planted] = Counter()
    for row, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _MARK.search(line)
        if match:
            found.update((path.name, row, code.strip()) for code in match[1].split(","))
    return found


def all_planted() -> Counter[Planted]:
    """The marked faults of all faulty scripts."""
    return sum((planted(path) for path in FAULTY), Counter())
