"""Several processes: the same result, whatever becomes of one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Lint, write

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.pages import load_pages
from torchcopylint.project import engine, processes
from torchcopylint.project.engine import engine_for, one_by_one
from torchcopylint.project.examined import Examined, Outcome, Request
from torchcopylint.project.processes import Processes

FAULT = "import torch\nw = torch.ones(2, requires_grad=True)\nw.data.zero_()\n"
DYING = """
import os, signal, sys
sys.path.append(sys.argv[1])
from torchcopylint.project import worker
examine = worker.examine_file
def examine_file(request, pages, projects):
    if request.filename == "signal.py":
        os.kill(os.getpid(), signal.SIGSEGV)
    if request.filename == "exit.py":
        os._exit(3)
    if request.filename == "babble.py":
        print("this goes nowhere")
        os.write(1, b"nor does this\\n")
    return examine(request, pages, projects)
worker.examine_file = examine_file
worker.main()
"""


@pytest.fixture
def requests(tmp_path: Path) -> list[Request]:
    names = ("a.py", "babble.py", "exit.py", "fault.py", "signal.py", "z.py")
    for name in names:
        (tmp_path / name).write_text(FAULT)
    return [Request(str(tmp_path / name), name, DEFAULT_LIMITS, str(tmp_path)) for name in names]


def examined(requests: list[Request], jobs: int) -> dict[str, Examined]:
    """What each file came to, by name."""
    answers = list(Processes(jobs)(requests, load_pages(), lambda path: None))
    assert sorted(number for number, _ in answers) == list(range(len(requests)))
    return {requests[number].filename: seen.examined for number, seen in answers}


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_files_come_to_the_same_as_in_one_process(requests: list[Request], jobs: int) -> None:
    alone = {requests[n].filename: seen.examined for n, seen in one_by_one(requests, load_pages(), lambda path: None)}
    assert examined(requests, jobs) == alone
    assert [finding.code for finding in alone["fault.py"].findings] == ["TCL103"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_that_dies_names_its_file_and_the_rest_is_examined(
    requests: list[Request], jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "COMMAND", ("-P", "-c", DYING))
    found = examined(requests, jobs)
    told = {name: [f.message for f in file.findings] for name, file in found.items() if file.outcome is Outcome.FAILED}
    died = "torchcopylint failed on this file: the process that checked the file died"
    assert told == {"signal.py": [f"{died} (signal SIGSEGV)"], "exit.py": [f"{died} (exit code 3)"]}
    assert all(file.failure for file in found.values() if file.outcome is Outcome.FAILED)
    others = [name for name, file in found.items() if [f.code for f in file.findings] == ["TCL103"]]
    assert sorted(others) == ["a.py", "babble.py", "fault.py", "z.py"]


def test_a_file_that_ends_workers_does_not_take_those_with_it_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of it is that nothing is known; so whoever uses it need not follow it."""
    following = DYING.replace(
        "worker.examine_file = examine_file",
        "worker.examine_file = examine_file\n"
        "from torchcopylint.project import modules\n"
        "followed = modules.followed\n"
        "def deadly(text, limits, around):\n"
        "    if around.path.endswith('signal.py'):\n"
        "        os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    return followed(text, limits, around)\n"
        "modules.followed = deadly",
    )
    monkeypatch.setattr(processes, "COMMAND", ("-P", "-c", following))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "signal.py").write_text("def touch(x):\n    x.zero_()\n")
    users = ("one", "two", "three")
    for name in users:
        (tmp_path / f"{name}.py").write_text(f"from lib.signal import touch\n{FAULT}touch(w)\n")
    names = ["lib/signal.py", *(f"{name}.py" for name in users)]
    asked = [Request(str(tmp_path / name), name, DEFAULT_LIMITS, str(tmp_path)) for name in names]
    # The worker that has the file takes long to start; those who use the file wait for it all the same.
    start, waits = processes._Worker._start, iter([1.0])

    def late(worker: processes._Worker) -> subprocess.Popen[bytes]:
        time.sleep(next(waits, 0))
        return start(worker)

    monkeypatch.setattr(processes._Worker, "_start", late)
    found = examined(asked, 2)
    assert {name for name, file in found.items() if file.outcome is Outcome.FAILED} == {"lib/signal.py"}
    assert all("TCL103" in [f.code for f in found[f"{name}.py"].findings] for name in users)


@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "print('hello', flush=True)", "import nothing"])
def test_where_no_worker_starts_this_process_does_the_work(
    requests: list[Request], program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "COMMAND", ("-c", program))
    found = examined(requests, 2)
    assert [[f.code for f in file.findings] for file in found.values()] == [["TCL103"]] * 6


def test_what_lies_in_the_working_directory_is_not_imported(project: Path, lint: Lint) -> None:
    trap = "raise SystemExit('imported')\n"
    write(project, a_py=FAULT, libcst_py=trap, json_py=trap, torchcopylint_py=trap)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "torchcopylint", "--jobs", "2", "--output-format", "concise", "-q", "."],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["a.py"]


def test_the_output_is_the_same_for_every_number_of_jobs(project: Path, lint: Lint) -> None:
    for number in range(7):
        (project / f"f{number}.py").write_text(FAULT * (number % 3 + 1) + ("x = (\n" if number == 5 else ""))
    runs = [lint("--jobs", jobs, "--output-format", "json", "--statistics", ".") for jobs in ("1", "3", "auto")]
    assert {(run.returncode, run.stdout, run.stderr) for run in runs} == {(1, runs[0].stdout, runs[0].stderr)}
    assert runs[0].stdout.count('"TCL103"') == 10


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: object, seconds: float = 60) -> None:
    """Wait until something holds; `seconds` is when it counts as hung."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_ctrl_c_ends_workers_in_the_middle_of_a_file_without_a_trace(project: Path) -> None:
    write(project, a_py="", b_py="")
    hanging = "import sys, time; sys.stdout.buffer.write(b'ready\\n'); sys.stdout.flush(); time.sleep(1000)"
    program = (
        "import sys; from torchcopylint.project import processes; "
        f"processes.COMMAND = ('-c', {hanging!r}); "
        "from torchcopylint.__main__ import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "--jobs", "2", "."],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    eventually(lambda: len(children(process.pid)) == 2)
    workers = children(process.pid)
    # As a terminal does: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    # The empty line goes behind the `^C` of the terminal.
    assert (process.returncode, out, err) == (130, "", "\ntorchcopylint: interrupted\n")
    eventually(lambda: not any(alive(worker) for worker in workers))


def test_workers_end_when_the_process_that_asks_is_killed(project: Path) -> None:
    for number in range(40):
        (project / f"f{number}.py").write_text(FAULT * 40)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchcopylint", "--jobs", "2", "."], cwd=project, stdout=subprocess.DEVNULL
    )
    eventually(lambda: len(children(process.pid)) == 2)
    workers = children(process.pid)
    process.kill()
    process.wait()
    eventually(lambda: not any(alive(worker) for worker in workers))


class TestHowManyProcesses:
    def test_little_work_is_done_in_this_process(self, requests: list[Request]) -> None:
        assert engine_for(None, requests) is one_by_one
        assert engine_for(8, requests[:1]) is one_by_one
        assert engine_for(8, []) is one_by_one
        assert engine_for(1, requests) is one_by_one

    def test_much_work_is_shared(self, requests: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(engine_for(2, requests), Processes)
        monkeypatch.setattr(engine, "available", lambda: 4)
        Path(requests[0].path).write_text("#" * engine.WORTH)
        assert isinstance(engine_for(None, requests), Processes)
        monkeypatch.setattr(engine, "available", lambda: 1)
        assert engine_for(None, requests) is one_by_one

    def test_what_is_skipped_is_no_work(self, requests: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "available", lambda: 4)
        Path(requests[0].path).write_text("#" * (DEFAULT_LIMITS.max_file_size + 1))
        assert engine_for(None, requests) is one_by_one

    @pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5", "", "²"])
    def test_another_word_than_a_number_or_auto_is_wrong_use(self, project: Path, lint: Lint, jobs: str) -> None:
        done = lint("--jobs", jobs, ".")
        assert done.returncode == 2
        assert f"`{jobs}` is neither a number of processes nor `auto`" in done.stderr
