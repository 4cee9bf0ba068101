"""Rows and columns of sites: LibCST's own provider, which the linter does without for its cost, is the oracle."""

from __future__ import annotations

from pathlib import Path

import libcst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from torchcopylint.flow.light import read
from torchcopylint.flow.lower import lower
from torchcopylint.source.positions import locate, locate_few
from torchcopylint.source.rows import places
from torchcopylint.source.spans import light_spans

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


TEXTS = [*(path.read_text(encoding="utf-8") for path in FILES), AWKWARD]
LAID_OUT = """

# a remark
x = f(  # another
    1,

)
\f
@d  # decorated

# between
@e(
    1)
# below
class A: pass
if x: y; z
# before
elif \"\"\"
text \"\"\" + y \\
    + z:
        u = \"a\\
b\"; v = '#'
        # at the end

# deeper
else:

  while a: b
  else:
    match x:
       # case
       case 1: c
       case [2, y]:
         for i in j:
             with a as b, c: k
         else: l
       # last
try:
	a
finally:
	async def f(): await b
"""


@pytest.mark.parametrize("text", [*TEXTS, LAID_OUT, LAID_OUT.replace("\n", "\r\n"), LAID_OUT.rstrip()])
def test_every_site_is_found_by_its_statement(text: str) -> None:
    module = libcst.parse_module(text)
    lowered = lower(module)
    statements = lowered.program.statements
    everywhere = locate(module, lowered.nodes)
    count = 3 if len(lowered.nodes) > 200 else len(lowered.nodes)
    for first in range(count):
        nodes = lowered.nodes[first::count]
        found = locate_few(
            text,
            module,
            [(node, lowered.nodes[place]) for node, place in zip(nodes, statements[first::count], strict=True)],
        )
        assert all(found[id(node)] == everywhere[id(node)] for node in nodes)
    assert places(text, module)


def test_what_does_not_match_is_told_nowhere() -> None:
    module = libcst.parse_module("a\nb\n")
    assert not places("a\n", module)
    assert not places("a\nb\nc\n", module)
    assert locate_few("a\n", module, [(module.body[1], module.body[1])])[id(module.body[1])].start.row == 2


@pytest.mark.parametrize("text", TEXTS)
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


FORMATTED = '''\
x = f"{a}" + f"é{b.c}" f"{d:>{e}}"
y = f"""
 {a} é {
 b} {f'{c}'}
  {d!r:{w}.{p}}"""
z = (f"{a} "
     f"{b(c)[d]} {{}} {e}" "é" f"{g=}")
f"\\t{ (1, 2) }{ x.y }\\
{b}"
'''
BRACKETS = """\
(a), (b)
(a, b)
( a, b )
(1,)
()
( )
(  # a remark
    a,
    b)
x[(a), (b)] = (a, (b)), (c)
f(i for i in j), (i for i in j), ( i for i in j)
(yield), (n := 1), (a or b) and (c)
for a in b: c; d;
((a))
"""


@pytest.mark.parametrize(
    "text", [*TEXTS, LAID_OUT, LAID_OUT.replace("\n", "\r\n"), LAID_OUT.rstrip(), FORMATTED, BRACKETS]
)
def test_what_the_light_tree_tells_is_where_libcst_says(text: str) -> None:
    light = read(text)
    assert light is not None
    module = libcst.parse_module(text)
    nodes, twins = lower(light).nodes[:-1], lower(module).nodes[:-1]
    expected = locate(module, twins)
    known = light_spans(text, dict(enumerate(nodes)))
    assert known == {site: expected[id(twins[site])] for site in known}
    if "ä = " not in text:
        assert len(known) > 0.8 * len(nodes)


def test_of_names_that_python_normalises_the_light_tree_tells_nothing() -> None:
    text = "ﬁ = 'ﬁ'\n"
    light = read(text)
    assert light is not None
    nodes = dict(enumerate(lower(light).nodes[:-1]))
    assert not light_spans(text, nodes)
    assert len(light_spans("fi = 'ﬁ'\n", nodes)) == len(nodes)


def test_what_the_parser_does_not_tell_is_left_out() -> None:
    text = "try:\n    a\nexcept B as e:\n    c\n"
    light = read(text)
    assert light is not None
    nodes = {site: node for site, node in enumerate(lower(light).nodes) if type(node).__name__ == "Name"}
    found = light_spans(text, nodes)
    assert {nodes[site].value for site in nodes.keys() - found.keys()} == {"e"}
    assert {found[site].start.row for site in found} == {2, 3, 4}
