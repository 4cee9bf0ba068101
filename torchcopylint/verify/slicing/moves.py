"""Conversions that compute something on another device only."""

from __future__ import annotations

import ast

from torchcopylint.base.finding import Finding, Role
from torchcopylint.verify.slicing.source import Source, nodes_of, span_of

_MOVING = frozenset({"cuda", "to"})
_DTYPES = frozenset({"dtype", "type"})


def only_elsewhere(source: Source, finding: Finding) -> frozenset[tuple[int, int]]:
    """The places of the conversions to a device that alone a finding rests on, which on the processor hand back what
    they are given: `nn.Parameter(...).to(device)`. A conversion to a dtype computes something anywhere."""
    cut = [step.span for step in finding.steps if step.role is Role.CUT]
    calls = [node for node in nodes_of(source.tree) if cut and isinstance(node, ast.Call) and _moves(node)]
    return frozenset((call.lineno, call.col_offset) for call in calls if span_of(call, source.lines) in cut)


def copied_elsewhere(source: Source, finding: Finding) -> frozenset[tuple[int, int]]:
    """The places of the conversions to a device that alone make what a gradient is read of something computed:
    `x = torch.ones(2, requires_grad=True).to(device)`. On the processor, they hand back a leaf."""
    rows = {step.span.start.row for step in finding.steps if step.role is Role.READ}
    read = {
        node.value.id
        for node in nodes_of(source.tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.value, ast.Name)
        and node.lineno in rows
    }
    found = set()
    for node in nodes_of(source.tree) if read else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not _moves(node.value):
            continue
        bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if bound & read and isinstance(node.value.func, ast.Attribute) and _is_leaf(node.value.func.value):
            found.add((node.value.lineno, node.value.col_offset))
    return frozenset(found)


def _is_leaf(node: ast.expr) -> bool:
    """Whether an expression makes a tensor that requires grad and was computed from nothing."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("Parameter", "Variable", "requires_grad_") or any(
        keyword.arg == "requires_grad" for keyword in node.keywords
    )


def _moves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MOVING or len(call.args) > 1:
        return False
    if any(keyword.arg not in ("device", "non_blocking") for keyword in call.keywords):
        return False
    return not any(_is_dtype(arg) for arg in call.args)


def _is_dtype(arg: ast.expr) -> bool:
    if isinstance(arg, ast.Attribute):
        return arg.attr in _DTYPES or (isinstance(arg.value, ast.Name) and arg.value.id == "torch")
    return isinstance(arg, ast.Name) and arg.id in _DTYPES
