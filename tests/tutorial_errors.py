"""What tutorials say of copying in PyTorch and torch does not do: the text of `docs/what-tutorials-get-wrong.md`.

Each entry belongs to a program of `tutorial_claims`, which `test_tutorial_claims.py` executes and lints. The words are
ours; the output under each program is the one that the test demands.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from tests.tutorial_claims import CLAIMS, Claim
from torchcopylint.base.finding import Severity
from torchcopylint.pages import load_pages


class Wrong(NamedTuple):
    """One statement as it is taught, and what is so. `id` names the program that shows it."""

    id: str
    said: str
    fact: str


CHAPTERS: dict[str, tuple[Wrong, ...]] = {
    "clone": (
        Wrong(
            "C51",
            "`clone()` gives the same tensor a second name; for a separate tensor one needs `copy_()`",
            "`clone()` makes a tensor with memory of its own. A second name is what `b = a` makes.",
        ),
        Wrong(
            "C14",
            "`clone()` avoids the cost of a deep copy",
            "It allocates as much memory and copies every element. What it saves against `copy.deepcopy` is `.grad`, "
            "attributes and the class, not the elements.",
        ),
        Wrong(
            "C11",
            "`clone()` is PyTorch's deep copy",
            "`clone()` is an operation of the graph: its result is no leaf, has no `.grad`, no attributes, and is a "
            "plain tensor even of a parameter. `copy.deepcopy` of a leaf copies all of these and has no history.",
        ),
        Wrong(
            "C52",
            "`clone()` copies the gradient as well",
            "The clone's `.grad` is None. Gradients that reach the clone flow on to the source.",
        ),
        Wrong(
            "C8",
            "the result of `clone()` requires grad, that of `detach()` does not",
            "A clone requires grad if its source does and grad mode is on, so not of a plain tensor and not inside "
            "`torch.no_grad()`.",
        ),
        Wrong(
            "C13",
            "`clone()` keeps all attributes of the layout",
            "It keeps the strides of a tensor that is dense, such as a transposed one. An expanded tensor becomes "
            "contiguous, so that its clone takes as much memory as it seems to have.",
        ),
    ),
    "detach": (
        Wrong(
            "C18",
            "`detach()` returns a new tensor, so it is safe to write it",
            "It returns a new tensor object over the same memory: writing it rewrites the leaf. "
            "`detach().clone()` is safe to write.",
        ),
        Wrong(
            "C16",
            "after `y = y.detach()` a write to `y` leaves the original alone",
            "Gradients that were computed stay as they are, but the tensor under the first name has the new value.",
        ),
        Wrong(
            "C15",
            "tensors must be detached before the optimizer's step, or memory overflows",
            "`backward()` frees the graph. Memory grows if something that carries a graph is kept from step to step, "
            "such as a sum of losses.",
        ),
        Wrong(
            "C54",
            "a detached tensor has no gradient, even if it is made to require grad afterwards",
            "It is a leaf then and gets a gradient of its own. What is cut is the way to the tensor that it was "
            "taken from.",
        ),
        Wrong(
            "C30",
            "`a` and `a.detach()` are equal for ever",
            "They are as long as both stand on one storage. Assigning to `a.data` puts `a` on another one, and the "
            "detached tensor stays behind on the old.",
        ),
    ),
    "detach_": (
        Wrong(
            "C21",
            "`detach_()` returns nothing and cannot be assigned",
            "It returns the tensor itself. `z = y.detach_()` makes a second name, and cuts `y` as well.",
        ),
        Wrong(
            "C22",
            "after `y.detach_()`, printing `y` still shows `requires_grad=True`",
            "`detach_()` of a leaf clears `requires_grad`, so that the write in the next line is allowed.",
        ),
    ),
    "data": (
        Wrong(
            "C31",
            "`.data` is the same as `detach()`",
            "Both share memory and have no history. But a write through `.data` is not counted, so autograd uses wrong "
            "values in silence where it would raise after a write through `detach()`.",
        ),
        Wrong(
            "C35",
            "parameters are set with `weight.data.zero_()`, because a leaf cannot be written in place",
            "A leaf can be written inside `torch.no_grad()`, where the write is counted; `nn.init` does that.",
        ),
        Wrong(
            "C36",
            "a momentum encoder must write `a.data.copy_(b.data)`, since `copy_` on a parameter is an error",
            "Inside `torch.no_grad()`, `a.copy_(b)` works, and `a` stays a leaf that requires grad.",
        ),
        Wrong(
            "C53",
            "leaf tensors cannot be written in place",
            "Leaves that require grad cannot, while grad mode is on. A plain tensor is a leaf as well, and can.",
        ),
    ),
    "constructors": (
        Wrong(
            "C41",
            "`torch.Tensor` and `torch.tensor` both make deep copies",
            "`torch.tensor` copies. `torch.Tensor` shares a float32 array and any tensor, and only copies what it must "
            "convert.",
        ),
        Wrong(
            "C42",
            "`torch.as_tensor` shares memory with what it is given",
            "It does for an array or tensor of the wanted dtype on the wanted device. Otherwise, and for a list, it "
            "copies.",
        ),
        Wrong(
            "C12",
            "`copy.copy` copies a tensor",
            "It makes a second tensor over the same memory, with a version counter of its own, and drops the history: "
            "the result is a leaf.",
        ),
        Wrong(
            "C46",
            "`contiguous()` gives memory of its own",
            "Only if there is something to do. A contiguous tensor comes back as the same object, and a transposed one "
            "with a single row or column counts as contiguous.",
        ),
    ),
    "other": (
        Wrong(
            "C40",
            "`x = x + 5` works in place and saves memory",
            "It makes a new tensor and binds the name anew; other names keep the old one. `x += 5` works in place.",
        ),
        Wrong(
            "C27",
            "`b.copy_(a)` is like `b = a.clone()`",
            "It writes the tensor that is there, so every other name and view of it sees the new values, and it raises "
            "on a leaf that requires grad.",
        ),
        Wrong(
            "C55",
            "a tensor is made with `grad=False`",
            "It is made with `requires_grad=False`, and `grad` is None until a backward pass fills it.",
        ),
        Wrong(
            "C17",
            "one step of SGD with rate 0.1 on ones, with the sum as loss, gives random-looking values",
            "The gradient of a sum is one everywhere, so every element is 0.9.",
        ),
        Wrong(
            "C3",
            "a clone is printed with `grad_fn=<CloneBackward>`",
            "The node is called `CloneBackward0` in torch 2.13: most names of nodes end in a number.",
        ),
        Wrong(
            "C49",
            "`volatile=True` switches gradients off",
            "It was removed. The attribute is still there, does nothing and warns; `torch.no_grad()` took its place.",
        ),
    ),
}
"""The entries by the name that the document asks for them."""

PROGRAMS = {claim.id: claim for claim in CLAIMS}


def reported(claim: Claim) -> list[tuple[int, str]]:
    """What the linter reports today in a claim's program: rows and codes."""
    shown = {code for code, page in load_pages().items() if page.enabled() and page.severity() is not Severity.INFO}
    return sorted([*claim.expected, *(place for place in claim.later if place[1] in shown)])


def rendered(chapter: str) -> str:
    """The entries of one chapter, as Markdown."""
    return "\n\n".join(_entry(wrong) for wrong in CHAPTERS[chapter])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=120, break_long_words=False, break_on_hyphens=False)


def _entry(wrong: Wrong) -> str:
    claim = PROGRAMS[wrong.id]
    pages = load_pages()
    parts = [
        _wrapped(f"**Said: {wrong.said}.**"),
        _wrapped(wrong.fact),
        f"```python\n{claim.program}```",
        f"```text\n{claim.prints}\n```",
    ]
    found = [f"[{code}](rules/{pages[code].name}.md) on line {row}" for row, code in reported(claim)]
    if found:
        parts.append(f"torchcopylint reports {' and '.join(found)}.")
    return "\n\n".join(parts)
