"""Rewrites the parts of documents that are generated: tables of rules, and output of the command line.

    python -m tests.generated_parts            rewrite
    python -m tests.generated_parts --check    change nothing; exit 1 and name the documents that would change

Such a part stands between two comments:

    <!-- rules -->
    <!-- /rules -->

    <!-- output: torchcopylint --select TCL101 examples/faulty/pgd_attack.py -->
    <!-- /output -->

    <!-- sharing: views -->
    <!-- /sharing -->

    <!-- tutorials: clone -->
    <!-- /tutorials -->

The first is a table of all rules, the second a command and what it prints when it is run from the top of the checkout,
the third a table of what operations do with memory (`sharing_table`), the fourth what tutorials get wrong
(`tutorial_errors`).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from docs_hooks import rules_table
from tests import sharing_table, tutorial_errors
from torchcopylint.pages import load_pages

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_PART = re.compile(r"(<!-- (rules|output|sharing|tutorials)(?:: ([^\n]*))? -->\n)(.*?)(<!-- /\2 -->\n)", re.DOTALL)


def refreshed(text: str) -> str:
    """A document with its generated parts as they should be."""
    return _PART.sub(lambda match: f"{match[1]}\n{_part(match[2], match[3])}\n\n{match[5]}", text)


def parts(text: str) -> list[str]:
    """The kinds of the generated parts of a document, in order."""
    return [match[2] for match in _PART.finditer(text)]


def _part(kind: str, argument: str | None) -> str:
    if kind == "rules":
        return rules_table(load_pages().values(), "rules/{name}.md")
    assert argument, f"this part needs to say what of: {kind}"
    if kind == "sharing":
        return sharing_table.rendered(argument)
    if kind == "tutorials":
        return tutorial_errors.rendered(argument)
    return f"```console\n$ {argument}\n{output(argument)}\n```"


def output(command: str) -> str:
    """What a command prints on a terminal without colours. Only torchcopylint itself is run."""
    program, *arguments = shlex.split(command)
    assert program == "torchcopylint", command
    done = subprocess.run(
        [sys.executable, "-m", "torchcopylint", *arguments, "--isolated", "--color", "never"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout
    return done.stdout.strip("\n")


def main() -> int:
    """Rewrite or check; returns the exit code."""
    stale = []
    for path in DOCUMENTS:
        old = path.read_text(encoding="utf-8")
        new = refreshed(old)
        if new != old:
            stale.append(path.relative_to(ROOT))
            if "--check" not in sys.argv[1:]:
                path.write_text(new, encoding="utf-8")
    for name in stale:
        print(f"{'stale' if '--check' in sys.argv[1:] else 'updated'}: {name}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
