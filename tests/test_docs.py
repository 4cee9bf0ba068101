"""The documentation site: it builds strictly, has a page for every rule, and shows what the pages say."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs_hooks import FAMILIES, rule_page, rules_index, rules_table
from torchcopylint.pages import DOCS_URL, Page, load_pages

ROOT = Path(__file__).resolve().parent.parent
LONGEST_STYLE = 100

every_page = pytest.mark.parametrize("page", load_pages().values(), ids=lambda page: page.name)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it."""
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", directory],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return directory


def text_of(path: Path) -> str:
    """What a reader sees of a page, roughly: the article without tags."""
    article = path.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", article))


@every_page
def test_a_rule_has_its_page_at_its_address(site: Path, page: Page) -> None:
    path = page.url.removeprefix(DOCS_URL)
    shown = text_of(site / "rules" / path / "index.html")
    assert page.code in shown
    assert all(section in shown for section in page.sections)


@every_page
def test_the_message_of_every_variant_is_shown(page: Page) -> None:
    shown = rule_page(page)
    assert all(page.get("message", variant) in shown for variant in ("", *page.variants))


def test_examples_are_highlighted_as_python_with_the_findings_marked(site: Path) -> None:
    shown = (site / "rules" / "state-dict-by-reference" / "index.html").read_text(encoding="utf-8")
    bad = sum(example.kind == "bad" for example in load_pages()["TCL701"].examples)
    assert shown.count('<span class="filename">bad</span>') == bad
    assert shown.count('<span class="hll">') == bad
    assert "observed under torch 2." in shown
    assert "```" not in shown


def test_front_matter_is_not_shown(site: Path) -> None:
    assert "fix_title" not in text_of(site / "rules" / "state-dict-by-reference" / "index.html")


def test_the_index_links_every_rule(site: Path) -> None:
    index = (site / "rules" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page.name}/"' in index for page in load_pages().values())


def test_the_navigation_has_every_rule(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="rules/{page.name}/"' in start for page in load_pages().values())


def test_every_family_with_a_rule_has_a_title() -> None:
    assert {page.family for page in load_pages().values()} <= set(FAMILIES)
    assert rules_index(load_pages().values()).count("\n## TCL") == len({p.family for p in load_pages().values()})


def test_a_table_names_all_severities_of_a_rule() -> None:
    (row,) = [row for row in rules_table(load_pages().values(), "{name}.md").splitlines() if "TCL103" in row]
    assert row.startswith("| TCL103 | [data-write](data-write.md) | warning, info | A tensor is written")


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = r'<(?:script|img|iframe)[^>]+src="(https?:)?//|<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="https?:'
    for path in site.rglob("*.html"):
        assert not re.search(loaded, path.read_text(encoding="utf-8")), path


def test_the_style_guide_fits_in_the_head() -> None:
    text = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_STYLE
    rules = re.findall(r"^- .*?(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(rules) > 20
    assert [rule for rule in rules if not rule.rstrip().endswith("*")] == [], "a rule without its reason"


def test_the_placeholders_are_those_that_the_pages_are_tested_for() -> None:
    from test_pages import PLACEHOLDERS

    text = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `\{(\w+)\}` \| (.*?) \|$", text, re.MULTILINE)).keys() == PLACEHOLDERS.keys()
