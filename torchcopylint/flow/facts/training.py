"""Relations about parameters, modules and optimizers, and what they are replaced by or put on."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow.facts.memory import Write
from torchcopylint.flow.model import Fact, Kind, Sure


class DataAccess(NamedTuple):
    """At `site`, `.data` of `name` is used: `form` is `read`, `method`, `augmented`, `item` or `assign`, `op` how.

    `op` is `[0]` for a read that goes on so. `gradient` is whether `name` is a `.grad`, `scalar` whether it has no
    dimensions, `context` the idiom that it stands in (see `idioms`), `buffer` whether it is a buffer of a module,
    `unheld` whether it has just been computed and nobody else holds it, `given` the name of what is assigned.
    """

    site: int
    name: str
    form: str
    op: str
    gradient: bool
    scalar: Fact
    kind: Kind
    sure: Sure
    context: str
    named_loss: bool
    buffer: bool = False
    unheld: bool = False
    given: str = ""


class DataShared(NamedTuple):
    """At `site`, `target` was put on the storage of `source`, which lives on. `form`: `assign`, `parameter`, `call`.

    `context` is the idiom that it stands in (see `idioms`). `handed` is whether it is a part of what the unit makes and
    returns, while the source belongs to the caller: a conversion of one module into another. `still` is whether nothing
    in the file trains or writes anything.
    """

    site: int
    target: str
    source: str
    form: str
    sure: Sure
    first: int = -1
    context: str = ""
    handed: bool = False
    still: bool = False


class AttributeSet(NamedTuple):
    """At `site`, the attribute `attribute` of `name` is set, which does not do what it seems to do."""

    site: int
    name: str
    attribute: str
    value: str
    kind: Kind
    sure: Sure


class FieldRead(NamedTuple):
    """At `site`, `field` of `self` is read by `consumer` in `method`, as it was when the method began."""

    field: str
    site: int
    consumer: str
    method: str
    target: str


class ParameterRebound(NamedTuple):
    """At `bound`, `name` was bound to a new tensor, and at `site` that is seen to be a mistake.

    `form` is `loop` (the variable of a loop, over `source` if that is known; nobody looks at the new tensor), `lost`
    (a name for `source`, a part of a module or an argument; nobody looks at the new tensor) or `gradient` (`.grad` is
    read of the new tensor, which is computed from the leaf that had the name before).
    """

    site: int
    name: str
    form: str
    source: str
    bound: int
    sure: Sure


class OptimizerStale(NamedTuple):
    """At `stored`, `name` was set, a part of what an optimizer in use had been built over at `built`.

    `optimizer` is the use at `site`, such as `optimizer.step()`; an empty text if it is returned, or, where `site` is
    `stored`, kept in a field. `loaded` is whether `name` is a whole module, whose parameters were exchanged by loading.
    """

    site: int
    name: str
    stored: int
    built: int
    optimizer: str
    sure: Sure
    loaded: bool = False


class GradientKept(NamedTuple):
    """At `site`, an optimizer puts a gradient, `source`, into its state as `name`, and computes with that at `read`.

    With a `cause`, a method puts it into the field `name`, and `cause` overwrites it, at `written`, before it is read.
    """

    site: int
    name: str
    source: str
    read: int
    sure: Sure
    written: int = -1
    cause: str = ""


class OptimizerHeld(NamedTuple):
    """At `site`, the constructor leaves an optimizer in `field` that is over the module in the field `over`.

    `calls` are the methods that the constructor calls. With an empty `over`
    it is over `parts` instead, what fields of `self` hold.
    """

    site: int
    field: str
    over: str
    calls: frozenset[str]
    sure: Sure
    parts: frozenset[str] = frozenset()
    renewed: tuple[tuple[str, frozenset[str]], ...] = ()
    """The other methods that put another optimizer there, each with the fields that it sets itself."""
    leaves: frozenset[str] = frozenset()
    """The fields of `self` with tensors that it steps on, which are leaves, and parameters of no module."""


class PartReplaced(NamedTuple):
    """At `site`, `method` sets `name`, a part with parameters of the module that `field` has held since before.

    With an empty `field`, `name` is itself a field of `self`, which gets what the method has made. `whole` is the name
    of the method with that of its class. `leaf` is whether what the field gets is a tensor, and no parameter.
    """

    site: int
    name: str
    field: str
    method: str
    whole: str
    sure: Sure
    leaf: bool = False


class LoadedByAssignment(NamedTuple):
    """At `site`, the module `name` takes over the tensors of `source`, a module that lives on; taken at `taken`."""

    site: int
    name: str
    source: str
    taken: int
    sure: Sure


class ParameterTwice(NamedTuple):
    """At `site`, an optimizer is given `name`, whose parameters are among those of `source` (`across` two groups)."""

    site: int
    name: str
    source: str
    across: bool
    sure: Sure


class StateItemLost(NamedTuple):
    """At `site`, an item of `name` is set, the state dict of `source` taken at `taken`, which nobody reads (`held`: it
    has a name)."""

    site: int
    name: str
    source: str
    taken: int
    held: bool
    sure: Sure


class ParameterOverwritten(NamedTuple):
    """At `site`, `name`, a registered parameter, is set to `source`, a plain tensor unless `when`."""

    site: int
    name: str
    source: str
    when: str
    sure: Sure


class ModulePaired(NamedTuple):
    """At `site`, one module meets itself: `name`, bound at `bound`, and `source` both hold it.

    `form` is `load` (its own state is loaded into it), `zip` (its parameters are paired with themselves) or `trained`
    (several such models are trained one by one).
    """

    site: int
    name: str
    source: str
    bound: int
    form: str
    sure: Sure


class StatesMerged(NamedTuple):
    """The state dict `name` of the model `source`, taken at `site`, is added to in place at `written`, and the sum goes
    elsewhere."""

    site: int
    name: str
    source: str
    written: int
    sure: Sure


class PutAside(NamedTuple):
    """At `site`, `consumer` uses the module `name`, which has been put aside on a condition at `bound`: it is `source`,
    and `write` came in between. Or the leaf of that name, as `kind` says."""

    site: int
    name: str
    source: str
    bound: int
    write: int
    consumer: str
    sure: Sure
    kind: Kind


class ModuleShallow(NamedTuple):
    """At `site`, `consumer` uses the module `name`, which was made at `made` by a shallow copy of `source`.

    `write` came in between.
    """

    site: int
    name: str
    source: str
    made: int
    write: int
    consumer: str
    sure: Sure


class CopyFrozen(NamedTuple):
    """At `site`, `op` switches off the parameters of `name`, a shallow copy of the module `source` made at `made`."""

    site: int
    name: str
    source: str
    op: str
    made: int
    sure: Sure


class FieldAliased(NamedTuple):
    """When `method` ends, `field` of `self`, set at `site`, is the module that the field `source` holds.

    `record` is whether that happens where one number is less than another, and `source` holds one module for good.
    `separate` is whether the constructor has made two modules of them, of which an optimizer trains `source` alone.
    `copied` is where the one was made by a shallow copy of the other, which shares the parameters; -1 if they are one.
    `only` is whether nobody else sets the field, but to `None`. Where it is `handed`, `source` is a parameter of the
    constructor instead. `trained` is where a class below this one trains `source`, if it is `separate` there.
    """

    field: str
    source: str
    site: int
    sure: Sure
    method: str
    record: bool = False
    separate: bool = False
    copied: int = -1
    only: bool = False
    handed: bool = False
    trained: Write | None = None


class FieldsPaired(NamedTuple):
    """At `site`, the modules that two fields of `self` have held since before the method meet: see `ModulePaired`.

    Or, as the `form` `modes`, the method calls `field` with recording off, and `other` with recording on. Where it is
    `handed`, `other` is a parameter of the method, and `field` a running average of it.
    """

    site: int
    field: str
    other: str
    form: str
    handed: bool = False
