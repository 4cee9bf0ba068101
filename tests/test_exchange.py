"""Files that know one another, followed by several at once: in what order, who waits for whom, what is found."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from torchcopylint.analysis import DEFAULT_LIMITS, Limits
from torchcopylint.base.finding import Finding
from torchcopylint.pages import load_pages
from torchcopylint.project.engine import one_by_one
from torchcopylint.project.examined import Projects, Request, examine_file
from torchcopylint.project.exchange import LOST, Exchange, key_of
from torchcopylint.project.modules import Known
from torchcopylint.project.order import best_order, levels
from torchcopylint.project.processes import Processes

HUNG = 60
"""Seconds after which a wait counts as hung."""


def requests_for(directory: Path, **files: str) -> list[Request]:
    """Requests for files that are written: `lib__utils="..."` is the text of `lib/utils.py`."""
    requests = []
    for name, text in files.items():
        path = directory / f"{name.replace('__', '/', 1) if not name.startswith('__') else name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        requests.append(Request(str(path), path.relative_to(directory).as_posix(), DEFAULT_LIMITS, str(directory)))
    return requests


def ordered(requests: list[Request]) -> list[str]:
    return [requests[number].filename for number in best_order(requests)]


class TestTheOrder:
    def test_what_is_used_comes_first(self, tmp_path: Path) -> None:
        files = {"train": "from utils import touch\n", "utils": "import deep as d, other\n", "deep": "", "other": ""}
        assert ordered(requests_for(tmp_path, **files)) == ["deep.py", "other.py", "utils.py", "train.py"]

    def test_a_name_is_followed_through_the_package_that_passes_it_on(self, tmp_path: Path) -> None:
        requests = requests_for(
            tmp_path,
            train="from lib import (\n    touch as t,  # what spoils\n)\n",
            lib__first="import lib\n",
            lib__touches="def touch(x): ...\n",
        )
        (tmp_path / "lib" / "__init__.py").write_text("from .touches import touch\nfrom .first import *\n")
        init = Request(str(tmp_path / "lib" / "__init__.py"), "lib/__init__.py", DEFAULT_LIMITS, str(tmp_path))
        found = dict(zip(["train", "first", "touches", "init"], levels([*requests, init]), strict=True))
        assert found == {"train": 1, "first": 1, "touches": 0, "init": 0}

    def test_a_circle_is_on_one_level(self, tmp_path: Path) -> None:
        files = {"a": "import b\n", "b": "import c\n", "c": "import a, base\n", "base": "", "user": "import b\n"}
        assert levels(requests_for(tmp_path, **files)) == [1, 1, 1, 0, 2]

    def test_a_file_that_cannot_be_read_has_no_imports(self, tmp_path: Path) -> None:
        requests = requests_for(tmp_path, a="import b\n", b="")
        os.unlink(requests[0].path)
        (tmp_path / "b.py").write_bytes(b"\xff\nimport \xff\nfrom . import\nfrom .. import (\n")
        assert levels(requests) == [0, 0]

    def test_a_long_chain_needs_no_deep_stack(self, tmp_path: Path) -> None:
        files = {f"m{number}": f"import m{number + 1}\n" for number in range(1_500)}
        assert levels(requests_for(tmp_path, **files))[0] == 1_499


class TestWaiting:
    def test_who_asks_for_what_another_is_at_waits_and_is_told(self) -> None:
        exchange, one, two = Exchange(), object(), object()
        assert exchange.ask(one, "utils") is None
        answers: list[str | None] = []
        waiting = threading.Thread(target=lambda: answers.append(exchange.ask(two, "utils")), daemon=True)
        waiting.start()
        exchange.tell(one, "deep", "d")
        assert not answers
        exchange.tell(one, "utils", "u")
        waiting.join(HUNG)
        assert answers == ["u"]

    def test_two_that_would_wait_for_one_another_do_not(self) -> None:
        exchange, one, two = Exchange(), object(), object()
        assert exchange.ask(one, "a") is None
        assert exchange.ask(two, "b") is None
        waiting = threading.Thread(target=exchange.ask, args=(one, "b"), daemon=True)
        waiting.start()
        while one not in exchange._waiting:
            pass
        assert exchange.ask(two, "a") is None
        assert exchange.tell(two, "a", "first") is None
        exchange.tell(two, "b", "b")
        waiting.join(HUNG)
        assert not waiting.is_alive()
        assert exchange.tell(one, "a", "second") == "first"

    def test_of_a_circle_all_is_told_at_once_and_the_first_who_tells_is_believed(self) -> None:
        exchange, one, two = Exchange(), object(), object()
        assert exchange.tell_all(one, [("a", "first a"), ("b", "first b")]) == [None, None]
        assert exchange.ask(two, "b") == "first b"
        assert exchange.tell_all(two, [("b", "second b"), ("c", "second c")]) == ["first b", None]
        assert exchange.ask(one, "c") == "second c"

    @pytest.mark.parametrize("end", ["done", "lose", "end"])
    def test_nobody_waits_for_one_that_is_gone(self, end: str) -> None:
        exchange, one, two = Exchange(), object(), object()
        exchange.begin(one, "a")
        answers: list[str | None] = []
        waiting = threading.Thread(target=lambda: answers.append(exchange.ask(two, "a")), daemon=True)
        waiting.start()
        while two not in exchange._waiting:
            pass
        ends: dict[str, Callable[[], None]] = {
            "done": lambda: exchange.done(one),
            "lose": lambda: exchange.lose("a"),
            "end": exchange.end,
        }
        ends[end]()
        waiting.join(HUNG)
        assert answers == [LOST if end == "lose" else None]


class Side:
    """One who follows files, in a thread, and tells others by an exchange."""

    def __init__(self, exchange: Exchange, store: dict[str, Known]) -> None:
        self._exchange = exchange
        self._store = store

    def ask(self, root: str, limits: Limits, path: str) -> Known | None:
        told = self._exchange.ask(self, key_of(root, limits, path))
        return self._store[told] if told is not None else None

    def tell(self, root: str, limits: Limits, found: Mapping[str, Known]) -> dict[str, Known]:
        self._store.update({str(id(known)): known for known in found.values()})
        items = [(key_of(root, limits, path), str(id(known))) for path, known in found.items()]
        earlier = self._exchange.tell_all(self, items)
        return {
            path: known if before is None else self._store[before]
            for (path, known), before in zip(found.items(), earlier, strict=True)
        }


def tangled(seed: int, count: int = 9) -> dict[str, str]:
    """Files with helpers that spoil what they are given, through one another, in many circles."""
    random.seed(seed)
    files = {}
    for number in range(count):
        used = random.sample([other for other in range(count) if other != number], 2)
        text = "import torch\n" + "".join(f"import m{other}\n" for other in used)
        for helper in range(2):
            body = random.choice(
                [
                    *(f"m{other}.f{random.randint(0, 1)}(x)" for other in used),
                    "x.zero_()",
                    "x.sum()",
                    "return x.view(-1)",
                ]
            )
            text += f"\n\ndef f{helper}(x):\n    {body}\n"
        call = f"m{used[0]}.f0(y)"
        files[f"m{number}"] = (
            text + f"\n\ndef main():\n    y = torch.ones(3)\n    kept = y\n    {call}\n    print(kept, y)\n"
        )
    return files


def findings_of(requests: list[Request], engine: object) -> dict[str, tuple[Finding, ...]]:
    assert callable(engine)
    return {
        requests[n].filename: seen.examined.findings for n, seen in engine(requests, load_pages(), lambda path: None)
    }


@pytest.mark.parametrize("seed", range(12))
def test_whoever_follows_what_the_findings_are_the_same(tmp_path: Path, seed: int) -> None:
    """Three threads with one file at a time, in an order by chance, so that they meet in the middle of circles."""
    requests = requests_for(tmp_path, **tangled(seed))
    expected = findings_of(requests, one_by_one)
    exchange, store = Exchange(), dict[str, Known]()
    found: dict[str, tuple[Finding, ...]] = {}
    todo = list(requests)
    random.shuffle(todo)

    def work() -> None:
        side = Side(exchange, store)
        projects = Projects(others=side)
        while True:
            try:
                request = todo.pop()
            except IndexError:
                return
            exchange.begin(side, key_of(request.root, request.limits, request.path))
            found[request.filename] = examine_file(request, load_pages(), projects).examined.findings
            exchange.done(side)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HUNG)
        assert not thread.is_alive()
    assert found == expected


def test_a_step_in_a_file_that_only_others_have_followed_is_told(tmp_path: Path) -> None:
    main = "import torch\nimport middle\n\ny = torch.ones(3)\nkept = y\nmiddle.f(y)\nprint(kept, y)\n"
    middle = "import deep\n\n\ndef f(x):\n    deep.g(x)\n"
    requests = requests_for(tmp_path, deep="def g(x):\n    x.zero_()\n", middle=middle, main=main)
    exchange, store = Exchange(), dict[str, Known]()
    found = {}
    for request in requests:
        side = Side(exchange, store)
        found[request.filename] = examine_file(request, load_pages(), Projects(others=side)).examined.findings
        exchange.done(side)
    assert found == findings_of(requests, one_by_one)
    assert len(found["main.py"][0].steps) == 5


def test_the_tangles_have_findings_and_harmless_files(tmp_path: Path) -> None:
    found = [
        bool(items)
        for seed in range(3)
        for items in findings_of(requests_for(tmp_path / str(seed), **tangled(seed)), one_by_one).values()
    ]
    assert {True, False} == set(found)


def test_each_file_is_followed_by_one_process(tmp_path: Path) -> None:
    """What is told of a file comes from who followed it: from one of them, if none is in a circle."""
    helpers = {
        f"h{n}": "".join(f"import h{m}\n" for m in range(n))
        + "\n\ndef f(x):\n    "
        + (f"h{n - 1}.f(x)" if n else "x.zero_()")
        + "\n"
        for n in range(6)
    }
    users = {
        f"u{n}": f"import torch\nimport h5\n\nx = torch.ones({n})\nkept = x\nh5.f(x)\nprint(kept, x)\n"
        for n in range(6)
    }
    requests = requests_for(tmp_path, **helpers, **users)
    answers = list(Processes(3)(requests, load_pages(), lambda path: None))
    told = sorted(Path(used.path).name for _, seen in answers for used in seen.used)
    assert told == sorted(Path(request.path).name for request in requests)
    codes = {requests[n].filename: [finding.code for finding in seen.examined.findings] for n, seen in answers}
    assert [codes[f"u{n}.py"] for n in range(6)] == [["TCL501"]] * 6
