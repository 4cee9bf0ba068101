"""Copies from a device to the host that are started and not waited for.

Such a copy marks what it fills, as a write does. Whatever waits for the device lands all of them; a read before that is
a fact.
"""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ReadInFlight
from torchcopylint.flow.model import MAX_MARKS, PINNED, TENSORS, Kind, Mark, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import kinds, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of

HOST_READS = frozenset({"operand", "look", "text", "test"})
"""What looks at the content here and now. What is handed on may be waited for elsewhere."""
_TO_DEVICE = frozenset({"to", "cuda", "copy_", "pin_memory"})
"""Operations that the device carries out in the order in which they are asked for."""
_WAITING = frozenset({"item", "tolist", "cpu", "to", "cuda"})
"""Methods that wait for all that the device was asked before, where they have to do with the device at all."""
WAITS = ("sync", "wait", "barrier", "join")
"""Parts of names: whatever is called so, waits for something."""


def waits(name: str) -> bool:
    """Whether something of that name waits for the device, for all its name says."""
    return any(part in name for part in WAITS)


def land(m: Machine) -> None:
    """All copies that are under way have arrived."""
    for site in m.holding.flights:
        m.state.put(f"@landed{site}", True)


def before(m: Machine, name: str, arguments: Arguments) -> None:
    """A method of a tensor is called that may wait: what is on the device lands the copies of others."""
    if name not in _WAITING or any(mark.write in m.holding.flights for mark in arguments.positional[0].marks):
        return
    if arguments.flag("non_blocking") is False:
        land(m)


def to_host(m: Machine, arguments: Arguments, result: Value, event: t.Call | t.Invoke, name: str) -> Value:
    """`x.to("cpu", non_blocking=True)`: the result, marked."""
    named = arguments.keywords.get("device", arguments.at(1)).const
    if arguments.flag("non_blocking") is not True or not _is_host(named) or _is_where_networks_are(m, event):
        return result
    kind = kind_of(arguments.positional[0], m.state)
    if kind not in TENSORS and (kind is not Kind.UNKNOWN or kinds.named_model(name)):
        # What a module is moved with looks the same, but nothing reads a module.
        return result
    _start(m, event.site, name)
    return result._replace(marks=result.marks | {Mark(event.site, True)}, root=None)


def into_host(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    """`pinned.copy_(x, non_blocking=True)`: every holder of the pinned memory is marked."""
    target = arguments.positional[0]
    if arguments.flag("non_blocking") is not True or not target.refs:
        return
    source = next((a.register for a in event.arguments if a.keyword in ("", "src")), -1)
    _start(m, event.site, naming.text_of(m, source) if source >= 0 else name)
    pinned = all(PINNED in m.state.object(ref).flags for ref in target.refs) or "pinned" in name.lower()
    if not pinned:
        m.state.put(f"@anywhere{event.site}", True)
    for ref in target.refs:
        for key in sorted(m.state.holders.get(ref, ()), key=repr):
            cell = m.state.cell(key)
            if cell is not None and ref in cell.refs and len(cell.marks) < MAX_MARKS:
                m.state.put_cell(key, cell._replace(marks=cell.marks | {Mark(event.site, key == target.root)}))


def is_read(m: Machine, value: Value, name: str, mark: Mark, site: int, consumer: str, target: str) -> bool:
    """What a copy fills is read: a fact, unless something has waited since. Returns whether nothing else is to be said:
    what may be on a device is written as anything else is.

    Whoever gets an array knows of no device."""
    looked_at = consumer in HOST_READS or (consumer == "return" and kind_of(value, m.state) is Kind.ARRAY)
    anywhere = m.state.get(f"@anywhere{mark.write}")
    if anywhere and kind_of(value, m.state) is not Kind.ARRAY:
        # Only what is on the host is asked for its array, which tells where the copy goes to.
        return False
    if looked_at and target not in _TO_DEVICE and not m.state.get(f"@landed{mark.write}"):
        m.fact(ReadInFlight(mark.write, m.holding.flights[mark.write], name, site))
        return True
    return not anywhere


def _is_where_networks_are(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether a name tells where something is sent that networks of the file are sent to as well: `device`, which is
    the host here. Nothing is on a device then."""
    name = _place_named(m, event)
    for one in (m, *m.world.machines.values()) if name else ():
        sent = [call for call in one.index.of(t.Invoke) if call.name == "to" and _place_named(one, call) == name]
        if any(kind_of(one.value(call.base), one.state) is Kind.MODULE for call in sent):
            return True
    return False


def _place_named(m: Machine, event: t.Call | t.Invoke) -> str:
    """The name by which a conversion is told the device, if it is one."""
    given = [argument.register for argument in event.arguments if argument.keyword in ("", "device")]
    loaded = m.unit.definitions[given[0]] if given and given[0] >= 0 else None
    return loaded.name.partition("#")[0] if isinstance(loaded, t.Load) else ""


def _start(m: Machine, site: int, name: str) -> None:
    m.holding.flights[site] = name
    m.state.put(f"@landed{site}", None)


def _is_host(device: object) -> bool:
    return isinstance(device, str) and device.partition(":")[0] == "cpu"
