"""The end of a block that nothing can be raised behind: a handler does not begin with what is done there."""

from __future__ import annotations

from torchcopylint.flow import tape as t

_QUIET = (
    *(t.Load, t.Const, t.Attribute, t.Logic, t.Operate, t.Test, t.Assume, t.Discard),
    *(t.Bind, t.Augment, t.Iterate, t.Unpack, t.Exit, t.Continue, t.Break),
)
"""Events that call nothing and look nothing up. What they do to tensors may fail, but then it is not done."""


def begin(body: t.Tape) -> int:
    """Where the quiet end of a block begins: the number of its events if it has none."""
    at = len(body)
    while at and _is_quiet(body[at - 1]):
        at -= 1
    return at


def _is_quiet(event: t.Event) -> bool:
    if isinstance(event, t.Branch):
        return all(_is_quiet(one) for arm in event.arms for one in arm)
    if isinstance(event, t.Loop):
        return all(_is_quiet(one) for tape in (event.test, event.body, event.orelse) for one in tape)
    return isinstance(event, _QUIET)
