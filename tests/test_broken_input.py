"""Files that are no Python, or hardly: each is reported for what it is, and the files beside it are checked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Lint, write

from torchcopylint.pages import load_pages
from torchcopylint.project.discover import discover
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.resolver import Resolver
from torchcopylint.project.select import RuleIndex

FAULT = "import torch\nw = torch.ones(2, requires_grad=True)\nw.data.zero_()\n"
"""Three lines, the last of them with a finding, TCL103."""


class Refused(NamedTuple):
    """A content that cannot be checked: the code of the report, the row where it stands, and words of its message."""

    data: bytes
    code: str
    row: int
    words: str


def _text(text: str) -> bytes:
    return (text + "\n").encode()


UNREADABLE: Mapping[str, Refused] = {
    name: Refused(data, "TCL000", row, words)
    for name, (data, row, words) in {
        "Latin-1 without a declaration": (b"x = 1\ny = '\xe9'\n", 2, "byte 0xe9 is not valid UTF-8, and no other"),
        "ASCII with other bytes": (b"# coding: ascii\nx = '\xc3\xa9'\n", 2, "byte 0xc3 is not valid ASCII"),
        "an unknown encoding": (b"# coding: utf-9\n", 1, "it declares the unknown encoding `utf-9`"),
        "an encoding of text to text": (b"# coding: rot13\nx = 1\n", 1, "`rot-13`, which is no encoding of text"),
        "a mark and another encoding": (b"\xef\xbb\xbf# coding: latin-1\n", 1, "declares iso8859-1 but starts with"),
        "UTF-16": (FAULT.encode("utf-16"), 1, "it is UTF-16"),
        "UTF-16 without a mark": (FAULT.encode("utf-16-le"), 1, "it contains a null byte"),
        "UTF-32": (FAULT.encode("utf-32"), 1, "it is UTF-32"),
        "a lone surrogate": (b"x = '\xed\xa0\x80'\n", 1, "byte 0xed is not valid UTF-8"),
        "a null byte between statements": (b"x = 1\n\0\n", 2, "it contains a null byte"),
        "a null byte in a string": (b"x = 1\ny = '\0'\n", 2, "it contains a null byte"),
        "a null byte in a comment": (b"x = 1\n# \0\n", 2, "it contains a null byte"),
        "a compiled module": (b"\xa7\r\r\n" + bytes(40), 1, "byte 0xa7 is not valid UTF-8"),
        "Python 2: print": (_text("x = 1\nprint 'x'"), 2, "Missing parentheses in call to 'print'"),
        "Python 2: exec": (_text("x = 1\nexec 'x'"), 2, "Missing parentheses in call to 'exec'"),
        "Python 2: backticks": (_text("x = 1\ny = `x`"), 2, "invalid syntax"),
        "Python 2: octal number": (_text("x = 1\ny = 0777"), 2, "leading zeros in decimal integer literals"),
        "a conflict of a merge": (
            _text("x = 1\n<<<<<<< HEAD\nx = 2\n=======\nx = 3\n>>>>>>> branch"),
            2,
            "it contains the conflict markers of a merge; resolve the conflict first",
        ),
        "a conflict inside brackets": (
            _text("x = (\r\n<<<<<<< HEAD\r\n2)\r\n||||||| base\r\n1)\r\n=======\r\n3)\r\n>>>>>>> branch\r"),
            2,
            "it contains the conflict markers of a merge",
        ),
        "tabs and spaces": (_text("if True:\n        x = 1\n\ty = 2"), 3, "inconsistent use of tabs and spaces"),
        "a dedent to nowhere": (_text("if True:\n        x = 1\n    y = 2"), 3, "unindent does not match"),
        "a bracket that is not closed": (_text("x = 1\ny = (1,\nz = 2"), 2, "'(' was never closed"),
        "a bracket of another kind": (_text("x = 1\ny = (1]"), 2, "does not match opening parenthesis '('"),
        "a bracket that was never opened": (_text("x = 1\ny = 1)"), 2, "unmatched ')'"),
        "a string without an end": (_text("x = 1\ny = 'abc\nz = 2"), 2, "unterminated"),
        "a long string without an end": (_text("x = 1\ny = '''abc\nz = 2"), 2, "unterminated triple-quoted"),
        "a backslash at the end": (b"x = 1\ny = 1 \\", 2, "unexpected EOF"),
        "120 levels of indentation": (
            _text("\n".join(" " * n + "if x:" for n in range(120)) + "\n" + " " * 120 + "pass"),
            101,
            "too many levels of indentation",
        ),
        "a line of IPython": (_text("x = 1\n%matplotlib inline"), 2, "`%matplotlib` is a command of IPython"),
        "a shell command of IPython": (_text("x = 1\n!pip install torch"), 2, "`!pip` is a command of IPython"),
        "Ctrl-Z at the end": (FAULT.encode() + b"\x1a", 4, "U+001A"),
        "a no-break space": (_text("x = 1\ny =\u00a01"), 2, "U+00A0"),
        "typographic quotes": (_text("x = 1\ny = \u201cabc\u201d"), 2, "U+201C"),
        "a control sequence": (_text("x = 1\n\x1b[31m"), 2, "U+001B"),
    }.items()
}
SKIPPED: Mapping[str, Refused] = {
    name: Refused(_text(f"x = 1\ny = {text}"), "TCL004", 2, words)
    for name, (text, words) in {
        "1,500 nested brackets": (
            "(" * 1500 + "1" + ")" * 1500,
            "brackets of 1500 is over the limit of 200",
        ),
        "1,500 nested lists": ("[" * 1500 + "1" + "]" * 1500, "brackets of 1500 is over the limit of 200"),
        "100,000 brackets that are not closed": ("(" * 100_000, "brackets of 100000 is over the limit of 200"),
        "8,000 terms of `and`": (
            " and ".join(["a"] * 8000),
            "condition of 7999 is over the limit of 6000",
        ),
        "a chain of 2,000 calls": (
            "a" + ".b()" * 2000,
            "calls of 4001 is over the limit of 2000",
        ),
        "a sum of 4,000 terms": (" + ".join(["a"] * 4000), "calls of 4000 is over the limit of 2000"),
    }.items()
}
OPTIONS = {"brackets": "--max-nesting", "condition": "--max-terms", "calls": "--max-chain"}

ODD: Mapping[str, bytes] = {
    "a byte order mark": b"\xef\xbb\xbf" + FAULT.encode(),
    "Latin-1, declared": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n" + FAULT.encode(),
    "form feeds": b"x = 1\n\x0c\n\x0cy = 2\n" + FAULT.encode(),
    "CR as newline": FAULT.replace("\n", "\r").encode(),
    "CR LF as newline": FAULT.replace("\n", "\r\n").encode(),
    "three kinds of newline": b"import torch\r\nw = torch.ones(2, requires_grad=True)\rw.data.zero_()\n",
    "no newline at the end": FAULT.rstrip().encode(),
    "a number of 10,000 digits": b"x = " + b"7" * 10_000 + b"\n" + FAULT.encode(),
    "a t-string": b"x = t'{1}'\n" + FAULT.encode(),
    "type parameters (PEP 695)": b"type A[T] = list[T]\ndef f[T](x: T) -> T:\n    return x\n" + FAULT.encode(),
    "nested quotes (PEP 701)": b"x = f'{'a' + f'{1}'}'\n" + FAULT.encode(),
    "except without brackets (PEP 758)": b"try:\n    pass\nexcept A, B:\n    pass\n" + FAULT.encode(),
    "an escaped surrogate": b"x = '\\ud800'\n" + FAULT.encode(),
    "conflict markers in a string": b"x = '''\n<<<<<<< a\n=======\n>>>>>>> b\n'''\n" + FAULT.encode(),
    "a line of a million characters": b"x = '" + b"a" * 1_000_000 + b"'\n" + FAULT.encode(),
    "a tab deeper than spaces": b"def f(x):\n    while x:\n\t    x -= 1\n    return x\n" + FAULT.encode(),
    "names in other scripts": "größe = 1\nЖ = 2\n".encode() + FAULT.encode(),
}
"""Python all the same, with the fault in the last three lines."""

REFUSED = {**UNREADABLE, **SKIPPED}


@pytest.fixture
def beside(project: Path) -> Path:
    """A project with a clean and a faulty file, to put another beside them."""
    write(project, clean_py="x = 1\n", faulty_py=FAULT)
    return project


def _found(done: subprocess.CompletedProcess[str], name: str) -> list[tuple[str, int]]:
    """The codes and rows of the findings about one file; the run must have been in order and checked the others."""
    assert "Traceback" not in done.stderr
    findings = json.loads(done.stdout)
    others = [(f["filename"], f["code"]) for f in findings if f["filename"] in ("clean.py", "faulty.py")]
    assert others == [("faulty.py", "TCL103")]
    return [(f["code"], f["location"]["row"]) for f in findings if f["filename"] == name]


def _as_json(lint: Lint, *paths: str) -> subprocess.CompletedProcess[str]:
    # What is left to fail on is the odd file: the faulty one has a warning.
    return lint(*paths, "--output-format", "json", "--fail-on", "error")


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_checked_is_said_with_its_place_and_the_rest_is_checked(
    beside: Path, lint: Lint, kind: str
) -> None:
    refused = REFUSED[kind]
    (beside / "odd.py").write_bytes(refused.data)
    done = _as_json(lint, ".")
    assert _found(done, "odd.py") == [(refused.code, refused.row)]
    (message,) = [f["message"] for f in json.loads(done.stdout) if f["filename"] == "odd.py"]
    assert refused.words in message
    # Unreadable is an error; skipped is a warning, which the default fails on but `--fail-on error` does not.
    assert done.returncode == (1 if refused.code == "TCL000" else 0)
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_but_python_is_checked(beside: Path, lint: Lint, kind: str) -> None:
    (beside / "odd.py").write_bytes(ODD[kind])
    last = len(ODD[kind].replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip(b"\n").split(b"\n"))
    done = _as_json(lint, ".")
    assert _found(done, "odd.py") == [("TCL103", last)]
    assert done.returncode == 0


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b"# one\n\n    # two", b"\xef\xbb\xbf", b"\x0c", b"'words'\n"])
def test_what_is_empty_or_says_nothing_has_no_findings(beside: Path, lint: Lint, data: bytes) -> None:
    (beside / "odd.py").write_bytes(data)
    done = _as_json(lint, ".")
    assert _found(done, "odd.py") == []
    assert done.returncode == 0


def test_one_run_over_all_of_them_has_a_line_for_each_with_file_and_place(beside: Path, lint: Lint) -> None:
    expected = {}
    for number, refused in enumerate(REFUSED.values()):
        (beside / f"odd{number}.py").write_bytes(refused.data)
        expected[f"odd{number}.py"] = (refused.row, refused.code)
    done = lint(".", "--output-format", "concise")
    lines = [line.split(":", 4) for line in done.stdout.splitlines() if line.count(":") > 3]
    assert {name: (int(row), kind.partition("[")[2].rstrip("]")) for name, row, _, kind, _ in lines} == expected | {
        "faulty.py": (3, "TCL103")
    }
    assert (done.returncode, done.stderr) == (1, "")
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("kind", SKIPPED)
def test_what_is_skipped_names_the_option_that_raises_the_limit(beside: Path, lint: Lint, kind: str) -> None:
    (beside / "odd.py").write_bytes(SKIPPED[kind].data)
    done = lint("odd.py")
    (option,) = [option for word, option in OPTIONS.items() if word in SKIPPED[kind].words]
    assert f"raise the limit with `{option}`" in done.stdout
    assert done.returncode == 1


class TestPathsThatAreNoFiles:
    """What is found under a name that ends in `.py`, or is named on the command line, and is no regular file."""

    @pytest.fixture(autouse=True)
    def odd_paths(self, beside: Path) -> Iterator[None]:
        (beside / "directory.py").mkdir()
        (beside / "directory.py" / "inside.py").write_text(FAULT)
        (beside / "broken.py").symlink_to("nowhere.py")
        (beside / "circle.py").symlink_to("other_circle.py")
        (beside / "other_circle.py").symlink_to("circle.py")
        (beside / "here").symlink_to(".", target_is_directory=True)
        os.mkfifo(beside / "pipe.py")
        with socket.socket(socket.AF_UNIX) as listening:
            # The path of a socket may not be longer than some hundred characters.
            here = os.getcwd()
            os.chdir(beside)
            listening.bind("socket.py")
            os.chdir(here)
            yield

    def test_in_a_directory_links_that_lead_nowhere_are_reported_and_the_rest_is_passed_over(self, lint: Lint) -> None:
        done = _as_json(lint, ".")
        findings = {(f["filename"], f["code"]): f["message"] for f in json.loads(done.stdout)}
        assert set(findings) == {
            ("broken.py", "TCL000"),
            ("circle.py", "TCL000"),
            ("other_circle.py", "TCL000"),
            ("directory.py/inside.py", "TCL103"),
            ("faulty.py", "TCL103"),
        }
        assert (done.returncode, done.stderr) == (1, "")

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("broken.py", "it is a link to a file that does not exist"),
            ("circle.py", "too many levels of symbolic links"),
            ("pipe.py", "it is a named pipe; standard input is read with `-`"),
            ("socket.py", "it is a socket"),
            (os.devnull, "it is a device"),
        ],
    )
    def test_named_they_are_reported(self, lint: Lint, name: str, words: str) -> None:
        done = _as_json(lint, name, "clean.py", "faulty.py")
        (finding,) = [f for f in json.loads(done.stdout) if f["filename"] not in ("clean.py", "faulty.py")]
        assert (finding["code"], finding["location"]["row"]) == ("TCL000", 1)
        assert words in finding["message"]
        assert _found(done, finding["filename"]) == [("TCL000", 1)]
        assert (done.returncode, done.stderr) == (1, "")

    def test_a_directory_that_is_named_is_searched(self, lint: Lint) -> None:
        done = _as_json(lint, "directory.py", "clean.py", "faulty.py")
        assert _found(done, "directory.py/inside.py") == [("TCL103", 3)]


def test_a_file_without_permission_is_reported_unless_the_user_may_read_everything(beside: Path, lint: Lint) -> None:
    (beside / "secret.py").write_text(FAULT)
    (beside / "secret.py").chmod(0)
    done = _as_json(lint, ".")
    if os.access(beside / "secret.py", os.R_OK):
        assert _found(done, "secret.py") == [("TCL103", 3)]
    else:
        assert _found(done, "secret.py") == [("TCL000", 1)]
        assert "permission denied" in done.stdout


def test_a_file_that_vanishes_between_search_and_reading_is_reported(beside: Path) -> None:
    (beside / "odd.py").write_text(FAULT)
    index = RuleIndex(load_pages())

    def vanish(path: str) -> None:
        (beside / "odd.py").unlink(missing_ok=True)

    run = Checker(index).check(discover(["."], Resolver(index, cwd=str(beside))), vanish)
    found = {file.filename: [finding.code for finding in file.findings] for file in run.files}
    assert found == {"clean.py": [], "faulty.py": ["TCL103"], "odd.py": ["TCL000"]}
    (gone,) = [finding for file in run.files for finding in file.findings if finding.code == "TCL000"]
    assert gone.message == "the file cannot be read or parsed: no such file or directory"


def test_standard_input_that_cannot_be_checked_is_reported(project: Path, lint: Lint) -> None:
    done = lint("-", "--stdin-filename", "odd.py", stdin=UNREADABLE["a conflict of a merge"].data)
    assert done.stdout.startswith("odd.py:2:1: error[TCL000]: ")
    assert (done.returncode, done.stderr) == (1, "")
