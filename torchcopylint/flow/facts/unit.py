"""What is found out about a unit and a file as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from torchcopylint.base.finding import Role
from torchcopylint.flow.facts.answers import Revealed
from torchcopylint.flow.facts.autograd import (
    Accumulated,
    BackwardAgain,
    Clobbered,
    ComputedOnce,
    ContextKept,
    FieldKeepsGraph,
    FunctionInput,
    GradientRead,
    GradModeUnused,
    GraphLost,
    HookedSpoilt,
    InferenceMisused,
    KeptOfLayer,
    KeptSpoilt,
    LayerSpoils,
    LeafWritten,
    MappedWrite,
    NonleafKept,
    RequiresGradRefused,
    RetainedForNothing,
    StepUnreached,
    TermCopied,
    ViewRefused,
)
from torchcopylint.flow.facts.conversions import (
    Constructed,
    LayoutRefused,
    NumpyRefused,
    ReadInFlight,
    Redundant,
    ViewImpossible,
    VolatileUsed,
)
from torchcopylint.flow.facts.fields import (
    EditedAlone,
    EntriesEdited,
    EntryWritten,
    FieldCollected,
    FieldIsGlobal,
    FieldMet,
    FieldOver,
    FieldsShare,
    FieldsTwins,
    Kept,
    PartHandedOut,
    ScratchEdited,
    StillExpected,
    SumScaled,
)
from torchcopylint.flow.facts.memory import (
    AccumulatedOnce,
    CallerSuffers,
    Collected,
    ConditionalWrite,
    DefaultWritten,
    DetachedInPlace,
    Discarded,
    EditedEachTurn,
    ExpandedWritten,
    GeneratorReused,
    LookedAtAnew,
    OutAliases,
    OverlappingWrite,
    PartSuffers,
    ReadAfter,
    ReadAfterCut,
    Repeated,
    Resized,
    SampleEdited,
    SentAndWritten,
    SidesAlike,
    TensorCopied,
    Truncated,
    ViewStored,
    Write,
)
from torchcopylint.flow.facts.training import (
    AttributeSet,
    CopyFrozen,
    DataAccess,
    DataShared,
    FieldAliased,
    FieldRead,
    FieldsPaired,
    GradientKept,
    LoadedByAssignment,
    ModulePaired,
    ModuleShallow,
    OptimizerHeld,
    OptimizerStale,
    ParameterOverwritten,
    ParameterRebound,
    ParameterTwice,
    PartReplaced,
    PutAside,
    StateItemLost,
    StatesMerged,
)
from torchcopylint.flow.model import Fact, Kind

Relation: TypeAlias = (
    "ReadAfter | Clobbered | LayerSpoils | KeptOfLayer | KeptSpoilt"
    " | DataAccess | DataShared | LeafWritten | DetachedInPlace | ReadAfterCut"
    " | GradientRead | Discarded | GradModeUnused | AttributeSet | Repeated | Kept | FieldRead | Revealed"
    " | ParameterRebound | NonleafKept | OptimizerStale | OptimizerHeld | PartReplaced"
    " | ParameterTwice | StateItemLost | ParameterOverwritten"
    " | RequiresGradRefused | GeneratorReused | Truncated | AccumulatedOnce | Constructed | VolatileUsed"
    " | NumpyRefused | LayoutRefused | SidesAlike | Redundant | ReadInFlight | ConditionalWrite | OverlappingWrite"
    " | DefaultWritten | ViewRefused | ViewImpossible | Resized | ViewStored | CallerSuffers | Collected"
    " | ModulePaired | PutAside | ModuleShallow | FieldAliased | FieldsPaired | FunctionInput | OutAliases"
    " | ExpandedWritten | InferenceMisused | Accumulated | BackwardAgain | RetainedForNothing | GraphLost"
    " | SumScaled | ComputedOnce | HookedSpoilt"
    " | TensorCopied | TermCopied | StepUnreached | ContextKept | FieldKeepsGraph"
    " | LoadedByAssignment | MappedWrite | FieldMet | FieldCollected | SentAndWritten | SampleEdited"
    " | LookedAtAnew | StatesMerged | CopyFrozen"
    " | EntriesEdited | EntryWritten | EditedAlone | PartHandedOut | FieldIsGlobal | FieldsTwins | GradientKept"
    " | PartSuffers | FieldOver | FieldsShare | ScratchEdited | StillExpected | EditedEachTurn"
)


class UnitFacts(NamedTuple):
    """Everything found out about one unit, in source order.

    `class_number` is -1 outside of classes; `receiver` is the first parameter of a method, `self`.
    `returns_sources` are the storages that it returns itself, not as a view,
    or that it has taken away from the argument that they belong to (`x.set_(y)`);
    `returns_value` whether it returns anything at all, `takes_inplace` whether its caller decides by a parameter
    `inplace`, or its object by such a field, if it writes.
    `trains` is whether it calls `backward()`, `calls_trainer` whether it calls a function of
    the file that does, `has_no_grad` whether it switches grad mode off for a part of itself, `shielded` whether one
    beside it does so to write a parameter. `called_without_grad` is
    whether every call of it runs without grad (`UNKNOWN` if there is no call, or nobody knows), `recorded_elsewhere`
    whether, where its file does not say, another file surely calls it with recording on. `roles` is as what
    autograd calls it: `forward` or `backward` of a `Function`, `gradient hook`, `pack hook`; `mapped x` where `vmap`
    maps its parameter `x`. `given_away` are the parameters for which every call in the file, or, without any, in the
    project, passes what nobody else holds, `held_by_callers` those for which some call passes a tensor that the caller
    has made and goes on to hold.
    `feeds_backward` is whether a function of the file that runs backward calls it while autograd records, or it takes
    derivatives by `create_graph=True`.
    `optional` are the parameters that have a default, `parameters` all of them. `serves_forward` is whether the
    `forward` of its class calls it. `sets_fields` is whether it, or a method that it calls, sets a field of its object.
    `properties` are the fields that it looks at and that the class computes anew.
    """

    qualname: str
    name: str
    kind: str
    class_number: int
    receiver: str
    class_name: str
    class_kind: Kind
    facts: tuple[Relation, ...]
    writes: dict[int, Write]
    returns_sources: frozenset[int]
    returns_value: bool
    trains: bool
    calls_trainer: bool
    has_no_grad: bool
    shielded: bool
    called_without_grad: Fact
    roles: frozenset[str]
    takes_inplace: bool = False
    given_away: frozenset[str] = frozenset()
    held_by_callers: frozenset[str] = frozenset()
    feeds_backward: bool = False
    optional: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    serves_forward: bool = False
    recorded_elsewhere: bool = False
    sets_fields: bool = False
    properties: frozenset[str] = frozenset()


class Place(NamedTuple):
    """Where another file writes: in which function, by which operation, at which of that file's sites."""

    path: str
    site: int
    function: str
    op: str


class Inside(NamedTuple):
    """Where in a function of this file something happens that a call of it does, and by which operation, if by one.

    `given` is whether it happens to what the call passes, so that another call may be right.
    """

    site: int
    function: str
    op: str = ""
    given: bool = True


class WithHelpers(NamedTuple):
    """Units that call functions or methods of the file, with the events of those in the place of the calls.

    Sites there are others: `places` leads from them to those of the program, the event's own behind those of the calls
    that lead to it. `handed` are those at which a function is given something, `dropped` those of calls in the program
    that are statements of their own. `guests` are the units of other files by themselves, `partly` the sites of units
    in which only those helpers are put that train, write or share something, `through` those of units in which
    functions that are handed on stand in the places of their calls.
    """

    units: tuple[UnitFacts, ...] = ()
    places: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    handed: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    guests: tuple[UnitFacts, ...] = ()
    partly: frozenset[int] = frozenset()
    through: frozenset[int] = frozenset()


class Guest(NamedTuple):
    """A function of another file: what is found in it with what this file passes, first by the call at a site, and what
    its own file finds in it, which does not know that."""

    facts: UnitFacts
    unasked: UnitFacts
    call: int


class FileFacts(NamedTuple):
    """Everything found out about one file. `gaps` pair a reason with a site; `steps` counts the events run, in every
    run of every unit.

    `elsewhere` says, for calls of functions of other files that write what they are given, where those do so.
    `inside` says, for what a call of a function of this file does, where in that, or in what it calls, it happens: by
    the site of the call and the role of the step, with the storages or names of what it happens to, as in the unit
    around the call. `answerable` are, by such a place and role, the calls that do that to what they pass themselves.
    `expanded` are units once more, with what they call in them. `statements` are the sites of the statements around all
    sites, and `guests` the paths and sites of those, behind the file's own, that stand in other files; `called` are the
    functions there.
    """

    units: tuple[UnitFacts, ...]
    gaps: tuple[tuple[str, int], ...]
    steps: int
    elsewhere: Mapping[int, tuple[Place, ...]]
    expanded: WithHelpers = WithHelpers()
    statements: tuple[int, ...] = ()
    guests: Mapping[int, tuple[str, int]] = MappingProxyType({})
    called: tuple[Guest, ...] = ()
    inside: Mapping[tuple[int, Role], tuple[tuple[int | str, Inside], ...]] = MappingProxyType({})
    answerable: Mapping[tuple[int, Role], frozenset[int]] = MappingProxyType({})
