"""Input that is valid and large: it is analysed, and what is wrong in it is found. Nothing here looks at a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchcopylint import check_source

LONGEST = 900
"""Seconds after which a run counts as hung; it takes a few of them."""

HEAD = "import torch\nfrom torch import nn\n"
BLOCK = (
    '''

class Stage{n}(nn.Module):
    """Stage {n} of the network.

    Takes a batch of features and returns a batch of features of the same width. The layers are applied one after the
    other, each with an activation behind it, and the result is normalised.

    Args:
        width: The number of features of each sample. It stays the same from the first layer of the stage to the last
            one, so that stages can be put behind one another in any number.
        depth: The number of layers. A stage without layers only normalises.

    Shapes:
        The input has the shape `(batch, width)`, and so has the output.
    """

    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        """Apply the layers one after the other.

        The input is not changed: each layer makes a new tensor.
        """
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(x)


def evaluate_{n}(model, batches):
    """The mean accuracy over the batches.

    Args:
        model: What is evaluated. It should be in evaluation mode; this function does not change the mode, because the
            caller may want to see what dropout does to the accuracy.
        batches: Pairs of inputs and labels. Each input has the shape `(batch, width)`, each label is the number of a
            class, from 0 on.

    Returns:
        The share of samples whose label is the class with the highest score; 0 if there are no samples. Batches of
        different sizes count by their number of samples.
    """
    correct = count = 0
    with torch.no_grad():
        for inputs, labels in batches:
            correct += (model(inputs).argmax(dim=1) == labels).sum().item()
            count += len(labels)
    return correct / count if count else 0.0


settings_{n} = {{"width": {n} + 16, "depth": 2, "rate": 0.1}}
HELP_{n} = """\
usage: stage-{n} [--width N] [--depth N] [--rate X] [--batches N] FILE
'''
    + "    one more line of the help text\\n" * 36
    + '''"""
'''
)
FAULT = """
weight_{n} = torch.ones(2, requires_grad=True)
weight_{n}.data.zero_()
"""
ROWS = 100_000
FAULTS = 10


def _large_file() -> tuple[str, list[int]]:
    """A file of `ROWS` lines, and the rows of the faults in it."""
    blocks = (ROWS - HEAD.count("\n") - FAULTS * FAULT.count("\n")) // BLOCK.count("\n")
    parts, rows, row = [HEAD], [], HEAD.count("\n")
    for number in range(blocks):
        parts.append(BLOCK.format(n=number))
        row += BLOCK.count("\n")
        if number % (blocks // FAULTS) == 0 and len(rows) < FAULTS:
            parts.append(FAULT.format(n=number))
            row += FAULT.count("\n")
            rows.append(row)
    parts.append("# end\n" * (ROWS - row))
    return "".join(parts), rows


def _found(text: str) -> list[tuple[str, int]]:
    return [(finding.code, finding.span.start.row) for finding in check_source(text)]


def test_a_file_of_100000_lines_is_analysed(tmp_path: Path) -> None:
    text, rows = _large_file()
    assert text.count("\n") == ROWS
    (tmp_path / "large.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "torchcopylint", "large.py", "--output-format", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert [(f["code"], f["location"]["row"]) for f in json.loads(done.stdout)] == [("TCL103", row) for row in rows]


def _with_fault_behind(text: str) -> tuple[str, int]:
    """The text with a fault behind it that needs the name `w` of `HEAD`'s module, and the fault's row."""
    whole = HEAD + "w = torch.ones(2, requires_grad=True)\n" + text + "\nw.data.zero_()\n"
    return whole, whole.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = " + " and ".join(["w"] * 5000), id="5,000 terms of and"),
        pytest.param("x = " + " or ".join(["w"] * 5000), id="5,000 terms of or"),
        pytest.param(
            "if w == 0:\n    x = 0\n" + "".join(f"elif w == {n}:\n    x = {n}\n" for n in range(1000)),
            id="1,000 branches of elif",
        ),
        pytest.param("x = w" + ".a" * 400, id="400 attributes"),
        pytest.param("x = w" + ".abs()" * 400, id="400 calls in a chain"),
        pytest.param("x = w" + "[0]" * 400, id="400 subscripts"),
        pytest.param("x = w" + " + w" * 1000, id="1,000 terms of a sum"),
        pytest.param("x = " + "f(" * 190 + "w" + ")" * 190, id="190 nested calls"),
        pytest.param("x = " + "w if w else " * 400 + "0", id="400 conditional expressions"),
        pytest.param("x = " + "not " * 1000 + "w", id="1,000 times not"),
        pytest.param("x = " + "'a' " * 3000, id="3,000 adjacent strings"),
        pytest.param("x = f'" + "{w}" * 3000 + "'", id="an f-string of 3,000 fields"),
        pytest.param("\n".join(" " * n + "if w:" for n in range(90)) + "\n" + " " * 90 + "x = w", id="90 nested ifs"),
        pytest.param(
            "\n".join(" " * n + "with w:" for n in range(90)) + "\n" + " " * 90 + "x = w", id="90 nested withs"
        ),
        pytest.param(
            "\n".join(" " * n + "def f():" for n in range(90)) + "\n" + " " * 90 + "x = w", id="90 nested defs"
        ),
        pytest.param(
            "\n".join(" " * n + "while w:" for n in range(20)) + "\n" + " " * 20 + "x = w", id="20 nested whiles"
        ),
        pytest.param(
            "\n".join(" " * n + "for a in w:" for n in range(10)) + "\n" + " " * 10 + "x = a", id="10 nested fors"
        ),
        pytest.param("x = w.clone()\nx.add_(1)\n" * 1000, id="2,000 statements about one name"),
        pytest.param("".join(f"v{n} = w[{n}]\n" for n in range(500)), id="500 views of one tensor"),
        pytest.param("@w\n" * 1000 + "def f(): pass", id="1,000 decorators"),
        pytest.param("def f(" + ", ".join(f"a{n}" for n in range(2000)) + "): pass", id="2,000 parameters"),
        pytest.param("x = [" + ", ".join(map(str, range(20_000))) + "]", id="a list of 20,000 numbers"),
        pytest.param("x = {" + ", ".join(f"{n}: {n}" for n in range(5_000)) + "}", id="a dict of 5,000 items"),
    ],
)
def test_what_is_long_or_deep_within_the_limits_is_analysed(text: str) -> None:
    whole, row = _with_fault_behind(text)
    assert ("TCL103", row) in _found(whole)


def test_a_list_of_100000_numbers_on_one_line_is_analysed() -> None:
    text, row = _with_fault_behind("x = [" + ", ".join(map(str, range(100_000))) + "]")
    assert _found(text) == [("TCL103", row)]


LIMITS = {
    "nesting of brackets": ["x = " + "(" * 201 + "w" + ")" * 201, "x = " + "[" * 100_000, "f(" * 500 + "w" + ")" * 500],
    "number of terms": ["x = " + " and ".join(["w"] * 6002), "x = " + " or ".join(["w"] * 65_000)],
    "chain of operators": [
        "x = w" + ".b()" * 1100,
        "x = " + "+".join(["w"] * 2002),
        "x = " + "-" * 2001 + "w",
        "x = " + "- " * 2001 + "w",
        "x = " + "not " * 2001 + "w",
        "x = " + "w if w else " * 1001 + "0",
        "x = w" + "[0]" * 2001,
        "x = [w " + "for w in w " * 201 + "]",
        "x = [w for w in w " + "if w " * 2001 + "]",
    ],
    "number of strings": ["x = " + "'a' " * 3001, "x = (" + "'a'\n" * 30_000 + ")"],
    "nesting of brackets in a `case`": [
        "match w:\n    case " + "[" * 9 + "x" + "]" * 9 + ":\n        pass",
        "match w:\n    case A(" + "(" * 30 + "x" + ",)" * 30 + "):\n        pass",
        "match w:\n    case{1:" + "{1:" * 30 + "x" + "}" * 31 + ": pass",
        "del " + "(" * 40 + "x" + ",)" * 40,
        "if w: del " + "(" * 40 + "x" + ",)" * 40,
        "x = 1; del " + "(" * 40 + "x" + ",)" * 40,
    ],
}
"""What would crash LibCST, or take it time or memory without bounds, by the limit that it is over."""


@pytest.mark.parametrize(
    ("limit", "text"),
    [pytest.param(limit, text, id=f"{limit}-{n}") for limit, texts in LIMITS.items() for n, text in enumerate(texts)],
)
def test_what_is_over_a_limit_is_skipped_and_told(limit: str, text: str) -> None:
    (skipped,) = check_source(HEAD + text + "\nw.data.zero_()\n")
    assert skipped.code == "TCL004"
    assert limit in skipped.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("case = f(f(f(f(f(f(f(f(f(f(w))))))))))", id="a variable named case"),
        pytest.param("case.x = [[[[[[[[[[w]]]]]]]]]]", id="an attribute of case"),
        pytest.param("match w:\n    case 1: x = [[[[[[[[w]]]]]]]]", id="8 brackets on a line of case"),
        pytest.param("x = [del_ for del_ in f(f(f(f(f(f(f(f(f(w)))))))))]", id="a name that starts with del"),
        pytest.param("x = [" + "'a', " * 10_000 + "]", id="10,000 strings with commas"),
        pytest.param("'a'\n" * 5_000, id="5,000 strings in statements of their own"),
        pytest.param("for a in w: pass\n" * 500, id="500 loops behind one another"),
        pytest.param("@w" + ".a" * 900 + "\ndef f(): pass", id="a decorator of 900 attributes"),
        pytest.param("x = " + "*".join(["w"] * 500) + " ** -w", id="signs behind operators"),
    ],
)
def test_what_only_looks_so_is_analysed(text: str) -> None:
    whole, row = _with_fault_behind(text)
    assert ("TCL103", row) in _found(whole)
