"""Training steps: what an optimizer, or a call that trains by its name, writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import How, Kind, Sure, Value
from torchcopylint.flow.program import ownership
from torchcopylint.flow.storages import writing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds, memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_TRAINING_NAME = re.compile(
    r"(?:^|[._])(?:train|fit|run_epoch|epoch|optimi[sz]e|learn|train_step|training_step)(?:_\w+)?$"
)
_MEASURE = re.compile(
    r"_(?:criteri(?:on|a)|loss(?:es)?(?:_?(?:fn|func|function))?|metrics?|acc(?:uracy)?|scores?"
    r"|transforms?|aug(?:mentations?)?)$",
    re.I,
)
"""What is for training and does not train: `self.train_criterion(output, y)`, `self.train_acc(output, y)`."""
_EVALUATING_NAME = re.compile(
    r"(?:^|_)(?:val|valid|validate|validation|eval|evaluate|evaluation|test|testing|infer|inference|predict)_"
)
"""What stands before such a word in a name that only evaluates: `val_epoch`, `evaluate_one_epoch`, `test_fit`. Behind
it, it does both: `train_and_eval`."""
_STEPPING_NAMES = frozenset({"step", "optimizer_step"})
"""`scaler.step(optimizer)`, `xm.optimizer_step(optimizer)`: somebody else lets an optimizer step."""


def step(m: Machine, optimizer: Value, site: int, text: str) -> None:
    """`optimizer.step()` writes the parameters it was given, or, if nobody knows which, those that backward reached."""
    obj = m.state.object(optimizer.refs[0])
    # What a name holds on one path only, such as a wrapper around it, moves what it moves on the other.
    alike = m.state.refs_of(optimizer.root) if optimizer.root is not None else ()
    known = any(s.how is How.PARAMETERS for ref in (*optimizer.refs, *alike) for s in m.state.object(ref).shares)
    # Its network is among those that backward has reached since an optimizer stepped last, if there was a backward.
    reached = m.backward.reached if m.backward.reached_since is None else m.backward.reached_since
    if not known and len(reached) > 1:
        reached = _named_alike(m, text, reached)
    if not known and not m.backward.reached:
        reached = _handed_in(m, text)
    targets = optimizer.refs if known else tuple(sorted({*optimizer.refs, *reached}))
    target = Value(targets, obj.kind, None, optimizer.marks, optimizer.root)
    ownership.note_used(m, optimizer, site, f"{text}.step()")
    # Nobody knows the optimizer, and backward has reached one network only: it is that one's. It is that of several
    # where nobody else steps.
    unknown = not known and optimizer.refs[0] | 1 not in m.owners.optimizers
    single = unknown and len(reached) == 1
    through = known and _goes_through_all(m, optimizer, site)
    every = single or (unknown and _steps_alone(m)) or through
    if single:
        # What gradients have gone through, and an optimizer moves, is a network, whatever it is called.
        memory.refine(m, Value(tuple(reached)), Kind.MODULE, Sure.LIKELY)
    # Where each of several optimizers steps, what the ones before have written was written too.
    also = through and m.lane % 100 > 0
    cause = f"{text}.step()"
    writing.write(m, target, site, op="step()", form="step", name=text, cause=cause, every=every, also=also)
    if single:
        for share in m.state.object(next(iter(reached))).shares:
            writing.spoil_saved(m, share, site, certain=True)
    m.backward.reached_since = None


def _goes_through_all(m: Machine, optimizer: Value, site: int) -> bool:
    """Whether a loop goes through several optimizers, and each of them steps: `for opt in optimizers.values():`."""
    cell = m.state.cell(optimizer.root) if isinstance(optimizer.root, str) else None
    if cell is None or uses.on_some_paths(m, site):
        return False
    bound = [bind.value for bind in m.index.binds.get(str(optimizer.root), ()) if bind.site == cell.site]
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    while isinstance(made, t.Unpack):
        made = m.unit.definitions[made.value]
    through = m.unit.definitions[made.iterable] if isinstance(made, t.Iterate) else None
    return isinstance(through, t.Load | t.Attribute | t.Make | t.Call) or (
        isinstance(through, t.Invoke) and through.name in ("values", "items")
    )


def _handed_in(m: Machine, optimizer: str) -> set[int]:
    """The network of a unit that is handed an optimizer, and a loss if it runs backward: one, that it looks into.

    Not where the file shows who hands it: there, what is handed is known.
    """
    found = m.backward.asked.union(*(value.refs for value in m.needed.by_modules.values()))
    single = len(found) == 1 and found == m.backward.asked and m.backward.reaches_unknown and _steps_alone(m)
    return found if single and not m.world.may_be_handed(m.unit, optimizer) else set()


def _named_alike(m: Machine, optimizer: str, networks: set[int]) -> set[int]:
    """Those of some networks that an optimizer moves, as its name says: `opt_d` that of `disc`. Else, all of them."""
    own = _OPTIMIZER_WORDS.sub("", optimizer.rpartition(".")[2]).lower().strip("_")
    found = set()
    for ref in networks if own else ():
        other = _NETWORK_WORDS.sub("", m.state.object(ref).text.rpartition(".")[2]).lower().strip("_")
        if other and (other.startswith(own) or own.startswith(other)):
            found.add(ref)
    return found if len(found) == 1 else networks


_OPTIMIZER_WORDS = re.compile(r"(?:optimi[sz]er|optim|opt|solver)(?:s(?=_|$))?", re.I)
_NETWORK_WORDS = re.compile(r"model|network|net", re.I)


def _steps_alone(m: Machine) -> bool:
    """Whether a unit lets one optimizer step, and no other."""
    stepping = {
        name.partition("@")[0]
        for name, uses in m.unit.uses.items()
        if "step()" in uses
        and (kinds.from_uses(uses)[0] is Kind.OPTIMIZER or kinds.named_optimizer(name.partition("@")[0]))
    }
    texts = (naming.text_of(m, event.base) for event in m.index.of(t.Invoke) if event.name == "step")
    fields = {text for text in texts if "." in text and kinds.named_optimizer(text.rpartition(".")[2])}
    return len(stepping | fields) == 1


def maybe_step(m: Machine, arguments: Arguments, site: int, name: str) -> None:
    """A call that by its name lets an optimizer step that it is given."""
    if name.rpartition(".")[2] not in _STEPPING_NAMES:
        return
    for value in arguments.positional[-1:]:
        if len(value.refs) == 1:
            obj = m.state.object(value.refs[0])
            if obj.kind is Kind.OPTIMIZER or (obj.kind is Kind.UNKNOWN and kinds.named_optimizer(obj.text)):
                step(m, value, site, obj.text)


def maybe_trains(m: Machine, arguments: Arguments, site: int, name: str, receiver: Value | None = None) -> None:
    """A call that by its name trains writes the parameters of the models it is given, or that its receiver holds."""
    named = _TRAINING_NAME.search(name)
    if (
        named is None
        or _MEASURE.search(name)
        or _EVALUATING_NAME.search(name.rpartition(".")[2].removesuffix(named.group().lstrip("._")))
    ):
        return
    written = False
    for value in (*arguments.positional, *arguments.keywords.values(), *_models_of(m, receiver)):
        for ref in value.refs:
            obj = m.state.object(ref)
            if obj.text == name:
                # `self.train_transform(image)`: a thing that is called does not train itself.
                continue
            if obj.kind is Kind.UNKNOWN and kinds.named_model(obj.text):
                memory.refine(m, Value((ref,)), Kind.MODULE, Sure.HINT)
                obj = m.state.object(ref)
            if obj.kind is Kind.MODULE:
                target = Value((ref,), obj.kind, None, value.marks, value.root)
                op = f"{name}(...)"
                fact = writing.write(m, target, site, op=op, form="step", name=obj.text, cause=op, also=written)
                written = written or fact is not None


def _models_of(m: Machine, receiver: Value | None) -> Iterator[Value]:
    """The fields of an object that are models, or are called so."""
    for ref in receiver.refs if receiver is not None else ():
        if m.state.object(ref).kind in (Kind.MODULE, Kind.OPTIMIZER):
            continue
        for slot in m.state.slot_names(ref):
            cell = m.state.cell(slot)
            if cell is not None and slot[1].startswith("."):
                yield Value(cell.refs, cell.kind, None, cell.marks, slot)
