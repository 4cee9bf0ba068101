"""What is looked up on the tape of one unit: found once, however often the unit is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from torchcopylint.base.lazily import kept_property
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS
from torchcopylint.flow.tapes import settling, turns
from torchcopylint.flow.tapes.arms import Arms
from torchcopylint.flow.values import identity

if TYPE_CHECKING:
    from torchcopylint.flow.tapes.item_stores import Stores

E = TypeVar("E")
_NAMED = frozenset({t.Load, t.Attribute, t.Invoke})
_SWITCHING_OFF = frozenset({"no_grad", "inference_mode"})
_SWITCHING_ON = frozenset({"enable_grad", "set_grad_enabled"})


class Use(NamedTuple):
    """A name is loaded (into `register`) or bound (from `register`) by the event at `position`, inside of `loops`."""

    position: int
    loads: bool
    register: int
    site: int
    loops: tuple[int, ...]


class UnitIndex:
    """See the module. `texts` is filled by `naming`, `expressions`, `computed` and `bindings` by `uses`, `exclusions`
    and `conditions` by `exclusion`, `item_stores` by the module of that name, `compared` by `indexing`, as they are
    asked for."""

    def __init__(self, unit: t.Unit) -> None:
        self.unit = unit
        self.texts: dict[int, str] = {}
        self.expressions: dict[tuple[int, str], list[t.Event]] = {}
        self.computed: dict[tuple[int, str], bool] = {}
        self.bindings: dict[int, list[int]] = {}
        self.exclusions: dict[tuple[int, int], bool] = {}
        self.conditions: dict[int, list[tuple[str, object, bool]]] = {}
        self.item_stores: Stores | None = None
        self.compared: frozenset[int] | None = None
        self.off_by_default: frozenset[int] | None = None
        self._carried: dict[int, frozenset[str]] = {}
        self.aside: dict[int, tuple[list[int], list[int]]] = {}
        self._first_bound: dict[int, dict[str, int]] = {}
        self._bound_on_arms: dict[int, frozenset[int]] = {}
        self._seen_outside: dict[int, frozenset[str]] = {}

    @kept_property
    def events(self) -> list[t.Event]:
        """Every event, in source order."""
        return list(t.events(self.unit.tape))

    @kept_property
    def _by_type(self) -> dict[type[Any], list[Any]]:
        found: dict[type[Any], list[Any]] = {}
        for event in self.events:
            found.setdefault(type(event), []).append(event)
        return found

    def of(self, kind: type[E]) -> list[E]:
        """The events of one type, in source order."""
        return self._by_type.get(kind, [])

    @kept_property
    def named(self) -> list[t.Load | t.Attribute | t.Invoke]:
        """What loads a name or an attribute, or calls a method, in order of registers."""
        return [cast("t.Load | t.Attribute | t.Invoke", e) for e in self.unit.definitions if e.__class__ in _NAMED]

    @kept_property
    def arms(self) -> Arms:
        """On which arms of which conditions sites stand."""
        return Arms(self.unit.tape)

    @kept_property
    def on_arms(self) -> frozenset[int]:
        """The sites that stand on an arm of a condition."""
        found: set[int] = set()
        pending = [(self.unit.tape, False)]
        while pending:
            tape, on_arm = pending.pop()
            found.update([event.site for event in tape] if on_arm else ())
            inner = ((part, on_arm or event.__class__ is t.Branch) for event in tape for part in t.inner_tapes(event))
            pending += inner
        return frozenset(found)

    @kept_property
    def alternatives(self) -> dict[int, tuple[list[int], ...]]:
        """For each condition in a loop: where each of its arms computes what it binds a name to."""
        found: dict[int, tuple[list[int], ...]] = {}
        for branch in self.of(t.Branch):
            if self.loops.get(branch.site):
                binds = [[e for e in t.events(arm) if e.__class__ is t.Bind] for arm in branch.arms]
                bound = [[bind.value for bind in each] for each in binds]
                self._bound_on_arms[branch.site] = frozenset(bind.site for each in binds for bind in each)
                made = [[one for value in values for one in self._displayed(value)] for values in bound]
                computed = tuple(
                    [e.site for e in arm if isinstance(e, t.Make) or (e is not None and e.site in self.computing)]
                    for arm in made
                )
                if any(computed):
                    found[branch.site] = computed
        return found

    def bound_behind(self, branch: t.Branch) -> frozenset[str]:
        """The names that a turn of the innermost loop around a condition binds behind it alone, before it looks at
        them: `state = {...} if whole else {}`. What they hold there was left by an earlier turn. So it is with names
        that its arms bind, and that nobody outside of the loop looks at."""
        around = self.loops[branch.site][-1]
        if around not in self._first_bound:
            loop = next(one for one in self.of(t.Loop) if one.site == around)
            binds = sorted((event.site, event.name) for event in t.events(loop.body) if event.__class__ is t.Bind)
            unseen = self.carried(loop)
            self._first_bound[around] = {name: site for site, name in reversed(binds) if name not in unseen}
            outside = (event for event in self.of(t.Load) if around not in self.loops.get(event.site, ()))
            self._seen_outside[around] = frozenset(event.name for event in outside)
        inside, seen = self._bound_on_arms[branch.site], self._seen_outside[around]
        first = self._first_bound[around].items()
        return frozenset(n for n, site in first if site > branch.site or (site in inside and n not in seen))

    def _displayed(self, register: int) -> list[t.Event | None]:
        """What has made the value of a register, and what is written out in it: `([x], True)`."""
        event = self.unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Unpack) and event.value >= 0:
            # `loss, hits = self.judge(batch)`: each is a part of what the call has made.
            event = self.unit.definitions[event.value]
        inner = [one for item in event.items for one in self._displayed(item)] if isinstance(event, t.Make) else []
        return [event, *(one for one in inner if isinstance(one, t.Make))]

    @kept_property
    def _training_branches(self) -> list[t.Branch]:
        """The conditions of which an arm runs backward."""
        sites = {event.site for event in self.of(t.Invoke) if event.name == "backward"}
        branches = self.of(t.Branch) if sites else []
        return [one for one in branches if any(e.site in sites for arm in one.arms for e in t.events(arm))]

    @kept_property
    def counting(self) -> frozenset[int]:
        """The conditions in a loop that count its turns, one arm of which runs backward: `if i % steps == 0:`. Each
        of their outcomes comes about, one after the other."""
        return frozenset(
            branch.site
            for branch in self._training_branches
            if self.loops.get(branch.site)
            and any(self._counts(arm[0].register) for arm in branch.arms if arm and isinstance(arm[0], t.Assume))
        )

    def _counts(self, register: int) -> bool:
        """Whether a condition is made of what is left by a division."""
        made = self.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Operate) and made.symbol == "%":
            return True
        parts = t.operands(made) if isinstance(made, t.Operate | t.Logic) else ()
        return any(self._counts(part) for part in parts)

    @kept_property
    def holding_later(self) -> frozenset[int]:
        """The conditions in a loop that hold on all turns but the first ones, one arm of which runs backward:
        `if before is not None:`, of a name that the loop binds, or `if i > 0:`."""
        return frozenset(
            branch.site
            for branch in self._training_branches
            if (loops := self.loops.get(branch.site))
            and any(
                self._holds_later(arm[0].register, loops) for arm in branch.arms if arm and isinstance(arm[0], t.Assume)
            )
        )

    def _holds_later(self, register: int, loops: tuple[int, ...]) -> bool:
        made = self.unit.definitions[register] if register >= 0 else None
        if not isinstance(made, t.Logic | t.Operate) or len(made.operands) != 2:
            return False
        named, other = (self.unit.definitions[operand] if operand >= 0 else None for operand in made.operands)
        if not isinstance(named, t.Load) or not isinstance(other, t.Const):
            return False
        inside = [
            bind for bind in self.binds.get(named.name, ()) if self.loops.get(bind.site, ())[: len(loops)] == loops
        ]
        if made.symbol in ("is", "is not"):
            return other.value is None and bool(inside)
        from_head = [self._is_of_head(bind.value) for bind in inside]
        return made.symbol in (">", ">=") and bool(from_head) and all(from_head)

    def _is_of_head(self, register: int) -> bool:
        made = self.unit.definitions[register]
        while isinstance(made, t.Unpack):
            made = self.unit.definitions[made.value]
        return isinstance(made, t.Iterate)

    @kept_property
    def on_some_paths(self) -> frozenset[int]:
        """The sites that stand on an arm of a condition, or in a `try` or its handlers."""
        tries = [part for event in self.of(t.Try) for part in t.inner_tapes(event)]
        return self.on_arms | {event.site for part in tries for event in t.events(part)}

    @kept_property
    def assumed(self) -> dict[int, tuple[t.Assume, ...]]:
        """The tests whose outcome is known at each site."""
        found: dict[int, tuple[t.Assume, ...]] = {}
        pending: list[tuple[t.Tape, tuple[t.Assume, ...]]] = [(self.unit.tape, ())]
        while pending:
            tape, assumed = pending.pop()
            for event in tape:
                if event.__class__ is t.Assume:
                    assumed = (*assumed, event)
                elif not (inner := t.inner_tapes(event)):
                    found.setdefault(event.site, assumed)
                else:
                    pending += [(part, assumed) for part in inner]
        return found

    @kept_property
    def loops(self) -> dict[int, tuple[int, ...]]:
        """The loops that the event at each site stands in, the outermost first, by their sites."""
        found: dict[int, tuple[int, ...]] = {}
        pending: list[tuple[t.Tape, tuple[int, ...]]] = [(self.unit.tape, ())]
        while pending:
            tape, loops = pending.pop()
            for event in tape:
                inner = t.inner_tapes(event)
                if event.__class__ is t.Loop:
                    pending += [(part, (*loops, event.site)) for part in inner]
                    continue
                found.setdefault(event.site, loops)
                if inner:
                    pending += [(part, loops) for part in inner]
        return found

    def carried(self, loop: t.Loop) -> frozenset[str]:
        """The names that a turn of a loop may look at before it has bound them."""
        if loop.site not in self._carried:
            self._carried[loop.site] = settling.carried(loop)
        return self._carried[loop.site]

    @kept_property
    def operations(self) -> dict[int, t.Operate | t.Invoke]:
        """The operators and the methods that are called at each site."""
        found: list[t.Operate | t.Invoke] = [*self.of(t.Operate), *self.of(t.Invoke)]
        return {event.site: event for event in found}

    @kept_property
    def collected(self) -> dict[int, list[int]]:
        """What comprehensions put into the container in each register: keys and items."""
        found: dict[int, list[int]] = {}
        for event in self.of(t.Collect):
            found.setdefault(event.container, []).extend(t.operands(event))
        return found

    @kept_property
    def appends(self) -> list[t.Invoke]:
        """Where one thing is put at the end of what may be a list, in source order."""
        return [e for e in self.of(t.Invoke) if e.name == "append" and len(e.arguments) == 1]

    @kept_property
    def asked_for_gradient(self) -> frozenset[int]:
        """Where loops take something whose `.grad` is looked at by the name that it gets: the sites of `Iterate`."""
        looks = [self.unit.definitions[event.base] for event in self.of(t.Attribute) if event.name == "grad"]
        names = {load.name for load in looks if isinstance(load, t.Load)}
        taken = (self.unit.definitions[bind.value] for name in names for bind in self.binds.get(name, ()))
        return frozenset(event.site for event in taken if isinstance(event, t.Iterate))

    @kept_property
    def consumers(self) -> dict[int, t.Event]:
        """The first event that uses each register."""
        found: dict[int, t.Event] = {}
        for event in self.events:
            for used in t.operands(event):
                if used not in found:
                    found[used] = event
        return found

    @kept_property
    def asked_gradients(self) -> list[tuple[t.Call | t.Invoke, str]]:
        """Calls of something named `grad` and the names of which they are given as `inputs`: `grad(loss, [w, b])`."""
        found: list[tuple[t.Call | t.Invoke, str]] = []
        for event in self.of(t.Invoke) + self.of(t.Call):
            called = self.unit.definitions[event.function] if event.__class__ is t.Call else event
            if (called.__class__ is not t.Load and called.__class__ is not t.Invoke) or called.name != "grad":
                continue
            inputs = [a.register for a in event.arguments if a.keyword == "inputs"]
            inputs += [a.register for a in event.arguments[1:2] if not a.keyword and not event.arguments[0].stars]
            given = [self.unit.definitions[register] for register in inputs if register >= 0]
            given += [self.unit.definitions[r] for made in given if isinstance(made, t.Make) for r in made.items]
            found += [(event, made.name) for made in given if isinstance(made, t.Load)]
        return found

    @kept_property
    def calls(self) -> dict[int, int]:
        """The register of what the call at each site returns."""
        return {
            event.site: event.out
            for event in self.unit.definitions
            if (event.__class__ is t.Call or event.__class__ is t.Invoke)
        }

    @kept_property
    def given(self) -> dict[int, t.Call | t.Invoke]:
        """The first call that each register is handed to."""
        found: dict[int, t.Call | t.Invoke] = {}
        calls: list[t.Call | t.Invoke] = [*self.of(t.Call), *self.of(t.Invoke)]
        for event in calls:
            for argument in event.arguments:
                found.setdefault(argument.register, event)
        return found

    @kept_property
    def dropped(self) -> frozenset[int]:
        """The sites of the calls that are statements of their own."""
        made = (self.unit.definitions[event.value] for event in self.of(t.Discard))
        return frozenset(event.site for event in made if isinstance(event, t.Call | t.Invoke))

    @kept_property
    def computing(self) -> frozenset[int]:
        """The sites of calls and operators: what makes something, where a loop or an index only takes it out."""
        made = self.unit.definitions
        return frozenset(
            event.site
            for event in made
            if (event.__class__ is t.Call or event.__class__ is t.Invoke or event.__class__ is t.Operate)
        )

    @kept_property
    def binds(self) -> dict[str, list[t.Bind]]:
        """The bindings of each name, in source order."""
        found: dict[str, list[t.Bind]] = {}
        for event in self.of(t.Bind):
            found.setdefault(event.name, []).append(event)
        return found

    @kept_property
    def stores(self) -> dict[str, list[t.StoreAttribute]]:
        """Where attributes of each name are set, in source order."""
        found: dict[str, list[t.StoreAttribute]] = {}
        for event in self.of(t.StoreAttribute):
            found.setdefault(event.name, []).append(event)
        return found

    @kept_property
    def uses(self) -> dict[str, list[Use]]:
        """Every load and binding of each name, in source order."""
        found: dict[str, list[Use]] = {}
        pending: list[tuple[t.Tape, int, tuple[int, ...]]] = [(self.unit.tape, 0, ())]
        position = 0
        while pending:
            current, index, loops = pending.pop()
            while index < len(current):
                event = current[index]
                index += 1
                position += 1
                if event.__class__ is t.Load:
                    found.setdefault(event.name, []).append(Use(position, True, event.out, event.site, loops))
                elif event.__class__ is t.Bind:
                    found.setdefault(event.name, []).append(Use(position, False, event.value, event.site, loops))
                elif inner := t.inner_tapes(event):
                    inside = (*loops, event.site) if event.__class__ is t.Loop else loops
                    pending.append((current, index, loops))
                    pending += [(part, 0, inside) for part in reversed(inner)]
                    break
        return found

    @kept_property
    def used_fields(self) -> dict[str, bool] | None:
        """The attributes of its receiver that a method uses, each with whether it does nothing but call it.

        `None` if it hands the receiver on, or what stands inside of it may.
        """
        if (
            any((event.__class__ is t.Function or event.__class__ is t.Class) for event in self.unit.definitions)
            or not self.unit.parameters
        ):
            return None
        used: dict[str, bool] = {}
        for load in self.of(t.Load):
            event = self.consumers.get(load.out)
            if load.name == self.unit.first:
                if (
                    event.__class__ is not t.Attribute
                    and event.__class__ is not t.Invoke
                    and event.__class__ is not t.StoreAttribute
                ) or event.base != load.out:
                    return None
                if event.__class__ is not t.StoreAttribute:
                    used[event.name] = used.get(event.name, True) and isinstance(event, t.Invoke)
            elif load.name == "super":
                return None
        return used

    @property
    def recorded_fields(self) -> dict[str, bool] | None:
        """Those of its `used_fields` that a method uses with recording on somewhere."""
        used = self.used_fields
        if used is None:
            return None
        return {name: called for name, called in used.items() if name not in self.unrecorded_fields}

    @kept_property
    def unrecorded_fields(self) -> frozenset[str]:
        """The attributes of its receiver that a method uses in blocks alone that switch recording off."""
        made = self.unit.definitions
        within, without = set[str](), set[str]()
        for event in self.events if self.unrecorded else ():
            if isinstance(event, t.Attribute | t.Invoke) and event.base >= 0:
                load = made[event.base]
                if isinstance(load, t.Load) and load.name == self.unit.first:
                    (within if event.site in self.unrecorded else without).add(event.name)
        return frozenset(within - without)

    @kept_property
    def unrecorded(self) -> frozenset[int]:
        """The sites in blocks that switch recording off, of a unit that nowhere switches it on."""
        if not self.of(t.Enter) or any(event.name in _SWITCHING_ON for event in self.of(t.Invoke)):
            return frozenset()
        inside: list[int] = []
        found = set[int]()
        for event in self.events:
            if event.__class__ is t.Enter or event.__class__ is t.Exit:
                manager = self.unit.definitions[event.manager] if event.manager >= 0 else None
                if isinstance(manager, t.Invoke) and manager.name in _SWITCHING_OFF:
                    inside += [event.manager] if isinstance(event, t.Enter) else []
                    inside = inside if isinstance(event, t.Enter) else [one for one in inside if one != event.manager]
            elif inside:
                found.add(event.site)
        return frozenset(found)

    @kept_property
    def identities(self) -> list[identity.Question]:
        """See `identity`."""
        return list(identity.questions(self.unit))

    @kept_property
    def put_back(self) -> dict[int, list[t.StoreItem]]:
        """See `turns`."""
        return turns.stores_of_turns(self.unit, self.of(t.StoreItem), self.bound_before)

    @kept_property
    def single(self) -> frozenset[int]:
        """The sites of loops that take one turn: `for i in range(1):`."""
        return frozenset(loop.site for loop in self.of(t.Loop) if turns.is_single(self.unit, loop))

    @kept_property
    def asked_alone(self) -> frozenset[str]:
        """The names whose value is itself a condition, or compared in one: `if a:`, `while a != 0:`."""
        found: set[str] = set()
        pending = [test.register for test in self.of(t.Test)]
        while pending:
            register = pending.pop()
            made = self.unit.definitions[register] if register >= 0 else None
            sides: list[t.Event | None] = [made]
            if isinstance(made, t.Logic) and made.symbol in ("and", "or", "not"):
                pending += made.operands
            elif isinstance(made, t.Operate) and made.symbol in COMPARISONS:
                sides = [self.unit.definitions[side] for side in made.operands if side >= 0]
            found.update(one.name for one in sides if isinstance(one, t.Load))
        return frozenset(found)

    @kept_property
    def renewed(self) -> dict[int, tuple[str, ...]]:
        """For each loop, by its site, the names that its turns write in place and bind anew."""
        return turns.renewed_names(self.unit)

    @kept_property
    def bound_before(self) -> dict[int, list[int]]:
        """For each register that a name is loaded into, what the name was bound to before: the last two bindings, which
        may be the arms of one condition."""
        found: dict[int, list[int]] = {}
        for uses in self.uses.values():
            last: list[int] = []
            for use in uses:
                if use.loads:
                    found.setdefault(use.register, last)
                else:
                    last = [*last[-1:], use.register]
        return found
