"""Calls of what nobody knows: they look at their arguments, make something, and train by their name."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads, stepping
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import BLANK, BUFFERS, INFERENCE, TENSORS, Fact, Kind, Object, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import reading, slots, writing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of

BACKWARD_NAMES = frozenset({"backward", "manual_backward"})
SCALED_LOSS = "scale_loss"
"""`with amp.scale_loss(loss, optimizer) as scaled:` is for running backward over the loss."""


_UNWRAPPING = frozenset({"unwrap_model", "de_parallel"})
"""What accelerate, timm, transformers and ultralytics call the function that hands back the model in a wrapper: its
parameters are those of what it is given."""


def call_unknown(m: Machine, arguments: Arguments, site: int, name: str, receiver: Value | None = None) -> Value:
    """Nobody knows what is called: it looks at its arguments, and makes something.

    `receiver` is the object whose method it is, if what it trains by its name may be held there.
    """
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, site, "argument", name)
        slots.field_read(m, value.root, site, "argument", name)
    stepping.maybe_trains(m, arguments, site, name, receiver)
    stepping.maybe_step(m, arguments, site, name)
    maybe_backward(m, arguments, site, name)
    maybe_filled(m, arguments)
    write_out(m, arguments, site, name)
    if name.rpartition(".")[2] == SCALED_LOSS and arguments.positional:
        return arguments.positional[0]._replace(root=None)
    if (inner := unwrapped(m, arguments, name)) is not None:
        return inner
    computed = m.state.mode.inference > 0 and _computes(m, arguments, name)
    flags = frozenset({INFERENCE}) if computed else frozenset[str]()
    return memory.fresh(m, site, Object(text=f"{name}(...)", graph=graph_behind(m, arguments, name), flags=flags))


def write_out(m: Machine, arguments: Arguments, site: int, name: str) -> None:
    """`camera.read(out=frame)`: whoever has a parameter of that name fills what is passed for it."""
    out = arguments.keywords.get("out", Value())
    if out.refs and all(m.state.object(ref).kind in BUFFERS for ref in out.refs):
        writing.write(
            m, out, site, op=f"{name}(out=...)", form="out", name=naming.key_text(m, out.root), reads_old=False
        )


def unwrapped(m: Machine, arguments: Arguments, name: str) -> Value | None:
    """The model that a call takes a wrapper off."""
    wrapped = arguments.positional[0] if len(arguments.positional) == 1 else Value()
    known = wrapped.refs and kind_of(wrapped, m.state) is Kind.MODULE
    return wrapped._replace(root=None) if known and name.rpartition(".")[2] in _UNWRAPPING else None


def _computes(m: Machine, arguments: Arguments, name: str) -> bool:
    """Whether an unknown call computes what it returns, if that is a tensor, and does not hand out what was there.

    So does a criterion, and what a variable or field holds that is given a tensor: no function that was imported.
    """
    if kinds.named_criterion(name) and len(arguments.positional) > 1:
        return True
    if not arguments.positional or kind_of(arguments.positional[0], m.state) not in (*TENSORS, Kind.UNKNOWN):
        return False
    return _is_held(m, name)


def _is_held(m: Machine, name: str) -> bool:
    """Whether what is called is what a variable or a field holds, and no function that was imported."""
    receiver, _, field = name.partition(".")
    return name in m.unit.bound or (bool(field) and receiver == m.unit.first and field in m.fields.initial)


def graph_behind(m: Machine, arguments: Arguments, name: str) -> frozenset[int]:
    """The graph of what an unknown call makes, if it makes a tensor: what its arguments were computed from.

    Whether backward has run over it already is left out, as nobody knows whether the call cuts the graph; but what is
    called a loss or a criterion is there to be differentiated, and so is what a variable or field makes of what a
    recurrent network has returned beside its next state: `head(out)`.
    """
    if m.state.mode.recording is Fact.NO:
        return frozenset()
    without = _cut_by_all(m, name)
    positional = [value for position, value in enumerate(arguments.positional) if position not in without]
    keywords = [value for keyword, value in arguments.keywords.items() if keyword not in without]
    inputs = grads.tensors_in(m, [*positional, *keywords])
    keeps, held = kinds.named_criterion(name), _is_held(m, name)
    going = [keeps or (held and not m.needed.going_round.isdisjoint(obj.graph)) for obj in inputs]
    whole = [obj.graph if goes_on else runs.without(obj.graph) for obj, goes_on in zip(inputs, going, strict=True)]
    graph = frozenset[int]().union(*whole)
    return graph if len(graph) <= grads.MAX_GRAPH else frozenset(sorted(graph)[-grads.MAX_GRAPH :])


def _cut_by_all(m: Machine, name: str) -> frozenset[int | str]:
    """The arguments, by position and name, of which all methods of that name in the file take the values alone, where
    it is one of several classes of the file whose method is called, and nobody knows which."""
    receiver, _, method = name.rpartition(".")
    units = [info.methods[method] for info in m.world.program.classes if method in info.methods] if receiver else []
    summaries = [m.world.summary(number) for number in units] if len(units) > 1 else []
    found: frozenset[int | str] | None = None
    for number, summary in zip(units, summaries, strict=False):
        names = [parameter.name for parameter in m.world.unit(number).parameters][1:]
        cut = summary.cut if summary is not None else ()
        told = frozenset[int | str](key for pair in enumerate(names) if pair[1] in cut for key in pair)
        found = told if found is None else found & told
    return found or frozenset()


def maybe_filled(m: Machine, arguments: Arguments) -> None:
    """`reduce(out, parts)`: what was made to be filled may be filled by whoever it is handed to, with a graph."""
    if m.state.mode.recording is Fact.NO:
        return
    for value in (*arguments.positional, *arguments.keywords.values()):
        if value.refs and all(BLANK in m.state.object(ref).flags for ref in value.refs):
            grads.may_require_grad(m, value)


def is_handed_back(m: Machine, register: int) -> bool:
    """Whether something is done with what a call of `backward` returns: autograd's returns nothing.

    `x, log_det = flow.backward(u)` is the inverse of a layer, or its gradient written by hand. Who merely passes on
    what a wrapper returns, passes on `None`. Where layers hand their gradients to one another, nobody does anything
    with what the last one returns: `grad = criterion.backward(loss)`, `net.backward(grad)`.
    """
    used = m.consumer_of(register) if register >= 0 else None
    if isinstance(used, t.Bind | t.Unpack | t.Attribute | t.Item | t.Invoke | t.Operate):
        return True
    call = m.unit.definitions[register] if register >= 0 else None
    given = call.arguments[0].register if isinstance(call, t.Invoke) and call.arguments else t.NO_REGISTER
    loaded = m.unit.definitions[given] if given >= 0 else None
    bound = uses.bindings_before(m, loaded) if isinstance(loaded, t.Load) else [given]
    made = [m.unit.definitions[one] if one >= 0 else None for one in bound]
    return bool(made) and all(isinstance(one, t.Invoke) and one.name == "backward" for one in made)


def maybe_backward(m: Machine, arguments: Arguments, site: int, name: str) -> None:
    """`accelerator.backward(loss)`, `self.manual_backward(loss)`: somebody else runs backward over a loss."""
    if name.rpartition(".")[2] not in BACKWARD_NAMES or not arguments.positional:
        return
    if not is_handed_back(m, m.index.calls.get(site, t.NO_REGISTER)):
        loss = arguments.positional[0]
        grads.backward(m, loss, site, arguments, naming.key_text(m, loss.root) or "the loss")
