"""In which order the files of a run are best examined: first those that others use.

It is read off their `import` lines, without a parser, and is about time and memory alone: for a file whose modules have
been followed before, nothing else need be followed, and it can be examined beside others of its kind. Where it guesses
wrongly, a file is followed when it is needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from torchcopylint.project.examined import Request
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.sources import INIT, Sources, never

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[ \t]*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;(]+)|import[ \t]+([^\n#;]+))",
    re.MULTILINE,
)
_NAME = re.compile(rb"([\w.]+)(?:\s+as\s+(\w+))?")
_HOPS = 8
"""So many packages may pass a name on."""


def levels(requests: Sequence[Request]) -> list[int]:
    """For each file how many lie below it, one importing the other; those in a circle have the same level."""
    numbers = {request.path: number for number, request in enumerate(requests)}
    imports = _Imports(requests, numbers)
    return _heights([imports.of(request) for request in requests])


def best_order(requests: Sequence[Request]) -> list[int]:
    """The numbers of the files, used ones first, and otherwise as they are."""
    if len(requests) < 2:
        return list(range(len(requests)))
    height = levels(requests)
    return sorted(range(len(requests)), key=height.__getitem__)


class _Imports:
    """What the files of a run import from one another."""

    def __init__(self, requests: Sequence[Request], numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._sources: dict[str, Sources] = {}
        self._requests = requests
        self._names: dict[str, dict[str, str]] = {}

    def of(self, request: Request) -> list[int]:
        """The numbers of the files that a file imports from."""
        if os.path.basename(request.path) == INIT:
            # It passes names on, which takes no knowledge of them.
            return []
        found = {self._end(request, dotted) for dotted in self._bound(request).values() if not never(dotted)}
        return sorted(self._numbers[path] for path in found if path in self._numbers and path != request.path)

    def _end(self, request: Request, dotted: str) -> str:
        """The file in which a name comes to something, through packages that import it themselves."""
        sources = self._sources.setdefault(request.root, Sources(request.root))
        path, end = request.path, ""
        for _ in range(_HOPS):
            places = sources.places(path, dotted)
            if not places:
                break
            end, rest = places[0]
            if os.path.basename(end) != INIT or not rest or end not in self._numbers:
                break
            first, _, others = rest.partition(".")
            passed_on = self._bound(self._requests[self._numbers[end]]).get(first)
            if passed_on is None:
                break
            path, dotted = end, f"{passed_on}.{others}" if others else passed_on
        return end

    def _bound(self, request: Request) -> dict[str, str]:
        """The names that a file imports, each with the dotted name that it stands for."""
        if request.path not in self._names:
            try:
                data = read_file(request.path, request.limits.max_file_size)
            except (CannotRead, TooLarge):
                data = b""
            self._names[request.path] = dict(_imported(data))
        return self._names[request.path]


def _imported(data: bytes) -> Iterator[tuple[str, str]]:
    for match in _IMPORT.finditer(data):
        module, names, plain = match.groups()
        for name, alias in _NAME.findall(plain or names):
            text = name.decode("utf-8", "replace")
            if plain is not None:
                yield (alias.decode("utf-8", "replace") if alias else text), text
                continue
            origin = module.replace(b" ", b"").replace(b"\t", b"").decode("utf-8", "replace")
            dotted = origin + text if origin.endswith(".") else f"{origin}.{text}"
            yield (alias.decode("utf-8", "replace") if alias else text), dotted


def _heights(edges: Sequence[Sequence[int]]) -> list[int]:
    """For each node of a graph the length of the longest way down, circles counting as one node (Tarjan, without
    recursion)."""
    height = [-1] * len(edges)
    index = [-1] * len(edges)
    low = [0] * len(edges)
    open_nodes: list[int] = []
    is_open = [False] * len(edges)
    count = 0
    for start in range(len(edges)):
        if index[start] >= 0:
            continue
        work = [(start, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = count
                count += 1
                open_nodes.append(node)
                is_open[node] = True
            if at < len(edges[node]):
                work.append((node, at + 1))
                target = edges[node][at]
                if index[target] < 0:
                    work.append((target, 0))
                elif is_open[target]:
                    low[node] = min(low[node], index[target])
                continue
            if work:
                above = work[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == index[node]:
                circle = [open_nodes.pop()]
                while circle[-1] != node:
                    circle.append(open_nodes.pop())
                below = [height[target] for member in circle for target in edges[member]]
                for member in circle:
                    height[member] = max(below, default=-1) + 1
                    is_open[member] = False
    return height
