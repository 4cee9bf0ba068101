"""The options of `check`: their declaration, their types, and which of them contradict one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.base.finding import Confidence
from torchcopylint.cli.values import JOBS, SHARD, choice, items, per_file_ignores
from torchcopylint.project.patterns import BadPattern, Patterns
from torchcopylint.project.select import PRESETS, RuleIndex, UnknownSelector
from torchcopylint.project.settings import FAIL_ON, FORMATS, LIMITS, VERIFY_DEVICES, VERIFY_POLICIES, Layer
from torchcopylint.project.shards import WHOLE, Shard

if TYPE_CHECKING:
    from torchcopylint.project.verifying import Verifying

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line of `check`, as it was given. `limits` has those that were."""

    paths: tuple[str, ...]
    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    preset: str | None
    min_confidence: str | None
    fail_on: str | None
    exit_zero: bool
    per_file_ignores: tuple[str, ...]
    exclude: tuple[str, ...]
    force_exclude: bool | None
    respect_gitignore: bool | None
    allow_no_paths: bool
    stdin_filename: str | None
    output_format: str | None
    output_file: str | None
    statistics: bool
    quiet: bool
    color: str
    config: str | None
    isolated: bool
    no_cache: bool
    cache_dir: str | None
    no_screen: bool
    jobs: int | None
    shard: Shard
    scheduler: str | None
    limits: Mapping[str, int]
    show_settings: bool
    show_files: bool
    verify: bool
    verify_policy: str | None
    verify_timeout: float | None
    repro_dir: str | None
    device: str | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """From what click parsed."""
        limits = {name: given[name] for name in LIMITS if given[name] is not None}
        return cls(limits=limits, **{name: value for name, value in given.items() if name not in LIMITS})

    @property
    def verifying(self) -> Verifying | None:
        """How to run the code around findings, or `None` if that was not asked for."""
        if not self.verify:
            return None
        from torchcopylint.project.verifying import TIMEOUT, Verifying

        return Verifying(
            policy=self.verify_policy or "annotate",
            timeout=self.verify_timeout or TIMEOUT,
            scripts=Path(self.repro_dir) if self.repro_dir else None,
            device=self.device or "cpu",
            cached=not self.no_cache,
        )

    @property
    def reads_stdin(self) -> bool:
        """Whether the source is on standard input: `-`, or a name for it and no path."""
        return STDIN in self.paths or (self.stdin_filename is not None and not self.paths)

    def layer(self, base: str, index: RuleIndex) -> Layer:
        """The settings among the options; patterns are relative to `base`. Raises `click.BadParameter`."""
        per_file = per_file_ignores(self.per_file_ignores)
        listed = {
            "--select": items(self.select),
            "--extend-select": items(self.extend_select),
            "--ignore": items(self.ignore),
            "--per-file-ignores": tuple(selector for entry in per_file for selector in entry.selectors),
        }
        for option, selectors in listed.items():
            for selector in selectors:
                try:
                    index.require(selector)
                except UnknownSelector as error:
                    raise click.BadParameter(str(error), param_hint=option) from None
        excluded = items(self.exclude)
        for option, patterns in (
            ("--exclude", excluded),
            ("--per-file-ignores", [entry.pattern for entry in per_file]),
        ):
            try:
                Patterns(base, patterns)
            except BadPattern as error:
                raise click.BadParameter(str(error), param_hint=option) from None
        return Layer(
            base=base,
            select=listed["--select"] if self.select else None,
            extend_select=listed["--extend-select"],
            ignore=listed["--ignore"],
            preset=self.preset,
            min_confidence=Confidence(self.min_confidence) if self.min_confidence else None,
            fail_on=self.fail_on,
            per_file_ignores=per_file or None,
            exclude=excluded,
            force_exclude=self.force_exclude,
            respect_gitignore=self.respect_gitignore,
            output_format=self.output_format,
            limits=self.limits,
        )

    def contradiction(self) -> str | None:
        """What is wrong if two options cannot both be meant."""
        if self.config is not None and self.isolated:
            return "--config names a configuration file and --isolated says to use none; give one of them"
        if self.show_settings and self.show_files:
            return "--show-settings and --show-files cannot be given together; give one of them"
        others = [path for path in self.paths if path != STDIN]
        if STDIN in self.paths and others:
            return f"`-` (standard input) and the path `{others[0]}` cannot be given together"
        if self.scheduler is not None and (self.jobs is not None or self.reads_stdin):
            other = "- (standard input)" if self.reads_stdin else "--jobs"
            return f"--scheduler and {other} do not go together: the cluster does the work"
        if self.shard != WHOLE and self.reads_stdin:
            return "--shard is for files; standard input cannot be divided"
        if self.stdin_filename is not None and others:
            return (
                f"--stdin-filename is for standard input, but the path `{others[0]}` is given; write `-` in its place"
            )
        if not self.verify:
            for option, value in (
                ("--verify-policy", self.verify_policy),
                ("--verify-timeout", self.verify_timeout),
                ("--repro-dir", self.repro_dir),
                ("--device", self.device),
            ):
                if value is not None:
                    return f"{option} says how to run code, and nothing is run without --verify"
        ignored = {selector.upper() for selector in items(self.ignore)}
        for option, values in (("--select", self.select), ("--extend-select", self.extend_select)):
            for selector in items(values):
                if selector.upper() in ignored:
                    return f"{option} and --ignore both name `{selector}`"
        return None


def check_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the options of `check` on a function that takes them by name."""
    for decorate in reversed(_DECLARED):
        function = decorate(function)
    return function


def _flag(name: str, help: str) -> Callable[..., Any]:
    return click.option(name, is_flag=True, help=help)


def _several(name: str, metavar: str, help: str) -> Callable[..., Any]:
    return click.option(name, metavar=metavar, multiple=True, help=help)


def _limit(name: str) -> Callable[..., Any]:
    shown = f"{_OVER.get(name, 'Skip files over this limit.')} [default: {getattr(DEFAULT_LIMITS, name)}]"
    return click.option(f"--{name.replace('_', '-')}", type=click.IntRange(min=1), metavar="N", help=shown)


cache_dir_option = click.option("--cache-dir", metavar="DIR", help="Where to remember what files came to.")
_OVER = {
    "max_file_size": "Skip files of more bytes.",
    "max_nesting": "Skip files with brackets nested deeper.",
    "max_patterns": "Skip files with brackets nested deeper in a `case` or after `del`.",
    "max_strings": "Skip files with more strings behind one another.",
    "max_terms": "Skip files with more `and` and `or` in one condition.",
    "max_chain": "Skip files with longer chains of operators and calls.",
}
_CONFIDENCES = [level.value for level in Confidence]
_DECLARED = (
    _several("--select", "RULES", "Report these rules only: codes, prefixes or names, separated by commas."),
    _several("--extend-select", "RULES", "Report these rules as well."),
    _several("--ignore", "RULES", "Do not report these rules."),
    choice("--preset", choices=PRESETS, help="bugs: sure errors; default: errors and warnings; strict: everything."),
    choice("--min-confidence", choices=_CONFIDENCES, help="Leave out findings that are less sure."),
    choice("--fail-on", choices=FAIL_ON, help="The least severity that makes the exit code 1. [default: warning]"),
    _flag("--exit-zero", "Exit with 0 even if there are findings; wrong use and internal errors stay 2."),
    _several("--per-file-ignores", "PATTERN:RULES", "Do not report these rules for files that match."),
    _several("--exclude", "PATTERNS", "Leave out paths that match, as in a .gitignore file. `!` takes back a default."),
    click.option(
        "--force-exclude/--no-force-exclude", default=None, help="Apply excludes to paths that are named as well."
    ),
    click.option(
        "--respect-gitignore/--no-respect-gitignore", default=None, help="Leave out what .gitignore files leave out."
    ),
    _flag("--allow-no-paths", "Without paths, do nothing instead of checking the current directory; for hooks."),
    click.option("--stdin-filename", metavar="PATH", help="The name of the file that `-` reads from standard input."),
    choice("--output-format", choices=FORMATS, help="How to write findings. [default: full]"),
    click.option("-o", "--output-file", metavar="FILE", help="Write findings to a file instead of standard output."),
    _flag("--statistics", "Add counts by rule, and what the analysis could not see."),
    click.option("-q", "--quiet", is_flag=True, help="Print findings only: no summary, notes or progress bar."),
    choice("--color", choices=("auto", "always", "never"), default="auto", help="When to use colours. [default: auto]"),
    click.option("--config", metavar="FILE", help="Use this configuration file for every path."),
    _flag("--isolated", "Use no configuration file."),
    click.option("-n", "--no-cache", is_flag=True, help="Check every file anew, and remember nothing."),
    cache_dir_option,
    _flag("--no-screen", "Analyse in full also files that surely have no finding."),
    click.option(
        "-j", "--jobs", type=JOBS, default="auto", metavar="N", help="How many processes to use. [default: auto]"
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Check files on the Dask cluster of this scheduler."),
    click.option(
        "--shard", type=SHARD, default="1/1", metavar="I/N", help="Check part I of N only; `merge` puts them together."
    ),
    *(_limit(name) for name in LIMITS),
    _flag("--verify", "Run the code around each finding under torch and say what happened. It executes code!"),
    choice(
        "--verify-policy",
        choices=VERIFY_POLICIES,
        help="annotate: say what happened; gate: drop what was refuted; require: fail on what was confirmed only.",
    ),
    click.option(
        "--verify-timeout",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="Seconds for one run of one script. [default: 5]",
    ),
    click.option("--repro-dir", metavar="DIR", help="Write a stand-alone script for each finding that was run."),
    choice("--device", choices=VERIFY_DEVICES, help="Where to run it. [default: cpu]"),
    _flag("--show-settings", "Print the settings that hold for the first path, and stop."),
    _flag("--show-files", "Print the files that would be checked, and stop."),
)
