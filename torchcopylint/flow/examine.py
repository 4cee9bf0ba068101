"""A lowered file in, everything found out about it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchcopylint.base.finding import Role
from torchcopylint.base.recursion import deep_recursion
from torchcopylint.flow import (
    asking,
)
from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import (  # noqa: F401  (each registers what its events mean)
    carrying,
    spent_closures,
    spent_fields,
    switching,
)
from torchcopylint.flow.events import (  # noqa: F401  (each registers what its events mean)
    attribute_stores,
    builtin,
    calls,
    conditions,
    control,
    displays,
    items,
    iteration,
    names,
    operators,
    processes,
    properties,
    setting,
)
from torchcopylint.flow.facts import (
    Accumulated,
    Collected,
    ConditionalWrite,
    Constructed,
    DataShared,
    DefaultWritten,
    FieldCollected,
    FileFacts,
    Guest,
    Inside,
    ReadAfter,
    Relation,
    UnitFacts,
    WithHelpers,
    Write,
)
from torchcopylint.flow.files import called_modes, shared_data
from torchcopylint.flow.files.world import World
from torchcopylint.flow.graphs import (
    callbacks,
    gathered,
    kept_gradients,
    passes,
    two_modes,
    unreached,
)
from torchcopylint.flow.interprocedural import (  # noqa: F401  (each registers what its events mean)
    attributes,
    callers,
    class_bodies,
    collating,
    exchanging,
    fields,
    handed_networks,
    kept_outside,
    let_go_elsewhere,
    transforms,
)
from torchcopylint.flow.interprocedural.summaries import SWITCHES, lent_in, places_in, switch_of
from torchcopylint.flow.model import ARGUMENT, FIELD, TENSORS, Fact, How, Kind, Object, Share, Value
from torchcopylint.flow.networks import hooked_outputs
from torchcopylint.flow.program import (
    begun_again,
    chosen_groups,
    consumers,
    gathered_twice,
    mapping,
    named_apart,
    pooled,
    restoring,
    rewrapped,
    sent_to_each,
    serving,
    trained_apart,
    trained_in_turn,
)
from torchcopylint.flow.running import (  # noqa: F401  (each registers what its events mean)
    definitions,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import (  # noqa: F401  (each registers what its events mean)
    aliasing,
    back_again,
    begun_as_entry,
    collecting,
    conditional,
    field_gradients,
    fields_over,
    handed_over,
    keeping,
    lasting,
    left_alone,
    left_in_fields,
    left_in_flight,
    lent_parts,
    rebound_fields,
    renewed,
    replacing,
    scaled_sums,
    sharing,
    taken_over,
    twin_fields,
    windows,
)
from torchcopylint.flow.tapes import (
    bound_each_turn,
    copied_lists,
    edited_each_round,
    expected,
    inlining,
    rescaling,
    scratch,
    summed_up,
    two_sides,
)
from torchcopylint.flow.tapes.helpers import Helpers
from torchcopylint.flow.values.outside import Outside


def examine(program: t.Program) -> FileFacts:
    """Run every unit of a file and gather what was found. Total: whatever the program is, this returns."""
    return found_in(run(program))


def run(program: t.Program, outside: Outside | None = None) -> World:
    """Run every unit of a file, which knows other files as `outside` does."""
    with deep_recursion():
        world = World(program, outside)
        world.run()
    return world


def found_in(world: World) -> FileFacts:
    """What was found in a file that has been run."""
    with deep_recursion():
        for number in sorted(world.machines):
            if handed_networks.learn(world, world.machines[number]):
                world.run_unit(number)
        joined: dict[int, list[Relation]] = {}
        for told in (
            callers.suffering(world),
            callers.entries(world),
            callers.parts(world),
            transforms.found(world),
            collating.found(world),
        ):
            for number, facts in told.items():
                joined.setdefault(number, []).extend(facts)
        shielding = _shielding(world)
        units = tuple(
            _unit_facts(world, world.machines[number], tuple(joined.get(number, ())), shielding)
            for number in sorted(world.machines)
            if world.is_of_file(number)
        )
        # What is found on an object of an heir's class is no more about the class that the method stands in.
        units += tuple(_unit_facts(world, m, (), shielding)._replace(class_number=-1) for m in world.inherited)
        inside: dict[tuple[int, Role], tuple[tuple[int | str, Inside], ...]] = {}
        expanded = _with_helpers(world, shielding, inside)
        called = tuple(_called(world, joined, shielding))
    own = [world.machines[number] for number in sorted(world.machines) if world.is_of_file(number)]
    gaps = tuple((reason, site) for m in own for reason, site in m.gaps)
    elsewhere = {site: places for m in own for site, places in m.called.elsewhere.items()}
    guests = {world.guests.first + rank: place for rank, place in enumerate(world.guests.places)}
    inside |= {at: tuple(places) for m in own for at, places in m.called.inside.items()}
    statements = world.program.statements
    return FileFacts(
        units, gaps, world.steps, elsewhere, expanded, statements, guests, called, inside, _answerable(world, own)
    )


def _answerable(world: World, machines: Sequence[Machine]) -> dict[tuple[int, Role], frozenset[int]]:
    """By a place and a role: the calls that do something there to what they pass, and do not hand on what somebody has
    passed to them."""
    found: dict[tuple[int, Role], set[int]] = {}
    for m in machines:
        summary = world.summary(m.unit.number) if m.called.inside else None
        handed_on = {place.site for place in (*places_in(summary), *lent_in(m))} if summary is not None else set()
        for (call, role), held in m.called.inside.items():
            for _, place in held:
                if place.given and place.site not in handed_on:
                    found.setdefault((place.site, role), set()).add(call)
    return {place: frozenset(leading) for place, leading in found.items()}


def _called(world: World, joined: Mapping[int, list[Relation]], shielding: frozenset[int]) -> Iterator[Guest]:
    """The functions of other files to which this one passes what it knows, and in which something is found; `joined`
    is what is known of a function by its callers."""
    for number in sorted(world.called_at.keys() & world.machines.keys()):
        m = world.machines[number]
        if m.facts or m.writes:
            unasked = _unit_facts(world, world.run_unasked(number), (), shielding)
            asked = _unit_facts(world, m, tuple(joined.get(number, ())), shielding)
            # What makes a hook of it in its own file is told there; what does so here, that file does not know.
            at_home = world.roles_at_home(number)
            asked = asked._replace(roles=asked.roles - at_home)
            unasked = unasked._replace(roles=unasked.roles & at_home)
            yield Guest(asked, unasked, world.called_at[number])


def _with_helpers(
    world: World, shielding: frozenset[int], inside: dict[tuple[int, Role], tuple[tuple[int | str, Inside], ...]]
) -> WithHelpers:
    """What is found in units that have their helpers in them. No two of them share a site. What calls do that are left
    in them goes into `inside`."""
    helpers = Helpers(world)
    found: list[UnitFacts] = []
    places: dict[int, tuple[int, ...]] = {}
    handed: set[int] = set()
    partly: set[int] = set()
    through: set[int] = set()
    constructing: set[int] = set()
    for number in sorted(number for number in world.machines if world.is_of_file(number)):
        expanded = inlining.expanded(helpers, world.machines[number], len(world.program.statements) + len(places))
        if expanded is not None:
            places |= expanded.places
            handed |= expanded.handed
            constructing |= expanded.constructing
            partly |= set() if expanded.whole else expanded.places.keys()
            through |= expanded.places.keys() if expanded.through else set()
            m = world.run_expanded(expanded.unit)
            if handed_networks.learn(world, m):
                m = world.run_expanded(expanded.unit)
            found.append(_without_gathered(world, _unit_facts(world, m, (), shielding), expanded.places))
            for (site, role), held in m.called.inside.items():
                # What storages are called there says nothing to others.
                named = tuple((key, place) for key, place in held if isinstance(key, str))
                inside[expanded.places.get(site, (site,))[-1], role] = named
    dropped = (world.index(unit).dropped for unit in world.program.units) if found else ()
    others = [world.machines[number] for number in sorted(world.machines) if not world.is_of_file(number)]
    guests = tuple(_unit_facts(world, m, (), shielding) for m in others) if found else ()
    return WithHelpers(
        tuple(found),
        places,
        frozenset(handed),
        frozenset(constructing).union(*dropped),
        guests,
        frozenset(partly),
        frozenset(through),
    )


def _without_gathered(world: World, unit: UnitFacts, places: Mapping[int, tuple[int, ...]]) -> UnitFacts:
    """What is found in a unit with its helpers, without what those gather for others than this caller."""
    found = {fact for fact in unit.facts if isinstance(fact, Accumulated) and fact.form in ("figure", "figures")}
    others = frozenset[int]().union(*map(gathered.for_others, world.machines.values())) if found else frozenset()
    apart = {fact for fact in found if places.get(fact.site, (-1,))[-1] in others}
    return unit._replace(facts=tuple(fact for fact in unit.facts if fact not in apart)) if apart else unit


def _shielding(world: World) -> frozenset[int]:
    """The classes (-1: none) of which some method or function switches grad mode off itself, to write what requires
    grad or to have a result written (`out=`)."""
    found = set()
    for m in world.machines.values():
        off = any(write.recording is Fact.NO and _is_refused_with_grad(m, write) for write in m.writes.values())
        if off and m.unit.kind == "function" and not (m.unit.owner >= 0 and world.is_function_class(m.unit.owner)):
            found.add(m.unit.owner)
    return frozenset(found)


def _is_refused_with_grad(m: Machine, write: Write) -> bool:
    """Whether it is for a write that grad mode is off: it would be refused otherwise."""
    if write.kind is Kind.PARAMETER or m.unit.owner < 0:
        return write.kind is Kind.PARAMETER
    written = (m.state.object(ref) for ref in write.storages)
    leaf = any(obj.kind in TENSORS and obj.leaf is Fact.YES and obj.requires_grad > 0 for obj in written)
    return write.form == "out" or leaf or bool(m.backward.unexplained.intersection(write.storages))


def _whole_facts(world: World, m: Machine, found: list[Relation], joined: tuple[Relation, ...]) -> list[Relation]:
    """What a unit has stated event by event, and what is seen when all of it has been run."""
    found += fields.kept(m)
    found += fields.met(m)
    found = [fact for fact in found if not restoring.before_all(m, fact)]
    if world.program.asked:
        found += asking.unanswered(m, world.program)
    found += _defaults_written(world, m)
    found += joined
    found += aliasing.aliased_fields(m)
    found += taken_over.found(m)
    found += two_modes.paired(m)
    found += named_apart.found(m)
    found += rewrapped.found(m)
    found += trained_apart.found(m)
    found += pooled.found(m)
    found += begun_again.found(m)
    found += back_again.found(m)
    found += begun_as_entry.found(m)
    found += trained_in_turn.found(m)
    found += sent_to_each.found(m)
    found += scaled_sums.found(m)
    found += hooked_outputs.found(m)
    found += gathered_twice.found(m)
    found += chosen_groups.found(m)
    ran = passes.found(m)
    found += ran
    found += carrying.found(m)
    found += carrying.of_entries(m)
    found += spent_fields.found(m)
    found += spent_fields.in_loops(m)
    found += spent_fields.of_networks(m)
    found += spent_closures.found(m)
    told = {fact.site for fact in ran if isinstance(fact, Accumulated)}
    found += spent_closures.collected(m, told)
    found += gathered.found(m, told)
    found += keeping.found(m)
    found += mapping.found(m)
    found += callbacks.found(m)
    found += replacing.found(m)
    found += rescaling.found(m)
    found += edited_each_round.found(m)
    found += scratch.found(m)
    found += expected.found(m)
    found += bound_each_turn.found(m)
    found += copied_lists.found(m)
    found += summed_up.found(m)
    found += lent_parts.found(m)
    found += twin_fields.found(m)
    found += left_in_fields.found(m)
    found += left_in_flight.found(m)
    found += twin_fields.shared(m)
    found += fields_over.found(m)
    found += kept_gradients.found(m)
    found += field_gradients.found(m)
    found += rebound_fields.found(m)
    found += kept_gradients.parameters(m)
    found += unreached.found(m)
    if any(isinstance(fact, ReadAfter) for fact in found):
        found += two_sides.found(m)
    return found


def _unit_facts(world: World, m: Machine, joined: tuple[Relation, ...], shielding: frozenset[int]) -> UnitFacts:
    unit = m.unit
    owner = world.program.classes[unit.owner] if unit.owner >= 0 else None
    kept_outside.note(m)
    stated = [fact for site in sorted(m.facts) for fact in m.facts[site]]
    stated = [fact for fact in stated if not isinstance(fact, ReadAfter) or not m.writes[fact.write].unchanged]
    stated = [fact for fact in stated if not isinstance(fact, DataShared) or shared_data.is_of_account(m, fact)]
    found = [shared_data.settled(m, fact) if isinstance(fact, DataShared) else fact for fact in stated]
    found = [fact for fact in found if not isinstance(fact, ConditionalWrite) or conditional.still_held(m, fact)]
    found = [lasting.settled(m, fact) if isinstance(fact, Collected | Constructed) else fact for fact in found]
    found = [collecting.settled(m, fact) if isinstance(fact, FieldCollected) else fact for fact in found]
    if any(isinstance(fact, Collected) and fact.form == "yield" for fact in found) and consumers.let_go(m):
        found = [fact for fact in found if not isinstance(fact, Collected) or fact.form != "yield"]
    found = _whole_facts(world, m, found, joined)
    without = called_modes.without_grad(world, m, found)
    return UnitFacts(
        qualname=unit.qualname,
        name=unit.name,
        kind=unit.kind,
        class_number=unit.owner,
        receiver=unit.first if unit.owner >= 0 else "",
        class_name=owner.name if owner is not None else "",
        class_kind=world.class_kind(unit.owner)[0] if unit.owner >= 0 else Kind.UNKNOWN,
        facts=tuple(found),
        writes=m.writes,
        returns_sources=frozenset(_returned_sources(m) | m.shown.taken_away),
        returns_value=bool(m.results.returned),
        trains=m.backward.trains,
        calls_trainer=m.backward.calls_trainer or spent_closures.trains(m),
        has_no_grad=m.blocks.has_no_grad,
        shielded=unit.owner in shielding,
        called_without_grad=without,
        recorded_elsewhere=without is Fact.UNKNOWN and called_modes.is_recorded_elsewhere(world, m, found),
        takes_inplace=bool(switch_of(unit)) or _asks_inplace(world, unit),
        roles=world.roles_of(unit),
        given_away=let_go_elsewhere.parameters(world, m, found),
        held_by_callers=world.held_by_callers(unit.number),
        feeds_backward=called_modes.feeds_backward(world, unit.number) or serving.is_differentiated(world, unit),
        optional=frozenset(parameter.name for parameter in unit.parameters if parameter.has_default),
        parameters=frozenset(parameter.name for parameter in unit.parameters),
        serves_forward=serving.serves_forward(world, unit.number),
        sets_fields=exchanging.sets_fields(m),
        properties=frozenset(name for name in m.fields.initial if world.method(unit.owner, name) is not None),
    )


def _asks_inplace(world: World, unit: t.Unit) -> bool:
    """Whether a method asks a field of its object whether to write in place: `if self.inplace:`."""
    if unit.owner < 0:
        return False
    asked = (e for e in world.index(unit).named if e.__class__ is t.Attribute and e.name in SWITCHES)
    return any(e.base >= 0 and _is_receiver(unit, e.base) for e in asked)


def _is_receiver(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register]
    return isinstance(made, t.Load) and made.name == unit.first


def _defaults_written(world: World, m: Machine) -> list[DefaultWritten]:
    """Writes that surely reach a parameter whose default is a tensor."""
    found = []
    for write in m.writes.values():
        owner = m.state.object(write.storages[0])
        default = world.default(m.unit.number, owner.text) if owner.owner == ARGUMENT else None
        if default is None and owner.owner == FIELD:
            default = _default_in_field(world, m, write.storages[0])
            of_class = default is None and class_bodies.is_common(m, write.storages[0])
            if of_class and write.form != "load" and len(write.storages) == 1 and write.chain[0].sure:
                found.append(DefaultWritten(write.site, owner.text, write.op, -1, write.sure))
        elif default is not None and default.text == owner.text:
            # `def step(x, seen=seen)` goes on with something of outside, by the name that it has there.
            continue
        if default is not None and len(write.storages) == 1 and write.chain[0].sure:
            sure = min(default.sure, write.sure)
            found.append(DefaultWritten(write.site, owner.text, write.op, default.site, sure))
    return found


def _default_in_field(world: World, m: Machine, storage: int) -> Object | None:
    """The default that the constructor has left in the field of `self` that owns a storage."""
    initial = world.method(m.unit.owner, "__init__") if m.unit.owner >= 0 else None
    summary = world.summary(initial) if initial is not None else None
    if initial is None or summary is None:
        return None
    for item in summary.kept:
        slot = m.fields.initial.get(item.path[0][1:]) if item.how is None and len(item.path) == 1 else None
        if slot is not None and m.number("slot", slot) == storage:
            return world.default(initial, item.kept)
    return None


def _returned_sources(m: Machine) -> set[int]:
    """The storages whose owner itself is returned, alone or in a container, or all of it by the parameter's name."""
    found = {share.storage for value in m.results.returned for share in _of_own_name(m, value)}
    pending = [(ref, 0) for value in m.results.returned for ref in value.refs]
    while pending:
        ref, depth = pending.pop()
        shares = m.state.object(ref).shares
        if any(share.storage == ref for share in shares):
            found.add(ref)
        if m.unit.name == "__call__":
            # Who is called in a chain, as a transform is: its result takes the place of what it was given.
            found |= {share.storage for share in shares if share.how is How.FROM_NUMPY and _is_back(m, share)}
        if depth < 3:
            for slot in m.state.slot_names(ref):
                cell = m.state.cell(slot)
                pending += [(held, depth + 1) for held in cell.refs] if cell is not None else []
    return found


def _is_back(m: Machine, share: Share) -> bool:
    """Whether a tensor sits on all of the array of an argument that is a tensor: who passed that gets it back."""
    arrays = [one for one in m.state.object(share.of).shares if one.storage == share.storage]
    return (
        m.state.object(share.storage).kind is not Kind.ARRAY
        and not (share.region or share.when)
        and bool(arrays)
        and all(one.how is How.NUMPY and one.of == one.storage and not (one.region or one.when) for one in arrays)
    )


def _of_own_name(m: Machine, value: Value) -> list[Share]:
    """How a value sits on the whole of an argument, where it goes by that one's name: it is what became of that."""
    storage = m.number("argument", value.root) if isinstance(value.root, str) else -1
    shares = [share for ref in value.refs for share in m.state.object(ref).shares]
    return [share for share in shares if share.storage == storage and share.how is How.VIEW and not share.when]
