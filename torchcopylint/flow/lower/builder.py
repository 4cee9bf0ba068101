"""What lowering builds with: the tables of one file, and the tape and names of one unit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import gathering
from torchcopylint.flow.lower.node import Node

NO_SITE = -1


class Frame(NamedTuple):
    """A `with` item or a loop that is being lowered: `break` and `continue` leave the items inside their loop."""

    is_loop: bool
    manager: int


class FileBuilder:
    """The tables that all units of one file share."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.statements: list[int] = []
        self.scopes: list[int] = []
        self.units: list[t.Unit | None] = []
        self.classes: list[t.ClassInfo | None] = []
        self.deferred: list[Callable[[], None]] = []
        self.imported: dict[str, str] = {}
        """What the names stand for that the file imports, anywhere in it: dotted."""

    def reserve_unit(self) -> int:
        """A new unit's index; the unit itself is put there when its body has been lowered."""
        self.units.append(None)
        return len(self.units) - 1

    def reserve_class(self) -> int:
        """A new class's index."""
        self.classes.append(None)
        return len(self.classes) - 1


JOINED = "~"
"""Stands for a site in the key of what a name is behind a condition, one of several bindings."""


MAX_STEPS = 20
"""So many methods and operators are gone back over from a value to the name that it is made of."""
_LEAVING = (t.Return, t.Raise, t.Break, t.Continue)


class UnitBuilder:
    """The tape, registers and names of one unit while it is lowered."""

    def __init__(self, file: FileBuilder, index: int, qualname: str, kind: str, parent: int, owner: int) -> None:
        self.file = file
        self.index = index
        self.qualname = qualname
        self.kind = kind
        self.parent = parent
        self.owner = owner
        self.tape: list[t.Event] = []
        self.definitions: list[t.Event | None] = []
        self.bound: set[str] = set()
        self.outer: set[str] = set()
        self.frames: list[Frame] = []
        self.renamed: dict[str, str] = {}
        self.fresh_names = 0
        self.statement = NO_SITE
        self.is_generator = False
        self.binding: dict[str, str] = {}
        self.uses: dict[str, set[str]] = {}
        self.same: list[tuple[str, str]] = []
        self.put: list[tuple[str, str]] = []
        self.joined: set[str] = set()
        self.reshaped: set[str] = set()
        self.journal: list[tuple[str, str]] = []

    def site(self, node: Node) -> int:
        """A new site at a node, inside the current statement."""
        file = self.file
        site = len(file.nodes)
        file.nodes.append(node)
        file.statements.append(self.statement if self.statement != NO_SITE else site)
        file.scopes.append(self.index)
        return site

    def emit(self, event: t.Event) -> None:
        """Put an event that has no result on the tape."""
        self.tape.append(event)

    def define(self, make: type[Any], node: Node, *fields: object) -> int:
        """Put an event with a result on the tape; returns the register of the result."""
        # As in `site`: most events come this way.
        file = self.file
        nodes = file.nodes
        site = len(nodes)
        nodes.append(node)
        file.statements.append(self.statement if self.statement != NO_SITE else site)
        file.scopes.append(self.index)
        definitions = self.definitions
        out = len(definitions)
        event = tuple.__new__(make, (out, *fields, site))
        definitions.append(event)
        self.tape.append(event)
        return out

    @contextmanager
    def block(self) -> Iterator[list[t.Event]]:
        """Collect what the body emits in a list of its own, for a bracket."""
        outer, inner = self.tape, list[t.Event]()
        self.tape = inner
        try:
            yield inner
        finally:
            self.tape = outer

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Lower the body of a loop or of a `with` item."""
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

    def leave_managers(self, node: Node) -> None:
        """Before `break` or `continue`: leave every `with` item inside the innermost loop."""
        for frame in reversed(self.frames):
            if frame.is_loop:
                return
            self.emit(t.Exit(frame.manager, self.site(node)))

    def hidden(self) -> str:
        """A name that no program can use."""
        self.fresh_names += 1
        return f"%{self.fresh_names}"

    def bind(self, name: str, value: int, node: Node, annotation: t.Annotation | None = None) -> None:
        """Bind a name as it stands in the source."""
        name = self.renamed.get(name, name)
        if name not in self.outer:
            self.bound.add(name)
        site = self.site(node)
        key = f"{name}@{site}"
        self._is_now(name, key)
        if self._is_made_of(name, value):
            self.reshaped.add(key)
        made = self.definitions[value] if value >= 0 else None
        if made.__class__ is t.Load and made.name != name and (source := self.binding.get(made.name)):
            # A second name: what that is used for shows what the first one holds.
            self.same.append((source, key))
        elif made.__class__ is t.Make and made.kind == "list":
            held = (self.definitions[item] for item in made.items)
            self.put += [
                (key, self.binding[one.name]) for one in held if one.__class__ is t.Load and one.name in self.binding
            ]
        self.emit(t.Bind(name, value, site, annotation))

    def load(self, name: str, node: Node) -> int:
        """Load a name as it stands in the source."""
        return self.define(t.Load, node, self.renamed.get(name, name))

    def use(self, name: str, attribute: str) -> None:
        """Note that an attribute, or a method (`name()`), is used on a name, for the binding that is current in source
        order."""
        key = self.binding.get(self.renamed.get(name, name))
        if key:
            self.uses.setdefault(key, set()).add(attribute)

    def put_into(self, name: str, item: str) -> None:
        """Note that what a name holds is put into the list that another one holds."""
        key, held = (self.binding.get(self.renamed.get(one, one), "") for one in (name, item))
        if key and held:
            self.put.append((key, held))

    def join_all_of(self, name: str) -> None:
        """Note that torch joins all that the list holds which a name holds: `torch.stack(rows)`."""
        key = self.binding.get(self.renamed.get(name, name))
        if key:
            self.joined.add(key)

    def are_one(self, names: Sequence[str]) -> bool:
        """Whether names were bound to one thing: one by the other, and both changed in place since."""
        if len(set(names)) == 1:
            return True
        before = {after: first for first, after in self.same if JOINED not in after}
        found = set()
        for name in names:
            key = self.binding.get(self.renamed.get(name, name), "")
            for _ in range(MAX_STEPS):
                key = before.get(key, key)
            found.add(key)
        return len(found) == 1 and "" not in found

    def rebind(self, name: str, value: int, node: Node) -> None:
        """Bind a name to what `name op= other` leaves: what it is used for from here on, it was before."""
        before = self.binding.get(self.renamed.get(name, name))
        self.bind(name, value, node)
        if before:
            self.same.append((before, self.binding[self.renamed.get(name, name)]))

    def _is_made_of(self, name: str, register: int) -> bool:
        """Whether a value is made of what a name holds by operators and methods."""
        pending = [register]
        for _ in range(MAX_STEPS):
            if not pending:
                break
            current = pending.pop()
            made = self.definitions[current] if current >= 0 else None
            if made.__class__ is t.Load and made.name == name:
                return True
            if made.__class__ is t.Invoke or made.__class__ is t.Item:
                pending.append(made.base)
            elif made.__class__ is t.Operate:
                pending += made.operands
        return False

    def _is_now(self, name: str, key: str) -> None:
        self.journal.append((name, self.binding.get(name, "")))
        self.binding[name] = key

    @contextmanager
    def arm(self, into: list[dict[str, str]]) -> Iterator[None]:
        """Lower an arm of a condition: what it binds, if it goes on behind that, is put `into` a list for `join`."""
        start = len(self.journal)
        yield
        bound = {name: self.binding[name] for name, _ in self.journal[start:]}
        for name, before in reversed(self.journal[start:]):
            self.binding[name] = before
        del self.journal[start:]
        if not self.tape or not isinstance(self.tape[-1], _LEAVING):
            into.append(bound)

    def join(self, arms: Sequence[dict[str, str]], filled: Collection[str] = ()) -> None:
        """Behind a condition, what a name is used for is what all of its bindings are used for that come there: those
        of the arms, and the one of before, if what an arm binds is made of that by a method or an operator. What a
        function makes of it may be something else: `if not is_tensor: x = torch.tensor(x)`. But what is bound where
        there was nothing (`filled`) is like what there was otherwise: `if x is None: x = self.load(i)`."""
        for name in dict.fromkeys(name for arm in arms for name in arm):
            before = self.binding.get(name, "")
            held = list(dict.fromkeys(arm.get(name, before) for arm in arms))
            bound = [key for key in held if key != before]
            if not before or not (name in filled or self.reshaped.issuperset(bound)):
                held = bound
            key = held[-1]
            if len(held) > 1:
                self.fresh_names += 1
                key = f"{name}@{JOINED}{self.fresh_names}"
                self.same += [(one, key) for one in held]
            self._is_now(name, key)

    def _used_alike(self) -> None:
        """The uses of what an augmented assignment binds are uses of what it was bound to before. What stands in a list
        that torch joins is a tensor."""
        for key, item in self.put:
            if key in self.joined:
                self.uses.setdefault(item, set()).add(t.HANDED_TO + t.OF_TENSOR)
        for before, after in reversed(self.same):
            if after in self.uses:
                self.uses.setdefault(before, set()).update(self.uses[after])

    def nested(self, name: str, kind: str, owner: int) -> UnitBuilder:
        """A builder of a unit inside of this one; `owner` is the class that it is a method or the body of, or -1."""
        qualname = f"{self.qualname}.{name}" if self.qualname else name
        return UnitBuilder(self.file, self.file.reserve_unit(), qualname, kind, self.index, owner)

    def finish(
        self,
        name: str,
        parameters: tuple[t.Parameter, ...],
        returns: t.Annotation | None,
        site: int,
    ) -> None:
        """Put the finished unit into the file's table."""
        self._used_alike()
        unit = t.Unit(
            number=self.index,
            name=name,
            qualname=self.qualname,
            kind=self.kind,
            parent=self.parent,
            owner=self.owner,
            parameters=parameters,
            returns=returns,
            bound=frozenset(self.bound),
            tape=tuple(self.tape),
            definitions=tuple(self.definitions),
            uses={key: frozenset(names) for key, names in self.uses.items() if f"@{JOINED}" not in key},
            is_generator=self.is_generator,
            site=site,
        )
        self.file.units[self.index] = gathering.apart(unit)
