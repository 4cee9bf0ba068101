"""Second names for a model that say that another one is meant: `self.target_net = self.net`, `ac_targ = ac`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsPaired, ModulePaired
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program import unwrapping
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.model import Object
    from torchcopylint.flow.running.machine import Machine

FORM = "named"
_APART = frozenset(
    {"target", "targ", "tgt", "ema", "teacher", "slow", "momentum", "frozen", "old", "prev", "previous", "ref"}
    | {"reference"}
)
"""Words that set one of two models apart from the one that is trained."""
_TRAINED = frozenset({"online", "current", "main"})
"""Words that say so of the other one."""
_MODELS = frozenset({"model", "net", "network", "policy", "student", "live", "learner", "encoder"})
"""Words for any model, or for one that learns."""
_NETWORKS = frozenset({"model", "net", "network"})
_BEFORE = frozenset({"old", "prev", "previous"})
_FOLLOWING = _BEFORE | {"ema", "teacher", "slow", "frozen", "reference"}
"""Words that are said alone of a model that is not the one that learns."""
_RETURNING = frozenset({"eval", "train", "requires_grad_", "to", "cuda", "cpu", "float"})
"""Methods of a module that return it."""
_FORMS = frozenset({"torch.jit.trace", "torch.jit.script", "torch.fx.symbolic_trace"})
"""Functions that make the same network in another form: the parameters are those of what they are given."""
_NAMESPACE = "types.SimpleNamespace"
_OF_MODULES = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "requires_grad_"})


def found(m: Machine) -> Iterator[Relation]:
    """The names and fields of a unit that are bound, on all paths, to what another one holds and go on beside it."""
    if m.unit.kind in ("function", "module"):
        yield from _names(m)
        yield from _unpacked(m)
        yield from _entries(m)
        yield from _stored(m)
        yield from _records(m)
    if m.unit.owner >= 0 and m.unit.parameters:
        yield from _fields(m)


def is_apart(name: str, source: str) -> bool:
    """Whether a name is another one with a word more that sets it apart: `target_encoder`, of `online_encoder`."""
    words = _words(name)
    if _APART.isdisjoint(words):
        return False
    rest = [word for word in words if word not in _APART]
    others = [word for word in _words(source) if word not in _TRAINED]
    # `q_target` is that of `q_network`: that it is a network need not be said twice.
    called = [[word for word in some if word not in _NETWORKS] for some in (rest, others)]
    return rest == others or (called[0] == called[1] != [])


def _words(name: str) -> list[str]:
    """The words of a name. `qtarget` and `qnet` are two, as `q_target` and `q_net` are."""
    found = []
    for word in name.lower().strip("_").split("_"):
        joined = word[:1] == "q" and word[1:] in _APART | _NETWORKS
        found += [word[:1], word[1:]] if joined else [word]
    return found


def is_another(name: str, source: str) -> bool:
    """The same of two that stand beside one another in a record: what it is that is set apart need not be said."""
    words, others = (set(one.lower().strip("_").split("_")) for one in (name, source))
    return is_apart(name, source) or (words <= _APART and others <= _TRAINED | _MODELS)


def _is_earlier(name: str, source: str) -> bool:
    """Whether a name is that of how a model was, or of one that follows it, and says no more: `old = policy`."""
    words, others = (set(_words(one)) for one in (name, source))
    return words <= _FOLLOWING and others <= _TRAINED | _MODELS


def _names(m: Machine) -> Iterator[Relation]:
    for name, binds in m.index.binds.items():
        made = held_by(m, binds[0].value) if len(binds) == 1 and binds[0].value >= 0 else None
        if made.__class__ is t.Attribute and binds[0].site not in m.index.on_arms:
            yield from _of_field(m, name, made, binds[0].site)
        apart = made.__class__ is t.Load and (is_apart(name, made.name) or _is_earlier(name, made.name))
        if made.__class__ is not t.Load or not apart or binds[0].site in m.index.on_arms:
            continue
        bound = binds[0].site
        if any(bind.site > bound for bind in m.index.binds.get(made.name, ())) or not may_be_model(m, binds[0].value):
            # The name goes on to hold another one.
            continue
        units = [m.unit, *_inside(m, m.unit.number)]
        used = [site for unit in units for site in _asked(m, unit, name) if site > bound]
        if m.value(binds[0].value).kind is Kind.MODULE:
            # Whoever calls it has said by its name which one is meant.
            used += [call.site for call in m.index.of(t.Call) if naming.text_of(m, call.function) == name]
        loads = (event for unit in units for event in m.world.index(unit).of(t.Load) if event.site > bound)
        if used and any(event.name == made.name for event in loads):
            yield ModulePaired(min(used), name, made.name, bound, FORM, Sure.LIKELY)


def held_by(m: Machine, register: int) -> t.Event | None:
    """What a register holds, be it in another form: `self.target = torch.jit.script(self.net)`."""
    made = m.unit.definitions[register]
    if (made.__class__ is t.Call or made.__class__ is t.Invoke) and m.dotted_of(made) in _FORMS and made.arguments:
        given = made.arguments[0].register
        return m.unit.definitions[given] if given >= 0 else None
    return made


def _entries(m: Machine) -> Iterator[Relation]:
    """The entries of a dictionary that are one network: `{"online": net, "target": net}`, and stay that."""
    for made in m.index.of(t.Make):
        if made.kind != "dict":
            continue
        named = [
            (key, made.items[number])
            for number, register in enumerate(made.keys)
            if register >= 0 and isinstance(key := m.value(register).const, str)
        ]
        models: dict[tuple[int, ...], list[str]] = {}
        for key, item in named:
            if _is_model(m, item):
                models.setdefault(m.value(item).refs, []).append(key)
        for key, item in named if models else ():
            source = next((one for one in models.get(m.value(item).refs, ()) if is_apart(key, one)), None)
            if source is not None and not _is_set(m, key):
                loaded = m.unit.definitions[item]
                bound = loaded.site if isinstance(loaded, t.Load | t.Attribute) else made.site
                yield ModulePaired(made.site, f"[{key!r}]", f"[{source!r}]", bound, FORM, Sure.LIKELY)


def _stored(m: Machine) -> Iterator[Relation]:
    """The entries of a dictionary of which one is set to the network that stands under another key:
    `nets["q_target"] = nets["q"]`."""
    keyed = [(store, key) for store in m.index.of(t.StoreItem) if isinstance(key := _key(m, store.subscript), str)]
    for store, key in keyed:
        taken = _handed_back(m, store.value)
        source = _key(m, taken.subscript) if isinstance(taken, t.Item) else None
        if not isinstance(taken, t.Item) or not isinstance(source, str) or store.site in m.index.on_arms:
            continue
        owner = naming.text_of(m, store.base)
        again = [one for one, other in keyed if other == key and naming.text_of(m, one.base) == owner]
        one = len(again) == 1 and owner == naming.text_of(m, taken.base) and _is_model(m, store.value)
        if one and is_apart(key, source):
            yield ModulePaired(store.site, f"[{key!r}]", f"[{source!r}]", store.site, FORM, Sure.LIKELY)


def _handed_back(m: Machine, register: int) -> t.Event | None:
    """What a register holds, behind methods of a module that hand the module back: `nets["q"].eval()`."""
    made = m.unit.definitions[register] if register >= 0 else None
    while isinstance(made, t.Invoke) and made.name in _RETURNING and made.base >= 0:
        made = m.unit.definitions[made.base]
    return made


def _key(m: Machine, subscript: t.Index) -> object:
    part = subscript[0] if len(subscript) == 1 else t.NO_REGISTER
    return m.value(part).const if isinstance(part, int) and part >= 0 else None


def _is_model(m: Machine, register: int) -> bool:
    return _is_one_model(m, register, register)


def _records(m: Machine) -> Iterator[Relation]:
    """The fields of a record that are one network when the unit ends: `Nets(q=net, q_target=net)`. A class with a
    constructor of its own may copy what it is given, and says itself what it does with its fields."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in calls:
        refs = m.value(call.out).refs if len(call.arguments) > 1 else ()
        if len(refs) != 1 or not (m.dotted_of(call) == _NAMESPACE or _is_record(m, m.state.object(refs[0]))):
            continue
        if isinstance(call, t.Call) and isinstance(m.value(call.function).const, FunctionReference):
            # A function that has made it says so itself.
            continue
        slots = {slot[1][1:]: m.state.refs_of(slot) for slot in m.state.slot_names(refs[0]) if slot[1][:1] == "."}
        for name, held in slots.items():
            one = len(held) == 1 and m.state.object(held[0]).kind is Kind.MODULE
            source = next((other for other in slots if is_another(name, other) and slots[other] == held), None)
            if one and source is not None:
                yield ModulePaired(call.site, name, source, call.site, FORM, Sure.LIKELY)


def _is_record(m: Machine, obj: Object) -> bool:
    """Whether an object is one of a class of the file that only says which fields it has."""
    number = m.world.local_class(obj.type)
    plain = number is not None and m.world.class_kind(number)[0] is not Kind.MODULE
    written = number is not None and m.world.method(number, "__init__") is not None
    return obj.kind in (Kind.INSTANCE, Kind.TUPLE) and plain and not written


def _unpacked(m: Machine) -> Iterator[Relation]:
    """Names for the parts of what a function returned, two of which are one network: `net, target_net = make()`."""
    bound: dict[int, list[tuple[str, t.Bind]]] = {}
    for name, binds in m.index.binds.items():
        made = m.unit.definitions[binds[0].value] if len(binds) == 1 and binds[0].value >= 0 else None
        whole = m.unit.definitions[made.value] if made.__class__ is t.Unpack and made.value >= 0 else None
        if made.__class__ is t.Unpack and (whole.__class__ is t.Call or whole.__class__ is t.Invoke):
            bound.setdefault(made.value, []).append((name, binds[0]))
    for together in bound.values():
        for name, bind in together:
            # What was there before is told where it was kept.
            beside = _BEFORE.isdisjoint(name.lower().split("_"))
            sources = [one for one, other in together if beside and is_another(name, one) and _is_one(m, bind, other)]
            loads = {event.name for event in m.index.of(t.Load) if event.site > bind.site} if sources else set()
            if sources and {name, sources[0]} <= loads:
                used = min(e.site for e in m.index.of(t.Load) if e.name == name and e.site > bind.site)
                yield ModulePaired(used, name, sources[0], bind.site, FORM, Sure.LIKELY)


def _is_one(m: Machine, one: t.Bind, two: t.Bind) -> bool:
    return _is_one_model(m, one.value, two.value)


def _is_set(m: Machine, key: str) -> bool:
    """Whether a unit puts something else under a key."""
    parts = [part for store in m.index.of(t.StoreItem) for part in store.subscript]
    return any(isinstance(part, int) and m.value(part).const == key for part in parts)


def _is_one_model(m: Machine, one: int, two: int) -> bool:
    refs = m.value(one).refs
    return len(refs) == 1 and refs == m.value(two).refs and m.state.object(refs[0]).kind is Kind.MODULE


def _of_field(m: Machine, name: str, made: t.Attribute, bound: int) -> Iterator[Relation]:
    """A name for what a field of the object holds, that is switched off: `requires_grad(target_encoder, False)`."""
    if naming.text_of(m, made.base) != m.unit.first or m.unit.owner < 0 or not is_apart(name, made.name):
        return
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    used = [call.site for call in calls if call.site > bound and _switches_off(m, call, name)]
    used += [site for site in _asked(m, m.unit, name) if site > bound]
    if used and may_be_model(m, made.out):
        yield ModulePaired(min(used), name, naming.text_of(m, made.out), bound, FORM, Sure.LIKELY)


def _switches_off(m: Machine, call: t.Call | t.Invoke, name: str) -> bool:
    given = [m.unit.definitions[argument.register] for argument in call.arguments if argument.register >= 0]
    named = any(isinstance(one, t.Load) and one.name == name for one in given)
    return named and any(isinstance(one, t.Const) and one.value is False for one in given)


def _inside(m: Machine, number: int) -> Iterator[t.Unit]:
    for unit in m.world.program.units:
        if unit.parent == number and unit.kind in ("function", "lambda"):
            yield unit
            yield from _inside(m, unit.number)


def _asked(m: Machine, unit: t.Unit, name: str) -> Iterator[int]:
    """Where a unit asks what a name holds for what models have."""
    for event in m.world.index(unit).of(t.Invoke):
        base = unit.definitions[event.base] if event.base >= 0 and event.name in _OF_MODULES else None
        if isinstance(base, t.Load) and base.name == name:
            yield event.site


def _fields(m: Machine) -> Iterator[Relation]:
    for name, stores in m.index.stores.items():
        made = held_by(m, stores[0].value) if len(stores) == 1 and stores[0].value >= 0 else None
        if len(stores) == 1:
            yield from _of_handed(m, name, stores[0])
            yield from _of_constructor(m, name, stores[0])
        if not isinstance(made, t.Attribute) or not is_apart(name, made.name):
            continue
        me = m.unit.first
        owner = naming.text_of(m, made.base)
        if stores[0].site in m.index.on_arms and (owner == me or not _is_unset(m, name, stores[0].site)):
            continue
        mine = owner == me == naming.text_of(m, stores[0].base)
        other = owner in {parameter.name for parameter in m.unit.parameters[1:]} and kinds.named_model(made.name)
        if other and may_be_model(m, stores[0].value):
            # What another object trains: `self.prev_model = trainer.model`.
            handed = _handed(m, name)
            own = {event.site for event in m.index.events}
            used = [site for site in handed if site > stores[0].site] or [site for site in handed if site not in own]
            if used:
                source = naming.text_of(m, made.out)
                yield ModulePaired(min(used), f"{me}.{name}", source, stores[0].site, FORM, Sure.LIKELY)
        if mine and may_be_model(m, stores[0].value):
            asked = any(_uses(m, one, _OF_MODULES) for one in (name, made.name))
            asked = asked or _is_moved_by_others(m, name, made.name)
            used = [site for site in _uses(m, name) if site > stores[0].site] if asked else []
            if used:
                yield FieldsPaired(min(used), name, made.name, FORM)


def _of_constructor(m: Machine, field: str, store: t.StoreAttribute) -> Iterator[Relation]:
    """What a constructor, and nobody else, sets to a model that it holds already, though no method of its class uses
    both: others do, who ask its object for them, in the file or, if that makes no such object, in another one.
    `self.critic_target = self.critic`."""
    made = _handed_back(m, store.value)
    own = isinstance(made, t.Attribute) and m.unit.first == naming.text_of(m, made.base) == naming.text_of(
        m, store.base
    )
    alone = (
        m.unit.name == "__init__" and m.world.setters(field) <= {m.unit.number} and store.site not in m.index.on_arms
    )
    if not isinstance(made, t.Attribute) or not own or not alone or not is_apart(field, made.name):
        return
    if m.value(store.value).kind is Kind.MODULE and not _handed(m, field):
        looks = (m.world.index(unit).of(t.Attribute) for unit in m.world.program.units if unit.owner != m.unit.owner)
        name = f"{m.unit.first}.{field}"
        met = [event.site for events in looks for event in events if event.name == field]
        if met or not m.world.may_be_handed(m.unit, name):
            site = min(met, default=store.site)
            yield ModulePaired(site, name, naming.text_of(m, made.out), store.site, FORM, Sure.LIKELY)


def _of_handed(m: Machine, field: str, store: t.StoreAttribute) -> Iterator[Relation]:
    """What a method is handed and keeps as what the model was before, `def end_task(self, net): self.old_net = net`,
    where another method is handed that model as it is by then, and looks at both."""
    given = unwrapping.parameter_of(m, m.value(store.value).refs)
    named = m.unit.name == "__init__" or m.unit.name.startswith("set") or store.site in m.index.on_arms
    if named or not is_another(field, given) or not _is_unset(m, field, store.site, copies=True):
        return
    handed = set(_handed(m, field))
    if naming.text_of(m, store.base) != m.unit.first or not may_be_model(m, store.value):
        return
    if not kinds.named_model(given) and not _uses(m, field):
        # `self.prev_frame = frame`: nobody calls what is kept.
        return
    for unit in m.world.program.units:
        others = unit.owner == m.unit.owner and unit is not m.unit and any(one.name == given for one in unit.parameters)
        index = m.world.index(unit)
        used = handed & {event.site for event in index.events} if others else set()
        if used and any(event.name == given for event in index.of(t.Load)):
            yield ModulePaired(min(used), f"{m.unit.first}.{field}", given, store.site, FORM, Sure.LIKELY)
            return


def _is_moved_by_others(m: Machine, name: str, source: str) -> bool:
    """Whether methods of a class call what two fields hold, and hand the one that is set apart to some function:
    `freeze(self.backbone_momentum)`."""
    called = _uses(m, name)
    return bool(called and _uses(m, source)) and not set(_handed(m, name)) <= set(called)


def _is_unset(m: Machine, field: str, but: int, *, copies: bool = False) -> bool:
    """Whether a field that is to hold how a model was before is set to nothing but `None` elsewhere in its class, or to
    copies."""
    if _BEFORE.isdisjoint(_words(field)):
        return False
    for unit in m.world.program.units:
        stores = m.world.index(unit).stores.get(field, ()) if unit.owner == m.unit.owner else ()
        for store in stores:
            made = unit.definitions[store.value] if store.value >= 0 else None
            none = isinstance(made, t.Const) and made.value is None
            if store.site != but and not none and not (copies and deep_copied(unit, store.value) >= 0):
                return False
    return True


def deep_copied(unit: t.Unit, register: int) -> int:
    """The register of what a register holds a deep copy of, moved or not: `deepcopy(self.net).to(device)`; or -1."""
    made = unit.definitions[register] if register >= 0 else None
    while isinstance(made, t.Invoke) and made.name != "deepcopy" and made.base >= 0:
        made = unit.definitions[made.base]
    called = unit.definitions[made.function] if isinstance(made, t.Call) else made
    named = isinstance(called, t.Load | t.Invoke) and called.name == "deepcopy"
    given = isinstance(made, t.Call | t.Invoke) and bool(made.arguments)
    return made.arguments[0].register if named and given and isinstance(made, t.Call | t.Invoke) else t.NO_REGISTER


def may_be_model(m: Machine, register: int) -> bool:
    """Whether a register holds a module, or what nobody knows to be something else."""
    value = m.value(register)
    known = all(m.state.object(ref).kind in (Kind.MODULE, Kind.UNKNOWN) for ref in value.refs)
    return known and value.kind in (Kind.MODULE, Kind.UNKNOWN) and value.const is None


def _uses(m: Machine, field: str, names: frozenset[str] = frozenset()) -> list[int]:
    """Where methods of a class call what a field of their object holds, or a method of that, if need be one of some."""
    found: list[int] = []
    for unit in m.world.program.units:
        if unit.owner != m.unit.owner or unit.kind != "function":
            continue
        index = m.world.index(unit)
        calls = [(call.function, call.site) for call in index.of(t.Call)] if not names else []
        calls += [(call.base, call.site) for call in index.of(t.Invoke) if not names or call.name in names]
        for register, site in calls:
            held = unit.definitions[register] if register >= 0 else None
            owner = unit.definitions[held.base] if isinstance(held, t.Attribute) and held.base >= 0 else None
            if isinstance(held, t.Attribute) and held.name == field and isinstance(owner, t.Load):
                found += [site] if owner.name == unit.first else []
        if not names:
            # `self.target(x)`
            called = (call for call in index.of(t.Invoke) if call.name == field)
            found += [call.site for call in called if _is_first(unit, call.base)]
    return found


def _is_first(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and made.name == unit.first


def _handed(m: Machine, field: str) -> list[int]:
    """Where methods of a class hand what a field holds to a function, call it, or call a method of it."""
    found = _uses(m, field)
    for unit in m.world.program.units:
        if unit.owner == m.unit.owner and unit.kind == "function":
            index = m.world.index(unit)
            calls: list[t.Call | t.Invoke] = [*index.of(t.Call), *index.of(t.Invoke)]
            for call in calls:
                given = [unit.definitions[argument.register] for argument in call.arguments if argument.register >= 0]
                if any(isinstance(one, t.Attribute) and one.name == field for one in given):
                    found.append(call.site)
    return found
