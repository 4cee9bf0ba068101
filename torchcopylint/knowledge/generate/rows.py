"""Turns what was observed of an operation into the cells of its row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchcopylint.knowledge.generate.probe import Case, NotCallable, Seen, observe
from torchcopylint.knowledge.generate.samples import RECEIVERS
from torchcopylint.knowledge.table import OUTPUT, Argument

_MIXED = {
    frozenset({"self", "tensor"}): "tensor",
    frozenset({"self", "array"}): "array",
    frozenset({"bool", "number"}): "number",
    frozenset({"list", "number", "bool"}): "list",
    frozenset({"list", "number"}): "list",
    frozenset({"array", "number"}): "array",
    frozenset({"array", "number", "bool"}): "array",
    frozenset({"self", "array", "number"}): "array",
    frozenset({"size", "number"}): "size",
    frozenset({"none", "object"}): "object",
    frozenset({"size", "tensors"}): "tensors",
    frozenset({"arrays", "list"}): "arrays",
    frozenset({"arrays", "size"}): "arrays",
    frozenset({"array", "arrays", "size"}): "arrays",
    frozenset({"array", "none"}): "array",
    frozenset({"number", "self"}): "array",
}
"""What the results of different calls of one operation are called together."""

_TENSOR_RESULTS = frozenset({"tensor", "tensors", "self", "iterator"})
_TINY = ("0-d", "1 element")
_ORDER = {"input": 0, "output": 1, "indices": 2, "other": 3}


class NoRow(Exception):
    """An operation for which no row can be made: none of its recipes could be called, or its calls disagree."""


def observe_all(target: Callable[..., Any], recipes: Iterable[tuple[str, str]], *, whole: bool = False) -> list[Seen]:
    """What each call of an operation did. A recipe is the source of the arguments and a kind of receiver.

    Raises `NoRow` when a recipe could not be called on any of its receivers, so that none rots unseen.
    """
    found: list[Seen] = []
    reads = leaves_some = False
    for recipe, receiver in recipes:
        refused = ""
        before = len(found)
        for variant in RECEIVERS[receiver]:
            case = Case(target, recipe, variant, whole)
            # The content is looked at only as long as it can still change the answer.
            settled = reads and (leaves_some or not found[-1].written)
            graph = variant.dtype in ("float32", "float64", "complex64") and variant.layout in (
                "contiguous",
                "sparse",
                "nested",
            )
            try:
                found.append(observe(case, content=not settled, graph=graph))
            except NotCallable as error:
                refused = str(error)
                continue
            reads |= found[-1].reads
            leaves_some |= found[-1].written.get(0) == "content" and not found[-1].overwrites
        if len(found) == before:
            raise NoRow(f"{target} cannot be called with ({recipe}): {refused}")
    return found


def cells(seen: Sequence[Seen], *, when: str = "", names: Sequence[str] = (), notes: Sequence[str] = ()) -> list[str]:
    """The cells after the name: result, shares, writes, saves, dtype, arguments, notes.

    `when` replaces what the samples show of the condition of a conditional copy or write: it names what they cannot
    show, such as `device`. `names` are the parameter names by position. `notes` are further flags. Raises `NoRow` when
    the calls disagree.
    """
    result = _result(seen)
    flags: list[str] = []
    shares = _shares(seen, result, when, flags)
    if result == "self" and shares.startswith("maybe"):
        result = "tensor"
    writes = _writes(seen, when, flags)
    saves = _saves(seen)
    if not any(one.reads for one in seen):
        flags.append("no-read")
    if shares.startswith("multi") and any(one.apart for one in seen) and all(one.apart is not False for one in seen):
        flags.append("apart")
    if result in _TENSOR_RESULTS and not any(one.differentiable for one in seen):
        flags.append("no-graph")
    if all(one.zero_dim for one in seen) and any(one.case.variant.shape not in _TINY for one in seen):
        flags.append("scalar")
    other = any(place.isdigit() and place != "0" for place in re.findall(r"\w+", f"{shares} {writes} {saves}"))
    return [result, shares, writes, saves, _dtype(seen), " ".join(names) if other else "", " ".join([*flags, *notes])]


def line(name: str, row: Sequence[str]) -> str:
    """One row of a table as Markdown."""
    return f"| `{name}` | " + " | ".join(row) + " |"


def _result(seen: Sequence[Seen]) -> str:
    kinds = frozenset(one.result for one in seen)
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds not in _MIXED:
        raise NoRow(f"the results are {', '.join(sorted(kinds))}")
    return _MIXED[kinds]


def _shares(seen: Sequence[Seen], result: str, when: str, flags: list[str]) -> str:
    relations = [relation for one in seen for relation in one.relations]
    shared = {key for relation, key in relations if relation != "fresh"}
    if not shared:
        return ""
    kinds = {relation for relation, _ in relations}
    versioned = all(one.versioned for one in seen)
    owner = "" if shared == {0} else f" of {next(iter(shared))}" if len(shared) == 1 else " of *"
    if kinds == {"same"} and not when:
        return "same" + owner
    if "same" in kinds:
        flags.append("same-object")
    if "fresh" in kinds or when:
        if not versioned:
            flags.append("unversioned")
        words = when or ", ".join(sorted(_conditions(seen)))
        if not words:
            raise NoRow("it is not plain what the sharing depends on")
        return f"maybe{owner} ({words})"
    if result in ("tensors", "arrays", "iterator") and versioned:
        return "multi" + owner
    return ("view" if versioned else "unversioned") + owner


def _conditions(seen: Sequence[Seen]) -> set[str]:
    """The properties in which two calls differ, of which one shared memory and the other did not."""
    words: set[str] = set()
    for one in seen:
        for other in seen:
            left, right = one.case.variant, other.case.variant
            same = {
                "dtype": left.dtype == right.dtype,
                "layout": left.layout == right.layout,
                "shape": left.shape == right.shape,
                "argument": one.case.recipe == other.case.recipe,
            }
            differing = [word for word, equal in same.items() if not equal]
            if _shared(one) != _shared(other) and len(differing) == 1:
                words.update(differing)
    return words


def _shared(seen: Seen) -> bool:
    return any(relation != "fresh" for relation, _ in seen.relations)


def _writes(seen: Sequence[Seen], when: str, flags: list[str]) -> str:
    kinds: dict[Argument, set[str]] = {}
    for one in seen:
        for key, what in one.written.items():
            kinds.setdefault(key, set()).add(what)
    if not kinds:
        return ""
    found = set().union(*kinds.values())
    changed = [one.overwrites for one in seen if one.written.get(0) == "content"]
    if "content" not in found and "metadata" in found:
        flags.append("metadata")
    elif changed and all(changed):
        flags.append("overwrites")
    if not all(one.bumped for one in seen if one.written):
        flags.append("no-bump")
    condition = f" ({when})" if when else ""
    return ", ".join(str(key) for key in sorted(kinds, key=str)) + condition


def _saves(seen: Sequence[Seen]) -> str:
    """What is saved in every call in which the argument takes part: what only some calls save is left out."""
    graded = [one for one in seen if one.saved]
    graded = [one for one in graded if not one.case.variant.dtype.startswith("complex")] or graded
    graded = [one for one in graded if one.case.variant.shape not in _TINY] or graded
    users = sorted({key for one in graded for key in one.saved}, key=str)
    found: dict[tuple[str, Argument], list[Argument]] = {}
    for item in {item for one in graded for saved in one.saved.values() for item in saved}:
        for user in users:
            calls = [one for one in graded if user in one.saved and (item[1] == OUTPUT or item[1] in one.tensors)]
            if calls and all(item in one.saved[user] for one in calls):
                found.setdefault(item, []).append(user)
    items = []
    for (what, key), needed in sorted(found.items(), key=lambda item: (_ORDER[item[0][0]], str(item[0][1]))):
        who = " for " + "&".join(str(user) for user in needed) if needed != users else ""
        items.append((str(key) if what == "other" else what) + who)
    return ", ".join(items)


def _dtype(seen: Sequence[Seen]) -> str:
    """The dtype of the result, if receivers of several dtypes all gave the same."""
    given = {one.case.variant.dtype for one in seen if one.dtypes}
    got = {dtype for one in seen for dtype in one.dtypes}
    return next(iter(got)) if len(got) == 1 and len(given) > 1 else ""
