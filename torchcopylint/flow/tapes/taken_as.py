"""What the result of a call is taken for by who uses it, where the call alone does not say what it is.

`torch.max(x, other)` is one tensor if `other` is one, and two if it is a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.knowledge.table import Op

_OF_TUPLES = frozenset({"count", "index"})
_OF_ANYTHING = frozenset({"==", "!=", "is", "is not", "in", "not in", "not"})


def one_or_two(m: Machine, op: Op, out: int) -> Op:
    """The row of the table for a call of which nobody knows whether it returns one tensor or two: the one for a second
    tensor if its result, in the register `out`, is taken for one tensor."""
    name = f"{op.name.partition('(')[0]}(other)"
    if op.result != "unknown" or name not in op.forms or not _is_one_tensor(m, out):
        return op
    return table.function(name) or op


def _is_one_tensor(m: Machine, out: int) -> bool:
    """Whether a value is used as a tensor at once, or by the name that it gets."""
    user = m.consumer_of(out) if out >= 0 else None
    users = [user]
    if isinstance(user, t.Bind):
        loads = [load for load in m.index.of(t.Load) if load.name == user.name]
        users = [m.consumer_of(load.out) for load in loads if out in uses.bindings_before(m, load)]
    return any(_takes_one(m, user, out) for user in users if user is not None)


def _takes_one(m: Machine, user: t.Event, out: int) -> bool:
    """Whether an event refuses a tuple in place of a tensor."""
    if isinstance(user, t.Invoke) and user.base == out:
        return user.name not in _OF_TUPLES and table.tensor_method(user.name) is not None
    if isinstance(user, t.Operate):
        return user.symbol not in _OF_ANYTHING
    if not isinstance(user, t.Call | t.Invoke):
        return False
    handed = any(one.register == out and not one.stars for one in user.arguments)
    return handed and table.function(imports.ahead(m, user)) is not None and imports.ahead(m, user)[:6] == "torch."
