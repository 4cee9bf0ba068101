"""The screen: what it spares has no finding, and it spares what a linter of torch need not look at."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import Lint, write

from torchcopylint.analysis import Unreadable, analyse
from torchcopylint.flow import signs
from torchcopylint.flow.values import kinds
from torchcopylint.knowledge import table
from torchcopylint.pages import Example, load_pages
from torchcopylint.screen import spares

EXAMPLES = [
    pytest.param(example, id=f"{page.name}:{example.row}")
    for page in load_pages().values()
    for example in page.examples
    if example.marks
]


def real_files() -> list[Path]:
    """Files of other people: some of the standard library, and of torch's own, if it is installed."""
    standard = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(standard.rglob("*.py")) if "site-packages" not in path.parts][::16]
    torch = find_spec("torch")
    if torch is not None and torch.origin is not None:
        files += sorted(Path(torch.origin).parent.rglob("*.py"))[::4]
    return files


def test_what_is_spared_in_real_code_has_no_finding() -> None:
    spared = wrong = 0
    for path in real_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        if not spares(text):
            continue
        spared += 1
        try:
            found = analyse(text, filename=path.name).findings
        except Unreadable as error:
            pytest.fail(f"{path}: {error}")
        if found:
            wrong += 1
            print(path, found[0].code, found[0].span.start)
    assert wrong == 0
    assert spared > 20


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_example_with_a_finding_is_spared(example: Example) -> None:
    assert not spares(example.code)


SPARED = {
    "nothing": "",
    "other work": "import json\n\n\ndef read(path):\n    with open(path) as file:\n        return json.load(file)\n",
    "torch is imported and nothing is done": "from torch import nn\nfrom torch.nn import Module\n__all__ = ['nn']\n",
    "words in texts and comments": '"""Detach the tensor of torch_x."""\nx = "x.detach()"  # x.data\n',
    "a name that is an attribute elsewhere": "data = [1]\nprint(data)\n",
}
KEPT = {
    "torch in use": "import torch\nx = torch.ones(2)\n",
    "a method of tensors": "def f(x):\n    return x.detach()\n",
    "a name of a model": "from somewhere import model\nbest = model\n",
    "a class of an optimizer": "from somewhere import AdamW\nprint(AdamW)\n",
    "a class that somebody else's base may make a module": "class A(B):\n    def forward(self, x):\n        return x\n",
    "an attribute by text": "def f(x):\n    return getattr(x, 'detach')()\n",
    "a name in other letters": "def f(x):\n    return x.\uff44etach()\n",
    "a question": "x = 1  # torchcopylint: reveal[x]\n",
    "no Python": "x = (\n",
    "Python 2": "print 'x'\n",
    "newer syntax": "x = t'{1}'\n" if sys.version_info < (3, 14) else "x = (\n",
}


@pytest.mark.parametrize("text", SPARED.values(), ids=SPARED)
def test_it_spares(text: str) -> None:
    assert spares(text)
    assert analyse(text, filename="a.py").findings == ()


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_it_keeps(text: str) -> None:
    assert not spares(text)


def test_the_signs_follow_the_knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tables or the lists of classes come to speak of is a sign, without being named here or there."""
    known = table.names

    def more(name: str) -> tuple[str, ...]:
        return (*known(name), {"names": "sparkle", "functions": "newpackage.f"}.get(name, "x"))

    assert spares("import newpackage\nnewpackage.f()\n")
    assert spares("def f(x):\n    x.sparkle()\n    import another\n    another.Base()\n")
    monkeypatch.setattr(table, "names", more)
    monkeypatch.setattr(kinds, "MODULE_BASES", frozenset({*kinds.MODULE_BASES, "another.Base"}))
    signs.signs.cache_clear()
    try:
        assert not spares("import newpackage\nnewpackage.f()\n")
        assert not spares("def f(x):\n    x.sparkle()\n")
        assert not spares("import another\nanother.Base()\n")
    finally:
        signs.signs.cache_clear()


def test_libcst_is_loaded_only_for_places_that_python_does_not_tell(project: Path) -> None:
    write(project, a_py=SPARED["other work"], b_py="import torch\nx = torch.ones(2)\nx += 1\nprint(x)\n")
    found = "import torch\nw = torch.ones(2, requires_grad=True)\nw.add_(1)\n"
    write(project, c_py=found, d_py=found.replace("w", "ﬁ"))
    program = (
        "import sys; from torchcopylint.cli.main import run; code = run(['-q', *sys.argv[1:]]); "
        "print(code, 'libcst' in sys.modules)"
    )
    answers = [
        subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True).stdout.split()[-2:]
        for path in ("b.py", "c.py", "d.py")
    ]
    assert answers == [["0", "False"], ["1", "False"], ["1", "True"]]


def test_no_screen_finds_the_same(project: Path, lint: Lint) -> None:
    write(project, a_py="import torch\nx = torch.ones(2)\ny = x\ny += 1\nprint(x, y)\n", b_py="x = (\n", c_py="x = 1\n")
    options = ("--output-format", "json", ".")
    screened, full = lint(*options), lint("--no-screen", *options)
    assert (screened.returncode, screened.stdout) == (full.returncode, full.stdout)
    assert screened.returncode == 1
