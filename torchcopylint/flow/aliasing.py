"""One module under two names: where it is paired with itself, or kept while it is trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeGuard

from torchcopylint.flow import keeping, naming, runs
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldAliased, FieldsPaired, ModuleKept, ModulePaired, ModuleShallow
from torchcopylint.flow.model import ARGUMENT, CONTAINERS, Fact, How, Key, Kind, Sure, Value

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine

WHOLE_MODULE = frozenset({How.PARAMETERS, How.STATE})
_ORDERS = frozenset({"<", ">", "<=", ">="})
MAX_PAIRS = 4
"""So many modules may be meant where one of several is."""
MAX_DEPTH = 3
"""How deep the iterators over a module's parameters are looked into: `zip(a.named_parameters(), ...)`."""


def note_pair(m: Machine, one: Value, other: Value, site: int, form: str) -> None:
    """Two modules (or what iterates over their parameters) meet: `load` from one to the other, or `zip` of both."""
    first, second = modules_behind(m, one, MAX_DEPTH), modules_behind(m, other, MAX_DEPTH)
    given = _parameter_of(m, first), _parameter_of(m, second)
    if all(given) and given[0] != given[1]:
        m.pairs.add((*given, form))
    if form == "load" and m.unit.name == "__init__" and first != second:
        # What a state is loaded into is a module, or an optimizer, whatever else is known of it.
        one_field, other_field = _held_by(m, first or frozenset(one.refs)), _held_by(m, second)
        if one_field and other_field:
            m.loaded_fields.add((one_field, other_field))
    if not first or not second:
        # One of several pairs, as in `for target, net in pairs`: any of one side may meet any of the other.
        for field in _fields_behind(m, one, MAX_DEPTH):
            for paired in _fields_behind(m, other, MAX_DEPTH):
                if field != paired:
                    m.fact(FieldsPaired(site, field, paired, form))
        return
    if first == second:
        called = {_called(m, one, MAX_DEPTH), _called(m, other, MAX_DEPTH)}
        names = [place for place in _names_of(m, first) if place[1] in called]
        if len(names) > 1:
            (_, source), (bound, name) = names[0], names[-1]
            sure = max(Sure.LIKELY, min(m.state.object(ref).sure for ref in first))
            m.fact(ModulePaired(site, name, source, bound, form, sure))
        return
    fields = field_of(m, first), field_of(m, second)
    if all(fields):
        m.fact(FieldsPaired(site, fields[0], fields[1], form))


def _parameter_of(m: Machine, modules: frozenset[int]) -> str:
    """The parameter of the unit that a module was handed in as."""
    objects = [m.state.object(ref) for ref in modules if m.state.object(ref).owner == ARGUMENT]
    return objects[0].text if len(objects) == len(modules) == 1 else ""


def pair_arguments(m: Machine, pairs: Iterable[tuple[str, str, str]], bound: dict[str, Value], site: int) -> None:
    """A call hands modules to a function in which they meet: `soft_update(self.net, self.target)`."""
    for one, other, form in pairs:
        if one in bound and other in bound:
            note_pair(m, bound[one], bound[other], site, form)


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
    if len(value.refs) != 1 or value.refs[0] & 1:
        return frozenset()
    obj = m.state.object(value.refs[0])
    if obj.kind is Kind.MODULE:
        return frozenset(value.refs)
    for share in obj.shares:
        kind = m.state.object(share.of).kind
        # What has `parameters()` is a module; a state dict may be that of anything.
        whole = kind is Kind.MODULE or (kind is Kind.UNKNOWN and share.how is How.PARAMETERS)
        if whole and share.how in WHOLE_MODULE and share.sure:
            found.add(share.of)
    if not found and obj.kind in CONTAINERS and depth:
        for slot in m.state.slot_names(value.refs[0]):
            cell = m.state.cell(slot)
            if cell is not None:
                found |= modules_behind(m, Value(cell.refs, cell.kind), depth - 1)
    return frozenset() if any(ref & 1 for ref in found) else frozenset(found)


def _fields_behind(m: Machine, value: Value, depth: int) -> list[str]:
    """The fields of `self` that hold a module which a value may be the parameters of."""
    found: dict[str, None] = {}
    for ref in value.refs if len(value.refs) <= MAX_PAIRS else ():
        obj = m.state.object(ref)
        sources = [share.of for share in obj.shares if share.how in WHOLE_MODULE] or [ref]
        for source in sources if obj.kind not in CONTAINERS or len(obj.shares) > 1 else ():
            field = field_of(m, frozenset({source}))
            found.update({field: None} if field else {})
        for slot in m.state.slot_names(ref) if obj.kind in CONTAINERS and depth else ():
            held = Value(m.state.refs_of(slot))
            found.update(dict.fromkeys(_fields_behind(m, held, depth - 1)))
    return list(found)


def _names_of(m: Machine, modules: frozenset[int]) -> list[tuple[int, str]]:
    """The names and fields that hold one of some modules itself, by where they were bound."""
    best: list[tuple[int, str]] = []
    for ref in sorted(modules):
        names = []
        for key in m.state.holders.get(ref, ()):
            cell = m.state.cell(key)
            if cell is not None and cell.refs == (ref,) and _is_place(m, key):
                names.append((cell.site, naming.key_text(m, key)))
        names = sorted(set(names))
        if len(names) > len(best):
            best = names
    return best


def _is_place(m: Machine, key: Key) -> bool:
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
    return ""


def _held_by(m: Machine, modules: frozenset[int]) -> str:
    """The field of `self` that holds a module, since whenever."""
    fields = [name for _, name in _names_of(m, modules) if "." in name]
    return fields[-1].rpartition(".")[2] if len(modules) == 1 and fields else ""


def note_called(m: Machine, function: Value, site: int) -> None:
    """What a field of `self` has held since before the method is called, with recording on or off."""
    if runs.is_field_from_before(m, function.root):
        assert isinstance(function.root, tuple)
        m.called_fields.setdefault(function.root[1][1:], {})[m.state.mode.recording] = site


def paired_by_mode(m: Machine) -> list[FieldsPaired]:
    """Fields that are called with recording off only, in a method that calls others with recording on only.

    The one is somebody to learn from, the other one is trained.
    """
    fixed = [(field, modes[Fact.NO]) for field, modes in m.called_fields.items() if set(modes) == {Fact.NO}]
    trained = [field for field, modes in m.called_fields.items() if set(modes) == {Fact.YES}]
    return [FieldsPaired(site, field, other, "modes") for field, site in fixed for other in trained]


def note_use(m: Machine, value: Value, site: int, consumer: str) -> None:
    """A module is used by a name that was put aside under some condition in a loop which went on to train it.

    Or it is a shallow copy of one that was trained on.
    """
    key = value.root
    if not value.marks or len(value.refs) != 1:
        return
    _note_shallow(m, value, site, consumer)
    if not isinstance(key, str):
        return
    obj, cell = m.state.object(value.refs[0]), m.state.cell(key)
    if obj.kind is not Kind.MODULE or cell is None or cell.site < 0 or cell.refs != value.refs:
        return
    for mark in sorted(value.marks):
        write = m.writes.get(mark.write)
        if write is None or mark.own or mark.late or write.form != "step":
            continue
        others = [name for bound, name in _names_of(m, frozenset(value.refs)) if bound < cell.site]
        if others and put_aside(m.unit.tape, cell.site, mark.write):
            name = naming.key_text(m, key)
            # What an optimizer moves by its parameters is a module.
            sure = max(obj.sure, Sure.LIKELY)
            m.fact(ModuleKept(site, name, others[0], cell.site, mark.write, consumer, sure))
            return


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


def put_aside(tape: t.Tape, bound: int, written: int) -> bool:
    """Whether a name is bound on a branch inside the loop that writes, so that it is kept for some turns."""
    for loop in t.events(tape):
        if not isinstance(loop, t.Loop) or not _has_site(loop.body, written):
            continue
        for branch in t.events(loop.body):
            if isinstance(branch, t.Branch) and sum(_has_site(arm, bound) for arm in branch.arms) == 1:
                return True
    return False


def _has_site(tape: t.Tape, site: int) -> bool:
    return any(event.site == site for event in t.events(tape))


def aliased_fields(m: Machine) -> list[FieldAliased]:
    """The fields of `self` that hold one module when the unit ends."""
    if m.unit.owner < 0 or not m.unit.parameters:
        return []
    me = m.number("argument", m.unit.parameters[0].name)
    held: dict[int, list[tuple[int, str]]] = {}
    for slot in m.state.slot_names(me):
        cell = m.state.cell(slot)
        if cell is not None and len(cell.refs) == 1 and slot[1].startswith("."):
            held.setdefault(cell.refs[0], []).append((cell.site, slot[1][1:]))
    found = []
    for ref, places in held.items():
        obj = m.state.object(ref)
        if (
            obj.kind in (Kind.MODULE, Kind.UNKNOWN)
            and len(places) > 1
            and not _is_compared(m, {name for _, name in places})
        ):
            (first, source), *others = sorted(places)
            lasting = first < 0 and not keeping.is_reset(m, source)
            for site, field in others:
                record = lasting and _on_record(m, site)
                apart = first < 0 and _are_made_apart(m, field, source)
                only = m.unit.name == "__init__" or all(_is_none_elsewhere(m, name) for name in (field, source))
                found.append(FieldAliased(field, source, site, obj.sure, m.unit.name, record, apart, only=only))
        copied = (
            next((s for s in obj.shares if s.how is How.COPY and s.sure), None) if obj.kind is Kind.MODULE else None
        )
        if copied is not None and copied.of in held:
            site, field = min(places)
            source = min(held[copied.of])[1]
            found.append(FieldAliased(field, source, site, obj.sure, m.unit.name, copied=copied.site))
    return found


def _is_compared(m: Machine, fields: Collection[str]) -> bool:
    """Whether a unit asks which of two fields is less, as nobody can of two models: `self.loss < self.best_loss`."""
    for event in m.index.of(t.Operate):
        if event.symbol in _ORDERS:
            operands = [m.unit.definitions[register] for register in event.operands if register >= 0]
            if any(isinstance(made, t.Attribute) and made.name in fields for made in operands):
                return True
    return False


def _is_none_elsewhere(m: Machine, field: str) -> bool:
    """Whether nobody else in the file sets a field of that name to anything but `None`."""
    for number in m.world.setters(field) - {m.unit.number}:
        unit = m.world.unit(number)
        for event in m.world.index(unit).of(t.StoreAttribute):
            made = unit.definitions[event.value] if event.name == field and event.value >= 0 else None
            if event.name == field and not (isinstance(made, t.Const) and made.value is None):
                return False
    return True


def _are_made_apart(m: Machine, field: str, source: str) -> bool:
    """Whether the constructor puts two modules into two fields, and gives the parameters of `source` alone to an
    optimizer, or loads the state of `source` into the other one."""
    initial = m.world.method(m.unit.owner, "__init__")
    made = m.world.machine_of(initial) if initial is not None and initial != m.unit.number else None
    if made is None:
        return False
    me = made.number("argument", made.unit.parameters[0].name)
    if (field, source) in made.loaded_fields:
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
    return bool(trained & moved) and not mine & moved


def _on_record(m: Machine, site: int) -> bool:
    """Whether a place is reached where one number is less than another, as where something is the best so far."""
    for branch in m.index.of(t.Branch):
        for arm in branch.arms:
            if _has_site(arm, site) and any(_compares(m, event.register, 2) for event in arm if _holds(event)):
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
