"""Two holders that were put on one memory (`a.data = b.data`): what the whole file shows of it once it has been run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.summaries import argument_paths
from torchcopylint.flow.model import LOCAL, Kind
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.storages import handed_over, left_alone, renewed, sharing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports

if TYPE_CHECKING:
    from torchcopylint.flow.facts import DataShared
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine


def is_of_account(m: Machine, fact: DataShared) -> bool:
    """Whether two that share memory are both in use afterwards, and one of them may be written."""
    if sharing.stands_in(m, fact) or _is_given_away(m, fact) or sharing.is_only_compared(m, fact):
        return False
    if sharing.are_constants(m, fact) or handed_over.is_dropped(m, fact):
        return False
    # A script or a notebook that only compares two layers, say: neither ever changes.
    return not renewed.is_renewed(m, fact) and (m.unit.number != 0 or _writes(m.world))


def settled(m: Machine, fact: DataShared) -> DataShared:
    """A fact with what the end of the file shows: whether anything in it changes what the two share; and of the unit:
    whether the result goes to the caller, as in a conversion."""
    still = fact.form not in ("buffer", "table") and not _changes_values(m.world)
    fact = fact._replace(still=still or (fact.form != "buffer" and left_alone.are(m, fact)))
    put = m.holding.put_on.get(fact.site)
    if put is not None and handed_over.to_caller(m, put):
        return fact._replace(handed=True)
    if put is None or not put.storages & set(argument_paths(m)):
        return fact
    if handed_over.to_new_object(m, fact):
        return fact._replace(handed=True)
    mine = {share.storage | 1 for share in m.state.object(put.ref).shares}
    for value in m.results.returned:
        for ref in value.refs:
            made = m.state.object(ref)
            if made.kind is not Kind.MODULE or m.world.local_class(made.type) == m.unit.owner:
                continue
            if mine & {share.storage | 1 for share in made.shares} and made.owner in ("", LOCAL):
                return fact._replace(handed=True)
    return fact


def _is_given_away(m: Machine, fact: DataShared) -> bool:
    """Whether the storage that something is put on is part of what every caller in the file gives away for good.

    What a module's body does, that is a script or an example, others may do with what they keep.
    """
    put = m.holding.put_on.get(fact.site)
    called = m.world.call_modes.get(m.unit.number, ())
    if not called or any(caller == 0 for caller, _ in called):
        return False
    name = put.source.partition(".")[0].partition("[")[0] if put is not None else ""
    return name in m.world.given_away(m.unit.number) and all(use.loads for use in uses.of_name(m, name))


_ENDING = frozenset({*sharing.CONVERSIONS, "apply", "load_state_dict"})
"""Methods that put the tensors of a module on other memory, or write them."""


def _changes_values(world: World) -> bool:
    """Whether anything in a file trains, or writes a tensor other than to give it its first values."""
    return any(
        m.backward.trains
        or any(write.form != "assign" and not _is_initial(m, site) for site, write in m.writes.items())
        for m in world.machines.values()
    )


def _is_initial(m: Machine, site: int) -> bool:
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    return isinstance(call, t.Call | t.Invoke) and imports.ahead(m, call).startswith("torch.nn.init.")


def _writes(world: World) -> bool:
    """Whether anything in a file trains, writes or moves a tensor, or hands a module to somebody unknown, who may."""
    for m in world.machines.values():
        if m.backward.trains or any(write.form != "assign" for write in m.writes.values()):
            return True
        events: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        for event in events:
            if isinstance(event, t.Invoke) and event.name in _ENDING and m.value(event.base).refs:
                return True
            handed = [ref for argument in event.arguments for ref in m.value(argument.register).refs]
            if any(m.state.object(ref).kind is Kind.MODULE for ref in handed) and not _is_told(m, event):
                return True
    return False


def _is_told(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether it is known what a call calls: torch, Python, something of the file, or a method of a known kind."""
    called = m.value(event.function if isinstance(event, t.Call) else event.base)
    if isinstance(called.const, FunctionReference | ClassReference):
        return True
    if called.refs:
        return all(m.state.object(ref).kind is not Kind.UNKNOWN for ref in called.refs)
    return m.dotted_of(event).startswith(("torch.", "builtins."))
