"""The command `explain`: a rule's page on the terminal."""

from __future__ import annotations

import os
import re
import sys

import click

from torchcopylint.cli.streams import Failure, wants_color, write
from torchcopylint.cli.values import choice
from torchcopylint.pages import Page, PageError, load_pages
from torchcopylint.project.select import RuleIndex, UnknownSelector
from torchcopylint.report.terminal import Paint

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")


@click.command(short_help="Print the page of a rule.")
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@choice("--color", choices=("auto", "always", "never"), default="auto", help="When to use colours. [default: auto]")
def explain(rules: tuple[str, ...], color: str) -> int:
    """Print the pages of rules, named by code (TCL701) or name (state-dict-by-reference).

    Plain Markdown unless it goes to a terminal.
    """
    try:
        index = RuleIndex(load_pages())
    except PageError as error:
        raise Failure(str(error)) from None
    pages = [_find(rule, index) for rule in rules]
    readable = wants_color(color, sys.stdout, os.environ)
    texts = [_readable(page) if readable else markdown(page) for page in pages]
    write("\n".join(texts))
    return 0


def _find(rule: str, index: RuleIndex) -> Page:
    try:
        codes = sorted(index.require(rule))
    except UnknownSelector as error:
        raise Failure(str(error)) from None
    if len(codes) > 1:
        raise Failure(f"`{rule}` stands for several rules: {', '.join(codes)}; name one of them")
    return index.pages[codes[0]]


def markdown(page: Page) -> str:
    """The page as Markdown, with a line of what its front matter says."""
    title, _, rest = page.body.partition("\n")
    return f"{title}\n\n{facts(page)}\n{rest}"


def facts(page: Page) -> str:
    """Code, severity and the like in one line."""
    default = "on by default" if page.enabled() else "off by default"
    parts = [page.code, page.severity().value, default]
    parts += [f"{key} {page.get(key)}" for key in ("confidence", "effect", "fix") if page.get(key)]
    variants = [f"variant {name}: {page.severity(name)}" for name in page.variants]
    return " · ".join([*parts, *variants, f"since {page.get('since')}"])


def _readable(page: Page) -> str:
    """The page with headings and code coloured instead of marked up."""
    paint = Paint(color=True)
    lines = []
    fence = ""
    for line in markdown(page).splitlines():
        if not fence and line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
            info = line.strip("`").split()
            if info:
                lines.append(f"    {paint(' '.join(info), 'dim')}")
        elif fence and line.strip() == fence:
            fence = ""
        elif fence:
            lines.append(f"    {paint(line, 'info')}" if line else "")
        elif line.startswith("#"):
            lines.append(paint(line.lstrip("# "), "bold"))
        else:
            linked = _LINK.sub(r"\1 (\2)", line)
            lines.append(_CODE.sub(lambda match: paint(match[1], "info"), linked))
    return "".join(f"{line}\n" for line in lines)
