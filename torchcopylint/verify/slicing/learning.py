"""What a run that did not get to the steps teaches: what to leave out, take for granted or make otherwise next time."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from torchcopylint.verify.model import Mark
from torchcopylint.verify.observed import Run
from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.narrow import NOTHING, Without
from torchcopylint.verify.slicing.source import Scope, bound_by, goes_back, names_in, nodes_of, walked
from torchcopylint.verify.slicing.unpacking import Apart, taken_apart

_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_QUOTED = re.compile(r"'(\w+)'")
_WANTED = re.compile(r"argument '(?P<argument>\w+)'.* must be (?P<kind>\w+), not")
_ASKED = re.compile(
    r"'(?:numpy\.ndarray|int|float|bool|list|dict|function|str)' object has no attribute '(?P<attribute>\w+)'"
)
_COMBINED = re.compile(r"(?P<method>\w+)\(\) received an invalid combination of arguments - got \((?P<given>[^()]*)\)")
_SIZED = re.compile(r"(?P<function>\w+)\(\): argument '\w+' \(position \d+\) must be tuple of ints")
_OF_SIZES = re.compile(r"(?P<function>\w+)\(\) takes \d+ positional arguments? but \d+ were given")
_NUMBERS_ASKED = frozenset({"view", "reshape", "expand", "repeat", "clamp", "clamp_", "clip", "clip_", "new_zeros"})
_NO_TENSOR = re.compile(
    r"'Tensor' object has no attribute '(?P<attribute>\w+)'|Tensor(?:Base)?\.(?P<method>\w+)\(\) (?:takes|missing|got)"
)
"""What is asked for something that tensors do not have, or not in this form, is none: a logger, a writer."""
_LACKING = re.compile(r"'(?:Model\d+|SGD|Environment|Keyed)' object has no attribute '(?P<attribute>\w+)'")
"""What stands in for a module, an optimizer or an environment is asked for something else."""
_OF_ARRAYS = re.compile(r"\w+\(\) got an unexpected keyword argument '(?:axis|out|keepdims|dtype)'")
"""NumPy passes what it is told on to a tensor."""
_IN_PARTS = re.compile(r"(?:tuple|list) indices must be integers or slices, not tuple")
"""What is indexed in several dimensions has them."""
_OWN = re.compile(r"^'[A-Z]\w*' object has no attribute '\w+'$")
"""An object of a class has not what its `__init__` would have set: what stands for it is made with its fields."""
_SINGLE = re.compile(
    r"cannot be converted to Scalar|grad can be implicitly created only for scalar|passed to Tensor\.__format__"
)
_OF_ONE = frozenset({"item", "backward"})
_UNPACKED = re.compile(r"(?:not enough|too many) values to unpack \(expected (?P<wanted>\d+)")
_KINDS = {"Tensor": "tensor", "Number": "number", "float": "number", "int": "number", "bool": "bool"}
_BLOCKS = (ast.If, ast.For, ast.While)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is known so far: what does not run, whether objects are made without their `__init__` (`bare`) and of
    stand-ins (`plain`), whether modules that stand in have matrices alone (`flat`), whether what only changes something
    is kept (`changes`), how many of the settings for inputs did not do, and of which kind names have to be."""

    without: Without = NOTHING
    bare: bool = False
    plain: bool = False
    setting: int = 0
    flat: bool = False
    changes: bool = False
    kinds: tuple[tuple[str, str], ...] = ()


class Learner:
    """Learns about the code around the steps of one finding.

    `inside` are the functions that the steps stand in, empty for steps at module level; `rows` the rows of the steps.
    All rows are those of the user's file.
    """

    def __init__(self, tree: ast.Module, inside: Collection[ast.stmt], rows: Collection[int]) -> None:
        self._rows = rows
        self._spans = [(node.lineno, node.end_lineno or node.lineno) for node in inside]
        self._blocks = [node for node in nodes_of(tree) if isinstance(node, _BLOCKS)]
        self._ends = {node.lineno: node.end_lineno or node.lineno for node in self._blocks}
        self._top = tree.body
        self._nodes: dict[int, list[ast.Subscript]] = {}
        for node in nodes_of(tree):
            if isinstance(node, ast.Subscript):
                for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    self._nodes.setdefault(row, []).append(node)
        self._at: dict[int, list[ast.stmt]] = {}
        for part in inside or tree.body:
            for node in walked(part):
                if isinstance(node, ast.stmt):
                    self._at.setdefault(node.lineno, []).append(node)
        self._others: dict[str, set[str]] = {}
        self._all_at: dict[int, list[ast.stmt]] = {}
        for node in nodes_of(tree):
            if isinstance(node, ast.Assign | ast.For):
                self._all_at.setdefault(node.lineno, []).append(node)
            if isinstance(node, ast.Assign) and _last_name(node.value) and _last_name(node.targets[0]):
                self._others.setdefault(_last_name(node.targets[0]), set()).add(_last_name(node.value))
        imports = [alias for node in nodes_of(tree) if isinstance(node, ast.Import) for alias in node.names]
        self._arrays = {alias.asname or alias.name for alias in imports if alias.name == "numpy"}
        self._heads = {row: max(map(_end_of_head, nodes)) for row, nodes in self._at.items()}

    def after(self, lesson: Lesson, run: Run, marks: Collection[Mark], row_of: Mapping[int, int]) -> Lesson | None:
        """What is known after a run, or `None` if there is nothing new. `row_of` gives the user's row of a script's."""
        if run.failed:
            return None
        if not run.ended:
            reached = run.reached(len(marks))
            return self._otherwise(lesson) if reached else self._untaken(lesson, run, marks)
        rows = [row_of.get(row, 0) for row in (run.raised[-1].rows if run.raised else ())]
        mine = [row for row in rows if row in self._heads and self._is_inside(row)]
        if run.raised and run.raised[-1].kind in ("NameError", "UnboundLocalError"):
            if self._is_left_unbound(run, marks) and (untaken := self._untaken(lesson, run, marks)) is not None:
                return untaken
            names = frozenset(_QUOTED.findall(run.raised[-1].message)) - lesson.without.names
            if names:
                return replace(lesson, without=replace(lesson.without, names=lesson.without.names | names))
        kinds = self._kinds(mine[-1], run.raised[-1].message) if mine and run.raised else ()
        if set(kinds) - set(lesson.kinds):
            return replace(lesson, kinds=tuple({**dict(lesson.kinds), **dict(kinds)}.items()))
        if run.raised and _OWN.search(run.raised[-1].message) and not lesson.bare:
            return replace(lesson, bare=True)
        if mine and self._is_step(mine[-1]):
            untaken = self._untaken(lesson, run, marks)
            if untaken is not None and untaken.without.taken != lesson.without.taken:
                # A step that failed for what another one would have made, as a best state that nobody has kept.
                return untaken
            if run.raised and run.raised[-1].kind in ("IndexError", "RuntimeError") and not lesson.flat:
                return replace(lesson, flat=True)
            before = self._before(mine[-1]) - lesson.without.rows
            if before:
                return replace(lesson, without=replace(lesson.without, rows=lesson.without.rows | before))
            return replace(lesson, setting=lesson.setting + 1)
        mine = mine or self._outside(rows)
        if mine and mine[-1] not in lesson.without.rows:
            rows_out = {mine[-1]} | self._emptying(mine[-1])
            return replace(lesson, without=replace(lesson.without, rows=lesson.without.rows | rows_out))
        if not lesson.bare:
            return replace(lesson, bare=True)
        if not lesson.plain:
            return replace(lesson, plain=True)
        return replace(lesson, setting=lesson.setting + 1)

    def apart(self, run: Run, row_of: Mapping[int, int]) -> tuple[Apart, ...]:
        """What is taken apart into another number of parts than it has."""
        if run.failed or not run.ended or not run.raised:
            return ()
        found = _UNPACKED.match(run.raised[-1].message)
        row = row_of.get(run.raised[-1].rows[-1], 0) if run.raised[-1].rows else 0
        if found is None:
            return ()
        return tuple(part for node in self._all_at.get(row, ()) for part in taken_apart(node, int(found["wanted"])))

    def single(self, run: Run, row_of: Mapping[int, int]) -> frozenset[str]:
        """The names of what was asked for as one number, and had more."""
        if run.failed or not run.ended or not run.raised or not _SINGLE.search(run.raised[-1].message):
            return frozenset()
        row = row_of.get(run.raised[-1].rows[-1], 0) if run.raised[-1].rows else 0
        calls = [node for part in self._at.get(row, ()) for node in walked(part) if isinstance(node, ast.Call)]
        asked = [
            call.func.value for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_ONE
        ]
        asked += [part for call in calls if _last_name(call.func) in ("float", "int", "format") for part in call.args]
        asked += [part for node in self._at.get(row, ()) for part in _written_out(node)]
        return frozenset(map(_last_name, asked)) - {""}

    def lacks(self, run: Run, row_of: Mapping[int, int]) -> tuple[tuple[str, str], ...]:
        """The names that were asked for a key which they do not have, with it."""
        if run.failed or not run.ended or not run.raised or run.raised[-1].kind != "KeyError":
            return ()
        key = run.raised[-1].message.strip("'\"")
        nodes = [node for row in run.raised[-1].rows[-1:] for node in self._nodes.get(row_of.get(row, 0), ())]
        asked = [node for node in nodes if isinstance(node.slice, ast.Constant) and node.slice.value == key]
        return tuple(sorted({(_last_name(node.value), key) for node in asked if _last_name(node.value)}))

    def kinds(self, run: Run, row_of: Mapping[int, int]) -> tuple[tuple[str, str], ...]:
        """Of which kind names should have been, by the exception that ended a run."""
        if run.failed or not run.ended or not run.raised:
            return ()
        rows = [row_of[row] for row in run.raised[-1].rows if row_of.get(row) in self._at]
        if run.raised[-1].kind == "AssertionError":
            return self._optional(rows[-1]) if rows else ()
        found = self._kinds(rows[-1], run.raised[-1].message) if rows else ()
        # A name may only be another one for what is made.
        found = (*found, *((other, kind) for name, kind in found for other in self._others.get(name, ())))
        if _OF_ARRAYS.search(run.raised[-1].message):
            # It may have been handed on by whoever called.
            found = tuple(sorted({*found, *(pair for row in rows[:-1] for pair in self._handed_on(row))}))
        return found

    def _optional(self, row: int) -> tuple[tuple[str, str], ...]:
        """What an assertion is only made of where it is there: without it, nothing is asserted."""
        around = [
            node for node in self._blocks if isinstance(node, ast.If) and node.lineno < row <= self._ends[node.lineno]
        ]
        tests = [node.test for node in around if isinstance(node.test, ast.Compare)]
        there = [test for test in tests if ast.unparse(test).endswith(" is not None")]
        return tuple(sorted((_last_name(test.left), "nothing") for test in there if _last_name(test.left)))

    def _kinds(self, row: int, message: str) -> tuple[tuple[str, str], ...]:
        """Of which kind the names that a statement passes on should have been, by what refused one of them."""
        if message.startswith(("tensors used as indices", "arrays used as indices", "only integers, slices")):
            taken = [node.slice for part in self._at[row] for node in walked(part) if isinstance(node, ast.Subscript)]
            taken = [part for index in taken for part in (index.elts if isinstance(index, ast.Tuple) else [index])]
            return tuple(sorted({(name, "indices") for name in map(_last_name, taken) if name}))
        if message.startswith("step must be greater than zero"):
            sliced = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Subscript)]
            turned = [node for node in sliced if any(map(goes_back, walked(node.slice)))]
            return tuple(sorted({(_last_name(node.value), "array") for node in turned if _last_name(node.value)}))
        if message.startswith("Tensor.__contains__ only supports"):
            asked_of = [n for part in self._at[row] for n in walked(part) if isinstance(n, ast.Compare)]
            return tuple(
                sorted({(_last_name(n.comparators[0]), "str") for n in asked_of if _last_name(n.comparators[0])})
            )
        if message.startswith(("Boolean value of Tensor", "The truth value of an array")):
            return self._conditions(row)
        if message.startswith("can't multiply sequence by non-int"):
            return self._repeated(row)
        if _IN_PARTS.match(message):
            indexed = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Subscript)]
            named = [_last_name(_whole(node)) for node in indexed if isinstance(node.slice, ast.Tuple)]
            return tuple(sorted((name, "array") for name in named if name))
        if _OF_ARRAYS.search(message):
            return self._given_to_numpy(row)
        refused = _NO_TENSOR.search(message)
        if refused:
            attribute = refused["attribute"] or refused["method"]
            made = "module" if attribute in tables.MODULE else "array" if attribute in tables.ARRAY else "object"
            return tuple((name, made) for name in self._asked_for(row, attribute))
        lacking = _LACKING.search(message)
        if lacking:
            return tuple((name, "object") for name in self._asked_for(row, lacking["attribute"]))
        if message.startswith("expected np.ndarray (got"):
            return tuple((name, "array") for name, _ in self._numbers(row, "from_numpy"))
        asked = _ASKED.search(message)
        if asked:
            # What is asked for something that only tensors have is one.
            of_tensors = tables.TENSOR | tables.FIELDS | tables.EITHER | {"to"}
            made = "tensor" if asked["attribute"] in of_tensors else "object"
            made = "module" if made == "object" and asked["attribute"] in tables.MODULE else made
            return tuple((name, made) for name in self._asked_for(row, asked["attribute"]))
        combined = _COMBINED.search(message)
        if combined and combined["method"] in _NUMBERS_ASKED:
            return self._numbers(row, combined["method"])
        sized = _SIZED.match(message)
        if sized:
            return self._numbers(row, sized["function"])
        sizes = _OF_SIZES.match(message)
        if sizes and sizes["function"] in tables.SIZES:
            return self._numbers(row, sizes["function"])
        wanted = _WANTED.search(message)
        kind = _KINDS.get(wanted["kind"]) if wanted else None
        if wanted is None or kind is None:
            return ()
        calls = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Call)]
        keywords = [word for call in calls for word in call.keywords if word.arg == wanted["argument"]]
        passed = [word.value for word in keywords] or [argument for call in calls for argument in call.args]
        names = {part.operand if isinstance(part, ast.UnaryOp) else part for part in passed}
        return tuple(sorted((node.id, kind) for node in names if isinstance(node, ast.Name)))

    def _numbers(self, row: int, method: str) -> tuple[tuple[str, str], ...]:
        """The names that a row passes to a function that takes numbers alone, or that these are computed from."""
        calls = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Call)]
        calls = [call for call in calls if _last_name(call.func) == method]
        passed = [argument for call in calls for argument in (*call.args, *(word.value for word in call.keywords))]
        return tuple(sorted((name, "number") for name in _computed_from(passed)))

    def _repeated(self, row: int) -> tuple[tuple[str, str], ...]:
        """The names that a row multiplies lists by."""
        products = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.BinOp)]
        factors = [side for node in products for side in (node.left, node.right) if isinstance(node.op, ast.Mult)]
        return tuple(sorted((_last_name(side), "number") for side in factors if _last_name(side)))

    def _given_to_numpy(self, row: int) -> tuple[tuple[str, str], ...]:
        """The names that a row passes to functions of NumPy."""
        calls = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Call)]
        roots = [(call, call.func.value) for call in calls if isinstance(call.func, ast.Attribute)]
        passed = [call.args[0] for call, root in roots if _last_name(root) in self._arrays and call.args]
        return tuple(sorted((name, "array") for name in _computed_from(passed)))

    def _handed_on(self, row: int) -> list[tuple[str, str]]:
        """The names that a row passes to functions, as arrays, and those of what they are parts of."""
        calls = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Call)]
        names = {_last_name(_whole(argument)) for call in calls for argument in call.args}
        for other in sorted((r for r in self._at if r < row), reverse=True):
            for node in self._at[other]:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and bound_by(node) & names:
                    names.add(_last_name(_whole(node.value)))
        return [(name, "array") for name in names - {"", "self"}]

    def _asked_for(self, row: int, attribute: str) -> list[str]:
        """The names, of fields the last, that a row asks for an attribute."""
        inside = [node for part in self._at[row] for node in walked(part) if isinstance(node, ast.Attribute)]
        return sorted({_last_name(_whole(node.value)) for node in inside if node.attr == attribute} - {"", "self"})

    def _conditions(self, row: int) -> tuple[tuple[str, str], ...]:
        """The names that the conditions of a row ask about: numbers where they are compared, else truth values."""
        found: dict[str, str] = {}
        for part in self._at[row]:
            test = part.test if isinstance(part, ast.If | ast.While | ast.Assert) else None
            waiting: list[ast.expr] = [test] if test is not None else []
            whole = not isinstance(part, _BLOCKS)
            waiting += [node for node in walked(part) if isinstance(node, ast.BoolOp)] if whole else []
            waiting += [node.test for node in walked(part) if isinstance(node, ast.IfExp) and node.lineno == row]
            while waiting:
                node = waiting.pop()
                if isinstance(node, ast.BoolOp):
                    waiting += node.values
                elif isinstance(node, ast.UnaryOp):
                    waiting.append(node.operand)
                elif isinstance(node, ast.Compare):
                    found |= dict.fromkeys(_computed_from((node.left, *node.comparators)), "number")
                elif _last_name(node):
                    found[_last_name(node)] = "bool"
        return tuple(sorted(found.items()))

    def _is_left_unbound(self, run: Run, marks: Collection[Mark]) -> bool:
        """Whether what a run lacked is bound by a step that it did not get to."""
        missed = [mark.user_row for mark, times in zip(marks, run.passes, strict=False) if not times]
        bound = {name for row in missed for node in self._at.get(row, ()) for name in bound_by(node)}
        return not bound.isdisjoint(_QUOTED.findall(run.raised[-1].message))

    def _untaken(self, lesson: Lesson, run: Run, marks: Collection[Mark]) -> Lesson | None:
        """The conditions, and then the loops, around what was not reached."""
        missed = [mark.user_row for mark, times in zip(marks, run.passes, strict=False) if not times]
        around = [node for node in self._blocks if any(node.lineno < row <= (node.end_lineno or row) for row in missed)]
        without = lesson.without
        taken = {node.lineno for node in around if isinstance(node, ast.If)} - without.taken
        if taken:
            return replace(lesson, without=replace(without, taken=without.taken | taken))
        loops = {node.lineno for node in around if not isinstance(node, ast.If)} - without.rows
        if loops:
            return replace(lesson, without=replace(without, rows=without.rows | loops))
        return None

    def _otherwise(self, lesson: Lesson) -> Lesson:
        """What to do where a run got to the steps and showed nothing: take conditions the first time alone, keep more,
        else make other inputs."""
        without = lesson.without
        forced = {node.lineno for node in self._blocks if isinstance(node, ast.If)} & (without.taken | without.rows)
        once = {row for row in forced if any(row < step <= self._ends[row] for step in self._rows)}
        if once - without.once:
            return replace(lesson, without=replace(without, once=frozenset(once)))
        if not lesson.changes:
            return replace(lesson, changes=True)
        return replace(lesson, setting=lesson.setting + 1)

    def _emptying(self, row: int) -> frozenset[int]:
        """Where a backward pass is left out, the rows in which gradients are dropped: those that are made stay."""
        if not self._calls("backward", row):
            return frozenset()
        return frozenset(
            r for r in self._at if self._calls("zero_grad", r) and not self._is_step(r) and self._is_inside(r)
        )

    def _calls(self, method: str, row: int) -> bool:
        """Whether a row is a call of a method with that name and nothing else."""
        values = [node.value for node in self._at.get(row, ()) if isinstance(node, ast.Expr)]
        return any(isinstance(value, ast.Call) and _last_name(value.func) == method for value in values)

    def _before(self, row: int) -> frozenset[int]:
        """The rows of the statements that last bound what the statement of a row reads, but for steps."""
        needed = {name for node in self._at[row] for name in names_in(node)}
        found: dict[str, int] = {}
        for other in sorted(self._at):
            for node in self._at[other] if other < row else ():
                if isinstance(node, _PLAIN):
                    found |= dict.fromkeys(bound_by(node) & needed, other)
        return frozenset(other for other in found.values() if not self._is_step(other) and self._is_inside(other))

    def _outside(self, rows: list[int]) -> list[int]:
        """The row of the statement at module level that some rows are in, if the steps are not."""
        if not self._spans:
            return []
        plain = [node for node in self._top if not isinstance(node, Scope)]
        return [node.lineno for row in rows for node in plain if node.lineno <= row <= (node.end_lineno or row)][-1:]

    def _is_inside(self, row: int) -> bool:
        return not self._spans or any(first < row <= last for first, last in self._spans)

    def _is_step(self, row: int) -> bool:
        return any(row <= step <= self._heads[row] for step in self._rows)


def _written_out(node: ast.stmt) -> Iterator[ast.expr]:
    """What a statement writes into texts in a form that is for numbers: `f"{x:.3f}"`, `"%.3f" % x`."""
    for part in walked(node):
        if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
            yield part.value
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and isinstance(part.left, ast.Constant):
            yield from part.right.elts if isinstance(part.right, ast.Tuple) else (part.right,)


def _end_of_head(node: ast.stmt) -> int:
    """The last row of a statement, of one with a block the last row before that."""
    body = getattr(node, "body", None)
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


def _computed_from(parts: Iterable[ast.expr]) -> set[str]:
    """The names that some expressions are, or are computed from."""
    waiting = list(parts)
    found = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BinOp):
            waiting += [node.left, node.right]
        elif isinstance(node, ast.Tuple | ast.List):
            waiting += node.elts
        elif _last_name(node):
            found.add(_last_name(node))
    return found


def _whole(node: ast.expr) -> ast.expr:
    """What an expression is an element or a slice of, or itself."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _last_name(node: ast.expr) -> str:
    """The name that an expression is, of an attribute the last; empty for others."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
