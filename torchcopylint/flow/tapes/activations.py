"""Calls that write their input because they were told to: `inplace=True`, `nn.ReLU(True)`, `relu_`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.values import memory, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.knowledge.table import Op

_FUNCTIONAL = "torch.nn.functional."
FORM = "activation"
"""The form of such writes."""
_WITHOUT_KEYWORD = frozenset({"sigmoid_", "tanh_"})
"""Activations of which nothing accepts `inplace=`."""
PASSED_ON = "..."
"""What the result of a call is bound to when it is not bound, but used on."""


def is_twin(op: Op) -> bool:
    """Whether an operation is the in-place spelling of a function that accepts `inplace=`: `relu_`, `F.elu_`."""
    short = op.short
    if not short.endswith("_") or short.endswith("__"):
        return False
    twin = table.function(_FUNCTIONAL + short[:-1])
    return short in _WITHOUT_KEYWORD or (twin is not None and twin.inplace_keyword)


@cache
def _twins() -> dict[str, Op]:
    """The in-place functions by the plain name of what they do: `leakyrelu`, which also names the module class."""
    found = {}
    for name in table.names("functions"):
        if name.startswith(_FUNCTIONAL) and name.endswith("_"):
            op = table.function(name)
            if op is not None:
                found[name[len(_FUNCTIONAL) :].replace("_", "")] = op
    return found


def keeps_output(name: str) -> bool:
    """Whether a function or layer that works in place keeps its output for backward.

    Those without a function of their own (`silu`) keep a copy of their input, so nothing that can be written.
    """
    short = name.partition("(")[0].rpartition(".")[2]
    op = _twins().get(short.replace("_", "").lower())
    return op is not None and "output" in op.saves


def known_tensor(m: Machine, value: Value) -> None:
    """An activation takes tensors, so what it is given is one."""
    memory.evidence_tensor(m, value)


def note_result(m: Machine, site: int, told: int = -1) -> None:
    """Tell the write at `site`, which has just happened, what the call's result is bound to, and where it was told."""
    write = m.writes.get(site)
    if write is not None:
        event = m.use_of(site)
        used = _readers(m, site, write.root)
        m.writes[site] = write._replace(form=FORM, result=_result(m, event), used=used, told=told)


def note_bound(m: Machine, site: int) -> None:
    """Tell the write of a method that works in place what the method's result is bound to, if it gets a name."""
    write, event = m.writes.get(site), m.use_of(site)
    if write is not None and isinstance(event, t.Bind):
        m.writes[site] = write._replace(result=_result(m, event))


def _readers(m: Machine, site: int, name: str) -> frozenset[int]:
    """Where one expression goes on with what the call at a site returns: `head(relu(x).view(-1))`.

    Arithmetic that takes the input beside it (`x + relu(x)`) reads the input.
    """
    found: set[int] = set()
    register = m.index.calls.get(site, -1)
    while register >= 0 and (event := m.consumer_of(register)) is not None:
        if isinstance(event, t.Operate) and any(_is_load(m, other, name) for other in event.operands):
            break
        found.add(event.site)
        # Who reads a tuple, or what a method makes of the result, reads the result.
        if isinstance(event, t.Make) or (isinstance(event, t.Invoke | t.Item | t.Attribute) and event.base == register):
            register = event.out
        else:
            break
    return frozenset(found)


def _is_load(m: Machine, register: int, name: str) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == name


def _result(m: Machine, event: t.Event | None) -> str:
    if isinstance(event, t.Bind):
        return event.name.partition("#")[0]
    if isinstance(event, t.StoreAttribute):
        return f"{naming.text_of(m, event.base)}.{event.name}"
    if isinstance(event, t.Discard) or event is None:
        return ""
    return PASSED_ON
