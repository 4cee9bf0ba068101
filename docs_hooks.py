"""MkDocs hook: the pages of the rules, generated from `rules/` through `torchcopylint.pages`.

The front matter of a rule page is not YAML (a message may start with a backtick), so MkDocs cannot read the files as
they are. `rules/<name>.md` becomes the page `rules/<name>/` of the site, and `rules/` lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from torchcopylint.base.finding import Confidence
from torchcopylint.cli.explain import facts
from torchcopylint.pages import Example, Page, load_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

FAMILIES: Mapping[str, str] = {
    "TCL0": "The tool's own reports",
    "TCL1": "Writes autograd cannot see",
    "TCL2": "In-place writes autograd refuses",
    "TCL3": "detach, clone and the graph",
    "TCL4": "Memory shared with NumPy, host and device",
    "TCL5": "Views and conditional copies",
    "TCL6": "Lost writes",
    "TCL7": "Snapshots and collections by reference",
    "TCL8": "Parameters, modules, optimizers",
    "TCL9": "Modernise and cost",
}
INDEX = "rules/index.md"
_FENCE = re.compile(r"^(`{3,})(.*)$")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the rule pages into the navigation, by family, in the place of the entry for their index."""
    config.nav = [_with_rules(entry) for entry in config.nav or []]
    return config


def _with_rules(entry: object) -> object:
    if entry != {"Rules": INDEX}:
        return entry
    families = [
        {FAMILIES[family]: [{f"{page.code} {page.name}": f"rules/{page.name}.md"} for page in pages]}
        for family, pages in by_family(load_pages().values()).items()
    ]
    return {"Rules": [INDEX, *families]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of `docs/`."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, INDEX, content=rules_index(load_pages().values())))
    for page in load_pages().values():
        files.append(File.generated(config, f"rules/{page.name}.md", content=rule_page(page)))
    return files


def by_family(pages: Iterable[Page]) -> dict[str, list[Page]]:
    """Pages by the first four letters of their codes, in order of code."""
    families: dict[str, list[Page]] = {}
    for page in sorted(pages, key=lambda page: page.code):
        families.setdefault(page.family, []).append(page)
    return families


def rules_index(pages: Iterable[Page]) -> str:
    """The page that lists all rules, one table a family."""
    parts = ["# Rules", "Every rule is on this list, with its severity and what it finds."]
    for family, members in by_family(pages).items():
        parts += [f"## {family} {FAMILIES[family]}", rules_table(members, "{name}.md")]
    return "\n\n".join(parts) + "\n"


def rules_table(pages: Iterable[Page], link: str) -> str:
    """A Markdown table of rules. `link` is where the page of `{name}` is, seen from the table."""
    rows = ["| Code | Name | Severity | Finds |", "|---|---|---|---|"]
    for page in pages:
        told = {page.told_as(variant, confidence) for variant in ("", *page.variants) for confidence in Confidence}
        severities = [severity.value for severity in sorted(told, key=lambda severity: severity.rank)]
        finds = _without_links(page.summary).replace("|", "\\|")
        rows.append(
            f"| {page.code} | [{page.name}]({link.format(name=page.name)}) | {', '.join(severities)} | {finds} |"
        )
    return "\n".join(rows)


def _without_links(markdown: str) -> str:
    """Links of a page lead elsewhere from where its summary is shown."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", markdown)


def rule_page(page: Page) -> str:
    """One rule page as MkDocs takes it: with what its front matter says in the text, and fences that it knows."""
    title, _, rest = page.body.partition("\n")
    return f"{title}\n\n{facts(page)}\n\n{_messages(page)}\n{_with_plain_fences(page, rest)}"


def _messages(page: Page) -> str:
    if not page.variants:
        return f"> {page.get('message')}\n"
    rows = ["| Variant | Severity | Message |", "|---|---|---|"]
    rows += [
        f"| {variant or '(none)'} | {page.severity(variant).value} | {page.get('message', variant)} |"
        for variant in ("", *page.variants)
    ]
    return "\n".join(rows) + "\n"


def _with_plain_fences(page: Page, text: str) -> str:
    """Info strings as the highlighter understands them; the lines with a finding are highlighted."""
    examples = iter(page.examples)
    lines = []
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif match:
            fence = match[1]
            line = fence + _info(match[2].split(), examples, page)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _info(words: list[str], examples: Iterable[Example], page: Page) -> str:
    if words == ["observed"]:
        return f'text title="observed under torch {page.get("torch")}"'
    if words[:1] != ["python"] or len(words) != 2:
        return " ".join(words)
    example = next(iter(examples))
    rows = sorted({mark.row for mark in example.marks if mark.what == "finding"})
    shown = f' hl_lines="{" ".join(map(str, rows))}"' if rows else ""
    return f'python title="{example.kind}"{shown}'
