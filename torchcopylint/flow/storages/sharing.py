"""Parameters and buffers that are put on the storage of others: where it starts, and what becomes of it."""

from __future__ import annotations

import re

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataShared
from torchcopylint.flow.model import ARGUMENT, FIELD, LOCAL, TENSORS, How, Kind, Object, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.noted import PutOn
from torchcopylint.flow.storages import slots, taken_apart
from torchcopylint.flow.storages.reading import MAX_CHAIN
from torchcopylint.flow.tapes import inquiries, used_up, uses
from torchcopylint.flow.values import idioms, naming
from torchcopylint.knowledge import table

_TAKING_OFF = frozenset({"delattr", "__delattr__", "_parameters"})
"""Names that say that parameters are taken off modules: `del module._parameters["weight"]`."""
_LAYERS = frozenset({Kind.MODULE, Kind.UNKNOWN})
_FILLING = frozenset({"load_state_dict", "eval", "train", "to", "cpu", "cuda", "float", "half", "double"})
"""Methods of a module that leave it to whoever made it."""
CONVERSIONS = frozenset({"to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "type_as"})
"""Methods of tensors that copy only if they have to."""


def note(m: Machine, site: int, ref: int, source: Value, text: str, shared: str, form: str, sure: Sure) -> None:
    """An object, `text`, is put on the storages of `source`, which a live parameter or buffer, `shared`, sits on."""
    going = form in ("parameter", "assign") and (_is_let_go(m, source, site) or _is_given_away(m, source, site))
    going = going or taken_apart.is_taken_apart(m, _put(m, site)) or _is_used_up(m, shared, site)
    going = going and not _is_taken_each_turn(m, ref, source, site)
    if going or text == shared or (form == "parameter" and _takes_off(m)):
        # Under the name that it was taken from, it takes the place of what was there.
        return
    storages = frozenset(share.storage for held in source.refs for share in m.state.object(held).shares)
    owner = source.root[0] if isinstance(source.root, tuple) else -1
    m.holding.put_on[site] = PutOn(ref, storages, shared, owner)
    converted = m.world.converts(m) or _is_copied_before(m, shared, site)
    converted = converted or _are_of_two_models(m, text, shared, source.refs) or _is_made_after(m, ref, source)
    converted = converted or _takes_its_place(m, text, shared)
    context = idioms.CONVERSION if converted else ""
    # What only its name takes for a parameter may be anything that looks like one.
    sure = min(sure, *(m.state.object(held).sure for held in source.refs))
    m.fact(DataShared(site, text, shared, form, sure, context=context))


def _withdraw(m: Machine, site: int) -> None:
    """What is put on the memory of something at a site takes its place. In another turn of a loop, that may be known
    before the site has been come to again."""
    m.facts[site] = [fact for fact in m.facts.get(site, ()) if not isinstance(fact, DataShared)]


def _put(m: Machine, site: int) -> int:
    """The register of what an assignment to `.data` at a site gives another place."""
    return next((event.value for event in m.index.of(t.StoreAttribute) if event.site == site), t.NO_REGISTER)


def note_statistics(m: Machine, event: t.StoreAttribute, ref: int, value: Value, text: str) -> None:
    """A layer that goes on gets the statistics of another one, which its forward writes in training: they are those of
    both from here on. What a unit makes to take the place of a layer has them for good."""
    obj = m.state.object(ref)
    known = table.module_class(obj.type)
    if event.augmented or known is None or not known.writes_buffers or event.name not in known.buffers:
        return
    owners = {m.state.object(share.storage & ~1).owner for share in obj.shares}
    if owners <= {ARGUMENT, FIELD} and slots.lives_on(m, value, ref) is not None:
        note(m, event.site, ref, value, text, naming.text_of(m, event.value), "buffer", obj.sure)


def _are_of_two_models(m: Machine, place: str, source: str, refs: tuple[int, ...]) -> bool:
    """Whether a unit was handed the two models that share a parameter, and they are of two classes: one is made from
    the other, which nobody trains beside it. What lags behind another network is of its class, and statistics go on
    being written."""
    part = _field_of(m, refs)
    if part is None or part[0].kind is not Kind.PARAMETER:
        return False
    roots = [text.partition(".")[0].partition("[")[0] for text in (place, source)]
    given = {p.name for p in m.unit.parameters if m.unit.owner < 0 or p.name != m.unit.first}
    if len(set(roots)) < 2 or not set(roots) <= given:
        return False
    types = [m.state.object(m.number("argument", root)).type for root in roots]
    return all(types) and types[0] != types[1]


def _is_made_after(m: Machine, ref: int, source: Value) -> bool:
    """Whether a method, no constructor, makes a layer of another class than the one whose memory it is put on: one to
    go step by step with, say, that no optimizer gets to see."""
    if ref < 0 or m.unit.owner < 0 or m.unit.name == "__init__":
        return False
    target, origin = _field_of(m, (ref,)), _field_of(m, source.refs)
    if target is None or origin is None or origin[0].kind is not Kind.PARAMETER:
        return False
    made, other = target[1], origin[1]
    return made.owner in ("", LOCAL) and bool(made.type) and other.owner == FIELD and other.type not in ("", made.type)


_ONE_OF = re.compile(r"(\w+)\.(?:named_)?(?:modules|children)\(\)\[")
"""How a layer is called that a loop has picked out of a network."""
_ONE_OF_PART = re.compile(r"(\w+)\.(\w+)\[")
"""The same, out of a chain in a field of it: `trained.features[...]`."""


def _takes_its_place(m: Machine, place: str, source: str) -> bool:
    """Whether a layer that is made here from one that a loop has picked out of a network goes into that network, where
    it stands for the one that it is of: `net.fc = layer`, `modules = parent_of(net, name)`, `modules[key] = layer`."""
    picked, new = _ONE_OF.match(source), place.partition(".")[0]
    if picked is None or new == picked[1]:
        return False
    calls = [call for call in m.index.of(t.Call) if len(call.arguments) == 3 and _is_named(m, call.function, "setattr")]
    given = [(call.arguments[2].register, call.arguments[0].register) for call in calls]
    stores = [(store.value, store.base) for store in m.index.of(t.StoreAttribute)] + given
    if any(_is_named(m, value, new) and _is_named(m, base, picked[1]) for value, base in stores):
        return True
    for store in m.index.of(t.StoreItem):
        kept = m.unit.definitions[store.base]
        bound = uses.bindings_before(m, kept) if _is_named(m, store.value, new) and isinstance(kept, t.Load) else []
        found = [m.unit.definitions[one] for one in bound if one >= 0]
        arguments = [a.register for one in found if isinstance(one, t.Call) for a in one.arguments]
        if any(_is_named(m, one, picked[1]) for one in arguments):
            return True
    return False


def _is_named(m: Machine, register: int, name: str) -> bool:
    loaded = m.unit.definitions[register] if register >= 0 else None
    return isinstance(loaded, t.Load) and loaded.name == name


def _field_of(m: Machine, refs: tuple[int, ...]) -> tuple[Object, Object] | None:
    """The parameter that something was taken from, or that it is itself, and the module that this is a field of."""
    for _ in range(MAX_CHAIN):
        shares = m.state.object(refs[0]).shares if len(refs) == 1 else ()
        fields = [share.of for share in shares if share.how is How.FIELD and len(share.region) == 1]
        if len(fields) == 1:
            return m.state.object(refs[0]), m.state.object(fields[0])
        above = tuple({share.of for share in shares if share.how is not How.OWN and share.of != refs[0]})
        if not above:
            return None
        refs = above
    return None


def _is_copied_before(m: Machine, source: str, site: int) -> bool:
    """Whether a unit has copied what it was handed before it takes parts of it: what is left of that is used up."""
    name = source.partition(".")[0].partition("[")[0]
    if m.state.object(m.number("argument", name)).owner != ARGUMENT:
        return False
    for event in m.index.of(t.Call) + m.index.of(t.Invoke):
        if event.site < site and len(event.arguments) == 1 and m.dotted_of(event) == "copy.deepcopy":
            copied = m.unit.definitions[event.arguments[0].register]
            if isinstance(copied, t.Load) and copied.name == name:
                return True
    return False


def _is_let_go(m: Machine, source: Value, site: int) -> bool:
    """Whether the module that has the memory was made here to have it, and the unit looks at that no more."""
    objects = [m.state.object(ref) for ref in source.refs]
    while objects and not any(share.how is How.FIELD for share in objects[0].shares):
        above = [share.of for share in objects[0].shares if share.how is not How.OWN]
        objects = [m.state.object(above[0])] if above and m.state.object(above[0]) != objects[0] else []
    owners = [share for obj in objects for share in obj.shares if share.how is How.FIELD]
    if m.unit.kind == "module" or len(owners) != 1 or len(owners[0].region) != 1:
        return False
    owner, part = owners[0].of, owners[0].region[0].value
    made, keys = m.state.object(owner), m.state.holders.get(owner, ())
    names = [key for key in keys if owner in m.state.refs_of(key)]
    if made.owner not in ("", LOCAL) or not all(isinstance(name, str) for name in names):
        return False
    for name in names:
        looks = [use for use in uses.of_name(m, str(name)) if use.loads]
        seen = [(use, m.consumer_of(use.register)) for use in looks]
        parts = all(isinstance(event, t.Attribute) and event.base == use.register for use, event in seen)
        later = [e.out for use, e in seen if isinstance(e, t.Attribute) and e.name == part and use.site > site]
        again = not all(_is_asked(m, register) for register in later)
        if not parts or again or uses.seen_from_inside(m, str(name)):
            return False
    return True


def _is_used_up(m: Machine, shared: str, site: int) -> bool:
    """Whether the memory is that of layers of a network that a function has for itself and goes through for them, and
    does not look at again: `trained = alexnet(); for a, b in zip(net.modules(), trained.modules()): ...`."""
    picked = _ONE_OF.match(shared) or _ONE_OF_PART.match(shared)
    if picked is None or m.unit.kind != "function" or "." in picked[1] or uses.seen_from_inside(m, picked[1]):
        return False
    bound = m.index.binds.get(picked[1], ())
    made = m.unit.definitions[bound[0].value] if bound and bound[0].value >= 0 else None
    if not isinstance(made, t.Call | t.Invoke) or (isinstance(made, t.Invoke) and not m.dotted_of(made)):
        return False
    looks = [use for use in uses.of_name(m, picked[1]) if use.loads]
    seen = [m.consumer_of(use.register) for use in looks]
    through = all(_goes_through(m, one, use.register) for one, use in zip(seen, looks, strict=True))
    around = set(uses.loops_around(m, site))
    # Who looks at another part of it looks at other layers.
    field = picked[2] if picked.re is _ONE_OF_PART else ""
    pairs = zip(seen, looks, strict=True)
    looks = [use for one, use in pairs if not (field and isinstance(one, t.Attribute) and one.name != field)]
    # What a loop that stands around all of it makes anew is let go of with it.
    once = len(bound) == 1 and all(use.site < site for use in looks)
    return once and through and not (around & {loop for use in looks for loop in uses.loops_around(m, use.site)})


def _goes_through(m: Machine, event: t.Event | None, register: int) -> bool:
    """Whether a network is asked for its layers, or for a field that a loop goes through."""
    if not isinstance(event, t.Attribute) or event.base != register:
        return isinstance(event, t.Invoke) and event.base == register
    used = m.consumer_of(event.out)
    over = isinstance(used, t.Call) and naming.text_of(m, used.function) in ("enumerate", "zip")
    return over or isinstance(used, t.Iterate)


def _is_taken_each_turn(m: Machine, ref: int, source: Value, site: int) -> bool:
    """Whether each turn of a loop puts a module of its own on the memory of one that was made before the loop."""
    target, origin = _field_of(m, (ref,)), _field_of(m, source.refs)
    if target is None or origin is None:
        return False
    before, inside = uses.loops_around(m, origin[1].site), uses.loops_around(m, target[1].site)
    return len(before) < len(inside) <= len(uses.loops_around(m, site)) and inside[: len(before)] == before


def _is_given_away(m: Machine, source: Value, site: int) -> bool:
    """Whether the memory is that of a module which was made here to be filled and gives its parts away from there on,
    and nothing else: `head = Head(); head.load_state_dict(saved); net.fc.weight.data = head.fc.weight.data`."""
    above = source.refs
    while len(above) == 1:
        further = tuple({share.of for share in m.state.object(above[0]).shares if share.how is not How.OWN})
        if not further or further == above:
            break
        above = further
    made = m.state.object(above[0]) if len(above) == 1 else None
    if made is None or made.kind is not Kind.MODULE or made.owner not in ("", LOCAL) or m.unit.kind == "module":
        return False
    keys = m.state.holders.get(above[0], ())
    names = [key for key in keys if above[0] in m.state.refs_of(key)]
    if len(names) != 1 or not isinstance(names[0], str) or uses.seen_from_inside(m, names[0]):
        return False
    around = uses.loops_around(m, site)
    given: list[str] = []
    for use in uses.of_name(m, names[0]):
        event = m.consumer_of(use.register) if use.loads else None
        filled = isinstance(event, t.Invoke) and event.base == use.register and event.name in _FILLING
        filled = filled or _is_loader(m, event, use.register)
        again = bool(around) and use.loops == around
        if use.loads and not (filled and use.site < site and not again):
            part = _given(m, use.register)
            if part is None or (use.loops and part and "[" not in part) or part in given:
                return False
            given += [part] if part else []
    return True


def _is_loader(m: Machine, event: t.Event | None, register: int) -> bool:
    """Whether a statement has a model filled by something that is called for that: `load_checkpoint(path, model)`."""
    if not isinstance(event, t.Call | t.Invoke) or not isinstance(m.consumer_of(event.out), t.Discard):
        return False
    name = event.name if isinstance(event, t.Invoke) else m.dotted_of(event).rpartition(".")[2]
    return any(one.register == register for one in event.arguments) and _LOADING.search(name) is not None


_LOADING = re.compile(r"(?:^|_)(?:re)?(?:load|init)|restore|resume")
"""What fills a model, by its name; `store` does not."""


def _given(m: Machine, register: int) -> str | None:
    """What part of a module becomes the memory of something else, `fc[i]`; nothing if it is only asked what it is like,
    and `None` if more is done with it."""
    event = m.consumer_of(register)
    while isinstance(event, t.Attribute | t.Item) and event.base == register:
        register = event.out
        event = m.consumer_of(register)
    if isinstance(event, t.StoreAttribute) and event.name == "data" and event.value == register:
        return naming.text_of(m, register)
    paired = isinstance(event, t.Call) and naming.text_of(m, event.function) == "zip"
    if paired or used_up.is_used_up(m, register, "", named=False):
        return ""
    return "" if inquiries.is_inquiry(m, register) else None


def _is_asked(m: Machine, register: int) -> bool:
    """Whether a parameter is only asked what it is like, perhaps through its data."""
    event = m.consumer_of(register)
    if isinstance(event, t.Attribute) and event.name == "data":
        register = event.out
    return inquiries.is_inquiry(m, register)


def replaced(m: Machine, value: Value, place: str) -> None:
    """A value is stored at a place. If that is where its memory came from, it replaces what was there."""
    for ref in value.refs:
        site = m.state.object(ref).site
        put = m.holding.put_on.get(site)
        if put is None or put.ref != ref:
            continue
        if put.source == place:
            _withdraw(m, site)
        elif _are_of_two_models(m, place, put.source, (ref,)):
            converted = (
                f._replace(context=idioms.CONVERSION) if isinstance(f, DataShared) else f for f in m.facts.get(site, ())
            )
            m.facts[site] = list(converted)


def _takes_off(m: Machine) -> bool:
    """Whether a unit takes parameters off modules: what it makes of them goes on in their place, under other names."""
    return any(
        event.name in _TAKING_OFF for event in m.unit.definitions if isinstance(event, t.Load | t.Attribute | t.Invoke)
    )


def stands_in(m: Machine, fact: DataShared) -> bool:
    """Whether a unit makes an object go on with what another one has, field by field: `self.encoder = net.encoder`.

    Who takes the layers of a network as they are wants its buffers as they are, too. To be asked when a unit has run.
    """
    if fact.form != "buffer" or fact.site not in m.holding.put_on:
        return False
    made, owner = m.unit.definitions, m.holding.put_on[fact.site].owner
    taken = 0
    for name, stores in m.index.stores.items():
        for event in stores:
            field = made[event.value] if event.value >= 0 else None
            if isinstance(field, t.Attribute) and field.name == name and owner in m.value(field.base).refs:
                objects = [m.state.object(ref) for ref in m.value(event.value).refs]
                taken += bool(objects) and all(obj.kind in _LAYERS for obj in objects)
    return taken > 1


def are_constants(m: Machine, fact: DataShared) -> bool:
    """Whether an object gives a buffer of its own another name of its own, and nobody in the file writes either:
    numbers that are computed once, and put back in place of others (`self.original = self.inv_freq`). What else the
    fields hold is theirs. To be asked when all units have been run."""
    put = m.holding.put_on.get(fact.site)
    if fact.form != "buffer" or put is None or m.unit.owner < 0:
        return False
    names = [text.removeprefix(f"{m.unit.first}.") for text in (fact.target, fact.source)]
    if not all(name.isidentifier() for name in names) or put.owner not in m.state.refs_of(m.unit.first):
        return False
    parameter = any(m.world.is_parameter(m.unit.owner, name) for name in names)
    return not parameter and not any(m.world.written_places.get(name) for name in names)


_HARMLESS = frozenset({"eval", "train", "extra_repr"})


def is_only_compared(m: Machine, fact: DataShared) -> bool:
    """Whether a function makes both of what shares a parameter, calls them, and does nothing else with them: no write
    can come after that. To be asked when a unit has run."""
    put = m.holding.put_on.get(fact.site)
    if put is None or m.unit.kind != "function":
        return False
    written = any(
        w.site > fact.site and w.form != "assign" and put.storages & set(w.storages) for w in m.writes.values()
    )
    names = {text.partition(".")[0] for text in (fact.target, fact.source)}
    return (
        not written
        and all("." in text for text in (fact.target, fact.source))
        and all(_is_kept_to_itself(m, name) for name in names)
    )


def _is_kept_to_itself(m: Machine, name: str) -> bool:
    """Whether a name is bound in a unit, and what it holds is called there, and asked for its fields, and no more."""
    found = uses.of_name(m, name)
    if not name.isidentifier() or not m.index.binds.get(name) or uses.seen_from_inside(m, name):
        return False
    if name in {parameter.name for parameter in m.unit.parameters}:
        return False
    for use in found:
        event = m.consumer_of(use.register) if use.loads else None
        called = isinstance(event, t.Call) and event.function == use.register
        asked = isinstance(event, t.Attribute) or (isinstance(event, t.Invoke) and event.name in _HARMLESS)
        if use.loads and not called and not asked:
            return False
    return True


def is_passing(m: Machine, register: int) -> bool:
    """Whether what a call returns is an operand and nothing else, perhaps after a conversion: nobody holds it."""
    event = m.consumer_of(register)
    while isinstance(event, t.Invoke) and event.base == register and event.name in CONVERSIONS:
        register = event.out
        event = m.consumer_of(register)
    return isinstance(event, t.Operate)


def set_anew(m: Machine, key: int) -> None:
    """What a module has under a name, which is in a register, is exchanged: `parent._modules[name] = new`.

    What was there under that name goes out of use, and whoever was put on its memory has taken it over.
    """
    loaded = m.unit.definitions[key] if m.holding.put_on and key >= 0 else None
    if not isinstance(loaded, t.Load):
        return
    had = [ref for name in _had_as(m, loaded.name) for ref in m.state.refs_of(name)]
    out = {ref | 1 for ref in had}
    own = {share.storage for ref in had if m.state.object(ref).kind in TENSORS for share in m.state.object(ref).shares}
    for site, put in m.holding.put_on.items():
        if put.owner | 1 in out or put.storages & own:
            _withdraw(m, site)


def _had_as(m: Machine, key: str) -> list[str]:
    """The names of what was taken out of a module under the name in `key`: `for key, child in net.named_children()`."""
    made = m.unit.definitions
    pairs = set()
    for bind in m.index.binds.get(key, ()):
        part = made[bind.value] if bind.value >= 0 else None
        if isinstance(part, t.Unpack) and isinstance(made[part.value], t.Iterate):
            pairs.add(part.value)
    found = []
    for name, binds in m.index.binds.items():
        for bind in binds:
            event = made[bind.value] if bind.value >= 0 else None
            if isinstance(event, t.Unpack) and event.value in pairs and name != key:
                found.append(name)
            elif isinstance(event, t.Call) and m.dotted_of(event) == "builtins.getattr" and len(event.arguments) > 1:
                asked = made[event.arguments[1].register]
                if isinstance(asked, t.Load) and asked.name == key:
                    found.append(name)
    return found


def let_go(m: Machine, slot: tuple[int, str], value: Value) -> None:
    """A field is set or deleted: what it held is not in use any more, and whoever was put on that took it over."""
    cell = m.state.cell(slot)
    if cell is None or not m.holding.put_on:
        return
    kept = {share.storage for ref in value.refs for share in m.state.object(ref).shares}
    own = {share.storage for ref in cell.refs for share in m.state.object(ref).shares if share.how is How.OWN} - kept
    fields = {ref for ref in cell.refs if any(share.how is How.FIELD for share in m.state.object(ref).shares)}
    for site, put in m.holding.put_on.items():
        if put.storages & own or _taken_from(m, put.ref, fields):
            _withdraw(m, site)


def _taken_from(m: Machine, ref: int, fields: set[int]) -> bool:
    """Whether an object was put on the memory of one of the objects that a module's field held until now."""
    for _ in range(MAX_CHAIN if fields else 0):
        above = [share.of for share in m.state.object(ref).shares if share.how is not How.OWN and share.of != ref]
        if not above:
            return False
        ref = above[0]
        if ref in fields:
            return True
    return False
