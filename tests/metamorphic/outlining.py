"""One statement of a program in a helper of its own, or one value in something that carries it: the same program.

A way says what is added after the imports, what stands in place of the statement, and what stands in another file. Its
texts may name:

    {statement} {value}     the statement; what it assigns to one name or evaluates
    {take} {binds}          `a, b = ` for what the statement binds; the same for the one name that it assigns
    {give}                  `return a, b` for what the statement binds, or `pass`
    {reads} {first} {rest}  the variables that it reads: all, the first, the others
    {named} {pairs}         the same as `a=a, b=b`, and as `'a': a, 'b': b`
    {from_kwargs}           `a = kwargs['a']` for each
    {kept}                  `self.a = a` for each
    {kept_statement} {kept_value}  the statement and its value, which read `self.a` for `a`
    {bound} {bound_pairs}   what the statement binds: `a, b`, and `'a': a, 'b': b`

A way applies where everything that it names is there.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Way(NamedTuple):
    """What is added after the imports, what stands in place of the statement, and what is in `helper_.py`."""

    front: str
    text: str
    other: str = ""


class Rewritten(NamedTuple):
    """A program in another way, and the other files that it has, by name."""

    code: str
    files: Mapping[str, str]


_HELPER = "def step_({reads}):\n    {statement}\n    {give}"
_CLASS = "class Helper_:\n"
_METHOD = "    def do_(self, {reads}):\n        {statement}\n        {give}"

OUTLINED: Mapping[str, Way] = {
    "a function": Way(_HELPER, "{take}step_({reads})"),
    "a function of a function": Way(
        "def inner_({reads}):\n    {statement}\n    {give}\n\ndef step_({reads}):\n    return inner_({reads})",
        "{take}step_({reads})",
    ),
    "a function of the value": Way("def step_({value_reads}):\n    return {value}", "{binds}step_({value_reads})"),
    "a lambda": Way("", "step_ = lambda {value_reads}: {value}\n{binds}step_({value_reads})"),
    "a method": Way(_CLASS + _METHOD, "{take}Helper_().do_({reads})"),
    "a method of an object that is kept": Way(
        _CLASS + _METHOD + "\n\nhelper_ = Helper_()", "{take}helper_.do_({reads})"
    ),
    "a static method": Way(
        "class Helper_:\n    @staticmethod\n    def do_({reads}):\n        {statement}\n        {give}",
        "{take}Helper_.do_({reads})",
    ),
    "a class method": Way(
        "class Helper_:\n    @classmethod\n    def do_(cls, {reads}):\n        {statement}\n        {give}",
        "{take}Helper_.do_({reads})",
    ),
    "an object that is called": Way(
        "class Helper_:\n    def __call__(self, {reads}):\n        {statement}\n        {give}\n\nhelper_ = Helper_()",
        "{take}helper_({reads})",
    ),
    "a method, with fields": Way(
        "class Helper_:\n    def __init__(self, {reads}):\n        {kept}\n\n"
        "    def do_(self):\n        {kept_statement}\n        {give}",
        "helper_ = Helper_({reads})\n{take}helper_.do_()",
    ),
    "a property": Way(
        "class Helper_:\n    def __init__(self, {reads}):\n        {kept}\n\n"
        "    @property\n    def value(self):\n        return {kept_value}",
        "{binds}Helper_({reads}).value",
    ),
    "a method that a base class calls": Way(
        "class Base_:\n    def run(self, {reads}):\n        return self.do_({reads})\n\n\n"
        "class Helper_(Base_):\n" + _METHOD,
        "{take}Helper_().run({reads})",
    ),
    "a nested function": Way("", "def step_():\n    {closed_statement}\n    {give}\n{take}step_()"),
    "a nested function that is made": Way(
        "def make_({reads}):\n    def step_():\n        {closed_statement}\n        {give}\n    return step_",
        "step_ = make_({reads})\n{take}step_()",
    ),
    "a partial": Way("import functools\n\n" + _HELPER, "{take}functools.partial(step_, {first})({rest})"),
    "a function, by `*args`": Way(_HELPER, "args_ = [{first}, {rest}]\n{take}step_(*args_)"),
    "a function, by `**kwargs`": Way(_HELPER, "kwargs_ = {{{pairs}}}\n{take}step_(**kwargs_)"),
    "a function with keywords only": Way(
        "def step_(*, {reads}, last_=None):\n    {statement}\n    {give}",
        "{take}step_({named})",
    ),
    "a function that takes `*args`": Way(
        "def step_(*args):\n    {first}, {rest_of}= args\n    {statement}\n    {give}",
        "{take}step_({reads})",
    ),
    "a function that takes `**kwargs`": Way(
        "def step_(**kwargs):\n    {from_kwargs}\n    {statement}\n    {give}",
        "{take}step_({named})",
    ),
    "a decorated function": Way(
        "import functools\n\ndef logged_(function):\n    @functools.wraps(function)\n    def inner(*args, **kwargs):\n"
        "        print('', end='')\n        return function(*args, **kwargs)\n    return inner\n\n@logged_\n" + _HELPER,
        "{take}step_({reads})",
    ),
    "a function that returns a dictionary": Way(
        "def step_({reads}):\n    {statement}\n    return {{{bound_pairs}}}",
        "out_ = step_({reads})\n{from_out}",
    ),
    "a function that returns more": Way(
        "def step_({reads}):\n    {statement}\n    return {bound}, {{'n': 1}}",
        "{bound}, info_ = step_({reads})",
    ),
    "a generator": Way("def step_({reads}):\n    {statement}\n    yield {one}", "{one} = next(step_({reads}))"),
    "a function in a table": Way(_HELPER + "\n\nSTEPS_ = {{'step': step_}}", "{take}STEPS_['step']({reads})"),
    "a function that is passed on": Way(
        _HELPER + "\n\ndef run_(function, *args):\n    return function(*args)",
        "{take}run_(step_, {reads})",
    ),
}
"""Helpers in the same file. `{closed_statement}` reads what is around it, `{from_out}` takes apart what is returned."""

IN_ANOTHER_FILE: Mapping[str, Way] = {
    "a function of another file": Way("from helper_ import step_", "{take}step_({reads})", _HELPER),
    "a function of an imported module": Way("import helper_", "{take}helper_.step_({reads})", _HELPER),
    "a function of the value, in another file": Way(
        "from helper_ import step_",
        "{binds}step_({value_reads})",
        OUTLINED["a function of the value"].front,
    ),
    "a method with fields, in another file": Way(
        "from helper_ import Helper_",
        "helper_ = Helper_({reads})\n{take}helper_.do_()",
        OUTLINED["a method, with fields"].front,
    ),
}
"""Helpers that stand in `helper_.py`, with the imports of the program."""

_BOX = "class Box_:\n"

CARRIED: Mapping[str, Way] = {
    "a list": Way("", "box_ = [{value}]\n{binds}box_[0]"),
    "a list, appended": Way("", "box_ = []\nbox_.append({value})\n{binds}box_[-1]"),
    "a list, at an index": Way("", "box_ = [None] * 3\nbox_[1] = {value}\n{binds}box_[1]"),
    "a list, at an unknown index": Way(
        "import os\n\nAT_ = int(os.environ.get('AT_', '0'))",
        "box_ = [None] * 3\nbox_[AT_] = {value}\n{binds}box_[AT_]",
    ),
    "a list that is extended": Way("", "box_ = []\nbox_ += [{value}]\n{binds}box_[0]"),
    "a list that is copied": Way("", "box_ = [{value}]\n{binds}list(box_)[0]"),
    "a list comprehension": Way("", "box_ = [{value}]\nbox_ = [v_ for v_ in box_]\n{binds}box_[0]"),
    "a tuple": Way("", "box_ = ({value}, None)\n{binds}box_[0]"),
    "a starred list": Way("", "{name}, *rest_ = [{value}, 1, 2]"),
    "a dictionary": Way("", "box_ = {{'key': {value}}}\n{binds}box_['key']"),
    "a dictionary, under an unknown key": Way(
        "import os\n\nKEY_ = os.environ.get('KEY_', 'key')",
        "box_ = {{}}\nbox_[KEY_] = {value}\n{binds}box_[KEY_]",
    ),
    "a dictionary, by `get`": Way("", "box_ = {{'key': {value}}}\n{binds}box_.get('key')"),
    "a dictionary, by `pop`": Way("", "box_ = {{'key': {value}}}\n{binds}box_.pop('key')"),
    "a dictionary, by `update`": Way("", "box_ = {{}}\nbox_.update(key={value})\n{binds}box_['key']"),
    "the items of a dictionary": Way("", "for key_, {name} in {{'key': {value}}}.items():\n    pass"),
    "a dictionary comprehension": Way(
        "",
        "box_ = {{'key': {value}}}\nbox_ = {{k_: v_ for k_, v_ in box_.items()}}\n{binds}box_['key']",
    ),
    "a default dictionary": Way(
        "from collections import defaultdict",
        "box_ = defaultdict(list)\nbox_['key'].append({value})\n{binds}box_['key'][0]",
    ),
    "keywords that a function returns": Way(
        "def pack_(**kwargs):\n    return kwargs", "{binds}pack_(value={value})['value']"
    ),
    "containers in containers": Way("", "box_ = {{'a': {{'b': [{value}]}}}}\n{binds}box_['a']['b'][0]"),
    "a namespace": Way("from types import SimpleNamespace", "box_ = SimpleNamespace(value={value})\n{binds}box_.value"),
    "a dataclass": Way(
        "from dataclasses import dataclass\n\n@dataclass\nclass Box_:\n    value: object = None\n    step: int = 0",
        "box_ = Box_(value={value})\n{binds}box_.value",
    ),
    "a named tuple": Way(
        "from collections import namedtuple\n\nBox_ = namedtuple('Box_', ['value', 'step'])",
        "box_ = Box_({value}, 1)\n{binds}box_.value",
    ),
    "an object": Way(
        _BOX + "    def __init__(self, value):\n        self.value = value",
        "box_ = Box_({value})\n{binds}box_.value",
    ),
    "a getter and a setter": Way(
        _BOX
        + "    def set(self, value):\n        self._value = value\n\n    def get(self):\n        return self._value",
        "box_ = Box_()\nbox_.set({value})\n{binds}box_.get()",
    ),
    "an attribute by its name": Way(
        _BOX + "    pass", "box_ = Box_()\nsetattr(box_, 'value', {value})\n{binds}getattr(box_, 'value')"
    ),
    "a module": Way(
        "import torch.nn as nn_\n\nclass Box_(nn_.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.kept = None",
        "box_ = Box_()\nbox_.kept = {value}\n{binds}box_.kept",
    ),
    "a class with items": Way(
        _BOX + "    def __init__(self):\n        self.data = {{}}\n\n    def __setitem__(self, key, value):\n"
        "        self.data[key] = value\n\n    def __getitem__(self, key):\n        return self.data[key]",
        "box_ = Box_()\nbox_['key'] = {value}\n{binds}box_['key']",
    ),
    "a class with a list": Way(
        _BOX + "    def __init__(self):\n        self.data = []\n\n    def add(self, value):\n"
        "        self.data.append(value)\n\n    def last(self):\n        return self.data[-1]",
        "box_ = Box_()\nbox_.add({value})\n{binds}box_.last()",
    ),
    "the attribute of a class": Way(_BOX + "    value = None", "Box_.value = {value}\n{binds}Box_.value"),
    "a global": Way(
        "STATE_ = None\n\ndef keep_(value):\n    global STATE_\n    STATE_ = value\n\ndef get_():\n    return STATE_",
        "keep_({value})\n{binds}get_()",
    ),
    "a global dictionary": Way(
        "STATE_ = {{}}\n\ndef keep_(value):\n    STATE_['key'] = value\n\ndef get_():\n    return STATE_['key']",
        "keep_({value})\n{binds}get_()",
    ),
    "a deque": Way(
        "from collections import deque", "box_ = deque(maxlen=4)\nbox_.append({value})\n{binds}box_.popleft()"
    ),
    "a queue": Way("from queue import Queue", "box_ = Queue()\nbox_.put({value})\n{binds}box_.get()"),
    "a loop": Way("", "for i_, {name} in enumerate([{value}]):\n    pass"),
    "`zip`": Way("", "for i_, {name} in zip(range(1), [{value}]):\n    pass"),
    "`chain`": Way("import itertools", "for {name} in itertools.chain([{value}], []):\n    pass"),
    "`reversed`": Way("", "for {name} in reversed([{value}]):\n    pass"),
    "`next`": Way("", "{binds}next(iter([{value}]))"),
    "`map`": Way("", "({name},) = map(lambda v_: v_, [{value}])"),
    "`max`": Way("", "{binds}max([(0, {value})], key=lambda pair_: pair_[0])[1]"),
    "a context manager": Way(
        "from contextlib import contextmanager\n\n@contextmanager\ndef held_(value):\n    yield value",
        "with held_({value}) as {name}:\n    pass",
    ),
    "a move to a device, if there is one": Way(
        "import torch", "{binds}{value}\nif torch.cuda.is_available():\n    {name} = {name}.cuda()"
    ),
    "one of two, by a test": Way(
        "import torch", "{binds}{value}\nif torch.cuda.device_count() > 64:\n    {name} = torch.zeros(1)"
    ),
    "an early end": Way("import os", "if os.environ.get('NOBODY_SETS_THIS'):\n    raise SystemExit\n{binds}{value}"),
    "a value that is made twice": Way("", "{binds}None\nif {name} is None:\n    {binds}{value}"),
    "an attempt": Way("", "try:\n    {binds}{value}\nexcept KeyError:\n    raise"),
    "a walrus": Way("", "if ({name} := {value}) is not None:\n    pass"),
    "a choice that is no choice": Way("", "{binds}{value} if True else None"),
    "a default": Way("", "{binds}{value}\n{name} = {name} if {name} is not None else None"),
    "`cast`": Way("import typing", "{name} = typing.cast('object', {value})"),
    "an annotation": Way("from typing import Any", "{name}: Any = {value}"),
    "an assertion": Way("", "{binds}{value}\nassert {name} is not None"),
    "a function that gives it back": Way(
        "def same_(value, empty=False):\n    if empty:\n        return None\n    return value",
        "{binds}same_({value})",
    ),
}
"""What carries one value to the name that it is bound to."""


class Place(NamedTuple):
    """A statement that can be moved: where it stands, in which list of statements."""

    block: list[ast.stmt]
    index: int

    @property
    def statement(self) -> ast.stmt:
        return self.block[self.index]


def places(tree: ast.Module) -> Iterator[Place]:
    """The simple statements, in functions and outside, that may stand in a helper as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from (Place(block, index) for index, statement in enumerate(block) if _movable(statement))


def _movable(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
        return False
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return False
    return not any(
        isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr)
        or (isinstance(node, ast.Name) and node.id in ("super", "locals", "globals", "vars"))
        or (isinstance(node, ast.Attribute) and node.attr.startswith("__"))
        for node in ast.walk(statement)
    )


class Names:
    """What the statements of a program read of the variables around them."""

    def __init__(self, tree: ast.Module) -> None:
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self.defined = {node.name for node in tree.body if isinstance(node, definitions)}
        self._known = set(dir(builtins)) | self.defined
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._known |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}

    def read(self, node: ast.AST) -> list[str]:
        """The variables that a statement or expression reads, in order of the text."""
        inner = _inner(node)
        found = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.insert(0, node.target.id)
        return [name for name in dict.fromkeys(found) if name not in inner and name not in self._known]


def _bound(node: ast.AST) -> list[str]:
    inner = _inner(node)
    found = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return [name for name in dict.fromkeys(found) if name not in inner]


def _inner(node: ast.AST) -> set[str]:
    """The names that comprehensions and lambdas inside bind."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            names |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
        elif isinstance(part, ast.Lambda):
            names |= {argument.arg for argument in ast.walk(part.args) if isinstance(argument, ast.arg)}
    return names


class _OnSelf(ast.NodeTransformer):
    """Variables that are read become attributes of `self`."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names and isinstance(node.ctx, ast.Load):
            return ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx)
        return node


def words(statement: ast.stmt, names: Names) -> dict[str, str]:
    """What a way may name of a statement; what it does not have is left out."""
    reads, bound = names.read(statement), _bound(statement)
    rebinds = isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
    text = ast.unparse(statement)
    found = {
        "reads": ", ".join(reads),
        "statement": text,
        "give": f"return {', '.join(bound)}" if bound else "pass",
        "take": f"{', '.join(bound)} = " if bound else "",
    }
    if not set(reads) & set(bound):
        found["closed_statement"] = text
    if reads and not {"self", "cls"} & set(reads):
        found |= {"kept": "; ".join(f"self.{name} = {name}" for name in reads)}
        if not rebinds:
            found["kept_statement"] = ast.unparse(_OnSelf(reads).visit(copy.deepcopy(statement)))
    if reads:
        found |= {
            "first": reads[0],
            "rest": ", ".join(reads[1:]),
            "rest_of": "".join(f"{name}, " for name in reads[1:]),
            "named": ", ".join(f"{name}={name}" for name in reversed(reads)),
            "pairs": ", ".join(f"{name!r}: {name}" for name in reads),
            "from_kwargs": "; ".join(f"{name} = kwargs[{name!r}]" for name in reads),
        }
    if bound:
        found |= {
            "bound": ", ".join(bound),
            "bound_pairs": ", ".join(f"{name!r}: {name}" for name in bound),
            "from_out": "; ".join(f"{name} = out_[{name!r}]" for name in bound),
        }
    if len(bound) == 1:
        found["one"] = bound[0]
    return found | _words_of_value(statement, names)


def _words_of_value(statement: ast.stmt, names: Names) -> dict[str, str]:
    value, binds, name = None, "", ""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            binds = f"{name} = "
        case ast.Expr(value=value):
            pass
    if value is None or isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Lambda | ast.Starred):
        return {}
    text = ast.unparse(value)
    if isinstance(value, ast.IfExp | ast.BoolOp | ast.GeneratorExp):
        text = f"({text})"
    reads = names.read(value)
    found = {"value": text, "value_reads": ", ".join(reads), "binds": binds}
    if name:
        found["name"] = name
        if not {"self", "cls"} & set(reads):
            found["kept_value"] = ast.unparse(_OnSelf(reads).visit(copy.deepcopy(value)))
    return found


def rewritten(tree: ast.Module, place: Place, way: Way, names: Names) -> Rewritten | None:
    """The program with the statement at a place in this way; `None` where the way does not apply."""
    given = words(place.statement, names)
    try:
        front, text, other = (part.format(**given) for part in way)
    except KeyError:
        return None
    reads = names.read(place.statement)
    if "self" in reads and "class " in front + other:
        return None
    if other and names.defined & {n.id for n in ast.walk(place.statement) if isinstance(n, ast.Name)}:
        return None
    imports = "\n".join(map(ast.unparse, _imports(tree)))
    saved = place.statement
    place.block[place.index : place.index + 1] = moved = ast.parse(text).body
    rest = "\n".join(ast.unparse(node) for node in tree.body if node not in _imports(tree))
    place.block[place.index : place.index + len(moved)] = [saved]
    return Rewritten(f"{imports}\n{front}\n\n{rest}\n", {"helper_.py": f"{imports}\n\n\n{other}\n"} if other else {})


def _imports(tree: ast.Module) -> list[ast.stmt]:
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
