"""Elements that each turn of a loop has to itself: `losses[i]` in `for i in range(n):` is another one next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.loops import Loops


def comes_again(m: Machine, loops: Loops, loop: t.Loop | None, site: int, other: int) -> t.Loop | None:
    """The loop, of those around two sites, whose next turn may come to what backward at `site` has run over.

    `loop` is the innermost one; where it picks an element by what it goes through, the next turn comes to another one,
    until a loop outside of it comes round.
    """
    register = m.index.calls.get(site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 else None
    item = m.unit.definitions[call.base] if isinstance(call, t.Invoke) and call.base >= 0 else None
    index = item.subscript[0] if isinstance(item, t.Item) and len(item.subscript) == 1 else None
    key = m.unit.definitions[index] if isinstance(index, int) and index >= 0 else None
    if isinstance(item, t.Item) and _is_tensor(m, item.base):
        # Elements of one tensor hang on one graph.
        return loop
    return _outside(m, loops, loop, key.name, (site, other)) if isinstance(key, t.Load) else loop


def _is_tensor(m: Machine, register: int) -> bool:
    objects = [m.state.object(ref) for ref in m.value(register).refs]
    return len(objects) == 1 and objects[0].kind is Kind.TENSOR and objects[0].sure >= Sure.LIKELY


def adds_again(m: Machine, loops: Loops, loop: t.Loop | None, name: str, sites: tuple[int, ...]) -> t.Loop | None:
    """The loop, of those around some sites, whose next turn may add to the same sum, by its name: `losses[i]`."""
    key = name.rpartition("[")[2].removesuffix("]") if name.endswith("]") else ""
    return _outside(m, loops, loop, key, sites) if key.isidentifier() else loop


def _outside(m: Machine, loops: Loops, loop: t.Loop | None, key: str, sites: tuple[int, ...]) -> t.Loop | None:
    passed: set[int] = set()
    while loop is not None and _picks_by(m, loop, key):
        passed.add(loop.site)
        loop = loops.around(*sites, but=frozenset(passed))
    return loop


def _picks_by(m: Machine, loop: t.Loop, key: str) -> bool:
    """Whether a name is bound by a loop's head, and by nothing else in the loop."""
    head = loop.body[0] if loop.body else None
    if not isinstance(head, t.Iterate):
        return False
    # Names of a helper that was put in have a mark behind them, which texts do not show.
    binds = (event for event in t.events(loop.body) if isinstance(event, t.Bind))
    bound = [event for event in binds if key in (event.name, event.name.partition("#")[0])]
    return bool(bound) and all(_is_of_head(m, event.value, head) for event in bound)


def _is_of_head(m: Machine, register: int, head: t.Iterate) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return register == head.out or (isinstance(made, t.Unpack) and made.value == head.out)


def through_optimizers(m: Machine) -> frozenset[int]:
    """The sites of loops that go through optimizers, each of which steps: `for net, opt in zip(nets, optimizers)`.

    Such a loop is as long as there are networks, and each of its turns is one of another network.
    """
    found = set()
    for event in m.index.of(t.Invoke):
        load = m.unit.definitions[event.base] if event.name == "step" and event.base >= 0 else None
        around = uses.loops_around(m, event.site)
        if not around or not isinstance(load, t.Load) or not uses.is_of_each_turn(m, event.base):
            continue
        held = m.value(event.base).kind is Kind.OPTIMIZER or kinds.named_optimizer(load.name.partition("#")[0])
        bound = {uses.loops_around(m, bind.site) for bind in m.index.binds.get(load.name, ())}
        if held and around in bound:
            found.add(around[-1])
    return frozenset(found)
