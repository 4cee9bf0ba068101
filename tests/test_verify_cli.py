"""Verification on the command line: opt-in, in every format, kept between runs, with scripts that run alone."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.test_verify_hostile import children
from torchcopylint.cli.main import run
from torchcopylint.cli.progress import Progress
from torchcopylint.project import verdicts, verifying

CONFIRMED = """\
import numpy as np
import torch


def load(frame: np.ndarray):
    tensor = torch.from_numpy(frame)
    frame -= frame.mean()
    return tensor
"""
FORMATS = ("full", "concise", "json", "jsonl", "github", "sarif")


@pytest.fixture
def source(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one finding that running it confirms; verdicts are kept in a directory of the test's."""
    monkeypatch.setattr(verifying, "user_directory", lambda: project.parent / "verdicts")
    path = project / "load.py"
    path.write_text(CONFIRMED, encoding="utf-8")
    return path


def entries(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    run([*arguments, "--isolated", "--output-format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


LASTING = CONFIRMED.replace("frame -= ", "sum(number for number in range(10**12))\n    frame -= ")
"""A program whose finding takes as long to run as it may."""


def descendants(process_id: int) -> set[int]:
    found: set[int] = set()
    waiting = {process_id}
    while waiting:
        inner = children(waiting.pop()) - found
        found |= inner
        waiting |= inner
    return found


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_the_bar_counts_the_findings_that_are_run(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.write_text(CONFIRMED + CONFIRMED.replace("load", "load_again"), encoding="utf-8")
    totals, stream, seconds = [], io.StringIO(), itertools.count()

    def bar(total: int, quiet: bool, environment: object) -> Progress:
        totals.append(total)
        return Progress(stream, total, lambda: next(seconds))

    monkeypatch.setattr("torchcopylint.cli.check.progress", bar)
    assert len(entries(capsys, "verify", str(source), "--no-cache")) == 2
    assert totals == [1, 2]
    drawn = stream.getvalue()
    assert "0/2 load.py" in drawn
    assert "1/2 load.py" in drawn
    assert drawn.endswith("\r\x1b[K")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up under /proc")
def test_an_interrupt_while_findings_are_run_leaves_no_process(source: Path) -> None:
    source.write_text(LASTING, encoding="utf-8")
    command = [sys.executable, "-m", "torchcopylint", "verify", str(source), "--no-cache", "--verify-timeout", "60"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    # The process with torch in it, and the one in which a script runs.
    deadline = time.monotonic() + 120
    while len(started := descendants(process.pid)) < 2:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=30) == 130
    deadline = time.monotonic() + 20
    while any(map(is_running, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("command", [["verify"], ["check", "--verify"], ["--verify"]], ids=" ".join)
def test_a_verdict_is_attached_when_it_is_asked_for(
    command: list[str], source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = entries(capsys, *command, str(source))
    verification = entry["verification"]
    assert verification["verdict"] == "confirmed"
    assert verification["torch_version"]
    assert verification["reproducer"] is None
    kinds = [item["kind"] for item in verification["evidence"]]
    assert {"two-names-change", "assumed"} <= set(kinds)
    assert next(item["row"] for item in verification["evidence"] if item["kind"] == "two-names-change") == 7


def test_nothing_is_run_without_being_asked(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "verified", lambda *given: pytest.fail("it was run"))
    (entry,) = entries(capsys, str(source))
    assert entry["verification"] is None


@pytest.mark.parametrize("key", ["verify = true", 'verify-policy = "gate"', "verify-timeout = 1", 'repro-dir = "x"'])
def test_a_configuration_file_cannot_ask_for_it(key: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source.parent / "pyproject.toml").write_text(f"[tool.torchcopylint]\n{key}\n", encoding="utf-8")
    assert run([str(source)]) == 2
    assert "verify" in (told := capsys.readouterr().err) or "repro-dir" in told


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_verdict(name: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["verify", str(source), "--isolated", "--output-format", name])
    assert "confirmed" in capsys.readouterr().out


def test_statistics_count_verdicts(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["verify", str(source), "--isolated", "--statistics"])
    told = capsys.readouterr().out
    assert "Verdicts of running the code:\n     1  confirmed\n" in told


def test_the_script_shows_the_effect_when_it_is_run_alone(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = source.parent / "scripts"
    (entry,) = entries(capsys, "verify", str(source), "--repro-dir", str(directory))
    (script,) = directory.iterdir()
    assert entry["verification"]["reproducer"] == str(script)
    text = script.read_text(encoding="utf-8")
    assert f"# TCL401 from-numpy-mutated: {entry['message']}" in text
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    held = {}
    for line in shown.splitlines():
        step, _, rest = line.partition(": ")
        name, _, value = rest.partition(" = ")
        held[step, name] = value
    before = [value for (step, name), value in held.items() if "shared" in step and name == "tensor"]
    after = [value for (step, name), value in held.items() if "written" in step and name == "tensor"]
    assert before
    assert after
    assert before != after


def test_a_second_run_on_unchanged_code_runs_nothing(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = entries(capsys, "verify", str(source))
    monkeypatch.setattr(verifying.Verifier, "verify", lambda *given: pytest.fail("it was run again"))
    assert entries(capsys, "verify", str(source)) == before


def test_changed_code_and_no_cache_are_run_anew(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries(capsys, "verify", str(source))
    asked = []
    real = verifying.Verifier.verify
    monkeypatch.setattr(verifying.Verifier, "verify", lambda *given: asked.append(1) or real(*given))
    entries(capsys, "verify", str(source), "--no-cache")
    assert len(asked) == 1
    source.write_text(CONFIRMED.replace("mean", "max"), encoding="utf-8")
    entries(capsys, "verify", str(source))
    assert len(asked) == 2


def test_a_spoilt_entry_is_as_none(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = entries(capsys, "verify", str(source))
    for path in (source.parent.parent / "verdicts").rglob("*.json"):
        path.write_text('{"form": 1, "verification": {"verdict": "splendid"}}', encoding="utf-8")
    assert entries(capsys, "verify", str(source)) == before


def test_without_torch_it_is_unavailable_and_the_exit_code_stays(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = source.parent / "python"
    stub.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    stub.chmod(0o755)
    monkeypatch.setattr("torchcopylint.verify.run.default_python", lambda: str(stub))
    assert run(["verify", str(source), "--isolated", "--no-cache", "--verify-policy", "require"]) == 1
    told = capsys.readouterr()
    assert "unavailable" in told.out
    assert "pip install torchcopylint[verify]" in told.err


@pytest.mark.parametrize(
    ("verdict", "policy", "code", "shown"),
    [
        ("refuted", "annotate", 1, 1),
        ("refuted", "gate", 0, 0),
        ("refuted", "require", 0, 1),
        ("not-triggered", "gate", 1, 1),
        ("not-triggered", "require", 0, 1),
        ("confirmed", "gate", 1, 1),
        ("confirmed", "require", 1, 1),
    ],
)
def test_policies(
    verdict: str,
    policy: str,
    code: int,
    shown: int,
    source: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = verdicts.Verification(verdicts.Verdict(verdict))
    monkeypatch.setattr(verifying.Verifier, "verify", lambda *given: result)
    arguments = [
        "verify",
        str(source),
        "--isolated",
        "--no-cache",
        "--output-format",
        "json",
        "--verify-policy",
        policy,
    ]
    assert run(arguments) == code
    assert len(json.loads(capsys.readouterr().out)) == shown


@pytest.mark.parametrize(
    "option", [["--verify-policy", "gate"], ["--verify-timeout", "2"], ["--repro-dir", "d"], ["--device", "cpu"]]
)
def test_options_of_verification_need_it(option: list[str], source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(source), *option]) == 2
    assert f"{option[0]} says how to run code, and nothing is run without --verify" in capsys.readouterr().err


def test_the_linters_own_process_never_imports_torch(source: Path) -> None:
    program = (
        "import sys\nfrom torchcopylint.cli.main import run\n"
        f"run(['verify', {str(source)!r}, '--isolated', '--no-cache', '--quiet'])\n"
        "sys.exit('torch was imported' if 'torch' in sys.modules or 'numpy' in sys.modules else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
