"""From the JSON of a notebook to Python, row for row."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from torchcopylint.base.finding import Position
from torchcopylint.source.notebook import cell_at, cells, convert, lines_of, row_called
from torchcopylint.source.text import Undecodable


def notebook(*sources: object, **rest: Any) -> str:
    """A notebook of code cells; a tuple is a cell of another kind and its source."""
    listed = [
        {"cell_type": source[0], "source": source[1]}
        if isinstance(source, tuple)
        else {"cell_type": "code", "source": source}
        for source in sources
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4} | rest)


def body(source: str) -> str:
    """The Python of a notebook with one cell, which must parse, without the line that names the cell."""
    found = convert(notebook(source))
    assert found.faults == ()
    ast.parse(found.text)
    _, _, rest = found.text.partition("\n")
    return rest.removesuffix("\n\n")


class TestCells:
    def test_each_stands_under_its_number_which_counts_cells_of_every_kind(self) -> None:
        text = convert(notebook(("markdown", "# x"), "a = 1\nb = 2", ("raw", "x"), ["c = 3\n", "d = 4"])).text
        assert text == "# %% cell 2\na = 1\nb = 2\n\n# %% cell 4\nc = 3\nd = 4\n\n"
        assert cells(text) == ((2, 1), (4, 5))
        assert [cell_at(row, cells(text)) for row in (1, 2, 3, 6)] == [None, (2, 1), (2, 1), (4, 5)]
        assert (row_called(7, cells(text)), row_called(7, ())) == ("line 2 of cell 4", "line 7")

    def test_nbformat_3_has_worksheets(self) -> None:
        sheets = [
            {"cells": [{"cell_type": "code", "input": ["a = 1"], "language": "python"}]},
            {"cells": [{"x": 1}]},
            7,
        ]
        assert convert(json.dumps({"worksheets": sheets, "nbformat": 3})).text == "# %% cell 1\na = 1\n\n"

    @pytest.mark.parametrize("source", ["", "  \n ", [], None, 3, [None]])
    def test_nothing_is_no_cell(self, source: object) -> None:
        assert convert(notebook(source)).text == ""

    def test_a_line_that_looks_like_the_name_of_a_cell_names_none(self) -> None:
        text = convert(notebook("a = 1\n# %% cell 9\nb = 2")).text
        assert cells(text) == ((1, 1),)

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_lines_may_end_in_any_way(self, newline: str) -> None:
        assert cells(convert(notebook(f"a = 1{newline}b = 2", "c = 3")).text) == ((1, 1), (2, 5))


class TestLanguages:
    @pytest.mark.parametrize("name", ["python", "Python", "ipython", None, 3])
    def test_python_is_taken(self, name: object) -> None:
        assert convert(notebook("a = 1", metadata={"language_info": {"name": name}})).text
        assert convert(notebook("a = 1", metadata={"kernelspec": {"language": name}})).text

    @pytest.mark.parametrize("metadata", [{"language_info": {"name": "R"}}, {"kernelspec": {"language": "julia"}}])
    def test_of_others_nothing_is(self, metadata: object) -> None:
        assert convert(notebook("a <- 1", metadata=metadata)) == ("", ())

    def test_a_cell_can_have_its_own(self) -> None:
        cell = {"cell_type": "code", "source": "SELECT 1", "metadata": {"vscode": {"languageId": "sql"}}}
        assert convert(json.dumps({"cells": [cell]})) == ("", ())


class TestMagics:
    @pytest.mark.parametrize(
        "line",
        [
            "%matplotlib inline",
            "% matplotlib inline",
            "!pip install x",
            "!!ls",
            "?x",
            "x?",
            "x.y??",
            "x[0].y?",
            "%time?",
            "/f x",
            "%%unknown x",
            "pip install torch",
            "cd ..",
            "ls ../../",
            "rm -r $folder",
            "mkdir out",
            "*int*?",
            ",f a",
        ],
    )
    def test_a_line_of_ipython_does_nothing(self, line: str) -> None:
        assert body(f"a = 1\n{line}\nb = 2") == "a = 1\npass\nb = 2"
        assert body(f"if a:\n    {line}\nb = 2") == "if a:\n    pass\nb = 2"

    @pytest.mark.parametrize("line", ["ls = 3", "cat -= 1", "rm in names", "cp if cp else mv", "cat.size", "less(3)"])
    def test_a_name_that_is_a_command_as_well_stays_a_name(self, line: str) -> None:
        assert body(f"!true\n{line}\nb = 2") == f"pass\n{line}\nb = 2"

    def test_it_may_go_on(self) -> None:
        assert body("!pip install \\\n  x \\\n  'y\na = 1") == "pass\n\n\na = 1"

    @pytest.mark.parametrize("magic", ["!ls", "%sql SELECT 1", "!echo 'it"])
    def test_what_it_returns_is_not_known(self, magic: str) -> None:
        assert body(f"x = {magic}\ny = 1") == "x = get_ipython()\ny = 1"

    @pytest.mark.parametrize("magic", ["%time ", "%timeit ", "%timeit -n 10 -r3 ", "%prun -s cumulative "])
    def test_what_is_timed_runs_and_keeps_its_column(self, magic: str) -> None:
        for source in (f"{magic}y = f(x)\nb = 1", f"if a:\n  {magic}y = f(x)\nb = 1"):
            found = body(source)
            assert "pass; " in found
            assert [line.find("y = f(x)") for line in found.split("\n")] == [
                line.find("y = f(x)") for line in source.split("\n")
            ]
        assert body(f"y = {magic}f(x)\nb = 1") == f"y = {' ' * len(magic)}f(x)\nb = 1"

    def test_a_timed_compound_statement_is_left_out(self) -> None:
        assert body("%time for x in y: f(x)\na = 1") == "pass\na = 1"

    @pytest.mark.parametrize(
        "source",
        [
            'x = ("%d"\n% 3)\n{0}',
            'x = """\n!pip\n%matplotlib inline\nx?\n"""\n{0}',
            "x = 5 \\\n% 3\n{0}",
            "x = [  # (\n!a\n]\n{0}".replace("!a", "-1"),
            "f(r'\\'', '''a\n!b''')\n{0}",
        ],
    )
    def test_in_brackets_strings_and_continued_lines_python_means_what_it_says(self, source: str) -> None:
        assert body(source.format("%load x\na = 1")) == source.format("pass\na = 1")

    @pytest.mark.parametrize("magic", ["%%bash", "%%html", "%%writefile x.py", "%%unknown", "%%javascript", "%%python"])
    def test_a_cell_of_something_else_is_left_out(self, magic: str) -> None:
        assert convert(notebook(f"\n{magic}\nx = 1", "y = 2")).text == "# %% cell 2\ny = 2\n\n"

    def test_a_cell_whose_magic_runs_its_body_is_kept(self) -> None:
        assert body("%%time\nx = 1") == "pass\nx = 1"
        assert body("\n%%timeit -n 10 y = f()\nx = 1") == f"\n{'pass;'.ljust(15)}y = f()\nx = 1"
        assert body("%%capture out\n!ls\nx = 1") == "pass\npass\nx = 1"

    def test_ipython_takes_the_indentation_of_the_first_line_away(self) -> None:
        assert body("  x = 1\n  if x:\n    y = 2") == "x = 1\nif x:\n  y = 2"

    @pytest.mark.parametrize("source", ["await f()\nx = 1", "if x:\n    await f()\nx = 1", "plt.plot();", "return"])
    def test_what_cells_may_do_stays(self, source: str) -> None:
        assert body(source) == source


class TestShown:
    @pytest.mark.parametrize(
        ("source", "place"),
        [("x = 1\nx.abs()", "2:8"), ("(a\n .b())", "2:7"), ("é.b()  # é", "1:6"), ("x = 1\nx\n\n", "2:2")],
    )
    def test_the_last_expression_is_not_dropped(self, source: str, place: str) -> None:
        text = convert(notebook(source)).text
        ast.parse(text)
        assert text.startswith(f"# %% cell 1 shows {place}\n")
        assert "\n".join(lines_of(text)[1:-2]) == source
        assert cells(text) == ((1, 1),)

    @pytest.mark.parametrize("source", ["x.abs(), y.abs(),", "(x.abs(),\n y.abs()), "])
    def test_a_row_of_them_is_parsed(self, source: str) -> None:
        text = convert(notebook(source)).text
        ast.parse(text)
        assert "\n".join(lines_of(text)[1:-2]) == source

    @pytest.mark.parametrize("source", ["x.abs();", "x = 1", "x.abs()\nx = 1", "x.abs() ; # a", "if x:\n    x.abs()"])
    def test_all_else_is(self, source: str) -> None:
        assert body(source) == source


class TestFaults:
    def test_a_cell_that_is_no_python_is_left_out_and_named(self) -> None:
        found = convert(notebook("a = 1", "b = 2\nif x = 3:\n    pass", "c = 4"))
        assert found.text == "# %% cell 1\na = 1\n\n# %% cell 2\nb, = get_ipython()\n\n\n\n# %% cell 3\nc = 4\n\n"
        (fault,) = found.faults
        assert fault.reason.startswith("invalid syntax")
        assert (fault.position, fault.line) == (Position(6, 4), "if x = 3:")

    @pytest.mark.parametrize("source", ["a = \0", "'''", "x = (", "x = \\", "print 'x'", "\ud800", "%%time\nif"])
    def test_whatever_it_is_the_rest_parses(self, source: str) -> None:
        found = convert(notebook(source, "b = 2"))
        assert len(found.faults) == 1
        binds = [ast.Assign] if "=" in source else []
        assert [type(statement) for statement in ast.parse(found.text).body] == [*binds, ast.Assign]

    @pytest.mark.parametrize(
        ("source", "stands"),
        [
            ("loss = # your code", "loss, = get_ipython()"),
            ("x, *y = f(\n    a=1,\n)\nz += ?", "x, y, z, = get_ipython()\n\n\n"),
            ("for i, j in <pairs>:\n    out = i", "i, j, out, = get_ipython()\n"),
            (
                "import torch\nfrom torch import nn\nnet = ?",
                "import torch; net, = get_ipython()\nfrom torch import nn\n",
            ),
            ("def f(x):\n    # here\nclass C(?):\n    pass", "f, C, = get_ipython()\n\n\n"),
            ("with open(p) as fh:\n    lr: float = ?", "fh, lr, = get_ipython()\n"),
            ("x.y = z[0] = ?\nif x == 3 ?", "\n"),
            ("'''\na = 1\n'''\nprint(b=2) ?", "\n\n\n"),
        ],
    )
    def test_its_imports_stay_and_its_names_are_unknown(self, source: str, stands: str) -> None:
        assert convert(notebook(source)).text == f"# %% cell 1\n{stands}\n\n"

    def test_nested_too_deep_is_for_the_limits_to_say(self) -> None:
        source = "(" * 2000 + ")" * 2000
        assert convert(notebook(source)).faults == ()

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "it is empty"),
            ("x = 1", "Expecting value"),
            ('{"cells": [', "Expecting value"),
            ("[]", "no list of cells"),
            ('{"cells": 3}', "no list of cells"),
            ("{}", "no list of cells"),
            ("[" * 100_000, "its JSON cannot be read"),
        ],
    )
    def test_what_is_no_notebook_is_refused_with_a_remedy(self, text: str, words: str) -> None:
        with pytest.raises(Undecodable, match="it is no notebook") as caught:
            convert(text)
        assert words in caught.value.reason

    def test_the_place_is_the_one_in_the_json(self) -> None:
        with pytest.raises(Undecodable) as caught:
            convert('{"cells": [\n  x]}')
        assert caught.value.position == Position(2, 3)
