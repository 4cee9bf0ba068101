"""What a test loads into the workers of a cluster: files of certain names end the process that examines them."""

from __future__ import annotations

import os
import signal

from distributed import Worker, WorkerPlugin

from torchcopylint.project import cluster


class Poison(WorkerPlugin):
    """On every worker, and on those that take the place of lost ones."""

    def setup(self, worker: Worker) -> None:
        examine = cluster.examine_bytes

        def examine_bytes(data: bytes, request: object, pages: object, projects: object) -> object:
            if request.filename == "deadly.py":
                os.kill(os.getpid(), signal.SIGKILL)
            return examine(data, request, pages, projects)

        cluster.examine_bytes = examine_bytes
