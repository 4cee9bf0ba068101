"""A model that is put aside by a second name where it has done better, and put back by that when all turns are over.

`best = self.model` on some turns, `self.model = best` behind the loop: that it is put back says that it was to be the
model as it was then. As it is, the optimizer has trained it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import PutAside
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.storages import kept_while_trained
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

CONSUMER = "store"


def found(m: Machine) -> Iterator[PutAside]:
    """The names that a loop binds to a model it trains, and that the name of the model is bound to behind it."""
    stored: list[t.Bind | t.StoreAttribute] = [*m.index.of(t.Bind), *m.index.of(t.StoreAttribute)]
    for back in stored:
        made = m.unit.definitions[back.value] if back.value >= 0 else None
        name = made.name if isinstance(made, t.Load) else ""
        source = _text(m, back)
        for bind in m.index.binds.get(name, ()) if source and source != name else ():
            loops = m.index.loops.get(bind.site, ())
            if (
                not loops
                or bind.site > back.site
                or loops[-1] in m.index.loops.get(back.site, ())
                or _taken(m, bind) != source
            ):
                continue
            inside = [one for one in stored if loops[-1] in m.index.loops.get(one.site, ())]
            write = _trained(m, m.value(bind.value).refs, back.value, loops[-1])
            if write < 0 or any(_text(m, one) == source for one in inside):
                continue
            if kept_while_trained.on_some_turns(m, bind.site, m.writes[write].site, back.site):
                yield PutAside(back.site, name, source, bind.site, write, CONSUMER, Sure.LIKELY, Kind.MODULE)


def _text(m: Machine, event: t.Bind | t.StoreAttribute) -> str:
    """The name or field that is bound."""
    if isinstance(event, t.Bind):
        return event.name
    owner = naming.text_of(m, event.base)
    return f"{owner}.{event.name}" if owner and not event.augmented else ""


def _taken(m: Machine, bind: t.Bind) -> str:
    """The name or field that a name is bound from, as it is."""
    made = m.unit.definitions[bind.value] if bind.value >= 0 else None
    return naming.text_of(m, made.out) if isinstance(made, t.Load | t.Attribute) else ""


def _trained(m: Machine, models: tuple[int, ...], back: int, loop: int) -> int:
    """The step by which a loop trains models, if they may be what is put back, or -1."""
    objects = [m.state.object(ref) for ref in models]
    if not objects or any(obj.kind is not Kind.MODULE for obj in objects) or not set(models) <= set(m.value(back).refs):
        return -1
    for mark in sorted(m.value(back).marks):
        write = m.writes.get(mark.write)
        if write is not None and write.form == "step" and loop in m.index.loops.get(write.site, ()):
            return mark.write
    return -1
