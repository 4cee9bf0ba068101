"""What a method leaves behind in a field of `self` by reference, and where another method makes use of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldMet, Kept
from torchcopylint.flow.interprocedural import calling_order, on_record
from torchcopylint.flow.interprocedural.summaries import argument_paths
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    CONTAINERS,
    OPTIMIZER_STATE,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.storages import aliasing, keyed_by_source, left_memory, renewed
from torchcopylint.flow.storages.field_uses import field_of, from_earlier_call, item_from_earlier_call
from torchcopylint.flow.tapes import entries, uses
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

KEPT_HOWS = frozenset({How.STATE, How.DETACH, How.DATA, How.PARAMETERS, How.NUMPY})
VALUES = frozenset({How.DATA, How.DETACH})
MAX_DEPTH = 3
"""How deep a container of containers is looked into: `self.state[p]["old"]`, `self.saved.append((values, weights))`."""
_TENSORWISE = frozenset({"add", "sub", "mul", "div", "lerp", "copy", "dot", "eq", "equal", "allclose", "mse_loss"})
"""Operations on two tensors of one shape, as methods (also in place) or functions."""
_RESHAPING = frozenset({"flatten", "view", "reshape", "ravel"})


def kept(m: Machine) -> list[Kept]:
    """Fields of `self` that this method set, and that share memory with something that lives on outside of it."""
    if m.unit.owner < 0 or not m.unit.parameters:
        return []
    found: list[Kept] = []
    me = m.number("argument", m.unit.first)
    mine = m.state.slot_names(me)
    outside = set(argument_paths(m)) | {ref for slot in mine for ref in m.state.refs_of(slot)}
    for slot in mine:
        cell = m.state.cell(slot)
        if cell is None:
            continue
        if cell.site < 0:
            found += _put_into(m, slot[1][1:], cell.refs, outside)
            continue
        for ref, element in _with_elements(m, cell.refs, MAX_DEPTH):
            obj = m.state.object(ref)
            for share in obj.shares:
                how, when = entries.come_by(m, share)
                if element and how is How.STATE and share.storage not in outside:
                    found += _of_several(m, slot[1][1:], cell.site, share, obj)
                if element and how in VALUES and share.storage not in outside:
                    found += _of_held(m, slot[1][1:], cell.site, share, obj)
                if how is How.STATE and _is_given_other_memory(m, slot[1][1:], cell.site):
                    continue
                if how is How.DATA and left_memory.is_left_at(m, share.site):
                    continue
                if how in KEPT_HOWS and share.storage in outside and share.storage not in cell.refs:
                    found.append(
                        Kept(
                            field=slot[1][1:],
                            site=cell.site,
                            # A loop over parameters is no fault: that one of them is kept is.
                            shared=_put_at(m, cell.refs, ref, share.site)
                            if element and how is How.PARAMETERS
                            else share.site,
                            how=how,
                            source=m.state.object(share.storage).text,
                            shallow=element or "shallow" in obj.flags,
                            sure=_sure_kept(m, obj, share),
                            method=m.unit.name,
                            whole=not _taken_from(m, share) or _has_parameters(m, share.storage),
                            sources=_names_of(m, share.storage),
                            calls=uses.own_calls(m),
                            record=_is_record(m, slot[1][1:], cell.site, how, share),
                            when=when,
                            counted=how is How.STATE and on_record.counts_otherwise(m, slot[1][1:], cell.site),
                            lasting=how is How.STATE and _is_of_lasting_model(m, share),
                            optimizer=how is How.STATE and OPTIMIZER_STATE in obj.flags,
                        )
                    )
    behind = calling_order.behind(m) if found else frozenset[str]()
    keyed = keyed_by_source.fields(m) if found else frozenset[str]()
    found = [
        one._replace(sources=one.sources | {keyed_by_source.name_of(m, one.field)}) if one.field in keyed else one
        for one in found
    ]
    return [one._replace(renewed=behind) for one in dict.fromkeys(found)]


def _of_several(m: Machine, field: str, site: int, share: Share, obj: Object) -> Iterator[Kept]:
    """The state of each of several modules that another field holds: `{k: part.state_dict() for k, part in ...}`."""
    source, sure = _states_of(m, m.unit.definitions[m.index.calls[share.site]] if share.site in m.index.calls else None)
    if source and source != field and OPTIMIZER_STATE not in obj.flags:
        kept = _of_each(m, field, site, share, _each_of(m, source))
        yield kept._replace(how=How.STATE, shallow="shallow" in obj.flags, sure=sure)


def _of_held(m: Machine, field: str, site: int, share: Share, obj: Object) -> Iterator[Kept]:
    """The values of each of the parameters in a list that another field holds: `[p.detach() for p in self.params]`."""
    at = [event for event in m.index.events if event.site == share.site]
    taken = [event for event in at if isinstance(event, t.Invoke | t.Attribute)]
    here = {name for name, stores in m.index.stores.items() if any(uses.is_self(m, store.base) for store in stores)}
    source = field_of(m, taken[0].base, here) if len(taken) == 1 else ""
    if source and source != field and m.state.object(share.of).kind is Kind.PARAMETER:
        # What a name lets guess, the class knows if it deals in gradients.
        known = max(m.state.object(share.of).sure, Sure.LIKELY if _asks_for_gradients(m) else Sure.HINT)
        yield _of_each(m, field, site, share, f"{m.unit.first}.{source}")._replace(sure=min(obj.sure, known))


def _of_each(m: Machine, field: str, site: int, share: Share, source: str) -> Kept:
    """That a field keeps something of each of several that a source holds."""
    return Kept(
        field=field,
        site=site,
        shared=share.site,
        how=share.how,
        source=source,
        shallow=True,
        sure=Sure.NOT,
        method=m.unit.name,
        sources=frozenset({source}),
        calls=uses.own_calls(m),
    )


def _asks_for_gradients(m: Machine) -> bool:
    units = [unit for unit in m.world.program.units if unit.owner == m.unit.owner]
    return any(event.name == "grad" for unit in units for event in m.world.index(unit).of(t.Attribute))


def _states_of(m: Machine, taken: t.Event | None) -> tuple[str, Sure]:
    """The field of whose elements a call takes the states, and how sure it is that they are modules."""
    if not isinstance(taken, t.Invoke) or taken.name != "state_dict":
        return "", Sure.NOT
    source = field_of(m, taken.base)
    names = (naming.text_of(m, taken.base), source, source.removesuffix("s"))
    known = m.value(taken.base).kind is Kind.MODULE or any(kinds.from_name(one)[0] is Kind.MODULE for one in names)
    return source, Sure.LIKELY if known else Sure.HINT


def _each_of(m: Machine, field: str) -> str:
    return f"{m.unit.first}.{field}[...]"


def _is_given_other_memory(m: Machine, field: str, site: int) -> bool:
    """Whether the entries of a field of `self`, set at `site`, are put on other memory afterwards, in a loop over them:
    `self.kept[key].data = torch.zeros_like(...)`."""
    for store in m.index.of(t.StoreAttribute):
        item = m.unit.definitions[store.base]
        if store.name == "data" and store.site > site and isinstance(item, t.Item) and uses.loops_around(m, store.site):
            held = m.unit.definitions[item.base]
            if isinstance(held, t.Attribute) and held.name == field and uses.is_self(m, held.base):
                return True
    return False


def _is_record(m: Machine, field: str, site: int, how: How, share: Share) -> bool:
    """Whether a field is set where something is the best so far: to a state dict that nobody in the file reads but to
    save it later, or to the memory of one parameter, whoever reads that."""
    if how is How.STATE:
        return on_record.is_left(m, field, site)
    return how in VALUES | {How.NUMPY} and _is_of_parameter(m, share) and aliasing.is_on_record(m, site)


def _put_into(m: Machine, field: str, containers: tuple[int, ...], outside: set[int]) -> list[Kept]:
    """What this method has put into a container that a field held already."""
    found: list[Kept] = []
    for slot in _elements(m, containers, MAX_DEPTH):
        cell = m.state.cell(slot)
        for ref in cell.refs if cell is not None and cell.site >= 0 else ():
            obj = m.state.object(ref)
            # What a container held before is no other place for it: `self.state["count"] -= 1`.
            others = outside - set(containers)
            hows = VALUES | {How.STATE, How.NUMPY}
            shared = [share for share in obj.shares if share.how in hows and share.storage in others]
            shared = [s for s in shared if s.how is not How.DATA or not left_memory.is_left_at(m, s.site)]
            if cell is not None and ref in others and _is_once_a_call(m, slot, cell.site):
                found += _itself(m, field, cell.site, ref)
            if not shared and cell is not None:
                states = [share for share in obj.shares if share.how is How.STATE]
                found += [kept for share in states for kept in _of_several(m, field, cell.site, share, obj)]
            if not shared or cell is None:
                continue
            owner = m.state.object(shared[0].storage)
            state = shared[0].how is How.STATE
            found.append(
                Kept(
                    field=field,
                    site=_put_at(m, containers, ref, cell.site),
                    shared=shared[0].site,
                    how=shared[0].how,
                    source=owner.text,
                    shallow=obj.kind is not Kind.STATE_DICT or "shallow" in obj.flags,
                    sure=min(obj.sure, _sure_source(m, shared[0].storage)) if state else obj.sure,
                    method=m.unit.name,
                    storages=frozenset(share.storage | 1 for share in shared),
                    whole=owner.kind is Kind.MODULE,
                    sources=_names_of(m, shared[0].storage),
                    record=state and not slot[1].startswith(ANY_ELEMENT) and on_record.is_left(m, field, cell.site),
                    lasting=state and _is_of_lasting_model(m, shared[0]),
                    appended=_is_once_a_call(m, slot, cell.site)
                    and (_is_of_lasting_model(m, shared[0]) if state else _is_of_parameter(m, shared[0]))
                    and _is_read_elsewhere(m, field),
                )
            )
    return found


def _itself(m: Machine, field: str, site: int, ref: int) -> Iterator[Kept]:
    """A parameter that each call steps on and adds to a list as it is, at a site."""
    stepped = any(write.form == "step" and ref | 1 in {s | 1 for s in write.storages} for write in m.writes.values())
    if stepped and _is_of_parameter(m, Share(ref, How.OWN, -1, ref)) and _is_read_elsewhere(m, field):
        obj = m.state.object(ref)
        yield Kept(field, site, site, How.OWN, obj.text, False, obj.sure, m.unit.name, appended=True)


def _put_at(m: Machine, containers: tuple[int, ...], item: int, site: int) -> int:
    """Where an item was put into a container: another one may have been put there since, at `site`."""
    for store in m.index.of(t.StoreItem):
        if item | 1 in {ref | 1 for ref in m.value(store.value).refs} and set(m.value(store.base).refs) & set(
            containers
        ):
            return store.site
    return site


def _is_once_a_call(m: Machine, slot: Slot, site: int) -> bool:
    """Whether each call puts one thing at the end of a list that it leaves as it was otherwise.

    Who puts several things there, such as a weight and its bias, makes a list of parameters, and no history of one.
    """
    if slot[1] != ANY_ELEMENT or m.state.object(slot[0]).kind is not Kind.LIST or uses.loops_around(m, site):
        return False
    holder = naming.key_text(m, slot).partition("[")[0]
    done = [event.name for event in m.index.of(t.Invoke) if naming.text_of(m, event.base) == holder]
    return "clear" not in done and done.count("append") < 2


def _is_read_elsewhere(m: Machine, field: str) -> bool:
    units = [unit for unit in m.world.program.units if unit is not m.unit and unit.name != "__init__"]
    return any(event.name == field for unit in units for event in m.world.index(unit).of(t.Attribute))


def _is_of_parameter(m: Machine, share: Share) -> bool:
    """Whether what is shared is a parameter that lives in a module: the same memory on every call.

    Or a leaf that requires grad, in a field of `self` that constructors alone set.
    """
    for _ in range(MAX_DEPTH + 1):
        above = m.state.object(share.of)
        if above.kind is Kind.PARAMETER or _is_lasting_leaf(m, share.of):
            return True
        further = [one for one in above.shares if one.of != share.of]
        if not further:
            return False
        share = further[0]
    return False


def _is_of_lasting_model(m: Machine, share: Share) -> bool:
    """Whether a state dict is that of a model in a field that constructors alone set: the same memory on every call."""
    owner = m.state.object(share.storage)
    fields = _names_of(m, share.storage)
    mine = [name.partition(".")[2] for name in fields if name.startswith(f"{m.unit.first}.")]
    lasting = bool(mine) and not any("." in name or "[" in name or m.world.setters(name) for name in mine)
    return owner.kind is Kind.MODULE and (lasting or owner.owner == "self")


def _is_lasting_leaf(m: Machine, ref: int) -> bool:
    obj = m.state.object(ref)
    if obj.kind not in TENSORS or obj.leaf is not Fact.YES or obj.requires_grad <= 0:
        return False
    held = [key for key in m.state.holders.get(ref, ()) if isinstance(key, tuple) and key[1].startswith(".")]
    return any(m.state.object(key[0]).owner == "self" and not m.world.setters(key[1][1:]) for key in held)


def _elements(m: Machine, containers: tuple[int, ...], depth: int) -> Iterator[Slot]:
    """The elements of containers, and of containers in them. What has an item by name is one, too."""
    for ref in containers:
        container = m.state.object(ref).kind in CONTAINERS
        for slot in m.state.slot_names(ref):
            if container or slot[1].startswith("['"):
                yield slot
            if depth > 1 and slot[1].startswith("["):
                yield from _elements(m, m.state.refs_of(slot), depth - 1)


def _with_elements(m: Machine, refs: tuple[int, ...], depth: int) -> list[tuple[int, bool]]:
    """Objects, and what the containers among them hold."""
    found = [(ref, False) for ref in refs]
    for ref in refs:
        if m.state.object(ref).kind in CONTAINERS and depth:
            for slot in m.state.slot_names(ref):
                found += [(held, True) for held, _ in _with_elements(m, m.state.refs_of(slot), depth - 1)]
    return found


def _taken_from(m: Machine, share: Share) -> bool:
    """Whether what is shared is one of somebody's parameters, by how it was come by: `p.detach()` for `p in params`."""
    above = m.state.object(share.of)
    if share.how is How.PARAMETERS:
        return m.state.object(share.storage).kind in (Kind.UNKNOWN, Kind.ITERATOR)
    return any(one.storage == share.storage and one.how is How.PARAMETERS for one in above.shares)


def _sure_kept(m: Machine, obj: Object, share: Share) -> Sure:
    """How sure it is that what is kept belongs to somebody with parameters, or is one of those that were handed in."""
    taken = _taken_from(m, share)
    if taken and share.how is How.PARAMETERS:
        return Sure.LIKELY
    return min(obj.sure, _sure_source(m, share.storage, taken))


def _has_parameters(m: Machine, ref: int) -> bool:
    obj = m.state.object(ref)
    kind = obj.kind if obj.kind is not Kind.UNKNOWN else kinds.from_name(obj.text)[0]
    return kind in (Kind.MODULE, Kind.OPTIMIZER)


def _sure_source(m: Machine, ref: int, parameters: bool = False) -> Sure:
    """How sure it is that something has parameters, or a state that goes with them."""
    obj = m.state.object(ref)
    kind = obj.kind if obj.kind is not Kind.UNKNOWN else kinds.from_name(obj.text)[0]
    if parameters:
        return Sure.LIKELY
    if kind is Kind.OPTIMIZER and obj.type.endswith(".SGD"):
        # Without momentum it has no state but the numbers of its groups, which are copied.
        return Sure.NOT
    return Sure.LIKELY if kind is not Kind.UNKNOWN else Sure.HINT


def _names_of(m: Machine, ref: int) -> frozenset[str]:
    """What another method may call an object: by the fields that hold it, or, handed in as well, by the same name.

    The groups of an optimizer stand for it, in a field of their own as well.
    """
    names = {m.state.object(ref).text}
    for one in (ref, *m.state.refs_of((ref, ".param_groups"))):
        for key in m.state.holders.get(one, ()):
            field = isinstance(key, tuple) and key[1].startswith(".") and m.state.object(key[0]).owner == "self"
            if field and m.state.refs_of(key) == (one,):
                names.add(naming.key_text(m, key))
    if m.state.object(ref).kind is Kind.TENSOR:
        names = {name for name in names if not renewed.is_exchanged(m, name.removeprefix(f"{m.unit.first}."))}
    return frozenset(names)


# -- where it is used


_DIFFERENCES = frozenset({"-", "-=", "sub", "sub_"})
_MEETING = frozenset({t.Operate, t.Augment, t.Invoke, t.Call, t.StoreAttribute})


def met(m: Machine) -> list[FieldMet]:
    """Where what a field has held since before this method meets the parameters of a module, in source order."""
    if m.unit.owner < 0 or not m.fields.initial:
        return []
    found: list[FieldMet] = []
    for event in m.index.events:
        if event.__class__ not in _MEETING:
            continue
        if event.__class__ is t.Operate or event.__class__ is t.Augment:
            pair = event.operands if isinstance(event, t.Operate) else (event.target, event.value)
            found += _met(m, event.site, pair, event.symbol, "operand")
        elif event.__class__ is t.Invoke and event.name.rstrip("_") in _TENSORWISE:
            pair = (event.base, *[argument.register for argument in event.arguments])
            form = "restored" if event.name == "copy_" and field_of(m, event.base) == "" else "operand"
            form = "averaged" if _averages(m, event) else form
            found += _met(m, event.site, pair, event.name, form)
        elif event.__class__ is t.Call and m.dotted_of(event).rpartition(".")[2] in _TENSORWISE:
            pair = tuple(argument.register for argument in event.arguments)
            found += _met(m, event.site, pair, naming.text_of(m, event.function), "operand")
        elif event.__class__ is t.StoreAttribute and event.name == "data":
            found += _met(m, event.site, (event.base, event.value), ".data =", "restored")
        elif event.__class__ is t.Invoke and event.name == "load_state_dict" and event.arguments:
            register = event.arguments[0].register
            earlier = from_earlier_call(m, register, event.site)
            field = earlier or field_of(m, register)
            if field and _is_replaced(m, field, event.site):
                continue
            several = field_of(m, event.base) if field else ""
            if several and several != field:
                source = _each_of(m, several)
                found.append(FieldMet(event.site, field, m.unit.name, "loaded", source, event.name, bool(earlier)))
            for ref in m.value(event.base).refs if field else ():
                source = m.state.object(ref).text
                found.append(FieldMet(event.site, field, m.unit.name, "loaded", source, event.name, bool(earlier)))
    return list(dict.fromkeys(found))


def _is_replaced(m: Machine, field: str, site: int) -> bool:
    """Whether a loop over what a field holds puts something new under each key, in front of a site: what comes there is
    not what was kept."""
    for store in m.index.of(t.StoreItem):
        base = m.unit.definitions[store.base]
        if store.site < site and isinstance(base, t.Attribute) and base.name == field and uses.is_self(m, base.base):
            loops = [one for one in m.index.of(t.Loop) if one.site in uses.loops_around(m, store.site)]
            heads = [one.body[0] for one in loops if one.body]
            through = [naming.text_of(m, head.iterable) for head in heads if isinstance(head, t.Iterate)]
            if any(f"{text}.".startswith(f"{m.unit.first}.{field}.") for text in through):
                return True
    return False


def _met(m: Machine, site: int, registers: tuple[int, ...], op: str, form: str) -> Iterator[FieldMet]:
    if len(registers) < 2:
        return
    scaled = [part for register in registers for part in _scaled(m, register, MAX_DEPTH)]
    places = {part: field_of(m, part) for part in scaled}
    if not any(places.values()):
        return
    state = form == "averaged" or op in _DIFFERENCES
    sources = {part: source for part in scaled if (source := _module_behind(m, m.value(part), state=state))}
    met = (
        (places[part], source) for part in scaled for other, source in sources.items() if places[part] and part != other
    )
    for field, source in dict.fromkeys(met):
        earlier = item_from_earlier_call(m, field, site)
        yield FieldMet(site, field, m.unit.name, form, source, op, earlier)
    keyed = keyed_by_source.met(m, registers[0], registers[1])
    if keyed:
        yield FieldMet(site, keyed, m.unit.name, form, keyed_by_source.name_of(m, keyed), op)
    fields = {part: field for part, field in places.items() if part not in sources}
    first, second = (fields.get(register, "") for register in registers[:2])
    if first and second and first != second:
        # The groups of an optimizer that the one holds, and what the other has kept of them.
        me = m.unit.first
        yield FieldMet(site, first, m.unit.name, form, f"{me}.{second}", op)
        yield FieldMet(site, second, m.unit.name, form, f"{me}.{first}", op)


def _averages(m: Machine, event: t.Invoke) -> bool:
    """Whether a value is mixed with another one in place: `a.lerp_(b, w)`, `a.mul_(d).add_(b, alpha=1 - d)`."""
    made = m.unit.definitions[event.base] if event.base >= 0 else None
    return event.name == "lerp_" or (event.name == "add_" and isinstance(made, t.Invoke) and made.name == "mul_")


def _scaled(m: Machine, register: int, depth: int) -> list[int]:
    """What a value is a multiple of, in whatever shape: `d * a` is one of `a`, or of `d`; so is `a.flatten()`."""
    event = m.unit.definitions[register] if register >= 0 else None
    if depth and event.__class__ is t.Invoke and event.name in _RESHAPING:
        return _scaled(m, event.base, depth - 1)
    if depth and event.__class__ is t.Operate and event.symbol in ("*", "/"):
        return [part for operand in event.operands for part in _scaled(m, operand, depth - 1)]
    return [register]


def _module_behind(m: Machine, value: Value, *, state: bool = False) -> str:
    """The name of the module whose parameter a value surely is, or shares memory with: by its `state` dict as well."""
    objects = [m.state.object(ref) for ref in value.refs]
    if len({ref | 1 for ref in value.refs}) != 1 or any(obj.kind not in TENSORS for obj in objects):
        return ""
    shares = [share for obj in objects for share in obj.shares]
    # What a part of the object trains, the object does, if it is a module itself: the part is what is meant.
    shares = [share for share in shares if m.state.object(share.storage).owner != "self"] or shares
    owner = m.state.object(shares[0].storage) if shares else None
    # Once the loop has ended, it is one of several, all of which are parts of one module.
    handed = owner is not None and owner.owner == ARGUMENT
    handed = handed and any(share.how is How.PARAMETERS or _taken_from(m, share) for share in shares)
    if owner is None or (owner.kind is not Kind.MODULE and not handed):
        return ""
    if len({share.storage | 1 for share in shares}) > 1:
        return ""
    own = any(share.how is How.OWN or (share.how is How.STATE and not state) or share.when for share in shares)
    return "" if own else owner.text
