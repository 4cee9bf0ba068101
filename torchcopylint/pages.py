"""Rule pages: the only home of a rule's metadata, and its documentation, tests and examples at once.

A page is a Markdown file whose stem is the rule's name. It starts with flat front matter between two `---` lines
(`key: value`; `key.variant: value` for what differs in a named variant), then a title and the sections in `SECTIONS`.
Examples are fences whose info string is `python bad`, `python good` or `python fixed`; an `observed` fence right
after one holds what the program printed, warned or raised under torch. Expectations stand on the line they speak of:
`# <- finding`, `# <- finding[variant]`, `# <- shared, written`, or another rule's code where that rule reports too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from torchcopylint.base.finding import Confidence, Effect, Role, Severity

SECTIONS = (
    "What it finds",
    "Why it matters",
    "Bad",
    "Good",
    "When it stays silent",
    "How it is verified",
    "Fix safety",
    "References",
)
REQUIRED_KEYS = frozenset({"code", "message", "severity", "default", "since"})
RULE_KEYS = REQUIRED_KEYS | {"fix_title", "confidence", "effect", "blame", "fix", "confirm", "torch"}
OPTIONAL_KEYS = frozenset({"needs", "supersedes", "raises", "against", "own", "doubtful"})
VARIANT_KEYS = frozenset(
    {"message", "severity", "default", "fix_title", "effect", "blame", "confirm", "raises", "against", "doubtful"}
)
DOCS_URL = "https://torchcopylint.github.io/torchcopylint/rules/"

_MARKER = re.compile(r"#\s*<-\s*([^#\n]+?)\s*$")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class PageError(Exception):
    """A rule page is not of the required form; the message names file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One expectation on one line of an example.

    `row` is the 1-based row in the example. `what` is `finding`, a role of a step, or a rule code. `variant` goes
    with `finding`.
    """

    row: int
    what: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced program of a page. `code` is its text with the markers still in it."""

    kind: str
    code: str
    row: int
    marks: tuple[Mark, ...]
    observed: str | None


class _Content(NamedTuple):
    """What stands below the front matter of a page."""

    title: str
    sections: Mapping[str, str]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Page:
    """One rule page. `body` is the text below the front matter, which starts on the 1-based row `row`.

    The body is parsed when it is first asked for: a run over code needs the front matter alone.
    """

    name: str
    path: Path
    keys: Mapping[str, str]
    row: int
    body: str = field(repr=False)

    @property
    def title(self) -> str:
        """The heading of the page."""
        return self._content.title

    @property
    def sections(self) -> Mapping[str, str]:
        """The text of each section by its heading."""
        return self._content.sections

    @property
    def examples(self) -> tuple[Example, ...]:
        """The programs of the page in their order. Raises `PageError` for a fence that is not of the required form."""
        return self._content.examples

    @cached_property
    def _content(self) -> _Content:
        return _parse_body(self.path, self.body, self.row)

    @property
    def code(self) -> str:
        """The rule's code, such as `TCL701`."""
        return self.keys["code"]

    @property
    def family(self) -> str:
        """The code's prefix that names its family, such as `TCL7`."""
        return self.code[:4]

    @property
    def url(self) -> str:
        """Where the page is published."""
        return f"{DOCS_URL}{self.name}/"

    @property
    def summary(self) -> str:
        """The first paragraph of "What it finds" as one line of Markdown."""
        return " ".join(self.sections.get("What it finds", "").strip().split("\n\n")[0].split())

    @property
    def supersedes(self) -> frozenset[str]:
        """Codes that this rule replaces where both report one place and storage."""
        return frozenset(self.keys.get("supersedes", "").replace(",", " ").split())

    def blame(self, variant: str = "") -> Role:
        """Which step takes the blame."""
        return Role(self.get("blame", variant) or "here")

    @property
    def variants(self) -> tuple[str, ...]:
        """Every variant's name, sorted; the unnamed one is not among them."""
        return tuple(sorted({key.partition(".")[2] for key in self.keys if "." in key}))

    def get(self, key: str, variant: str = "") -> str:
        """The value of `key` in a variant, falling back to the unnamed one; empty if the page has neither."""
        return self.keys.get(f"{key}.{variant}") or self.keys.get(key, "")

    def severity(self, variant: str = "") -> Severity:
        """The severity of a variant."""
        return Severity(self.get("severity", variant))

    def told_as(self, variant: str, confidence: Confidence) -> Severity:
        """The severity of a finding: that of its variant, but a warning where an error of that confidence is doubtful.

        `doubtful: medium` says that findings of medium and low confidence were more often wrong than right in code that
        nobody had looked at (`tests/evidence`), `high` that all were. It holds for the variant that it names, alone.
        """
        severity = self.severity(variant)
        doubtful = self.keys.get(f"doubtful.{variant}" if variant else "doubtful")
        if severity is Severity.ERROR and doubtful and confidence.rank >= Confidence(doubtful).rank:
            return Severity.WARNING
        return severity

    def enabled(self, variant: str = "") -> bool:
        """Whether a variant is on by default, severity aside."""
        return self.get("default", variant) == "on"

    def effect(self, variant: str = "") -> Effect:
        """What happens at run time in a variant."""
        return Effect(self.get("effect", variant))

    def confidence(self) -> Confidence:
        """The confidence of a finding whose facts are all proven."""
        return Confidence(self.keys.get("confidence", "high"))

    def placeholders(self, key: str, variant: str = "") -> frozenset[str]:
        """The names that stand in braces in `message` or `fix_title`."""
        return frozenset(_PLACEHOLDER.findall(self.get(key, variant)))

    def fill(self, key: str, variant: str, values: Mapping[str, str]) -> str:
        """`message` or `fix_title` with its placeholders filled in.

        Raises `PageError` when a placeholder has no value.
        """
        text = self.get(key, variant)
        missing = self.placeholders(key, variant) - values.keys()
        if missing:
            raise PageError(f"{self.path}: {key} needs a value for {', '.join(sorted(missing))}")
        return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def parse_page(path: Path) -> Page:
    """Read one page. Raises `PageError` for front matter that is not of the required form."""
    text = path.read_text(encoding="utf-8")
    head, separator, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not separator:
        raise PageError(f"{path}:1: a page starts with front matter between two `---` lines")
    start = len(body) - len(body.lstrip("\n"))
    row = head.count("\n") + 4 + start
    return Page(path.stem, path, _front_matter(path, head), row, body[start:].rstrip() + "\n")


def _parse_body(path: Path, body: str, first: int) -> _Content:
    lines = body.splitlines()
    title = ""
    sections: dict[str, list[str]] = {}
    examples: list[Example] = []
    current: list[str] = []
    row = 0
    while row < len(lines):
        line = lines[row]
        if line.startswith("```"):
            end = _fence_end(path, lines, row, first)
            info = line.strip("`").split()
            if info[:1] == ["python"] and len(info) == 2:
                examples.append(_example(info[1], lines[row + 1 : end], first + row + 1))
            elif info == ["observed"]:
                if not examples or examples[-1].observed is not None:
                    raise PageError(f"{path}:{first + row}: an observed block must follow an example")
                examples[-1] = _with_observed(examples[-1], "\n".join(lines[row + 1 : end]))
            current.extend(lines[row : end + 1])
            row = end + 1
            continue
        if line.startswith("# ") and not title:
            title = line[2:].strip()
        elif line.startswith("## "):
            current = sections.setdefault(line[3:].strip(), [])
        else:
            current.append(line)
        row += 1
    return _Content(title, {name: "\n".join(text).strip() for name, text in sections.items()}, tuple(examples))


def _front_matter(path: Path, head: str) -> dict[str, str]:
    keys: dict[str, str] = {}
    for row, line in enumerate(head.splitlines(), start=2):
        key, colon, value = line.partition(":")
        name, _, variant = key.strip().partition(".")
        if not colon or name not in RULE_KEYS | OPTIONAL_KEYS or (variant and name not in VARIANT_KEYS):
            raise PageError(f"{path}:{row}: unknown front matter: {line}")
        keys[key.strip()] = value.strip()
    return keys


def _fence_end(path: Path, lines: list[str], row: int, first: int) -> int:
    fence = lines[row][: len(lines[row]) - len(lines[row].lstrip("`"))]
    for end in range(row + 1, len(lines)):
        if lines[end].strip() == fence:
            return end
    raise PageError(f"{path}:{first + row}: this fence is not closed")


def _example(kind: str, code: list[str], row: int) -> Example:
    marks = []
    for number, line in enumerate(code, start=1):
        match = _MARKER.search(line)
        if match:
            for item in match[1].split(","):
                what, _, variant = item.strip().partition("[")
                marks.append(Mark(number, what, variant.rstrip("]")))
    return Example(kind, "\n".join(code) + "\n", row, tuple(marks), None)


def _with_observed(example: Example, observed: str) -> Example:
    return Example(example.kind, example.code, example.row, example.marks, observed)


def pages_directory() -> Path:
    """The directory of the rule pages: the packaged copy first, else the checkout's `rules/`.

    A `rules/` beside the package counts only if the `pyproject.toml` beside it names this project, so that a stray
    directory in site-packages is never taken. Raises `PageError` when there is neither.
    """
    package = Path(__file__).resolve().parent
    packaged = package / "rules"
    if packaged.is_dir():
        return packaged
    checkout = package.parent
    manifest = checkout / "pyproject.toml"
    if manifest.is_file() and 'name = "torchcopylint"' in manifest.read_text(encoding="utf-8"):
        return checkout / "rules"
    raise PageError(f"the rule pages are missing: neither {packaged} nor a checkout around {package}")


@cache
def load_pages() -> Mapping[str, Page]:
    """Every rule page by code, in order of code. Raises `PageError` for a malformed page or a code used twice."""
    pages: dict[str, Page] = {}
    for path in sorted(pages_directory().glob("*.md")):
        page = parse_page(path)
        missing = REQUIRED_KEYS - page.keys.keys()
        if missing:
            raise PageError(f"{path}: front matter lacks {', '.join(sorted(missing))}")
        if page.code in pages:
            raise PageError(f"{path}: {page.code} is also the code of {pages[page.code].path.name}")
        pages[page.code] = page
    return dict(sorted(pages.items()))
