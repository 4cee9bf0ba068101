"""Autograd: leaves, graphs, what backward keeps, what it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import gradients, needed
from torchcopylint.flow.facts import LeafWritten, RequiresGradRefused
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import (
    COMPUTED_AT,
    CONTAINERS,
    FIELD,
    GRADLESS,
    HANDED,
    INFERENCE,
    LOCAL,
    MIXED,
    OUTPUT,
    RETAINS,
    SECOND_ORDER,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Sure,
    Value,
)
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.storages import keeping
from torchcopylint.flow.tapes import exclusion
from torchcopylint.flow.values import dtypes, memory
from torchcopylint.flow.values.modes import MODES_BY_NAME

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments, Site

MAX_GRAPH = 400
"""So many saved values at most are followed up one graph."""
DRAWING = frozenset(
    {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"}
)
"""Methods that fill with what they draw at random, which has no history, whatever says how."""
GRAPH_HOWS = frozenset({How.VIEW, How.INDEX, How.ROW, How.CONDITIONAL, How.FIELD})
"""Aliases that are views to autograd: writing one writes its base, graph and all."""


def tensors_in(m: Machine, values: Iterable[Value]) -> list[Object]:
    """The tensors among some values, elements of lists and tuples included.

    What was asked whether it requires grad, and does not on this path, hands no graph on.
    """
    found = []
    for value in values:
        for ref in value.refs:
            obj = m.state.object(ref)
            if obj.kind in CONTAINERS:
                for slot in m.state.slot_names(ref):
                    cell = m.state.cell(slot)
                    found += [m.state.object(r) for r in cell.refs] if cell is not None else []
            elif GRADLESS in obj.flags:
                found.append(obj._replace(requires_grad=Fact.NO, graph=frozenset()))
            else:
                found.append(obj)
    return found


def result_of(m: Machine, made: Object, operands: Sequence[Value], differentiable: bool) -> Object:
    """The result of an operation: whether it requires grad, whether it is a leaf, what lies behind it."""
    if not differentiable or m.state.mode.recording is Fact.NO or m.state.mode.inference > 0:
        return made._replace(requires_grad=Fact.NO, leaf=Fact.YES)
    inputs = tensors_in(m, operands)
    facts = [obj.requires_grad for obj in inputs if obj.kind in TENSORS or obj.requires_grad is not Fact.UNKNOWN]
    # What is only taken for an array may be a tensor all the same.
    open_kinds = (*TENSORS, Kind.UNKNOWN)
    unknown = any(
        obj.requires_grad is Fact.UNKNOWN
        for obj in inputs
        if obj.kind in open_kinds or (obj.kind is Kind.ARRAY and obj.sure < Sure.PROVEN)
    )
    unknown = unknown or any(_is_unseen(m, value) for value in operands)
    if any(fact > 0 for fact in facts):
        best = max(facts)
        graph = frozenset[int]().union(*(obj.graph for obj in inputs if obj.requires_grad > 0))
        graph -= frozenset[int]().union(*(runs.on_some_paths(m, value) for value in operands))
        if len(graph) > MAX_GRAPH:
            graph = frozenset(sorted(graph)[-MAX_GRAPH:])
        return made._replace(requires_grad=best, leaf=Fact.NO, graph=graph)
    if unknown or m.state.mode.recording is Fact.UNKNOWN:
        graph = frozenset[int]().union(*(obj.graph for obj in inputs if obj.requires_grad is Fact.UNKNOWN))
        flags = made.flags | {MIXED} if any(_are_integers_elsewhere(m, value) for value in operands) else made.flags
        return made._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN, graph=graph, flags=flags)
    return made._replace(requires_grad=Fact.NO, leaf=Fact.YES)


def _are_integers_elsewhere(m: Machine, value: Value) -> bool:
    """Whether one of several things that a value may be, or that a list holds, is integers: what stands in their place
    on other paths is a choice as well (`guide[:, i]` beside `prob.argmax(-1)`), and no output that has a graph."""
    cells = (m.state.refs_of(slot) for ref in value.refs for slot in m.state.slot_names(ref))
    for refs in (value.refs, *cells):
        if len(refs) > 1 and any(m.state.object(ref).dtype in dtypes.INTEGERS for ref in refs):
            return True
    return any(MIXED in m.state.object(ref).flags for ref in value.refs)


def _is_unseen(m: Machine, value: Value) -> bool:
    """Whether a value may hold tensors that nobody has seen: nothing is known of it, or of what it contains."""
    if not value.refs:
        return value.kind is Kind.UNKNOWN and value.const is None
    return any(m.state.object(ref).kind in CONTAINERS and not m.state.slot_names(ref) for ref in value.refs)


def after_write(m: Machine, target: Value, sources: Sequence[Value], at: Site, *, view: bool = False) -> None:
    """A tensor was written in place: refused on a leaf that requires grad; else its history goes on."""
    check_leaf(m, target, at, view)
    if m.state.mode.recording is Fact.NO or at.op in DRAWING:
        return
    inputs = tensors_in(m, sources)
    facts = [obj for obj in inputs if obj.requires_grad > 0]
    if not facts:
        if any(obj.kind in (*TENSORS, Kind.UNKNOWN) and obj.requires_grad is Fact.UNKNOWN for obj in inputs):
            may_require_grad(m, target)
        return
    best = max(obj.requires_grad for obj in facts)
    graph = frozenset[int]().union(*(obj.graph for obj in facts))
    if all(m.state.object(ref).requires_grad <= 0 for ref in target.refs):
        # What is written has a name of its own, or is told as what it is the result of.
        source = next((obj.text for obj in facts if obj.text and "..." not in obj.text), "a computed value")
        keeping.note_written(m, target, source, at.site)
    for ref in target.refs:
        for base in _graph_family(m, ref):
            obj = m.state.object(base)
            if obj.dtype in dtypes.INTEGERS:
                # Whatever is put among integers, they require no gradient.
                continue
            if obj.kind in TENSORS and obj.leaf is not Fact.NO and obj.requires_grad <= 0:
                m.state.set_object(base, obj._replace(requires_grad=best, leaf=Fact.NO, graph=obj.graph | graph))
            elif obj.kind in TENSORS:
                m.state.set_object(base, obj._replace(graph=obj.graph | graph))


def may_require_grad(m: Machine, target: Value) -> None:
    """Something was written into a tensor, or may have been, and nobody knows whether that carries a graph."""
    for ref in target.refs:
        for base in {ref, *_graph_bases(m, ref)}:
            obj = m.state.object(base)
            if obj.kind in TENSORS and obj.requires_grad is Fact.NO and obj.dtype not in dtypes.INTEGERS:
                m.state.set_object(base, obj._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN))


def _graph_family(m: Machine, ref: int) -> set[int]:
    """An object, what it is a view of, and the other views of that: they have one history, whichever is written."""
    bases = {ref, *_graph_bases(m, ref)}
    storages = {share.storage for share in m.state.object(ref).shares}
    views = {other for storage in storages for other in m.state.sharers.get(storage, ()) if not other & 1}
    return bases | {view for view in views if bases.intersection(_graph_bases(m, view))}


def _graph_bases(m: Machine, ref: int) -> list[int]:
    """The objects that an object is a view of, to autograd."""
    bases: list[int] = []
    current = ref
    while len(bases) < 12:
        above = [s for s in m.state.object(current).shares if s.how in GRAPH_HOWS and s.of != current]
        if not above or above[0].of in bases:
            break
        current = above[0].of
        bases.append(current)
    return bases


def check_leaf(m: Machine, target: Value, at: Site, view: bool) -> None:
    """Whichever of its objects the target is: the write is refused."""
    mode = m.state.mode
    if mode.recording <= 0 or mode.inference > 0:
        return
    found = [_leaf_written(m, ref, at, view) for ref in target.refs]
    refused = [fact for fact in found if fact is not None]
    if refused and any(fact.local is False for fact in refused) and switches_off(m, at.site):
        return
    if refused and len(refused) == len(found):
        m.fact(min(refused, key=lambda fact: fact.sure))


def switches_off(m: Machine, written: int) -> bool:
    """Whether a unit, or what it calls of its file, sets what anything requires to something other than `True`.

    Where somebody switches parameters off, those of a module that was handed in are not known to require grad. What
    the unit itself switches behind the write, outside of loops, was on when that was done.
    """
    called = [m.value(event.function).const for event in m.index.of(t.Call)]
    units = [m.unit.number, *(one.unit for one in called if isinstance(one, FunctionReference))]
    for number in units:
        if m.world.is_own(number):
            unit = m.world.unit(number)
            index, own = m.world.index(unit), number == m.unit.number
            stores, invoked = index.stores.get("requires_grad", ()), index.of(t.Invoke)
            stored = [e.value for e in stores if not (own and _is_behind(m, e.site, written))]
            invoked = [
                e for e in invoked if e.name == "requires_grad_" and not (own and _is_behind(m, e.site, written))
            ]
            stored += [argument.register for event in invoked for argument in event.arguments]
            made = [unit.definitions[register] for register in stored if register >= 0]
            if any(not isinstance(event, t.Const) or event.value is not True for event in made):
                return True
    return False


def _is_behind(m: Machine, site: int, written: int) -> bool:
    """Whether what stands at a site is done after a write, and no loop comes back to the write behind it."""
    return site > written and not set(m.index.loops.get(site, ())) & set(m.index.loops.get(written, ()))


def _leaf_written(m: Machine, ref: int, at: Site, view: bool) -> LeafWritten | None:
    obj = m.state.object(ref)
    if GRADLESS in obj.flags:
        return None
    if obj.kind in TENSORS and obj.leaf is Fact.YES and obj.requires_grad > 0:
        return _leaf_fact(m, ref, obj, obj, at, view, -1)
    unknown = obj.leaf is obj.requires_grad is Fact.UNKNOWN
    if obj.kind in TENSORS and unknown and ref in m.backward.unexplained:
        # Nothing says what it is, but somebody has asked for its gradient, which leaves have that require one.
        return _leaf_fact(m, ref, obj._replace(sure=min(obj.sure, Sure.LIKELY)), obj, at, view, -1)
    current = ref
    seen: set[int] = set()
    while current not in seen:
        seen.add(current)
        above = [s for s in m.state.object(current).shares if s.of != current]
        if len({s.of for s in above}) != 1 or above[0].how not in (How.VIEW, How.INDEX) or not above[0].sure:
            # One of several views that come at once is refused as that, see `refusals`.
            return None
        share: Share = above[0]
        base = m.state.object(share.of)
        if base.leaf is Fact.YES and base.requires_grad > 0 and base.kind in TENSORS:
            return _leaf_fact(m, share.of, base, obj, at, True, share.site)
        current = share.of
    return None


def _leaf_fact(m: Machine, ref: int, leaf: Object, obj: Object, at: Site, view: bool, viewed: int) -> LeafWritten:
    sure = leaf.sure if leaf.requires_grad is Fact.YES else min(leaf.sure, Sure.LIKELY)
    return LeafWritten(
        site=at.site,
        name=at.name or obj.text,
        leaf=leaf.text,
        op=at.op,
        view=view,
        out=at.form == "out",
        made=leaf.site,
        viewed=viewed,
        assumed=m.state.mode.assumed,
        local=_made_here(m, leaf),
        sure=sure,
        asked=ref in m.backward.gradients or _nobody_switches(m, leaf),
        aside=exclusion.is_aside(m, at.site),
    )


def _made_here(m: Machine, leaf: Object) -> bool:
    """Whether a unit made a leaf itself, or the module that has it.

    What converts modules makes them, too, and leaves it to its callers to switch grad mode off. What a loop has taken
    out of something is not made here.
    """
    above = [m.state.object(s.of) for s in leaf.shares if s.how in (How.FIELD, How.PARAMETERS)]
    if above and m.world.converts(m):
        return False
    made = [obj for obj in above or [leaf] if obj.owner in ("", LOCAL) and obj.site in m.index.computing]
    return len(made) == len(above or [leaf])


_SWITCHES = frozenset({*MODES_BY_NAME, "set_grad_enabled"})


def _nobody_switches(m: Machine, leaf: Object) -> bool:
    """Whether a leaf is what the constructor of a class that is no module has made, in a file that never speaks of grad
    mode. Modules are written by those who call them; what a class makes for itself to be trained, it trains itself."""
    if leaf.owner != FIELD or leaf.requires_grad is not Fact.YES or m.unit.owner < 0:
        return False
    if m.world.class_kind(m.unit.owner)[0] is not Kind.INSTANCE:
        return False
    events = (event for unit in m.world.program.units for event in unit.definitions)
    asking = (event for event in events if isinstance(event, t.Attribute | t.Invoke | t.Load))
    return not any(event.name in _SWITCHES for event in asking)


def check_out(m: Machine, inputs: Sequence[Value], out: Value, at: Site) -> None:
    """`out=` with an argument that requires grad is refused while autograd records."""
    if m.state.mode.recording <= 0:
        return
    needing = [obj for obj in tensors_in(m, inputs) if obj.requires_grad > 0 and obj.kind in TENSORS]
    if not needing:
        return
    worst = max(needing, key=lambda obj: obj.requires_grad)
    sure = worst.sure if worst.requires_grad is Fact.YES else min(worst.sure, Sure.LIKELY)
    m.fact(
        LeafWritten(
            at.site,
            worst.text or at.name,
            worst.text,
            at.op,
            False,
            True,
            worst.site,
            -1,
            m.state.mode.assumed,
            _made_here(m, worst),
            sure,
            asked=_nobody_switches(m, worst),
        )
    )


def backward(m: Machine, value: Value, site: int, arguments: Arguments, name: str, *, part: bool = False) -> None:
    """`backward()` runs over a value's graph: it needs what was saved, and frees it unless told to keep it.

    `part` is whether it stops at some of the inputs, so that nobody knows what is freed.
    """
    m.backward.trains = True
    retained = arguments.flag("retain_graph")
    # A graph of the gradients hangs on this one, which stays by itself.
    retain = retained is not False or arguments.flag("create_graph") is not False
    needed.by_backward(m, value, site, "backward")
    if len(value.refs) == 1:
        gradients.accumulated(m, m.state.object(value.refs[0]).graph, site)
    # `retain_variables` is its name of long ago.
    retain = retain or "retain_variables" in arguments.keywords
    m.backward.reached_since = set() if m.backward.reached_since is None else m.backward.reached_since
    if "inputs" in arguments.keywords and not part:
        _retain_of(m, arguments.keywords["inputs"])
    # What lies behind what it is asked about, it leaves alone.
    asked = arguments.keywords.get("inputs", arguments.at(1) if part else Value())
    behind = frozenset[int]().union(*(obj.graph for obj in tensors_in(m, [asked])))
    part = part or "inputs" in arguments.keywords or arguments.flag("create_graph") is not False
    runs.over(m, value, site, freed=not retain, name=name, part=part, retained=retained is True, behind=behind)
    for ref in value.refs:
        for number in m.state.object(ref).graph:
            m.backward.reaches_unknown = m.backward.reaches_unknown and number not in m.needed.saves
            if number in m.needed.by_modules:
                m.backward.reached.update(m.needed.by_modules[number].refs)
                m.backward.reached_since.update(m.needed.by_modules[number].refs)
            if not retain and number >= 0:
                m.state.put(f"@spoilt{number}", None)


def of_gradient(m: Machine, made: Object, arguments: Arguments, site: int) -> Object:
    """What a gradient is that is computed at a site: with `create_graph=True`, it has a graph of its own; without, it
    requires grad only if what is handed to backward does (executed under torch 2.13)."""
    with_graph = arguments.flag("create_graph") if len(arguments.positional) <= _CREATE_GRAPH else None
    if m.state.mode.recording <= 0:
        return made
    if with_graph is None:
        m.backward.perhaps_without_graph = True
    elif with_graph:
        own = runs.unknown_graph(site)
        # Whatever is not linear, its gradient hangs on what was computed with: another pass needs that again.
        m.needed.by_modules.setdefault(own, Value())
        graph = runs.without(result_of(m, made, arguments.positional[:1], True).graph) | {own}
        flags = made.flags | {SECOND_ORDER}
        return made._replace(leaf=Fact.NO, requires_grad=Fact.LIKELY, graph=graph, flags=flags)
    elif len(arguments.positional) < 3 and "grad_outputs" not in arguments.keywords:
        return made._replace(leaf=Fact.YES, requires_grad=Fact.NO)
    return made


_CREATE_GRAPH = 4
"""The position of `create_graph` in `torch.autograd.grad`."""


def _retain_of(m: Machine, inputs: Value) -> None:
    """`backward(inputs=x)` fills `.grad` of what it is given, leaf or not (executed under torch 2.13)."""
    retain_grad(m, inputs)
    for ref in inputs.refs if inputs.kind in CONTAINERS else ():
        for slot in m.state.slot_names(ref):
            cell = m.state.cell(slot)
            if cell is not None:
                retain_grad(m, Value(cell.refs, cell.kind))


def retain_grad(m: Machine, value: Value) -> None:
    """`retain_grad()`: a non-leaf keeps its gradient."""
    for ref in value.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(flags=obj.flags | {RETAINS}))


def note_switched(m: Machine, ref: int, wanted: bool | None, site: int, name: str, *, stored: bool = False) -> bool:
    """`requires_grad` is set: torch refuses to switch it off for what is computed, and on for integers.

    As an attribute (`stored`) it is refused for what is computed, whatever it is set to; `requires_grad_()` is not.

    Whether it is surely left as it was: who catches that, or goes on in the next cell, has what was there before.
    """
    obj = m.state.object(ref)
    if obj.kind is Kind.UNKNOWN and OUTPUT in obj.flags:
        # What a network returns and has a flag of its own is no network.
        memory.refine(m, Value((ref,)), Kind.TENSOR, Sure.LIKELY)
        obj = m.state.object(ref)
    if obj.kind not in TENSORS:
        return False
    if wanted is False and obj.leaf is Fact.NO and obj.requires_grad > 0 and not obj.flags & {INFERENCE}:
        sure = obj.sure if obj.requires_grad is Fact.YES else min(obj.sure, Sure.LIKELY)
        told = next((int(str(at)) for key, at in obj.config if key == COMPUTED_AT), obj.site)
        m.fact(RequiresGradRefused(site, name, "nonleaf", told, "", sure))
        # On its other turns, a loop comes to others of the kind.
        return m.in_loop
    if stored and wanted and obj.leaf is Fact.NO and obj.requires_grad is Fact.YES and HANDED not in obj.flags:
        m.fact(RequiresGradRefused(site, name, "set", obj.site, "", obj.sure))
        return m.in_loop
    if wanted is True and obj.dtype in dtypes.INTEGERS:
        m.fact(RequiresGradRefused(site, name, "integer", obj.site, obj.dtype, obj.sure))
        return True
    return False


def note_made(m: Machine, dtype: str, at: Site) -> None:
    """A factory is called with `requires_grad=True`."""
    if dtype in dtypes.INTEGERS:
        m.fact(RequiresGradRefused(at.site, f"{at.op}(...)", "integer", at.site, dtype, Sure.PROVEN))
