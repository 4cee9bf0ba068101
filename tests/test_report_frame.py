"""The `full` format: the headline, and frames in which every step of the narration can be followed."""

from __future__ import annotations

import textwrap

from example_findings import TRAINING, finding, report, snapshot_finding, source, span, step

from torchcopylint.base.finding import Finding, Role, Severity
from torchcopylint.report import render
from torchcopylint.report.frame import WIDEST
from torchcopylint.report.model import Look


def full(found: Finding, **texts: str | None) -> str:
    """The finding as it is shown, without the summary. `train_py` is the text of `train.py`."""
    given = {name.replace("_", "."): text or "" for name, text in texts.items()}
    shown = render(report(found, texts=given or {"train.py": TRAINING}), "full", Look(quiet=True))
    return shown.removesuffix("\n")


def expected(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def lines(*rows: tuple[int, str], last: int) -> str:
    """A text of `last` lines of which only these have something on them."""
    given = dict(rows)
    return "\n".join(given.get(row, "") for row in range(1, last + 1))


def test_steps_near_one_another_share_a_frame_in_which_only_the_blamed_has_carets() -> None:
    assert full(snapshot_finding()) == expected(
        """
        train.py:7:16: error[TCL701]: `best` still shares memory with `model`, so later training changes it
            7 |         best = model.state_dict()
              |                ^^^^^^^^^^^^^^^^^^ 1 shared here
           10 |         optimizer.step()
              |         ---------------- 2 written here: moves the parameters of `model`
           11 |     model.load_state_dict(best)
              |                           ---- 3 read here
          fix: best = copy.deepcopy(model.state_dict())
        """
    )


def test_numbers_tell_the_order_where_a_loop_goes_back() -> None:
    found = finding(
        where=span(2, 5, 6),
        steps=(
            step(Role.WRITTEN, "written here", span(2, 5, 6)),
            step(Role.READ, "read on the next turn", span(1, 5, 6)),
        ),
    )
    assert full(found, train_py="def f\nabc x") == expected(
        """
        train.py:2:5: warning[TCL104]: `x.data` is read
           1 | def f
             |     - 2 read on the next turn
           2 | abc x
             |     ^ 1 written here
        """
    )


def test_steps_of_one_line_have_a_row_each() -> None:
    found = finding(
        where=span(1, 1, 2),
        steps=(step(Role.WRITTEN, "written here", span(1, 1, 2)), step(Role.READ, "read here", span(1, 5, 6))),
    )
    assert full(found, train_py="x = y") == expected(
        """
        train.py:1:1: warning[TCL104]: `x.data` is read
           1 | x = y
             | ^ 1 written here
             |     - 2 read here
        """
    )


def test_steps_far_apart_have_a_frame_each_in_order_of_execution() -> None:
    found = finding(
        where=span(20, 1, 2),
        steps=(step(Role.SHARED, "shared here", span(33, 1, 2)), step(Role.WRITTEN, "written here", span(20, 1, 2))),
    )
    assert full(found, train_py=lines((20, "x"), (33, "y"), last=33)) == expected(
        """
        train.py:20:1: warning[TCL104]: `x.data` is read
           --> train.py:33:1
           33 | y
              | - 1 shared here
           --> train.py:20:1
           20 | x
              | ^ 2 written here
        """
    )


def test_twelve_lines_apart_is_near() -> None:
    found = finding(
        where=span(20, 1, 2),
        steps=(step(Role.SHARED, "shared here", span(32, 1, 2)), step(Role.WRITTEN, "written here", span(20, 1, 2))),
    )
    assert "-->" not in full(found, train_py=lines((20, "x"), (32, "y"), last=32))


def test_a_step_in_another_file_has_a_frame_there() -> None:
    found = finding(
        where=span(1, 5, 6),
        steps=(
            step(Role.SHARED, "shared here", span(1, 5, 6)),
            step(Role.WRITTEN, "written here, in the call to `fill`", span(2, 5, 10), filename="helper.py"),
        ),
    )
    assert full(found, train_py="y = x", helper_py="def fill(t):\n    t[:] = 0") == expected(
        """
        train.py:1:5: warning[TCL104]: `x.data` is read
           1 | y = x
             |     ^ 1 shared here
          --> helper.py:2:5
           2 |     t[:] = 0
             |     ----- 2 written here, in the call to `fill`
        """
    )


def test_a_step_whose_file_is_not_at_hand_is_named_all_the_same() -> None:
    found = finding(
        where=span(1, 5, 6),
        steps=(
            step(Role.SHARED, "shared here", span(1, 5, 6)),
            step(Role.WRITTEN, "written here", span(2, 5, 10), filename="gone.py"),
        ),
    )
    assert full(found, train_py="y = x").endswith("  --> gone.py:2:5\n   2 | 2 written here\n")


def test_a_single_step_needs_no_number_and_no_word() -> None:
    assert full(finding(where=span(1, 5, 11)), train_py="y = x.data") == expected(
        """
        train.py:1:5: warning[TCL104]: `x.data` is read
           1 | y = x.data
             |     ^^^^^^
        """
    )


def test_a_finding_without_steps_shows_its_place() -> None:
    assert "   1 | y = x.data\n     |     ^^^^^^\n" in full(
        finding(where=span(1, 5, 11), steps=()), train_py="y = x.data"
    )


def test_a_step_over_several_lines_is_marked_on_its_first() -> None:
    found = finding(where=span(1, 5, 2, end_row=3))
    assert full(found, train_py="y = f(  \n    x,\n)") == expected(
        """
        train.py:1:5: warning[TCL104]: `x.data` is read
           1 | y = f(
             |     ^^ (to line 3)
        """
    )


def test_an_empty_span_is_one_caret() -> None:
    assert "     |   ^\n" in full(finding(where=span(1, 3, 3)), train_py="ab")


def test_a_span_past_the_end_of_the_line_does_no_harm() -> None:
    assert "   1 | ab\n     |   ^\n" in full(finding(where=span(1, 9, 12)), train_py="ab")
    assert full(finding(where=span(9, 1, 2)), train_py="ab").count("\n") == 1


def test_wide_and_combining_characters_keep_the_marker_under_its_text() -> None:
    # Two columns for each of the first two characters, none for the combining accent.
    assert full(finding(where=span(1, 8, 9)), train_py="日本e\u0301 = x").splitlines()[1:] == [
        "   1 | 日本e\u0301 = x",
        "     |         ^",
    ]


def test_the_marker_of_a_wide_character_is_wide() -> None:
    assert full(finding(where=span(1, 1, 3)), train_py="日本").splitlines()[2] == "     | ^^^^"


def test_tabs_go_to_the_next_multiple_of_four() -> None:
    assert full(finding(where=span(1, 4, 5)), train_py="\ta\tb").splitlines()[1:] == [
        "   1 |     a   b",
        "     |         ^",
    ]


def test_characters_that_steer_a_terminal_are_shown_as_escapes() -> None:
    found = finding(where=span(1, 8, 9), message="\x1b]0;title\x07 \u202e")
    headline, code, marker = full(found, train_py='"\x1b[2J" x').splitlines()
    assert headline.endswith("\\x1b]0;title\\x07 \\u202e")
    assert code == '   1 | "\\x1b[2J" x'
    assert marker == "     |           ^"


def test_of_a_long_line_the_part_around_the_step_is_shown() -> None:
    text = "x = [" + "1, " * 200 + "y.data, " + "2, " * 200 + "]"
    column = text.index("y.data") + 1
    _, code, marker = full(finding(where=span(1, column, column + 6)), train_py=text).splitlines()
    assert code.startswith("   1 | …")
    assert code.endswith("…")
    assert len(code) == len("   1 | ") + WIDEST + 2
    assert code[marker.index("^") : marker.rindex("^") + 1] == "y.data"


def test_a_long_line_is_shown_once_for_each_step() -> None:
    text = "x" * 300
    found = finding(
        where=span(1, 1, 2),
        steps=(step(Role.WRITTEN, "written here", span(1, 1, 2)), step(Role.READ, "read here", span(1, 300, 301))),
    )
    assert full(found, train_py=text).splitlines()[1:] == [
        "   1 | " + "x" * WIDEST + "…",
        "     | ^ 1 written here",
        "   1 | …" + "x" * WIDEST,
        "     | " + " " * WIDEST + "- 2 read here",
    ]


def test_a_step_longer_than_what_is_shown_is_cut_with_it() -> None:
    marker = full(finding(where=span(1, 1, 500)), train_py="x" * 600).splitlines()[2]
    assert marker == "     | " + "^" * WIDEST


def test_a_wide_character_at_the_cut_is_replaced_by_a_blank() -> None:
    # 260 columns, of which the last 120 are shown: the cut goes through the character in columns 139 and 140.
    text = "x" + "日" * 100 + "x" * 59
    code, marker = full(finding(where=span(1, 97, 98)), train_py=text).splitlines()[1:]
    assert code == "   1 | … " + "日" * 30 + "x" * 59
    assert marker == "     | " + " " * (1 + 191 - 140) + "^^"


def test_the_summary_counts_severities() -> None:
    both = report(finding(severity=Severity.INFO), finding(), finding(), snapshot_finding())
    assert render(both, "concise", Look()).splitlines()[-1] == "Found 1 error, 2 warnings and 1 note in 1 of 1 file."


def test_colours_go_to_severity_place_frame_and_advice() -> None:
    shown = render(report(snapshot_finding()), "full", Look(color=True))
    assert "\x1b[1mtrain.py:7:16\x1b[0m: \x1b[1;31merror[TCL701]\x1b[0m: " in shown
    assert "\x1b[1;31m^^^^^^^^^^^^^^^^^^ 1 shared here\x1b[0m" in shown
    assert "\x1b[1;34m---- 3 read here\x1b[0m" in shown
    assert "\x1b[1;32mfix:\x1b[0m best = " in shown


def test_concise_is_one_line_a_finding() -> None:
    assert render(report(snapshot_finding(), finding()), "concise", Look(quiet=True)) == (
        "train.py:7:16: error[TCL701]: `best` still shares memory with `model`, so later training changes it\n"
        "train.py:1:1: warning[TCL104]: `x.data` is read\n"
    )


def test_a_frame_takes_its_path_from_the_source() -> None:
    assert source("a.py", None).shown == "a.py"
