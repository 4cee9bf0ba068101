"""Valid programs that nobody wrote: those of the tests, with statements, expressions and names in other places.

Damaged text seldom gets past the parser, and what is made from a grammar seldom means anything. These are read without
an error and still go through what the engine follows: helpers, fields, containers, functions of one's own.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import assume
from hypothesis import strategies as st

from torchcopylint.pages import load_pages

FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECORATORS = ("staticmethod", "classmethod", "property", "torch.no_grad()", "contextmanager", "dataclass")


@cache
def trees() -> Sequence[ast.Module]:
    """The programs of `flow/*.md` and `projects/*.md` and of the rule pages, as far as they are whole files."""
    texts = [example.code for page in load_pages().values() for example in page.examples]
    for place in ("flow", "projects"):
        for path in sorted((Path(__file__).parent.parent / place).glob("*.md")):
            texts += FENCE.findall(path.read_text(encoding="utf-8"))
    return [ast.parse(text) for text in texts]


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    fields = (getattr(node, name, None) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody"))
    return [block for block in fields if isinstance(block, list) and block]


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """Every expression that is read and is the whole of a field: its parent, the field, and itself."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
                yield node, name, value


def _identifiers(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    places = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.FunctionDef: "name", ast.ClassDef: "name"}
    return [(node, places[type(node)]) for node in ast.walk(tree) if type(node) in places]


def _without(tree: ast.Module, other: ast.Module, random: Random) -> None:
    # An earlier change may have left nothing that has statements.
    blocks = _blocks(tree)
    block = random.choice(blocks) if blocks else []
    if len(block) > 1:
        del block[random.randrange(len(block))]


def _put_in(tree: ast.Module, other: ast.Module, random: Random) -> None:
    """A statement of this program or of another one stands somewhere else too."""
    statement = random.choice(random.choice(_blocks(random.choice((tree, other)))))
    block = random.choice(_blocks(tree))
    block.insert(random.randint(0, len(block)), copy.deepcopy(statement))


def _exchanged(tree: ast.Module, other: ast.Module, random: Random) -> None:
    """An expression of this program or of another one stands in the place of one."""
    places, found = list(_expressions(tree)), list(_expressions(random.choice((tree, other))))
    if places and found:
        parent, name, _ = random.choice(places)
        setattr(parent, name, copy.deepcopy(random.choice(found)[2]))


def _named_otherwise(tree: ast.Module, other: ast.Module, random: Random) -> None:
    if places := _identifiers(tree):
        (node, field), (source, name) = random.choice(places), random.choice(places)
        setattr(node, field, getattr(source, name))


def _called_otherwise(tree: ast.Module, other: ast.Module, random: Random) -> None:
    """A function has other kinds of parameters, or another decorator, or yields."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if not functions:
        return
    function = random.choice(functions)
    named = function.args
    named.defaults = []
    way = random.randrange(6)
    if way == 0:
        function.decorator_list.append(ast.parse(random.choice(DECORATORS), mode="eval").body)
    elif way == 1:
        function.body.append(ast.Return(ast.Yield(ast.Name("x", ast.Load()))))
    elif named.args and way == 2:
        del named.args[0]
    elif named.args and way == 3 and named.vararg is None:
        named.vararg = named.args.pop()
    elif named.args and way == 4:
        named.kwonlyargs.append(named.args.pop())
        named.kw_defaults.append(None)
    elif named.args:
        named.posonlyargs.append(named.args.pop(0))


WAYS: Sequence[Callable[[ast.Module, ast.Module, Random], None]] = (
    *(_without, _put_in, _exchanged, _exchanged, _named_otherwise, _named_otherwise, _called_otherwise),
)


@st.composite
def rearranged(draw: st.DrawFn) -> str:
    """A program of the tests with one to eight changes, each of which leaves it valid, or the text is not taken."""
    random = draw(st.randoms(use_true_random=False))
    tree, other = copy.deepcopy(random.choice(trees())), random.choice(trees())
    for _ in range(random.randint(1, 8)):
        random.choice(WAYS)(tree, other, random)
    text = ast.unparse(ast.fix_missing_locations(tree))
    try:
        ast.parse(text)
    except SyntaxError:
        assume(False)
    return text
