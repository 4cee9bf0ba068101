"""What is looked at as a number only: printed, compared, written to a log, or turned into a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS, Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

MAX_LOOKS = 40
"""So many registers are followed from one name."""
_NUMBERS = frozenset(
    {"item", "detach", "tolist", "data", "size", "dim", "shape", "dtype", "device", "__format__", "requires_grad"}
    | {"argmax", "argmin", "argsort", "eq", "ne", "gt", "lt", "ge", "le", "long", "int", "bool", "bincount", "isnan"}
)
"""Attributes and methods that give a number, or a tensor without a graph."""
_SAME = frozenset(
    {"cpu", "cuda", "to", "float", "double", "half", "mean", "sum", "squeeze", "view", "reshape", "sqrt"}
    | {"softmax", "log_softmax", "sigmoid", "exp", "log", "flatten", "square", "abs", "std", "var", "norm", "clamp"}
)
_LOOKING = re.compile(
    r"^(?:print\w*|float|int|round|str|repr|format|isnan|isfinite|exp|info|debug|warning|warn|error|log|log_(?!softmax|sigmoid|prob|normal|det)\w+|logging|write"
    r"|add_scalars?|set_postfix\w*|set_description\w*|save|dump|dumps|savez|savetxt|plot|len)$"
)
"""Functions and methods, by the last part of their names, that look at a number or write it down."""
_KEYED = frozenset({"items", "keys", "values", "get", "copy"})
_CHOOSING = frozenset({"min", "max", "sum", "abs"})
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.hstack", "torch.vstack"})
_GROWING = frozenset({"append", "extend", "clear"})
_BARE = frozenset(f"torch.{name}" for name in ("argmax", "argmin", "argsort", "eq", "bincount", "isnan", "equal"))
_COMPUTING = frozenset({"torch.exp", "torch.log"})
"""These compute on with what `math.log` and a logger only look at."""
_QUESTIONS = COMPARISONS | {"is", "is not", "in", "not in"}


class Looks:
    """Follows a name through one unit: `is_figure` says whether it ends as a number wherever it is used.

    `looked` are the sites where it does, `returned` the places in what the unit returns at which it goes to the caller:
    -1 for all of it, else the position in a tuple. `keyed` is the name of a dictionary, which may be asked for its keys
    and set entry by entry.
    """

    def __init__(self, unit: t.Unit, m: Machine, keyed: str = "") -> None:
        self.unit = unit
        self.m = m
        self.keyed = keyed
        self.looked: set[int] = set()
        self.returned: set[int] = set()
        self._names: set[str] = set()
        self._left = MAX_LOOKS

    def is_figure(self, name: str) -> bool:
        """Whether every use of a name ends as a number, is added to, or is returned."""
        if name in self._names:
            return True
        self._names.add(name)
        if self._is_seen_from_inside(name):
            return False
        return all(self.ends(use.register) for use in uses.of_name(self.m, name) if use.loads)

    def ends(self, register: int) -> bool:
        """Whether what a register holds ends as a number."""
        self._left -= 1
        event = self.m.consumer_of(register)
        if self._left < 0:
            return False
        match event:
            case None | t.Discard() | t.Text() | t.Test() | t.Assume():
                self.looked.update([event.site] if event is not None else [])
                return True
            case t.Bind():
                return self.is_figure(event.name)
            case t.Return():
                self.returned.add(-1)
                return True
            case t.Unpack():
                parts = [one for one in self.m.index.of(t.Unpack) if one.value == register]
                return all(self.ends(part.out) for part in parts if part.position or not self._is_paired(register))
            case t.Logic() | t.Augment() | t.Item() | t.Iterate():
                return self.ends(event.out)
            case t.Collect():
                return self.ends(event.container)
            case t.StoreItem():
                return self._is_keyed(register) if event.base == register else self._ends_in_entry(register, event)
            case t.Operate():
                return self._ends_in_operator(register, event)
            case t.Attribute():
                # Who asks for a size or a device has not looked at the number yet.
                self.looked.update([event.site] if event.name == "data" else [])
                return event.name in _NUMBERS and not self._is_asserted(event)
            case t.Make():
                return self._ends_in_tuple(register, event)
            case t.Invoke() | t.Call():
                return self._ends_in_call(register, event)
        return False

    def _is_asserted(self, event: t.Attribute) -> bool:
        """Whether a loop asserts of one after the other that it has a graph: whoever does that is there for it."""
        if event.name != "requires_grad" or not self.m.index.loops.get(event.site):
            return False
        outcomes = [one.truth for one in self.m.index.of(t.Assume) if one.register == event.out]
        return outcomes == [True]

    def _is_paired(self, register: int) -> bool:
        """`for key, total in totals.items():`, `for i, total in enumerate(totals):`: what comes first is no sum."""
        turn = self.unit.definitions[register] if register >= 0 else None
        pairs = self.unit.definitions[turn.iterable] if isinstance(turn, t.Iterate) and turn.iterable >= 0 else None
        if isinstance(pairs, t.Invoke):
            return pairs.name == "items"
        return isinstance(pairs, t.Call) and naming.text_of(self.m, pairs.function) == "enumerate"

    def _is_keyed(self, register: int) -> bool:
        made = self.unit.definitions[register] if register >= 0 else None
        return bool(self.keyed) and isinstance(made, t.Load) and made.name == self.keyed

    def _ends_in_entry(self, register: int, event: t.StoreItem) -> bool:
        """Put into a container of numbers; as a key of the dictionary, it has been one of its keys."""
        if event.value == register:
            return self._ends_in(event.base)
        return self._is_keyed(event.base)

    def _ends_in_operator(self, register: int, event: t.Operate) -> bool:
        made = self.unit.definitions[event.operands[0]]
        text = isinstance(made, t.Text) or (isinstance(made, t.Const) and isinstance(made.value, str))
        if event.symbol in _QUESTIONS or (event.symbol == "%" and text and register != event.operands[0]):
            self.looked.add(event.site)
            return True
        return self.ends(event.out)

    def _ends_in_tuple(self, register: int, event: t.Make) -> bool:
        """Among what is returned, or among what a text is made of: `"%.3f %.3f" % (a, b)`."""
        use = self.m.consumer_of(event.out)
        if isinstance(use, t.Return):
            self.returned.add(event.items.index(register) if event.kind == "tuple" and register in event.items else -1)
            return True
        if isinstance(use, t.Bind):
            return self.is_figure(use.name)
        if isinstance(use, t.Operate):
            return use.symbol == "%" and self._ends_in_operator(event.out, use)
        return isinstance(use, t.Call | t.Invoke) and self._ends_in_call(event.out, use)

    def _ends_in_call(self, register: int, event: t.Call | t.Invoke) -> bool:
        if isinstance(event, t.Invoke) and event.base == register and self._is_keyed(register):
            return event.name in _KEYED and self.ends(event.out)
        if isinstance(event, t.Invoke) and event.base == register:
            self.looked.update([event.site] if event.name in _NUMBERS else [])
            return event.name in _NUMBERS | _GROWING or (event.name in _SAME and self.ends(event.out))
        if isinstance(event, t.Invoke) and event.name == "append":
            return self._ends_in(event.base)
        if self.m.dotted_of(event) in _BARE:
            self.looked.add(event.site)
            return True
        if self.m.dotted_of(event) in _JOINING:
            return self.ends(event.out)
        if isinstance(event, t.Call) and self._name_of(event) in _CHOOSING:
            return self.ends(event.out)
        if self.m.dotted_of(event) in _COMPUTING:
            return self.ends(event.out)
        if _LOOKING.match(self._name_of(event)):
            # How many there are in a list says nothing of them.
            self.looked.update([event.site] if self._name_of(event) != "len" else [])
            return True
        return False

    def _ends_in(self, container: int) -> bool:
        """Whether the container in a register, which has a name, is one of numbers."""
        made = self.unit.definitions[container] if container >= 0 else None
        return isinstance(made, t.Load) and self.is_figure(made.name)

    def _is_seen_from_inside(self, name: str) -> bool:
        return uses.seen_from_inside(self.m, name) and any(
            isinstance(event, t.Load) and event.name == name
            for unit in self.m.world.program.units
            if unit.parent == self.unit.number and name not in unit.bound
            for event in unit.definitions
        )

    def _name_of(self, event: t.Call | t.Invoke) -> str:
        if isinstance(event, t.Invoke):
            return event.name
        made = self.unit.definitions[event.function] if event.function >= 0 else None
        return made.name if isinstance(made, t.Load | t.Attribute) else ""


def is_figure_for_callers(world: World, number: int, returned: set[int]) -> bool:
    """Whether every call of a function in its file takes what it returns at some places for numbers.

    False if there is no call, or if a caller hands the result on, and of what is `for_others`.
    """
    if is_for_others(world, number):
        return False
    called = {caller for caller, _ in world.call_modes.get(number, ())}
    if not called or not called <= world.machines.keys():
        return False
    name = world.unit(number).name
    return all(_takes_figures(world.machines[caller], name, returned) for caller in called)


def is_for_others(world: World, number: int) -> bool:
    """Whether what a method returns is for others than those that call it here: `forward`, which nobody calls by that
    name, and what of a network the body of its module alone calls, to try it and print the shapes."""
    unit = world.unit(number)
    if unit.owner < 0:
        return False
    called = {caller for caller, _ in world.call_modes.get(number, ())}
    return unit.name == "forward" or (world.class_kind(unit.owner)[0] is Kind.MODULE and called == {0})


def _takes_figures(m: Machine, name: str, returned: set[int]) -> bool:
    calls = [event for event in m.unit.definitions if isinstance(event, t.Call | t.Invoke)]
    looks = Looks(m.unit, m)
    mine = [event for event in calls if looks._name_of(event) == name]
    return bool(mine) and all(is_taken_so(looks, event, returned) for event in mine) and not looks.returned


def is_taken_so(looks: Looks, call: t.Call | t.Invoke, returned: set[int]) -> bool:
    """Whether a call takes what it gets at some places (-1: all of it) for numbers."""
    unpacked = [event for event in looks.m.index.of(t.Unpack) if event.value == call.out]
    if -1 in returned or not unpacked:
        return looks.ends(call.out) if -1 in returned else isinstance(looks.m.consumer_of(call.out), t.Discard)
    return all(looks.ends(event.out) for event in unpacked if event.position in returned)
