"""Names: loading, binding, imports, constants."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.files.bodies import BUILTINS
from torchcopylint.flow.graphs import runs, sums
from torchcopylint.flow.library import indexing
from torchcopylint.flow.model import (
    INDEX_COPY,
    NO_MARKS,
    OTHERWISE,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
    whole_value,
)
from torchcopylint.flow.networks import making
from torchcopylint.flow.program import generators, likely_classes, ownership
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import kept_while_trained, rebinding
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import exclusion
from torchcopylint.flow.values import imports, kinds, memory
from torchcopylint.flow.values.outside import Foreign
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table


@handles(t.Load)
def _load(m: Machine, event: t.Load) -> None:
    name = event.name
    cell = m.state.cell(name)
    if cell is None:
        value = UNKNOWN if name in m.unit.bound else m.world.outer(m, name)
        if value == UNKNOWN and name not in m.unit.bound and name in BUILTINS:
            value = Value(kind=Kind.IMPORTED, const=Dotted(f"builtins.{name}"))
        if value == UNKNOWN:
            value = memory.unknown(m, event.site, name)
        memory.bind(m, name, value, -1)
        cell = m.state.cell(name)
        assert cell is not None
    if cell.const.__class__ is Foreign:
        cell = imports.loaded(m, name, cell)
    refs = cell.refs if len(cell.refs) < 2 else exclusion.met(m, event, cell.refs)
    m.set(event.out, whole_value((refs, cell.kind, cell.const, cell.marks, name, cell.plain)))


_LITERALS: dict[type[object], Kind] = {
    type(None): Kind.NONE,
    **dict.fromkeys((str, bytes), Kind.STRING),
    **dict.fromkeys((bool, int, float, complex), Kind.NUMBER),
}


@handles(t.Const)
def _const(m: Machine, event: t.Const) -> None:
    value = event.value
    kind = _LITERALS.get(value.__class__, Kind.OTHER)
    m.set(event.out, whole_value(((), kind, value, NO_MARKS, None, False)))


@handles(t.Import)
def _import(m: Machine, event: t.Import) -> None:
    dotted = m.world.outside.imported(event.dotted)
    if dotted is event.dotted and dotted.__class__ is Foreign:
        # What a guest takes from the module that it is of, see `guests`.
        found = imports.value(m, dotted)
        m.set(event.out, memory.unknown(m, event.site, dotted.rpartition("#")[2]) if found.const == dotted else found)
        return
    if dotted.__class__ is not Foreign:
        dotted = Dotted(table.canonical(dotted))
    m.set(event.out, Value(kind=Kind.IMPORTED, const=dotted))


@handles(t.StarImport)
def _star_import(m: Machine, event: t.StarImport) -> None:
    m.world.star_imports.append(m.world.outside.imported(event.dotted))


def _is_likely_tensor(obj: Object) -> bool:
    return obj.kind is Kind.TENSOR and obj.sure is Sure.LIKELY


@handles(t.Bind)
def _bind(m: Machine, event: t.Bind) -> None:
    value = m.value(event.value)
    indexing.forget_name(m, event.name)
    if event.annotation is not None:
        declare(m, value, kinds.from_annotation(m, event.annotation))
    uses = m.unit.uses.get(f"{event.name}@{event.site}")
    if uses is not None and value.refs and all(_is_likely_tensor(m.state.object(ref)) for ref in value.refs):
        m.note_evidence(value, kinds.telling(uses))
    if uses is not None and kind_of(value, m.state) is Kind.UNKNOWN and not kinds.named_otherwise(event.name):
        uses = m.world.by_layers(m.unit, uses)
        kind, sure = kinds.from_uses(uses, alone=m.world.deals_in_tensors_only)
        if kind is Kind.UNKNOWN and (source := _converted(m, event.value, uses)) is not None:
            kind, sure = Kind.TENSOR, Sure.LIKELY
            memory.refine(m, source, kind, sure)
        if kind is not Kind.UNKNOWN:
            memory.refine(m, value, kind, sure)
            if kind is Kind.OPTIMIZER:
                making.hand_parameters(m, value, event.value)
            m.note_evidence(value, kinds.telling(uses))
        elif (number := likely_classes.of_name(m.world, event.name, uses)) is not None:
            _is_instance(m, value, number)
        elif kinds.used_otherwise(uses):
            for ref in value.refs:
                obj = m.state.object(ref)
                m.state.set_object(ref, obj._replace(flags=obj.flags | {OTHERWISE}))
    if uses is not None and t.HANDED_TO + t.FROM_NUMPY in uses:
        _is_no_number(m, value)
    if uses is not None and "backward()" in uses and not _is_engine(uses):
        _begin_graph(m, value, event.site)
    sums.note(m, event, value)
    if m.holding.generators:
        generators.note_bound(m, event.value, value)
    for ref in value.refs if not event.name.startswith("%") else ():
        obj = m.state.object(ref)
        if (not obj.text or obj.text.endswith(")") or obj.text == "...") and INDEX_COPY not in obj.flags:
            m.state.set_object(ref, obj._replace(text=event.name.partition("#")[0]))
    before = m.state.cell(event.name)
    if before is not None:
        rebinding.note_bind(m, event, before, value)
    kept = m.state.cell(value.root) if value.root is not None else None
    if (
        value.marks
        and before is not None
        and kept is not None
        and before.refs == value.refs
        and before.site < kept.site
    ):
        # `model = best_model`: what was kept apart takes the place of the other.
        kept_while_trained.note_use(m, value, event.site, "look")
    if m.owners.optimizers and before is not None:
        ownership.note_rebound(m, before, value, event.name, event.site)
    memory.bind(m, event.name, value, event.site)
    m.world.bound(m, event.name)


def _converted(m: Machine, register: int, uses: frozenset[str]) -> Value | None:
    """What a method was called on whose result is used as only a tensor can be that has this method as well: `y =
    x.float()`, and `y.abs()`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Unpack) and isinstance(display := m.unit.definitions[made.value], t.Make):
        # `x, y = x.clone(), y.clone()`
        apart = 0 <= made.position < len(display.items) and not any(display.stars)
        made = m.unit.definitions[display.items[made.position]] if apart else None
    if not isinstance(made, t.Invoke) or not table.owners(made.name):
        return None
    source = m.value(made.base)
    kind, _ = kinds.from_uses(uses | {f"{made.name}()"})
    return source if kind is Kind.TENSOR and source.refs and kind_of(source, m.state) is Kind.UNKNOWN else None


def _is_instance(m: Machine, value: Value, number: int) -> None:
    """What is unknown of a value is likely to be an instance of a class of the file."""
    made = m.world.instance(number)
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.UNKNOWN:
            m.state.set_object(ref, obj._replace(kind=made.kind, sure=Sure.LIKELY, type=made.type))


def _is_no_number(m: Machine, value: Value) -> None:
    """What is taken out of an array is an array, since a tensor is made over it: a row, and not one of the numbers."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.ARRAY:
            rows = [s._replace(sure=True) if s.how in (How.INDEX, How.ROW) and not s.when else s for s in obj.shares]
            m.state.set_object(ref, obj._replace(shares=tuple(rows)))


def _is_engine(uses: frozenset[str]) -> bool:
    """Whether what has a `backward` is used as no tensor can be: an engine that runs it over losses has more to it."""
    more = t.HANDED_TO + t.WITH_MORE
    return kinds.used_otherwise(frozenset(use for use in uses if use == more or not use.startswith(t.HANDED_TO)))


def _begin_graph(m: Machine, value: Value, site: int) -> None:
    """Backward will run over what this name holds: some graph is behind it, whoever made it."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if not obj.graph and obj.requires_grad is Fact.UNKNOWN and obj.kind in (*TENSORS, Kind.UNKNOWN):
            leaf = Fact.NO if obj.leaf is Fact.UNKNOWN else obj.leaf
            graph = frozenset({runs.unknown_graph(site)})
            m.state.set_object(ref, obj._replace(requires_grad=Fact.LIKELY, leaf=leaf, graph=graph))


def declare(m: Machine, value: Value, declared: Object | None) -> None:
    """A value is annotated: what is unknown of it becomes known."""
    if declared is None:
        return
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.UNKNOWN:
            m.state.set_object(
                ref,
                obj._replace(
                    kind=declared.kind,
                    sure=declared.sure,
                    type=declared.type,
                    leaf=declared.leaf,
                    requires_grad=declared.requires_grad,
                ),
            )


@handles(t.Delete)
def _delete(m: Machine, event: t.Delete) -> None:
    m.state.put(event.name, None)
