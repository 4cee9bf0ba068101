"""Names that are bound anew where the tensor was to be changed: `w = w - lr * w.grad`, `for p in ps: p = p * 2`."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterRebound
from torchcopylint.flow.model import (
    ARGUMENT,
    FIELD,
    ITSELF,
    RETAINS,
    TENSORS,
    Cell,
    Fact,
    How,
    Key,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds, naming

_TOGETHER = frozenset({"builtins.zip", "builtins.enumerate"})
_KEPT = frozenset({How.PARAMETERS, How.FIELD, How.STATE, How.ROW})


def note_bind(m: Machine, event: t.Bind, before: Cell | None, value: Value) -> None:
    """A name that held a tensor is bound to a value. `before` is what it held."""
    if before is None or not before.refs or before.refs == value.refs or not value.refs:
        return
    if uses.from_iteration(m, event.value):
        # The head of a loop, which computes nothing: `for p, (_, group) in pairs:`.
        return
    old = m.state.object(before.refs[0])
    if old.kind not in TENSORS:
        _note_element(m, event, before, value)
        return
    name = event.name
    computed = uses.expression(m, event.value, name)
    if _writes(m, computed, before):
        return
    if not uses.is_computed_from(m, event.value, name):
        _note_exchanged(m, event, before, value)
        return
    gradient = _reads_gradient(m, computed, naming.key_text(m, name))
    _note_rebound(m, name, before, value, event.site, gradient)
    if m.in_loop and _from_loop(m, name, before) and uses.is_dead_in_loop(m, name, event.site):
        objects = [m.state.object(ref) for ref in (*before.refs, *value.refs)]
        gradient = gradient or _is_asked_for_gradient(m, before) or _is_updated(m, event, before)
        lives = gradient or _lives_elsewhere(m, before) or _is_entry(m, name, before)
        lives = lives or _is_gone_back_to(m, event, before)
        if lives and all(obj.kind in TENSORS for obj in objects):
            sure = max(old.sure, Sure.LIKELY) if gradient else min(obj.sure for obj in objects)
            source = _source(m, name, before)
            m.fact(ParameterRebound(event.site, naming.key_text(m, name), "loop", source, event.site, sure))
    elif (_is_of_others(m, before) if gradient else _is_new(m, before, value)) and uses.is_dead(m, name, event.site):
        sure = max(old.sure, Sure.LIKELY)
        m.fact(ParameterRebound(event.site, naming.key_text(m, name), "lost", old.text, event.site, sure))


def _note_element(m: Machine, event: t.Bind, before: Cell, value: Value) -> None:
    """A loop's name for one element after the other, of which nobody knows what it is, is bound to a tensor that is
    computed from it, and nobody looks at that, but at what the loop goes through: `for g in grads: g = g * scale`."""
    name = event.name
    new = [m.state.object(ref) for ref in value.refs]
    unknown = all(m.state.object(ref).kind is Kind.UNKNOWN for ref in before.refs)
    if not unknown or not m.in_loop:
        return
    if any(obj.kind not in TENSORS for obj in new) and not _is_sent_of_batch(m, event, before):
        return
    if not _from_loop(m, name, before) or not uses.is_computed_from(m, event.value, name):
        return
    if _writes(m, uses.expression(m, event.value, name), before) or not uses.is_dead_in_loop(m, name, event.site):
        return
    if _is_gone_back_to(m, event, before):
        m.fact(ParameterRebound(event.site, naming.key_text(m, name), "loop", "", event.site, Sure.LIKELY))


def _is_new(m: Machine, before: Cell, value: Value) -> bool:
    """Whether something new is computed of a parameter of somebody's, apart from any graph, as one does to change it:
    under `no_grad`, or of its `.data`. So it is of what was taken out of a module by its name: `w = layer.weight`."""
    data = [share for ref in before.refs for share in m.state.object(ref).shares if share.how is How.DATA]
    of = tuple(share.of for share in data) or before.refs
    if not data and m.state.mode.recording is not Fact.NO and not isinstance(before.origin, tuple):
        return False
    storages = {share.storage for ref in of for share in m.state.object(ref).shares}
    new = [m.state.object(ref) for ref in value.refs]
    apart = all(storages.isdisjoint(share.storage for share in obj.shares) for obj in new)
    parameters = all(m.state.object(ref).kind is Kind.PARAMETER for ref in of)
    known = apart and parameters and all(obj.kind in TENSORS for obj in new)
    return known and _is_of_others(m, before._replace(refs=of))


def _note_exchanged(m: Machine, event: t.Bind, before: Cell, value: Value) -> None:
    """A loop's name for one parameter after the other is bound to something else, such as what was to be loaded into
    it, and nobody looks at it: `for p in net.parameters(): p = nn.Parameter(piece)`."""
    old = m.state.object(before.refs[0])
    through = any(share.how is How.PARAMETERS for share in old.shares)
    if not through or not m.in_loop or not _from_loop(m, event.name, before):
        return
    new = [m.state.object(ref) for ref in value.refs]
    taken = isinstance(m.unit.definitions[event.value], t.Item)
    if not taken and any(obj.kind not in TENSORS for obj in new):
        return
    if uses.is_dead_in_loop(m, event.name, event.site, measured=True):
        source = _source(m, event.name, before)
        sure = min(old.sure, Sure.LIKELY)
        m.fact(ParameterRebound(event.site, naming.key_text(m, event.name), "loop", source, event.site, sure))


def note_store(m: Machine, slot: Key, text: str, register: int, value: Value, site: int) -> None:
    """A field or element that held a tensor is set to a value."""
    before = m.state.cell(slot)
    if before is None or not before.refs or before.refs == value.refs or not value.refs:
        return
    computed = uses.expression(m, register, "")
    if _reads_gradient(m, computed, text) and not _writes(m, computed, before):
        _note_rebound(m, slot, before, value, site, True)


def note_gradient_read(m: Machine, ref: int, obj: Object, site: int, text: str) -> None:
    """`.grad` is read, by the name of `text`, of what took the place of a leaf: nothing will ever stand there.

    Who reads it by another name has been handed what was computed, and takes that for no leaf of his.
    """
    rebound = m.fields.rebound.get(ref | 1)
    if rebound is None or RETAINS in obj.flags:
        return
    is_leaf = obj.leaf is not Fact.NO and obj.requires_grad is not Fact.NO
    if obj.kind in (*TENSORS, Kind.UNKNOWN) and not is_leaf:
        bound, name, sure = rebound
        if name != text and name.isidentifier() and text.isidentifier():
            return
        m.fact(ParameterRebound(site, name, "gradient", "", bound, sure))


def _note_rebound(m: Machine, key: Key, before: Cell, value: Value, site: int, gradient: bool) -> None:
    """The new holder of a leaf's name is computed from its gradient: it is meant to be the leaf from now on."""
    objects = [m.state.object(ref) for ref in before.refs]
    leaves = [obj for obj in objects if obj.leaf is Fact.YES and obj.requires_grad > 0]
    # Of a field nobody knows what another method has put there; who reads its gradient takes it for a leaf. So does who
    # is handed one, and what is computed of it while nothing is recorded has no gradient, ever.
    owners = (FIELD, ARGUMENT) if m.state.mode.recording is Fact.NO else (FIELD,)
    fields = [obj for obj in objects if obj.owner in owners and obj.leaf is obj.requires_grad is Fact.UNKNOWN]
    if not leaves and fields and m.state.mode.recording is not Fact.UNKNOWN:
        leaves = [obj for obj in fields if obj.kind in TENSORS]
    # On the loop's next turn, what took the leaf's place is asked for its gradient, and replaced in turn.
    earlier = next((m.fields.rebound[ref | 1] for ref in before.refs if ref | 1 in m.fields.rebound), None)
    # What a helper hands back may be the leaf: `torch.view_as_real(p) if p.is_complex() else p`.
    itself = not set(before.refs).isdisjoint(value.refs)
    for ref in value.refs:
        new = m.state.object(ref)
        m.fields.rebound.pop(ref | 1, None)
        if new.kind not in (*TENSORS, Kind.UNKNOWN) or itself or ITSELF in new.flags:
            continue
        if not gradient or not leaves:
            # Also what is computed of that alone, as the second half of a step: `x = x.clamp(0, 1)`.
            goes_on = earlier is not None and (earlier[0] == site or not gradient)
            if earlier is not None and goes_on and Fact.NO in (new.leaf, new.requires_grad):
                m.fields.rebound[ref | 1] = earlier
            continue
        if leaves == fields and new.leaf is new.requires_grad is Fact.UNKNOWN:
            new = new._replace(leaf=Fact.NO, requires_grad=Fact.LIKELY)
            m.state.set_object(ref, new)
        if not (new.leaf is Fact.YES and new.requires_grad > 0):
            m.fields.rebound[ref | 1] = (site, naming.key_text(m, key), max(Sure.LIKELY, max(o.sure for o in leaves)))


def _writes(m: Machine, computed: list[t.Event], before: Cell) -> bool:
    """Whether a part of the expression changes what the name held in place: `p = p.data.mul_(2)` does as it should."""
    held = {share.storage | 1 for ref in before.refs for share in m.state.object(ref).shares}
    written = (storage for part in computed if part.site in m.writes for storage in m.writes[part.site].storages)
    return any(storage | 1 in held for storage in written)


def _reads_gradient(m: Machine, computed: list[t.Event], text: str) -> bool:
    return any(
        part.__class__ is t.Attribute and part.name == "grad" and naming.text_of(m, part.base) == text
        for part in computed
    )


def _is_asked_for_gradient(m: Machine, before: Cell) -> bool:
    """Whether a loop that does not record has looked at the gradient of what it goes through: it is to be trained."""
    return m.state.mode.recording is Fact.NO and m.backward.gradients.issuperset(before.refs)


def _is_updated(m: Machine, event: t.Bind, before: Cell) -> bool:
    """Whether something is added to, or taken from, what is called like a parameter and stands in a field, such as the
    list that an optimizer has made of what it was given: `for p, v in zip(self.params, self.velocity): p = p - v`."""
    made = m.unit.definitions[event.value]
    objects = [m.state.object(ref) for ref in before.refs]
    step = isinstance(made, t.Operate) and made.symbol in ("+", "-") and len(made.operands) == 2
    return step and all(obj.kind is Kind.PARAMETER and obj.owner == FIELD for obj in objects)


def _from_loop(m: Machine, name: str, before: Cell) -> bool:
    bound = next((use for use in uses.of_name(m, name) if use.site == before.site and not use.loads), None)
    return bound is not None and uses.from_iteration(m, bound.register)


def _is_entry(m: Machine, name: str, before: Cell) -> bool:
    """Whether the loop goes through the entries of a dictionary, which has them: `for k, v in state.items()`."""
    iterate = _iterate(m, name, before)
    through = m.unit.definitions[iterate.iterable] if iterate is not None and iterate.iterable >= 0 else None
    return isinstance(through, t.Invoke) and through.name in ("items", "values") and not through.arguments


def _iterate(m: Machine, name: str, before: Cell) -> t.Iterate | None:
    """What takes out of something what a name holds, or a tuple that it is a part of."""
    bound = next((use for use in uses.of_name(m, name) if use.site == before.site and not use.loads), None)
    event = m.unit.definitions[bound.register] if bound is not None and bound.register >= 0 else None
    while isinstance(event, t.Unpack):
        event = m.unit.definitions[event.value]
    return event if isinstance(event, t.Iterate) else None


def _is_gone_back_to(m: Machine, event: t.Bind, before: Cell) -> bool:
    """Whether the unit looks again, behind the loop, at the name of what the loop goes through, or of one of those that
    it goes through together: what was wanted was to be found there. What loads batches makes others each time."""
    iterate = _iterate(m, event.name, before)
    pending = [(iterate.iterable, False)] if iterate is not None else []
    for register, entries in pending:
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Load):
            if (entries or not kinds.named_loader(made.name)) and _is_looked_at_behind(m, made, before.site):
                return True
        elif isinstance(made, t.Invoke) and made.name in ("items", "values"):
            pending.append((made.base, True))
        elif isinstance(made, t.Call) and m.dotted_of(made) in _TOGETHER:
            pending += [(argument.register, False) for argument in made.arguments]
    return False


def _is_sent_of_batch(m: Machine, event: t.Bind, before: Cell) -> bool:
    """Whether an entry of what is called a batch is sent somewhere, which leaves tensors where they are, and modules do
    not stand in: `for k, v in batch.items(): v = v.to(device)`."""
    made = m.unit.definitions[event.value]
    iterate = _iterate(m, event.name, before)
    through = m.unit.definitions[iterate.iterable] if iterate is not None and iterate.iterable >= 0 else None
    entries = isinstance(through, t.Invoke) and through.name in ("items", "values")
    sent = isinstance(made, t.Invoke) and made.name in ("to", "cuda", "cpu", "float", "half", "long")
    return sent and isinstance(through, t.Invoke) and entries and kinds.named_batch(naming.text_of(m, through.base))


def _is_looked_at_behind(m: Machine, load: t.Load, bound: int) -> bool:
    """Whether a name is loaded behind the loop that binds something at a site, for more than how many elements it has,
    before it is bound to something else."""
    loop = uses.loops_around(m, bound)
    found = uses.of_name(m, load.name)
    first = next((use.position for use in found if use.register == load.out), -1)
    for use in found:
        if use.position <= first or use.loops[: len(loop)] == loop:
            continue
        if not use.loads:
            return False
        user = m.consumer_of(use.register)
        asked = m.unit.definitions[user.function] if isinstance(user, t.Call) else None
        if not (isinstance(asked, t.Load) and asked.name == "len"):
            return True
    return False


def _lives_elsewhere(m: Machine, before: Cell) -> bool:
    """Whether the loop goes through tensors that are kept: a batch of a data loader is nobody else's."""
    for ref in before.refs:
        if any(share.how in _KEPT for share in m.state.object(ref).shares):
            return True
        for key in m.state.holders.get(ref, ()):
            held = isinstance(key, tuple) and m.state.object(key[0]).kind in (Kind.LIST, Kind.DICT)
            if held and ref in m.state.refs_of(key):
                return True
    return False


def _is_of_others(m: Machine, before: Cell) -> bool:
    """Whether a name held a part of a module, a field, or what the caller has handed in: a tensor that lives on."""
    objects = [m.state.object(ref) for ref in before.refs]
    return all(obj.owner in (ARGUMENT, FIELD) or any(share.how in _KEPT for share in obj.shares) for obj in objects)


def _source(m: Machine, name: str, before: Cell) -> str:
    """What the loop goes through, where that has a name."""
    for share in m.state.object(before.refs[0]).shares:
        if share.how is How.PARAMETERS:
            return m.state.object(share.of).text
    return ""
