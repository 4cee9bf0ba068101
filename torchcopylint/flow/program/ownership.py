"""What optimizers own: which parameters they were given, whether these are leaves, whether modules still hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import NonleafKept, OptimizerStale
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    OUTPUT,
    TENSORS,
    Cell,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Region,
    Sure,
    Value,
)
from torchcopylint.flow.program import hollow, wholes
from torchcopylint.flow.tapes import exclusion, uses
from torchcopylint.flow.values import imports, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

REPARAMETRISING = frozenset(
    {
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.remove_weight_norm",
        "torch.nn.utils.parametrize.remove_parametrizations",
    }
)
"""These put new parameters in the place of one. What computes a parameter from itself, such as `spectral_norm`, keeps
it (executed under torch 2.13)."""


class Built(NamedTuple):
    """An optimizer, built at `site` over some parts."""

    site: int
    parts: wholes.Parts


def note_built(m: Machine, ref: int, given: Value, refs: Sequence[int], site: int, name: str) -> None:
    """An optimizer was built from `given`, whose parameters are `refs`."""
    parts = tuple(part for held in refs for part in wholes.parts_of(m.state.object(held)))
    m.owners.optimizers[ref | 1] = Built(site, parts)
    m.owners.groups_given[ref | 1] = given
    m.state.put(_stale_key(ref), None)
    storages = {storage for storage, _ in parts}
    for late in [number for number in m.owners.unowned if number in storages]:
        at = m.owners.unowned.pop(late)
        m.facts[at] = [fact for fact in m.facts.get(at, []) if not isinstance(fact, OptimizerStale)]
    for held in refs:
        _check_leaf(m, m.state.object(held), held, site, name)
    wholes.check_twice(m, given, site)


def note_added(m: Machine, ref: int, group: Value, refs: Sequence[int], site: int, name: str) -> None:
    """`add_param_group`, of a group whose parameters are `refs`: what the optimizer lacked may be what it is given now,
    and so may be what it has.

    Where a part of a module has been replaced since, nobody knows.
    """
    m.state.put(_stale_key(ref), None)
    for held in refs:
        _check_leaf(m, m.state.object(held), held, site, name)
    given = m.owners.groups_given.get(ref | 1)
    if given is None or ref & 1 or m.owners.replaced or site in m.index.on_arms or uses.loops_around(m, site):
        return
    together = m.number("groups of an optimizer", site)
    m.state.set_object(together, Object(Kind.LIST, Sure.PROVEN))
    groups = [value.refs for value in (*_groups_of(m, given, site), group) if len(value.refs) == 1]
    for number, refs in enumerate(groups):
        m.state.put_cell((together, f"[{number}]"), Cell(refs, Kind.DICT, None, site=site))
    m.owners.groups_given[ref | 1] = Value((together,), Kind.LIST)
    wholes.check_twice(m, m.owners.groups_given[ref | 1], site)


def _groups_of(m: Machine, given: Value, site: int) -> list[Value]:
    """What an optimizer was given, as dictionaries: of parameters alone, one of them all."""
    slots_of = m.state.slot_names(given.refs[0]) if len(given.refs) == 1 else []
    held = [m.state.refs_of(slot) for slot in slots_of if slot[1] != ANY_ELEMENT]
    if held and all(len(refs) == 1 and m.state.object(refs[0]).kind is Kind.DICT for refs in held):
        return [Value(refs, Kind.DICT) for refs in held]
    alone = m.number("first group of an optimizer", site)
    m.state.set_object(alone, Object(Kind.DICT, Sure.PROVEN))
    m.state.put_cell((alone, "['params']"), Cell(given.refs, given.kind, None, site=site))
    return [Value((alone,), Kind.DICT)]


# -- leaves


def _check_leaf(m: Machine, obj: Object, ref: int, site: int, name: str) -> None:
    if obj.kind not in TENSORS or obj.leaf is not Fact.NO or obj.requires_grad <= 0 or OUTPUT in obj.flags:
        return
    sure = obj.sure if obj.requires_grad is Fact.YES else min(obj.sure, Sure.LIKELY)
    when = next((share.when for share in obj.shares if share.when), "")
    text = obj.text if "..." not in obj.text else "a parameter"
    m.fact(NonleafKept(site, text, obj.site, "", when, f"{name}(...)", sure))
    if not when:
        # The optimizer refuses it. What follows is looked at as if it were put right.
        m.state.set_object(ref, obj._replace(leaf=Fact.YES, graph=frozenset()))


def note_field(m: Machine, event: t.StoreAttribute, value: Value, text: str) -> None:
    """A module's field is set: to what was computed from a parameter that nobody else has?

    Where the field is set once more, what it was set to before was a step on the way; on another arm, it is not.
    """
    before, earlier = m.owners.computed_fields.get(text, (-1, -1))
    if before in m.facts and _holds(m, event, earlier):
        del m.owners.computed_fields[text]
        m.facts[before] = [fact for fact in m.facts[before] if not isinstance(fact, NonleafKept)]
    if len(value.refs) != 1:
        return
    obj = m.state.object(value.refs[0])
    if obj.kind not in TENSORS or obj.leaf is not Fact.NO or obj.requires_grad <= 0:
        return
    computed = uses.expression(m, event.value, "")
    leaf = next((part for part in computed if isinstance(part, t.Call | t.Invoke) and _is_new_leaf(m, part.out)), None)
    made = m.unit.definitions[event.value]
    if leaf is None or made is None or leaf is made or _is_set_elsewhere(m, event) or _gives_parameters(m, event):
        return
    when = next((share.when for share in obj.shares if share.when), "")
    source = naming.text_of(m, leaf.out)
    m.owners.computed_fields[text] = (event.site, value.refs[0])
    m.fact(NonleafKept(event.site, text, made.site, source, when, "", min(obj.sure, Sure.PROVEN)))


def _holds(m: Machine, event: t.StoreAttribute, ref: int) -> bool:
    """Whether the field that is about to be set holds an object on the way that leads here."""
    return any(ref in m.state.refs_of((owner, f".{event.name}")) for owner in m.value(event.base).refs)


def _is_set_elsewhere(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether another method sets the field as well, or somebody from outside: then it is state, and no parameter."""
    for unit in m.world.program.units:
        if unit.number == m.unit.number:
            continue
        own = unit.first if unit.owner >= 0 else ""
        for other in m.world.index(unit).of(t.StoreAttribute):
            base = unit.definitions[other.base]
            through = base.name if isinstance(base, t.Load) else ""
            if other.name == event.name and (unit.owner == m.unit.owner or not own or through != own):
                return True
    return False


_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def _gives_parameters(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether the unit makes parameters of what the field holds: `self.vectors[name] = nn.Parameter(self.start[i])`."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    asked = [
        call for call in calls if call.site > event.site and imports.ahead(m, call) in _PARAMETER and call.arguments
    ]
    parts = (part for call in asked for part in uses.expression(m, call.arguments[0].register, ""))
    return any(isinstance(part, t.Attribute) and part.name == event.name for part in parts)


def _is_new_leaf(m: Machine, register: int) -> bool:
    value = m.value(register)
    around = m.consumer_of(register)
    if isinstance(around, t.Call | t.Invoke) and m.dotted_of(around) in _PARAMETER:
        # What a parameter is made of is that parameter from there on: `nn.Parameter(Variable(x, requires_grad=True))`.
        return False
    if len(value.refs) != 1:
        return False
    obj = m.state.object(value.refs[0])
    held = any(isinstance(key, tuple) for key in m.state.holders.get(value.refs[0], ()))
    return obj.kind in TENSORS and obj.leaf is Fact.YES and obj.requires_grad is Fact.YES and not held and not obj.owner


# -- parameters given twice


def note_replaced(m: Machine, base: int, part: Part, value: Value, text: str, site: int) -> None:
    """A part of a module is set to a value."""
    if len(value.refs) != 1:
        return
    new = m.state.object(value.refs[0])
    if _has_parameters(m, new):
        # What a loop makes anew at each turn has one number, and the optimizer of this turn knows that of the last one.
        made = {share.storage | 1: share.site for share in new.shares}
        late = {one for one, at in made.items() if 0 <= at <= site and (at == site or uses.runs_before(m, at, site))}
        known = [built for built in m.owners.optimizers.values() if not all(built.site < made[one] for one in late)]
        note_part(m, base, part, text, new.sure, site, frozenset(made), among=known if late == set(made) else None)


def is_inside_module(m: Machine, obj: Object) -> bool:
    """Whether an object that may be a module is what a field of a module holds: `model.backbone`."""
    wholes = [m.state.object(share.of) for share in obj.shares if share.how is How.FIELD and share.sure]
    return obj.kind in (Kind.UNKNOWN, Kind.MODULE) and any(whole.kind is Kind.MODULE for whole in wholes)


def note_part(
    m: Machine,
    base: int,
    part: Part,
    text: str,
    sure: Sure,
    site: int,
    own: frozenset[int],
    within: Region = (),
    *,
    among: Sequence[Built] | None = None,
) -> None:
    """A part of a module, or of what is found `within` it, is set to something with parameters, after an optimizer was
    built over that module: the optimizer does not know it. `own` are the storages of what is new, `among` the ones
    that may have been built over them, which is each optimizer if it is not said."""
    m.owners.replaced[site] = (base, part, text, sure)
    if any(
        own & {one for one, _ in built.parts} for built in (m.owners.optimizers.values() if among is None else among)
    ):
        return
    module = m.state.object(base)
    # What gets a module for one of its parts, and is itself a part of one, is a module.
    module = module._replace(sure=max(module.sure, Sure.LIKELY)) if is_inside_module(m, module) else module
    place = tuple((s.storage | 1, (*s.region, *within, part)) for s in module.shares if s.sure)
    for number, built in sorted(m.owners.optimizers.items()):
        if not wholes.meet(m, place, built.parts):
            continue
        m.owners.lateness[site] = (text, built.site, min(sure, module.sure))
        _make_stale(m, number, site)
        if m.unit.name == "__init__" and _held_in_field(m, number):
            name, made, known = m.owners.lateness[site]
            m.owners.unowned.update(dict.fromkeys(own, site))
            m.fact(OptimizerStale(site, name, site, made, "", known))


def note_reparametrised(m: Machine, arguments: Arguments, text: str, site: int) -> None:
    """A parameter of a module is computed from others from here on, which are new, or the other way round."""
    module = arguments.at(0)
    told = arguments.keywords.get("name", arguments.keywords.get("tensor_name", arguments.at(1))).const
    name = told if isinstance(told, str) else "weight"
    if len(module.refs) == 1 and m.state.object(module.refs[0]).kind is Kind.MODULE:
        sure = m.state.object(module.refs[0]).sure
        note_part(m, module.refs[0], Part("field", name), f"{text}.{name}", sure, site, frozenset())


def note_taken_over(m: Machine, module: int, text: str, site: int) -> bool:
    """A module gets other tensors for all of its parameters. Returns whether an optimizer in use does not know them."""
    whole = tuple((share.storage | 1, share.region) for share in m.state.object(module).shares if share.sure)
    found = False
    for number, built in sorted(m.owners.optimizers.items()):
        if wholes.meet(m, whole, built.parts):
            found = True
            m.owners.lateness[site] = (text, built.site, m.state.object(module).sure)
            m.owners.taken_over.add(site)
            _make_stale(m, number, site)
    return found


def note_rebound(m: Machine, before: Cell, value: Value, name: str, site: int) -> None:
    """A name that was bound to a leaf gets another one that requires grad: an optimizer goes on with the first one.

    So it does where a module is made anew under the name of the one that it was built over.
    """
    if len(before.refs) != 1 or len(value.refs) != 1 or before.refs == value.refs:
        return
    old, new = m.state.object(before.refs[0]), m.state.object(value.refs[0])
    anew = old.kind is Kind.MODULE and _is_made_anew(m, before.refs[0], value.refs[0], name, site)
    if not anew and not _is_leaf_to_train(old):
        return
    own = {storage for storage, _ in wholes.parts_of(new)}
    if any(own & {storage for storage, _ in built.parts} for built in m.owners.optimizers.values()):
        return
    late = tuple(
        n
        for n, built in sorted(m.owners.optimizers.items())
        if wholes.meet(m, wholes.parts_of(old), built.parts) and not _is_renewed_with(m, n, site)
    )
    if not anew and new.kind in TENSORS and new.requires_grad is Fact.NO:
        m.owners.left_leaves[value.refs[0] | 1] = (name, site, late, min(old.sure, new.sure))
    elif anew or _is_leaf_to_train(new):
        _make_late(m, late, name, site, min(old.sure, new.sure))


def _is_renewed_with(m: Machine, optimizer: int, site: int) -> bool:
    """Whether a loop that makes a module anew gives each name of the optimizer another one behind that, wherever it may
    come from, before it looks at it: `net = Net()`, and then `optimizer = make(net.parameters())`."""
    names = set().union(*(m.state.holders.get(ref, set()) for ref in (optimizer, optimizer ^ 1)))
    loops = uses.loops_around(m, site)
    found = []
    for name in names if loops else ():
        later = [use for use in uses.of_name(m, name) if use.site > site] if isinstance(name, str) else []
        first = later[0] if later else None
        found.append(
            first is not None and not first.loads and first.loops == loops and exclusion.goes_along(m, first.site, site)
        )
    return bool(found) and all(found)


def note_switched_on(m: Machine, ref: int) -> None:
    """A tensor is made to require grad: `w = w.detach().clamp(0, 1)`, and then `w.requires_grad_()`.

    If its name is that of a leaf which an optimizer has, the optimizer goes on with the first one.
    """
    left = m.owners.left_leaves.get(ref | 1)
    if left is not None:
        name, site, late, sure = left
        _make_late(m, late, name, site, sure)


def _make_late(m: Machine, optimizers: tuple[int, ...], name: str, site: int, sure: Sure) -> None:
    for number in optimizers:
        m.owners.lateness[site] = (name, m.owners.optimizers[number].site, sure)
        _make_stale(m, number, site)


def _is_made_anew(m: Machine, old: int, new: int, name: str, site: int) -> bool:
    """Whether a module is one of its own, with parameters, made of nothing that has to do with the one whose name it
    gets, unless it is a copy of that, and whether nobody else holds that one: who does may train it.

    Who makes a new one on a condition may make a new optimizer with it.
    """
    obj = m.state.object(new)
    if obj.kind is not Kind.MODULE or not _has_parameters(m, obj) or any(s.how is not How.OWN for s in obj.shares):
        return False
    if site in m.index.on_arms or set(m.state.holders.get(old, ())) - {name}:
        return False
    bound = next((event.value for event in m.index.binds.get(name, ()) if event.site == site), t.NO_REGISTER)
    made = m.unit.definitions[bound] if bound >= 0 else None
    if not isinstance(made, t.Call | t.Invoke):
        return False
    events = uses.expression(m, bound, name)
    copied = any(isinstance(one, t.Call | t.Invoke) and m.dotted_of(one) == "copy.deepcopy" for one in events)
    return copied or not any(isinstance(one, t.Load) and one.name == name for one in events)


def _is_leaf_to_train(obj: Object) -> bool:
    return obj.kind in TENSORS and obj.leaf is Fact.YES and obj.requires_grad is Fact.YES


def _make_stale(m: Machine, number: int, site: int) -> None:
    """An optimizer does not know what was set at a site."""
    key = _stale_key(number)
    before = m.state.get(key)
    m.state.put(key, (before if isinstance(before, frozenset) else frozenset()) | {site})


def _held_in_field(m: Machine, number: int) -> bool:
    return any(
        isinstance(key, tuple) and m.state.object(key[0]).owner == "self" and ref in m.state.refs_of(key)
        for ref in (number, number - 1)
        for key in m.state.holders.get(ref, ())
    )


def _has_parameters(m: Machine, obj: Object) -> bool:
    if obj.requires_grad is Fact.NO or obj.sure < Sure.LIKELY:
        return False
    if obj.kind is Kind.PARAMETER:
        return True
    if obj.kind is not Kind.MODULE:
        return False
    row = table.module_class(obj.type) if obj.type else None
    if row is None:
        local = m.world.local_class(obj.type)
        return local is not None and obj.sure is Sure.PROVEN and not hollow.has_no_parameters(m.world, local)
    return bool(row.parameters or row.nested or (row.container and not _holds_old_parts_alone(m, obj)))


def _holds_old_parts_alone(m: Machine, chain: Object) -> bool:
    """Whether a chain or a list of layers has been made of what some optimizer knows, and layers without parameters:
    `nn.Sequential(model.fc, nn.ReLU())`."""
    storages = [share.storage for share in chain.shares if share.how is How.OWN]
    slots = [slot for storage in storages for slot in m.state.slot_names(storage) if slot[1].startswith("[")]
    held = [m.state.object(ref) for slot in slots for ref in m.state.refs_of(slot)]
    known = [part for built in m.owners.optimizers.values() for part in built.parts]
    new = [
        one
        for one in held
        if not wholes.trains_nothing(m, one) and not wholes.meet(m, wholes.parts_of(one), tuple(known))
    ]
    return bool(held) and not new


def note_used(m: Machine, optimizer: Value, site: int, text: str) -> None:
    """An optimizer steps, or is handed out: does it hold what the module holds now?"""
    if not m.owners.lateness or len(optimizer.refs) != 1:
        return
    late = m.state.get(_stale_key(optimizer.refs[0]))
    for stored in sorted(late) if isinstance(late, frozenset) else ():
        name, made, sure = m.owners.lateness[stored]
        m.fact(OptimizerStale(site, name, stored, made, text, sure, stored in m.owners.taken_over))


def _stale_key(ref: int) -> str:
    return f"@stale{ref | 1}"
