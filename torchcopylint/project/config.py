"""The table `[tool.torchcopylint]`: finding it, reading it, and saying exactly what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torchcopylint.base.finding import Confidence
from torchcopylint.base.suggest import did_you_mean
from torchcopylint.project.patterns import BadPattern, Patterns
from torchcopylint.project.select import PRESETS, RuleIndex, UnknownSelector
from torchcopylint.project.settings import FAIL_ON, FORMATS, LIMITS, Layer, PerFileIgnore
from torchcopylint.source.text import Undecodable, decode, split_lines

TABLE = "tool.torchcopylint"
FILENAME = "pyproject.toml"
_AT = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$", re.DOTALL)


class ConfigError(ValueError):
    """The configuration is wrong; the message names the file, the key and the nearest right one."""


class ConfigFile(NamedTuple):
    """A configuration file and its settings."""

    path: str
    layer: Layer


def read_nearest(directory: str, index: RuleIndex) -> ConfigFile | None:
    """The settings in `directory`'s own `pyproject.toml`, or `None` if it has none for this tool.

    A `pyproject.toml` that never mentions torchcopylint is not even parsed, so that a broken one that belongs to
    something else does no harm. Raises `ConfigError`.
    """
    path = os.path.join(directory, FILENAME)
    text = _mentioning_text(path)
    if text is None:
        return None
    table = _table(path, _parse(path, text))
    if table is None:
        return None
    return ConfigFile(path, read_table(path, table, directory, index))


def has_table(directory: str) -> bool:
    """Whether `directory` has a `pyproject.toml` with our table. A file that cannot be parsed has none."""
    path = os.path.join(directory, FILENAME)
    text = _mentioning_text(path)
    try:
        return text is not None and _table(path, _parse(path, text)) is not None
    except ConfigError:
        return False


def read_named(path: str, base: str, index: RuleIndex) -> ConfigFile:
    """The settings in a file that `--config` names: its `[tool.torchcopylint]`, or, in a file without a `tool` table,
    its top level. Patterns are relative to `base`. Raises `ConfigError`.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    parsed = _parse(path, _decode(path, data))
    table = _table(path, parsed) if "tool" in parsed or os.path.basename(path) == FILENAME else parsed
    if table is None:
        raise ConfigError(f"{path}: has no table [{TABLE}]")
    return ConfigFile(path, read_table(path, table, base, index))


def _mentioning_text(path: str) -> str | None:
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    return _decode(path, data) if b"torchcopylint" in data else None


def _decode(path: str, data: bytes) -> str:
    try:
        return decode(data).text
    except Undecodable as error:
        raise ConfigError(f"{path}:{error.position.row}:{error.position.column}: {error.reason}") from None


def _parse(path: str, text: str) -> dict[str, Any]:
    import tomllib  # not needed where there is no configuration

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT.match(str(error))
        what = match["what"] if match else str(error)
        if match and match["line"]:
            row, column = int(match["line"]), int(match["column"])
        else:
            lines = split_lines(text)
            row, column = len(lines), len(lines[-1]) + 1
        raise ConfigError(f"{path}:{row}:{column}: not valid TOML: {what[:1].lower()}{what[1:]}") from None


def _table(path: str, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    tool = data.get("tool")
    table = tool.get("torchcopylint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: [{TABLE}] must be a table, not {_kind(table)}")
    return table


def read_table(path: str, table: Mapping[str, Any], base: str, index: RuleIndex) -> Layer:
    """Turn a table into a layer. Raises `ConfigError` for an unknown key, rule or value, or one of a wrong type."""
    values: dict[str, Any] = {}
    limits: dict[str, int] = {}
    for key, value in table.items():
        where = f"{path}: `{key}`"
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"; its keys are {', '.join(KEYS)}"
            raise ConfigError(f"{path}: [{TABLE}] has no key `{key}`{hint}")
        name = key.replace("-", "_")
        (limits if name in LIMITS else values)[name] = KEYS[key](where, value, index)
    return Layer(base=base, limits=limits, **values)


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date or time")


def _expect(where: str, value: object, kind: type, wanted: str) -> None:
    if type(value) is not kind:
        raise ConfigError(f"{where} must be {wanted}, not {_kind(value)}")


def _flag(where: str, value: Any, index: RuleIndex) -> bool:
    _expect(where, value, bool, "true or false")
    return bool(value)


def _count(where: str, value: Any, index: RuleIndex) -> int:
    _expect(where, value, int, "a whole number")
    if value < 1:
        raise ConfigError(f"{where} must be at least 1, not {value}")
    return int(value)


def _strings(where: str, value: Any) -> tuple[str, ...]:
    _expect(where, value, list, "a list of strings")
    for item in value:
        if type(item) is not str:
            raise ConfigError(f"{where} must be a list of strings; it contains {_kind(item)}")
    return tuple(value)


def _selectors(where: str, value: Any, index: RuleIndex) -> tuple[str, ...]:
    selectors = _strings(where, value)
    try:
        for selector in selectors:
            index.require(selector)
    except UnknownSelector as error:
        raise ConfigError(f"{where}: {error}") from None
    return selectors


def _patterns(where: str, value: Any, index: RuleIndex) -> tuple[str, ...]:
    patterns = _strings(where, value)
    try:
        Patterns("", patterns)
    except BadPattern as error:
        raise ConfigError(f"{where}: {error}") from None
    return patterns


def _per_file_ignores(where: str, value: Any, index: RuleIndex) -> tuple[PerFileIgnore, ...]:
    _expect(where, value, dict, "a table of patterns and lists of rules")
    entries = []
    for pattern, selectors in value.items():
        _patterns(where, [pattern], index)
        entries.append(PerFileIgnore(pattern, _selectors(f'{where}, "{pattern}"', selectors, index)))
    return tuple(entries)


def _one_of(choices: Sequence[str]) -> Callable[[str, Any, RuleIndex], str]:
    def read(where: str, value: Any, index: RuleIndex) -> str:
        _expect(where, value, str, "a string")
        if value not in choices:
            raise ConfigError(wrong_choice(f"{where} cannot be", value, choices))
        return str(value)

    return read


def wrong_choice(cannot_be: str, value: str, choices: Sequence[str]) -> str:
    """The message for a value that is none of the choices, with the nearest one or all of them."""
    near = did_you_mean(value, choices)
    return f"{cannot_be} `{value}`" + (near or f"; it is one of {', '.join(choices)}")


def _confidence(where: str, value: Any, index: RuleIndex) -> Confidence:
    return Confidence(_one_of([level.value for level in Confidence])(where, value, index))


KEYS: Mapping[str, Callable[[str, Any, RuleIndex], Any]] = {
    "exclude": _patterns,
    "extend-select": _selectors,
    "fail-on": _one_of(FAIL_ON),
    "force-exclude": _flag,
    "ignore": _selectors,
    "min-confidence": _confidence,
    "output-format": _one_of(FORMATS),
    "per-file-ignores": _per_file_ignores,
    "preset": _one_of(PRESETS),
    "respect-gitignore": _flag,
    "select": _selectors,
    **{name.replace("_", "-"): _count for name in LIMITS},
}
"""Every key of `[tool.torchcopylint]` and what reads its value."""
