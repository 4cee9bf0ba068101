"""Values of options: choices that name the nearest right one, lists, and pairs of pattern and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from torchcopylint.base.suggest import did_you_mean
from torchcopylint.project.settings import PerFileIgnore
from torchcopylint.project.shards import Shard

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Jobs(click.ParamType[int | None]):
    """A number of processes, or `auto`, which is `None`."""

    name = "jobs"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int | None:
        """The number. A number below one, or another word, is refused."""
        if value == "auto":
            return None
        if not (isinstance(value, str) and value.isascii() and value.isdecimal() and int(value[:9]) > 0):
            self.fail(f"`{value}` is neither a number of processes nor `auto`", parameter, context)
        return int(value[:9])


class _Part(click.ParamType[Shard]):
    """A part of a run, `I/N`."""

    name = "shard"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Shard:
        """The part."""
        shard = Shard.parse(value)
        if shard is None:
            self.fail(f"`{value}` is not of the form I/N, with I from 1 to N", parameter, context)
        return shard


JOBS = _Jobs()
SHARD = _Part()


def choice(*names: str, choices: Sequence[str], help: str, default: str | None = None) -> Decorator:
    """An option with fixed values; a wrong one is answered with the nearest."""

    def convert(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in choices:
            hint = did_you_mean(value, choices) or f"; it is one of {', '.join(choices)}"
            raise click.BadParameter(f"there is no `{value}`{hint}")
        return value

    return click.option(*names, metavar=f"[{'|'.join(choices)}]", callback=convert, default=default, help=help)


def items(values: Sequence[str]) -> tuple[str, ...]:
    """The items of an option that is given repeatedly or with commas."""
    return tuple(item.strip() for value in values for item in value.split(",") if item.strip())


def per_file_ignores(values: Sequence[str]) -> tuple[PerFileIgnore, ...]:
    """`tests/*:TCL104,TCL103` and `a.py:TCL1,b.py:TCL2`: a part with a colon starts a new pattern.

    Raises `click.BadParameter` for rules without a pattern.
    """
    collected: dict[str, list[str]] = {}
    for value in values:
        pattern = None
        for part in items([value]):
            before, colon, after = part.rpartition(":")
            if colon:
                pattern, part = before, after
            if not pattern or not part.strip():
                raise click.BadParameter(f"`{value}` is not of the form PATTERN:RULES", param_hint="--per-file-ignores")
            collected.setdefault(pattern, []).append(part.strip())
    return tuple(PerFileIgnore(pattern, tuple(selectors)) for pattern, selectors in collected.items())
