"""Settings: what a configuration file or the command line says (a layer), and what holds for a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from torchcopylint.analysis import DEFAULT_LIMITS, Limits
from torchcopylint.base.finding import Confidence, Severity
from torchcopylint.project.patterns import DEFAULT_EXCLUDES, Patterns, PatternStack
from torchcopylint.project.select import RuleIndex, Selection, choose

FORMATS = ("full", "concise", "json", "jsonl", "github", "sarif", "shard")
LIMITS = tuple(limit.name for limit in fields(Limits))
FAIL_ON = ("error", "warning", "info", "never")
VERIFY_POLICIES = ("annotate", "gate", "require")
VERIFY_DEVICES = ("cpu", "cuda")
"""Of the command line alone: a configuration file must not make somebody run code, nor say how."""


@dataclass(frozen=True, slots=True)
class PerFileIgnore:
    """Rules that are not reported for the files that a pattern matches."""

    pattern: str
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one source of settings says; `None` and empty say nothing.

    `base` is the absolute directory that its patterns are relative to. `limits` are fields of `Limits`.
    """

    base: str
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preset: str | None = None
    min_confidence: Confidence | None = None
    fail_on: str | None = None
    per_file_ignores: tuple[PerFileIgnore, ...] | None = None
    exclude: tuple[str, ...] = ()
    force_exclude: bool | None = None
    respect_gitignore: bool | None = None
    output_format: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for the files of a directory.

    `root` is the absolute directory that file names are relative to, `source` the configuration file, if any.
    """

    root: str
    source: str | None
    selection: Selection
    per_file_ignores: tuple[tuple[Patterns, frozenset[str]], ...]
    exclude: PatternStack
    force_exclude: bool
    respect_gitignore: bool
    fail_on: str
    output_format: str
    limits: Limits

    def ignored_in(self, path: str) -> frozenset[str]:
        """The codes that `per-file-ignores` takes away for an absolute path."""
        codes: set[str] = set()
        for patterns, ignored in self.per_file_ignores:
            if patterns.decide(path):
                codes |= ignored
        return frozenset(codes)

    def fails(self, severity: Severity) -> bool:
        """Whether a finding of this severity makes the run fail."""
        return self.fail_on != "never" and severity.rank <= Severity(self.fail_on).rank


def resolve(root: str, source: str | None, layers: tuple[Layer, ...], index: RuleIndex) -> Settings:
    """Combine layers, the weakest first. Raises `UnknownSelector` and `BadPattern`."""
    per_file: tuple[tuple[Patterns, frozenset[str]], ...] = ()
    force_exclude, respect_gitignore = False, True
    fail_on, output_format = "warning", "full"
    limits = DEFAULT_LIMITS
    excludes = [Patterns(root, DEFAULT_EXCLUDES)]
    for layer in layers:
        if layer.per_file_ignores is not None:
            per_file = tuple(_per_file(layer.base, entry, index) for entry in layer.per_file_ignores)
        if layer.exclude:
            excludes.append(Patterns(layer.base, layer.exclude))
        force_exclude = force_exclude if layer.force_exclude is None else layer.force_exclude
        respect_gitignore = respect_gitignore if layer.respect_gitignore is None else layer.respect_gitignore
        fail_on = layer.fail_on or fail_on
        output_format = layer.output_format or output_format
        limits = replace(limits, **layer.limits)
    return Settings(
        root=root,
        source=source,
        selection=choose(layers, index),
        per_file_ignores=per_file,
        exclude=PatternStack(excludes),
        force_exclude=force_exclude,
        respect_gitignore=respect_gitignore,
        fail_on=fail_on,
        output_format=output_format,
        limits=limits,
    )


def _per_file(base: str, entry: PerFileIgnore, index: RuleIndex) -> tuple[Patterns, frozenset[str]]:
    codes = frozenset[str]().union(*(index.require(selector) for selector in entry.selectors))
    return Patterns(base, [entry.pattern]), codes
