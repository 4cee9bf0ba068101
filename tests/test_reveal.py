"""`# torchcopylint: reveal[x]`: the engine says what it knows of `x` there, and nothing else changes."""

from __future__ import annotations

import io
import json
import re
import tokenize

import pytest
from conftest import Lint, write

from torchcopylint import check_source
from torchcopylint.base.finding import Finding, Role
from torchcopylint.pages import Example, load_pages
from torchcopylint.source.questions import questions

EXAMPLES = [
    pytest.param(example, id=f"{page.name}:{example.row}")
    for page in load_pages().values()
    for example in page.examples
]


def answers(text: str, **chosen: object) -> list[Finding]:
    found = check_source(text, "a.py", **chosen)  # type: ignore[arg-type]
    return [finding for finding in found if finding.code == "TCL006"]


def said(text: str) -> dict[str, str]:
    """What is said of each name, up to the grad mode."""
    matches = [re.fullmatch(r"`(.*?)` is (.*?)(; grad mode: .*)?", finding.message) for finding in answers(text)]
    return {match[1]: match[2] for match in matches if match}


def mode(text: str) -> str:
    return answers(text)[0].message.partition("grad mode: ")[2]


class TestWhatIsAsked:
    def test_names_stand_between_commas_and_each_is_a_question_at_its_own_place(self) -> None:
        (first, second) = questions("x = 1  # torchcopylint: reveal[x, a.b]\n")
        assert (first.name, first.span.start.column, first.span.end.column) == ("x", 32, 33)
        assert (second.name, second.span.start.column, second.span.end.column) == ("a.b", 35, 38)

    def test_a_text_in_a_string_asks_nothing(self) -> None:
        assert questions('x = "# torchcopylint: reveal[x]"\n') == []

    @pytest.mark.parametrize("comment", ["reveal", "reveal[]", "reveal[x[0]", "reveal[f(x)]"])
    def test_what_is_no_name_is_answered_with_how_to_ask(self, comment: str) -> None:
        (found,) = answers(f"x = 1  # torchcopylint: {comment}\n")
        assert "is no name or dotted path; ask as in reveal[x], reveal[self.weight]" in found.message

    def test_a_file_without_statements_has_an_answer_too(self) -> None:
        assert said("# torchcopylint: reveal[x]\n") == {"x": "not bound"}


class TestWhen:
    def test_on_a_line_it_is_after_the_statement(self) -> None:
        assert said("import torch\nx = 1\nx = torch.ones(2)  # torchcopylint: reveal[x]\n")["x"].startswith("a tensor")

    def test_on_any_line_of_a_statement_it_is_after_the_whole(self) -> None:
        text = "import torch\nx = torch.tensor(  # torchcopylint: reveal[x]\n    [1.0]\n)\n"
        assert said(text)["x"].startswith("a tensor (proven)")

    def test_alone_it_is_before_the_next_statement(self) -> None:
        text = "import torch\nx = 1\n# torchcopylint: reveal[x]\n\nx = torch.ones(2)\n"
        assert said(text)["x"] == "1"

    def test_alone_at_the_end_of_a_block_it_is_about_the_block(self) -> None:
        text = "import torch\nx = 1\nif x:\n    x = torch.ones(2)\n    # torchcopylint: reveal[x]\nx = 'later'\n"
        assert said(text)["x"].startswith("a tensor")

    def test_after_a_loop_or_branch_it_is_what_the_paths_share(self) -> None:
        text = (
            "import torch\nx = torch.ones(2)\ny = x\nif x.sum():\n    y = x[0]\n# torchcopylint: reveal[y]\nprint(y)\n"
        )
        (tensor,) = set(said(text)["y"].partition("; ")[0].split(" or "))
        assert (
            tensor == "a tensor (proven), leaf: yes, requires grad: no, dtype: the default float, memory: that of `x`"
        )

    def test_on_the_line_of_a_def_it_is_where_the_body_starts(self) -> None:
        text = "import torch\ndef f(x: torch.Tensor):  # torchcopylint: reveal[x]\n    x = 3\n    return x\n"
        assert said(text)["x"].startswith("a tensor (proven)")

    def test_on_the_line_of_a_for_it_is_inside_the_loop(self) -> None:
        text = "import torch\nfor row in torch.ones(2, 2):  # torchcopylint: reveal[row]\n    row += 1\n"
        assert said(text)["row"].startswith("a tensor (proven)")

    @pytest.mark.parametrize("last", ["return x", "raise ValueError(x)"])
    def test_on_the_line_that_leaves_it_is_before_leaving(self, last: str) -> None:
        text = f"import torch\ndef f():\n    x = torch.ones(2)\n    {last}  # torchcopylint: reveal[x]\n"
        assert said(text)["x"].startswith("a tensor")

    def test_what_is_not_reached_is_said_so(self) -> None:
        text = "def f():\n    return 1\n    x = 2  # torchcopylint: reveal[x]\n"
        assert said(text) == {"x": "never looked at: this place is not reached"}

    def test_a_later_turn_of_a_loop_is_known_at_its_start(self) -> None:
        text = (
            "import torch\nx = torch.ones(2)\nfor i in range(3):\n    y = x  # torchcopylint: reveal[y]\n    x += 1\n"
        )
        (found,) = answers(text)
        assert [step.role for step in found.steps if step.role is not Role.HERE] == [Role.SHARED, Role.WRITTEN]


class TestWhatIsSaid:
    SHARING = (
        "import torch\n"
        "a = torch.zeros(3, requires_grad=True)\n"
        "b = a.detach()\n"
        "c = b.numpy()\n"
        "n = a  # torchcopylint: reveal[a, c]\n"
    )

    def test_kind_leaf_requires_grad_memory_and_who_shares_it(self) -> None:
        found = said(self.SHARING)
        assert found["a"] == (
            "a tensor (proven), leaf: yes, requires grad: yes, dtype: the default float, memory: its own; "
            "shared with `b`, `c`, `n`"
        )
        assert (
            found["c"] == "an array (proven), dtype: the default float, memory: that of `a`; shared with `a`, `b`, `n`"
        )

    def test_the_steps_say_how_and_since_which_line(self) -> None:
        steps = [(step.span.start.row, step.message) for step in answers(self.SHARING)[0].steps]
        assert steps == [
            (3, "shared here: `detach()` gives `b` the memory of `a`"),
            (4, "shared here: `c` is an array over the memory of `b`"),
            (5, "shared here: `n` is another name for `a`"),
            (5, "here"),
        ]

    def test_another_part_of_one_memory_is_said_so(self) -> None:
        text = "import torch\na = torch.zeros(4)\nb = a[:2]\nc = a[2:]  # torchcopylint: reveal[c]\n"
        assert said(text)["c"].endswith("shared with `a`, `b` (another part)")

    def test_how_surely_is_said(self) -> None:
        text = "def f(x, model):\n    y = x.unsqueeze(0)  # torchcopylint: reveal[x, model]\n"
        assert said(text)["x"].startswith("a tensor (likely, by its use)")
        assert said(text)["model"].startswith("a module (a guess, by its name)")

    def test_what_depends_on_something_is_said_with_it(self) -> None:
        text = "import torch\na = torch.zeros(2)\nb = a.float()  # torchcopylint: reveal[b]\n"
        assert "memory: that of `a` (when the dtype already matches) or its own" in said(text)["b"]

    def test_a_field_is_asked_about_by_its_path(self) -> None:
        text = (
            "import torch\nfrom torch import nn\n"
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.weight = nn.Parameter(torch.ones(2))\n"
            "    def forward(self, x):\n        return x * self.weight  # torchcopylint: reveal[self.weight]\n"
        )
        assert said(text)["self.weight"].startswith("a parameter (proven), leaf: yes, requires grad: yes")

    def test_constants_imports_and_unbound_names(self) -> None:
        found = said("import torch\nx = 'a'\ny = 2  # torchcopylint: reveal[x, y, torch, z]\n")
        assert found == {"x": "'a'", "y": "2", "torch": "torch", "z": "not bound"}

    @pytest.mark.parametrize(
        ("head", "expected"),
        [
            ("with torch.no_grad():", "off"),
            ("with torch.inference_mode():", "inference"),
            ("if True:", "on"),
            ("def f():", "on, assumed"),
        ],
    )
    def test_the_grad_mode_there(self, head: str, expected: str) -> None:
        assert mode(f"import torch\n{head}\n    x = 1  # torchcopylint: reveal[x]\n") == expected


class TestThatNothingElseChanges:
    TEXT = "x = 1  # torchcopylint: reveal[x]\n"

    @pytest.mark.parametrize("chosen", [{"select": ["TCL7"]}, {"ignore": ["TCL0"]}, {"preset": "bugs"}])
    def test_it_is_shown_whatever_is_selected(self, chosen: dict[str, object]) -> None:
        assert len(answers(self.TEXT, **chosen)) == 1

    @pytest.mark.parametrize(
        "comment", ["# torchcopylint: ignore-file[TCL006]", "# torchcopylint: ignore-file", "# noqa"]
    )
    def test_no_suppression_hides_it(self, comment: str) -> None:
        assert len(answers(f"{self.TEXT.strip()}  {comment}\n")) == 1

    def test_it_is_no_suppression_and_no_misspelt_one(self) -> None:
        assert [finding.code for finding in check_source(self.TEXT)] == ["TCL006"]

    def test_it_never_changes_the_exit_code(self, lint: Lint, project: object) -> None:
        write(project, a_py=self.TEXT)  # type: ignore[arg-type]
        done = lint("a.py", "--fail-on", "info", "--preset", "strict", "--select", "ALL")
        assert (done.returncode, "info[TCL006]" in done.stdout) == (0, True)

    @pytest.mark.parametrize("output_format", ["full", "concise", "json", "jsonl", "github", "sarif"])
    def test_it_is_in_every_output_format(self, lint: Lint, project: object, output_format: str) -> None:
        write(project, a_py=self.TEXT)  # type: ignore[arg-type]
        out = lint("a.py", "--output-format", output_format).stdout
        assert "TCL006" in out
        assert "is 1; grad mode: on" in out
        if output_format == "json":
            assert json.loads(out)[0]["location"] == {"row": 1, "column": 32}

    @pytest.mark.parametrize("example", EXAMPLES)
    def test_the_other_findings_are_the_same_with_questions_on_every_line(self, example: Example) -> None:
        asked = questioned(example.code)
        found = check_source(asked, "a.py", preset="strict")
        without = check_source(example.code, "a.py", preset="strict")
        assert sum(finding.code == "TCL006" for finding in found) == len(questions(asked))
        assert [about(finding) for finding in found if finding.code != "TCL006"] == [about(f) for f in without]


def about(finding: Finding) -> tuple[object, ...]:
    steps = [(step.span, step.message) for step in finding.steps]
    return finding.span, finding.code, finding.variant, finding.message, finding.confidence, steps


def questioned(code: str) -> str:
    """A program with a question about each of its names, and some fields of theirs, at the end of every line."""
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    names = sorted({token.string for token in tokens if token.type == tokenize.NAME})
    asked = ", ".join([*names, *(f"{name}.weight, {name}.grad, {name}.data" for name in names)])
    strings = {row for token in tokens if token.type == tokenize.STRING for row in range(token.start[0], token.end[0])}
    lines = code.splitlines()
    return "".join(
        f"{line}\n"
        if not line.strip() or row in strings
        else f"{line.partition('  #')[0]}  # torchcopylint: reveal[{asked}]\n"
        for row, line in enumerate(lines, start=1)
    )
