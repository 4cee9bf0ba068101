"""The script of a program, that is what is neither import nor definition, in another structure: the same program.

The variables of the script are fields of an object, of `self`, or items of a dictionary, and its statements are dealt
out to methods, functions, classes or files, which are called in their order.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .outlining import Rewritten

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_Make = Callable[[ast.Name], ast.expr]


@dataclass(frozen=True)
class Script:
    """The parts of a program. `names` are the variables that only assignments of the script bind, and only it uses."""

    imports: Sequence[ast.stmt]
    definitions: Sequence[ast.stmt]
    statements: Sequence[ast.stmt]
    names: frozenset[str]

    @classmethod
    def of(cls, tree: ast.Module) -> Script:
        statements = [node for node in tree.body if not isinstance(node, _DEFINITIONS + _IMPORTS)]
        definitions = [node for node in tree.body if isinstance(node, _DEFINITIONS)]
        names = set().union(*map(_stored, statements)) if statements else set()
        for node in (part for statement in statements for part in ast.walk(statement)):
            names -= _of_its_own(node)
        names -= {n.id for node in definitions for n in ast.walk(node) if isinstance(n, ast.Name)}
        return cls([n for n in tree.body if isinstance(n, _IMPORTS)], definitions, statements, frozenset(names))

    @property
    def front(self) -> str:
        return "\n".join(map(ast.unparse, [*self.imports, *self.definitions]))

    def with_names(self, make: _Make) -> list[ast.stmt]:
        """The statements, with something else in place of each of the variables."""
        return [_Replace(self.names, make).visit(copy.deepcopy(statement)) for statement in self.statements]

    @property
    def divisible(self) -> bool:
        """Whether each statement may stand in a function of its own."""
        others = [_stored(statement) - self.names for statement in self.statements]
        used = [{n.id for n in ast.walk(s) if isinstance(n, ast.Name)} for s in self.statements]
        apart = all(not mine & used[j] for i, mine in enumerate(others) for j in range(len(used)) if i != j)
        return bool(self.names) and len(self.statements) > 1 and apart


class _Replace(ast.NodeTransformer):
    def __init__(self, names: frozenset[str], make: _Make) -> None:
        self._names, self._make = names, make

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._make(node) if node.id in self._names else node


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _of_its_own(node: ast.AST) -> set[str]:
    """The names that a construct binds by itself: they must stay names."""
    match node:
        case ast.comprehension(target=target) | ast.For(target=target) | ast.NamedExpr(target=target):
            return _stored(target)
        case ast.withitem(optional_vars=ast.expr() as target):
            return _stored(target)
        case ast.Lambda(args=args):
            return {argument.arg for argument in ast.walk(args) if isinstance(argument, ast.arg)}
        case ast.ExceptHandler(name=str() as name):
            return {name}
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name, *(n.id for n in ast.walk(node) if isinstance(n, ast.Name))}
    return set()


def _field(*path: str) -> _Make:
    def make(node: ast.Name) -> ast.expr:
        base: ast.expr = ast.Name(path[0], ast.Load())
        for name in path[1:]:
            base = ast.Attribute(base, name, ast.Load())
        return ast.Attribute(base, node.id, node.ctx)

    return make


def _item(node: ast.Name) -> ast.expr:
    return ast.Subscript(ast.Name("state_", ast.Load()), ast.Constant(node.id), node.ctx)


def _text(statements: Sequence[ast.stmt], depth: int = 0) -> str:
    lines = (line for statement in statements for line in ast.unparse(statement).splitlines())
    return "\n".join("    " * depth + line for line in lines)


def _on_an_object(script: Script) -> str:
    body = _text(script.with_names(_field("state_")))
    return f"{script.front}\n\nclass State_:\n    pass\n\nstate_ = State_()\n{body}"


def _in_a_dictionary(script: Script) -> str:
    return f"{script.front}\n\ndef run_(state_):\n{_text(script.with_names(_item), 1)}\n\nrun_({{}})"


def _methods(script: Script) -> str:
    steps = "\n\n".join(
        f"    def step{number}(self):\n{_text([statement], 2)}"
        for number, statement in enumerate(script.with_names(_field("self")))
    )
    calls = "\n".join(f"        self.step{number}()" for number in range(len(script.statements)))
    return f"{script.front}\n\nclass Program_:\n{steps}\n\n    def run(self):\n{calls}\n\nProgram_().run()"


def _functions(script: Script, make: _Make, empty: str) -> str:
    steps = "\n\n".join(
        f"def step{number}(state_):\n{_text([statement], 1)}"
        for number, statement in enumerate(script.with_names(make))
    )
    calls = "\n".join(f"    step{number}(state_)" for number in range(len(script.statements)))
    return f"{script.front}\n\n{steps}\n\ndef run_(state_):\n{calls}\n\nrun_({empty})"


def _functions_of_an_object(script: Script) -> str:
    front, _, rest = _functions(script, _field("state_"), "State_()").partition("\n\ndef step0")
    return f"{front}\n\nclass State_:\n    pass\n\ndef step0{rest}"


def _functions_of_a_dictionary(script: Script) -> str:
    return _functions(script, _item, "{}")


def _made_and_run(share: Callable[[int], int]) -> Callable[[Script], str]:
    def restructured(script: Script) -> str:
        body = script.with_names(_field("self"))
        cut = max(1, share(len(body)))
        return (
            f"{script.front}\n\nclass Program_:\n    def __init__(self):\n{_text(body[:cut], 2)}\n\n"
            f"    def run(self):\n{_text(body[cut:], 2)}\n\nProgram_().run()"
        )

    return restructured


def _base_class(script: Script) -> str:
    body = script.with_names(_field("self"))
    cut = len(body) // 2
    return (
        f"{script.front}\n\nclass Base_:\n    def __init__(self):\n{_text(body[:cut], 2)}\n\n    def run(self):\n"
        f"        self.step()\n\n\nclass Program_(Base_):\n    def step(self):\n{_text(body[cut:], 2)}\n\n"
        "Program_().run()"
    )


def _object_in_an_object(script: Script) -> str:
    made, used = script.with_names(_field("self")), script.with_names(_field("self", "state"))
    cut = len(made) // 2
    return (
        f"{script.front}\n\nclass State_:\n    def __init__(self):\n{_text(made[:cut], 2)}\n\n\nclass Program_:\n"
        f"    def __init__(self, state):\n        self.state = state\n\n    def run(self):\n{_text(used[cut:], 2)}\n\n"
        "Program_(State_()).run()"
    )


def _two_files(script: Script) -> Rewritten:
    body = script.with_names(_field("self"))
    cut = len(body) // 2
    names = ", ".join(["Base_", *(node.name for node in script.definitions if isinstance(node, _DEFINITIONS))])
    return Rewritten(
        f"{_text(script.imports)}\nfrom base_ import {names}\n\n\nclass Program_(Base_):\n"
        f"    def step(self):\n{_text(body[cut:], 2)}\n\n\nProgram_().step()\n",
        {"base_.py": f"{script.front}\n\n\nclass Base_:\n    def __init__(self):\n{_text(body[:cut], 2)}\n"},
    )


def _definitions_elsewhere(script: Script) -> Rewritten | None:
    used = {n.id for node in script.definitions for n in ast.walk(node) if isinstance(n, ast.Name)}
    if not script.definitions or used & {name for statement in script.statements for name in _stored(statement)}:
        return None
    names = ", ".join(node.name for node in script.definitions if isinstance(node, _DEFINITIONS))
    return Rewritten(
        f"{_text(script.imports)}\nfrom parts_ import {names}\n\n{_text(script.statements)}\n",
        {"parts_.py": f"{script.front}\n"},
    )


def _every_epoch(script: Script) -> str:
    body = _text(script.statements, 2)
    return f"{script.front}\n\ndef main():\n    for epoch_ in range(1):\n{body}\n\nmain()"


_DIVIDED: Mapping[str, Callable[[Script], str | Rewritten]] = {
    "methods that a method calls": _methods,
    "functions of an object": _functions_of_an_object,
    "functions of a dictionary": _functions_of_a_dictionary,
    "made by `__init__`, run by a method": _made_and_run(lambda length: length // 2),
    "all but the end in `__init__`": _made_and_run(lambda length: length - 1),
    "made by a base class": _base_class,
    "held by another object": _object_in_an_object,
    "made by a base class of another file": _two_files,
}
_WHOLE: Mapping[str, Callable[[Script], str | Rewritten | None]] = {
    "fields of an object": _on_an_object,
    "items of a dictionary": _in_a_dictionary,
    "a turn of a loop": _every_epoch,
    "definitions in another file": _definitions_elsewhere,
}
STRUCTURES = (*_DIVIDED, *_WHOLE)


def restructured(tree: ast.Module) -> Iterator[tuple[str, Rewritten]]:
    """The name of each structure that a program can have, and the program in it."""
    script = Script.of(tree)
    if not script.statements:
        return
    for name, make in {**(_DIVIDED if script.divisible else {}), **_WHOLE}.items():
        made = make(script)
        if made is not None:
            yield name, made if isinstance(made, Rewritten) else Rewritten(f"{made}\n", {})
