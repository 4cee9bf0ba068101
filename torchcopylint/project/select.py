"""Which rules are wanted: codes, prefixes and names, presets, and which selector wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torchcopylint.base.finding import Confidence, Finding, Severity
from torchcopylint.base.suggest import did_you_mean
from torchcopylint.pages import Page

PRESETS = ("bugs", "default", "strict")
PRESET_FLOORS = {"bugs": Confidence.HIGH, "default": Confidence.MEDIUM, "strict": Confidence.LOW}
ALWAYS = frozenset({"TCL000", "TCL005"})
"""Reported whatever is selected: a file that was not checked must not look like a clean one."""
ASKED_FOR = frozenset({"TCL006"})
"""Reported whatever is selected, since a comment asks for it; never a reason for the exit code."""
UNLESS_IGNORED = frozenset({"TCL004"})
"""Reported whatever is selected, for the same reason, unless it is ignored expressly."""

_CODE = re.compile(r"TCL(\d+)", re.IGNORECASE)
_PREFIX = re.compile(r"TCL\d{0,2}", re.IGNORECASE)


class UnknownSelector(ValueError):
    """A selector that stands for no rule; the message names the nearest right one."""


class RuleIndex:
    """The rules by code and name."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = pages
        self.codes = frozenset(pages)
        self.by_name = {page.name: code for code, page in pages.items()}
        self.names = frozenset((*self.codes, *self.by_name))

    def expand(self, selector: str) -> frozenset[str]:
        """The codes that a code, a prefix (`TCL1`), a name (`data-read`) or `ALL` stands for; empty if none.

        Letter case does not matter.
        """
        upper = selector.upper()
        if upper in self.codes:
            return frozenset({upper})
        if upper == "ALL":
            return self.codes
        if selector.lower() in self.by_name:
            return frozenset({self.by_name[selector.lower()]})
        if _PREFIX.fullmatch(selector):
            return frozenset(code for code in self.codes if code.startswith(upper))
        return frozenset()

    def require(self, selector: str) -> frozenset[str]:
        """`expand`, but raises `UnknownSelector` for a selector that stands for no rule."""
        codes = self.expand(selector)
        if not codes:
            raise UnknownSelector(f"there is no rule `{selector}`{self._hint(selector)}")
        return codes

    def _hint(self, selector: str) -> str:
        near = did_you_mean(selector, self.names)
        number = _CODE.fullmatch(selector)
        if near or not number:
            return near or "; `torchcopylint rules` lists them"
        wanted = int(number[1].ljust(3, "0")[:3])
        closest = min(sorted(self.codes), key=lambda code: abs(int(code[3:]) - wanted))
        return f"; the nearest code is `{closest}`"

    def specificity(self, selector: str) -> int:
        """How specific a selector is: a code or name more than any prefix, a longer prefix more than a shorter one."""
        if selector.upper() == "ALL":
            return 0
        return len(selector) if _PREFIX.fullmatch(selector) else 6


class Chooses(Protocol):
    """What one source of settings (a configuration file, the command line) says about rules."""

    @property
    def preset(self) -> str | None:
        """The preset, if given."""

    @property
    def select(self) -> Sequence[str] | None:
        """The selectors that replace the preset's rules, if given."""

    @property
    def extend_select(self) -> Sequence[str]:
        """The selectors that are added."""

    @property
    def ignore(self) -> Sequence[str]:
        """The selectors that are taken away."""

    @property
    def min_confidence(self) -> Confidence | None:
        """The least confidence that is shown, if given."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which findings are shown.

    `selected` are shown with all their variants; `by_preset` as far as the preset shows them; `ignored` were taken away
    expressly.
    """

    preset: str
    floor: Confidence
    selected: frozenset[str]
    by_preset: frozenset[str]
    ignored: frozenset[str]
    pages: Mapping[str, Page]

    def shows(self, finding: Finding) -> bool:
        """Whether a finding of this run is shown."""
        if finding.code in ALWAYS | ASKED_FOR:
            return True
        if finding.code in UNLESS_IGNORED:
            return finding.code not in self.ignored
        if finding.confidence.rank > self.floor.rank:
            return False
        if finding.code in self.selected:
            return True
        return finding.code in self.by_preset and self._by_default(finding.code, finding.variant, finding.severity)

    def enabled(self, code: str) -> bool:
        """Whether a rule can report anything at all."""
        if code in ALWAYS | ASKED_FOR or code in self.selected or (code in UNLESS_IGNORED and code not in self.ignored):
            return True
        page = self.pages.get(code)
        if page is None or code not in self.by_preset:
            return False
        return any(self._by_default(code, variant, page.severity(variant)) for variant in ("", *page.variants))

    def _by_default(self, code: str, variant: str, severity: Severity) -> bool:
        if self.preset == "strict":
            return True
        if severity not in (("error",) if self.preset == "bugs" else ("error", "warning")):
            return False
        page = self.pages.get(code)
        return page is None or page.enabled(variant)


def choose(layers: Sequence[Chooses], index: RuleIndex) -> Selection:
    """Combine sources of settings, the weakest first.

    The last source that gives `select` or a preset decides the base, `select` before the preset of the same source. A
    `select` forgets what weaker sources added and took away; a preset does not. Within a source the most specific
    selector wins, and `ignore` among equally specific ones. Raises `UnknownSelector`.
    """
    preset, first, replaced = "default", 0, False
    floor = PRESET_FLOORS[preset]
    for number, layer in enumerate(layers):
        if layer.preset is not None:
            preset, first, replaced = layer.preset, 0, False
            floor = PRESET_FLOORS[preset]
        if layer.select is not None:
            first, replaced = number, True
        floor = layer.min_confidence or floor
    selected: set[str] = set()
    by_preset = set() if replaced else set(index.codes)
    ignored: set[str] = set()
    for number, layer in enumerate(layers[first:], start=first):
        added = [*layer.extend_select, *(layer.select or () if replaced and number == first else ())]
        for code, wanted in _decide(added, layer.ignore, index).items():
            for codes in (selected, by_preset, ignored):
                codes.discard(code)
            (selected if wanted else ignored).add(code)
    return Selection(preset, floor, frozenset(selected), frozenset(by_preset), frozenset(ignored), index.pages)


def _decide(added: Iterable[str], ignored: Iterable[str], index: RuleIndex) -> dict[str, bool]:
    """What one source says of each code that it mentions."""
    said = [(index.specificity(selector), False, selector) for selector in added]
    said += [(index.specificity(selector), True, selector) for selector in ignored]
    wanted: dict[str, bool] = {}
    for _, taken_away, selector in sorted(said):
        for code in index.require(selector):
            wanted[code] = not taken_away
    return wanted
