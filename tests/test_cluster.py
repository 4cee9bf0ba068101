"""A real Dask cluster of several processes, on this machine: the same findings, whatever becomes of its workers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_poison import Poison
from conftest import Lint, write
from distributed import Client, LocalCluster

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.pages import load_pages
from torchcopylint.project import cluster as cluster_module
from torchcopylint.project.cluster import Cluster, examine_batch
from torchcopylint.project.engine import EngineError, one_by_one
from torchcopylint.project.examined import Examined, Outcome, Request

TESTS = Path(__file__).resolve().parent
FAULT = "import torch\nw = torch.ones(2, requires_grad=True)\nw.data.zero_()\n"


@contextlib.contextmanager
def running(workers: int) -> Iterator[LocalCluster]:
    """A cluster of worker processes that find this package, and these tests, wherever they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))
        with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0") as local:
            yield local


@pytest.fixture(scope="module")
def local() -> Iterator[LocalCluster]:
    with running(3) as local:
        yield local


@pytest.fixture
def requests(tmp_path: Path) -> list[Request]:
    for number in range(24):
        (tmp_path / f"f{number}.py").write_text(f"# {number}\n" + FAULT * (number % 3))
    (tmp_path / "broken.py").write_text("x = (\n")
    names = [*(f"f{number}.py" for number in range(24)), "absent.py", "broken.py"]
    return [Request(str(tmp_path / name), name, DEFAULT_LIMITS, str(tmp_path)) for name in names]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "BATCH", 300)


def alone(requests: list[Request]) -> dict[int, Examined]:
    return {number: seen.examined for number, seen in one_by_one(requests, load_pages(), lambda path: None)}


@pytest.mark.usefixtures("small_batches")
def test_a_worker_that_is_killed_in_the_middle_costs_nothing(local: LocalCluster, requests: list[Request]) -> None:
    expected = alone(requests)
    killed = []

    def kill(path: str) -> None:
        if not killed:
            with Client(local.scheduler_address, set_as_default=False) as client:
                pids = client.run(os.getpid)
            killed.append(min(pids.values()))
            os.kill(killed[0], signal.SIGKILL)

    found = {number: seen.examined for number, seen in Cluster(local.scheduler_address)(requests, load_pages(), kill)}
    assert killed
    assert found == expected
    assert sum(len(examined.findings) for examined in found.values()) == 26


def test_a_file_that_ends_every_worker_is_named_and_the_rest_is_examined(
    requests: list[Request], tmp_path: Path
) -> None:
    (tmp_path / "deadly.py").write_text("x = 1\n")
    requests.insert(7, Request(str(tmp_path / "deadly.py"), "deadly.py", DEFAULT_LIMITS, str(tmp_path)))
    with running(2) as local:
        # Once is enough, since each loss takes seconds.
        local.scheduler.allowed_failures = 0
        with Client(local.scheduler_address, set_as_default=False) as client:
            client.register_plugin(Poison(), name="poison")
        engine = Cluster(local.scheduler_address)
        found = {n: seen.examined for n, seen in engine(requests, load_pages(), lambda path: None)}
    deadly = found.pop(7)
    assert deadly.outcome is Outcome.FAILED
    (message,) = [finding.message for finding in deadly.findings]
    assert message.endswith("the process that checked the file died (the cluster lost its workers over it)")
    expected = alone([request for request in requests if request.filename != "deadly.py"])
    assert [found[number] for number in sorted(found)] == list(expected.values())


def test_a_run_prints_what_a_local_run_prints(local: LocalCluster, project: Path, lint: Lint) -> None:
    write(project, a_py=FAULT, b_py="x = (\n", c_py="import torch\n")
    options = ("--output-format", "json", "--statistics")
    here = lint(*options, ".")
    there = lint("--scheduler", local.scheduler_address, *options, ".")
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.stdout.count('"TCL103"') == 1


def test_what_takes_several_files_to_see_is_found_there_too(
    local: LocalCluster, project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers through several files, a package, a circle and a notebook; all in one task, and each file in its own."""
    from test_ways import NOTEBOOK, TRAIN, UTILS

    (project / "lib").mkdir()
    files = {
        "utils": "from deep import touch\n",
        "deep": UTILS,
        "train": TRAIN,
        "again": TRAIN.replace("utils", "lib"),
        "lib/__init__": "from .one import f as touch\n",
        "lib/one": "from lib import two\n\n\ndef f(x):\n    two.g(x)\n\n\ndef back(x):\n    return x\n",
        "lib/two": "from lib.one import back\nfrom deep import touch\n\n\ndef g(x):\n    touch(back(x))\n",
    }
    for name, text in files.items():
        (project / f"{name}.py").write_text(text)
    (project / "study.ipynb").write_text(json.dumps(NOTEBOOK))
    options = ("--output-format", "json", "--statistics", ".")
    here = lint(*options)
    found = [(finding["filename"], finding["code"]) for finding in json.loads(here.stdout)]
    assert ("train.py", "TCL501") in found
    assert ("study.ipynb", "TCL501") in found
    for cache in ("", "1"):
        there = lint(
            "--scheduler",
            local.scheduler_address,
            *options,
            TORCHCOPYLINT_NO_CACHE=cache,
            TORCHCOPYLINT_CACHE_DIR=str(project.parent / "cache"),
        )
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    requests = [Request(str(project / f"{name}.py"), f"{name}.py", DEFAULT_LIMITS, str(project)) for name in files]
    expected = {number: examined.findings for number, examined in alone(requests).items()}
    monkeypatch.setattr(cluster_module, "BATCH", 1)
    engine = Cluster(local.scheduler_address)
    single = {n: seen.examined.findings for n, seen in engine(requests, load_pages(), lambda path: None)}
    assert single == expected
    assert sum(len(findings) for findings in expected.values()) >= 1


def test_what_a_cluster_told_is_remembered_with_what_it_depends_on(
    local: LocalCluster, project: Path, lint: Lint
) -> None:
    from test_ways import HARMLESS, LINE, TRAIN, UTILS

    for name, text in {"utils": "from deep import touch\n", "deep": UTILS, "train": TRAIN}.items():
        (project / f"{name}.py").write_text(text)
    options = ("--output-format", "concise", "--cache-dir", "../cache", ".")
    assert LINE in lint("--scheduler", local.scheduler_address, *options, TORCHCOPYLINT_NO_CACHE="").stdout
    # What is known needs no cluster.
    assert LINE in lint("--scheduler", "tcp://127.0.0.1:1", *options, TORCHCOPYLINT_NO_CACHE="").stdout
    (project / "deep.py").write_text(HARMLESS)
    assert LINE not in lint("--scheduler", local.scheduler_address, *options, TORCHCOPYLINT_NO_CACHE="").stdout


def test_a_worker_with_another_linter_is_refused() -> None:
    with pytest.raises(EngineError, match=r"the workers have torchcopylint .*, and here it is another"):
        examine_batch([], "another")


def test_a_scheduler_that_is_none_is_an_error(project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, a_py="x = 1\n")
    done = lint("--scheduler", "tcp://127.0.0.1:1", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: no Dask scheduler answers at tcp://127.0.0.1:1")
    assert "Traceback" not in done.stderr


def test_without_dask_the_remedy_is_told(requests: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(cluster_module, "import_module", absent)
    with pytest.raises(EngineError, match=r"pip install 'torchcopylint\[dask\]'"):
        list(Cluster("tcp://127.0.0.1:1")(requests, load_pages(), lambda path: None))


@pytest.mark.parametrize("other", [("--jobs", "2", "."), ("-",)])
def test_what_the_cluster_does_not_do_is_wrong_use(project: Path, lint: Lint, other: tuple[str, ...]) -> None:
    done = lint("--scheduler", "tcp://127.0.0.1:1", *other)
    assert (done.returncode, done.stdout) == (2, "")
    assert "do not go together" in done.stderr
