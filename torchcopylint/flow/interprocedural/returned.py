"""What a function returns, as its summary tells it: aliases of its arguments, something fresh, or parts of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import saving
from torchcopylint.flow.facts import Saved
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.interprocedural import lending
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BY_OTHERS,
    CONTAINERS,
    CUSTOM_VIEW,
    EXPANDED,
    INDEX_COPY,
    INFERENCE,
    ITSELF,
    KEPT,
    LOCAL,
    MIXED,
    NO_GRAD_VIEW,
    ONE_OF,
    OUTPUT,
    PARTS,
    PERHAPS_CUT,
    PLACEHOLDER,
    READ_ONLY,
    REVERSED,
    SPENT,
    TENSORS,
    WINDOWS,
    WRITES_INPUT,
    Fact,
    How,
    Kind,
    Object,
    Region,
    Share,
    Value,
    join_objects,
)
from torchcopylint.flow.program import chain_layers, hollow
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.storages import reading
from torchcopylint.flow.tapes import entries, uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_WITH_PARTS = CONTAINERS - {Kind.STATE_DICT} | {Kind.INSTANCE}
PLAIN = "plain"
"""As the condition of what is returned: it is a number or a text."""
OTHERWISE = "if it is no tensor"
"""As the condition of a parameter that is returned as it is: of tensors, something else comes back."""
FIRST_PART, MAX_KEPT = 4, 3
"""Of the numbers that a call has for what is saved there, the first that is a part's, and how many are."""
_BOUNDED = ("slice", "stride")
MAX_PARTS = 16
"""So many elements or fields of what a function returns are told of."""
HANDED_OUT = frozenset(
    {INDEX_COPY, OUTPUT, INFERENCE, NO_GRAD_VIEW, CUSTOM_VIEW, EXPANDED, PLACEHOLDER, PARTS, WRITES_INPUT, WINDOWS}
    | {MIXED, REVERSED, READ_ONLY}
)
"""What a function's callers know as well of what it has made."""


class Returned(NamedTuple):
    """The function may return an alias of a parameter (`how`; `None` for the very object), or, without one, something
    fresh: where `when` is `PLAIN`, a number or a text; with a `how`, a view of something fresh. `region` is the part
    that it always returns, if there is one, `picked` whether that hangs on what it is asked for: `return self.rows[i]`.
    """

    parameter: str
    path: tuple[str, ...]
    how: How | None
    when: str
    region: Region = ()
    picked: bool = False


class ReturnedPart(NamedTuple):
    """What stands in a slot of the tuple, list, dictionary or record that the function makes and returns."""

    slot: str
    returned: tuple[Returned, ...]
    result: Object
    group: int = 0
    """The first of the parts that hangs on something the function has computed which this one hangs on as well."""
    saved: bool = False
    """Whether another part hangs on that as well, and it needs for backward what the first backward pass frees."""
    inner: tuple[ReturnedPart, ...] = ()
    """What stands in the slots of what stands there: `return {"epoch": epoch, "weights": {...}}`."""
    lent: str = ""
    """The element of what the method's object keeps that stands there, as text: `self.images[...]`."""
    same: str = ""
    """The slot of another part that is the very same, of a part (`return net, net`) or of what stands in one: `return
    loss, {"loss": loss}`."""
    function: int = -1
    """The unit of the function inside of this one that stands there: `return add, mean`."""


def saved_arguments(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """The arguments that what a unit returns has been computed from by operations that keep them for backward."""
    if not m.needed.saves or len(m.results.returned) != 1 or len(m.results.returned[0].refs) != 1:
        return ()
    found: dict[str, None] = {}
    for number in sorted(m.state.object(m.results.returned[0].refs[0]).graph & m.needed.saves.keys()):
        if m.needed.saves[number].what == saving.FACTOR:
            continue
        obj = m.state.object(m.needed.objects[number])
        shares = [share for share in obj.shares if share.storage in paths and share.how in _SAME]
        surely = len(shares) == 1 and shares[0].sure and not shares[0].when
        if (
            surely
            and not uses.on_some_paths(m, m.needed.saves[number].site)
            and not uses.loops_around(m, m.needed.saves[number].site)
        ):
            parameter, path = paths[shares[0].storage]
            # Which parameters a network needs is known of networks as a whole.
            found.update({} if path else {parameter: None})
    return tuple(found)


_SAME = frozenset({How.OWN, How.VIEW})


def save_arguments(m: Machine, result: Value, held: Iterable[Value], site: int, name: str) -> None:
    """What a function's result needs of its arguments, the caller's graph needs."""
    if len(result.refs) != 1 or m.state.mode.recording is Fact.NO:
        return
    ref = result.refs[0]
    for number, value in enumerate(held):
        if number < 3 and value.refs and m.state.object(ref).requires_grad > 0:
            text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
            ids = saving.save(m, value, site * 8 + 1 + number, Saved(site, f"{name}(...)", "input", text))
            obj = m.state.object(ref)
            m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))


def inner_function(m: Machine, values: list[Value]) -> int:
    """The unit of the one function inside of this one that some values all are, else -1."""
    units = {value.const.unit if value.const.__class__ is FunctionReference else -1 for value in values}
    number = units.pop() if len(units) == 1 else -1
    return number if number >= 0 and m.world.is_own(number) and m.world.unit(number).parent == m.unit.number else -1


def parts_of(
    m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]], values: list[Value], depth: int = 2
) -> tuple[ReturnedPart, ...]:
    """The elements or fields of what is returned, if every `return` makes something of the same parts."""
    refs = [ref for value in values for ref in value.refs]
    made = [m.state.object(ref) for ref in refs]
    if not refs or any(not value.refs for value in values):
        return ()
    if any(obj.kind not in _WITH_PARTS or any(share.storage in paths for share in obj.shares) for obj in made):
        return ()
    names = {tuple(slot[1] for slot in m.state.slot_names(ref)) for ref in refs}
    if len(names) != 1:
        return ()
    found: list[ReturnedPart] = []
    graphs: list[set[int]] = []
    for name in names.pop()[:MAX_PARTS]:
        cells = [m.state.cell((ref, name)) for ref in refs]
        function = inner_function(m, [Value(const=cell.const) if cell is not None else Value() for cell in cells])
        if function >= 0:
            found.append(ReturnedPart(name, (), Object(), len(found), function=function))
            graphs.append(set())
            continue
        held = [Value(cell.refs, cell.kind) for cell in cells if cell is not None and cell.refs]
        if len(held) == len(refs):
            graph = {n for value in held for ref in value.refs for n in _graph_of(m, ref) if n >= 0}
            group = next((part.group for part, other in zip(found, graphs, strict=True) if other & graph), len(found))
            returned, result = returned_by(m, held, paths)
            if name == ANY_ELEMENT and any(len(value.refs) > 1 or value.refs[0] & 1 for value in held):
                # They are several, each made for itself: two that the caller looks at are not one.
                result = result._replace(flags=result.flags | {PLACEHOLDER})
            within = depth > 1 and result.kind in CONTAINERS and not any(one.parameter for one in returned)
            inner = parts_of(m, paths, held, depth - 1) if within else ()
            same = _same_as(m, refs, [part.slot for part in found], name)
            lent = lending.element(m, held)
            found.append(ReturnedPart(name, returned, result, group, inner=inner, lent=lent, same=same))
            graphs.append(graph)
    if len(found) < 2:
        return tuple(found)
    found = [part._replace(inner=_told_apart(m, refs, found, part)) if part.inner else part for part in found]
    real = [{n for n in graph if n in m.needed.saves or n in m.needed.by_modules} for graph in graphs]
    common = [any(mine & other for j, other in enumerate(real) if i != j) for i, mine in enumerate(real)]
    return tuple(part._replace(saved=one) for part, one in zip(found, common, strict=True))


def _graph_of(m: Machine, ref: int) -> frozenset[int]:
    """What something hangs on; of a tuple, what all the tensors in it hang on: `return y, (h, c)`."""
    if m.state.object(ref).kind not in CONTAINERS:
        return m.state.object(ref).graph
    held = [m.state.object(one) for slot in m.state.slot_names(ref) for one in m.state.refs_of(slot)]
    return frozenset.intersection(*(obj.graph for obj in held)) if held else frozenset()


def _same_as(m: Machine, refs: list[int], before: list[str], name: str) -> str:
    """The first of some slots that holds the very network that the slot `name` does, whichever way the unit returns."""
    if name == ANY_ELEMENT:
        return ""
    held = [m.state.refs_of((ref, name)) for ref in refs]
    one = all(len(each) == 1 and m.state.object(each[0]).kind is Kind.MODULE for each in held)
    slots_before = (slot for slot in before if slot != ANY_ELEMENT)
    return next((slot for slot in slots_before if one and [m.state.refs_of((r, slot)) for r in refs] == held), "")


def _told_apart(m: Machine, refs: list[int], found: list[ReturnedPart], part: ReturnedPart) -> tuple[ReturnedPart, ...]:
    """What stands in a part, with the slots of the other parts that some of it is, whichever way the unit returns."""
    marked = []
    for inner in part.inner:
        held = [[m.state.refs_of((one, inner.slot)) for one in m.state.refs_of((ref, part.slot))] for ref in refs]
        same = [
            other.slot
            for other in found
            if other is not part
            and all(
                len(one) == 1 and one[0] == m.state.refs_of((r, other.slot)) for r, one in zip(refs, held, strict=True)
            )
        ]
        marked.append(inner._replace(same=same[0]) if same else inner)
    return tuple(marked)


def returned_by(
    m: Machine, values: Iterable[Value], paths: dict[int, tuple[str, tuple[str, ...]]]
) -> tuple[tuple[Returned, ...], Object]:
    """What some values are to a caller, by the arguments at the end of `paths`, and what all of them are alike in."""
    found: list[Returned] = []
    result: Object | None = None
    itself_back: Object | None = None
    """What arguments are that come back as they are: the caller knows more of them."""
    for value in values:
        if not value.refs:
            found.append(Returned("", (), None, PLAIN if value.kind in (Kind.NUMBER, Kind.STRING) else ""))
            continue
        for ref in value.refs:
            obj = m.state.object(ref)
            kept = [m.state.object(share.of) for share in obj.shares if share.when and share.of != ref]
            itself = any(source.kind is Kind.PARAMETER for source in kept) and obj.kind is Kind.TENSOR
            # What is taken out of what nobody knows is as it was put in.
            itself = itself or any(event.site == obj.site for event in m.index.of(t.Iterate))
            plain = Object(
                obj.kind,
                obj.sure,
                requires_grad=obj.requires_grad,
                leaf=Fact.UNKNOWN if itself else obj.leaf,
                scalar=obj.scalar,
                dtype=obj.dtype,
                type=obj.type,
                config=_as_made(obj),
                flags=(obj.flags & HANDED_OUT)
                | ({SPENT} if set(runs.ran_at(obj.graph)) - m.results.registers.keys() else set())
                | ({KEPT} if _keeps_result(m, obj) else set())
                | ({ITSELF} if itself else set())
                | ({BY_OTHERS} if obj.requires_grad is not Fact.NO and hollow.is_of_others(m, obj) else set())
                | ({PERHAPS_CUT} if m.backward.perhaps_without_graph and obj.requires_grad is Fact.UNKNOWN else set()),
            )
            if ref not in paths or paths[ref][1]:
                result = plain if result is None else _weaker(result, plain)
            else:
                itself_back = plain if itself_back is None else _weaker(itself_back, plain)
            hits = _nearest([share for share in obj.shares if share.storage in paths], paths)
            if not hits:
                found.append(Returned("", (), _view_of_own(m, obj), "unknown" if obj.kind is Kind.UNKNOWN else ""))
            for share in hits:
                parameter, path = paths[share.storage]
                same = ref == share.storage
                # An entry of a state dict is one, whatever is done to it that does not copy.
                how, region = (None, ()) if same else (entries.come_by(m, share)[0], _fixed(share.region))
                picked = not same and _is_picked(share.region)
                found.append(Returned(parameter, path, how, _condition(m, share), region, picked))
                m.results.lent_at |= {share.site} if how is not None else set()
    if result is not None and itself_back is not None and result.kind in TENSORS:
        # Whether what is made otherwise has a graph, where a tensor comes back as it is, is not known.
        result = _weaker(result, itself_back)
    # Of several parts, which one comes back is not known.
    whole = [item._replace(region=(), picked=False) for item in found]
    found = [item if whole.count(one) == found.count(item) else one for item, one in zip(found, whole, strict=True)]
    return tuple(dict.fromkeys(found)), result or itself_back or Object()


def _as_made(obj: Object) -> tuple[tuple[str, object], ...]:
    """How a layer of torch was made, as far as that says what it does to what it is given: `nn.ReLU(inplace=True)`,
    and of which layers a chain is made."""
    row = table.module_class(obj.type) if obj.kind is Kind.MODULE and obj.config else None
    return tuple(one for one in obj.config if one[0] in ("inplace", chain_layers.LAYERS)) if row is not None else ()


def _fixed(region: Region) -> Region:
    """A region that means the same to whoever calls; nothing if it hangs on names of the function."""
    bounds = [bound for part in region for bound in (part.value, part.upper)]
    fixed = all(part.kind in ("int", "slice", "all") for part in region)
    return region if fixed and all(bound is None or isinstance(bound, int) for bound in bounds) else ()


def _is_picked(region: Region) -> bool:
    """Whether a region begins where names of the function say."""
    begins = (
        part.value[0] if isinstance(part.value, tuple) else part.value for part in region if part.kind in _BOUNDED
    )
    return any(part.kind == "name" for part in region) or any(not isinstance(one, int | None) for one in begins)


def _view_of_own(m: Machine, obj: Object) -> How | None:
    """In which way a tensor is surely a view of what the unit has made itself, `None` if it is not."""
    how, seen = None, 0 if obj.kind in TENSORS else MAX_PARTS
    while (obj.kind in TENSORS or PARTS in obj.flags) and len(obj.shares) == 1 and seen < MAX_PARTS:
        share = obj.shares[0]
        if share.how not in reading.VIEWS or not share.sure or share.when:
            break
        how = How.ROW if How.ROW in (how, share.how) else share.how
        obj, seen = m.state.object(share.of), seen + 1
    return how if obj.kind in TENSORS and obj.owner in ("", LOCAL) else None


def handed_back(m: Machine) -> frozenset[str]:
    """The parameters that a unit returns as they are, on some path at least."""
    mine = {m.number("argument", parameter.name): parameter.name for parameter in m.unit.parameters}
    return frozenset(mine[ref] for value in m.results.returned for ref in value.refs if ref in mine)


def may_depend_on_kind(m: Machine) -> frozenset[str]:
    """The parameters that a unit has tested, and returns as they are or with their graph cut."""
    cut = (How.DATA, How.DETACH)
    objects = [m.state.object(ref) for value in m.results.returned for ref in value.refs]
    cuts = {share.storage for obj in objects for share in obj.shares if share.how in cut}
    names = handed_back(m) & m.results.tested
    return frozenset(name for name in names if m.number("argument", name) in cuts)


def _keeps_result(m: Machine, obj: Object) -> bool:
    """Whether backward needs what an operation has computed last as it is, so that nobody should write it."""
    saved = [m.needed.saves[number] for number in obj.saved if number in m.needed.saves]
    return obj.requires_grad > 0 and any(one.what == "output" for one in saved)


def _nearest(hits: list[Share], paths: dict[int, tuple[str, tuple[str, ...]]]) -> list[Share]:
    """What is a part of an argument's part is a part of the argument, too: only the part itself counts."""
    if len(hits) < 2:
        return hits
    found = [paths[share.storage] for share in hits]
    return [
        share
        for share, (name, path) in zip(hits, found, strict=True)
        if not any(o[0] == name and len(o[1]) > len(path) and o[1][: len(path)] == path for o in found)
    ]


def _condition(m: Machine, share: Share) -> str:
    """On what a share depends: its own condition, or that of what it was taken from. One that is unsure without either
    (`x[index]`, of an index that may pick several) holds on some paths."""
    if share.sure:
        return share.when
    for _ in range(reading.MAX_CHAIN):
        if share.when:
            return share.when
        above = (s for s in m.state.object(share.of).shares if s.storage == share.storage)
        share = next(above, share._replace(when="on some paths"))
        if share.sure:
            break
    return "on some paths"


def _weaker(a: Object, b: Object) -> Object:
    joined = join_objects(a, b)
    known = {a.requires_grad, b.requires_grad}
    mixed = {MIXED} if Fact.NO in known and max(known) > 0 else set()
    if joined.kind is Kind.MODULE and not joined.type:
        types = {*types_of(a), *types_of(b)}
        rest = tuple(one for one in joined.config if one[0] != ONE_OF)
        joined = joined._replace(config=rest if "" in types else (*rest, (ONE_OF, tuple(sorted(types)))))
    return joined._replace(flags=joined.flags | (a.flags | b.flags) & {ITSELF, MIXED, PERHAPS_CUT} | mixed)


def types_of(obj: Object) -> tuple[str, ...]:
    """The types of which an object's is one; empty where nobody knows it."""
    told = next((types for name, types in obj.config if name == ONE_OF), None)
    return told if isinstance(told, tuple) else (obj.type,)


def keep(m: Machine, result: Value, site: int, name: str, part: int | None) -> Value:
    """What backward keeps of a function's result, it keeps for the caller, too, and so of the first parts of it.

    `part` is the part's place among the others, `None` of the whole, negative of what stands in parts.
    """
    ref = result.refs[0]
    obj = m.state.object(ref)
    if KEPT in obj.flags:
        m.state.set_object(ref, obj._replace(flags=obj.flags - {KEPT}))
        kept = part is None or 0 <= part < MAX_KEPT
        if kept and m.state.mode.recording is not Fact.NO and obj.requires_grad > 0:
            number = site * 8 if part is None else site * 8 + FIRST_PART + part
            ids = saving.save(m, result, number, Saved(site, f"{name}(...)", "output", "its result"))
            obj = m.state.object(ref)
            m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))
    return result
