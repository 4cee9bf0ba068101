"""What other files of the project define: pure data, and how the names of one file find it.

A file is summarised once, by whoever runs the analysis, into `ModuleFacts`; here a name that a file imports is followed
through such facts, from one file to the next, until it is a function, a class, an object, a constant, or a name of
somebody else's. Functions and classes of other files get numbers behind the file's own, so that the rest of the engine
need not know where they come from. No file is opened here: `Modules` says what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Object
from torchcopylint.flow.tape import Dotted

if TYPE_CHECKING:
    from torchcopylint.flow.graphs.gathered import Gathered
    from torchcopylint.flow.interprocedural.returned import ReturnedPart
    from torchcopylint.flow.interprocedural.summaries import Summary


class Foreign(Dotted):
    """The dotted name, as the importing file writes it, of something that a file of the project may define."""

    __slots__ = ()


_AT = "#"
"""Stands between the path of a file and a name in it."""


def named_in(path: str, name: str) -> Foreign:
    """A name of the file at `path`, as every file can follow it."""
    return Foreign(f"{path}{_AT}{name}")


class Name(NamedTuple):
    """What a name of a module is. One of: an alias of another dotted name (`local` if that is to be followed among the
    project's files), a function or a class by its number, what is called of an autograd function (a function by the
    number of a class), an object, or a constant of a kind."""

    kind: Kind = Kind.UNKNOWN
    alias: str = ""
    local: bool = False
    path: str = ""
    function: int = -1
    class_number: int = -1
    obj: Object | None = None
    const: object = None


class Body(NamedTuple):
    """A short function as others run it, see `flow.files.guests`: its unit without its definitions, which its tape
    tells; so many registers it has; the literals among its defaults; its decorators by their full names; the site of
    the statement around each of its sites; and the builtin names that it takes."""

    unit: t.Unit
    registers: int
    defaults: tuple[tuple[str, t.Const], ...]
    decorators: tuple[str, ...]
    statements: tuple[tuple[int, int], ...]
    takes: frozenset[str]


class ClassBody(NamedTuple):
    """A short class as others run it: what it is, with base classes that every file can follow, the unit of its body,
    and its methods by their numbers at home."""

    info: t.ClassInfo
    body: Body
    methods: Mapping[int, Body]


class FunctionFacts(NamedTuple):
    """A function, for those who call it from elsewhere. `owner` is the number of its class, or -1. A short one has a
    `body`. `uses` are the fields that a method uses with recording on, each with whether it only calls it, if that is
    known. `roles` are those that its own file has for it, see `callbacks`, and `gathers` the sums that it returns,
    of which its file does not know what they are for."""

    name: str
    qualname: str
    owner: int
    parameters: tuple[t.Parameter, ...]
    decorators: tuple[str, ...]
    summary: Summary
    body: Body | None = None
    uses: Mapping[str, bool] | None = None
    roles: frozenset[str] = frozenset()
    gathers: tuple[Gathered, ...] = ()


class Base(NamedTuple):
    """A base class: of a project's file by `path` and number, or a dotted name, `local` as in `Name`."""

    name: str
    local: bool = False
    path: str = ""
    number: int = -1


class ClassFacts(NamedTuple):
    """A class, for those who use it from elsewhere: its methods by the numbers of their functions, what its fields are,
    which of them `__init__` surely sets to parameters, and which fields its own code reads. `hollow` is whether its
    instances hold numbers and texts only, `apart` names the layers that learn apart, `makers` the methods that make
    what fields hold (see `factories`), and `ties` are the parameters that its constructor ties in any case (see the
    modules of those names). `sets` are the fields that other methods than `__init__` set anew. `run_over` are its own
    methods over whose results it runs backward, see the module of that name, and `switched` the fields whose parameters
    it switches off."""

    name: str
    bases: tuple[Base, ...]
    methods: Mapping[str, int]
    fields: Mapping[str, Object]
    registered: Mapping[str, bool]
    reads: frozenset[str]
    hollow: bool = False
    apart: frozenset[str] = frozenset()
    body: ClassBody | None = None
    ties: tuple[tuple[str, str, str, str], ...] = ()
    makers: tuple[tuple[str, str], ...] = ()
    sets: frozenset[str] = frozenset()
    run_over: frozenset[tuple[str, bool]] = frozenset()
    switched: frozenset[str] = frozenset()


class ModuleFacts(NamedTuple):
    """One file, for those who import it. Plain data, without the tree; `public` is its `__all__`, if it is spelt out.

    The types of objects are `file#PATH#NUMBER` for classes of project files.
    """

    path: str
    names: Mapping[str, Name]
    functions: Mapping[int, FunctionFacts]
    classes: Mapping[int, ClassFacts]
    stars: tuple[tuple[str, bool], ...]
    public: frozenset[str] | None


class Modules(Protocol):
    """The modules of a project. Files are known by their paths."""

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """The files that a dotted name in the file `importer` leads through, the last first, each with what is left of
        the name behind it. Without any, the name is not one of the project's."""

    def facts(self, path: str) -> ModuleFacts | None:
        """What a file defines; `None` if that cannot be known, such as where files import one another in a circle."""

    def all_off(self, path: str, owner: str, name: str) -> bool:
        """Whether the project calls a function of a file, a method if it has an owner, and with recording off alone."""

    def is_recorded(self, path: str, owner: str, name: str) -> bool:
        """Whether somebody in the project surely calls a function of a file with recording on."""

    def all_frozen(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """Whether the project calls a function of a file, and passes for a parameter nothing but networks that it has
        frozen. Of `__init__`, that is whoever makes an instance."""

    def all_let_go(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """Whether the project calls a function of a file, and passes for a parameter nothing but what nobody else
        holds, or looks at again."""


class Target(NamedTuple):
    """What a dotted name has been followed to: something in the file at `path`, or, with `dotted`, somebody else's."""

    path: str
    name: Name
    dotted: str = ""


MODULE = Name(Kind.IMPORTED)
MAX_STEPS = 32
"""So many files are asked for one name. A package that takes a function out of its module of the same name, of which
nothing is known, would lead back into itself for ever, with a longer name each time."""


class Outside:
    """Other files as one file sees them."""

    def __init__(self, modules: Modules | None = None, path: str = "") -> None:
        """`path` is that of the file that looks."""
        self.path = path
        self._modules = modules
        self._own_units = 0
        self._own_classes = 0
        self._targets: dict[str, Target | None] = {}
        self._functions: list[tuple[str, int, FunctionFacts]] = []
        self._seated: dict[int, FunctionFacts] = {}
        self._units: dict[int, t.Unit] = {}
        self._summaries: dict[int, Summary] = {}
        self._function_numbers: dict[tuple[str, int], int] = {}
        self._classes: list[tuple[str, int]] = []
        self._class_numbers: dict[tuple[str, int], int] = {}

    def number_from(self, units: int, classes: int) -> None:
        """The file's own functions and classes have the numbers below these."""
        self._own_units = units
        self._own_classes = classes

    def all_off(self, owner: str, name: str) -> bool:
        """Whether the project calls a function of the file that looks, and with recording off alone."""
        return self._modules is not None and self._modules.all_off(self.path, owner, name)

    def is_recorded(self, owner: str, name: str) -> bool:
        """Whether somebody in the project surely calls a function of the file that looks with recording on."""
        return self._modules is not None and self._modules.is_recorded(self.path, owner, name)

    def all_frozen(self, owner: str, name: str, parameter: str) -> bool:
        """Whether the project calls a function of the file that looks, and with a frozen network for a parameter."""
        return self._modules is not None and self._modules.all_frozen(self.path, owner, name, parameter)

    def all_let_go(self, owner: str, name: str, parameter: str) -> bool:
        """Whether the project calls a function of the file that looks, and lets go of what it passes."""
        return self._modules is not None and self._modules.all_let_go(self.path, owner, name, parameter)

    # -- names

    def imported(self, dotted: Dotted) -> Dotted:
        """An imported name, as `Foreign` if a file of the project may define it."""
        if dotted.__class__ is Foreign:
            return dotted
        if self._modules is not None and self._modules.places(self.path, dotted):
            return Foreign(dotted)
        return dotted

    def target(self, dotted: str) -> Target | None:
        """What a name is that this file imports; `None` if that is not known."""
        if dotted not in self._targets:
            path, at, name = dotted.rpartition(_AT)
            if at and self._modules is not None:
                self._targets[dotted] = self._member(path, name, set())
            else:
                self._targets[dotted] = self._follow(self.path, dotted, set())
        return self._targets[dotted]

    def star(self, module: str, name: str) -> Target | None:
        """What `from module import *` makes of a name in this file."""
        key = f"{module} * {name}"
        if key not in self._targets:
            self._targets[key] = self._through_star(self.path, module, name, set())
        return self._targets[key]

    def _follow(self, importer: str, dotted: str, seen: set[tuple[str, str]]) -> Target | None:
        """What a dotted name in a file is. The last module on the way is asked first; a package before it only for what
        that module does not have, and only for names that the package itself spells out."""
        if self._modules is None:
            return None
        places = self._modules.places(importer, dotted)
        for index, (path, rest) in enumerate(places):
            if rest:
                found = self._member(path, rest, seen, stars=index == 0)
                if found is not None:
                    return found
                continue
            above = places[index + 1] if index + 1 < len(places) else None
            found = None
            if above is not None and above[0] != importer and "." not in above[1]:
                # `from .block import block` in a package makes a function of what else would be the module.
                found = self._member(*above, seen, stars=False)
            return found if found is not None and found.name is not MODULE else Target(path, MODULE)
        return None

    def _member(self, path: str, rest: str, seen: set[tuple[str, str]], *, stars: bool = True) -> Target | None:
        """What a name in a file is; `rest` may go on with fields, of which nothing is known here.

        `stars` is whether to look into what the file imports by `*`. `seen` are the questions asked so far: files may
        hand a name on in a circle.
        """
        assert self._modules is not None
        if (path, rest) in seen or len(seen) >= MAX_STEPS:
            return None
        seen.add((path, rest))
        facts = self._modules.facts(path)
        if facts is None:
            return None
        first, _, behind = rest.partition(".")
        name = facts.names.get(first)
        if name is None:
            for module, local in reversed(facts.stars) if stars else ():
                found = self._through_star(path, module, first, seen) if local else None
                if found is not None:
                    return self._behind(found, behind, seen)
            return None
        if not name.alias:
            return Target(path, name) if not behind else None
        dotted = f"{name.alias}.{behind}" if behind else name.alias
        if not name.local:
            return Target("", Name(), dotted)
        return self._follow(path, dotted, seen)

    def _behind(self, found: Target, behind: str, seen: set[tuple[str, str]]) -> Target | None:
        if not behind:
            return found
        if found.dotted:
            return Target("", Name(), f"{found.dotted}.{behind}")
        return self._member(found.path, behind, seen) if found.name is MODULE else None

    def _through_star(self, importer: str, module: str, name: str, seen: set[tuple[str, str]]) -> Target | None:
        if self._modules is None:
            return None
        for path, rest in self._modules.places(importer, module)[:1]:
            facts = self._modules.facts(path) if not rest else None
            if facts is None:
                return None
            visible = not name.startswith("_") if facts.public is None else name in facts.public
            return self._member(path, name, seen) if visible else None
        return None

    # -- functions

    def function_number(self, path: str, function: int) -> int | None:
        """The number under which this file knows a function of another; `None` for one that it cannot know."""
        key = (path, function)
        if key not in self._function_numbers:
            facts = self._modules.facts(path) if self._modules is not None else None
            if facts is None or function not in facts.functions:
                return None
            self._function_numbers[key] = self._own_units + len(self._functions)
            self._functions.append((path, function, facts.functions[function]))
        return self._function_numbers[key]

    def function_facts(self, path: str, function: int) -> FunctionFacts | None:
        """What is known of a function of another file."""
        facts = self._modules.facts(path) if self._modules is not None else None
        return facts.functions.get(function) if facts is not None else None

    def seat(self, path: str, function: int, number: int) -> None:
        """A function of another file runs in this one, under a number of its own."""
        facts = self.function_facts(path, function)
        assert facts is not None
        self._function_numbers[path, function] = number
        self._seated[number] = facts

    def function_origin(self, number: int) -> tuple[str, int]:
        """The file of a function, and its number there."""
        return self._functions[number - self._own_units][:2]

    def _function(self, number: int) -> FunctionFacts:
        seated = self._seated.get(number)
        return seated if seated is not None else self._functions[number - self._own_units][2]

    def unit(self, number: int) -> t.Unit:
        """A unit with the parameters of a function of another file, and without a body."""
        if number not in self._units:
            facts = self._function(number)
            self._units[number] = t.Unit(
                number=number,
                name=facts.name,
                qualname=facts.qualname,
                kind="function",
                parent=0,
                owner=-1,
                parameters=facts.parameters,
                returns=None,
                bound=frozenset(),
                tape=(),
                definitions=(),
                uses={},
                is_generator=False,
                site=-1,
            )
        return self._units[number]

    def uses(self, number: int) -> Mapping[str, bool] | None:
        """The fields that a method uses with recording on, each with whether it only calls it, if that is known."""
        return self._function(number).uses

    def gathers(self, number: int) -> tuple[Gathered, ...]:
        """The sums with the graphs of all turns that a function of another file returns."""
        return self._function(number).gathers

    def decorators(self, number: int) -> tuple[str, ...]:
        """The decorators of a function of another file, as written."""
        return self._function(number).decorators

    def summary(self, number: int) -> Summary:
        """The summary of a function of another file, with this file's numbers in it."""
        if number not in self._summaries:
            summary = self._function(number).summary
            told = tuple(one._replace(summary=self._localised_summary(one.summary)) for one in summary.told)
            self._summaries[number] = self._localised_summary(summary)._replace(told=told)
        return self._summaries[number]

    def _localised_summary(self, summary: Summary) -> Summary:
        parts = tuple(self._localised_part(part) for part in summary.parts)
        once = (summary.once[0], self.localised(summary.once[1])) if summary.once is not None else None
        return summary._replace(result=self.localised(summary.result), parts=parts, once=once)

    def _localised_part(self, part: ReturnedPart) -> ReturnedPart:
        inner = tuple(self._localised_part(one) for one in part.inner)
        return part._replace(result=self.localised(part.result), inner=inner)

    # -- classes

    def seat_class(self, path: str, own: int, number: int) -> None:
        """A class of another file is run in this one, under a number of its own."""
        self._class_numbers[path, own] = number

    def facts_of_class(self, path: str, number: int) -> ClassFacts | None:
        """What is known of a class by its file, and its number there."""
        facts = self._modules.facts(path) if self._modules is not None else None
        return facts.classes.get(number) if facts is not None else None

    def class_number(self, path: str, number: int) -> int:
        """The number under which this file knows a class of another."""
        key = (path, number)
        if key not in self._class_numbers:
            self._class_numbers[key] = self._own_classes + len(self._classes)
            self._classes.append(key)
        return self._class_numbers[key]

    def class_origin(self, number: int) -> tuple[str, int]:
        """The file of a class, and its number there."""
        return self._classes[number - self._own_classes]

    def class_facts(self, number: int) -> ClassFacts | None:
        """What is known of a class of another file."""
        return self.facts_of_class(*self.class_origin(number))

    def bases(self, number: int) -> list[tuple[int | None, str]]:
        """The bases of a class of another file: their numbers, where a project's file defines them, and names."""
        facts = self.class_facts(number)
        if facts is None:
            return [(None, "")]
        path, _ = self.class_origin(number)
        found: list[tuple[int | None, str]] = []
        for base in facts.bases:
            if base.number >= 0:
                found.append((self.class_number(base.path, base.number), base.name))
            elif base.local:
                found.append(self.as_class(self._follow(path, base.name, set()), base.name))
            else:
                found.append((None, base.name))
        return found

    def as_class(self, target: Target | None, name: str) -> tuple[int | None, str]:
        """The number of the class that a name was followed to, if it is a project's, and the name that it goes by."""
        if target is not None and target.dotted:
            return None, target.dotted
        if target is not None and target.name.class_number >= 0:
            return self.class_number(target.name.path, target.name.class_number), name
        return None, name

    def method(self, number: int, name: str) -> int | None:
        """The number of a method that a class of another file defines itself."""
        facts = self.class_facts(number)
        function = facts.methods.get(name) if facts is not None else None
        return None if function is None else self.function_number(self.class_origin(number)[0], function)

    def field(self, number: int, name: str) -> Object | None:
        """What is known of a field of a class of another file."""
        facts = self.class_facts(number)
        obj = facts.fields.get(name) if facts is not None else None
        return None if obj is None else self.localised(obj)

    def localised(self, obj: Object) -> Object:
        """An object with the number that this file has for its class."""
        if not obj.type.startswith("file#"):
            return obj
        path, _, number = obj.type[5:].rpartition("#")
        return obj._replace(type=f"class#{self.class_number(path, int(number))}")
