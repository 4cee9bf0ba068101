"""One object that stands in a container several times, or is put into it turn after turn."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Repeated
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    BUFFERS,
    LOCAL,
    UNKNOWN,
    Cell,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import hollow
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import alternatives, uses
from torchcopylint.flow.values import imports, kinds, memory, naming
from torchcopylint.flow.values.kinds import MODULE_BASES
from torchcopylint.knowledge import table


def note_repeated(m: Machine, held: Value, site: int, form: str, container: str, register: int = -1) -> None:
    """One object stands in a container, that of a register, several times."""
    kinds = {m.state.object(ref).kind for ref in held.refs}
    if len(held.refs) != 1 and kinds != {Kind.MODULE}:
        return
    obj = m.state.object(held.refs[0])
    if obj.kind in (Kind.MODULE, *BUFFERS):
        stateful = all(_stateful(m, ref, m.state.object(ref)) for ref in held.refs)
        stateful = stateful and (obj.kind is not Kind.PARAMETER or _is_registered(m, register))
        storages = frozenset(share.storage | 1 for share in obj.shares)
        chosen = register >= 0 and (alternatives.are_chosen(m, register, site) or _is_exchanged(m, register))
        chosen = chosen or _takes_its_place(m, held, site)
        m.fact(Repeated(site, obj.text, obj.site, obj.kind, stateful, form, container, obj.sure, storages, chosen))


def _is_registered(m: Machine, register: int) -> bool:
    """Whether a list of parameters is made to be part of a network: `nn.ParameterList([weight] * 3)`."""
    user = m.consumer_of(register) if register >= 0 else None
    return isinstance(user, t.Call | t.Invoke) and m.dotted_of(user) == "torch.nn.ParameterList"


def note_twice(m: Machine, values: Iterable[Value], site: int, register: int) -> None:
    """What is put into something as it is made, under several names or in several places: is one tensor or array among
    it more than once? A register holds what is made."""
    seen: set[int] = set()
    for value in values:
        if len(value.refs) == 1 and value.refs[0] in seen and m.state.object(value.refs[0]).kind in BUFFERS:
            place = naming.field_set(m, register) or naming.text_of(m, register)
            note_repeated(m, value, site, "display", place, register)
            return
        seen.update(value.refs)


def _takes_its_place(m: Machine, held: Value, site: int) -> bool:
    """Whether the field that a module stands in is set to what it is put into, many times: whoever has made it under
    that name means it to be what all of them are. `self.head = nn.ModuleList([self.head for _ in range(n)])`"""
    if not isinstance(held.root, tuple) or not held.root[1].startswith("."):
        return False
    stores = m.index.stores.get(held.root[1][1:], ())
    later = [store for store in stores if store.site > site and _is_own(m, store.base)]
    return bool(later) and _is_made_around(m, min(later, key=lambda store: store.site).value, site)


def _is_own(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and m.unit.owner >= 0 and made.name == m.unit.first


def _is_made_around(m: Machine, register: int, site: int) -> bool:
    """Whether what a call returns is made of a container that is filled at a site."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Call | t.Invoke) or made.site <= site:
        return False
    given = (m.unit.definitions[argument.register] for argument in made.arguments if argument.register >= 0)
    return any(isinstance(one, t.Make | t.Operate) and one.site <= site + 1 for one in given)


def _is_exchanged(m: Machine, register: int) -> bool:
    """Whether a loop sets the entries of a list anew, one by one, so that they are one thing only to begin with."""
    bind = m.consumer_of(register)
    if not isinstance(bind, t.Bind):
        return False
    stores = [store for store in m.index.of(t.StoreItem) if naming.text_of(m, store.base) == bind.name]
    return any(m.index.loops.get(store.site) for store in stores)


def note_put_again(m: Machine, before: Cell | None, held: Value, site: int, container: str) -> None:
    """A loop puts one object that was made outside of it into a container, turn after turn.

    Or wraps it anew in each turn, beside nothing else that has any state: `Sequential(norm, ReLU())`.
    """
    if not m.in_loop or before is None or len(held.refs) != 1:
        return
    if is_of_each_turn(m, held.root, site) or is_an_element(m, held, site):
        return
    obj = m.state.object(held.refs[0])
    named = isinstance(held.root, str) or (held.root is None and obj.kind in BUFFERS)
    trained = obj.kind is Kind.MODULE and held.refs[0] in before.refs and _is_trained(m, held.refs[0])
    if (named or trained) and held.refs[0] in before.refs and obj.kind in (Kind.MODULE, *BUFFERS):
        # A layer of a class that nobody knows may be an activation, which has nothing to share. Not if it is trained.
        told = obj.kind is not Kind.MODULE or obj.type not in ("", *MODULE_BASES) or trained
        layer = obj.kind is not Kind.MODULE or told or _is_called_a_layer(str(held.root))
        handed = layer and (obj.owner == ARGUMENT or (trained and _is_lasting_field(m, held.root)))
        if trained and obj.sure < Sure.LIKELY:
            # What an optimizer moves by its parameters is a module.
            m.state.set_object(held.refs[0], obj._replace(sure=Sure.LIKELY))
        if (told and _is_made_outside(m, obj, site)) or (handed and not uses.on_some_paths(m, site)):
            note_repeated(m, held, site, "comprehension", container)
    elif obj.kind is Kind.MODULE and obj.type in _IN_A_ROW and held.root is None:
        slots = (slot for slot in m.state.slot_names(held.refs[0]) if slot[1].startswith("["))
        children = dict.fromkeys(ref for slot in slots for ref in m.state.refs_of(slot))
        stateful = [ref for ref in children if _stateful(m, ref, m.state.object(ref))]
        if len(stateful) == 1 and _is_made_outside(m, m.state.object(stateful[0]), site):
            note_repeated(m, Value((stateful[0],), Kind.MODULE), site, "comprehension", container)


def is_layer(m: Machine, held: Value, register: int) -> bool:
    """Whether something stands in a list that is handed to what holds layers alone, `nn.ModuleList([block] * n)`, and
    is not called like one that has nothing to share."""
    user = m.index.given.get(register)
    stateless = any(_STATELESS.search(m.state.object(ref).text) for ref in held.refs)
    return user is not None and not stateless and _names_layers(m, user)


def _is_called_a_layer(name: str) -> bool:
    return kinds.named_layer(name) or kinds.named_model(name) or bool(_BLOCK.search(name))


def _is_lasting_field(m: Machine, root: object) -> bool:
    """Whether a place is a field of `self` that holds what it has held since before the unit began."""
    if not isinstance(root, tuple) or m.state.object(root[0]).owner != "self":
        return False
    cell = m.state.cell(root)
    return cell is not None and cell.site < 0


def is_of_each_turn(m: Machine, root: object, site: int) -> bool:
    """Whether a name is bound, by the loop that the event at a site stands in, to what that comes upon at each turn."""
    bound = m.index.binds.get(root, ()) if isinstance(root, str) else ()
    around = uses.loops_around(m, site)
    return any(uses.from_iteration(m, one.value) and uses.loops_around(m, one.site) == around for one in bound)


def is_an_element(m: Machine, held: Value, site: int) -> bool:
    """Whether a value is what the loop that the event at a site stands in has come upon, as some function has given it
    back: `f(x) for x in xs`."""
    around = uses.loops_around(m, site)
    elements = [m.value(one.out) for one in m.index.of(t.Iterate) if uses.loops_around(m, one.site) == around]
    return any({ref | 1 for ref in held.refs} <= {ref | 1 for ref in element.refs} for element in elements)


def note_extended_again(m: Machine, ref: int, source: int, site: int) -> None:
    """A loop puts all that a list holds, which was made outside of it, into a container, turn after turn."""
    before = m.state.cell((ref, ANY_ELEMENT)) if m.in_loop else None
    for slot in m.state.slot_names(source) if before is not None else ():
        held = m.state.refs_of(slot)
        obj = m.state.object(held[0]) if len(held) == 1 and slot[1].startswith("[") else Object()
        known = obj.kind is Kind.MODULE and obj.type not in ("", *MODULE_BASES)
        if known and before is not None and held[0] in before.refs and _is_made_outside(m, obj, site):
            note_repeated(m, Value(held, Kind.MODULE), site, "comprehension", m.state.object(ref).text)


def _is_trained(m: Machine, ref: int) -> bool:
    """Whether an optimizer has moved the parameters of a module by now."""
    writes = [
        m.writes.get(mark.write) for _, cell in m.state.holders_of(ref) for mark in cell.marks if ref in cell.refs
    ]
    return any(write is not None and write.form == "step" for write in writes)


_BLOCK = re.compile(r"(?:^|_)(?:block|expert|head|cell|branch|attention|attn|ffn?)$", re.I)
_STATELESS = re.compile(
    r"(?:^|_)(?:act|activation|activ|nonlin\w*|relu|gelu|silu|tanh|sigmoid|drop\w*|pool\w*|identity|flatten|softmax)$",
    re.I,
)
LAYERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential"})
_KEYED = frozenset({"torch.nn.ModuleDict"})
_DICTIONARIES = frozenset({"collections.OrderedDict", "OrderedDict", "dict", "builtins.dict"})


def note_within(m: Machine, event: t.Collect) -> None:
    """A comprehension collects layers that it makes around others, or pairs with the names that they get, and all those
    with any state are of outside: `ModuleList([ModuleList([attn, ff]) for _ in range(n)])`, `OrderedDict((f"b{i}",
    block) for i in range(n))`."""
    call = m.index.given.get(event.container)
    if call is None:
        return
    kind = m.dotted_of(call)
    made = m.unit.definitions[event.item] if event.item >= 0 else None
    pair = isinstance(made, t.Make) and made.kind == "tuple" and len(made.items) == 2 and not any(made.stars)
    if pair and isinstance(made, t.Make) and (kind in _KEYED or _is_given_to_layers(m, call, kind)):
        held = m.value(made.items[1])
        named = isinstance(held.root, str) and "#" not in held.root and m.state.refs_of(held.root) == held.refs
        if named and not is_of_each_turn(m, held.root, event.site) and not is_an_element(m, held, event.site):
            note_repeated(m, held, event.site, "comprehension", naming.text_of(m, event.container), event.container)
    elif kind in LAYERS and isinstance(made, t.Call | t.Invoke) and m.dotted_of(made) == "copy.copy":
        # Shallow copies have the parameters of what they are made of. What is put into a list of layers is one.
        held = m.value(made.arguments[0].register) if len(made.arguments) == 1 else UNKNOWN
        if isinstance(held.root, str) and not is_of_each_turn(m, held.root, event.site):
            memory.refine(m, held, Kind.MODULE, Sure.LIKELY)
            note_repeated(m, held, event.site, "shallow", naming.text_of(m, event.container), event.container)
    elif kind in LAYERS and isinstance(made, t.Call | t.Invoke):
        inner = _all_from_outside(m, m.value(event.item), event.site)
        if inner is not None:
            note_repeated(m, inner, event.site, "comprehension", naming.text_of(m, event.container), event.container)


def _is_given_to_layers(m: Machine, call: t.Call | t.Invoke, kind: str) -> bool:
    user = m.consumer_of(call.out) if kind in _DICTIONARIES else None
    return isinstance(user, t.Call | t.Invoke) and m.index.given.get(call.out) is user and _names_layers(m, user)


def _names_layers(m: Machine, user: t.Call | t.Invoke) -> bool:
    return imports.ahead(m, user) in LAYERS | _KEYED


def _all_from_outside(m: Machine, made: Value, site: int) -> Value | None:
    """The first of the modules with any state in one that was just made, if all are made outside of the loop."""
    obj = m.state.object(made.refs[0]) if len(made.refs) == 1 and made.root is None else None
    if obj is None or obj.kind is not Kind.MODULE:
        return None
    local = m.world.local_class(obj.type)
    if obj.type not in LAYERS and (local is None or not hollow.is_made_of_others(m.world, local)):
        # What has a part of its own may be meant to share the others.
        return None
    names = (slot for slot in m.state.slot_names(made.refs[0]) if slot[1][:1] in ".[")
    held = dict.fromkeys(ref for slot in names for ref in m.state.refs_of(slot) if ref != made.refs[0])
    if any(m.state.object(ref).kind is Kind.PARAMETER for ref in held):
        return None
    stateful = [r for r in held if m.state.object(r).kind is Kind.MODULE and _stateful(m, r, m.state.object(r))]
    outside = bool(stateful) and all(_is_made_outside(m, m.state.object(ref), site) for ref in stateful)
    return Value((stateful[0],), Kind.MODULE) if outside else None


_IN_A_ROW = frozenset({"torch.nn.Sequential"})


def _is_made_outside(m: Machine, obj: Object, site: int) -> bool:
    """Whether something was made before the loop that the event at a site stands in, in which it is always run."""
    if obj.owner not in ("", LOCAL) or obj.site < 0 or obj.sure is not Sure.PROVEN:
        return False
    outer, inner = uses.loops_around(m, obj.site), uses.loops_around(m, site)
    before = len(outer) < len(inner) and inner[: len(outer)] == outer
    return before and (not uses.on_some_paths(m, site) or (obj.kind in BUFFERS and _is_for_each_key(m, site)))


def _is_for_each_key(m: Machine, site: int) -> bool:
    """Whether a place is reached for each key that a container does not have yet, which will be several."""
    arms = [arm for branch in m.index.of(t.Branch) for arm in branch.arms if any(e.site == site for e in arm)]
    tests = [m.unit.definitions[event.register] for arm in arms for event in arm if isinstance(event, t.Assume)]
    return len(arms) == 1 and any(isinstance(test, t.Logic) and test.symbol in ("in", "not in") for test in tests)


def _stateful(m: Machine, ref: int, obj: Object) -> bool:
    """Whether a module has parameters or buffers, as far as its class tells; what is not known counts as stateful.

    What has been frozen has nothing that training could move.
    """
    row = table.module_class(obj.type) if obj.type else None
    if obj.requires_grad is Fact.NO:
        return False
    if row is None:
        local = m.world.local_class(obj.type)
        if local is None:
            return True
        return not hollow.has_no_parameters(m.world, local) or hollow.has_buffers(m.world, local)
    if not row.container:
        return row.stateful
    children = {r for slot in m.state.slot_names(ref) for r in slots.slot_value(m, slot).refs if r != ref}
    return any(_stateful(m, child, m.state.object(child)) for child in sorted(children)) or not children
