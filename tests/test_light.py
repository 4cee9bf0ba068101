"""The light tree and LibCST's are lowered to equal programs, node for node."""

from __future__ import annotations

import random
import sysconfig
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import libcst
import pytest

from torchcopylint.base.recursion import deep_recursion
from torchcopylint.flow.light import read, read_expression
from torchcopylint.flow.lower import lower
from torchcopylint.source.text import Undecodable, decode
from torchcopylint.source.tree import ParseError, parse

ROOT = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])

FORMS = {
    "numbers": "a = 1e999\nb = 1_000, 0b11, 1j, -1, 1.5\nc = 0x123456789012345678901234567890123456789012345678\n",
    "strings": 'a = "abc" "def"\nb = b"a" b"b"\nc = f"{a}" "q" f"{b:>{c}}{a!r}"\nd = "x" * 2, """long\n"""\n',
    "long strings": f'a = "{"x" * 300}"\nb = "{"x" * 150}" "{"y" * 150}"\nc = f"{"x" * 300}"\nd = "{"é" * 200}"\n',
    "constants": "a = None, True, False, ..., __debug__\n",
    "index": "x[1:2, ..., None, *a]; x[()]; x[(1, 2)]; x[1,]; x[a:b:c]; x[:]; x[(1,)] = 2\n",
    "calls": "f(*a, k=1, *b, **c)\nf(a for a in b)\nf(\n    k=1,\n    *b,\n)\nf(**c, k=2)\n",
    "operators": (
        "not a or b and c and (d and e) or f < g <= h is not i not in j\n-a ** ~b @ +c // d % e << f >> g & h | i ^ j\n"
    ),
    "comprehensions": (
        "[a for a, *b in c if a if b for d in a]\n{a for a in b}\n{a: b for a in b}\n(a async for a in b)\n"
    ),
    "displays": "{**a, 1: 2}; {1, *a}; [*a]; (*a, b); (); []; {}\n",
    "walrus": "print(u := 3, [v := 1 for q in x])\n",
    "lambda": "lambda *a, k=1, **q: (yield)\nlambda: 0\nlambda a, /, b=1, *, c: a\n",
    "assignments": (
        "a = b = c\na, (b, *c) = d\na: int = 3\nb.c: str\nx += 1; x.y -= 2; x[0] @= 3; x **= y\n[a, b] = c\n"
    ),
    "lines": (
        "a = 1; b = 2\nif a: b; c\nelse: d\nwhile 1: break\n"
        "for a in b: continue\nclass A: x = 1; y = 2\na = '''\n'''; b\n"
    ),
    "tabs": "if a:\n\tb\n\tif c:\n\t\td\nif a: b\n",
    "form feed": "a = 1\n\f\nif a:\n    b\n",
    "branches": (
        "if a:\n    pass\nelif b: x\nelse:\n    if c: y\n    elif d: z\nif a:\n    b\nelse:\n    c\n    if d: e\n"
    ),
    "loops": "while a:\n    b\nelse:\n    c\nfor a, b in c:\n    d\nelse: e\n",
    "try": "try: pass\nfinally: pass\ntry:\n    a\nexcept (B, C) as e: pass\nexcept: pass\nelse: y\nfinally:\n    z\n",
    "try star": "try: pass\nexcept* E as e: pass\n",
    "with": "with a as b, c as (d, e), f: g\nwith (a as b, c): d\n",
    "asynchronous": (
        "async def g():\n    async with a as b: await f()\n    async for i in x: yield i\n    return\n    yield\n"
    ),
    "generators": "def g():\n    a = yield\n    yield from b\n    yield a, c\n",
    "match": (
        "match x:\n    case [a, *b, c]: pass\n    case (d, *_): pass\n    case {'a': q, **r}: pass\n"
        "    case A(u, v=w) | B() as t if t: pass\n    case 1 | None | 'x' | C.d | -1: pass\n    case [] | {}: pass\n"
        "    case y: pass\n"
    ),
    "deletions": "del a, b[0], c.d\ndel (a, b)\ndel [a]\ndel x\n",
    "imports": (
        "from . import a\nfrom ..b.c import d as e, f\nfrom x import *\nimport a.b.c, d.e as f\nfrom .. import *\n"
    ),
    "functions": (
        "@a.b\n@c(1)\ndef h(x, /, y=1, *args: int, z: 'q.r|None' = 2, **kw) -> Dict[str, 'Tensor']: return\n"
        "def f(a, b=1, *, c=2, d): 'doc'\n"
        "def g(a: Literal['x' 'y', 'z'], b: Optional[int], c: 'not (valid'): global a, b\n"
    ),
    "classes": (
        "class B(A, *bases, metaclass=M): 'doc'\nclass C:\n    a: int\n"
        "    b: Tensor = 1\n    def f(self): nonlocal_ = 1\n"
    ),
    "refusals": "def f():\n    raise A from b\n    raise\n    assert a, b\n    assert a\n    nonlocal_\n",
    "line ends": "if a:\r\n    b\r\nc = '''\r\n'''; d\r\n",
    "nothing": "",
}


def programs(text: str) -> tuple[object, object]:
    """What a text is lowered to from either tree."""
    light = read(text)
    assert light is not None
    return lower(light).program, lower(parse(text)).program


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_lowered_alike(form: str) -> None:
    light, whole = programs(FORMS[form])
    assert light == whole


def test_deep_nesting_is_lowered_alike() -> None:
    text = f"x = {'(' * 90}a{')' * 90}\ny = {'f(' * 90}a{')' * 90}\nz = {' + '.join('a' * 900)}\nw = a{'.b' * 500}\n"
    light, whole = programs(text + "if a: b\n" + "elif a: b\n" * 50)
    assert light == whole


def sources() -> list[Path]:
    """The project's own files, and some of the standard library."""
    own = [
        path for part in ("torchcopylint", "tests", "examples", "benchmarks") for path in (ROOT / part).rglob("*.py")
    ]
    library = sorted(path for path in STANDARD_LIBRARY.rglob("*.py") if "site-packages" not in path.parts)
    return [*sorted(own), *random.Random(7).sample(library, 60)]


@pytest.mark.parametrize("part", range(2))
def test_real_files_are_lowered_alike(part: int) -> None:
    compared = 0
    for path in sources()[part::2]:
        try:
            text = decode(path.read_bytes()).text
            whole = lower(parse(text)).program
        except (Undecodable, ParseError):
            continue
        if unicodedata.normalize("NFKC", text) != text:
            # Python normalises identifiers, LibCST does not.
            continue
        light = read(text)
        assert light is None or lower(light).program == whole, path
        compared += light is not None
    assert compared > 100


def nodes(tree: object) -> Iterator[SimpleNamespace]:
    """Every node of a light tree."""
    if isinstance(tree, SimpleNamespace):
        yield tree
        for value in vars(tree).values():
            yield from nodes(value)
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from nodes(item)


def test_every_node_has_a_twin_with_the_same_fields() -> None:
    seen = set()
    for text in FORMS.values():
        for node in nodes(read(text)):
            twin = getattr(libcst, type(node).__name__)
            # `at` is Python's own node, for the place.
            names = vars(node).keys() - {"at"}
            assert all(name in twin.__dict__ or hasattr(twin, name) for name in names), type(node).__name__
            seen.add(type(node).__name__)
    assert len(seen) > 100


@pytest.mark.parametrize("text", ["x = = 1\n", "print 'a'\n", "a\x00b\n", "\x1a", "(" * 5000])
def test_what_python_refuses_has_no_light_tree(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("joined", ["+".join("a" * 200_000), f"a{'.b' * 100_000}"], ids=["sum", "attributes"])
def test_what_is_too_deep_for_the_recursion_of_the_parser_has_none(joined: str) -> None:
    assert read(f"x = {joined}\n") is None
    with deep_recursion():
        assert read(f"x = {joined}\n") is None


@pytest.mark.parametrize("text", ["not (valid", "", "a b", "\x00"])
def test_what_is_no_expression_has_no_tree(text: str) -> None:
    assert read_expression(text) is None


def test_where_the_trees_differ_libcst_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchcopylint import analysis

    text = "import torch\n\nw = torch.ones(2, requires_grad=True)\nw.add_(1)\n"
    right = analysis.analyse(text, filename="a.py")
    assert [finding.span.start.row for finding in right.findings] == [4]

    def other(_: str) -> object:
        return read(text.replace("w = ", "0; w = "))

    monkeypatch.setattr("torchcopylint.flow.light.read", other)
    monkeypatch.setattr("torchcopylint.source.spans.light_spans", lambda text, nodes: {})
    assert analysis.analyse(text, filename="a.py") == right


def test_programs_too_deep_to_compare_are_told_from_one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchcopylint import analysis

    monkeypatch.setattr("torchcopylint.source.spans.light_spans", lambda text, nodes: {})
    text = "import torch\n\nw = torch.ones(2, requires_grad=True)\nw.add_(1)\nif a: b\n" + "elif a: b\n" * 1000
    found = analysis.analyse(text, filename="a.py").findings
    assert [finding.span.start.row for finding in found] == [4]


def test_libcst_reads_what_python_does_not_tell_the_place_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchcopylint import analysis

    def refuse(text: str) -> object:
        raise AssertionError(text)

    text = "import torch\n\nw = torch.ones(2, requires_grad=True)\nw.add_(1)\n"
    normalised = text.replace("w", "ﬁ")
    expected = analysis.analyse(text, filename="a.py").findings[0].span
    assert analysis.analyse(normalised, filename="a.py").findings[0].span == expected
    monkeypatch.setattr(analysis, "parsed", refuse)
    assert analysis.analyse(text, filename="a.py").findings[0].span == expected
    with pytest.raises(AssertionError):
        analysis.analyse(normalised, filename="a.py")
