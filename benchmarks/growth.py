"""What longer and deeper files cost, as a table and as a plot."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from benchmarks.measure import cost

LINES = (1_000, 3_000, 10_000, 30_000, 100_000)
DEPTHS = (10, 20, 40, 80)
FUNCTION = """
def train_{n}(model, optimizer, batches):
    best = None
    for inputs, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = model.state_dict() if best is None else best
    return best
"""
Curve: TypeAlias = Sequence[tuple[float, float]]


def growth(plot: str | None) -> None:
    """Print what longer and deeper files cost, the time of an almost empty file taken off, and draw it into `plot`."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.py")
        command = [sys.executable, "-m", "torchcopylint", "--isolated", "--no-cache", path]
        Path(path).write_text("import torch\nx = torch.ones(1)\n")
        start = cost(command).cpu

        def measured(text: str) -> tuple[float, float]:
            Path(path).write_text(text)
            used = cost(command)
            return used.cpu - start, used.peak

        print("| | CPU s | ms a 1,000 lines | peak MB |\n|---|--:|--:|--:|")
        curves: list[list[tuple[float, float]]] = [[], []]
        for curve, unit, sizes, make in ((0, "lines", LINES, _long), (1, "nested loops in functions", DEPTHS, _deep)):
            for size in sizes:
                text = make(size)
                cpu, peak = measured(text)
                curves[curve].append((size, cpu))
                print(f"| {size} {unit} | {cpu:.2f} | {cpu * 1e6 / text.count(chr(10)):.0f} | {peak:.0f} |")
    if plot:
        panels = [_panel(curves[0], "lines", 0), _panel(curves[1], "nested loops", 420)]
        Path(plot).write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" width="840" height="320" '
            'font-family="sans-serif" font-size="12">\n'
            '<rect width="840" height="320" fill="white"/>\n' + "".join(panels) + "</svg>\n"
        )


def _long(lines: int) -> str:
    count = lines // FUNCTION.count("\n")
    return "import torch\n" + "".join(FUNCTION.format(n=number) for number in range(count))


def _deep(depth: int) -> str:
    """Functions in functions with a loop in each, so that Python's limit of 20 nested blocks is not met."""
    lines = ["import torch", "w = torch.ones(2)"]
    for level in range(depth):
        indent = "    " * level
        lines += [f"{indent}def f{level}(batches):" if level % 2 == 0 else f"{indent}for x in batches:"]
    return "\n".join([*lines, "    " * depth + "w.add_(1)"]) + "\n"


def _panel(curve: Curve, unit: str, left: int) -> str:
    """A curve on two logarithmic axes, with the line that grows in proportion from its first point, dashed."""
    points = [(size, max(seconds, 0.001)) for size, seconds in curve]
    sizes = [math.log10(size) for size, _ in points]
    proportional = [points[0][1] * size / points[0][0] for size, _ in points]
    logs = [math.log10(value) for value in (*(seconds for _, seconds in points), *proportional)]
    low, high = math.floor(min(logs)), math.ceil(max(logs))

    def x(size: float) -> float:
        return left + 60 + 320 * (math.log10(size) - sizes[0]) / (sizes[-1] - sizes[0])

    def y(seconds: float) -> float:
        return 270 - 230 * (math.log10(seconds) - low) / (high - low)

    parts = [f'<text x="{left + 60}" y="24">seconds of processor time, by {unit}</text>\n']
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{left + 60}" x2="{left + 380}" y1="{at:.0f}" y2="{at:.0f}" stroke="#ddd"/>\n')
        parts.append(f'<text x="{left + 52}" y="{at + 4:.0f}" text-anchor="end">{10.0**power:g}</text>\n')
    for size, _ in points:
        parts.append(f'<text x="{x(size):.0f}" y="290" text-anchor="middle">{size:g}</text>\n')
    dashed = " ".join(f"{x(size):.0f},{y(value):.0f}" for (size, _), value in zip(points, proportional, strict=True))
    solid = " ".join(f"{x(size):.0f},{y(seconds):.0f}" for size, seconds in points)
    parts.append(f'<polyline points="{dashed}" fill="none" stroke="#999" stroke-dasharray="4 4"/>\n')
    parts.append(f'<polyline points="{solid}" fill="none" stroke="#c33" stroke-width="2"/>\n')
    return "".join(parts)
