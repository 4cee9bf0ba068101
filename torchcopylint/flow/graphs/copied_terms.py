"""Terms of a loss that have lost their graph: `torch.tensor([loss_a, loss_b]).sum()`, or `0.1 * penalty.item()`, added
to something that has one.

Where nothing of a loss has a graph, backward raises (see `severed`). Beside a term with a graph, one without raises
nothing, and trains nothing. A factor without a graph is another matter: losses may be weighted by what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import TermCopied
from torchcopylint.flow.graphs import severed, terms
from torchcopylint.flow.model import Fact, Kind, Sure
from torchcopylint.flow.values import inside, naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 12
MAX_NESTING = 4
_NUMBERS = frozenset({Kind.NUMBER, Kind.UNKNOWN})


def note(m: Machine, loss: int, site: int) -> None:
    """Backward runs, at a site, over the value of a register: look for terms of it that are copies of numbers."""
    if m.blocks.on_purpose or all(m.state.object(ref).requires_grad is Fact.NO for ref in m.value(loss).refs):
        return
    found = _terms(m, loss, site)
    added = {naming.text_of(m, register) for register in found}
    for register in found:
        copied = _copy_behind(m, register)
        taken_out = _number_behind(m, register)
        # Who adds `x - x.item()` wants the gradient of `x`, and a value without it.
        if taken_out is not None and naming.text_of(m, taken_out[1]) not in added:
            event, taken, op = taken_out
            m.fact(TermCopied(event.site, naming.spelling(m, taken), op, site, Sure.LIKELY, naming.text_of(m, loss)))
        if copied is not None and copied.site not in m.called.muted:
            taken = copied.arguments[0].register
            name, op = naming.spelling(m, taken), m.dotted_of(copied)
            m.fact(TermCopied(copied.site, name, op, site, Sure.LIKELY))


def _terms(m: Machine, loss: int, site: int) -> list[int]:
    """The terms of a loss, those that are added to it on some paths alone among them."""
    found = dict.fromkeys(terms.of(m, loss))
    load = m.unit.definitions[loss] if loss >= 0 else None
    for bind in m.index.binds.get(load.name, ()) if isinstance(load, t.Load) else ():
        made = m.unit.definitions[bind.value] if bind.value >= 0 and bind.site < site else None
        if isinstance(made, t.Augment | t.Operate):
            found |= dict.fromkeys(terms.of(m, bind.value))
    return list(found)


def _copy_behind(m: Machine, register: int) -> t.Call | t.Invoke | None:
    """The call of `torch.tensor` on a list of tensors with graphs whose result alone a term is computed from."""
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if any(m.state.object(ref).requires_grad is not Fact.NO for ref in m.value(register).refs):
            return None
        match event:
            case t.Load() | t.Unpack() | t.Attribute():
                register = terms.bound_to(m, register)
            case t.Operate() if event.symbol in ("*", "/"):
                scaled = [one for one in event.operands if m.value(one).kind is not Kind.NUMBER]
                copies = [one for one in (_copy_behind(m, one) for one in scaled) if one is not None]
                return copies[0] if len(copies) == 1 else None
            case t.Call() | t.Invoke() if event.arguments and m.dotted_of(event) == "torch.tensor":
                taken = event.arguments[0].register
                listed = kind_of(m.value(taken), m.state) in (Kind.LIST, Kind.TUPLE)
                return event if listed and severed.carries(m, taken) else None
            case t.Invoke() if event.name in _REDUCING and m.value(event.base).refs:
                register = event.base
            case t.Call() | t.Invoke() if event.arguments and m.dotted_of(event) in _REDUCING_FUNCTIONS:
                register = event.arguments[0].register
            case _:
                return None
    return None


def _number_behind(m: Machine, register: int, nesting: int = MAX_NESTING) -> tuple[t.Event, int, str] | None:
    """The event that took a number out of a tensor with a graph, if a term is that number, scaled by others at most:
    it, what it took, and how it is called. So many factors and helpers within one another are looked into."""
    if not nesting:
        return None
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if event is None or event.site in m.called.muted or kind_of(m.value(register), m.state) not in _NUMBERS:
            return None
        cutting = severed.cuts(m, event)
        if cutting is not None:
            return (event, *cutting) if severed.carries(m, cutting[0]) else None
        match event:
            case t.Load() | t.Unpack() | t.Attribute():
                register = terms.bound_to(m, register)
            case t.Operate() if event.symbol == "*":
                scaled = [one for one in event.operands if not terms.is_setting(m, one)]
                behind = [_number_behind(m, one, nesting - 1) for one in scaled or event.operands]
                found = [one for one in behind if one is not None]
                return found[0] if len(found) == len(scaled or found) == 1 else None
            case t.Call() | t.Invoke():
                return _number_of_helper(m, event, nesting - 1)
            case _:
                return None
    return None


def _number_of_helper(m: Machine, event: t.Call | t.Invoke, nesting: int) -> tuple[t.Event, int, str] | None:
    """The same for a call of a function or method of this file that returns nothing but such numbers."""
    number = severed.called_unit(m, event)
    helper = m.world.machines.get(number) if number is not None and m.world.is_own(number) else None
    returned = helper.index.of(t.Return) if helper is not None else []
    made = [_number_behind(helper, one.value, nesting) for one in returned] if helper is not None else []
    taken = [argument.register for argument in event.arguments]
    if helper is None or not made or None in made or not taken:
        return None
    last = next(one for one in reversed(made) if one is not None)
    inside.note(m, event.site, Role.CUT, inside.innermost(helper, last[0].site, Role.CUT, last[2], given=False))
    return event, taken[0], f"{severed.text_of_call(m, event)}(...)"


_REDUCING = frozenset({"sum", "mean", "prod", "norm", "max", "min", "squeeze", "to", "float"})
_REDUCING_FUNCTIONS = frozenset({"torch.sum", "torch.mean", "torch.prod", "torch.norm", "torch.max", "torch.min"})
