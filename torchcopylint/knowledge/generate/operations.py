"""The rows of `tensor.md` and `functions.md`."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from torchcopylint.knowledge.generate import calls, calls_functions
from torchcopylint.knowledge.generate.calls import Group
from torchcopylint.knowledge.generate.probe import Case, NotCallable, flat, run
from torchcopylint.knowledge.generate.rows import NoRow, cells, line, observe_all
from torchcopylint.knowledge.generate.samples import RECEIVERS

NAMESPACES: Mapping[str, tuple[Any, Sequence[Group]]] = {
    "torch": (torch, calls_functions.TORCH),
    "torch.nn.functional": (torch.nn.functional, calls_functions.NN),
    "torch.linalg": (torch.linalg, calls_functions.LINALG),
    "torch.special": (torch.special, calls_functions.SPECIAL),
    "torch.fft": (torch.fft, calls_functions.FFT),
}

NO_TENSOR = re.compile(
    r"(cudnn|miopen|mkldnn|fbgemm|quantized|sym|has_torch)_.*|batch_norm_(backward|elemt|gather|stats|update).*"
    r"|(get|set)_(?!device$).*|is_(anomaly|autocast|deterministic|grad|inference_mode|vulkan|warn).*"
    r"|(are|autocast|clear|compiled|import|init|merge|parse|prepare|profiler|thread|unify|use)_.*"
    r"|seed|manual_seed|initial_seed|compile|cond|vmap|while_loop|fork|wait|classproperty|can_cast|promote_types"
    r"|assert_int_or_pair|boolean_dispatch|handle_torch_function|Optional"
    r"|choose_qparams_optimized|empty_quantized|fused_moving_avg_obs_fake_quant|native_norm"
    r"|.*indices_copy|values_copy|scaled_mm|grouped_mm|scaled_grouped_mm"
)
"""Functions that have no row: they take no tensor, or are kernels of one backend that a program does not call."""


def tensor_sections(skipped: Collection[str], evidence: Collection[str]) -> dict[str, list[str]]:
    """The tables of `tensor.md`: methods, special methods, properties.

    `skipped` are full names with a row in the overlay, `evidence` the names that only tensors have. Raises `NoRow` for
    a name without a recipe.
    """
    own = by_name(calls.METHODS)
    methods = []
    for name in (name for name in dir(torch.Tensor) if not name.startswith("_")):
        full = f"torch.Tensor.{name}"
        if not callable(getattr(torch.Tensor, name)) or full in skipped or without_row(full):
            continue
        notes = ["tensor-only"] if name in evidence else []
        methods += rows_of(full, getattr(torch.Tensor, name), name, _groups(own, name), names=_of(name), notes=notes)
    special = []
    for name, groups in by_name(calls.SPECIAL).items():
        special += rows_of(f"torch.Tensor.{name}", getattr(torch.Tensor, name), name, groups, names=_of(name))
    properties = []
    for name, groups in by_name(calls.PROPERTIES).items():
        notes = ["property", *(["tensor-only"] if name in evidence else [])]
        properties += rows_of(f"torch.Tensor.{name}", _getter(name), name, groups, names=(), notes=notes)
    return {"Methods": methods, "Special methods": special, "Properties": properties}


def function_sections(skipped: Collection[str]) -> dict[str, list[str]]:
    """The tables of `functions.md`, one a namespace. Raises `NoRow` for a function without a recipe."""
    methods = by_name(calls.METHODS)
    sections: dict[str, list[str]] = {}
    for namespace, (module, recipes) in NAMESPACES.items():
        own = by_name(recipes)
        rows = sections.setdefault(namespace, [])
        for name in functions_of(module):
            full = f"{namespace}.{name}"
            if full in skipped or without_row(full):
                continue
            target = getattr(module, name)
            whole = name in own
            groups = own[name] if whole else _groups(methods, name) if module is torch else []
            notes = _keywords(target, groups, whole)
            rows += rows_of(full, target, name, groups, names=_parameter_names(target, name), whole=whole, notes=notes)
    return sections


def functions_of(module: Any) -> list[str]:
    """The public functions of a namespace that deal in tensors, sorted."""
    return [
        name
        for name in sorted(dir(module))
        if not name.startswith("_")
        and callable(getattr(module, name))
        and not isinstance(getattr(module, name), type | types.ModuleType)
        and not (module in (torch, torch.nn.functional) and NO_TENSOR.fullmatch(name))
    ]


def without_row(full: str) -> bool:
    """Whether `calls.NO_ROW` lists the dotted name."""
    namespace, _, name = full.rpartition(".")
    return name in calls.NO_ROW.get(namespace, "").split()


def recipes(groups: Iterable[Group]) -> dict[str, list[tuple[str, str]]]:
    """Recipe and receiver of each call, by form."""
    found: dict[str, list[tuple[str, str]]] = {}
    for group in groups:
        found.setdefault(group.form, []).append((group.recipe, group.receiver))
    return found


def by_name(groups: Iterable[Group]) -> dict[str, list[Group]]:
    """The groups in which each name stands."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        for name in group.names.split():
            found.setdefault(name, []).append(group)
    return found


def _groups(own: Mapping[str, list[Group]], name: str) -> list[Group]:
    """A name's recipes; an in-place twin without recipes of its own takes those of its base."""
    groups = own.get(name) or own.get(name.removesuffix("_"))
    if not groups:
        raise NoRow(f"{name} has no recipe: add one to calls.py or calls_functions.py")
    return groups


def rows_of(
    full: str,
    target: Callable[..., Any],
    name: str,
    groups: Sequence[Group],
    *,
    names: Sequence[str],
    whole: bool = False,
    notes: Sequence[str] = (),
) -> list[str]:
    """The row of an operation, and one for each form of the call whose facts differ.

    `full` is the row's name, `name` the last part of it; `names` are the parameter names by position.
    """
    if not groups:
        raise NoRow(f"{full} has no recipe: add one to calls_functions.py")
    when = next((words for words, listed in calls.CONDITIONS.items() if name in listed.split()), "")
    found = {}
    for form, calls_of_form in recipes(groups).items():
        try:
            found[form] = cells(observe_all(target, calls_of_form, whole=whole), when=when, names=names)
        except NoRow as error:
            raise NoRow(f"{full}: {error}") from error
    base = found.pop("")
    forms = {form: row for form, row in found.items() if _facts(row) != _facts(base)}
    base[-1] = " ".join([*base[-1].split(), *notes, *(f"form:{form}" for form in forms)])
    for row in forms.values():
        row[-1] = " ".join([*row[-1].split(), *notes])
    return [line(full, base), *(line(f"{full}({form})", row) for form, row in forms.items())]


def _facts(row: Sequence[str]) -> tuple[object, ...]:
    """What two forms are compared by: everything but `scalar`, which speaks of the form without a `dim` anyway."""
    return (*row[:-1], *(flag for flag in row[-1].split() if flag != "scalar"))


def _getter(name: str) -> Callable[[Any], Any]:
    return lambda tensor: getattr(tensor, name)


def _keywords(target: Callable[..., Any], groups: Sequence[Group], whole: bool) -> list[str]:
    """Whether a function accepts `inplace=` (by its signature) and `out=` (by trying)."""
    found = []
    try:
        if "inplace" in inspect.signature(target).parameters:
            found.append("inplace=")
    except (TypeError, ValueError):
        pass
    if any(takes_out(Case(target, group.recipe, RECEIVERS[group.receiver][0], whole)) for group in groups):
        found.append("out=")
    return found


def takes_out(case: Case) -> bool:
    """Whether the call also works with `out=` something like its result."""
    try:
        result = run(case, *case.arguments("low"))
        tensors = flat(result)
        if not tensors:
            return False
        copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf.copy() for leaf in tensors]
        out: Any = copies[0] if result is tensors[0] else tuple(copies)
        positional, keywords = case.arguments("low")
        run(case, positional, {**keywords, "out": out})
    except NotCallable:
        return False
    return True


@cache
def _schemas() -> dict[str, tuple[str, ...]]:
    """The parameter names of each operator of torch, as far as its overloads with the most tensors agree."""
    found: dict[str, tuple[str, ...]] = {}
    most: dict[str, int] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or any(argument.is_out for argument in schema.arguments):
            continue
        names = tuple(argument.name for argument in schema.arguments)
        tensors = sum("Tensor" in str(argument.type) for argument in schema.arguments)
        if tensors > most.get(name, -1):
            most[name], found[name] = tensors, names
        elif tensors == most[name]:
            agreeing = takewhile(lambda pair: pair[0] == pair[1], zip(found[name], names, strict=False))
            found[name] = tuple(one for one, _ in agreeing)
    return found


def _of(method: str) -> tuple[str, ...]:
    """The parameter names of a method of tensors."""
    return _parameter_names(getattr(torch.Tensor, method), method)


def _parameter_names(target: Callable[..., Any], name: str) -> tuple[str, ...]:
    """The names of the positional parameters, from the signature, or else from the operator's schema."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return _schemas().get(name, ())
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return _schemas().get(name, ())
    return tuple(one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))
