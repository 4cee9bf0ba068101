"""The examples of the rule pages, executed under torch: each still does what its `observed` block says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running.runner import NOT_RUN, Runner, disagreements

from torchcopylint.pages import Example, Page, load_pages

EXAMPLES = tuple((page, example) for page in load_pages().values() for example in page.examples)
ANOTHER_SEED = 1
"""The blocks were written from seed 0: an example that forgets to seed its random numbers fails here."""


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


@pytest.mark.parametrize(
    ("page", "example"), EXAMPLES, ids=[f"{page.name}:{example.row}" for page, example in EXAMPLES]
)
def test_example_does_what_its_page_says(page: Page, example: Example, runner: Runner) -> None:
    outcome = runner.run(example.code, seed=ANOTHER_SEED, needs=page.keys.get("needs", ""))
    lacking = runner.lacks(page.keys.get("needs", ""))
    if lacking or (example.observed or "").startswith(NOT_RUN):
        # It cannot be run here, or has been run nowhere yet: then it does ask for what is lacking, or runs to its end.
        assert bool(outcome.raised) == bool(lacking)
        return
    same_torch = runner.torch_version.startswith(page.keys["torch"] + ".")
    assert disagreements(example.observed or "", outcome, same_torch=same_torch) == []
