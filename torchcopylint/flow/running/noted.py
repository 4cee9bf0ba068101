"""What the events of a tape tell one another while it is run, by what it is about.

By register, by site or by object; sites and objects are numbers (`ref | 1` is an object and what became of it). Nothing
here outlives the run of one unit: what does is made of it at the end, as facts and as a summary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import Fact, Key, Kind, Part, Region, Slot, Sure, Value

if TYPE_CHECKING:
    from torchcopylint.base.finding import Role
    from torchcopylint.flow.facts import Accumulated, FieldKeepsGraph, Inside, Place, Saved
    from torchcopylint.flow.graphs.gathered import Gathered
    from torchcopylint.flow.program.ownership import Built
    from torchcopylint.flow.program.wholes import Whole
    from torchcopylint.flow.storages.reading import Chain
    from torchcopylint.flow.tapes.left import Left
    from torchcopylint.flow.values.state import Delta, Mode


class PutOn(NamedTuple):
    """An object that was put on the storages of another, which is named `source`, at some site.

    `owner` is the object that has the other one in a field, or -1.
    """

    ref: int
    storages: frozenset[int]
    source: str
    owner: int = -1


@dataclass(slots=True)
class Hits:
    """What each write has hit, by its site."""

    chains: dict[int, dict[int, Chain]] = field(default_factory=dict)
    """How each storage came to be held by the names that share it."""
    certain_storages: dict[int, frozenset[int]] = field(default_factory=dict)
    """The storages that it surely has written to."""
    regions: dict[int, dict[int, Region]] = field(default_factory=dict)
    roots: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Where the name was bound that was written through, and how it reads."""
    root_keys: dict[int, Key | None] = field(default_factory=dict)
    in_first_turn: dict[int, tuple[frozenset[int], dict[int, Chain]]] = field(default_factory=dict)
    """The certain storages and the chains of the first turn of a loop."""
    before: dict[int, dict[int, frozenset[int]]] = field(default_factory=dict)
    """What a loop had written before it begins again, by its site."""


@dataclass(slots=True)
class Needed:
    """What backward still needs, by the numbers of what was saved."""

    saves: dict[int, Saved] = field(default_factory=dict)
    in_loop: list[int] = field(default_factory=list)
    objects: dict[int, int] = field(default_factory=dict)
    """The object that is a value which was saved."""
    fields: dict[tuple[int, int], Region] = field(default_factory=dict)
    """The part of a storage that was saved."""
    by_modules: dict[int, Value] = field(default_factory=dict)
    """The network whose call has saved something."""
    keeping_nothing: set[int] = field(default_factory=set)
    """The calls of networks, among these, that save nothing which backward would let go."""

    def is_freed(self, number: int) -> bool:
        """Whether a number stands for what has been saved, which backward lets go."""
        return number in self.saves or (number in self.by_modules and number not in self.keeping_nothing)

    going_round: set[int] = field(default_factory=set)
    """What was saved by a call that is given a hidden state and returns the next one."""
    met: set[tuple[int, int]] = field(default_factory=set)
    """What surely has been hit by the write at a site."""
    met_alike: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """The same, where a write hits one of several things that the turns of a loop have made at one site: the
    numbers of what has been kept of them all."""
    in_evaluation: set[int] = field(default_factory=set)
    """Writes that are harmless, since the network is in evaluation mode."""


@dataclass(slots=True)
class Gathering:
    """What sums and lists gather over the turns of loops, by site."""

    own: dict[int, tuple[int, Accumulated]] = field(default_factory=dict)
    by_calls: dict[int, tuple[tuple[Gathered, ...], bool]] = field(default_factory=dict)
    hanging_on: dict[int, frozenset[int]] = field(default_factory=dict)
    """The graphs of networks on which what is gathered hangs."""


@dataclass(slots=True)
class Switches:
    """What was told whether it requires gradients."""

    parameters: set[int] = field(default_factory=set)
    """Networks whose parameters were switched off or on."""
    tensors: set[int] = field(default_factory=set)
    frozen: set[int] = field(default_factory=set)
    thawed: set[int] = field(default_factory=set)
    on: set[int] = field(default_factory=set)
    """Tensors that were told to require gradients."""


@dataclass(slots=True)
class Backward:
    """What backward has reached, and whose gradients are looked at."""

    reached: set[int] = field(default_factory=set)
    """The networks that backward has run over."""
    reached_since: set[int] | None = None
    """The same since a step was taken; nothing if backward has not run since."""
    asked: set[int] = field(default_factory=set)
    """The networks that were called."""
    reaches_unknown: bool = True
    """Whether backward has run over nothing of which it is known who computed it."""
    trains: bool = False
    """Whether backward runs."""
    calls_trainer: bool = False
    perhaps_without_graph: bool = False
    """Whether gradients are computed of which only who calls knows whether they have a graph."""
    gradients: set[int] = field(default_factory=set)
    unexplained: set[int] = field(default_factory=set)
    """Gradients of which nobody knows where they come from."""


@dataclass(slots=True)
class Owners:
    """What optimizers own, and what has taken the place of it."""

    optimizers: dict[int, Built] = field(default_factory=dict)
    groups_given: dict[int, Value] = field(default_factory=dict)
    """What an optimizer was made of."""
    wholes: dict[int, tuple[Whole, ...]] = field(default_factory=dict)
    """Iterators over what several wholes consist of."""
    replaced: dict[int, tuple[int, Part, str, Sure]] = field(default_factory=dict)
    """What another part was put in the place of, by the site."""
    taken_over: set[int] = field(default_factory=set)
    """The sites where an optimizer owns the new part as well."""
    lateness: dict[int, tuple[str, int, Sure]] = field(default_factory=dict)
    """What came to a network after its optimizer was built."""
    unowned: dict[int, int] = field(default_factory=dict)
    left_leaves: dict[int, tuple[str, int, tuple[int, ...], Sure]] = field(default_factory=dict)
    computed_fields: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where a field was last computed, and what it is."""


@dataclass(slots=True)
class Blocks:
    """The blocks that an event stands in: grad modes, and how many of each kind are around it."""

    factories: set[int] = field(default_factory=set)
    """Registers that hold a grad mode which is not entered yet."""
    before: dict[int, Mode] = field(default_factory=dict)
    entered: dict[int, Mode] = field(default_factory=dict)
    has_no_grad: bool = False
    guards: int = 0
    """How many handlers or assertions expect that something raises."""
    casting: int = 0
    """Blocks of autocast."""
    on_purpose: int = 0
    """Blocks that are there to fail or to warn, as of `pytest.raises` and `suppress`."""
    failing: int = 0
    """Blocks in which something surely raises, as of `pytest.raises`."""


@dataclass(slots=True)
class Custom:
    """What a custom autograd function says to its context."""

    dirty: dict[int, int] = field(default_factory=dict)
    """Where what is marked as dirty was."""
    marked_alone: set[int] = field(default_factory=set)
    kept_for_backward: list[int] = field(default_factory=list)
    kept_in_fields: dict[int, tuple[str, list[Value]]] = field(default_factory=dict)
    perhaps_written: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Results:
    """What leaves the unit."""

    returned: list[Value] = field(default_factory=list)
    yielded: dict[int, Value] = field(default_factory=dict)
    exits: list[Delta] = field(default_factory=list)
    otherwise: frozenset[str] = frozenset()
    """Parameters that come back only on paths where a test says that they are no tensors."""
    tested: set[str] = field(default_factory=set)
    """Parameters that a test says to be no tensors, on some path."""
    registers: dict[int, int] = field(default_factory=dict)
    lent_at: set[int] = field(default_factory=set)
    """Where what is returned came to share memory with what the unit was passed."""


@dataclass(slots=True)
class Called:
    """What the calls of a unit did, by their sites."""

    writes: dict[int, tuple[int, str, bool, str, tuple[str, ...]]] = field(default_factory=dict)
    """The writes to what they were passed."""
    part_writes: dict[int, tuple[int, str, tuple[str, ...]]] = field(default_factory=dict)
    graph_writes: set[int] = field(default_factory=set)
    """The calls in which autograd sees a write."""
    elsewhere: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    """Where in other files they did it."""
    inside: dict[tuple[int, Role], dict[tuple[int | str, Inside], None]] = field(default_factory=dict)
    left_at: dict[int, Left] = field(default_factory=dict)
    """What they leave in fields, and go on from on the next call."""
    left_by: set[int] = field(default_factory=set)
    """The calls that leave something computed in a field."""
    muted: set[int] = field(default_factory=set)
    """Where networks were called while nothing was recorded."""
    exchanged: dict[tuple[int, str], tuple[bool, Kind, bool]] = field(default_factory=dict)
    """The fields that they set anew of objects of which the unit itself has not looked at that field: whether they
    do so always, of which kind it is then, and whether that is no object."""
    fields: dict[tuple[str, str], dict[Fact, int]] = field(default_factory=dict)
    """Which method of a field was called with recording on and off, and where."""
    pure: dict[int, tuple[str, str, bool, Sure]] = field(default_factory=dict)
    """By register: calls that have no effect but their result."""


@dataclass(slots=True)
class Fields:
    """What stands in the fields of objects."""

    initial: dict[str, Slot] = field(default_factory=dict)
    """The fields of the unit's own object that it has looked at."""
    loaded: set[tuple[str, str]] = field(default_factory=set)
    """Fields of which one was given the state of the other."""
    tied: dict[tuple[int, int], int] = field(default_factory=dict)
    """Networks that hold the same parameters, and since where."""
    pairs: set[tuple[str, str, str]] = field(default_factory=set)
    """Two fields that share memory, and how."""
    kept: dict[int, tuple[FieldKeepsGraph, Value]] = field(default_factory=dict)
    renewed: dict[str, Kind] = field(default_factory=dict)
    """Arguments whose entries a loop over them puts anew, and the kind of what stands there then."""
    rebound: dict[int, tuple[int, str, Sure]] = field(default_factory=dict)
    """Objects that took the place of a leaf: where, under which name."""


@dataclass(slots=True)
class Shown:
    """What its use shows of a value."""

    evidence: dict[int, frozenset[str]] = field(default_factory=dict)
    """Attributes and methods that show what an object is."""
    data_reads: dict[int, int] = field(default_factory=dict)
    """Where a register came from `.data`."""
    dropped: dict[int, list[int]] = field(default_factory=dict)
    """Where names of an object were deleted."""
    region_names: dict[str, set[int]] = field(default_factory=dict)
    """The objects that are the part which an index tells."""
    cuts: dict[int, bool] = field(default_factory=dict)
    """By the site of a `detach_()`: whether there was a history to cut."""
    unrecorded: set[int] = field(default_factory=set)
    """Networks that were called while nothing is recorded."""
    taken_away: set[int] = field(default_factory=set)
    """Objects whose memory was taken from them."""
    copied_from: dict[int, frozenset[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Holding:
    """Who holds what, beyond names and fields."""

    shallow_of: dict[int, int] = field(default_factory=dict)
    """What a dictionary is a copy of, of which nobody knows what stands in it: there stands the same in both."""
    put_on: dict[int, PutOn] = field(default_factory=dict)
    given_memory: dict[int, tuple[int, str]] = field(default_factory=dict)
    """The parameter to which a plain tensor has become the memory, and where."""
    handed_memory: set[str] = field(default_factory=set)
    """The parameters of a function that become the memory of parameters that it hands out."""
    tables: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """The embedding to which a storage was given, and whether it is frozen."""
    memos: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """What a function that is memoised has returned, by how it was asked."""
    generators: dict[int, int] = field(default_factory=dict)
    """Where a generator was made."""
    hooks: dict[int, int] = field(default_factory=dict)
    """Where a hook was put on a network or tensor."""
    flights: dict[int, str] = field(default_factory=dict)
    """Copies that are under way, by their sites."""
    queues: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Where what another process is to take was put, and under which name."""
