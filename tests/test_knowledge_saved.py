"""What backward keeps: the *saves* column against `saved_tensors_hooks`, and against what backward notices."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from test_knowledge_observer import parts, shared

from torchcopylint.knowledge import table
from torchcopylint.knowledge.generate import calls, modules, operations
from torchcopylint.knowledge.generate.calls import Group
from torchcopylint.knowledge.generate.samples import RECEIVERS, Helpers
from torchcopylint.knowledge.table import OUTPUT, Argument, Saved

# Shapes in which an operation has something to do; a single element often has a way of its own.
_NOTICED = "modified by an inplace operation|has been modified inplace"
_LABELS = ("contiguous", "1-d", "3-d", "4-d", "5-d")


def _operations() -> Iterator[tuple[str, Callable[..., Any], list[Group], bool]]:
    """Full name, what to call, recipes, and whether a recipe spells all arguments, of every differentiable row."""
    methods = operations.by_name((*calls.METHODS, *calls.SPECIAL))
    for name in (*table.names("tensor"), *table.names("functions")):
        op = table.function(name)
        if op is None or not op.differentiable:
            continue
        base, _, form = name.partition("(")
        namespace, _, last = base.rpartition(".")
        owner, recipes = (torch.Tensor, ()) if namespace == "torch.Tensor" else operations.NAMESPACES[namespace]
        own = operations.by_name(recipes)
        groups = own.get(last) or methods.get(last) or methods[last.removesuffix("_")]
        groups = [group for group in groups if group.form == form.rstrip(")")]
        yield name, getattr(owner, last), groups, last in own


_ROWS = {name: (target, groups, whole) for name, target, groups, whole in _operations()}


class _Run:
    """One call in which exactly the asked argument requires grad."""

    def __init__(
        self, target: Callable[..., Any], recipe: str, receiver: Any, asked: Argument, *, whole: bool, hooked: bool
    ) -> None:
        positional, keywords = eval(f"call({recipe})", {"call": lambda *a, **k: (a, k)}, Helpers(receiver))
        positional = positional if whole else (receiver, *positional)
        self.arguments: dict[Argument, Any] = {
            key: _asking(value) if key == asked else value for key, value in [*enumerate(positional), *keywords.items()]
        }
        self.packed: list[torch.Tensor] = []
        # Under such hooks backward does not compare versions: what is packed and what is noticed take two runs.
        hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with hooks if hooked else contextlib.nullcontext():
                self.result = target(
                    *(self.arguments[place] for place in range(len(positional))),
                    **{name: self.arguments[name] for name in keywords},
                )
        found = list(self.result) if hasattr(self.result, "__next__") else self.result
        self.outputs = [part for part in parts(found) if isinstance(part, torch.Tensor)]

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self.packed.append(tensor)
        return tensor

    def tensors(self, saved: Saved) -> list[torch.Tensor]:
        """What a claim speaks of."""
        if saved.argument == OUTPUT:
            whole = saved.what == "indices"
            return [output for output in self.outputs if whole != (output.is_floating_point() or output.is_complex())]
        return parts(self.arguments.get(saved.argument))

    def keeps(self, saved: Saved) -> bool:
        return any(shared(one, kept) for one in self.tensors(saved) for kept in self.packed)

    def backward(self) -> None:
        results = [output for output in self.outputs if output.requires_grad]
        torch.autograd.backward(results, [torch.ones_like(result) for result in results])


def _asking(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().requires_grad_().clone() if value.is_floating_point() or value.is_complex() else value
    return [_asking(item) for item in value] if isinstance(value, list) else value


@cache
def _runs(name: str, asked: Argument) -> list[Callable[..., _Run]]:
    """Every way to call the operation such that the asked argument passes a gradient on."""
    target, groups, whole = _ROWS[name]
    found = []
    for group in groups:
        for variant in RECEIVERS[group.receiver]:
            plain = variant.dtype in ("float32", "float64") and variant.layout == "contiguous"
            if (group.receiver in ("any", "vector") and variant.label not in _LABELS) or not plain:
                continue

            def run(hooked: bool = True, group: Group = group, variant: Any = variant) -> _Run:
                return _Run(target, group.recipe, variant.build("low"), asked, whole=whole, hooked=hooked)

            try:
                outputs = run().outputs
                # Sparse results accept neither a dense gradient nor a write like this.
                usual = all(output.layout == torch.strided and not output.is_mkldnn for output in outputs)
                if usual and any(output.requires_grad for output in outputs):
                    found.append(run)
            except Exception:
                continue
    return found


def _claims() -> list[tuple[str, Saved, Argument]]:
    """Each claim with an argument whose gradient needs it."""
    found = []
    for name in _ROWS:
        op = table.function(name)
        assert op is not None
        for saved in op.saved:
            users: tuple[Argument, ...] = saved.needed_by or tuple(range(3))
            found += [(name, saved, user) for user in users if _runs(name, user)][:1]
    return found


_CLAIMS = _claims()


def _id(value: Any) -> str:
    return f"{value.what}{value.argument}" if isinstance(value, Saved) else str(value)


@pytest.mark.parametrize(("name", "saved", "user"), _CLAIMS, ids=_id)
def test_what_a_row_says_is_saved_is_packed_in_every_call(name: str, saved: Saved, user: Argument) -> None:
    runs = [run() for run in _runs(name, user)]
    concerned = [run for run in runs if run.tensors(saved)]
    assert concerned
    assert all(run.keeps(saved) for run in concerned)


@pytest.mark.parametrize(("name", "saved", "user"), _CLAIMS, ids=_id)
def test_backward_notices_a_write_to_what_a_row_says_is_saved(name: str, saved: Saved, user: Argument) -> None:
    run = next(run for run in (run(hooked=False) for run in _runs(name, user)) if run.tensors(saved))
    with torch.no_grad():
        for tensor in run.tensors(saved):
            tensor.copy_(tensor.clone())
    with pytest.raises(RuntimeError, match=_NOTICED):
        run.backward()


@pytest.mark.parametrize("name", sorted(_ROWS))
def test_nothing_else_is_packed(name: str) -> None:
    op = table.function(name)
    assert op is not None
    claimed = {(saved.what, saved.argument) for saved in op.saved}
    runs = _runs(name, 0)
    unclaimed = []
    for run in (run() for run in runs):
        candidates = [Saved("input", 0, ()), Saved("output", OUTPUT, ())]
        if op.writes:
            candidates = candidates[1:]
        unclaimed.append({one.what for one in candidates if run.keeps(one) and (one.what, one.argument) not in claimed})
    # What only some calls keep is left out of the table, so something must be missing in one of them.
    assert not unclaimed or not set.intersection(*unclaimed)


@pytest.mark.parametrize(
    "name",
    ["add", "sub", "neg", "sum", "mean", "clone", "permute", "transpose", "expand_as", "cumsum", "roll"],
)
def test_backward_does_not_mind_a_write_where_nothing_is_saved(name: str) -> None:
    full = f"torch.Tensor.{name}" if hasattr(torch.Tensor, name) else f"torch.{name}"
    op = table.function(full)
    assert op is not None
    assert not op.saves
    target, groups, whole = _ROWS[full]
    run = _Run(target, groups[0].recipe, RECEIVERS["any"][0].build("low"), 0, whole=whole, hooked=False)
    with torch.no_grad():
        for output in run.outputs:
            output.mul_(2)
    run.backward()


def _module_names() -> list[str]:
    listed = {name for recipe in modules._MODULES for name in recipe.names.split()}
    return [name for name in table.names("modules") if name.rpartition(".")[2] in listed]


@pytest.mark.parametrize("name", _module_names())
def test_what_a_module_saves_is_noticed_by_backward(name: str) -> None:
    op = table.module_class(name)
    assert op is not None
    last = name.rpartition(".")[2]
    recipe = next(recipe for recipe in modules._MODULES if last in recipe.names.split())
    for what in ("input", "output"):
        module, inputs = modules.build(getattr(torch.nn, last), recipe)
        first = _asking(inputs[0]) if inputs[0].is_floating_point() else inputs[0].clone()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = module(first, *inputs[1:])
        outputs = [part for part in parts(result) if part.requires_grad]
        with torch.no_grad():
            for tensor in [first] if what == "input" else outputs:
                tensor.copy_(tensor.clone())
        if not outputs:
            continue
        if what in op.saves:
            with pytest.raises(RuntimeError, match=_NOTICED):
                torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
