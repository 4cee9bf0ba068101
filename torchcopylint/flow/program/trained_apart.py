"""Two names for one model, of which each is trained by itself: `adapted = model`, with an optimizer for each of them.

Who only writes less (`net = model`) goes on with one of the two, or builds one optimizer. An optimizer, or gradients
that are asked for (`grad(loss, net.parameters())`), for each of them say that two models are meant. So do the words
`local` and `global`: what is trained as `local_model` is not to be the `global_model` that the function was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModulePaired
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program.named_apart import may_be_model
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_ASKED = frozenset({"parameters", "named_parameters"})
_PASSED_ON = frozenset({"builtins.list", "builtins.tuple", "builtins.filter", "builtins.iter", "builtins.dict"})
_ITSELF = frozenset({"to", "cuda", "cpu", "float", "double", "train"})
"""Methods of a module that return it."""
_GRAD = "torch.autograd.grad"
_SHARED = frozenset({"global", "server"})
"""Words for what everybody starts from."""
_OWN = frozenset({"local", "client"})
"""Words for what one of many makes of it."""
MAX_STEPS = 6


def found(m: Machine) -> Iterator[ModulePaired]:
    """The names that a unit binds, on all paths, to what another one holds, where it trains each of them by itself."""
    if m.unit.kind not in ("function", "module"):
        return
    for name, binds in m.index.binds.items():
        source = source_of(m, binds[0]) if len(binds) == 1 and binds[0].site not in m.index.on_arms else None
        if source is None or source.name == name or not may_be_model(m, binds[0].value):
            continue
        bound = binds[0].site
        if any(bind.site > bound for bind in m.index.binds.get(source.name, ())):
            # The name goes on to hold another one.
            continue
        trained = [site for site in _trainings(m, name) if site > bound]
        if trained and (others := list(_trainings(m, source.name))):
            yield ModulePaired(max(trained[0], others[0]), name, source.name, bound, "trained", Sure.LIKELY)
        elif trained and _is_local(name, source.name) and (sure := _given_itself(m, source.name)):
            yield ModulePaired(trained[0], name, source.name, bound, "named", sure)


def _is_local(name: str, source: str) -> bool:
    """Whether two names say the same of what one of many has, and of what all have: `local_net`, of `global_net`."""
    words, others = ({*one.lower().strip("_").split("_")} for one in (name, source))
    return bool(words & _OWN) and bool(others & _SHARED) and words - _OWN == others - _SHARED


def _given_itself(m: Machine, name: str) -> Sure:
    """How sure it is that a unit is given no copy as one of its parameters: others may have made one."""
    calls = list(_passed(m)) if name in [parameter.name for parameter in m.unit.parameters] else []
    if any(_is_copy(caller, register) for caller, register in calls):
        return Sure.NOT
    return Sure.LIKELY if calls else Sure.HINT


def _passed(m: Machine) -> Iterator[tuple[Machine, int]]:
    """What calls of a unit's name pass, each with who calls, behind the names that it was bound to."""
    for unit in m.world.program.units:
        caller = m.world.machines.get(unit.number)
        calls: list[t.Call | t.Invoke] = [*m.world.index(unit).of(t.Call), *m.world.index(unit).of(t.Invoke)]
        for call in calls if caller is not None else ():
            called = call.name if isinstance(call, t.Invoke) else naming.text_of(caller or m, call.function)
            for argument in call.arguments if called.rpartition(".")[2] == m.unit.name else ():
                made = unit.definitions[argument.register] if argument.register >= 0 else None
                bound = uses.bindings_before(caller or m, made) if isinstance(made, t.Load) else [argument.register]
                yield from ((caller or m, register) for register in bound or [argument.register])


def _is_copy(m: Machine, register: int) -> bool:
    """Whether a register holds what `copy.deepcopy` has made, or a function that says that it copies."""
    made = m.unit.definitions[register] if register >= 0 else None
    while isinstance(made, t.Invoke) and made.name in _ITSELF and made.base >= 0:
        made = m.unit.definitions[made.base]
    if not isinstance(made, t.Call | t.Invoke):
        return False
    called = made.name if isinstance(made, t.Invoke) else naming.text_of(m, made.function).rpartition(".")[2]
    return any(word in called.lower() for word in ("copy", "clone"))


def source_of(m: Machine, bind: t.Bind) -> t.Load | None:
    """The name that a name is bound from, behind methods of a module that return it."""
    made = m.unit.definitions[bind.value] if bind.value >= 0 else None
    while isinstance(made, t.Invoke) and made.name in _ITSELF and made.base >= 0:
        made = m.unit.definitions[made.base]
    return made if isinstance(made, t.Load) and not made.name.startswith("%") else None


def _trainings(m: Machine, name: str) -> Iterator[int]:
    """Where a unit makes an optimizer for what a name holds, asks for its gradients, or calls what makes one."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in sorted(calls, key=lambda one: one.site):
        if not call.arguments or (isinstance(call, t.Invoke) and call.name in _ASKED):
            continue
        if any(m.state.object(ref).kind is Kind.OPTIMIZER for ref in m.value(call.out).refs):
            given = [call.arguments[0].register]
        elif m.dotted_of(call) == _GRAD:
            inputs = [one.register for one in call.arguments if one.keyword == "inputs"]
            given = inputs or [one.register for one in call.arguments[1:2] if not one.keyword]
        elif isinstance(call, t.Call) and _hands_to_training(m, call, name):
            yield call.site
            continue
        else:
            continue
        if any(asked_of(m, register) == name for register in given):
            yield call.site


def _hands_to_training(m: Machine, call: t.Call, name: str) -> bool:
    """Whether a call passes what a name holds to a function of the file that makes an optimizer for it."""
    function = m.value(call.function).const
    inner = m.world.machines.get(function.unit) if isinstance(function, FunctionReference) else None
    if inner is None or inner is m or inner.unit.owner >= 0:
        return False
    taken = [parameter.name for parameter in inner.unit.parameters]
    for place, argument in enumerate(call.arguments):
        made = m.unit.definitions[argument.register] if argument.register >= 0 else None
        if not isinstance(made, t.Load) or made.name != name or argument.stars:
            continue
        inside = argument.keyword or (taken[place] if place < len(taken) else "")
        if inside in taken and inside not in inner.index.binds and any(True for _ in _optimizers(inner, inside)):
            return True
    return False


def _optimizers(m: Machine, name: str) -> Iterator[int]:
    for call in m.index.of(t.Invoke) + m.index.of(t.Call):
        made = call.arguments and any(m.state.object(ref).kind is Kind.OPTIMIZER for ref in m.value(call.out).refs)
        if made and asked_of(m, call.arguments[0].register) == name:
            yield call.site


def asked_of(m: Machine, register: int) -> str:
    """The name that was asked for its parameters, where a register holds these, all of them or those that a
    comprehension picks."""
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Invoke() if event.name in _ASKED:
                return naming.text_of(m, event.base)
            case t.Call() if m.dotted_of(event) in _PASSED_ON and event.arguments:
                register = event.arguments[-1].register
            case t.Load():
                bound = uses.bindings_before(m, event)
                register = bound[0] if len(bound) == 1 else -1
            case t.Make():
                items = [one.item for one in m.index.of(t.Collect) if one.container == event.out]
                register = items[0] if len(items) == 1 else -1
            case t.Unpack():
                register = event.value
            case t.Iterate():
                register = event.iterable
            case _:
                return ""
    return ""
