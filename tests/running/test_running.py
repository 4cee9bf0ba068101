"""The machinery that executes examples: what it captures, what it isolates, and how it rewrites a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .runner import Outcome, Raised, Runner, disagreements, observed_text
from .update import with_observed

PAGE = """\
# a-rule

```python bad
print(1)
```

Text.

```python good
print(2)
```

```observed
old
```

End.
"""


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "in one process"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    with Runner(fork=request.param) as started:
        yield started


def test_printed_text_and_warnings_are_captured(runner: Runner) -> None:
    outcome = runner.run("import warnings\nprint('a')\nwarnings.warn('b')\nwarnings.warn('b')\n")
    assert outcome == Outcome(printed="a\n", warnings=(("UserWarning", "b"),), raised=None)


def test_an_exception_is_told_with_the_innermost_line_of_the_program(runner: Runner) -> None:
    outcome = runner.run("import torch\ndef f():\n    return torch.ones(2) + torch.ones(3)\nf()\n")
    assert outcome.raised is not None
    assert (outcome.raised.kind, outcome.raised.line) == ("RuntimeError", 3)


def test_a_syntax_error_is_an_exception_without_a_line(runner: Runner) -> None:
    outcome = runner.run("1 +\n")
    assert outcome.raised is not None
    assert (outcome.raised.kind, outcome.raised.line) == ("SyntaxError", 0)


def test_one_program_does_not_reach_the_next(runner: Runner) -> None:
    runner.run("import torch\ntorch.set_grad_enabled(False)\ntorch.set_default_dtype(torch.float64)\nleft = 1\n")
    outcome = runner.run("import torch\nprint(torch.is_grad_enabled(), torch.ones(1).dtype, 'left' in globals())\n")
    assert outcome.printed == "True torch.float32 False\n"


def test_the_seed_is_what_was_asked_for(runner: Runner) -> None:
    program = "import torch\nprint(torch.rand(1).item())\n"
    assert runner.run(program, seed=1) == runner.run(program, seed=1)
    assert runner.run(program, seed=1) != runner.run(program, seed=2)


def test_a_program_that_kills_its_process_is_reported() -> None:
    with Runner() as runner:
        outcome = runner.run("import os\nos._exit(3)\n")
        assert outcome.raised is not None
        assert outcome.raised.kind == "Died"
        assert runner.run("print('still here')\n").printed == "still here\n"


def test_observed_text_is_short_and_neutral() -> None:
    outcome = Outcome(
        printed="<object at 0x7f00deadbeef>  \n",
        warnings=(("UserWarning", "first line\nsecond line"),),
        raised=Raised("RuntimeError", 7, "x" * 200),
    )
    assert observed_text(outcome).splitlines() == [
        "<object at 0x...>",
        "warns UserWarning: first line",
        f"raises RuntimeError on line 7: {'x' * 110}...",
    ]


def test_paths_of_installed_packages_are_shortened() -> None:
    outcome = Outcome(printed="in /usr/lib/python3/site-packages/torch/nn/functional.py\n", warnings=(), raised=None)
    assert observed_text(outcome) == "in torch/nn/functional.py"


@pytest.mark.parametrize(
    ("observed", "same_torch", "agrees"),
    [
        ("1\nraises RuntimeError on line 2: a leaf Variable", True, True),
        ("1\nraises RuntimeError on line 2: a leaf Var...", True, True),
        ("1\nraises RuntimeError on line 2: another message", True, False),
        ("1\nraises RuntimeError on line 2: another message", False, True),
        ("1\nraises RuntimeError on line 3: a leaf Variable", False, False),
        ("1\nraises TypeError on line 2: a leaf Variable", False, False),
        ("2\nraises RuntimeError on line 2: a leaf Variable", True, False),
        ("1", True, False),
        ("1\nraises RuntimeError on line 2: a leaf Variable\n3", True, False),
    ],
)
def test_what_agrees_with_an_observed_block(observed: str, same_torch: bool, agrees: bool) -> None:
    outcome = Outcome(printed="1\n", warnings=(), raised=Raised("RuntimeError", 2, "a leaf Variable"))
    assert (disagreements(observed, outcome, same_torch=same_torch) == []) == agrees


def test_update_inserts_and_replaces_observed_blocks() -> None:
    updated = with_observed(PAGE, lambda code: f"saw {code.strip()}")
    assert updated == PAGE.replace("print(1)\n```\n", "print(1)\n```\n\n```observed\nsaw print(1)\n```\n").replace(
        "old", "saw print(2)"
    )


def test_update_of_an_updated_page_changes_nothing() -> None:
    updated = with_observed(PAGE, lambda code: "seen")
    assert with_observed(updated, lambda code: "seen") == updated
