"""Calls that set grad mode: `torch.no_grad()` and its kin, and `torch.set_grad_enabled(...)`."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS, Fact, Kind, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
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
    m.blocks.factories.add(event.out)
    return Value(kind=Kind.MODE, const=mode)


@special("torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch._C.set_grad_enabled")
def _set_grad_enabled(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    wanted = arguments.at(0).const if arguments.positional else arguments.keywords.get("mode", Value()).const
    if isinstance(wanted, bool):
        mode = Mode(Fact.YES if wanted else Fact.NO)
    elif event.arguments and (_is_compared(m, event.arguments[0].register) or _runs_backward(m)):
        # Who asks here has it on and off: `with torch.set_grad_enabled(phase == "train")`.
        mode = Mode(Fact.LIKELY, assumed=True, asked=event.arguments[0].register)
    else:
        mode = Mode(Fact.UNKNOWN)
    # It takes effect at once; as a context manager it puts the old mode back at the end.
    before = m.state.mode
    m.state.put(MODE, mode)
    m.blocks.before[event.out] = before
    return Value(kind=Kind.MODE, const=mode)


def assume(m: Machine, register: int, truth: bool) -> None:
    """A condition holds, or does not, that grad mode was set to: in the arms of `if training:`, it is known."""
    mode = m.state.mode
    if mode.asked < 0:
        return
    for subject, constant, held in _asked(m, mode.asked, True):
        for other, also, holds in _asked(m, register, truth):
            if subject != other or not _is_the_same(m, subject, mode.asked, register):
                continue
            if constant == also:
                m.state.put(MODE, mode._replace(recording=Fact.YES if held is holds else Fact.NO, assumed=False))
            elif held and holds:
                m.state.put(MODE, mode._replace(recording=Fact.NO, assumed=False))


def _asked(m: Machine, register: int, truth: bool) -> list[tuple[str, object, bool]]:
    """What is asked for, by which constant (`True` for what is true or not), and whether it is to be that.

    A name that was bound to a comparison is one answer, and that comparison another.
    """
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Logic) and event.symbol == "not":
        return _asked(m, event.operands[0], not truth)
    if isinstance(event, t.Operate) and event.symbol in ("==", "!=") and len(event.operands) == 2:
        constant = m.unit.definitions[event.operands[1]]
        subject = m.unit.definitions[event.operands[0]]
        if isinstance(constant, t.Const) and isinstance(subject, t.Load | t.Attribute):
            return [(naming.text_of(m, event.operands[0]), constant.value, truth is (event.symbol == "=="))]
    if not isinstance(event, t.Load | t.Attribute):
        return []
    bound = uses.bindings_before(m, event) if isinstance(event, t.Load) else []
    return [(naming.text_of(m, register), True, truth), *(_asked(m, bound[0], truth) if len(bound) == 1 else [])]


def _is_the_same(m: Machine, subject: str, one: int, other: int) -> bool:
    """Whether a name or field is what it was when grad mode was set: nothing binds it in between, nor on a turn of a
    loop that has begun since."""
    events = [m.unit.definitions[register] for register in (one, other)]
    first, last = (event.site if event is not None else -1 for event in events)
    begun = set(uses.loops_around(m, last)) - set(uses.loops_around(m, first))
    binds = [bind.site for bind in m.index.binds.get(subject.partition(".")[0], ())]
    return not any(first < site < last or begun & set(uses.loops_around(m, site)) for site in binds)


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
