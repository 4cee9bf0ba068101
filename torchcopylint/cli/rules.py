"""The command `rules`: a list of all rules."""

from __future__ import annotations

import json
from typing import Any

import click

from torchcopylint.cli.streams import Failure, write
from torchcopylint.cli.values import choice
from torchcopylint.pages import Page, PageError, load_pages


@click.command(short_help="List all rules.")
@choice("--output-format", choices=("text", "json"), default="text", help="How to write the list. [default: text]")
def rules(output_format: str) -> int:
    """List all rules with severity, default and summary."""
    try:
        pages = list(load_pages().values())
    except PageError as error:
        raise Failure(str(error)) from None
    write(_as_json(pages) if output_format == "json" else _as_text(pages))
    return 0


def _as_text(pages: list[Page]) -> str:
    width = max((len(page.name) for page in pages), default=0)
    rows = [
        (page.code, f"{page.name:<{width}}", f"{page.severity():<7}", "on " if page.enabled() else "off", page.summary)
        for page in pages
    ]
    return "".join("  ".join(row) + "\n" for row in rows)


def _as_json(pages: list[Page]) -> str:
    return json.dumps([_entry(page) for page in pages], indent=2) + "\n"


def _entry(page: Page) -> dict[str, Any]:
    return {
        "code": page.code,
        "name": page.name,
        "severity": page.severity().value,
        "default": page.get("default"),
        "summary": page.summary,
        "message": page.get("message"),
        "confidence": page.get("confidence") or None,
        "effect": page.get("effect") or None,
        "fix": page.get("fix") or None,
        "variants": {
            name: {"severity": page.severity(name).value, "default": page.get("default", name)}
            for name in page.variants
        },
        "since": page.get("since"),
        "url": page.url,
    }
