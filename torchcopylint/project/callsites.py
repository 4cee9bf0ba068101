"""What one file says of who calls whom, and with recording on or off, as its syntax tells.

This is about names, not values: a call of `x.sample()` is one of anything that is called `sample`. Who asks
(`project.callers`) takes together what all files say of a name.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple


class Mode(Enum):
    """Whether autograd records at a place; `CALLER` is as it does where the function around it is called."""

    OFF = "off"
    ON = "on"
    UNKNOWN = "unknown"
    CALLER = "caller"


class Given(NamedTuple):
    """What a call passes: so many by place, and those by name; `more` if `*` or `**` passes others."""

    places: int
    names: frozenset[str]
    more: bool


class Taken(NamedTuple):
    """What a function takes by place, so many at least and at most (-1: any number), and by name; `any_name` is `**`.
    Of a method that is `bound`, the object that it is called on is the first."""

    least: int
    most: int
    names: frozenset[str]
    any_name: bool
    bound: bool

    def can_be(self, given: Given, *, on_object: bool) -> bool:
        """Whether a call may be one of this function. What is not called on an object may be called on its class."""
        places = given.places + (self.bound and on_object)
        if self.most >= 0 and places > self.most:
            return False
        if not self.any_name and not given.names <= self.names:
            return False
        return given.more or places + len(given.names) >= self.least - (self.bound and not on_object)


class Function(NamedTuple):
    """A function by its name and that of its class (empty: none), and the row of its `def`. `nested` is one inside a
    function; `within` is the class whose `self` it sees. `handed_on` is whether a decorator may give it to others to be
    called. What it has `taken` is not known where a decorator may take something else."""

    name: str
    owner: str
    within: str
    nested: bool
    mode: Mode
    is_property: bool = False
    handed_on: bool = False
    row: int = 0
    taken: Taken | None = None


class Site(NamedTuple):
    """A place where a name stands. `function` is the number of the one around it (-1: none), `receiver` what stands in
    front of the dot, as far as it is names alone (`None`: there is no dot). What is not `called` may be later. `place`
    is where the name ends."""

    function: int
    mode: Mode
    receiver: str | None
    called: bool
    place: tuple[int, int]
    given: Given | None = None


class CallSites(NamedTuple):
    """One file. `imports` are the names that it imports with what they stand for, `stars` the modules of which it
    imports all names; `classes` have the names of their bases and of their methods."""

    functions: tuple[Function, ...]
    sites: Mapping[str, tuple[Site, ...]]
    imports: Mapping[str, str]
    stars: tuple[str, ...]
    defined: frozenset[str]
    classes: Mapping[str, tuple[tuple[str, ...], frozenset[str]]]


_MODES = {"no_grad": Mode.OFF, "inference_mode": Mode.OFF, "enable_grad": Mode.ON}
_SWITCH = "set_grad_enabled"
_OTHER = re.compile(r"grad|inference", re.IGNORECASE)
"""What else is called like this, as a context manager or a decorator, has to do with grad mode, one way or another."""
_PASSES_ON = re.compile(r"regist|hook|fixture|command|route|main|task|callback|event|subscri", re.IGNORECASE)
"""A decorator of such a name gives the function to somebody who calls it."""
_PROPERTIES = frozenset({"property", "cached_property", "lazy_property"})
_KEEPING = frozenset({"staticmethod", "classmethod", "abstractmethod", "override", *_PROPERTIES, *_MODES})
"""Decorators that leave it to the function what it takes."""
_BY_TEXT = frozenset({"getattr", "attrgetter", "methodcaller"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def call_sites(text: str) -> CallSites | None:
    """What a text says, or `None` if the running Python cannot read it. Linear, without recursion; never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _Reader(tree).found()


class _Place(NamedTuple):
    """Where a node stands: the function around it, the class if it stands in its body, the class whose `self` is seen,
    and the mode."""

    function: int
    owner: str
    within: str
    mode: Mode


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self._functions: list[Function] = []
        self._sites: dict[str, list[Site]] = {}
        self._imports: dict[str, str] = {}
        self._stars: list[str] = []
        self._classes: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}
        self._todo: list[tuple[ast.AST, _Place]] = []
        self._defined = frozenset(_bound_in(tree))
        self._block(tree.body, _Place(-1, "", "", Mode.ON))

    def found(self) -> CallSites:
        while self._todo:
            node, place = self._todo.pop()
            self._visit(node, place)
        sites = {name: tuple(found) for name, found in self._sites.items()}
        functions = tuple(self._functions)
        return CallSites(functions, sites, self._imports, tuple(self._stars), self._defined, self._classes)

    def _visit(self, node: ast.AST, place: _Place) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._note(node.id, place, None, node)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                self._note(node.attr, place, _receiver(node.value), node)
            self._todo.append((node.value, place))
        elif isinstance(node, ast.Call):
            self._call(node, place)
        elif isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            self._function(node, place)
        elif isinstance(node, ast.ClassDef):
            self._class(node, place)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._with(node, place)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        else:
            self._inside(node, place)

    def _inside(self, node: ast.AST, place: _Place) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                if name != "annotation":
                    self._todo.append((value, place))
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._block(value, place)
            elif isinstance(value, list):
                self._todo += [(item, place) for item in value if isinstance(item, ast.AST)]

    def _block(self, statements: list[ast.stmt], place: _Place) -> None:
        """Statements in order: `torch.set_grad_enabled(False)` holds for those behind it."""
        for statement in statements:
            self._todo.append((statement, place))
            if isinstance(statement, ast.Expr) and _last(statement.value) == _SWITCH:
                place = place._replace(mode=_mode_of(statement.value) or Mode.UNKNOWN)

    def _note(
        self, name: str, place: _Place, receiver: str | None, node: ast.expr, call: ast.Call | None = None
    ) -> None:
        ends = node.end_lineno or 0, node.end_col_offset or 0
        given = _given(call) if call is not None else None
        site = Site(place.function, place.mode, receiver, call is not None, ends, given)
        self._sites.setdefault(name, []).append(site)

    def _call(self, node: ast.Call, place: _Place) -> None:
        function = node.func
        if isinstance(function, ast.Name):
            self._note(function.id, place, None, function, node)
        elif isinstance(function, ast.Attribute):
            self._note(function.attr, place, _receiver(function.value), function, node)
            self._todo.append((function.value, place))
        else:
            self._todo.append((function, place))
        self._todo += [(argument, place) for argument in node.args]
        self._todo += [(keyword.value, place) for keyword in node.keywords]
        if _last(function) in _BY_TEXT:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self._note(argument.value, place, "", argument)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, place: _Place) -> None:
        number = len(self._functions)
        if isinstance(node, ast.Lambda):
            self._functions.append(Function("", "", place.within, nested=True, mode=Mode.UNKNOWN))
            self._todo.append((node.body, _Place(number, "", place.within, Mode.UNKNOWN)))
            return
        names = [_last(decorator) for decorator in node.decorator_list]
        bound = bool(place.owner) and "staticmethod" not in names
        mode = _mode_of_function(node)
        if place.owner and "Function" in self._classes[place.owner][0] and node.name in ("forward", "backward"):
            # What a custom Function does is not recorded.
            mode = Mode.OFF
        self._functions.append(
            Function(
                node.name,
                place.owner,
                place.within,
                nested=place.function >= 0 and not place.owner,
                mode=mode,
                is_property=not _PROPERTIES.isdisjoint(names),
                handed_on=any(_PASSES_ON.search(ast.unparse(decorator)) for decorator in node.decorator_list),
                row=node.lineno,
                taken=_taken(node.args, bound) if _KEEPING.issuperset(names) else None,
            )
        )
        for default in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self._todo.append((default, place))
        self._block(node.body, _Place(number, "", place.within, mode))

    def _class(self, node: ast.ClassDef, place: _Place) -> None:
        methods = frozenset(item.name for item in node.body if isinstance(item, _FUNCTIONS))
        self._classes[node.name] = (tuple(_last(base) for base in node.bases), methods)
        self._todo += [(decorator, place) for decorator in node.decorator_list]
        self._block(node.body, _Place(place.function, node.name, node.name, place.mode))

    def _with(self, node: ast.With | ast.AsyncWith, place: _Place) -> None:
        mode = place.mode
        for item in node.items:
            self._todo.append((item.context_expr, place))
            mode = _mode_of(item.context_expr) or mode
        self._block(node.body, place._replace(mode=mode))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                self._imports[alias.asname or first] = alias.name if alias.asname else first
            return
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._stars.append(module)
            else:
                dotted = f"{module}{alias.name}" if module.endswith(".") else f"{module}.{alias.name}"
                self._imports[alias.asname or alias.name] = dotted


def _given(call: ast.Call) -> Given:
    places = [one for one in call.args if not isinstance(one, ast.Starred)]
    names = frozenset(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    more = len(places) < len(call.args) or len(names) < len(call.keywords)
    return Given(len(places), names, more)


def _taken(arguments: ast.arguments, bound: bool) -> Taken:
    plain = [*arguments.posonlyargs, *arguments.args]
    least = len(plain) - len(arguments.defaults) + sum(default is None for default in arguments.kw_defaults)
    names = frozenset(one.arg for one in (*arguments.args, *arguments.kwonlyargs))
    return Taken(least, -1 if arguments.vararg else len(plain), names, arguments.kwarg is not None, bound)


def _mode_of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Mode:
    for decorator in node.decorator_list:
        mode = _mode_of(decorator)
        if mode is not None:
            return mode
    return Mode.ON if any(_last(call.func) == "backward" for call in _own_calls(node)) else Mode.CALLER


def _own_calls(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """The calls in a function, without those in functions inside it."""
    todo: list[ast.AST] = list(node.body)
    while todo:
        item = todo.pop()
        if isinstance(item, ast.Call):
            yield item
        if not isinstance(item, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(item))


def _mode_of(node: ast.expr) -> Mode | None:
    """What a context manager or decorator does to grad mode; `None` if it has nothing to do with it."""
    if isinstance(node, ast.IfExp):
        return Mode.UNKNOWN if _mode_of(node.body) or _mode_of(node.orelse) else None
    name = _last(node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
    wanted = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    if name == _SWITCH:
        return {False: Mode.OFF, True: Mode.ON}.get(wanted) if isinstance(wanted, bool) else Mode.UNKNOWN
    if name in _MODES:
        if not arguments or wanted is True:
            return _MODES[name]
        return Mode.ON if wanted is False else Mode.UNKNOWN
    return Mode.UNKNOWN if _OTHER.search(name) else None


def _last(node: ast.expr) -> str:
    """The last name of what is called, or of a dotted name."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _receiver(node: ast.expr) -> str:
    """What stands in front of a dot: a dotted name, `super`, or nothing that could be told."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    called = node.func if isinstance(node, ast.Call) and not parts else None
    return "super" if isinstance(called, ast.Name) and called.id == "super" else ""


def _bound_in(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines itself, at its top."""
    for statement in tree.body:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
