"""What is not done again, or not at all, when a finding is verified: and, beside each, what still is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_verify_linking import code, link, run
from torchcopylint.base.finding import Role
from torchcopylint.pages import load_pages
from torchcopylint.verify import client
from torchcopylint.verify.child.traces import leaves_traces
from torchcopylint.verify.examples import mark_at
from torchcopylint.verify.judge import rule_of
from torchcopylint.verify.model import Attempt
from torchcopylint.verify.observed import Run
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.conditions import Wanted
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.source import bound_by, free_in, local_to, parse
from torchcopylint.verify.slicing.standins import helpers, rows_of_helpers


class Looking(Verifier):
    """One whose runs of a script with helpers can be asked for."""

    def ran(self, script: str, fixed: int, row: int) -> Run:
        self._rule = rule_of(load_pages()["TCL501"], "")
        return self._run(Attempt(script, (mark_at(Role.WRITTEN, row),), 0, fixed=fixed), "", ())


@pytest.fixture(scope="module")
def verifier() -> Iterator[Looking]:
    with Looking(timeout=20.0, memory=1 << 28) as started:
        yield started


@pytest.mark.parametrize(
    ("script", "leaves"),
    [
        ("import torch\n@torch.no_grad()\n@torch.jit.ignore\ndef f():\n    pass\ntorch.x = 1\n", True),
        ("import torch\n@torch.no_grad()\n@torch.jit.ignore\ndef f():\n    pass\nx.y = 1\n", False),
        ("x = '''\ntorch.y = 1\n'''\nimport torch\n", False),
        ("x = '''\nimport torch\n'''\ntorch.y = 1\n", False),
        ("import torch\nif x:\n    pass\nelse:\n    torch.y = 1\n", True),
        ("torch.y = 1\nimport torch\n", True),
        ("f(\nx.y\n)\nimport torch\ny = (\n    1\n)\n", False),
        ("import torch\ndel torch.ones\n", True),
        ("import torch\nfor torch.x in y:\n    pass\n", True),
    ],
)
def test_what_is_read_part_by_part_leaves_what_it_leaves_as_a_whole(script: str, leaves: bool) -> None:
    assert leaves_traces(script) is leaves


def test_of_helpers_only_what_is_set_for_a_whole_module_leaves_traces() -> None:
    head = "import torch\n\ndef f():\n    torch.x = 1\n\n"
    assert not leaves_traces(head + "print(1)\n", head.count("\n"))
    assert leaves_traces(head + "torch.y = 1\n", head.count("\n"))
    assert leaves_traces("import torch\ntorch.set_default_device('cuda')\nprint(1)\n", 2)


def test_what_stands_in_is_not_looked_at_and_what_writes_later_is() -> None:
    setting = Setting(4, 2, 0)
    text = helpers({"blend", "change", "Anything"}, setting, Wanted())
    rows = text.split("\n")
    fixed = rows_of_helpers(text)
    assert any("class Anything" in row for row in rows[:fixed])
    assert not any("def change" in row for row in rows[:fixed])
    assert any("def change" in row for row in rows[fixed:])
    alone = helpers({"blend"}, setting, Wanted())
    assert rows_of_helpers(alone) == alone.count("\n") + 1


def test_a_write_in_what_is_not_looked_at_is_that_of_the_statement_that_calls_it(verifier: Looking) -> None:
    head = "import torch\ndef helper(x):\n    x.add_(1)\n"
    rest = "a = torch.zeros(2)\nb = a\nhelper(a)\n"
    for fixed, scopes in ((3, {""}), (0, {"", "helper"})):
        changes = verifier.ran(head + rest, fixed, 6).changes
        assert {scope for change in changes for holder in change.holders for scope, _ in holder.names} == scopes


def test_statements_that_name_nothing_of_others_are_not_copied(tmp_path: Path) -> None:
    whole = link(
        tmp_path,
        {
            "main.py": """
                import torch
                from tools import double
                def plain(x):
                    return torch.relu(x)
                def uses(x):
                    return double(plain(x))
                def inside(x):
                    import tools
                    return tools.double(x)
                result = uses(torch.ones(1)).item()
            """,
            "tools.py": """
                def double(x):
                    return helper(x) * 2
                def helper(x):
                    return x
            """,
        },
    )
    own = parse((tmp_path / "main.py").read_text(encoding="utf-8"))
    there = {id(node) for node in own.tree.body}
    same = {node.name for node in whole.source.tree.body if isinstance(node, ast.FunctionDef) and id(node) in there}
    assert "plain" in same
    assert not {"uses", "inside"} & same
    assert run(whole)["result"] == 2.0
    assert "import tools" in ast.unparse(own.tree)
    assert "import tools" not in code(whole)


def test_names_are_found_as_before() -> None:
    tree = ast.parse(
        "def f(a, *b, c=1, **d):\n"
        "    global g\n"
        "    import h\n"
        "    g = i = a\n"
        "    for j in (k := [l for l in m]):\n"
        "        try:\n"
        "            del n\n"
        "        except E as o:\n"
        "            class P: q = 1\n"
        "    return lambda r: (s := r)\n"
    )
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert local_to(function) == {"a", "b", "c", "d", "i", "j", "k", "l", "n", "o", "P"}
    assert set().union(*map(bound_by, function.body)) == {"g", "h", "i", "j", "k", "l", "n", "o", "P"}
    assert free_in(function) == {"m", "E", "r", "h"} - {"h"}


def test_memory_is_asked_for_in_large_pages() -> None:
    assert client._environment("here", "cpu")["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
