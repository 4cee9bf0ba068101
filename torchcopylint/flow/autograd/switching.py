"""Calls that set grad mode: `torch.no_grad()` and its kin, and `torch.set_grad_enabled(...)`."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS, Fact, Kind, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values.modes import GRAD_MODES
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import MODE, Mode


@special(*GRAD_MODES)
def _mode(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    dotted = m.dotted_of(event)
    if arguments.positional and isinstance(arguments.positional[0].const, FunctionReference):
        return arguments.positional[0]
    mode = GRAD_MODES[dotted]
    if arguments.positional and arguments.positional[0].const is False:
        mode = Mode(Fact.YES)
    elif arguments.positional and arguments.positional[0].const is not True:
        mode = Mode(Fact.UNKNOWN)
    m.mode_factories.add(event.out)
    return Value(kind=Kind.MODE, const=mode)


@special("torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch._C.set_grad_enabled")
def _set_grad_enabled(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    wanted = arguments.at(0).const if arguments.positional else arguments.keywords.get("mode", Value()).const
    if isinstance(wanted, bool):
        mode = Mode(Fact.YES if wanted else Fact.NO)
    elif event.arguments and (_is_compared(m, event.arguments[0].register) or _runs_backward(m)):
        # Who asks here has it on and off: `with torch.set_grad_enabled(phase == "train")`.
        mode = Mode(Fact.LIKELY, assumed=True)
    else:
        mode = Mode(Fact.UNKNOWN)
    # It takes effect at once; as a context manager it puts the old mode back at the end.
    before = m.state.mode
    m.state.put(MODE, mode)
    m.modes_before[event.out] = before
    return Value(kind=Kind.MODE, const=mode)


def _is_compared(m: Machine, register: int) -> bool:
    """Whether a value is what a comparison written here has given."""
    made = m.unit.definitions[register]
    bound = uses.bindings_before(m, made) if isinstance(made, t.Load) else []
    if len(bound) == 1 and bound[0] >= 0:
        made = m.unit.definitions[bound[0]]
    return isinstance(made, t.Operate) and made.symbol in COMPARISONS


def _runs_backward(m: Machine) -> bool:
    """Whether a unit runs backward itself, so that recording is on when it gets there."""
    return any(event.name == "backward" for event in m.index.of(t.Invoke))
