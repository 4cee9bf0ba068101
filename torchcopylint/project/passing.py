"""Whether all that call a function of a project pass it a network that they have frozen.

Only names are compared: a name is frozen where all its parameters are switched off on all paths, in the function
around the call, in the methods of one class or in the body of the module, and neither bound anew nor switched on again.
What is a parameter there is asked of the callers of that function, in turn. Whatever is not understood makes the
answer no.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from torchcopylint.project.dependencies import Callee
from torchcopylint.project.switches import MODULE, Bound, Call, Place, Scope, Switches, Wanted

MAX_QUESTIONS = 20
"""So many parameters are asked for behind one."""
MAX_NAMES = 8
"""So many names may stand for one thing."""
_CONSTRUCTOR = "__init__"


class Called(NamedTuple):
    """A call: the file, the row of the function around it (`switches.MODULE`: none), and where the name ends."""

    path: str
    row: int
    place: Place


class Project(Protocol):
    """The files of a project."""

    def calls(self, callee: Callee) -> Sequence[Called] | None:
        """Every call of a function; `None` if something is not understood, or may be none."""

    def switches(self, path: str) -> Switches | None:
        """What a file says of frozen networks."""

    def function(self, path: str, name: str) -> str | None:
        """The file that defines the function which a file imports by that name, under the same one."""


Answer: TypeAlias = "bool | Callee"
"""Whether something is frozen; or the parameter that decides it."""


def all_frozen(project: Project, asked: Callee) -> bool:
    """Whether all callers pass a frozen network for the parameter that is asked about, and there are some."""
    pending, seen, found = [asked], {asked}, False
    while pending:
        callee = pending.pop()
        calls = project.calls(callee) if len(seen) <= MAX_QUESTIONS else None
        for called in calls or ():
            answer = _passes_frozen(project, callee, called)
            if not answer:
                return False
            found = True
            if isinstance(answer, Callee) and answer not in seen:
                seen.add(answer)
                pending.append(answer)
        if not calls:
            return False
    return found


def _passes_frozen(project: Project, callee: Callee, called: Called) -> Answer:
    own, around = project.switches(callee.path), project.switches(called.path)
    call = around.calls.get(called.place) if around is not None else None
    defined = _defined(own, callee) if own is not None else None
    if around is None or call is None or defined is None or callee.parameter not in defined.parameters:
        return False
    bound = 1 if callee.owner and defined.parameters[0] in ("self", "cls") else 0
    passed = call.passed(defined.parameters.index(callee.parameter) - bound, callee.parameter)
    scope = around.scopes.get(called.row)
    if passed is None or not passed.text or scope is None:
        return False
    return _Names(project, called.path, around).is_frozen(scope, passed.text, call.row, MAX_NAMES)


def _defined(file: Switches, callee: Callee) -> Scope | None:
    """The function that is meant, if there is one alone of that name."""
    found = [one for one in file.scopes.values() if (one.owner, one.name) == (callee.owner, callee.name)]
    return found[0] if len(found) == 1 else None


class _Names(NamedTuple):
    """The names of one file."""

    project: Project
    path: str
    file: Switches

    # A name may stand for another one, or for what a function returns: `names` more of them are followed.

    def is_frozen(self, scope: Scope, text: str, row: int, names: int) -> Answer:
        """Whether what a dotted name holds is frozen, in a function, in front of a row."""
        first, _, rest = text.partition(".")
        if not names:
            return False
        if first == "self":
            return self._field_is_frozen(scope, f"self.{rest.partition('.')[0]}", names)
        if first not in scope.bound and first not in scope.parameters and first not in scope.switches:
            module = self.file.scopes[MODULE]
            if scope is module:
                return False
            scope, row = module, _last_row(module)
        switched = self._last_switch(scope, first, row)
        before = [one for one in scope.bound.get(first, ()) if one.row <= row]
        if switched is not None:
            anew = any(one.row > switched for one in before)
            return not anew and not self._is_switched_on(scope, first)
        if first in scope.parameters:
            known = scope.name and not before and not self._is_switched_on(scope, first)
            return Callee(self.path, scope.owner, scope.name, parameter=first) if known else False
        return self._through(scope, before, first, names)

    def _field_is_frozen(self, scope: Scope, text: str, names: int) -> Answer:
        """Fields that the methods of one class share."""
        methods = [one for one in self.file.scopes.values() if scope.within and one.within == scope.within]
        if any(self._is_switched_on(one, text) for one in methods):
            return False
        setting = [one for one in methods if text in one.bound]
        if len(setting) != 1:
            return False
        switched = self._last_switch(setting[0], text, _last_row(setting[0]))
        if switched is not None:
            return all(one.row <= switched for one in setting[0].bound[text])
        return self._through(setting[0], setting[0].bound[text], text, names)

    def _through(self, scope: Scope, bound: Sequence[Bound], text: str, names: int) -> Answer:
        """What a name holds that has been bound to another, or to what a function of the project returns."""
        if len(bound) != 1 or self._is_switched_on(scope, text):
            return False
        if bound[0].text:
            return self.is_frozen(scope, bound[0].text, bound[0].row, names - 1)
        for names_, function in self._functions(scope, bound[0].call):
            returned = function.returns
            frozen = [names_.is_frozen(function, one, _last_row(function), names - 1) is True for one in returned]
            return bool(frozen) and all(frozen)
        return False

    def _last_switch(self, scope: Scope, text: str, row: int) -> int | None:
        """The row in front of another one where all parameters of a name are switched off, on all paths."""
        rows = [one.row for one in scope.switches.get(text, ()) if one.wanted is False and one.always]
        rows += [call.row for call, wanted in self._by_helpers(scope, text) if wanted is False and call.always]
        return max((one for one in rows if one <= row), default=None)

    def _is_switched_on(self, scope: Scope, text: str) -> bool:
        """Whether a part of what a name holds, or all of it, may require gradients again."""
        own = (one for name, found in scope.switches.items() if f"{name}.".startswith(f"{text}.") for one in found)
        helped = (wanted for _, wanted in self._by_helpers(scope, text))
        return any(one.wanted is not False for one in own) or any(wanted is not False for wanted in helped)

    def _by_helpers(self, scope: Scope, text: str) -> Iterator[tuple[Call, Wanted]]:
        """The functions of the project that switch what they are given, and what they are told: `freeze(net)`."""
        for call in scope.calls:
            for passed in call.given if call.name else ():
                if passed.text != text:
                    continue
                for _, function in self._functions(scope, call.name):
                    offset = 1 if function.owner else 0
                    position = passed.key + offset if isinstance(passed.key, int) else passed.key
                    for wanted in _switches(function, position, call):
                        yield call, wanted

    def _functions(self, scope: Scope, name: str) -> Iterator[tuple[_Names, Scope]]:
        """The function of the project that a dotted name in a function means, and its file."""
        receiver, _, last = name.rpartition(".")
        if not last or receiver not in ("", "self"):
            return
        owner = scope.within if receiver else ""
        path = self.path if receiver else (self.project.function(self.path, last) or self.path)
        file = self.project.switches(path)
        found = _defined(file, Callee(path, owner, last)) if file is not None else None
        if file is not None and found is not None:
            yield _Names(self.project, path, file), found


def _switches(function: Scope, key: int | str, call: Call) -> Iterator[Wanted]:
    """What a function makes all parameters of its argument require, as a call of it says."""
    names = function.parameters
    name = key if isinstance(key, str) else names[key] if key < len(names) else ""
    for switch in function.switches.get(name, []):
        if isinstance(switch.wanted, str) and switch.wanted in names:
            offset = 1 if function.owner else 0
            told = call.passed(names.index(switch.wanted) - offset, switch.wanted)
            yield told.constant if told is not None else function.defaults.get(switch.wanted)
        else:
            yield switch.wanted if switch.always or switch.wanted is not False else None


def _last_row(scope: Scope) -> int:
    rows = [one.row for found in scope.switches.values() for one in found]
    rows += [one.row for found in scope.bound.values() for one in found]
    return max((*rows, *(call.row for call in scope.calls)), default=0)
