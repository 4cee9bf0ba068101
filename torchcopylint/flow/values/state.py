"""The state at one point of a program, and how it forks and merges.

One dictionary holds everything that depends on the point: names, slots of objects, the objects themselves, grad mode.
A branch does not copy it. `fork` starts a journal of old values; `take` undoes to the fork and hands out what was
different, as a delta. `merge` joins deltas into the state. So a branch costs what it changes, not what is known.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain
from typing import NamedTuple, TypeAlias, cast

from torchcopylint.flow.model import (
    BUFFERS,
    CONTAINERS,
    TENSORS,
    UNKNOWN_OBJECT,
    Cell,
    Fact,
    Key,
    Kind,
    Object,
    Part,
    Share,
    Slot,
    Value,
    join_facts,
    join_objects,
    whole_share,
)
from torchcopylint.flow.values.joining import join_cells

ALIVE = "@alive"
MODE = "@mode"
TRAINING = "@training"
"""Whether the module that the code belongs to may be in training mode here: a test of it can say that it is not."""
Entry: TypeAlias = "Cell | Object | Mode | bool | frozenset[int] | None"
Delta: TypeAlias = "dict[Key, Entry]"


class Mode(NamedTuple):
    """Grad mode: whether autograd records (`assumed` on at the entry of a function), and inference mode.

    `asked` is the register of the value that says which, for whoever asks for it as well, or -1.
    """

    recording: Fact
    inference: Fact = Fact.NO
    assumed: bool = False
    asked: int = -1


def join_modes(a: Mode, b: Mode) -> Mode:
    """Grad mode where two paths meet."""
    if a == b:
        return a
    if a.asked == b.asked >= 0 and a.inference is b.inference:
        return Mode(Fact.LIKELY, a.inference, True, a.asked)
    return Mode(join_facts(a.recording, b.recording), join_facts(a.inference, b.inference), a.assumed or b.assumed)


class State:
    """See the module. `holders` and `sharers` are indexes that only grow: a hit must be checked against the state.

    `entries` is one dictionary as long as the state lives; only the state changes it.
    """

    def __init__(self, mode: Mode) -> None:
        self.entries: dict[Key, Entry] = {ALIVE: True, MODE: mode, TRAINING: True}
        self._journals: list[dict[Key, Entry]] = []
        self.holders: dict[int, set[Key]] = {}
        self.sharers: dict[int, set[int]] = {}
        self.slots: dict[int, set[str]] = {}
        self.registers: dict[int, Value] = {}
        self._in_registers: dict[int, set[int]] = {}

    # -- entries

    def get(self, key: Key) -> Entry:
        """The entry of a key, or `None`."""
        return self.entries.get(key)

    def put(self, key: Key, entry: Entry) -> None:
        """Set an entry; `None` removes it."""
        entries = self.entries
        if self._journals:
            journal = self._journals[-1]
            if key not in journal:
                journal[key] = entries.get(key)
        if entry is None:
            entries.pop(key, None)
        else:
            entries[key] = entry

    @property
    def alive(self) -> bool:
        """Whether this point can be reached."""
        return self.entries[ALIVE] is True

    def die(self) -> None:
        """Nothing after this point is reached, until a merge."""
        self.put(ALIVE, False)

    @property
    def mode(self) -> Mode:
        """Grad mode here."""
        return self.entries[MODE]  # type: ignore[return-value]

    # -- forks

    def fork(self) -> int:
        """Start a journal; returns its level, for `capture`."""
        self._journals.append({})
        return len(self._journals) - 1

    def take(self) -> Delta:
        """Undo to the last fork; returns what was different just before."""
        journal = self._journals.pop()
        entries = self.entries
        delta: Delta = {}
        for key, old in journal.items():
            new = entries.get(key)
            if new is not old and new != old:
                delta[key] = new
            if old is None:
                entries.pop(key, None)
            else:
                entries[key] = old
        return delta

    def capture(self, level: int) -> Delta:
        """What is different now from the fork at `level`, without undoing anything."""
        keys = dict.fromkeys(chain.from_iterable(self._journals[level:]))
        return {key: self.entries.get(key) for key in keys}

    def apply(self, delta: Delta) -> None:
        """Make the state what a delta says, as it is."""
        for key, entry in delta.items():
            self.put(key, entry)

    def merge(self, deltas: list[Delta]) -> bool:
        """The state becomes the join of what each live delta makes of it. Returns whether it changed.

        Without a live delta the state is dead.
        """
        live = [delta for delta in deltas if delta.get(ALIVE, self.entries[ALIVE]) is True]
        if not live:
            changed = self.alive
            self.die()
            return changed
        changed = False
        keys = dict.fromkeys(chain.from_iterable(live)) if len(live) > 1 else live[0]
        for key in keys:
            base = self.entries.get(key)
            entry = live[0].get(key, base)
            for delta in live[1:]:
                entry = self._join(key, entry, delta.get(key, base))
            if entry is not base and entry != base:
                self.put(key, entry)
                changed = True
        return changed

    def join_runs(self, deltas: list[Delta]) -> None:
        """What backward has run over on one of several arms, it has run over: turns of a loop take all of them."""
        for delta in deltas:
            for key, entry in delta.items():
                here = self.entries.get(key)
                if isinstance(entry, Object) and isinstance(here, Object) and not entry.graph <= here.graph:
                    self.put(key, here._replace(graph=here.graph | entry.graph))

    def left_over(self, delta: Delta, refs: list[int], unseen: frozenset[str]) -> Delta:
        """The delta of an arm of a branch in a loop, where other arms make these objects anew: what is put aside of
        them was made on earlier turns, and is not what this turn makes.

        What a name still stands for is the newest that there is, but for `unseen` ones, at which nobody looks any more.
        """
        aside = [ref for ref in refs if self.entries.get(ref) is not None and self._is_put_aside(ref, delta, unseen)]
        if not aside or delta.get(ALIVE, self.entries[ALIVE]) is not True:
            return delta
        self.fork()
        self.apply(delta)
        for ref in aside:
            self.retire(ref)
        return self.take()

    def _is_put_aside(self, ref: int, delta: Delta, unseen: frozenset[str]) -> bool:
        """Whether, as a delta has it, slots hold an object and no name but `unseen` ones does, or nobody holds a
        container or something with a graph."""
        obj = delta[ref] if ref in delta else self.entries.get(ref)
        held = isinstance(obj, Object) and (bool(obj.graph) or obj.kind in CONTAINERS)
        for key in self.holders.get(ref, ()):
            cell = delta[key] if key in delta else self.entries.get(key)
            if cell.__class__ is Cell and ref in cell.refs:
                if isinstance(key, str) and key not in unseen:
                    return False
                held = True
        return held

    def join_in(self, delta: Delta, *, turn: bool = False) -> bool:
        """The state becomes the join of itself and what a delta, such as a loop's `turn`, makes of it. Returns whether
        it changed."""
        if delta.get(ALIVE, self.entries[ALIVE]) is not True:
            return False
        changed = False
        for key, other in delta.items():
            base = self.entries.get(key)
            entry = self._join(key, base, other) if self.alive else other
            if turn and entry.__class__ is Object and base.__class__ is Object:
                # What came round the loop has been run over by an earlier turn, whatever there was before the loop.
                after = cast(Object, other or base).graph
                graph = base.graph | after if after else base.graph
                entry = entry._replace(graph=graph) if graph != entry.graph else entry
            if entry is not base and entry != base:
                self.put(key, entry)
                changed = True
        return changed

    def put_aside(self, head: Delta, inside: Container[int]) -> None:
        """Prepares for the head to be joined in that a loop settled on when it was last run, in an enclosing loop's
        earlier turn.

        What the loop makes anew each turn, at the sites `inside` it, is there as the newest object of its site; what
        the enclosing loop's earlier turn has left of it belongs to the older ones, and must not be taken for the same.
        What a name has carried over from there is the same: `if out is None: out = torch.empty(3)`.
        """
        carried = {
            ref
            for key, entry in head.items()
            if isinstance(key, str) and entry.__class__ is Cell and isinstance(here := self.entries.get(key), Cell)
            for ref in set(entry.refs).intersection(here.refs)
        }
        for key, entry in head.items():
            remade = isinstance(key, int) and not key & 1 and entry.__class__ is Object and entry.site in inside
            before = self.entries.get(key) if remade else None
            if before is not None and (key not in carried or before != entry):
                self.retire(cast(int, key))

    def _join(self, key: Key, a: Entry, b: Entry) -> Entry:
        if a is b or a == b:
            return a
        if a is None or b is None:
            # An object that one path made is what it is; a name bound on one path says nothing of the other.
            return a if b is None else b
        if a.__class__ is Cell:
            return join_cells(a, cast(Cell, b))
        if a.__class__ is Object:
            several = isinstance(key, int) and key & 1
            return _one_of(a, cast(Object, b)) if several else join_objects(a, cast(Object, b))
        if isinstance(a, Mode):
            return join_modes(a, cast(Mode, b))
        if isinstance(a, frozenset):
            return a | cast("frozenset[int]", b)
        return a or b

    # -- objects

    def object(self, ref: int) -> Object:
        """What is known of an object."""
        return self.entries.get(ref, UNKNOWN_OBJECT)  # type: ignore[return-value]

    def set_object(self, ref: int, obj: Object) -> None:
        """Set what is known of an object."""
        self.put(ref, obj)
        sharers = self.sharers
        for share in obj.shares:
            if share.storage in sharers:
                sharers[share.storage].add(ref)
            else:
                sharers[share.storage] = {ref}
            for part in share.region:
                if part.kind == "each" and isinstance(part.value, int):
                    sharers.setdefault(part.value, set()).add(ref)

    def make(self, ref: int, obj: Object) -> int:
        """A new object from the site that `ref` stands for. What the site made before becomes the older one."""
        if self.entries.get(ref) is not None:
            self.retire(ref)
        self.set_object(ref, obj)
        return ref

    def retire(self, ref: int) -> bool:
        """What speaks of the newest object of a site now speaks of the older ones. Returns false if there is none."""
        if self.entries.get(ref) is None:
            return False
        old = ref | 1
        before = self.entries.get(old)
        for sharer in list(self.sharers.get(ref, ())):
            obj = self.entries.get(sharer)
            if obj.__class__ is Object:
                renamed = _rename_shares(obj, ref, old)
                if renamed is not obj:
                    self.set_object(sharer, renamed)
        retired = _rename_shares(self.object(ref), ref, old)
        self.set_object(old, _one_of(retired, before) if before.__class__ is Object else retired)
        self.put(ref, None)
        for key in list(self.holders.get(ref, ())):
            cell = self.entries.get(key)
            if cell.__class__ is Cell and ref in cell.refs:
                self.put_cell(key, cell._replace(refs=_rename(cell.refs, ref, old)))
        for name in self.slots.get(ref, set()):
            cell = self.entries.get((ref, name))
            if cell.__class__ is Cell:
                existing = self.entries.get((old, name))
                self.put_cell((old, name), join_cells(existing, cell) if existing.__class__ is Cell else cell)
                self.put((ref, name), None)
        for register in self._in_registers.pop(ref, ()):
            value = self.registers.get(register)
            if value is not None and ref in value.refs:
                self.set_register(register, value._replace(refs=_rename(value.refs, ref, old)))
        return True

    def objects(self) -> list[tuple[int, Object]]:
        """Every object."""
        return [(ref, obj) for ref, obj in self.entries.items() if isinstance(ref, int) and obj.__class__ is Object]

    def objects_with_graph(self) -> list[tuple[int, Object]]:
        """Every object behind which there is a graph."""
        return [(ref, obj) for ref, obj in self.entries.items() if obj.__class__ is Object and obj.graph]  # type: ignore[misc]

    # -- holders

    def cell(self, key: Key) -> Cell | None:
        """What a name or slot holds, or `None`."""
        return self.entries.get(key)  # type: ignore[return-value]

    def put_cell(self, key: Key, cell: Cell) -> None:
        """Bind a name or slot."""
        self.put(key, cell)
        holders = self.holders
        for ref in cell.refs:
            if ref in holders:
                holders[ref].add(key)
            else:
                holders[ref] = {key}
        if key.__class__ is tuple:
            self.slots.setdefault(key[0], set()).add(key[1])

    def set_register(self, register: int, value: Value) -> None:
        """Put a value into a register."""
        self.registers[register] = value
        holding = self._in_registers
        for ref in value.refs:
            if ref in holding:
                holding[ref].add(register)
            else:
                holding[ref] = {register}

    def holders_of(self, storage: int) -> list[tuple[Key, Cell]]:
        """Every name and slot that now holds an object on a storage, in a stable order."""
        return in_stable_order(self.each_holder_of(storage))

    def each_holder_of(self, storage: int) -> list[tuple[Key, Cell]]:
        """The same in any order, for who picks some of them."""
        entries, holders = self.entries, self.holders
        found: dict[Key, Cell] = {}
        for ref in self.sharers.get(storage, ()):
            if not _sits_on(entries.get(ref), storage):
                # Of a loop's earlier turn: what stood there has become one of the older ones since.
                continue
            for key in holders.get(ref, ()):
                cell = entries.get(key)
                if cell.__class__ is Cell and ref in cell.refs:
                    found[key] = cell
        return list(found.items())

    def refs_of(self, key: Key) -> tuple[int, ...]:
        """The objects that a name or slot holds now."""
        cell = self.entries.get(key)
        return cell.refs if cell.__class__ is Cell else ()

    def slot_names(self, ref: int) -> list[Slot]:
        """The slots of an object that hold something now, in a stable order."""
        names = self.slots.get(ref)
        if not names:
            return []
        return [slot for name in sorted(names) if self.entries.get(slot := (ref, name)) is not None]


def in_stable_order(held: list[tuple[Key, Cell]]) -> list[tuple[Key, Cell]]:
    """Names and slots with what they hold, as always in one order."""
    return sorted(held, key=lambda item: repr(item[0])) if len(held) > 1 else held


def _one_of(a: Object, b: Object) -> Object:
    """Any of several objects of one site. Each surely sits on some of the storages, so that being one of many makes
    none of them less sure."""
    shares = _in_order({*a.shares, *b.shares})
    return join_objects(a, b)._replace(shares=shares)


def _rename(refs: tuple[int, ...], ref: int, old: int) -> tuple[int, ...]:
    return tuple(sorted({old if r == ref else r for r in refs}))


def _sits_on(obj: object, storage: int) -> bool:
    return obj.__class__ is Object and any(share.storage == storage for share in obj.shares)


def _rename_shares(obj: Object, ref: int, old: int) -> Object:
    shares = obj.shares
    this = Part("each", ref)
    for share in shares:
        if share.storage == ref or share.of == ref or (share.region and this in share.region):
            break
    else:
        return obj
    if len(shares) == 1:
        return obj._replace(shares=(_rename_share(shares[0], ref, old, this),))
    return obj._replace(shares=_in_order({_rename_share(share, ref, old, this) for share in shares}))


def _rename_share(share: Share, ref: int, old: int, this: Part) -> Share:
    storage, how, site, of, region, when, sure = share
    if region:
        region = tuple([Part("each", old) if part == this else part for part in region])
    return whole_share((old if storage == ref else storage, how, site, old if of == ref else of, region, when, sure))


def _in_order(shares: set[Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=_as_text)) if len(shares) > 1 else tuple(shares)


def _as_text(share: Share) -> str:
    storage, how, site, of, region, when, sure = share
    return f"{storage}, {how._name_}: {site}, {of}, {region!r}, {when!r}, {sure}"


def kind_of(value: Value, state: State) -> Kind:
    """The kind of a value if all its objects agree (a parameter is a tensor), else `UNKNOWN`."""
    if not value.refs:
        return value.kind
    if len(value.refs) == 1:
        return state.object(value.refs[0]).kind
    kinds = {state.object(ref).kind for ref in value.refs}
    if len(kinds) == 1:
        return kinds.pop()
    return Kind.TENSOR if kinds == {Kind.TENSOR, Kind.PARAMETER} else Kind.UNKNOWN


def written_kind(value: Value, state: State) -> Kind:
    """The kind of what is changed in place. What is an array on one path and a tensor on another is changed either way:
    `if isinstance(x, np.ndarray): x = torch.from_numpy(x)`."""
    kinds = {state.object(ref).kind for ref in value.refs}
    return Kind.TENSOR if Kind.ARRAY in kinds and kinds <= BUFFERS and kinds & TENSORS else kind_of(value, state)
