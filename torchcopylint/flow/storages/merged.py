"""The states of several models are summed up in the state dict of one of them: `average = models[0].state_dict()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import StatesMerged
from torchcopylint.flow.model import LOCAL, Sure
from torchcopylint.flow.storages import mixing
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine


def note(m: Machine) -> None:
    """Once a unit has been run: where what one model has is written, by who wanted a sum of what several have.

    That nobody wanted the first one to be changed shows where the sum goes: into another model, or into the dictionary
    anew, divided, which the model does not see.
    """
    states = [event for event in m.index.of(t.Invoke) if event.name == "state_dict"]
    if len(states) < 2:
        return
    for site, target, sources in _additions(m):
        origins = [one for one in mixing.origins(m, target) if one.name == "state_dict"]
        if len(origins) != 1 or site not in m.writes or not _is_somebodys(m, origins[0]):
            continue
        first = origins[0]
        others = [one for source in sources for one in mixing.leaves(m, source) if one.name == "state_dict"]
        name = _name_of(m, first)
        model = naming.text_of(m, first.base)
        others = [one for one in others if one.site != first.site and naming.text_of(m, one.base) != model]
        if name and others and not _is_wanted(m, name, model) and _goes_elsewhere(m, name, model, site):
            m.fact(StatesMerged(first.site, name, model, site, Sure.LIKELY))


def _additions(m: Machine) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Where something is added in place to something: the place, what to, and what."""
    for augment in m.index.of(t.Augment):
        if augment.symbol == "+=":
            yield augment.site, augment.target, (augment.value,)
    for event in m.index.of(t.Invoke):
        if event.name == "add_":
            yield event.site, event.base, tuple(argument.register for argument in event.arguments)


def _is_somebodys(m: Machine, taken: t.Invoke) -> bool:
    """Whether a model was handed in, or is one of several that were: one that was made here is there to be filled."""
    value = m.value(taken.base)
    return bool(value.refs) and all(m.state.object(ref).owner not in ("", LOCAL) for ref in value.refs)


def _name_of(m: Machine, taken: t.Invoke) -> str:
    """The one name that a state dict has."""
    bound = [event.name for event in m.index.of(t.Bind) if event.value == taken.out]
    return bound[0] if len(bound) == 1 and len(m.index.binds.get(bound[0], ())) == 1 else ""


def _is_wanted(m: Machine, name: str, model: str) -> bool:
    """Whether the model is given its own state back: who does that wants it changed, in however odd a way."""
    return any(naming.text_of(m, load.base) == model for load in _loads(m, name))


def _goes_elsewhere(m: Machine, name: str, model: str, site: int) -> bool:
    stored = [event for event in m.index.of(t.StoreItem) if not event.augmented and event.site > site]
    anew = any(_is_name(m, event.base, name) for event in stored)
    return anew or any(naming.text_of(m, load.base) != model for load in _loads(m, name))


def _loads(m: Machine, name: str) -> Iterator[t.Invoke]:
    for event in m.index.of(t.Invoke):
        if event.name == "load_state_dict" and event.arguments and _is_name(m, event.arguments[0].register, name):
            yield event


def _is_name(m: Machine, register: int, name: str) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == name
