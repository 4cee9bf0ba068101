"""Writes that make of a value what is wanted for the moment, from itself alone: `image -= image.min()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EditedAlone
from torchcopylint.flow.model import ARITHMETIC, FIELD, Kind
from torchcopylint.flow.tapes import handed_out, uses
from torchcopylint.flow.tapes.inlining import HELPERS_NAME
from torchcopylint.flow.values import idioms

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

SYMBOLS = frozenset({"+=", "-=", "*=", "/=", "//=", "**="})


def found(m: Machine) -> Iterator[EditedAlone]:
    """What a unit that has been run says of its writes; an initialiser, an average and the like write what they own."""
    candidates = {site for site, write in m.writes.items() if write.reads_old or (write.named and write.form == "item")}
    candidates = {site for site in candidates if m.writes[site].named or _is_handed_out(m, m.writes[site])}
    if not candidates or _writes_its_own(m):
        return
    edits = set(_alone(m, set(m.writes)))
    alone = edits & candidates
    # What the owner makes of itself brings nothing else in: `windows -= windows.mean(1, keepdim=True)`.
    owned = {site for site in edits - alone if m.writes[site].reads_old and m.writes[site].owner != FIELD}
    others = [write for site, write in m.writes.items() if site not in alone | owned]
    items = [m.writes[site] for site in alone if m.writes[site].form == "item"]
    in_helpers = _in_helpers(m) if others else frozenset()
    for site in sorted(alone):
        # Where something else comes in as well, in the same method, the field is brought up to date. That an optimizer
        # trains what a helper was given, to make something else of it, is not that, nor that it has done so before.
        write = m.writes[site]
        kept = [
            other for other in others if other.form != "step" or not (site in in_helpers or _is_over(m, other, site))
        ]
        beside = {storage for other in kept for storage in other.storages}
        beside |= {s for other in items if other.site != site for s in other.storages}
        if not beside & set(write.storages):
            goes_on = _goes_on(m, write) or _is_noise(m, write)
            yield EditedAlone(site, _parameter(m, write), goes_on, write.form == "item")


def _is_handed_out(m: Machine, write: Write) -> bool:
    return write.owner == FIELD and handed_out.is_all(m, write)


def _writes_its_own(m: Machine) -> bool:
    """Whether a unit is there to write what it keeps. Many a method is called like a conversion that is none of
    modules: `expand`, `mask`."""
    context = m.world.context(m)
    return bool(context) and (context != idioms.CONVERSION or idioms.converts(m.unit.name))


def _is_over(m: Machine, step: Write, site: int) -> bool:
    """Whether all training is done before a write: a script that looks at the weights in the end."""
    return step.site < site and not uses.loops_around(m, site)


def _goes_on(m: Machine, write: Write) -> bool:
    """Whether the name that is written is bound anew behind it, to what is computed from it: `x -= a; x = x / b`."""
    return any(
        bind.site > write.site
        and not isinstance(m.unit.definitions[bind.value], t.Augment)
        and uses.is_computed_from(m, bind.value, write.root)
        for bind in m.index.binds.get(write.root, ())
        if bind.value >= 0
    )


_NOISE = frozenset({"randn", "rand", "randn_like", "rand_like", "normal", "standard_normal"})


def _is_noise(m: Machine, write: Write) -> bool:
    """Whether what is added to some rows is random: `x = self.x[-k:]; x += 0.1 * torch.randn_like(x)`. What is kept is
    not brought up to date by that, as one row may be that walks at random: other numbers are wanted."""
    events: list[t.Augment | t.Invoke] = [*m.index.of(t.Augment), *m.index.of(t.Invoke)]
    written = next((event for event in events if event.site == write.site), None)
    taken = [m.unit.definitions[bind.value] for bind in m.index.binds.get(write.root, ()) if bind.value >= 0]
    rows = [one for one in taken if isinstance(one, t.Item) and isinstance(one.subscript[0], t.Slice)]
    if written is None or not rows:
        return False
    if isinstance(written, t.Augment):
        given = [written.value]
    else:
        given = [argument.register for argument in written.arguments]
    parts = [part for register in given for part in uses.expression(m, register, write.root)]
    return any(isinstance(part, t.Invoke) and part.name in _NOISE for part in parts)


def _in_helpers(m: Machine) -> frozenset[int]:
    """The augmented assignments to names of helpers that stand in the places of their calls: see `inlining`."""
    loads = [(event.site, m.unit.definitions[event.target]) for event in m.index.of(t.Augment)]
    return frozenset(site for site, loaded in loads if isinstance(loaded, t.Load) and HELPERS_NAME in loaded.name)


def _parameter(m: Machine, write: Write) -> str:
    """The parameter or buffer of a module that a write reaches."""
    of_module = any(m.state.object(storage).kind is Kind.MODULE for storage in write.storages)
    return write.chain[-1].result if of_module and write.chain else ""


def _alone(m: Machine, candidates: set[int]) -> Iterator[int]:
    events: list[t.Augment | t.Invoke | t.StoreItem]
    events = [*m.index.of(t.Augment), *m.index.of(t.Invoke), *m.index.of(t.StoreItem)]
    for event in events:
        if event.site not in candidates:
            continue
        if isinstance(event, t.Augment):
            operands, edits, register = [event.value], event.symbol in SYMBOLS, event.target
        elif isinstance(event, t.StoreItem):
            operands, edits, register = [event.value], _is_number(m, event.value), event.base
        else:
            operands, register = [argument.register for argument in event.arguments], event.base
            edits = event.name in ARITHMETIC
        # A helper's name is not spelled as it is on the tape, where it was put in.
        target = m.unit.definitions[register]
        root = target.name if isinstance(target, t.Load) else m.writes[event.site].root
        if edits and not any(from_elsewhere(m, register, root) for register in operands):
            yield event.site


def _is_number(m: Machine, register: int) -> bool:
    """Whether a value is a number that stands there: `0`, `-1.0`, `float("-inf")`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Call):
        function = m.unit.definitions[made.function]
        return isinstance(function, t.Load) and function.name == "float"
    return m.value(register).kind is Kind.NUMBER and not m.value(register).refs


def from_elsewhere(m: Machine, register: int, root: str) -> bool:
    """Whether a value hangs on an argument of the unit, or on what a loop visits, other than by way of `root`."""
    parts = uses.expression(m, register, root)
    me = m.unit.first if m.unit.owner >= 0 else ""
    handed = {parameter.name for parameter in m.unit.parameters} - {me, root}
    loads = {part.name for part in parts if isinstance(part, t.Load)}
    return bool(loads & handed) or any(isinstance(part, t.Iterate) for part in parts)
