"""Attempts that are there to show an error: a statement or two, and a handler that prints what they have raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_MAX_STATEMENTS = 4
_ERRORS = frozenset({"RuntimeError", "Exception"})
_SAYING = frozenset({"print", "pprint", "display"})
_STATEMENTS = (t.Discard, t.Bind, t.Augment, t.StoreItem, t.StoreAttribute)
_OF_MORE = (t.Loop, t.Branch, t.Try, t.Enter)
_OF_TEXT = (t.Load, t.Const, t.Import, t.Text, t.Attribute, t.Item, t.Call, t.Invoke, t.Operate, t.Bind, t.Discard)


def is_shown(m: Machine, event: t.Try) -> bool:
    """Whether a `try` is there for the error: `try: x.add_(1)`, `except RuntimeError as e: print(e)`.

    Around a whole turn of training stands another kind, which goes on after what has failed.
    """
    said = sum(isinstance(one, _STATEMENTS) for one in event.body)
    if (
        len(event.handlers) != 1
        or not 0 < said <= _MAX_STATEMENTS
        or any(isinstance(one, _OF_MORE) for one in event.body)
    ):
        return False
    return _only_says(m, event.handlers[0])


def _only_says(m: Machine, handler: t.Tape) -> bool:
    """Whether a handler takes an error of torch under a name, and does nothing but print it."""
    caught = handler[0] if handler else None
    bound = [one for one in handler if isinstance(one, t.Bind)]
    if not isinstance(caught, t.Load) or caught.name not in _ERRORS or len(bound) != 1:
        return False
    said = [m.unit.definitions[one.value] for one in handler if isinstance(one, t.Discard) and one.value >= 0]
    printed = all(isinstance(one, t.Call) and naming.text_of(m, one.function) in _SAYING for one in said)
    named = any(isinstance(one, t.Load) and one.name == bound[0].name for one in handler)
    return bool(said) and printed and named and all(isinstance(one, _OF_TEXT) for one in handler)
