"""The command `check`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from torchcopylint.cli import COMMANDS
from torchcopylint.cli.options import Options, check_options
from torchcopylint.cli.progress import progress
from torchcopylint.cli.streams import Failure, read_stdin, require_writable, say, wants_color, write
from torchcopylint.pages import PageError, load_pages
from torchcopylint.project.config import ConfigError
from torchcopylint.project.discover import Discovery, Found, discover
from torchcopylint.project.engine import ChooseEngine, EngineError, engine_for
from torchcopylint.project.gather import Gatherer
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.pipeline import Checker, RunResult
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex
from torchcopylint.project.settings import Settings
from torchcopylint.project.shards import Share, share
from torchcopylint.project.store import Stores, default_directory
from torchcopylint.report import FOR_PEOPLE, render
from torchcopylint.report.model import Look, Report
from torchcopylint.report.summary import statistics


@click.command(short_help="Check files and directories; the default command.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@check_options
def check(**given: Any) -> int:
    """Check files, directories or, with `-`, standard input.

    Directories are searched for .py, .pyi and .ipynb files. Without paths, the current directory is checked.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong use or an internal error.
    """
    return run(given)


def run(given: Mapping[str, Any]) -> int:
    """Run `check` with what click parsed; the exit code."""
    options = Options.of(given)
    contradiction = options.contradiction()
    if contradiction:
        raise click.UsageError(contradiction)
    try:
        return _Run(options).execute()
    except (ConfigError, EngineError, PageError) as error:
        raise Failure(str(error)) from None


class _Run:
    """One run of `check`: where it is, what it was told, and what holds for it."""

    def __init__(self, options: Options) -> None:
        try:
            self.cwd = os.getcwd()
        except OSError:
            raise Failure("the current directory does not exist any more") from None
        require_writable(options.output_file)
        self.options = options
        self.index = RuleIndex(load_pages())
        self.resolver = Resolver(
            self.index,
            cwd=self.cwd,
            command_line=options.layer(self.cwd, self.index),
            config=options.config,
            isolated=options.isolated,
        )
        paths = options.paths or (() if options.allow_no_paths or options.reads_stdin else (".",))
        self.paths = () if options.reads_stdin else paths
        self.settings = self._first_settings()

    def execute(self) -> int:
        """Check, report, and return the exit code."""
        if self.options.show_settings or self.options.show_files:
            return self._show()
        part = None if self.options.reads_stdin else self._share()
        run = self._verified(self._check_paths(part.discovery) if part else self._check_stdin())
        workspace = os.environ.get("GITHUB_WORKSPACE")
        gatherer = Gatherer(self.cwd, os.path.abspath(workspace) if workspace else None)
        report = gatherer.report(run, self.index.pages, part)
        self._write(report)
        self._complain_of_missing(run.missing)
        for file in run.files:
            if file.failure:
                say(f"internal error in {file.path}:\n{file.failure}")
        return 0 if run.exit_code == 1 and self.options.exit_zero else run.exit_code

    def _show(self) -> int:
        """Print what would be checked, or how; the exit code."""
        from torchcopylint.cli.show import shown_files, shown_settings

        if self.options.show_settings:
            write(shown_settings(self.settings, self.index), self.options.output_file)
            return 0
        discovery = share(discover(self.paths, self.resolver), self.options.shard).discovery
        write(shown_files(discovery, self.cwd), self.options.output_file)
        return self._complain_of_missing(discovery.missing)

    def _first_settings(self) -> Settings:
        """The settings for the run as a whole: those of the first path."""
        name = self.options.stdin_filename if self.options.reads_stdin else next(iter(self.paths), None)
        if not name or "\0" in name:
            return self.resolver.settings_for(self.cwd)
        path = os.path.abspath(os.path.join(self.cwd, name))
        if os.path.isdir(path):
            return self.resolver.settings_for(path, path)
        return self.resolver.settings_for(os.path.dirname(path))

    def _share(self) -> Share:
        """What this run is to do."""
        discovery = discover(self.paths, self.resolver)
        if self.paths and not discovery.files and not discovery.missing and not self.options.quiet:
            say("warning: no Python files found under the given paths")
        return share(discovery, self.options.shard)

    def _check_paths(self, discovery: Discovery) -> RunResult:
        stores = self._stores()
        checker = self._checker(stores)
        try:
            return self._with_progress(checker, discovery)
        finally:
            self._say_notes(stores)

    def _checker(self, stores: Stores | None = None) -> Checker:
        screen = not self.options.no_screen
        return Checker(self.index, stores=stores, choose_engine=self._choose_engine(), screen=screen)

    def _choose_engine(self) -> ChooseEngine:
        if self.options.scheduler is None:
            return partial(engine_for, self.options.jobs)
        from torchcopylint.project.cluster import Cluster  # not needed by other runs

        cluster = Cluster(self.options.scheduler)
        return lambda requests: cluster

    def _say_notes(self, stores: Stores | None) -> None:
        for note in stores.notes if stores and not self.options.quiet else ():
            say(f"note: {note}")

    def _stores(self) -> Stores | None:
        if self.options.no_cache or os.environ.get("TORCHCOPYLINT_NO_CACHE"):
            return None
        named = self.options.cache_dir
        return Stores(os.path.abspath(named) if named else default_directory(os.environ))

    def _with_progress(self, checker: Checker, discovery: Discovery) -> RunResult:
        bar = progress(len(discovery.files), self.options.quiet, os.environ)
        if bar is None:
            return checker.check(discovery)
        try:
            return checker.check(discovery, bar)
        finally:
            bar.clear()

    def _verified(self, run: RunResult) -> RunResult:
        """The run with verdicts, if they were asked for."""
        how = self.options.verifying
        if how is None:
            return run
        from torchcopylint.project.verifying import to_verify, verified, without_torch

        bar = progress(to_verify(run, self.index.pages), self.options.quiet, os.environ)
        try:
            run = verified(run, self.index.pages, how, bar or (lambda path: None))
        except OSError as error:
            raise Failure(f"cannot write to {self.options.repro_dir}: {error.strerror or error}") from None
        finally:
            if bar is not None:
                bar.clear()
        if without_torch(run) and not self.options.quiet:
            say("note: nothing was run, since there is no torch: pip install torchcopylint[verify]")
        return run

    def _check_stdin(self) -> RunResult:
        """Check standard input. One whose name is excluded is not checked: an editor does not know excludes."""
        name = self.options.stdin_filename
        data = read_stdin()
        if not name:
            return RunResult((self._checker().check_bytes(data, Found("<stdin>", self.settings), "<stdin>"),))
        path = os.path.abspath(os.path.join(self.cwd, name))
        if self.settings.exclude.match(path):
            return RunResult(())
        filename = relative_posix(path, self.settings.root)
        stores = self._stores()
        try:
            return RunResult((self._checker(stores).check_bytes(data, Found(path, self.settings), filename),))
        finally:
            self._say_notes(stores)

    def _write(self, report: Report) -> None:
        """Write the findings; what else there is to say goes to standard error if the format is for machines."""
        output_format = self.settings.output_format
        to_file = self.options.output_file is not None
        color = wants_color(
            "never" if to_file and self.options.color == "auto" else self.options.color, sys.stdout, os.environ
        )
        for_people = output_format in FOR_PEOPLE
        look = Look(color=color, quiet=self.options.quiet, statistics=self.options.statistics)
        write(render(report, output_format, look), self.options.output_file)
        if self.options.statistics and not for_people:
            say("\n".join(statistics(report)))

    def _complain_of_missing(self, missing: tuple[str, ...]) -> int:
        """Name the paths that do not exist; the exit code that they make."""
        if missing:
            from torchcopylint.base.suggest import did_you_mean
        for path in missing:
            command = did_you_mean(path, COMMANDS) if path == self.options.paths[0] else ""
            say(f"Error: no such file or directory: {path}{command}")
        return 2 if missing else 0
