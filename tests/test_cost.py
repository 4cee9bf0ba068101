"""The cost of the analysis, in events run: linear in the length of a file, and not exponential in its nesting."""

from __future__ import annotations

import gc
import re
from collections import Counter
from pathlib import Path

import pytest

from torchcopylint import registry
from torchcopylint.base.collecting import THRESHOLD
from torchcopylint.cli import main as cli
from torchcopylint.flow import model, references
from torchcopylint.flow import tape as t
from torchcopylint.flow.examine import examine, run
from torchcopylint.flow.lower import lower
from torchcopylint.flow.model import MAX_SHARES, Cell, Key
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import writing
from torchcopylint.flow.tape import events
from torchcopylint.flow.tapes import exclusion, helpers, moving, uses
from torchcopylint.flow.values import outside
from torchcopylint.source.tree import parse

FUNCTION = """
def train_{n}(model, loader, optimizer):
    best, losses = None, []
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if best is None or losses[-1] < min(losses):
            best = {{name: value.clone() for name, value in model.state_dict().items()}}
    model.load_state_dict(best)
    return losses
"""
OPENERS = {
    "loops": "for i{n} in range(3):",
    "conditional loops": "while x.sum() > {n}:",
    "branches": "if x.sum() > {n}:",
    "tries": "try:",
    "blocks": "with torch.no_grad():",
}


def steps(text: str) -> int:
    """How many events are run for a program."""
    return examine(lower(parse("import torch\n" + text)).program).steps


def nested(opener: str, depth: int) -> str:
    """Writes to a tensor at every level of nested blocks."""
    lines = ["x = torch.zeros(3)", "kept = x"]
    for level in range(depth):
        lines += ["    " * level + opener.format(n=level), "    " * (level + 1) + f"x[{level}] += 1"]
    lines.append("    " * depth + "x = x + kept")
    if opener == "try:":
        for level in reversed(range(depth)):
            lines += ["    " * level + "except ValueError:", "    " * (level + 1) + "x = kept.clone()"]
    return "\n".join(lines) + "\n"


def test_twice_the_functions_cost_twice_the_steps() -> None:
    one, two = (steps("".join(FUNCTION.format(n=n) for n in range(count))) for count in (20, 40))
    assert two < 2.1 * one


def test_twice_the_lines_of_one_function_cost_twice_the_steps() -> None:
    def body(count: int) -> str:
        return "def run(x: torch.Tensor):\n" + "".join(f"    y{n} = x[{n}]\n    x += y{n}\n" for n in range(count))

    assert steps(body(200)) < 2.1 * steps(body(100))


@pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())
def test_twice_the_depth_costs_a_power_of_two_and_no_power_of_the_depth(opener: str) -> None:
    """A factor of two for each level would make 256 times the steps; branches and `try` add, loops are below cubic."""
    assert steps(nested(opener, 16)) < 8 * steps(nested(opener, 8))


def runs(text: str) -> int:
    """How many events are run for a program without loops, less those that are on its tapes."""
    program = lower(parse("import torch\n" + text)).program
    on_tapes = sum(1 for unit in program.units for _ in events(unit.tape))
    return examine(program).steps - on_tapes


def test_units_that_ask_nothing_of_one_another_are_run_once() -> None:
    assert (
        runs("def f(x):\n    return x + 1\n\nclass A:\n    def g(self, x):\n        return x\n\ny = torch.zeros(3)\n")
        == 0
    )


def test_a_unit_is_run_again_if_its_parameters_turn_out_to_be_something_else() -> None:
    call = "\ndef g():\n    return f(torch.zeros(3))\n"
    assert runs("def f(x: torch.Tensor):\n    y = x\n    return y\n" + call) == 0
    assert runs("def f(x):\n    y = x\n    return y\n" + call) > 0


def test_a_module_body_that_uses_a_function_is_run_again() -> None:
    assert runs("def f(x: torch.Tensor):\n    return x\n\nz = f(torch.zeros(3))\n") > 0


def test_a_loop_takes_one_turn_more_than_it_leads_to_something_new() -> None:
    def turns(end: str, line: str = "y = torch.relu(x)\n") -> float:
        """How often a line of the loop is run."""
        head = "def f(xs, z):\n    found = []\n    for x in xs:\n"
        once = steps(line + line) - steps(line)
        return (steps(head + f"        {line}" * 2 + end) - steps(head + f"        {line}" + end)) / once

    # The next turn binds `x` and `y` before it looks at them.
    assert turns("") == 1
    assert turns("        for part in y:\n            part.sum()\n") == 1
    # It comes upon a list with something in it; the one after that, on one with more of the same.
    assert turns("        found.append(y)\n") == 2
    # It looks at what this one has bound.
    assert turns("", "z = torch.relu(z)\n") == 2
    assert turns("        if x > 0:\n            z = y\n        z.sum()\n") == 3


def test_parts_of_parts_by_way_of_many_arms_are_not_all_told_apart() -> None:
    arms = "".join(f"        if flag{n}:\n            rows = rows[:-size{n}]\n" for n in range(2))
    names = ", ".join(f"flag{n}, size{n}" for n in range(2))
    body = f"    rows = np.arange(9)\n    for turn in range(3):\n{arms}    return rows\n"
    text = f"import numpy as np\ndef split({names}):\n{body}"
    world = run(lower(parse(text)).program, None)
    found = [len(obj.shares) for m in world.machines.values() for _, obj in m.state.objects()]
    # Without a bound there are several times as many after each turn, until the machine gives up and knows of one.
    assert 1 < max(found) <= MAX_SHARES


# -- what is looked up once

ARMS = """
def f(xs, whole):
    found = None
    for x in xs:
        if whole:
            y = x.clone()
        else:
            y = x.detach()
        if not whole:
            found = y
        y += 1
    return found, y

def g(rows: torch.Tensor):
    return f(rows, True), f(rows, False)
"""


def test_what_a_tape_says_of_a_place_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns a loop takes, and however often the unit is run."""
    looked_up: Counter[tuple[str, int, int]] = Counter()
    indexes: dict[int, object] = {}  # kept, so that no other tape's is given the number of one that is gone
    before, conditions = uses._bindings_before, exclusion._found_conditions

    def number(m: Machine) -> int:
        indexes[id(m.index)] = m.index
        return id(m.index)

    def bindings(m: Machine, load: t.Load) -> list[int]:
        looked_up["bindings", number(m), load.out] += 1
        return before(m, load)

    def held(m: Machine, site: int) -> list[tuple[str, object, bool]]:
        looked_up["conditions", number(m), site] += 1
        return conditions(m, site)

    monkeypatch.setattr(uses, "_bindings_before", bindings)
    monkeypatch.setattr(exclusion, "_found_conditions", held)
    examine(lower(parse("import torch\n" + ARMS)).program)
    assert {kind for kind, _, _ in looked_up} == {"bindings", "conditions"}
    assert set(looked_up.values()) == {1}


def test_what_a_function_calls_is_looked_up_once_for_all_who_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[int, frozenset[str]]] = Counter()
    ask = helpers.Helpers._asked_by

    def counted(self: helpers.Helpers, unit: t.Unit, names: frozenset[str]) -> list[int] | None:
        asked[unit.number, names] += 1
        return ask(self, unit, names)

    monkeypatch.setattr(helpers.Helpers, "_asked_by", counted)
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 2}(x)\n\n" for n in range(8))
    examine(lower(parse(f"import torch\n{chain}def f8(x):\n    return x\n\ndef f9(x):\n    return x\n")).program)
    assert len(asked) == 10
    assert set(asked.values()) == {1}


def test_a_file_of_which_nothing_is_stated_is_shown_to_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = examine(lower(parse("import torch\n\ndef f(x):\n    return x + 1\n")).program)
    monkeypatch.delattr(registry, "load_rules")
    assert registry.reported(facts) == []


def test_the_rest_of_a_body_is_looked_at_only_where_it_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[int] = []
    exits = moving._exits

    def counted(tape: t.Tape) -> t.Tape:
        rests.append(len(tape))
        return exits(tape)

    monkeypatch.setattr(moving, "_exits", counted)
    body = "".join(f"    y{n} = x + {n}\n" for n in range(100))
    program = lower(parse(f"def f(x):\n{body}    if x:\n        return y0\n    return y1\n")).program
    moving.ending(program.units[1].tape, 0)
    # For the condition, for the `return` on its arm and for the last one.
    assert len(rests) <= 3


def test_collections_are_rare_from_the_start_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    monkeypatch.setattr(cli.cli, "main", lambda *_, **__: gc.get_threshold()[0])
    assert cli.run(["."]) == THRESHOLD
    assert gc.get_threshold() == before


PARTS = """
x = torch.zeros(9)
a, b, c = x[0], x[1], x[2]
x[{part}] += 1
print(a, b, c)
"""


def test_of_the_holders_of_a_storage_those_are_put_in_order_that_a_write_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[int] = []
    ordered = writing.in_stable_order

    def in_stable_order(held: list[tuple[Key, Cell]]) -> list[tuple[Key, Cell]]:
        put.append(len(held))
        return ordered(held)

    monkeypatch.setattr(writing, "in_stable_order", in_stable_order)
    steps(PARTS.format(part="5"))
    marked_by_part = max(put)
    put.clear()
    steps(PARTS.format(part=":"))
    assert marked_by_part < 3 <= max(put)


COMPARED = re.compile(r"\.__class__ is (?:not )?(?:t\.)?([A-Z]\w+)")


def test_what_is_told_by_its_class_alone_has_no_classes_below_it() -> None:
    sources = [path.read_text() for path in (Path(t.__file__).parent).rglob("*.py")]
    compared = {name for source in sources for name in COMPARED.findall(source)}
    known = {**vars(model), **vars(outside), **vars(references), **vars(t)}
    below = {name for name in compared if known[name].__subclasses__()}
    assert {"Load", "Cell", "FunctionReference"} <= compared
    assert not below
    # A name of another file is a dotted name as well.
    assert t.Dotted.__subclasses__()
    assert "Dotted" not in compared
