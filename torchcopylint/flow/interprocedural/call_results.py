"""What one call of a function with a summary returns: aliases of what it is given, and what it makes anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import distributions, frozen, grads
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.interprocedural import attributes, keyed
from torchcopylint.flow.interprocedural.returned import (
    OTHERWISE,
    PLAIN,
    Returned,
    keep,
)
from torchcopylint.flow.model import (
    BY_OTHERS,
    ITSELF,
    PERHAPS_CUT,
    PICKED,
    SPENT,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.values import devices, kinds, memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_SHOWING = frozenset({How.DETACH, How.VIEW, How.INDEX, How.ROW})
"""Ways to share by which a result that is a tensor shows that what it was taken from is one."""
_CUTTING = frozenset({How.DATA, How.DETACH})
_OF_ONE_KIND = frozenset({Kind.MODULE, Kind.TENSOR, Kind.ARRAY})
"""What a part, a view or a shallow copy of such a thing is, if it is one itself."""


def follow(m: Machine, value: Value, path: tuple[str, ...]) -> Value:
    """What a path of fields and elements, as a summary has it, leads to from a value; unknown elements count as all."""
    for step in path:
        if not value.refs:
            return Value()
        values = []
        for ref in value.refs:
            slot = (ref, step)
            if m.state.cell(slot) is not None:
                values.append(slots.slot_value(m, slot))
            elif step.startswith("."):
                values.append(attributes.attribute(m, Value((ref,)), step[1:], -1, m.state.object(ref).text))
            elif (own := slots.own_entry(m, slot)) is not None:
                values.append(own)
            elif keyed.is_told(step):
                values.append(keyed.at(m, slot))
            elif step.startswith("["):
                held = [slot for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
                values += [slots.slot_value(m, slot) for slot in held if not slots.are_two_keys(slot[1], step)]
        value = slots.join_values(values)
    return value


def _need_grad(m: Machine, inputs: list[Value]) -> bool:
    """Whether all tensors that a function is given require grad.

    Where one does not, what comes back may have been computed from that one alone: of an accuracy, the output of the
    network gives integers, and what is unknown of the result is unknown of the target.
    """
    found = [obj for obj in grads.tensors_in(m, inputs) if obj.kind in (*TENSORS, Kind.UNKNOWN)]
    return bool(found) and all(obj.kind in TENSORS and obj.requires_grad > 0 for obj in found)


def _is_tensor(m: Machine, bound: dict[str, Value], item: Returned) -> bool:
    """Whether what a call passes for a parameter is known to be a tensor."""
    objects = [m.state.object(ref) for ref in bound.get(item.parameter, UNKNOWN).refs]
    return bool(objects) and all(obj.kind in TENSORS and obj.sure >= Sure.LIKELY for obj in objects)


def one_result(
    m: Machine,
    returned: tuple[Returned, ...],
    result: Object,
    bound: dict[str, Value],
    inputs: list[Value],
    site: int,
    name: str,
    tag: str = "",
    order: int = -1,
) -> Value:
    """What a call returns, or one part of it, which `tag` tells from the others, and `order` if it is not a part's."""
    told = tuple(item for item in returned if not (item.when == OTHERWISE and _is_tensor(m, bound, item)))
    if len(told) < len(returned) and all(item.how in _CUTTING for item in told):
        result = result._replace(kind=Kind.TENSOR, sure=Sure.LIKELY, requires_grad=Fact.NO, leaf=Fact.YES)
    # Where it may be a number, as the caller may know, what it is given comes back on some paths only.
    plain = any(r.when == PLAIN for r in told) and any(r.when != PLAIN for r in told)
    same = [r for r in told if r.parameter and r.how is None and not plain]
    others = [r for r in told if r.parameter and (plain or r.how is not None)]
    fresh = [r for r in told if not r.parameter and not (plain and r.when == PLAIN)]
    if m.state.mode.recording is Fact.NO and result.kind in (Kind.TENSOR, Kind.UNKNOWN):
        # The function was looked at with recording on.
        result = result._replace(requires_grad=Fact.NO, leaf=Fact.YES)
    given = (follow(m, bound.get(item.parameter, Value()), item.path) for item in same)
    values = [source._replace(root=None) for source in given if source.refs]
    # A snapshot that some calls take, and others hand back as it was, is one all the same.
    always = len(told) == 1 or (result.kind is Kind.STATE_DICT and not fresh)
    values += _aliases(m, others, result._replace(text=f"{name}(...)"), bound, site, tag, always=always)
    if fresh or not values:
        made = _made_anew(m, fresh, result._replace(text=f"{name}(...)"), bound, inputs, site)
        hows = {item.how for item in fresh}
        if fresh and hows <= reading.VIEWS and made.kind in TENSORS and made.requires_grad > 0:
            # What it is a view of, nobody holds here; autograd refuses to have it cut, or written as one of several.
            base = memory.fresh(m, site, made, f"{tag}base")
            how = How.ROW if How.ROW in hows else How.VIEW
            values.append(memory.alias(m, base, site, how, made, tag=f"{tag}fresh"))
        else:
            values.append(keep(m, memory.fresh(m, site, made, f"{tag}fresh"), site, name, order if tag else None))
    joined = slots.join_values(values)
    return joined._replace(plain=True) if plain else joined


def _aliases(
    m: Machine, items: list[Returned], made: Object, bound: dict[str, Value], site: int, tag: str, *, always: bool
) -> Iterator[Value]:
    """The aliases of its arguments that a call returns; `always` is whether it returns nothing else."""
    for number, item in enumerate(items):
        source = follow(m, bound.get(item.parameter, Value()), item.path)
        if not source.refs or (item.when and item.how is How.STATE and devices.is_away(m, source)):
            continue
        if item.how in _SHOWING and made.kind in TENSORS:
            memory.evidence_tensor(m, source)
        yield memory.alias(
            m,
            source._replace(root=None),
            site,
            item.how or How.VIEW,
            _as_sure_as(m, made._replace(flags=made.flags | {PICKED}) if item.picked else made, source),
            region=item.region,
            when=item.when or ("" if always else "on some paths"),
            tag=f"{tag}r{number}",
        )


def _as_sure_as(m: Machine, made: Object, source: Value) -> Object:
    """What a function could only guess of its argument, and so of an alias of it, the caller may know."""
    known = [m.state.object(ref) for ref in source.refs]
    if made.sure < Sure.PROVEN and made.kind in _OF_ONE_KIND and all(obj.kind is made.kind for obj in known):
        return made._replace(sure=max(made.sure, min(obj.sure for obj in known)))
    return made


def _is_known_network(m: Machine, ref: int) -> bool:
    """Whether what is passed is a network, and the caller knows which."""
    obj = m.state.object(ref)
    return obj.kind is Kind.MODULE and obj.sure >= Sure.LIKELY and obj.type not in ("", *kinds.MODULE_BASES)


def _made_anew(
    m: Machine, fresh: list[Returned], made: Object, bound: dict[str, Value], inputs: list[Value], site: int
) -> Object:
    """The object that a call makes, with the graph of what it is given, as far as the function does not cut it."""
    if BY_OTHERS in made.flags and any(_is_known_network(m, ref) for value in bound.values() for ref in value.refs):
        made = made._replace(flags=made.flags - {BY_OTHERS})
    if made.kind in TENSORS and made.requires_grad is not Fact.NO:
        graph = frozenset[int]().union(*(obj.graph for obj in grads.tensors_in(m, inputs)))
        m.backward.perhaps_without_graph = m.backward.perhaps_without_graph or PERHAPS_CUT in made.flags
        known = made.requires_grad is not Fact.UNKNOWN or bool(made.flags & {ITSELF, PERHAPS_CUT})
        if not known and m.state.mode.recording > 0 and _need_grad(m, inputs):
            # Nothing in the function cuts the graph, for what is known there of its arguments.
            made = made._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO)
        # Whether the result hangs on what backward has run over is only known of what the function itself did.
        made = frozen.made_by_frozen(m, bound.values(), made)._replace(graph=runs.without(graph))
        if SPENT in made.flags:
            m.runs.sites.add(site)
            made = made._replace(graph=runs.spent(made.graph, site), flags=made.flags - {SPENT})
    if m.state.mode.recording is Fact.NO and (made.kind in (*TENSORS, Kind.UNKNOWN) or distributions.is_one(made)):
        made = made._replace(requires_grad=Fact.NO, leaf=Fact.YES, graph=frozenset())
    if any(item.when == "unknown" for item in fresh):
        made = made._replace(kind=Kind.UNKNOWN, sure=Sure.NOT)
    return made
