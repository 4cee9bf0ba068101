"""Makes the files of a new rule, so that what is left to write is what only its author knows.

    python -m tests.new_rule TCL507 rows-kept-of-buffer
    python -m tests.new_rule TCL5 rows-kept-of-buffer        the next free code of the family

Three files: the page, the check, and a section of engine tests. Each place that waits for its author starts with
`WRITE`; a test of form fails until none is left. What is there before is never overwritten.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from torchcopylint import __version__
from torchcopylint.knowledge.table import torch_version
from torchcopylint.pages import Page, load_pages

ROOT = Path(__file__).resolve().parent.parent
TO_WRITE = "WRITE"
"""What every place starts with that waits for the author."""

_CODE = re.compile(r"TCL[1-9]\d\d")
_FAMILY = re.compile(r"TCL[1-9]")
_NAME = re.compile(r"[a-z]+(-[a-z]+)*")

_PAGE = """\
---
code: {code}
message: WRITE: `{{op}}` writes `{{name}}`, and what follows from it, in one sentence without a full stop
fix_title: WRITE: one imperative line that can be typed as it stands
severity: warning
default: on
confidence: high
effect: silent
blame: written
fix: display
confirm: two-names-change
since: {version}
torch: {torch}
---

# {name}

## What it finds

WRITE: what is found, in one paragraph: it is the summary in all tables.

## Why it matters

WRITE: what goes wrong at run time, and why torch does not say so.

## Bad

WRITE: a script, in one line:

```python bad
import torch

torch.manual_seed(0)
WRITE = "the shortest whole program that goes wrong, as people write it"
x = torch.zeros(2)
kept = x  # <- shared
for step in range(2):
    x += 1  # <- finding, written
print("kept:", kept)  # <- read
```

WRITE: the same in a class, in one line:

```python bad
import torch
from torch import nn

WRITE = "the same fault in a module, where the two halves stand in different methods"


class Model(nn.Module):
    def forward(self, x):
        kept = x  # <- shared
        x += 1  # <- finding, written
        return kept * 2  # <- read


print(Model()(torch.zeros(2)))
```

WRITE: the same through a helper, in one line:

```python bad
import torch

WRITE = "the same fault with half of it in a function of the same file"


def update(values):
    values += 1  # <- finding, written
    return values.sum()


x = torch.zeros(2)
print(update(x), x)  # <- read
```

## Good

WRITE: the twin of the first, which a careful person writes:

```python good
import torch

torch.manual_seed(0)
WRITE = "as similar to the bad one as possible, and right"
x = torch.zeros(2)
kept = x.clone()
for step in range(2):
    x += 1
print("kept:", kept)
```

WRITE: the idiom that looks like the fault:

```python good
import torch

torch.manual_seed(0)
WRITE = "what a hasty rule would take for the fault"
x = torch.zeros(2)
for step in range(2):
    x += 1
kept = x
print("kept:", kept)
```

WRITE: another order of the same lines:

```python good
import torch

torch.manual_seed(0)
WRITE = "the events of the bad one, in an order that is right"
x = torch.zeros(2)
kept = x
total = kept.sum()
x = x + 1
print("kept:", kept, total)
```

## When it stays silent

- WRITE: each case that is right although it looks like the fault, one line each.

## How it is verified

WRITE: what a run shows that confirms a finding.

## Fix safety

No fix is applied. WRITE: what to look at before doing what the advice says.

## References

- WRITE: [the page of torch's documentation](https://docs.pytorch.org/docs/stable/) that says so
"""

_CHECK = '''\
"""{code}: WRITE: what is reported, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import UnitFacts, Write


def check(unit: UnitFacts) -> Iterator[Report]:
    """WRITE: Report each ..., and when not."""
    for write in unit.writes.values():
        if not _matters(write):
            continue
        names = {{"name": write.name, "op": write.op}}
        yield Report(
            site=write.site,
            points=(Point(Role.WRITTEN, write.site, "written", names),),
            values=names,
            confidence=confidence(write.sure),
        )


def _matters(write: Write) -> bool:
    """WRITE: which facts make it a fault. Until then nothing is."""
    return False
'''

_TESTS = """\
# WRITE: what this rule needs the engine to know

Delete this file if the page's examples show everything.

## WRITE: one thing that the engine knows, as a sentence

```python
import torch
x = torch.zeros(2)
y = x.clone()
x += 1
assert y.sum() == 0
```
"""


class Refused(Exception):
    """A code or name that cannot be a new rule's; the message says why."""


def new_rule(root: Path, code: str, name: str, pages: Mapping[str, Page]) -> list[Path]:
    """Write the files of a rule under `root` and return their paths. Raises `Refused`, and writes nothing then."""
    code = _free_code(code.upper(), pages)
    if not _NAME.fullmatch(name):
        raise Refused(f"`{name}` is no name of a rule: small letters and hyphens, such as `state-dict-by-reference`")
    if name in {page.name for page in pages.values()}:
        raise Refused(f"there is a rule `{name}` already")
    texts = {
        root / "rules" / f"{name}.md": _PAGE,
        root / "torchcopylint" / "checks" / f"{name.replace('-', '_')}.py": _CHECK,
        root / "tests" / "flow" / f"{name}.md": _TESTS,
    }
    there = next((path for path in texts if path.exists()), None)
    if there is not None:
        raise Refused(f"{there.relative_to(root)} is there already")
    torch = ".".join(torch_version().split(".")[:2])
    for path, text in texts.items():
        path.write_text(text.format(code=code, name=name, version=__version__.partition("+")[0], torch=torch))
    return list(texts)


def _free_code(code: str, pages: Mapping[str, Page]) -> str:
    """The code itself if it is free, or the next free one of a family."""
    if _FAMILY.fullmatch(code):
        last = max((int(taken[3:]) for taken in pages if taken.startswith(code)), default=int(code[3]) * 100)
        code = f"TCL{last + 1}"
    if not _CODE.fullmatch(code):
        raise Refused(f"`{code}` is no code of a rule: `TCL` and three digits, or a family such as `TCL5`")
    if code in pages:
        raise Refused(f"`{code}` is the code of `{pages[code].name}`; `{code[:4]}` alone takes the next free one")
    return code


def main(arguments: list[str]) -> int:
    """Make the files and say what comes next; returns the exit code."""
    if len(arguments) != 2:
        print("usage: python -m tests.new_rule CODE NAME")
        return 2
    try:
        made = new_rule(ROOT, arguments[0], arguments[1], load_pages())
    except Refused as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for path in made:
        print(f"made: {path.relative_to(ROOT)}")
    print(f"next: replace every `{TO_WRITE}`, then: python -m tests.running.update {arguments[1]}")
    print(f"      and: pytest -k {arguments[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
