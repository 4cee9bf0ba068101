"""Rewrites the `observed` blocks of the rule pages from what their examples do under the installed torch.

    python -m tests.running.update            every page
    python -m tests.running.update NAME...    the pages of these rules, by name or code
    python -m tests.running.update --check    change nothing; exit 1 and name the pages that would change

The blocks are never written by hand. The front matter key `torch` of each page becomes the version that was used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from torchcopylint.pages import Page, pages_directory, parse_page

from .runner import NOT_RUN, Runner, observed_text

_FENCE = re.compile(r"^(`{3,})(.*)$")


def with_observed(text: str, observe: Callable[[str], str]) -> str:
    """`text` of a page with the `observed` block after each example replaced, or inserted where there is none.

    `observe` takes the code of an example and returns the block's text.
    """
    lines = text.splitlines()
    out: list[str] = []
    row = 0
    while row < len(lines):
        info, end = _fence(lines, row)
        if info[:1] != ["python"] or len(info) != 2:
            out.extend(lines[row : end + 1])
            row = end + 1
            continue
        code = "\n".join(lines[row + 1 : end]) + "\n"
        out += [*lines[row : end + 1], "", "```observed", *observe(code).splitlines(), "```"]
        row = _after_observed(lines, end + 1)
    return "\n".join(out) + "\n"


def _fence(lines: list[str], row: int) -> tuple[list[str], int]:
    """Info words and last row of the fence that starts at `row`; no words and `row` itself where none starts."""
    match = _FENCE.match(lines[row])
    if not match:
        return [], row
    end = next(index for index in range(row + 1, len(lines)) if lines[index].strip() == match[1])
    return match[2].split(), end


def _after_observed(lines: list[str], row: int) -> int:
    """The row after an `observed` block that follows directly or after empty lines; else `row` as it is."""
    start = row
    while start < len(lines) and not lines[start].strip():
        start += 1
    if start < len(lines):
        info, end = _fence(lines, start)
        if info == ["observed"]:
            return end + 1
    return row


def refreshed(page: Page, runner: Runner) -> str:
    """The page's text as it should be under the runner's torch.

    Where something is not here that the page needs, its blocks stay as they are, and new ones say what they wait for.
    """
    text = page.path.read_text(encoding="utf-8")
    needs = page.keys.get("needs", "")
    lacking = runner.lacks(needs)
    if lacking:
        known = {example.code: example.observed for example in page.examples}
        return with_observed(text, lambda code: known.get(code) or NOT_RUN + lacking)
    text = with_observed(text, lambda code: observed_text(runner.run(code, needs=needs)))
    if not page.examples:
        return text
    version = ".".join(runner.torch_version.split(".")[:2])
    return re.sub(r"^torch:.*$", f"torch: {version}", text, count=1, flags=re.MULTILINE)


def chosen(names: list[str]) -> list[Page]:
    """The pages with these names or codes, all pages for no names. Exits for a name that no page has."""
    pages = [parse_page(path) for path in sorted(Path(pages_directory()).glob("*.md"))]
    unknown = set(names) - {page.name for page in pages} - {page.code for page in pages}
    if unknown:
        sys.exit(f"no such page: {', '.join(sorted(unknown))}")
    return [page for page in pages if not names or page.name in names or page.code in names]


def main() -> int:
    """Rewrite or check; returns the exit code."""
    arguments = sys.argv[1:]
    check = "--check" in arguments
    stale = 0
    with Runner() as runner:
        for page in chosen([name for name in arguments if name != "--check"]):
            text = refreshed(page, runner)
            if text == page.path.read_text(encoding="utf-8"):
                continue
            stale += 1
            print(f"{'stale' if check else 'updated'}: {page.path.name}")
            if not check:
                page.path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
