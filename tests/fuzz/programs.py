"""Programs that nobody wrote: made from the names and forms that the linter cares about, and real files, damaged."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hypothesis import strategies as st

from torchcopylint.pages import load_pages

NAMES = ("x", "y", "w", "model", "opt", "loss", "best", "self", "batch", "torch", "np", "F")
ATTRIBUTES = (
    *("data", "grad", "weight", "T", "detach", "clone", "numpy", "add_", "zero_", "state_dict", "step", "view", "to"),
    *("backward", "parameters", "copy_", "append", "items", "requires_grad", "field", "zero_grad"),
)
MADE = (
    *("torch.ones(2)", "torch.zeros(2, 2, requires_grad=True)", "np.zeros(3)", "nn.Linear(2, 2)"),
    *("[]", "{}", "None", "1", "'a'"),
)
TOKENS = (
    *("(", ")", "[", "]", "{", "}", ":", ",", "=", "+=", "*", "**", ":=", "@", ".", "->", ";", "\\", "\n", "\t", "\r"),
    *("'", '"', '"""', "f'", "#", "\0", "\f", "\ufeff", "\xe9", "\u2028", "\U0001f4a5", "if ", "else", "for ", "in "),
    *("lambda ", "yield ", "await ", "async ", "del ", "case ", "match ", "global ", "nonlocal ", "import ", "from "),
    *("# torchcopylint: ignore[", "# noqa: TCL", "# torchcopylint: reveal[x", "0777", "1_", "1e", "...", "print x"),
)

name = st.sampled_from(NAMES)


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=2).map(", ".join)
    return st.one_of(
        st.builds("{}.{}".format, inner, st.sampled_from(ATTRIBUTES)),
        st.builds("{}.{}({})".format, inner, st.sampled_from(ATTRIBUTES), arguments),
        st.builds("{}({})".format, name, arguments),
        st.builds("{}[{}]".format, inner, st.one_of(inner, st.sampled_from(("0", ":", "1:2, ...", "x > 0", "None")))),
        st.builds("({} {} {})".format, inner, st.sampled_from(("+", "@", "and", "<", "if x else", "**")), inner),
        st.builds("[{}, *{}]".format, inner, inner),
        st.builds("{{'a': {}, **{}}}".format, inner, inner),
        st.builds("[{} for {} in {} if {}]".format, inner, name, inner, inner),
        st.builds("(lambda {}=0: {})".format, name, inner),
        st.builds("({} := {})".format, name, inner),
        st.builds("f'{{{}}}'".format, name),
    )


expression = st.recursive(st.one_of(name, st.sampled_from(MADE)), _extended, max_leaves=8)
target = st.one_of(name, st.builds("{}.{}".format, name, st.sampled_from(ATTRIBUTES)), st.builds("{}[0]".format, name))
simple = st.one_of(
    expression,
    st.builds("{} = {}".format, target, expression),
    st.builds("{} {}= {}".format, target, st.sampled_from("+-*/@|"), expression),
    st.builds("{}, *{} = {}".format, name, name, expression),
    st.builds("{}: {} = {}".format, name, st.sampled_from(("torch.Tensor", "'x'", "Optional[nn.Module]")), expression),
    st.builds("del {}".format, target),
    st.sampled_from(("return x", "yield x", "break", "continue", "pass", "raise", "global x", "x = yield", "await x")),
    st.sampled_from(("import torch", "import numpy as np", "from torch import nn, ones as x", "from torch import *")),
)
HEADS = (
    *("if x:", "while w:", "for x in batch:", "for x, y in zip(x, y):", "with torch.no_grad():", "with x as y, w:"),
    *("def f(self, x, *y, w=None, **best):", "async def f(x):", "class Net(nn.Module):", "try:", "match x:"),
    *("def forward(self, x):", "def __init__(self, model):", "class A(torch.autograd.Function):", "else:", "finally:"),
    *("@torch.no_grad()", "case [x, *y]:"),
)
"""What opens a block, some of it only where it fits."""


@st.composite
def program(draw: st.DrawFn) -> str:
    """A text of the form of Python, most often valid, with indentation that goes in and out."""
    lines, depth = ["import torch", "import numpy as np", "from torch import nn"], 0
    for _ in range(draw(st.integers(1, 14))):
        depth = draw(st.integers(0, depth))
        if draw(st.booleans()) and depth < 6:
            head = draw(st.sampled_from(HEADS))
            lines.append("    " * depth + head)
            if head == "try:":
                lines += ["    " * depth + "    pass", "    " * depth + "finally:"]
            depth += 1
        lines.append("    " * depth + draw(simple))
    return "\n".join(lines) + "\n"


@cache
def real_texts() -> Sequence[str]:
    """Examples of the rule pages, and short files of torch, if it is installed, and of the standard library."""
    texts = [example.code for page in load_pages().values() for example in page.examples]
    torch = find_spec("torch")
    tops = [Path(sysconfig.get_path("stdlib"))]
    tops += [Path(torch.origin).parent / part for part in ("optim", "nn", "autograd")] if torch and torch.origin else []
    for top in tops:
        paths = [path for path in sorted(top.rglob("*.py")) if "site-packages" not in path.parts]
        short = [path for path in paths if 500 < path.stat().st_size < 8_000]
        texts += [path.read_text(encoding="utf-8", errors="replace") for path in short[:: len(short) // 25 + 1]]
    return texts


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real text with a few damages: cut off, a token put in or taken out, lines swapped, doubled or moved."""
    text = draw(st.sampled_from(real_texts()))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("cut", "insert", "remove", "swap", "double", "indent", "splice")))
        at = draw(st.integers(0, max(len(text) - 1, 0)))
        if kind == "cut":
            text = text[:at]
        elif kind == "insert":
            text = text[:at] + draw(st.sampled_from(TOKENS)) * draw(st.sampled_from((1, 1, 1, 2, 12, 300))) + text[at:]
        elif kind == "remove":
            text = text[:at] + text[at + draw(st.integers(1, 30)) :]
        elif kind == "splice":
            other = draw(st.sampled_from(real_texts()))
            text = text[:at] + other[draw(st.integers(0, max(len(other) - 1, 0))) :]
        else:
            lines = text.split("\n")
            one = draw(st.integers(0, len(lines) - 1))
            two = draw(st.integers(0, len(lines) - 1))
            if kind == "swap":
                lines[one], lines[two] = lines[two], lines[one]
            elif kind == "double":
                lines.insert(two, lines[one])
            else:
                lines[one] = " " * draw(st.integers(1, 9)) + lines[one]
            text = "\n".join(lines)
    return text
