"""Calls that are passed one tensor under two names, write it by the one, and look at it by the other behind that.

`labels = ids; ids, labels = mask(ids, labels)`, where `mask` blanks `labels` first: the function was made for two. Each
by itself is in order, the function and the sharing; so it is the call that tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EntryWritten
from torchcopylint.flow.model import TENSORS, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.summaries import Summary
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

_MEMORY = TENSORS | {Kind.ARRAY}
_FORMS = frozenset({"method", "augmented", "item", "operator"})
_TO_FILL = ("out", "result", "buf", "dst", "dest", "target_")
"""How a parameter's name begins that may well be one of the others: who passes one thing for both says so."""
_MEASURES = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel", "is_cuda", "get_device"})


def note(m: Machine, number: int, summary: Summary, bound: dict[str, Value], site: int, name: str) -> None:
    """A call of a function of the file, by its summary, with what it passes for each parameter."""
    callee = m.world.machines.get(number)
    if callee is None or len(bound) < 2:
        return
    written = {item.parameter for item in summary.writes if _is_plain_write(item.parameter, item.path, item.form)}
    for parameter in sorted(written & bound.keys()):
        mine = bound[parameter]
        for other in sorted(bound):
            value = bound[other]
            if other == parameter or len(mine.refs) != 1 or value.refs != mine.refs or value.root == mine.root:
                continue
            names = naming.key_text(m, mine.root), naming.key_text(m, value.root)
            put = max(_bound(m, mine), _bound(m, value))
            sure = _surely_memory(m, callee, mine.refs[0], (parameter, other))
            told = sure >= Sure.LIKELY and all(one.isidentifier() for one in names) and 0 <= put < site
            if told and _looks_after_writing(callee, parameter, other):
                m.fact(EntryWritten(site, names[0], f"{name}(...)", names[1], names[0], put, site, sure, "argument"))
                return


def _surely_memory(m: Machine, callee: Machine, ref: int, parameters: tuple[str, str]) -> Sure:
    """How surely what is passed is a tensor or an array, as far as the caller knows, or the function by either name."""
    obj = m.state.object(ref)
    storages = {callee.number("argument", one) for one in parameters}
    known = [one.sure for one in callee.writes.values() if one.kind in _MEMORY and {*one.storages} <= storages]
    return max([*known, obj.sure if obj.kind in _MEMORY else min(Sure)])


def _is_plain_write(parameter: str, path: tuple[str, ...], form: str) -> bool:
    return not path and form in _FORMS and not parameter.startswith(_TO_FILL)


def _bound(m: Machine, value: Value) -> int:
    cell = m.state.cell(value.root) if value.root is not None else None
    return cell.site if cell is not None else -1


def _looks_after_writing(callee: Machine, parameter: str, other: str) -> bool:
    """Whether a function surely writes a parameter by its own name, and looks at what another one holds behind that,
    before it has given that name to something else."""
    storage = callee.number("argument", parameter)
    hits = [one for one in callee.writes.values() if one.storages == (storage,) and one.root == parameter]
    hits = [one for one in hits if all(link.sure for link in one.chain)]
    if not hits:
        return False
    written = min(one.site for one in hits)
    found = uses.of_name(callee, other)
    if any(not use.loads and use.site < written for use in found):
        return False
    anew = min((use.site for use in found if not use.loads), default=None)
    return any(
        use.loads and use.site > written and (anew is None or use.site <= anew) and _is_content(callee, use.register)
        for use in found
    )


def _is_content(callee: Machine, register: int) -> bool:
    """Whether what a name holds is looked at, and not only measured."""
    event = callee.consumer_of(register)
    if isinstance(event, t.Attribute | t.Invoke):
        return not (event.base == register and event.name in _MEASURES)
    return event is not None and not isinstance(event, t.Test | t.Assume)
