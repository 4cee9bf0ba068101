"""What a loop leaves behind, if it takes a turn at all: who writes a loop means it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ExpandedWritten, LeafWritten, OptimizerStale, ViewRefused
from torchcopylint.flow.model import TENSORS, Cell, Fact, Object, Sure
from torchcopylint.flow.values.state import ALIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.model import Key
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.state import Delta, State

_REFUSALS = (ExpandedWritten, LeafWritten, ViewRefused)


def given_graphs(m: Machine, loop: int, ends: Sequence[Delta]) -> list[tuple[Key, Fact]]:
    """The tensors that every turn of a loop leaves with a graph, whatever it found: `out[i] = net(x)`, or as leaves
    that require gradients: `for noise in noises: noise.requires_grad = True`. Each with whether it is a leaf.

    The state is that at the head of the loop at the site `loop`, `ends` are what its turns make of it. Before the loop,
    where it was made, such a tensor had no graph, so that at the head nobody knows.
    """
    live = [end for end in ends if end.get(ALIVE, True) is True]
    found: list[tuple[Key, Fact]] = []
    for key, entry in live[0].items() if live else ():
        here = m.state.get(key)
        if here.__class__ is not Object or here.requires_grad is not Fact.UNKNOWN or here.kind not in TENSORS:
            continue
        if loop in m.index.loops.get(here.site, ()) or _is_let_go(m, key, live):
            continue
        others = [entry, *(end.get(key, here) for end in live[1:])]
        left = {(other.requires_grad > 0, other.leaf) if isinstance(other, Object) else None for other in others}
        found += [(key, leaf) for leaf in (Fact.NO, Fact.YES) if left == {(True, leaf)}]
    return found


def _is_let_go(m: Machine, key: Key, ends: Sequence[Delta]) -> bool:
    """Whether each turn binds all that holds an object anew: `x.requires_grad_(); ...; x = x.detach() - x.grad`. Behind
    the loop it stands for what there is if that has taken no turn."""
    cells = {name: m.state.cell(name) for name in m.state.holders.get(key, ())} if key.__class__ is int else {}
    held = [name for name, cell in cells.items() if cell is not None and key in cell.refs]
    bound = [end.get(name) for name in held for end in ends]
    return bool(bound) and all(isinstance(cell, Cell) and key not in cell.refs for cell in bound)


def take_on(state: State, keys: Sequence[tuple[Key, Fact]]) -> None:
    """The state is that behind the loop: some tensors have a graph there, or are leaves that require gradients."""
    for key, leaf in keys:
        obj = state.get(key)
        if isinstance(obj, Object) and obj.requires_grad is Fact.UNKNOWN:
            state.put(key, obj._replace(requires_grad=Fact.LIKELY if leaf is Fact.NO else Fact.YES, leaf=leaf))


def of_turns(m: Machine, cell: Cell) -> tuple[int, ...]:
    """What a field or an element holds behind a loop that has set it on each of its turns: of what it held before that,
    nothing, since who writes a loop means it to take a turn."""
    if len(cell.refs) < 2:
        return cell.refs
    loops = m.index.loops.get(cell.site, ())
    if not loops or cell.site in m.index.on_arms:
        return cell.refs
    made = {ref: m.state.object(ref).site for ref in cell.refs}
    of_loop = tuple(ref for ref, site in made.items() if site == cell.site)
    before = [site for site in made.values() if site != cell.site]
    outside = all(site < cell.site and loops[-1] not in m.index.loops.get(site, ()) for site in before)
    return of_loop if of_loop and outside else cell.refs


def refused(m: Machine, event: t.Loop) -> list[Relation]:
    """What torch surely refuses in the first turn of a loop, which has just been run: whatever the state is in later
    turns, none of them is reached. And which optimizers step on what was there before: whatever later turns build."""
    found = [fact for stated in m.facts.values() for fact in stated if isinstance(fact, (*_REFUSALS, OptimizerStale))]
    inside = {each.site for each in t.events(event.body)} if found else set[int]()
    sites = inside - m.index.on_arms
    return [
        fact
        for fact in found
        if fact.site in sites
        and (fact.built in inside if isinstance(fact, OptimizerStale) else fact.sure is Sure.PROVEN)
    ]


def state_again(m: Machine, refused: Sequence[Relation]) -> None:
    """What the first turn was refused, once the last turn has been run, unless that is still so there."""
    for fact in refused:
        if not any(isinstance(other, type(fact)) for other in m.facts.get(fact.site, ())):
            m.fact(fact)
