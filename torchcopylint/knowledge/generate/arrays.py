"""The rows of `numpy.md`: what the methods of arrays and the functions of numpy do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np  # type: ignore[import-not-found, unused-ignore]

from torchcopylint.knowledge.generate import calls_numpy
from torchcopylint.knowledge.generate.calls import Group
from torchcopylint.knowledge.generate.operations import by_name, rows_of, takes_out
from torchcopylint.knowledge.generate.probe import Case
from torchcopylint.knowledge.generate.rows import NoRow
from torchcopylint.knowledge.generate.samples import RECEIVERS

NAMESPACES: Mapping[str, tuple[Any, Iterable[Group]]] = {
    "numpy": (np, calls_numpy.FUNCTIONS),
    "numpy.linalg": (np.linalg, calls_numpy.LINALG),
    "numpy.fft": (np.fft, calls_numpy.FFT),
    "numpy.lib.stride_tricks": (np.lib.stride_tricks, calls_numpy.STRIDE_TRICKS),
}


def array_sections(skipped: Collection[str]) -> dict[str, list[str]]:
    """The tables of `numpy.md`. Raises `NoRow` for a method or function without a recipe."""
    sections: dict[str, list[str]] = {
        "Methods": _methods(calls_numpy.METHODS, skipped),
        "Special methods": _methods(calls_numpy.SPECIAL, skipped, special=True),
        "Attributes": [],
    }
    for name, groups in by_name(calls_numpy.PROPERTIES).items():
        sections["Attributes"] += _plain(rows_of(f"numpy.ndarray.{name}", _getter(name), name, groups, names=()))
    for namespace, (module, recipes) in NAMESPACES.items():
        sections[namespace] = _functions(namespace, module, by_name(recipes), skipped)
    random = []
    for name, groups in by_name(calls_numpy.RANDOM).items():
        random += _plain(rows_of(f"numpy.random.{name}", _legacy(name), name, groups, names=(), whole=True))
    sections["numpy.random"] = random
    generator = []
    for name, groups in by_name(calls_numpy.GENERATOR).items():
        with_generator = [group._replace(recipe=f"np.random.default_rng(20), {group.recipe}") for group in groups]
        notes = ["out="] if name in ("permuted", "random", "standard_normal", "standard_exponential") else []
        target = _on_first(name)
        full = f"numpy.random.Generator.{name}"
        generator += _plain(rows_of(full, target, name, with_generator, names=(), whole=True, notes=notes))
    sections["numpy.random.Generator"] = generator
    return sections


def _methods(groups: Iterable[Group], skipped: Collection[str], *, special: bool = False) -> list[str]:
    own = by_name(groups)
    public = [name for name in dir(np.ndarray) if not name.startswith("_") and callable(getattr(np.ndarray, name))]
    rows = []
    for name in own if special else public:
        full = f"numpy.ndarray.{name}"
        if full in skipped or name in calls_numpy.NO_ROW.split():
            continue
        if name not in own:
            raise NoRow(f"{full} has no recipe: add one to calls_numpy.py")
        target = getattr(np.ndarray, name)
        rows += _plain(
            rows_of(full, target, name, own[name], names=_names(target), notes=_notes(target, own[name], whole=False))
        )
    return rows


def _functions(namespace: str, module: Any, own: Mapping[str, list[Group]], skipped: Collection[str]) -> list[str]:
    rows = []
    for name in sorted(dir(module)):
        target = getattr(module, name)
        full = f"{namespace}.{name}"
        if name.startswith("_") or not callable(target) or isinstance(target, type) or full in skipped:
            continue
        if name in calls_numpy.NO_ROW.split():
            continue
        groups = own.get(name)
        if groups is None and isinstance(target, np.ufunc):
            groups = [Group(", ".join(["x", "y", "y"][: target.nin]), name, "array")]
            if name in ("matvec", "vecmat"):
                groups = [Group("x, y[0]" if name == "matvec" else "x[0], y", name, "regular array")]
            elif name == "isnat":
                groups = [Group("x.astype('datetime64[s]')", name, "index array")]
        if not groups:
            raise NoRow(f"{full} has no recipe: add one to calls_numpy.py")
        rows += _plain(
            rows_of(
                full, target, name, groups, names=_names(target), whole=True, notes=_notes(target, groups, whole=True)
            )
        )
    return rows


def _notes(target: Callable[..., Any], groups: Iterable[Group], *, whole: bool) -> list[str]:
    """Whether it accepts `out=`: by its signature, or by trying."""
    try:
        takes = "out" in inspect.signature(target).parameters
    except (TypeError, ValueError):
        takes = any(
            takes_out(Case(target, group.recipe, variant, whole))
            for group in groups
            for variant in RECEIVERS[group.receiver][:2]
        )
    return ["out="] if takes or isinstance(target, np.ufunc) else []


def _names(target: Callable[..., Any]) -> list[str]:
    """The names of the positional parameters, where numpy tells them."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _plain(rows: Iterable[str]) -> list[str]:
    """The rows without the flag that speaks of graphs."""
    plain = []
    for row in rows:
        cells = row.removesuffix(" |").split(" | ")
        cells[-1] = " ".join(flag for flag in cells[-1].split() if flag != "no-graph")
        plain.append(" | ".join(cells) + " |")
    return plain


def _getter(name: str) -> Callable[[Any], Any]:
    return lambda array: getattr(array, name)


def _legacy(name: str) -> Callable[..., Any]:
    return lambda *arguments: getattr(np.random.RandomState(3), name)(*arguments)


def _on_first(name: str) -> Callable[..., Any]:
    return lambda generator, *arguments: getattr(generator, name)(*arguments)
