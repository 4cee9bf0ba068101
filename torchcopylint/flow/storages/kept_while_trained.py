"""A module, or a leaf, that is put aside by name while an optimizer trains it on: the best so far, which it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModuleShallow, PutAside
from torchcopylint.flow.model import TENSORS, Fact, How, Key, Kind, Object, Sure, Value
from torchcopylint.flow.storages import aliasing
from torchcopylint.flow.tapes import turns
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def note_use(m: Machine, value: Value, site: int, consumer: str) -> None:
    """A module, or a leaf, is used by a name that was put aside under some condition in a loop that trains it on.

    Or it is a shallow copy of a module that was trained on.
    """
    key = value.root
    if not value.marks or not value.refs:
        return
    if len(value.refs) == 1:
        _note_shallow(m, value, site, consumer)
    if not isinstance(key, str) or not aliasing.is_place(m, key):
        # The arm of a conditional expression is no name that anybody has put it aside under.
        return
    objects, cell = [m.state.object(ref) for ref in value.refs], m.state.cell(key)
    if not (all(obj.kind is Kind.MODULE for obj in objects) or all(_is_trained_leaf(obj) for obj in objects)):
        return
    if cell is None or cell.site < 0 or cell.refs != value.refs:
        return
    for mark in sorted(value.marks):
        write = m.writes.get(mark.write)
        if write is None or mark.own or mark.late or write.form != "step":
            continue
        others = [name for bound, name in aliasing.names_of(m, frozenset(value.refs)) if bound < cell.site]
        if not others and len(objects) == 1 and objects[0].kind is not Kind.MODULE:
            # The parameter of a module, which stands in no name or field of this unit.
            others = [objects[0].text] if "." in objects[0].text else []
        several = not others and len(objects) > 1 and objects[0].kind is Kind.MODULE
        if several and on_some_turns(m, cell.site, mark.write, site):
            # What it holds before a loop puts a model aside is another one: `best = copy.deepcopy(model)`.
            others = [name for ref in value.refs for name in _earlier_names(m, ref, cell.site, mark.write)]
        if others and is_put_aside(m, key, mark.write, site):
            name = naming.key_text(m, key)
            # What an optimizer moves by its parameters is a module.
            sure = max(Sure.LIKELY, min(obj.sure for obj in objects))
            m.fact(PutAside(site, name, others[0], cell.site, mark.write, consumer, sure, objects[0].kind))
            return


def _earlier_names(m: Machine, ref: int, bound: int, written: int) -> list[str]:
    """The names that hold a module alone, which a step of a loop has written, and were bound before the loop."""
    on = {share.of for share in m.state.object(ref).shares} | {ref}
    write = m.writes[written]
    if not on & set(write.storages):
        return []
    around = set(m.index.loops.get(write.site, ()))
    names = [pair for pair in aliasing.names_of(m, frozenset({ref})) if pair[0] < bound]
    return [name for site, name in names if around.isdisjoint(m.index.loops.get(site, ()))]


def is_put_aside(m: Machine, key: Key | None, written: int, used: int) -> bool:
    """Whether what a name is bound to is kept for later turns of the loop that writes it, until it is used. Sites.

    The name is bound there on a condition, or what it is bound to is carried to the next turn.
    """
    cell = m.state.cell(key) if isinstance(key, str) else None
    if not isinstance(key, str) or cell is None or cell.site < 0:
        return False
    again = turns.bound_on_the_way(m, key, used, written)
    if again >= 0 and not again < written < used:
        # Bound anew in this turn: what an earlier one has trained is what it is bound to.
        return False
    return on_some_turns(m, cell.site, written, used) or _carried(m, cell.site, used, written)


def _is_trained_leaf(obj: Object) -> bool:
    return obj.kind in TENSORS and obj.leaf is Fact.YES and obj.requires_grad > 0


def _note_shallow(m: Machine, value: Value, site: int, consumer: str) -> None:
    obj = m.state.object(value.refs[0])
    copied = next((share for share in obj.shares if share.how is How.COPY and share.sure), None)
    if obj.kind is not Kind.MODULE or copied is None:
        return
    for mark in sorted(value.marks):
        write = m.writes.get(mark.write)
        if write is not None and not mark.own and not mark.late and write.form != "assign":
            source = m.state.object(copied.of).text
            name = naming.key_text(m, value.root) or obj.text
            m.fact(ModuleShallow(site, name, source, copied.site, mark.write, consumer, obj.sure))
            return


def on_some_turns(m: Machine, bound: int, written: int, used: int) -> bool:
    """Whether a name is bound on a branch inside the loop that writes, so that it is kept for some turns.

    Where the arm that binds it writes and uses it as well, no turn finds what another one has bound. Where it goes on
    to leave the loop, there is no other turn.
    """
    for loop in t.events(m.unit.tape):
        if not isinstance(loop, t.Loop) or not aliasing.has_site(loop.body, written):
            continue
        branches = [branch for branch in t.events(loop.body) if isinstance(branch, t.Branch)]
        arms = [[arm for arm in branch.arms if aliasing.has_site(arm, bound)] for branch in branches]
        chosen = [found[0] for found in arms if len(found) == 1]
        apart = any(not (aliasing.has_site(arm, written) and aliasing.has_site(arm, used)) for arm in chosen)
        if apart and not any(_leaves_loop(arm, bound) for arm in chosen):
            return True
    return False


def _leaves_loop(arm: t.Tape, bound: int) -> bool:
    """Whether an arm that binds a name at the site `bound` ends by leaving the loop, or the unit."""
    return any(isinstance(event, t.Break | t.Return | t.Raise) and event.site > bound for event in arm)


def _carried(m: Machine, bound: int, used: int, written: int) -> bool:
    """Whether a loop that writes binds a name for its next turn, which uses that before it binds it again."""
    common = set(m.index.loops.get(bound, ())) & set(m.index.loops.get(written, ()))
    return used < bound and bool(common & set(m.index.loops.get(used, ())))
