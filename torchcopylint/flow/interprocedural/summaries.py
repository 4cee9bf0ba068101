"""What a function of this file does to its arguments, and what it returns, so that its callers need not run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow.autograd import (
    carrying,
    detaching,
    frozen,
    hanging,
    leaving,
    run_inside,
)
from torchcopylint.flow.facts import Inside, Place, ViewRefused, Write
from torchcopylint.flow.graphs import cutting
from torchcopylint.flow.interprocedural import (
    adding,
    exchanging,
    handing,
    keyed,
    lending,
    yielding,
)
from torchcopylint.flow.interprocedural.returned import (
    OTHERWISE,
    Returned,
    ReturnedPart,
    inner_function,
    parts_of,
    returned_by,
    saved_arguments,
)
from torchcopylint.flow.model import (
    BY_NAME,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Sure,
)
from torchcopylint.flow.program import hollow
from torchcopylint.flow.storages import field_uses, renewing, replacing
from torchcopylint.flow.tapes import exclusion, outer, undone
from torchcopylint.flow.values import inside, kinds

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tape import Unit


MAX_PLACES = 3
"""The places that are told of a write which one file hands on to another."""


class ArgumentWrite(NamedTuple):
    """The function writes the memory of a parameter; `path` leads from the parameter to what is written.

    `on_request` is whether it may do so only if it is told to write in place, by a parameter of such a name; `tensor`
    whether the function shows that it is a tensor, and `module` that it is a module. `refused` is whether torch refuses
    the write while autograd records, so that nothing is written. `at` is where it does so, for the file that it is in.
    `in_graph` is whether autograd sees the write each time that the function runs, and would refuse it on a leaf.
    """

    parameter: str
    path: tuple[str, ...]
    op: str
    form: str
    reads_old: bool
    versioned: bool
    sure: bool
    cause: str
    on_request: bool = False
    places: tuple[Place, ...] = ()
    tensor: bool = False
    module: bool = False
    refused: bool = False
    at: Inside | None = None
    in_graph: bool = False


class Flag(NamedTuple):
    """A parameter that decides by itself what a function does, and its default, if that is a constant."""

    name: str
    default: bool | None
    has_default: bool


class Told(NamedTuple):
    """What a function does where its flags are told."""

    flags: tuple[tuple[str, bool | None], ...]
    summary: Summary


class Summary(NamedTuple):
    """What is known of one function. Plain data, free of sites, so that it can outlive the file's analysis."""

    name: str
    parameters: tuple[str, ...]
    writes: tuple[ArgumentWrite, ...]
    returned: tuple[Returned, ...]
    result: Object
    returns_value: bool
    trains: bool
    unknown: bool = False
    parts: tuple[ReturnedPart, ...] = ()
    kept: tuple[handing.Kept, ...] = ()
    added: tuple[adding.Added, ...] = ()
    hangs: tuple[hanging.Hanging, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    replaced: tuple[replacing.Replaced, ...] = ()
    renewed: tuple[tuple[str, Kind], ...] = ()
    exchanged: tuple[exchanging.Exchanged, ...] = ()
    switched: tuple[str, ...] = ()
    lent: str = ""
    lent_by: How | None = None
    keyed: str = ""
    """The field of `self` in whose container, by a key that is made of arguments, that stands which is returned."""
    left: tuple[leaving.Left, ...] = ()
    ran: tuple[run_inside.Ran, ...] = ()
    carries: tuple[carrying.Carried, ...] = ()
    yields: Returned | None = None
    put_back: tuple[str, ...] = ()
    """The fields of the object it is called on that a method loads into a module."""
    saves: tuple[str, ...] = ()
    """The arguments that backward over the result needs as they were."""
    cut: tuple[str, ...] = ()
    """The arguments of which only values are used, without their graph."""
    detached: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The arguments, or parts of them, that it cuts from their history in place."""
    on: tuple[str, ...] = ()
    """The tensors among them that it leaves told to require gradients."""
    frozen: tuple[str, ...] = ()
    """The networks among them of which it switches off all parameters."""
    hooked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The modules among them to which it gives a full backward hook."""
    function: int = -1
    """The unit of the function inside of this one that is returned, whichever way it returns."""
    once: tuple[tuple[Returned, ...], Object] | None = None
    """What a generator hands out that does so once."""
    flags: tuple[Flag, ...] = ()
    told: tuple[Told, ...] = ()
    """Of a function of another file: its flags, and what it does as they are told."""


def places_in(summary: Summary) -> list[Inside]:
    """Where a function does something to what it is passed, as its summary says."""
    writes = [item.at for item in summary.writes]
    kept = [item.at for items in (summary.kept, summary.added, summary.replaced) for item in items]
    return [place for place in (*writes, *kept) if place is not None]


def lent_in(m: Machine | None) -> list[Inside]:
    """Where what a function of this file returns came to share memory with what it is passed, if in one place."""
    sites = m.results.lent_at if m is not None and m.world.is_of_file(m.unit.number) else set()
    found = [inside.innermost(m, site, Role.SHARED) for site in sites] if m is not None else []
    return [place for place in found if place is not None and len(found) == 1]


def summarise(m: Machine, file: str = "") -> Summary:
    """The summary of a unit that has been run. For use by other files, `file` is its path, and writes say where they
    stand."""
    unit = m.unit
    paths = argument_paths(m)
    carries = carrying.carried(m)
    # What a function takes from outside means nothing to another file.
    around = outer.seen(m) if m.results.returned and not file else {}
    reached = {**paths, **_paths(m, around)} if around else paths
    returned, result = returned_by(m, m.results.returned, reached)
    otherwise = {Returned(name, (), None, ""): Returned(name, (), None, OTHERWISE) for name in m.results.otherwise}
    returned = tuple(otherwise.get(item, item) for item in returned)
    returned, result = _as_declared(m, returned, result)
    kept = handing.kept(m, paths, told=not file)
    added = adding.added(m, told=not file)
    return Summary(
        name=unit.name,
        parameters=tuple(p.name for p in unit.parameters if p.kind == "plain"),
        writes=_argument_writes(m, paths, file),
        returned=returned,
        result=result,
        returns_value=bool(m.results.returned),
        trains=m.backward.trains,
        unknown=unit.is_generator or (not m.results.returned and hollow.is_stub(unit)),
        parts=parts_of(m, reached, m.results.returned),
        kept=kept,
        added=added,
        hangs=hanging.of(m, frozenset(item.slot[1:] for item in carries)),
        carries=carries if not file else tuple(item._replace(at=None) for item in carries),
        pairs=tuple(sorted(m.fields.pairs)),
        replaced=replacing.of(m, told=not file),
        renewed=renewing.of(m),
        exchanged=exchanging.of(
            m, {(one.keeper, one.path) for one in kept} | {(one.keeper, one.path) for one in added}
        ),
        switched=frozen.switched_arguments(m),
        lent=lending.of(m),
        lent_by=lending.by(m),
        keyed=keyed.of(m) if not file else "",
        left=leaving.left(m, told=not file),
        ran=run_inside.ran(m),
        yields=yielding.of(m, paths),
        once=yielding.once(m, paths),
        put_back=field_uses.put_back(m),
        saves=saved_arguments(m, paths),
        cut=cutting.cut(m),
        detached=detaching.of_arguments(m, paths),
        on=frozen.arguments_switched_on(m),
        frozen=frozen.frozen_arguments(m),
        hooked=tuple(paths[ref] for ref in m.holding.hooks if ref in paths),
        function=-1 if file else inner_function(m, m.results.returned),
    )


def _argument_writes(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]], file: str) -> tuple[ArgumentWrite, ...]:
    """What a unit writes of its arguments, each with the places where it does. `file` as in `summarise`."""
    writes: dict[ArgumentWrite, tuple[tuple[Place, ...], Inside | None]] = {}
    switch = bool(m.writes) and bool(switch_of(m.unit))
    on_arms = m.index.on_arms if switch else frozenset()
    reached = paths if file or not m.writes else paths | outer.paths(m)
    restored = undone.sites(m) if m.writes else frozenset()
    for write in m.writes.values():
        if write.site in restored:
            continue
        hit = [storage for storage in write.storages if storage in reached and not _is_added(m, write, storage)]
        hits = [reached[storage] for storage in hit]
        # Whatever has `parameters()` that can be written is a module.
        asked = any(link.how is How.PARAMETERS for link in write.chain)
        for storage, (parameter, path) in zip(hit, hits, strict=True):
            owner = m.state.object(storage)
            # A part of an argument is also a part of what it is a part of: only the part itself counts.
            if not any(o != (parameter, path) and o[0] == parameter and o[1][: len(path)] == path for o in hits):
                item = ArgumentWrite(
                    parameter,
                    path,
                    write.op,
                    write.form,
                    write.reads_old,
                    write.versioned,
                    len(write.storages) == 1,
                    write.cause,
                    switch and (len(write.storages) > 1 or write.site in on_arms),
                    tensor=write.kind in TENSORS and write.sure > Sure.HINT and not _is_held(write),
                    module=owner.kind is Kind.MODULE and (owner.sure > Sure.HINT or (asked and write.sure > Sure.HINT)),
                    refused=any(isinstance(fact, ViewRefused) for fact in m.facts.get(write.site, ())),
                    in_graph=owner.requires_grad is not Fact.NO and _is_in_graph(m, write),
                )
                at = m.world.place(write.site) or ((file, write.site) if file else None)
                here = (Place(*at, m.unit.name, write.cause or write.op),) if at is not None else ()
                within = None if file else inside.innermost(m, write.site, Role.WRITTEN, write.op, storage)
                writes.setdefault(item, ((*here, *m.called.elsewhere.get(write.site, ())), within))
    return tuple(item._replace(places=places[:MAX_PLACES], at=at) for item, (places, at) in writes.items())


_HOLDING = frozenset({How.PARAMETERS, How.FIELD, How.STATE})


def _is_held(write: Write) -> bool:
    """Whether what is written is a part of what holds tensors, and is none itself: a parameter of a module."""
    return any(link.how in _HOLDING for link in write.chain)


_SEEN = frozenset({"method", "augmented", "item", "out", "activation"})
_PARTS = frozenset({None, How.VIEW, How.INDEX, How.ROW, How.FIELD, How.PARAMETERS})


def _is_in_graph(m: Machine, write: Write) -> bool:
    """Whether autograd sees a write whenever the unit runs: of the argument or a part of it, in whatever grad mode."""
    seen = write.form in _SEEN or write.site in m.called.graph_writes
    plain = write.versioned and len(write.storages) == 1 and all(link.how in _PARTS for link in write.chain)
    return seen and plain and write.recording > 0 and not exclusion.is_aside(m, write.site)


def _as_declared(m: Machine, returned: tuple[Returned, ...], result: Object) -> tuple[tuple[Returned, ...], Object]:
    """What a unit returns, if nothing is known of it, is the tensor that its annotation says: `-> torch.Tensor`."""
    declared = kinds.from_annotation(m, m.unit.returns) if result.kind is Kind.UNKNOWN and m.results.returned else None
    if declared is None or declared.kind is not Kind.TENSOR or m.unit.is_generator:
        return returned, result
    known = tuple(item._replace(when="") if item.when == "unknown" else item for item in returned)
    return tuple(dict.fromkeys(known)), result._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)


def _is_added(m: Machine, write: Write, storage: int) -> bool:
    """Whether what is written has become a part of an argument here, so that the caller has not seen it before."""
    chain = m.hits.chains.get(write.site, {}).get(storage | 1, ())
    return any(link.how is How.FIELD and link.site >= 0 for _, link in chain)


SWITCHES = ("inplace", "in_place")


def switch_of(unit: Unit) -> str:
    """The parameter that tells a function to write in place, if it has one."""
    return next((p.name for p in unit.parameters if p.name in SWITCHES), "")


def argument_paths(m: Machine) -> dict[int, tuple[str, tuple[str, ...]]]:
    """For each storage that belongs to an argument: the parameter, and the slots that lead to it."""
    return _paths(m, {m.number("argument", parameter.name): parameter.name for parameter in m.unit.parameters})


def _paths(m: Machine, roots: dict[int, str]) -> dict[int, tuple[str, tuple[str, ...]]]:
    paths: dict[int, tuple[str, tuple[str, ...]]] = {}
    pending: list[tuple[int, str, tuple[str, ...]]] = [(ref, name, ()) for ref, name in roots.items()]
    while pending:
        ref, name, path = pending.pop()
        if ref in paths or len(path) > 3:
            continue
        paths[ref] = (name, path)
        # What a name of the unit tells is another thing for who calls it.
        told = (one for one in sorted(m.state.slots.get(ref, ())) if not one.startswith(BY_NAME))
        for attribute in told:
            inner = m.number("slot", (ref, attribute))
            if m.state.get(inner) is not None:
                pending.append((inner, name, (*path, attribute)))
    return paths
