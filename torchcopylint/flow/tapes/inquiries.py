"""Values that are only asked what they are like, not what is in them: `p.data.size()`, `isinstance(x.data, cls)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_QUESTIONS = ("shape", "size", "dim", "ndim", "ndimension", "numel", "nelement", "device", "dtype", "is_cuda", "layout")
_ASKED = frozenset({*_QUESTIONS, "get_device", "element_size", "is_floating_point", "is_complex", "is_contiguous"})
_ALIKE = frozenset(["zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"])
_MAKING = frozenset(["new_zeros", "new_ones", "new_empty", "new_full"])
"""Methods that ask a tensor of what type and where it is, and make another one."""
SHAPED = frozenset(["view_as", "reshape_as", "expand_as", "resize_as_", "type_as"])
"""Methods that ask their argument for its shape or type."""
_OF_OLD_TENSORS = frozenset(["names", "creator"])
"""Fields of tensors that the table does not know."""
_BUILTINS = frozenset(["builtins.isinstance", "builtins.len", "builtins.type"])


def is_inquiry(m: Machine, register: int) -> bool:
    """Whether all that becomes of what is in a register is a question about its type, shape, place or the like."""
    event = m.consumer_of(register) if register >= 0 else None
    if isinstance(event, t.Attribute) or (isinstance(event, t.Invoke) and event.base == register):
        plain = isinstance(event, t.Invoke) and event.name == "type" and not event.arguments
        made = event.name in _MAKING or (event.name == "new" and not _takes_tensors(m, event))
        return event.name in _ASKED or plain or (made and isinstance(event, t.Invoke))
    if isinstance(event, t.Invoke) and event.name in SHAPED:
        return True
    if isinstance(event, t.Call | t.Invoke) and event.arguments and event.arguments[0].register == register:
        dotted = m.dotted_of(event)
        return dotted in _BUILTINS or (dotted.startswith("torch.") and dotted.rpartition(".")[2] in _ALIKE)
    return False


def shows_no_tensor(m: Machine, text: str) -> bool:
    """Whether a unit does with the `.data` of what it calls `text` what nobody does with that of a tensor: asks whether
    there is one, or whether that is a tensor, or looks it up under a name (`sample.data["image"]`)."""
    reads = [event for event in m.index.of(t.Attribute) if event.name == "data"]
    alike = [event.out for event in reads if naming.text_of(m, event.base) == text]
    return any(_is_of_no_tensor(m, register) for register in alike)


def has_foreign_field(m: Machine, text: str) -> bool:
    """Whether a unit reads a field of what it calls `text` that no tensor has, and that nobody here sets:
    `train_set.data` beside `train_set.targets`."""
    read = {event.name: event for event in m.index.of(t.Attribute) if naming.text_of(m, event.base) == text}
    return any(
        table.tensor_property(name) is None
        and table.tensor_method(name) is None
        and not (name.startswith("_") or name in _OF_OLD_TENSORS or name in m.index.stores or m.world.setters(name))
        for name in read
    )


def _is_of_no_tensor(m: Machine, register: int) -> bool:
    event = m.consumer_of(register)
    if isinstance(event, t.Item):
        keys = [m.unit.definitions[one] for one in event.subscript if isinstance(one, int) and one >= 0]
        return event.base == register and any(isinstance(one, t.Const) and isinstance(one.value, str) for one in keys)
    if isinstance(event, t.Logic):
        return event.symbol in ("is", "is not") and any(_is_none(m, one) for one in event.operands)
    return isinstance(event, t.Call | t.Invoke) and m.dotted_of(event) == "torch.is_tensor"


def _is_none(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Const) and made.value is None


def asks(event: t.Attribute | t.Invoke, register: int) -> bool:
    """Whether an attribute of what is in a register, or a method without arguments, says what it is like."""
    return event.base == register and event.name in _ASKED


def none_is_expected(m: Machine, register: int) -> bool:
    """Whether what is in a register is asserted to be `None`, or a test does something in either case, and says in
    words that it is: whoever does that expects it."""
    asked = m.consumer_of(register) if register >= 0 else None
    if isinstance(asked, t.Invoke) and asked.name == "assertIsNone":
        return True
    if not isinstance(asked, t.Logic) or asked.symbol not in ("is", "is not"):
        return False
    if any(_says_so(branch, asked) for branch in m.index.of(t.Branch)):
        return True
    outcomes = [event.truth for event in m.index.of(t.Assume) if event.register == asked.out]
    return asked.symbol == "is" and outcomes == [True]


def _says_so(branch: t.Branch, asked: t.Logic) -> bool:
    """Whether the arm in which a test has found `None` holds a text, and the other one anything."""
    heads = [arm[0] if len(arm) > 1 else None for arm in branch.arms]
    if not all(isinstance(head, t.Assume) and head.register == asked.out for head in heads):
        return False
    empty = [arm for arm in branch.arms if isinstance(arm[0], t.Assume) and arm[0].truth == (asked.symbol == "is")]
    return any(isinstance(one, t.Const) and isinstance(one.value, str) for arm in empty for one in arm)


def _takes_tensors(m: Machine, event: t.Attribute | t.Invoke) -> bool:
    """Whether a call is given anything that has memory of its own."""
    return isinstance(event, t.Invoke) and any(m.value(argument.register).refs for argument in event.arguments)
