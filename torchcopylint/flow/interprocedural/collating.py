"""Functions of a file that put a batch together, and edit the samples that a dataset keeps in memory.

`DataLoader(TensorDataset(x, y), collate_fn=jitter)` hands rows of `x` to `jitter`, and an element of a list is
the object itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.transforms import Handed, edits, returned
from torchcopylint.flow.library.datasets import OF_TENSORS
from torchcopylint.flow.model import Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.facts import SampleEdited
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.model import Object
    from torchcopylint.flow.running.machine import Machine

_LOADER = "DataLoader"
_CHOOSING = frozenset({"Subset", "random_split"})
"""What hands out the samples of another dataset as they are."""
_MAX_STEPS = 6


def found(world: World) -> dict[int, list[SampleEdited]]:
    """By the unit of each function that is to put batches together: what it edits of the samples."""
    edited: dict[int, list[SampleEdited]] = {}
    for m in list(world.machines.values()):
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        for event in calls:
            given = {argument.keyword: argument.register for argument in event.arguments}
            if "collate_fn" in given and m.dotted_of(event).rpartition(".")[2] == _LOADER:
                for number, facts in _edited(world, m, event, given):
                    edited.setdefault(number, []).extend(facts)
    return edited


def _edited(
    world: World, m: Machine, event: t.Call | t.Invoke, given: dict[str, int]
) -> Iterator[tuple[int, list[SampleEdited]]]:
    first = event.arguments[0]
    dataset = given.get("dataset", first.register if not first.keyword and not first.stars else -1)
    collate = m.value(given["collate_fn"]).const
    # A worker edits a copy of its own, which the next epoch makes anew.
    alone = "num_workers" not in given or m.value(given["num_workers"]).const == 0
    if dataset < 0 or not alone or not isinstance(collate, FunctionReference) or not _keeps(m, dataset, _MAX_STEPS):
        return
    collating = world.machines.get(collate.unit)
    if collating is not None and collating.unit.parameters and collating.unit.owner < 0:
        # The batch is a list of its own: what is set in that leaves the samples.
        handed = Handed(event.site, 0, naming.text_of(m, dataset), shallow=True)
        facts = list(edits(collating, [handed], 0))
        if facts:
            yield collate.unit, facts


def _hands_out(m: Machine, dataset: Object) -> bool:
    """Whether a dataset is of a class of the file that fetches a sample by returning what a field keeps, as it is."""
    number = m.world.method_of(dataset, "__getitem__")
    fetching = m.world.machines.get(number) if number is not None else None
    return fetching is not None and bool(returned(fetching))


def _keeps(m: Machine, register: int, steps: int) -> bool:
    """Whether a dataset keeps its samples in memory and hands out these, or parts of them."""
    objects = [m.state.object(ref) for ref in m.value(register).refs]
    if objects and all(obj.type == OF_TENSORS or obj.kind in (Kind.LIST, Kind.TUPLE) for obj in objects):
        return True
    if objects and all(_hands_out(m, obj) for obj in objects):
        return True
    made = m.unit.definitions[register] if register >= 0 and steps else None
    if isinstance(made, t.Load):
        bound = uses.bindings_before(m, made)
        return bool(bound) and all(_keeps(m, one, steps - 1) for one in bound)
    if isinstance(made, t.Unpack):
        return _keeps(m, made.value, steps - 1)
    if isinstance(made, t.Call | t.Invoke) and made.arguments and m.dotted_of(made).rpartition(".")[2] in _CHOOSING:
        return _keeps(m, made.arguments[0].register, steps - 1)
    return False
