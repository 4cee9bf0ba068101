"""Rows and columns of sites: LibCST's own provider, which the linter does without for its cost, is the oracle."""

from __future__ import annotations

from pathlib import Path

import libcst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from torchcopylint.flow.lower import lower
from torchcopylint.source.positions import locate

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "torchcopylint" / "flow").rglob("*.py")),
    *sorted((ROOT / "tests").glob("test_*.py")),
]
AWKWARD = """\
# -*- coding: utf-8 -*-
\"\"\"Text.\"\"\"
class A(B[int], metaclass=M):  # a remark
    @decorator(x, *y)
    async def f(self, *, a: int = 1, **k) -> "Ä":
        with (open(a) as b, c):
            ä = ((lambda x: x + 1)(2), f"{a!r:>{b}}", -x[1:2, ..., None])
        return [i for j in k for i in j if not i]
try: pass
except* E as e: raise X from e
if (n := 10) > 5 and \\
        y: z = a if b else c; del z
match x:
    case {"k": [1, *_]} | None if y: pass
"""


@pytest.mark.parametrize("text", [*(path.read_text(encoding="utf-8") for path in FILES), AWKWARD])
def test_every_site_is_where_the_provider_says(text: str) -> None:
    wrapper = MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    # Of the module itself nobody speaks; its end, behind the last line end, is told differently.
    nodes = [node for node in lower(wrapper.module).nodes if node is not wrapper.module]
    found = locate(wrapper.module, nodes)
    assert nodes
    for node in nodes:
        span, expected = found[id(node)], positions[node]
        assert (span.start.row, span.start.column) == (expected.start.line, expected.start.column + 1)
        assert (span.end.row, span.end.column) == (expected.end.line, expected.end.column + 1)
