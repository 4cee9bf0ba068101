"""Forward hooks: functions that a layer calls with what it returns, and what they leave of that.

`layer.register_forward_hook(keep)`: the last that a layer hands to `keep` is computed by it, so no leaf. Whether it
requires grad depends on who calls the network, and how: that is not said, and only who asks for its gradient shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import callbacks
from torchcopylint.flow.interprocedural import handing, partials
from torchcopylint.flow.model import HANDED, OUTPUT, Fact, Object
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

REGISTERING = "register_forward_hook"


def note(m: Machine, event: t.Invoke, arguments: Arguments) -> None:
    """A function may be registered as a forward hook: it is called with an output, and what it leaves of that is there
    for who has registered it. Argument 0 is the layer."""
    given = [one.register for one in event.arguments if one.keyword in ("", "hook")][:1]
    if event.name != REGISTERING or not given:
        return
    value = arguments.keywords.get("hook", arguments.at(1))
    function = callbacks.called(m, given[0], value).const
    if not isinstance(function, FunctionReference) or not m.world.is_own(function.unit):
        return
    unit = m.world.unit(function.unit)
    if any(made.name == "retain_grad" for made in m.world.index(unit).of(t.Invoke)):
        return
    method = unit.owner >= 0 and unit.kind == "function" and "staticmethod" not in m.world.decorators(unit.number)
    before = partials.given(m, value)
    place = method + len(before) + (3 if arguments.flag("with_kwargs") is True else 2)
    plain = [parameter.name for parameter in unit.parameters if parameter.kind == "plain"]
    if place >= len(plain):
        return
    made = Object(leaf=Fact.NO, text=plain[place], flags=frozenset({OUTPUT, HANDED}))
    output = memory.fresh(m, event.site, made, "output of a layer")
    bound = {**dict(zip(plain[method:], before, strict=False)), plain[place]: output}
    m.world.note_arguments(m, unit.number, bound)
    summary = m.world.summary(unit.number)
    if summary is not None:
        kept = tuple(one for one in summary.kept if one.kept == plain[place] and not method)
        handing.take(m, unit.number, kept, bound, event.site)
