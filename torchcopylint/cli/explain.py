"""The command `explain`: a rule's page on the terminal, or what is to be said of one line of a file."""

from __future__ import annotations

import os
import re
import sys

import click

from torchcopylint.base.finding import Confidence
from torchcopylint.cli.streams import Failure, wants_color, write
from torchcopylint.cli.values import choice
from torchcopylint.pages import Page, PageError, load_pages
from torchcopylint.project.config import ConfigError
from torchcopylint.project.discover import Found
from torchcopylint.project.explaining import CannotExplain, explain_line
from torchcopylint.project.gather import Gatherer
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.run_examples import run_examples, told, verifier_of_examples
from torchcopylint.project.select import RuleIndex, UnknownSelector
from torchcopylint.project.settings import Layer
from torchcopylint.report.explained import render
from torchcopylint.report.terminal import Paint

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_PLACE = re.compile(r"(?P<path>.+?):(?P<row>\d+)(?::\d+)?")
_CELL = re.compile(r"(?P<path>.+?\.ipynb):(?:cell )?(?P<cell>\d+):(?P<row>\d+)(?::\d+)?")
_CODE = re.compile(r"`([^`]+)`")


@click.command(short_help="Print the page of a rule, or explain one line of a file.")
@click.argument("rules", nargs=-1, required=True, metavar="RULE|FILE:LINE...")
@choice("--color", choices=("auto", "always", "never"), default="auto", help="When to use colours. [default: auto]")
@click.option("--run", is_flag=True, help="Run the bad examples of the rules, and say what was observed.")
def explain(rules: tuple[str, ...], color: str, run: bool) -> int:
    """Print the pages of rules, named by code (TCL701) or name (data-read), or explain lines
    (train.py:41, or notebook.ipynb:3:12 for line 12 of cell 3).

    A page is plain Markdown unless it goes to a terminal. Of a line, it is said which findings there are, with their
    stories, which were hidden and by what, and where there are none, what the linter knows there.

    With --run, the bad examples of the rules are executed under torch, in a process that may do nothing else.
    """
    try:
        index = RuleIndex(load_pages())
    except PageError as error:
        raise Failure(str(error)) from None
    readable = wants_color(color, sys.stdout, os.environ)
    if run:
        return _run([_find(rule, index) for rule in rules])
    write("\n".join([_explained(rule, index, readable) for rule in rules]))
    return 0


def _run(pages: list[Page]) -> int:
    """Print the verdicts on the examples of pages."""
    with verifier_of_examples() as verifier:
        write("\n".join([told(page, run_examples(page, verifier)) for page in pages]))
    return 0


def _explained(asked: str, index: RuleIndex, readable: bool) -> str:
    place = _CELL.fullmatch(asked) or _PLACE.fullmatch(asked)
    if place:
        cell = place.groupdict().get("cell")
        return _line(place["path"], int(place["row"]), int(cell) if cell else None, index, readable)
    page = _find(asked, index)
    return _readable(page) if readable else markdown(page)


def _line(name: str, row: int, cell: int | None, index: RuleIndex, color: bool) -> str:
    """The explanation of one line, with the settings that a run would use."""
    cwd = os.getcwd()
    path = os.path.abspath(os.path.join(cwd, name))
    try:
        settings = Resolver(index, cwd=cwd, command_line=Layer(base=cwd)).settings_for(os.path.dirname(path))
        explanation = explain_line(Found(path, settings), row, index, cell)
    except (ConfigError, CannotExplain) as error:
        raise Failure(f"{name}: {error}") from None
    return render(Gatherer(cwd).line(explanation), color=color)


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
    variants = [f"variant {name}: {page.severity(name)}{_doubt(page, name)}" for name in page.variants]
    parts[1] += _doubt(page, "")
    return " · ".join([*parts, *variants, f"since {page.get('since')}"])


def _doubt(page: Page, variant: str) -> str:
    """Which findings of a variant are warnings although it is an error."""
    severity = page.severity(variant)
    told = [confidence for confidence in Confidence if page.told_as(variant, confidence) is not severity]
    if not told:
        return ""
    return " (told as a warning)" if told[0] is page.confidence() else f" (of {told[0]} confidence, a warning)"


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
