"""Arrays that are made of tensors: by NumPy, and by what draws, of whatever they are given.

torch refuses that to a tensor that requires grad (`Can't call numpy() on Tensor that requires grad`). Called before the
effects of a call are applied, as everything in `conversions` is.
"""

from __future__ import annotations

from collections.abc import Callable

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import NumpyRefused
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import GRADLESS, LOCAL, TENSORS, Fact, How, Kind, Object, Sure, Value
from torchcopylint.flow.program import hollow
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of

TO_ARRAY = frozenset({"numpy.array", "numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"})


def _named(package: str, names: str) -> list[str]:
    return [f"{package}.{name}" for name in names.split()]


# Which functions ask for an array, and of what, was executed with NumPy 2.4, matplotlib 3.11 and torch 2.13.
_OF_TENSORS = _named(
    "numpy",
    "median average argmax argmin argsort sort cumsum percentile quantile nanmean nansum nanstd nanmax nanmin round"
    " sqrt log log2 log10 log1p exp abs absolute isnan isfinite isinf square stack vstack hstack histogram"
    " unique ravel",
)
"""Functions of NumPy that make an array of a list, or of a single tensor."""
_OF_LISTS = _named("numpy", "mean sum max min amax amin std var prod concatenate squeeze any all")
"""Those that do so of a list alone. For a tensor, they call its method of that name, and fail for another reason, or
do not."""
_OF_BOTH = _named("numpy", "maximum minimum allclose isclose array_equal dot matmul outer power corrcoef")
"""Those that make arrays of their first two arguments."""
_DRAWING = _named("matplotlib.pyplot", "plot scatter bar semilogx semilogy loglog fill_between step errorbar stem")
"""Functions of pyplot that make arrays of their first two arguments, if these are not a format."""
_SHOWING = _named("matplotlib.pyplot", "hist imshow matshow boxplot")
_MAX_VIEWS = 8


def ask(m: Machine, value: Value, site: int, name: str, op: str, *, plainly: bool = True) -> None:
    """An array is made of a tensor: refused if that requires grad, on whatever path it comes. `plainly` is whether the
    code says that it is to be an array."""
    objects = [m.state.object(ref) for ref in value.refs]
    # torch asks whether autograd records, too (`Can't call numpy()`, executed under torch 2.13).
    off = m.blocks.guards or m.state.mode.recording is Fact.NO
    if off or not objects or any(_needs_none(o) for o in objects):
        return
    if _is_asked_for(m, name):
        return
    obj = min(objects, key=lambda o: (o.requires_grad, o.sure))
    sure = obj.sure if obj.requires_grad is Fact.YES else min(obj.sure, Sure.LIKELY)
    if obj.requires_grad is not Fact.YES and _comes_from_elsewhere(m, obj):
        sure = Sure.HINT
    if not plainly and obj.requires_grad is not Fact.YES and not m.backward.trains and not runs.ran_at(obj.graph):
        # Where nothing is trained, whoever draws what a network returns has one without parameters, or a frozen one.
        sure = Sure.HINT
    m.fact(NumpyRefused(site, name, op, m.state.mode.assumed, sure, _detaches_others(m)))


def _is_asked_for(m: Machine, name: str) -> bool:
    """Whether a unit tests if a value requires grad, and detaches it where it does: `x.detach().numpy() if
    x.requires_grad else x.numpy()`."""
    root = name.partition("(")[0].rpartition(".")[0] if "(" in name else name
    if not root.replace(".", "").isidentifier():
        return False
    asked = (event for event in m.index.of(t.Attribute) if event.name == "requires_grad")
    texts = {naming.text_of(m, event.base) for event in asked if isinstance(m.consumer_of(event.out), _TESTS)}
    cut = {naming.text_of(m, event.base) for event in m.index.of(t.Invoke) if event.name == "detach"}
    return any(root == text or root.startswith(f"{text}.") for text in texts & cut)


_TESTS = (t.Test, t.Assume, t.Logic)


def _detaches_others(m: Machine) -> bool:
    """Whether a unit has `x.detach().numpy()` in it: who runs without recording need not say that."""
    for event in m.index.of(t.Invoke):
        made = m.unit.definitions[event.base] if event.name == "numpy" and event.base >= 0 else None
        for _ in range(_MAX_VIEWS):
            if not isinstance(made, t.Invoke) or made.name == "detach":
                break
            made = m.unit.definitions[made.base] if made.base >= 0 else None
        if isinstance(made, t.Invoke) and made.name == "detach":
            return True
    return False


def _needs_none(obj: Object) -> bool:
    """Whether an object is no tensor, or one that requires no grad, or is not known to; or has been asked for that."""
    return obj.kind not in TENSORS or obj.requires_grad <= 0 or GRADLESS in obj.flags


def _comes_from_elsewhere(m: Machine, obj: Object) -> bool:
    """Whether something that likely requires grad may as well not.

    Who reads the weights of a model that came from elsewhere has frozen it, or works without grad. A network that comes
    from elsewhere may be frozen, have no parameters, or be of another framework; not one that backward has run over.
    """
    if _of_parameter(m, obj):
        return not _is_made_here(m, obj)
    return not hollow.comes_through_known(m, obj) and not runs.ran_at(obj.graph)


def _is_made_here(m: Machine, obj: Object) -> bool:
    """Whether a parameter is one of a module that the unit itself has made, of a class of torch or of the file, so that
    it would have been seen to be frozen."""
    owners = [m.state.object(share.storage) for share in obj.shares]
    return all(
        owner.kind is Kind.MODULE and owner.sure is Sure.PROVEN and owner.type and owner.owner in ("", LOCAL)
        for owner in owners
    )


def _of_parameter(m: Machine, obj: Object) -> bool:
    """Whether an object is a parameter, or a view of one."""
    for _ in range(_MAX_VIEWS):
        if obj.kind is Kind.PARAMETER:
            return True
        above = [share.of for share in obj.shares if share.how is How.VIEW]
        if not above:
            return False
        obj = m.state.object(above[0])
    return False


def _ask_of(m: Machine, value: Value, register: int, event: t.Call | t.Invoke, name: str, *, alone: bool) -> None:
    """An array is made of an argument: of what stands in a list, or of a tensor if the function does that `alone`."""
    text = naming.text_of(m, register) if register >= 0 else "..."
    plainly = m.dotted_of(event) in TO_ARRAY
    if kind_of(value, m.state) in (Kind.LIST, Kind.TUPLE):
        for slot in [slot for ref in value.refs for slot in m.state.slot_names(ref)]:
            cell = m.state.cell(slot)
            if cell is not None:
                ask(m, Value(cell.refs, cell.kind), event.site, text, f"{name}({text})", plainly=plainly)
    elif alone:
        ask(m, value, event.site, text, f"{name}({text})", plainly=plainly)


def _asking(count: int, *, alone: bool) -> Callable[[Machine, Arguments, t.Call | t.Invoke, str], None]:
    """What to do at a call of a function that makes arrays of its first `count` arguments."""

    def observe(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
        before = len(m.facts.get(event.site, ()))
        given = [a.register for a in event.arguments if not a.stars and a.keyword in ("", "data")]
        for place in range(min(count, len(arguments.positional) or 1)):
            register = given[place] if place < len(given) else -1
            _ask_of(m, arguments.at(place), register, event, name, alone=alone)
            if len(m.facts.get(event.site, ())) > before:
                # What the first argument is refused for, the others are not looked at.
                return

    return observe


OBSERVERS = {
    **dict.fromkeys(_OF_LISTS, _asking(1, alone=False)),
    **dict.fromkeys(_OF_TENSORS, _asking(1, alone=True)),
    **dict.fromkeys(_OF_BOTH, _asking(2, alone=True)),
    **dict.fromkeys(_DRAWING, _asking(2, alone=True)),
    **dict.fromkeys(_SHOWING, _asking(1, alone=True)),
    **dict.fromkeys(TO_ARRAY, _asking(1, alone=True)),
}
"""What is to be done at calls of functions, by their dotted names."""
