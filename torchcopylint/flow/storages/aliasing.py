"""One module under two names, which is paired with itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldAliased, FieldsPaired, ModulePaired
from torchcopylint.flow.model import ARGUMENT, CONTAINERS, FIELD, How, Key, Kind, Sure, Value
from torchcopylint.flow.program import early_stopping, named_apart, unwrapping
from torchcopylint.flow.storages import keeping, listed
from torchcopylint.flow.tapes import next_turn
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

WHOLE_MODULE = frozenset({How.PARAMETERS, How.STATE})
_ORDERS = frozenset({"<", ">", "<=", ">="})
_TAKEN = (t.Iterate, t.Item, t.Unpack)
AVERAGE = "average"
"""The form of a pair in which one module goes on from what it is towards the other."""
MAX_PAIRS = 4
"""So many modules may be meant where one of several is."""
MAX_DEPTH = 3
"""How deep the iterators over a module's parameters are looked into: `zip(a.named_parameters(), ...)`."""


def note_pair(m: Machine, one: Value, other: Value, site: int, form: str) -> None:
    """Two modules (or what iterates over their parameters) meet: `load` from one to the other, or `zip` of both."""
    held = m.state.refs_of(one.root) if form == "load" and one.root is not None else ()
    if set(one.refs) < set(held):
        # A method is called on each of the objects that a name may hold, one by one.
        one = one._replace(refs=held)
    note_met(m, one, other, (modules_behind(m, one, MAX_DEPTH), modules_behind(m, other, MAX_DEPTH)), site, form)


def note_met(
    m: Machine, one: Value, other: Value, modules: tuple[frozenset[int], frozenset[int]], site: int, form: str
) -> None:
    """The same, where it is known which `modules` are behind the two values; see `modules_behind`."""
    first, second = modules
    given = _parameter_of(m, first), _parameter_of(m, second)
    if all(given) and given[0] != given[1]:
        m.fields.pairs.add((*given, form))
    elif form == AVERAGE and any(given):
        # A running average of what each call is given.
        field, parameter = field_of(m, second if given[0] else first), given[0] or given[1]
        if field:
            m.fact(FieldsPaired(site, field, parameter, form, handed=True))
    if form == "load" and m.unit.name == "__init__" and first != second:
        # What a state is loaded into is a module, or an optimizer, whatever else is known of it.
        one_field, other_field = _held_by(m, first or frozenset(one.refs)), _held_by(m, second)
        if one_field and other_field:
            m.fields.loaded.add((one_field, other_field))
    if not first or not second:
        # One of several pairs, as in `for target, net in pairs`: any of one side may meet any of the other.
        for field in _fields_behind(m, one, MAX_DEPTH):
            for paired in _fields_behind(m, other, MAX_DEPTH):
                if field != paired:
                    m.fact(FieldsPaired(site, field, paired, form))
        return
    if first == second:
        called = {_called(m, one, MAX_DEPTH), _called(m, other, MAX_DEPTH)}
        names = [place for place in names_of(m, first) if place[1] in called]
        if len(names) > 1 and not any(_is_any_of_several(m, ref) for ref in first):
            (_, source), (bound, name) = names[0], names[-1]
            sure = max(Sure.LIKELY, min(m.state.object(ref).sure for ref in first))
            m.fact(ModulePaired(site, name, source, bound, form, sure))
        return
    handed = next_turn.handed_on(m, one, other, site)
    if handed is not None:
        m.fact(ModulePaired(site, *handed, form, Sure.LIKELY))
        return
    _note_tied_pair(m, first, second, site, form)
    fields = field_of(m, first), field_of(m, second)
    if all(fields):
        m.fact(FieldsPaired(site, fields[0], fields[1], form))


def _note_tied_pair(m: Machine, first: frozenset[int], second: frozenset[int], site: int, form: str) -> None:
    """Two modules meet of which one has been given all parameters of the other."""
    for (target, source), tied in m.fields.tied.items():
        if {frozenset({target}), frozenset({source})} == {first, second}:
            names = m.state.object(target).text, m.state.object(source).text
            m.fact(ModulePaired(site, *names, tied, form, m.state.object(source).sure))


def _parameter_of(m: Machine, modules: frozenset[int]) -> str:
    """The parameter of the unit that a module was handed in as."""
    objects = [m.state.object(ref) for ref in modules if m.state.object(ref).owner == ARGUMENT]
    if len(modules) > 1:
        return unwrapping.parameter_of(m, modules)
    return objects[0].text if len(objects) == len(modules) == 1 else ""


def pair_arguments(m: Machine, pairs: Iterable[tuple[str, str, str]], bound: dict[str, Value], site: int) -> None:
    """A call hands modules to a function in which they meet: `soft_update(self.net, self.target)`."""
    for one, other, form in pairs:
        if one in bound and other in bound:
            told = len(m.facts.get(site, ()))
            note_pair(m, bound[one], bound[other], site, form)
            refs = bound[one].refs if form in (AVERAGE, "mix", "load") else ()
            if refs == bound[other].refs and len(m.facts.get(site, ())) == told and _is_one_model(m, refs):
                # It has no second name here: it is passed for both, and one is to become what the other is.
                obj = m.state.object(refs[0])
                m.fact(ModulePaired(site, one, obj.text or other, site, form, max(Sure.LIKELY, obj.sure)))


def _is_any_of_several(m: Machine, ref: int) -> bool:
    """Whether an object stands for each element of a field's list: two that are taken out are two."""
    obj = m.state.object(ref)
    return obj.owner == FIELD and obj.text.endswith("[...]")


def _is_one_model(m: Machine, refs: tuple[int, ...]) -> bool:
    one = len(refs) == 1 and not refs[0] & 1 and m.state.object(refs[0]).kind is Kind.MODULE
    return one and not _is_any_of_several(m, refs[0])


def _called(m: Machine, value: Value, depth: int) -> str:
    """The name by which a module was asked for its parameters or state here."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.MODULE and value.root is not None:
            return naming.key_text(m, value.root)
        if any(share.how in WHOLE_MODULE for share in obj.shares):
            return obj.text.removeprefix("a parameter of ").removesuffix(".state_dict()")
        if obj.kind in CONTAINERS and depth:
            for slot in m.state.slot_names(ref):
                cell = m.state.cell(slot)
                name = _called(m, Value(cell.refs, cell.kind), depth - 1) if cell is not None else ""
                if name:
                    return name
    return ""


def modules_behind(m: Machine, value: Value, depth: int) -> frozenset[int]:
    """The modules whose parameters a value is, or iterates over; empty if it is not sure which."""
    found: set[int] = set()
    if all(m.state.object(ref).kind is Kind.MODULE and not ref & 1 for ref in value.refs):
        return frozenset(value.refs)
    if depth and len(value.refs) > 1 and all(m.state.object(ref).kind is Kind.STATE_DICT for ref in value.refs):
        # What the one that there is, of several modules, has as its state.
        return frozenset().union(*(modules_behind(m, Value((ref,), value.kind), 0) for ref in value.refs))
    if len(value.refs) != 1 or value.refs[0] & 1:
        return frozenset()
    obj = m.state.object(value.refs[0])
    whole = [share for share in obj.shares if share.how in WHOLE_MODULE]
    for share in whole:
        kind = m.state.object(share.of).kind
        # What has `parameters()` is a module; a state dict may be that of anything.
        is_whole = kind is Kind.MODULE or (kind is Kind.UNKNOWN and share.how is How.PARAMETERS)
        if is_whole and (share.sure or (len(whole) > 1 and not share.when)):
            found.add(share.of)
    if not found and obj.kind in CONTAINERS and depth:
        for slot in m.state.slot_names(value.refs[0]):
            cell = m.state.cell(slot)
            if cell is not None:
                found |= modules_behind(m, Value(cell.refs, cell.kind), depth - 1)
    # The parts of a module that are known by name belong to it.
    parts = {ref for ref in found for key in m.state.holders.get(ref, ()) if isinstance(key, tuple) and key[0] in found}
    return frozenset() if any(ref & 1 for ref in found) else frozenset(found - parts)


def _fields_behind(m: Machine, value: Value, depth: int) -> list[str]:
    """The fields of `self` that hold a module which a value may be the parameters of."""
    found: dict[str, None] = {}
    for ref in value.refs if len(value.refs) <= MAX_PAIRS else ():
        obj = m.state.object(ref)
        sources = [share.of for share in obj.shares if share.how in WHOLE_MODULE] or [ref]
        holds = obj.kind in CONTAINERS and obj.kind is not Kind.STATE_DICT and len(obj.shares) < 2
        for source in sources if not holds else ():
            field = field_of(m, frozenset({source}))
            found.update({field: None} if field else {})
        for slot in m.state.slot_names(ref) if obj.kind in CONTAINERS and depth else ():
            held = Value(m.state.refs_of(slot))
            found.update(dict.fromkeys(_fields_behind(m, held, depth - 1)))
    return list(found)


def names_of(m: Machine, modules: frozenset[int]) -> list[tuple[int, str]]:
    """The names and fields that hold one of some modules itself, by where they were bound."""
    best: list[tuple[int, str]] = []
    if len(modules) > 1:
        # One of several, by a condition: names that hold the same one are bound from one another.
        return _names_of_one(m, tuple(sorted(modules)))
    for ref in sorted(modules):
        names = []
        for key in m.state.holders.get(ref, ()):
            cell = m.state.cell(key)
            if cell is not None and cell.refs == (ref,) and is_place(m, key):
                names.append((cell.site, naming.key_text(m, key)))
        names = sorted(set(names))
        if len(names) > len(best):
            best = names
    return best


def _names_of_one(m: Machine, refs: tuple[int, ...]) -> list[tuple[int, str]]:
    """A name for one of some modules, and those that are bound to what it holds."""
    keys = {key for ref in refs for key in m.state.holders.get(ref, ()) if is_place(m, key)}
    cells = [(key, cell) for key in keys if (cell := m.state.cell(key)) is not None and cell.refs == refs]
    names = sorted((cell.site, naming.key_text(m, key)) for key, cell in cells)
    bound = [bind.value for _, name in names[:1] for bind in m.index.binds.get(name, ()) if bind.value >= 0]
    if any(isinstance(m.unit.definitions[register], _TAKEN) for register in bound):
        # An element of something, which is another one at every look.
        return []
    return names[:1] + [place for place in names[1:] if is_bound_from(m, place[0], names[0][1])]


def is_bound_from(m: Machine, site: int, source: str) -> bool:
    """Whether a name or a field is bound, at a site, to just what the place `source` holds: `self.slow = self.net`,
    also beside others, `self.slow, self.head = self.net, make()`."""
    stored: list[t.Bind | t.StoreAttribute] = [*m.index.of(t.Bind), *m.index.of(t.StoreAttribute)]
    registers = [_taken_of(m, event.value) for event in stored if event.site == site]
    made = [m.unit.definitions[register] for register in registers if register >= 0]
    looks = bool(made) and all(isinstance(event, t.Load | t.Attribute) for event in made)
    return looks and all(naming.text_of(m, register) == source for register in registers)


def _taken_of(m: Machine, register: int) -> int:
    """What a value is that is taken, by its place, out of a tuple which the same statement spells out."""
    made = m.unit.definitions[register] if register >= 0 else None
    several = m.unit.definitions[made.value] if isinstance(made, t.Unpack) and made.value >= 0 else None
    if isinstance(made, t.Unpack) and isinstance(several, t.Make) and several.kind in ("tuple", "list"):
        plain = not any(several.stars) and 0 <= made.position < len(several.items)
        return several.items[made.position] if plain else register
    return register


def is_place(m: Machine, key: Key) -> bool:
    """A name of the user's, or a field of `self`. What a wrapper holds is no second name."""
    if isinstance(key, str):
        return not key.startswith(("%", "@")) and "#" not in key
    return isinstance(key, tuple) and key[1].startswith(".") and m.state.object(key[0]).owner == "self"


def field_of(m: Machine, modules: frozenset[int]) -> str:
    """The field of `self` that has held a module since before the method began."""
    for ref in sorted(modules):
        for key in m.state.holders.get(ref, ()):
            cell = m.state.cell(key)
            field = isinstance(key, tuple) and key[1].startswith(".") and m.state.object(key[0]).owner == "self"
            if field and cell is not None and cell.refs == (ref,) and cell.site == -1:
                assert isinstance(key, tuple)
                return key[1][1:]
    return listed.field_of_element(m, modules)


def _held_by(m: Machine, modules: frozenset[int]) -> str:
    """The field of `self` that holds a module, since whenever."""
    fields = [name for _, name in names_of(m, modules) if "." in name]
    return fields[-1].rpartition(".")[2] if len(modules) == 1 and fields else ""


def aliased_fields(m: Machine) -> list[FieldAliased]:
    """The fields of `self` that hold one module when the unit ends."""
    if m.unit.owner < 0 or not m.unit.parameters:
        return []
    me = m.number("argument", m.unit.first)
    held: dict[tuple[int, ...], list[tuple[int, str]]] = {}
    for slot in m.state.slot_names(me):
        cell = m.state.cell(slot)
        if cell is not None and cell.refs and slot[1].startswith("."):
            held.setdefault(cell.refs, []).append((cell.site, slot[1][1:]))
    found = list(_handed_fields(m, held)) if m.unit.name == "__init__" else []
    for (target, copied_from), site in m.fields.tied.items():
        one, other = _held_by(m, frozenset({target})), _held_by(m, frozenset({copied_from}))
        if one and other:
            found.append(FieldAliased(one, other, site, m.state.object(copied_from).sure, m.unit.name, only=True))
    for refs, places in held.items():
        obj = m.state.object(refs[0])
        modules = all(m.state.object(ref).kind in (Kind.MODULE, Kind.UNKNOWN) for ref in refs)
        if modules and len(places) > 1 and not _is_compared(m, {name for _, name in places}):
            (first, source), *others = sorted(places)
            if len(others) > 1 and first < others[0][0] and keeping.is_lazily_made(m, source):
                # The field that a method keeps what it makes in is none of those that are to be two.
                (first, source), *others = others
            if len(refs) > 1:
                whole = f"{m.unit.first}.{source}"
                others = [place for place in others if is_bound_from(m, place[0], whole)]
            lasting = first < 0 and not keeping.is_reset(m, source)
            for site, field in others:
                # Numbers have records, too: of what is not known to be a model, nobody knows that it is trained on.
                record = lasting and obj.kind is Kind.MODULE and is_on_record(m, site)
                maker = _made_apart_by(m, field, source) if first < 0 else None
                apart, trained = maker is not None, _step_below(m, maker)
                set_here = _is_none_elsewhere(m, field, source) and _is_none_elsewhere(m, source)
                only = m.unit.name == "__init__" or set_here
                fact = FieldAliased(field, source, site, obj.sure, m.unit.name, record, apart, only=only)
                found.append(fact._replace(trained=trained))
        single = len(refs) == 1 and obj.kind is Kind.MODULE
        copied = next((s for s in obj.shares if s.how is How.COPY and s.sure), None) if single else None
        if copied is not None and (copied.of,) in held:
            site, field = min(places)
            source = min(held[copied.of,])[1]
            found.append(FieldAliased(field, source, site, obj.sure, m.unit.name, copied=copied.site))
        elif copied is not None and (given := _parameter_of(m, frozenset({copied.of}))):
            site, field = min(places)
            found.append(FieldAliased(field, given, site, obj.sure, m.unit.name, copied=copied.site, handed=True))
    found += [*listed.aliased(m, held), *_begun_fields(m, {fact.field for fact in found})]
    return [*found, *early_stopping.found(m), *_traced_fields(m)]


def _traced_fields(m: Machine) -> Iterator[FieldAliased]:
    """The fields that a constructor sets to another one in another form: `self.target = symbolic_trace(self.net)`."""
    me = m.unit.first
    for name, stores in m.index.stores.items() if m.unit.name == "__init__" else ():
        made = named_apart.held_by(m, stores[0].value) if len(stores) == 1 and stores[0].value >= 0 else None
        traced = isinstance(made, t.Attribute) and made is not m.unit.definitions[stores[0].value]
        if traced and isinstance(made, t.Attribute) and naming.text_of(m, made.base) == me:
            yield FieldAliased(name, made.name, stores[0].site, Sure.LIKELY, m.unit.name, only=True)


def _begun_fields(m: Machine, known: set[str]) -> Iterator[FieldAliased]:
    """The fields that begin as another one when they are still `None`: `if self.slow is None: self.slow = self.net`."""
    me = m.unit.first
    for name, stores in m.index.stores.items():
        if name in known or len(stores) != 1 or m.unit.name == "__init__":
            continue
        made = m.unit.definitions[stores[0].value] if stores[0].value >= 0 else None
        if not isinstance(made, t.Attribute) or naming.text_of(m, made.base) != me or made.name == name:
            continue
        objects = [m.state.object(ref) for ref in m.value(stores[0].value).refs]
        initial = m.world.method(m.unit.owner, "__init__")
        begun = stores[0].site in m.index.on_arms and naming.text_of(m, stores[0].base) == me
        one = len(objects) == 1 and objects[0].kind is Kind.MODULE
        if begun and one and m.world.setters(made.name) <= {initial} and _is_none_elsewhere(m, name):
            yield FieldAliased(name, made.name, stores[0].site, objects[0].sure, m.unit.name, only=True)


def _is_compared(m: Machine, fields: Collection[str]) -> bool:
    """Whether a unit asks which of two fields is less, as nobody can of two models: `self.loss < self.best_loss`."""
    for event in m.index.of(t.Operate):
        if event.symbol in _ORDERS:
            operands = [m.unit.definitions[register] for register in event.operands if register >= 0]
            if any(isinstance(made, t.Attribute) and made.name in fields for made in operands):
                return True
    return False


def _handed_fields(m: Machine, held: Mapping[tuple[int, ...], Sequence[tuple[int, str]]]) -> Iterator[FieldAliased]:
    """The fields that a constructor sets to what it is handed in, as it is, and that nobody else sets."""
    for refs, places in held.items():
        given = _parameter_of(m, frozenset(refs))
        for site, field in places if given and given not in m.world.given_away(m.unit.number) else ():
            bound = is_bound_from(m, site, given) or unwrapping.is_bound_from(m, site, given)
            if bound and m.world.setters(field) <= {m.unit.number}:
                sure = m.state.object(refs[0]).sure
                yield FieldAliased(field, given, site, sure, m.unit.name, only=True, handed=True)


def _is_none_elsewhere(m: Machine, field: str, source: str = "") -> bool:
    """Whether nobody else in the file sets a field of that name to anything but `None`, or a deep copy of what `source`
    holds, which says that it is to be another one."""
    for number in m.world.setters(field) - {m.unit.number}:
        unit = m.world.unit(number)
        for event in m.world.index(unit).of(t.StoreAttribute):
            made = unit.definitions[event.value] if event.name == field and event.value >= 0 else None
            plain = isinstance(made, t.Const) and made.value is None
            copied = _copied(unit, event.value) if source and not plain else None
            if event.name == field and not (plain or (isinstance(copied, t.Attribute) and copied.name == source)):
                return False
    return True


def _copied(unit: t.Unit, register: int) -> t.Event | None:
    source = named_apart.deep_copied(unit, register)
    return unit.definitions[source] if source >= 0 else None


def _made_apart_by(m: Machine, field: str, source: str) -> int | None:
    """The constructor, of this class or of one below it, that puts two modules into two fields, and gives the
    parameters of `source` alone to an optimizer, or loads the state of `source` into the other one."""
    initial = m.world.method(m.unit.owner, "__init__")
    initials = [initial] if initial is not None else []
    for info in m.world.program.classes:
        if m.unit.owner in m.world.lineage(info.number) and "__init__" in info.methods:
            initials.append(info.methods["__init__"])
    return next((number for number in initials if _makes_apart(m, number, field, source)), None)


def _step_below(m: Machine, maker: int | None) -> Write | None:
    """Where a class that is not this one, of whose constructors `maker` is one, steps an optimizer."""
    owner = m.world.unit(maker).owner if maker is not None else m.unit.owner
    return min(_steps_of(m, owner), key=lambda write: write.site, default=None) if owner != m.unit.owner else None


def _steps_of(m: Machine, owner: int) -> list[Write]:
    methods = [machine for machine in m.world.machines.values() if machine.unit.owner == owner]
    return [write for machine in methods for write in machine.writes.values() if write.form == "step"]


def _makes_apart(m: Machine, initial: int, field: str, source: str) -> bool:
    made = m.world.machine_of(initial) if initial != m.unit.number else None
    if made is None:
        return False
    if _is_deep_copy(made, field, source):
        return True
    me = made.number("argument", made.unit.first)
    if (field, source) in made.fields.loaded:
        return True
    one, other = made.state.refs_of((me, f".{field}")), made.state.refs_of((me, f".{source}"))
    if len(one) != 1 or len(other) != 1 or one == other:
        return False
    objects = made.state.object(one[0]), made.state.object(other[0])
    if any(obj.kind is not Kind.MODULE for obj in objects):
        return False
    mine, trained = ({share.storage for share in obj.shares if share.how is How.OWN} for obj in objects)
    moved = {
        share.storage
        for slot in made.state.slot_names(me)
        for ref in made.state.refs_of(slot)
        for share in made.state.object(ref).shares
        if made.state.object(ref).kind is Kind.OPTIMIZER
    }
    return (bool(trained & moved) and not mine & moved) or _steps_by(m, made, source) > _steps_by(m, made, field)


def _is_deep_copy(made: Machine, field: str, source: str) -> bool:
    """Whether a constructor sets a field to a deep copy of what another one holds."""
    for stored in made.index.stores.get(field, ()):
        event = made.unit.definitions[stored.value] if stored.value >= 0 else None
        if isinstance(event, t.Call | t.Invoke) and event.arguments and made.dotted_of(event) == "copy.deepcopy":
            given = made.unit.definitions[event.arguments[0].register]
            if isinstance(given, t.Attribute) and given.name == source:
                return True
    return False


def _steps_by(m: Machine, made: Machine, field: str) -> bool:
    """Whether a method of a class steps an optimizer that a module in a field holds itself: `self.net.optimizer`."""
    steps = _steps_of(m, made.unit.owner)
    return any(write.root.partition(".")[2].startswith(f"{field}.") for write in steps)


def is_on_record(m: Machine, site: int) -> bool:
    """Whether a place is reached where one number is less than another, as where something is the best so far."""
    for branch in m.index.of(t.Branch):
        for arm in branch.arms:
            if has_site(arm, site) and any(_compares(m, event.register, 2) for event in arm if _holds(event)):
                return True
    return False


def _holds(event: t.Event) -> TypeGuard[t.Assume]:
    return isinstance(event, t.Assume) and event.truth


def _compares(m: Machine, register: int, depth: int) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Logic) and depth:
        return any(_compares(m, operand, depth - 1) for operand in event.operands)
    return isinstance(event, t.Operate) and event.symbol in _ORDERS


def note_zip(m: Machine, values: Sequence[Value], site: int) -> None:
    """Iterators are zipped: parameters of two modules, or of one with themselves."""
    for position, one in enumerate(values):
        for other in values[position + 1 :]:
            note_pair(m, one, other, site, "zip")


def has_site(tape: t.Tape, site: int) -> bool:
    """Whether the event at a site is in a tape, at whatever depth."""
    return any(event.site == site for event in t.events(tape))
