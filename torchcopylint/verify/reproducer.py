"""The script of a verdict as a program of its own, which shows what happens when it is run with plain Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Verification
from torchcopylint.verify.model import Attempt, Mark

_SHOW = '''
def show_step(row, role, texts, names):
    """Print what each name holds after a step: where its memory lies, its version, and its first values."""
    for text in texts:
        try:
            value = eval(text, {**globals(), **names})
        except Exception:
            continue
        if isinstance(value, torch.nn.Module):
            value = value.state_dict()
        for key, part in list(value.items())[:2] if isinstance(value, dict) else [("", value)]:
            held = f"{text}[{key!r}]" if key else text
            if torch.is_tensor(part):
                shown = [round(number, 4) for number in part.detach().flatten()[:4].tolist()]
                place = f"memory {part.untyped_storage().data_ptr():#x}, version {part._version}"
                graph = "" if part.grad_fn is None else f", {part.grad_fn.name()}"
                print(f"line {row}, {role}: {held} = {shown} ({place}{graph})")
            elif isinstance(part, np.ndarray):
                place = f"memory {part.__array_interface__['data'][0]:#x}"
                print(f"line {row}, {role}: {held} = {part.flatten()[:4].tolist()} ({place})")
'''


def showing(attempt: Attempt) -> str:
    """The script of an attempt with a call after each step that prints what the step's names hold."""
    try:
        tree = ast.parse(attempt.script)
    except (SyntaxError, ValueError, RecursionError):
        return attempt.script
    names = tuple(dict.fromkeys(name for mark in attempt.marks for name in mark.names if _looks_pure(name)))
    if not names:
        return attempt.script
    lines = attempt.script.split("\n")
    calls: dict[int, list[str]] = {}
    for mark in attempt.marks:
        place = _after(tree, mark)
        if place is not None:
            row, indent = place
            told = repr(f"{mark.user_row} of {mark.user_file}") if mark.user_file else str(mark.user_row)
            call = f"{' ' * indent}show_step({told}, {str(mark.role)!r}, {names!r}, locals())"
            if call not in calls.setdefault(row, []):
                calls[row].append(call)
    if not calls:
        return attempt.script
    shown: list[str] = []
    for number, line in enumerate(lines, 1):
        shown.append(line)
        shown += calls.get(number, ())
    first = next((n for n, line in enumerate(shown) if line.startswith("torch.manual_seed")), 0)
    return "\n".join([*shown[: first + 1], "", *_SHOW.split("\n"), *shown[first + 1 :]])


def _looks_pure(name: str) -> bool:
    """Whether evaluating a text only looks something up."""
    try:
        tree = ast.parse(name, mode="eval")
    except (SyntaxError, ValueError):
        return False
    allowed = (ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.Slice)
    return all(isinstance(node, allowed) for node in ast.walk(tree)) and not isinstance(tree.body, ast.Constant)


def _after(tree: ast.Module, mark: Mark) -> tuple[int, int] | None:
    """The row behind which a call can stand for a mark, and how far it is indented; `None` if there is no such row."""
    body: Sequence[ast.stmt] = tree.body
    found: ast.stmt | None = None
    while True:
        inner = next((s for s in body if s.lineno <= mark.row <= (s.end_lineno or s.lineno)), None)
        if inner is None:
            break
        found = inner
        body = [part for part in ast.walk(inner) if isinstance(part, ast.stmt) and part is not inner]
        if not body:
            break
        body = [part for name in ("body", "orelse", "finalbody") for part in getattr(inner, name, [])] + [
            part for handler in getattr(inner, "handlers", []) for part in handler.body
        ]
    plain = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
    if not isinstance(found, plain) or found.end_lineno is None:
        return None
    return found.end_lineno, found.col_offset


def reproducer(finding: Finding, result: Verification, script: str) -> str:
    """The whole file: what was found, what was assumed, what happened, and the script. It ends with a newline."""
    head = [f"{finding.code} {finding.name}: {finding.message}", f"{finding.filename}:{finding.span.start.row}", ""]
    for step in finding.steps:
        where = f" of {step.filename}" if step.filename != finding.filename else ""
        head.append(f"line {step.span.start.row}{where}: {step.message}")
    head += ["", f"Verdict: {result.verdict} (torch {result.torch_version}, {result.device})"]
    for item in result.evidence:
        if item.kind != "protection":
            head.append(f"{item.kind}: {item.text}")
    comment = [f"# {part}".rstrip() for line in head for part in (line.splitlines() or [""])]
    return "\n".join(["# This runs on its own: python THIS_FILE", *comment, "", script.rstrip("\n"), ""])
