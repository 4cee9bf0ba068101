"""`detach_()`: what is done with its result, and who holds what it cuts."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DetachedInPlace
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import DETACHED, Fact, How, Object, Share, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import writing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.knowledge.table import Op


def in_place(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    """`x.detach_()`: the object is cut from its graph, and so is whoever else holds it."""
    value = arguments.positional[0]
    views = [_view(m.state.object(ref)) for ref in value.refs]
    if len(value.refs) == 1 or (views and all(views)):
        ref, view = value.refs[0], views[0]
        obj = m.state.object(ref)
        user = _user(m, event.out)[0]
        fact = DetachedInPlace(
            site=at.site,
            name=at.name,
            result="",
            consumer=_consumer(m, event.out, at.name),
            view=view.site if view is not None else -1,
            base=m.state.object(view.of).text if view is not None else "",
            held=value.root is not None and naming.key_text(m, value.root) == at.name,
            sure=obj.sure,
            spent=bool(runs.ran_at(obj.graph)),
            used=user.site if user is not None else -1,
            freed=bool(runs.freed_at(obj.graph)),
        )
        if obj.requires_grad is not Fact.NO:
            m.fact(fact._replace(result=_bound_name(m, event.out)))
        _cut(m, value, at.site)
    cut(m, value)
    return value


def _view(obj: Object) -> Share | None:
    """How something has become a view, if it surely is one."""
    return next((s for s in obj.shares if s.how in (How.VIEW, How.INDEX, How.ROW) and s.sure and not s.when), None)


def cut(m: Machine, value: Value) -> None:
    """What a value may be has no history from here on."""
    for ref in value.refs:
        obj = m.state.object(ref)
        flags = obj.flags | {DETACHED}
        m.state.set_object(ref, obj._replace(requires_grad=Fact.NO, leaf=Fact.YES, graph=frozenset(), flags=flags))


def of_arguments(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What of its arguments a unit that has been run has cut for its caller, whichever way it went. `paths` as
    `argument_paths` gives them."""
    objects = ((m.state.object(ref), place) for ref, place in paths.items())
    return tuple(place for obj, place in objects if DETACHED in obj.flags and obj.requires_grad is Fact.NO)


def _user(m: Machine, register: int) -> tuple[t.Event | None, int]:
    """What uses a register, or the conditional expression that it is an arm of, and the register that it uses."""
    event = m.consumer_of(register)
    if not isinstance(event, t.Bind) or not event.name.startswith("%"):
        return event, register
    loads = [use.register for use in uses.of_name(m, event.name) if use.loads]
    return (m.consumer_of(loads[0]), loads[0]) if len(loads) == 1 else (event, register)


def _consumer(m: Machine, register: int, name: str) -> str:
    """What is done with the result of `detach_()`."""
    event, register = _user(m, register)
    if isinstance(event, t.Bind):
        return "same" if event.name.partition("#")[0] == name else "bound"
    if isinstance(event, t.StoreAttribute | t.StoreItem):
        return "same" if naming.text_of(m, event.base) + _target(m, event) == name else "bound"
    if isinstance(event, t.Discard) or event is None:
        return "statement"
    if isinstance(event, t.Make) and isinstance(m.consumer_of(event.out), t.Discard):
        # Several statements in one: `h.detach_(), c.detach_()`.
        return "statement"
    while isinstance(event, t.Make) and event.kind == "dict":
        # What is logged under names goes the way of the dictionary. Tuples of states are made to be handed on cut.
        register, event = event.out, m.consumer_of(event.out)
        if isinstance(event, t.Bind | t.StoreAttribute | t.StoreItem):
            return "bound"
    if isinstance(event, t.Return):
        return "return"
    return "argument" if isinstance(event, t.Call | t.Invoke) and register not in t.operands(event)[:1] else "chain"


def _target(m: Machine, event: t.StoreAttribute | t.StoreItem) -> str:
    return f".{event.name}" if isinstance(event, t.StoreAttribute) else f"[{naming.index_text(m, event.subscript)}]"


def _bound_name(m: Machine, register: int) -> str:
    event = _user(m, register)[0]
    if isinstance(event, t.Bind):
        return event.name.partition("#")[0]
    if isinstance(event, t.StoreAttribute | t.StoreItem):
        return naming.text_of(m, event.base) + _target(m, event)
    return ""


def _cut(m: Machine, value: Value, site: int) -> None:
    """`detach_()` takes the history away from every holder of the object."""
    history = any(m.state.object(ref).graph or m.state.object(ref).requires_grad > 0 for ref in value.refs)
    m.shown.cuts[site] = history
    writing.note_root(m, site, value.root)
    for ref in value.refs:
        for key in sorted(m.state.holders.get(ref, ()), key=repr):
            cell = m.state.cell(key)
            if cell is not None and ref in cell.refs:
                writing.mark_cut(m, key, cell, site, own=key == value.root)
