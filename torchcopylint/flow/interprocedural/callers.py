"""Callers that go on using what they passed to a function which writes it and returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import CallerSuffers, EntryWritten, PartSuffers, ReadAfter, Write
from torchcopylint.flow.interprocedural.summaries import argument_paths
from torchcopylint.flow.model import COMPARISONS, How, Kind, Sure
from torchcopylint.flow.tapes import giving, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine


_SPELT_OUT = frozenset({"method", "augmented", "item", "out", "call", "operator"})
_NOTHING: tuple[int, str, bool, str, tuple[str, ...]] = (-1, "", False, "", ())
MAX_DEPTH = 3
"""So many functions may hand a parameter on to the one that writes it."""


def suffering(world: World) -> dict[int, list[CallerSuffers]]:
    """By the unit of each function that writes and returns a parameter: who reads what was passed afterwards.

    A caller that drops the result calls the function for its effect. One that calls it again with the same tensor may
    mean to go on from there.
    """
    found: dict[int, list[CallerSuffers]] = {}
    for m in [*(world.machines[number] for number in sorted(world.machines)), *world.inherited]:
        dropped = m.index.dropped if m.called.writes else frozenset()
        for site in sorted(m.facts) if m.called.writes else ():
            for fact in m.facts[site]:
                if not isinstance(fact, ReadAfter) or not fact.certain or site == fact.write:
                    continue
                aside = _put_aside(m, fact) if not fact.own else ""
                if not fact.own and not aside:
                    continue
                if fact.own and fact.write in m.called.writes and _goes_back(m, fact.write):
                    continue
                unit, parameter, returned, passed, path = m.called.writes.get(fact.write, _NOTHING)
                handed_on = _handed_on(world, unit, parameter) if not path else None
                if handed_on is not None:
                    unit, parameter, returned = handed_on
                callee = world.machines.get(unit)
                if not (world.is_of_file(m.unit.number) or world.is_of_file(unit)):
                    # What one function of other files suffers from another, their files tell.
                    continue
                for_effect = (fact.write in dropped and handed_on is None) or _is_left(m, fact.write)
                write = _first_write(callee, parameter, path) if callee is not None and not for_effect else None
                if callee is None or write is None or (passed and fact.own and fact.name != passed):
                    # A call that writes two of its arguments is told of the one whose parameter is known.
                    continue
                taken = _taken_out(callee, write) if path else _viewed(callee, write) or parameter
                worked = bool(taken) and not _is_filled(m, fact) and _is_worked_on(callee, write, taken, parameter)
                second = "" if returned or path else _second_name(write, parameter)
                if returned or second or worked:
                    # What is written is known for what it is on that path, whatever is known where others join it.
                    wrote = m.writes.get(fact.write)
                    sure = min(write.sure, max(fact.sure, wrote.sure) if wrote is not None else fact.sure)
                    name = f"{parameter}{''.join(path)}"
                    kept = aside or fact.name
                    suffers = CallerSuffers(write.site, name, write.op, fact.write, kept, site, sure, second)
                    suffers = suffers._replace(worked=worked and not (returned or second))
                    found.setdefault(unit, []).append(suffers)
        for call in sorted(m.called.writes) if m.unit.name == "__init__" else ():
            told = _in_other_methods(m, call) if call not in dropped and not _goes_back(m, call) else None
            if told is not None:
                found.setdefault(m.called.writes[call][0], []).append(told)
    return found


def _put_aside(m: Machine, fact: ReadAfter) -> str:
    """The second name that is read, if it was given to the very thing before it was passed, which goes on as what the
    call returns: `raw = x; x = scale(x)`. Of `x if done else raw`, the one that is read on its arm."""
    write = m.writes.get(fact.write)
    if fact.element or fact.asked or not fact.hows <= {None} or write is None or not write.name.isidentifier():
        return ""
    name, bound = fact.name, fact.bound
    hidden = next((one for one in m.index.of(t.Bind) if one.site == bound and one.name.startswith("%")), None)
    load = m.unit.definitions[hidden.value] if hidden is not None and hidden.value >= 0 else None
    if isinstance(load, t.Load):
        values = uses.bindings_before(m, load)
        sites = [one.site for one in m.index.of(t.Bind) if one.value in values and one.name == load.name]
        name, bound = load.name, max(sites, default=-1)
    taken = m.consumer_of(m.index.calls.get(fact.write, t.NO_REGISTER))
    goes_on = not _goes_back(m, fact.write) or isinstance(taken, t.Bind)
    return name if goes_on and name.isidentifier() and name != write.name and 0 <= bound < fact.write else ""


def parts(world: World) -> dict[int, list[PartSuffers]]:
    """By the unit that writes: what it takes out of a parameter, gives a name of its own, and writes by that name
    (`shown = out.logits.detach(); shown.clamp_(0, 1)`), while a caller goes on with that part of what it has passed."""
    found: dict[int, list[PartSuffers]] = {}
    for m in (world.machines[number] for number in sorted(world.machines)):
        for site in sorted(m.facts) if m.called.part_writes else ():
            for fact in m.facts[site]:
                if not isinstance(fact, ReadAfter) or not (fact.own and fact.certain) or site == fact.write:
                    continue
                unit, parameter, path = m.called.part_writes.get(fact.write, (-1, "", ()))
                callee = world.machines.get(unit)
                write = _first_write(callee, parameter, path) if callee is not None else None
                if callee is None or write is None or not (world.is_of_file(m.unit.number) or world.is_of_file(unit)):
                    continue
                own = callee.unit.owner >= 0 and parameter == callee.unit.first
                if write.named and not own and not (fact.write in m.called.writes and _goes_back(m, fact.write)):
                    sure = min(write.sure, fact.sure)
                    told = PartSuffers(write.site, write.owner_name, fact.write, fact.name, site, sure)
                    found.setdefault(unit, []).append(told)
    return found


def _handed_on(world: World, unit: int, parameter: str) -> tuple[int, str, bool] | None:
    """The function that writes a parameter, under its own name for it, where the one that is called only hands it on
    and uses what it gets for it; and whether it returns it."""
    found = None
    for _ in range(MAX_DEPTH):
        m = world.machines.get(unit)
        write = _first_write(m, parameter) if m is not None else None
        if m is None or write is None or write.site not in m.called.writes or write.site in m.index.dropped:
            return found
        unit, parameter, returned, _passed, path = m.called.writes[write.site]
        callee = world.machines.get(unit)
        if path or callee is None or callee is m or callee.unit.name == "forward" or _goes_back(m, write.site):
            # What a network does to its input is told where it is called.
            return found
        found = unit, parameter, returned
    return found


def _in_other_methods(m: Machine, call: int) -> CallerSuffers | None:
    """What a constructor keeps in a field, it hands to a function that works on it; other methods read the field."""
    unit, parameter, returned, _, path = m.called.writes[call]
    callee, wrote = m.world.machines.get(unit) if not path else None, m.writes.get(call)
    write = _first_write(callee, parameter) if callee is not None else None
    if callee is None or wrote is None or write is None or not wrote.name.startswith(f"{m.unit.first}."):
        return None
    field = wrote.name.partition(".")[2]
    worked = not returned and _is_worked_on(callee, write, parameter)
    if not (returned or worked) or not field.isidentifier() or m.world.setters(field):
        return None
    reads = [
        event.site
        for other in m.world.program.units
        if other.owner == m.unit.owner and other.number not in (m.unit.number, unit)
        for event in m.world.index(other).of(t.Attribute)
        if event.name == field and isinstance(base := other.definitions[event.base], t.Load) and base.name == "self"
    ]
    sure = min(write.sure, wrote.sure, Sure.LIKELY)
    return (
        CallerSuffers(write.site, parameter, write.op, call, wrote.name, min(reads), sure, "", worked)
        if reads
        else None
    )


def entries(world: World) -> dict[int, list[EntryWritten]]:
    """By the unit that writes: what stands in a dictionary under a key, is written, and is put under another key then.

    `labels = batch["ids"]`, `labels[mask] = -100`, `batch["labels"] = labels`: whoever gets the dictionary finds two.
    Or it is put there before, and written by one of the keys.
    So does a call that is passed both, the one by its key and the other by that name.
    """
    found: dict[int, list[EntryWritten]] = {}
    for m in [*(world.machines[number] for number in sorted(world.machines)), *world.inherited]:
        for site in sorted(m.facts):
            reads = [fact for fact in m.facts[site] if isinstance(fact, ReadAfter) and fact.own and fact.certain]
            for earlier in filter(_is_entry, reads):
                for later in reads:
                    write = m.writes[earlier.write]
                    same = earlier.place == later.place and earlier.write == later.write
                    two = _are_two_entries(write, earlier, later) or _are_passed_to_one(write, earlier, later)
                    if same and two and write.form in _SPELT_OUT:
                        unit, wrote = _who_writes(m, write)
                        fact = EntryWritten(
                            wrote.site,
                            wrote.root or wrote.name,
                            wrote.op,
                            earlier.name,
                            later.name,
                            later.bound,
                            site,
                            write.sure,
                            "argument" if earlier.consumer in _PASSED else earlier.consumer,
                        )
                        known = found.setdefault(unit, [])
                        known += [fact] if fact not in known else []
    return found


def _is_entry(read: ReadAfter) -> bool:
    return read.own and read.element and read.certain and read.name.endswith("']") and read.hows <= {None}


def _are_two_entries(write: Write, earlier: ReadAfter, later: ReadAfter) -> bool:
    """Whether what stands under two keys of one dictionary was written by somebody who meant one of them.

    Who writes an entry by its own key, and puts it under another one then, means the other one to be the same. Who puts
    it there first, and writes one of the two then, does not.
    """
    if not _is_entry(later) or earlier.name.rpartition("[")[0] != later.name.rpartition("[")[0]:
        return False
    between = earlier.bound < write.site < later.bound and (write.name != earlier.name or write.form == "call")
    behind = earlier.bound < later.bound < write.site and write.name in (earlier.name, later.name)
    return between or behind


def _are_passed_to_one(write: Write, entry: ReadAfter, second: ReadAfter) -> bool:
    """Whether one call is passed an entry, and the name by which it was written, as two: `model(b["ids"], labels)`."""
    named = second.name == write.root and second.name.isidentifier() and second.bound < write.site
    passed = second.consumer == "argument" and entry.consumer in _PASSED and entry.target == second.target
    before = entry.bound < write.site
    return named and passed and before and not second.element and second.hows <= {None}


_PASSED = frozenset({"argument", "passed"})


def _who_writes(m: Machine, write: Write) -> tuple[int, Write]:
    """The unit that does what a write says: the function that is called, if it is one of the file."""
    unit, parameter, path = m.called.part_writes.get(write.site, (-1, "", ()))
    callee = m.world.machines.get(unit)
    if callee is not None:
        storages = [storage for storage, place in argument_paths(callee).items() if place == (parameter, path)]
        hits = [one for one in callee.writes.values() if list(one.storages) == storages]
        if hits:
            return unit, min(hits, key=lambda one: one.site)
    return m.unit.number, write


def _second_name(write: Write, parameter: str) -> str:
    """The name that a function has given to a whole parameter, as if to work on a copy, and by which it writes it.

    An activation gives its result another name, `h = relu(x, inplace=True)`, and writes what it is given.
    """
    if write.form == "activation" and write.result != parameter:
        return write.result
    second = write.root.isidentifier() and write.root != parameter and all(link.how is None for link in write.chain)
    return write.root if second else ""


def _taken_out(callee: Machine, write: Write) -> str:
    """The name by which a function writes a part of a parameter, if it has taken that out once: `x = batch["x"]`."""
    bound = [callee.unit.definitions[one.value] for one in callee.index.binds.get(write.root, ()) if one.value >= 0]
    bound = [made for made in bound if not isinstance(made, t.Augment)]
    return write.root if len(bound) == 1 and all(link.how is None for link in write.chain) else ""


def _viewed(callee: Machine, write: Write) -> str:
    """The name by which a function writes a view of a parameter that it has taken once, whatever else it is given:
    `targets = tokens[:, 1:]`. What stands at a place that another argument names is there to be kept."""
    bound = [callee.unit.definitions[one.value] for one in callee.index.binds.get(write.root, ()) if one.value >= 0]
    hows = {link.how for link in write.chain}
    if len(bound) != 1 or hows == {None} or not hows <= _VIEWS:
        return ""
    made = bound[0]
    return "" if isinstance(made, t.Item) and _is_named(callee, made.subscript) else write.root


def _is_named(callee: Machine, index: t.Index) -> bool:
    """Whether an index has anything in it but slices and constants."""
    made = callee.unit.definitions
    parts = [
        bound for one in index for bound in (one if isinstance(one, t.Slice) else (one,)) if bound != t.NO_REGISTER
    ]
    return not all(isinstance(made[part], t.Const | t.Operate) for part in parts)


_VIEWS = frozenset({None, How.VIEW, How.INDEX})


def _is_worked_on(callee: Machine, write: Write, parameter: str, whole: str = "") -> bool:
    """Whether a function computes what it returns from a parameter that it changes on the way, for its own ends.

    Or from a part of one, `whole`, that it has given a name.

    What is put in comes from nowhere else: else it may be there to be kept up to date, as a running mean is.
    """
    returned = [event.value for event in callee.index.of(t.Return) if event.value >= 0]
    if (
        write.root != parameter
        or not returned
        or (callee.unit.name == "forward" and write.form not in _SPELT_OUT - {"call"})
    ):
        # What the layers of a network do to its input is told where it is called.
        return False
    if not write.reads_old and not write.partial:
        # Of what is handed in nothing is left: it is room for what is drawn or computed here.
        return False
    if not all(uses.is_computed_from(callee, register, parameter) for register in returned):
        return False
    whole = whole or parameter
    storage = callee.number("argument", parameter) if whole == parameter else write.storages[0]
    sites = {one.site for one in callee.writes.values() if storage in one.storages}
    events = [event for event in callee.index.events if event.site in sites]
    return bool(events) and all(
        _takes_only(callee, event, {parameter, whole}) or _is_taken_on(callee, event, parameter) for event in events
    )


def _is_taken_on(callee: Machine, event: t.Event, parameter: str) -> bool:
    """Whether what a method that writes hands back goes on as a value of its own, as what is out of place would:
    `scaled = x.mul_(a)`. Of a running mean (`mean.lerp_(x, rate)`, `mean.mul_(rate).add_(x)`), that is the new one."""
    if not isinstance(event, t.Invoke) or event.name in _KEEPING_UP:
        return False
    taken, base = callee.consumer_of(event.out), callee.unit.definitions[event.base]
    first = isinstance(base, t.Load) and base.name == parameter
    return first and ((isinstance(taken, t.Bind) and taken.name != parameter) or isinstance(taken, t.Operate))


_KEEPING_UP = frozenset({"lerp_", "copy_", "add_", "sub_"})
"""Methods that what is kept up to date is written by."""


def _takes_only(callee: Machine, event: t.Event, parameters: set[str]) -> bool:
    """Whether a write takes what it puts in from numbers, from what the method's object keeps, and from the parameter
    itself."""
    if isinstance(event, t.StoreItem | t.Augment):
        registers = [event.value]
    elif isinstance(event, t.Invoke) or (isinstance(event, t.Call) and _is_inner(callee, event)):
        registers = [argument.register for argument in event.arguments]
    else:
        return False
    own = {one.name for one in callee.unit.parameters[callee.unit.owner >= 0 :]} - parameters
    place = callee.unit.definitions[event.target] if isinstance(event, t.Augment) else None
    if isinstance(place, t.Item) and _loads(callee, [one for one in place.subscript if isinstance(one, int)], own):
        # What is counted at a place that another argument names is kept: `counts[token] += 1`.
        return False
    if not isinstance(event, t.StoreItem) or _is_limited(callee, event, parameters):
        # A number is computed with; what is put into a place may be there to be kept, whatever it is.
        own -= {name for name in own if _is_number(callee, name)}
    return not _loads(callee, registers, own)


def _is_inner(callee: Machine, event: t.Call) -> bool:
    """Whether a function calls one that is defined in it: what that does to what it is handed, the outer one does."""
    inner = callee.world.machines.get(callee.called.writes.get(event.site, _NOTHING)[0])
    return inner is not None and inner.unit.parent == callee.unit.number


def _loads(callee: Machine, registers: list[int], names: set[str]) -> bool:
    """Whether values are computed from what one of some names holds."""
    parts = [part for register in registers for part in uses.expression(callee, register, "")]
    return any(isinstance(part, t.Load) and part.name in names for part in parts)


def _is_limited(callee: Machine, event: t.StoreItem, parameters: set[str]) -> bool:
    """Whether a number is put where a comparison with what stands there holds: `x[x > limit] = limit`."""
    made = [callee.unit.definitions[one] for one in event.subscript if isinstance(one, int) and one >= 0]
    compared = [one for one in made if isinstance(one, t.Operate) and one.symbol in COMPARISONS]
    loads = [callee.unit.definitions[operand] for one in compared for operand in one.operands if operand >= 0]
    return len(made) == 1 and any(isinstance(load, t.Load) and load.name in parameters for load in loads)


def _is_number(callee: Machine, parameter: str) -> bool:
    """Whether a parameter is a number, as far as the calls of the file show: a rate, a bound."""
    return callee.state.object(callee.number("argument", parameter)).kind is Kind.NUMBER


def _goes_back(m: Machine, call: int) -> bool:
    """Whether a call's result is stored where an argument of it was taken from, or into a part of that argument:
    `x[:k] = fill(x[:k])`, `x[i] = fill(x, i)`."""
    given = [naming.text_of(m, register) for register in giving.arguments_of(m, call)]
    at_once = any(giving.is_stored_in(m, call, text) or giving.is_part_of(m, call, text) for text in given)
    return at_once or _is_put_back_by_name(m, call, set(given))


def _is_put_back_by_name(m: Machine, call: int, given: set[str]) -> bool:
    """Whether a result has a name, by which it is put into the element that was passed: `y, n = f(x[i])`,
    `x[i] = y`."""
    register = m.index.calls.get(call, t.NO_REGISTER)
    parts = [event.out for event in m.index.of(t.Unpack) if event.value == register >= 0]
    binds = [m.consumer_of(part) for part in (register, *parts)]
    names = {bind.name for bind in binds if isinstance(bind, t.Bind)}
    for event in m.index.of(t.StoreItem) if names else ():
        made = m.unit.definitions[event.value] if event.site > call and event.value >= 0 else None
        if isinstance(made, t.Load) and made.name in names:
            place = f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]"
            if place in given and "..." not in place:
                return True
    return False


def _is_left(m: Machine, call: int) -> bool:
    """Whether a caller takes the results of a call apart, and never looks at the one that is what it passed:
    `_, state = run(x, outputs)`."""
    register, write = m.index.calls.get(call, t.NO_REGISTER), m.writes.get(call)
    written = {storage | 1 for storage in write.storages} if write is not None else set[int]()
    names = set[str]()
    for event in m.index.of(t.Unpack) if register >= 0 else ():
        shares = [share for ref in m.value(event.out).refs for share in m.state.object(ref).shares]
        if event.value == register and any(share.storage | 1 in written for share in shares):
            bind = m.consumer_of(event.out)
            if not isinstance(bind, t.Bind):
                return False
            names.add(bind.name)
    return bool(names) and not any(use.loads for name in names for use in uses.of_name(m, name))


def _is_filled(m: Machine, fact: ReadAfter) -> bool:
    """Whether a loop hands a blank that was made in front of it to a call, turn after turn: it is to be filled."""
    loops = uses.loops_around(m, fact.write)
    if not loops or fact.write not in m.writes or not m.writes[fact.write].blank:
        return False
    return not any(loops[-1] in use.loops for use in uses.of_name(m, fact.name) if not use.loads)


def _first_write(callee: Machine, parameter: str, path: tuple[str, ...] = ()) -> Write | None:
    """The first write that surely reaches a parameter, or the part of it at the end of a path."""
    storage = callee.number("argument", parameter)
    for step in path:
        storage = callee.number("slot", (storage, step))
    hits = [w for w in callee.writes.values() if w.storages == (storage,) and all(link.sure for link in w.chain)]
    return min(hits, key=lambda write: write.site, default=None)
