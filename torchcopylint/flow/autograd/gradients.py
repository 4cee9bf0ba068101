"""`.grad` over time: `backward()` adds to it in place, `zero_grad()` drops it, or fills it with zeros if told to.

Only gradients that the unit has looked at are followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import LOCAL, TENSORS, Fact, How, Kind, Mark, Object, Slot, Sure, Value
from torchcopylint.flow.storages import slots, writing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values.sites import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine


def accumulated(m: Machine, numbers: frozenset[int], site: int) -> None:
    """`backward()` runs over a graph: what it reaches gets more of a gradient, in place where there was one."""
    if not m.backward.gradients:
        return
    reached: set[int] = set()
    for number in numbers:
        reached.update(m.needed.by_modules[number].refs if number in m.needed.by_modules else ())
        if number in m.needed.objects:
            reached.add(m.needed.objects[number])
    reached.update(_inputs(m, site))
    storages = {share.storage for ref in reached for share in m.state.object(ref).shares}
    if not reached:
        # A loss of unknown making, or of which nothing was saved: where one thing is trained, it is a loss of that.
        looked_at = [m.state.object(ref) for ref in m.backward.gradients]
        of_one = set.intersection(*({share.storage | 1 for share in obj.shares} for obj in (*looked_at, *_trained(m))))
        storages = {share.storage for obj in looked_at for share in obj.shares} if of_one else set()
    _overwrite(m, storages, site, "backward()", reads_old=True)


def _inputs(m: Machine, site: int) -> Iterator[int]:
    """What the networks were given that the loss of a call of `backward` was computed by, if a gradient of it is asked
    for: `model(image).sum().backward()`."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    for event in uses.expression(m, call.base, "") if isinstance(call, t.Invoke) and call.base >= 0 else ():
        if isinstance(event, t.Call | t.Invoke) and uses.calls_network(m, event):
            for given in event.arguments:
                yield from (ref for ref in m.value(given.register).refs if _asks(m, ref))


def _asks(m: Machine, ref: int) -> bool:
    obj = m.state.object(ref)
    return ref in m.backward.gradients and obj.leaf is not Fact.NO and obj.requires_grad is Fact.YES


def _trained(m: Machine) -> list[Object]:
    """All networks, parts of networks and leaves that are known to be trained."""
    found: list[Object] = []
    for _, obj in m.state.objects():
        network = obj.kind is Kind.MODULE and obj.requires_grad is not Fact.NO and slots.has_state(obj)
        if network or (obj.kind in TENSORS and obj.leaf > 0 and obj.requires_grad > 0):
            found.append(obj)
    return found


def zeroed(m: Machine, owner: Value, arguments: Arguments, site: int, text: str) -> None:
    """`zero_grad()` of a module or optimizer; since torch 2.0 it drops the gradients unless told otherwise."""
    if not m.backward.gradients:
        return
    kept = arguments.positional[0] if arguments.positional else arguments.keywords.get("set_to_none")
    storages = {share.storage for ref in owner.refs for share in m.state.object(ref).shares}
    if kept is not None and kept.const is False:
        _overwrite(m, storages, site, f"{text}.zero_grad(set_to_none=False)", reads_old=False)
        return
    known = all(_is_told(m.state.object(ref)) for ref in owner.refs)
    for ref in sorted(m.backward.gradients):
        # Whosever gradients they are: what may be gone is not written by the next `backward()`.
        if not (known and _is_apart(m, ref, storages)):
            m.state.put((ref, ".grad"), None)


def _is_told(obj: Object) -> bool:
    """Whether it is known which gradients `zero_grad()` of something drops: those of a network, or of an optimizer that
    was given its parameters here."""
    given = any(share.how is How.PARAMETERS for share in obj.shares)
    return obj.kind is Kind.MODULE or (obj.kind is Kind.OPTIMIZER and given and obj.sure >= Sure.LIKELY)


def _is_apart(m: Machine, ref: int, storages: set[int]) -> bool:
    """Whether a tensor is none that a network or an optimizer has, but its input: one that the unit itself has made, or
    was handed and lets require a gradient."""
    obj = m.state.object(ref)
    if obj.kind is not Kind.TENSOR or any(s.how is not How.OWN or s.storage in storages for s in obj.shares):
        return False
    made = obj.sure is Sure.PROVEN and obj.owner in ("", LOCAL) and obj.site >= 0
    return made or _is_switched_on(m, ref)


def _is_switched_on(m: Machine, ref: int) -> bool:
    """Whether a unit lets something require a gradient: `image.requires_grad_()`, `image.requires_grad = True`."""
    called = (event.base for event in m.index.of(t.Invoke) if event.name == "requires_grad_")
    stored = (event.base for event in m.index.stores.get("requires_grad", ()))
    return any(ref in m.value(base).refs for base in (*called, *stored))


def dropped_in_loop(m: Machine) -> None:
    """`p.grad = None`, where a loop goes over what has gradients, by whatever name one has looked at them before.

    Who looks again has a gradient that is made anew; that the loop takes no turn at all is not meant.
    """
    m.backward.gradients.clear()


def zeroed_in_loop(m: Machine, gradient: Value, site: int) -> bool:
    """`p.grad.zero_()`, where `p` is an element of what holds parameters: the loop zeroes the gradients of all of them.

    Who goes over the same parameters elsewhere has the same gradients under another name. Returns whether there is one
    who has.
    """
    key = gradient.root
    if not isinstance(key, tuple) or key[1] != ".grad" or not uses.loops_around(m, site):
        return False
    shares = {share.storage for share in m.state.object(key[0]).shares if share.how is How.PARAMETERS}
    others = [ref for ref in m.backward.gradients if ref | 1 != key[0] | 1]
    if not any(share.storage in shares for ref in others for share in m.state.object(ref).shares):
        return False
    _overwrite(m, shares, site, "zero_", reads_old=False)
    return True


def _overwrite(m: Machine, storages: set[int], site: int, cause: str, *, reads_old: bool) -> None:
    """The gradients of what sits on some storages are written in place."""
    held: list[int] = []
    places: list[Slot] = []
    for ref in sorted(m.backward.gradients):
        cell = m.state.cell((ref, ".grad"))
        if cell is not None and len(cell.refs) == 1 and any(s.storage in storages for s in m.state.object(ref).shares):
            held += cell.refs
            places.append((ref, ".grad"))
    if not held:
        return
    grads = Value(tuple(sorted(set(held))), Kind.TENSOR)
    writing.write(m, grads, site, op=cause, form="gradient", name=cause, reads_old=reads_old, cause=cause)
    for place in places:
        # `.grad` is the gradient as it is now, and so is what takes it from there; who took it earlier has an old one.
        cell = m.state.cell(place)
        if cell is not None and Mark(site, False) in cell.marks:
            m.state.put_cell(place, cell._replace(marks=cell.marks - {Mark(site, False)} | {Mark(site, True)}))
    # Every one of them is written, not one of several.
    m.hits.certain_storages[site] = frozenset(s.storage for ref in grads.refs for s in m.state.object(ref).shares)
