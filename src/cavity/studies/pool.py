"""A pool of child processes for sweeps and experiments, as the one process sees them that hands out the work.

    with pool("cavity.studies.sweep.worker", jobs=2) as workers:
        worker = workers.start(Path("errors.txt"))
        worker.send({"trial": 1})
        worker, message = workers.next_message()

The child's side is ``cavity.util.processes.Parent``. No child outlives the block, nor this process, however it ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from cavity.util.files import append_line
from cavity.util.processes import interruptible, threads_each
from cavity.util.regular import require_own
from cavity.util.text import shown

#: How many of a killed child's last lines are quoted. Of a traceback, the last line says it all.
QUOTED = 3


class Worker:
    """One child. Its messages go to ``told`` as (worker, message), its end as (worker, None), its stderr to ``errors``,
    a file that is there only if something was said."""

    def __init__(self, command: list[str], threads: int, errors: Path, told: SimpleQueue[tuple[Worker, Any]]) -> None:
        self.errors, self.told = errors, told
        self.last_lines: deque[str] = deque(maxlen=QUOTED)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
        self.listeners = [threading.Thread(target=target, daemon=True) for target in (self._keep_errors, self._listen)]
        for listener in self.listeners:
            listener.start()

    def _keep_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.last_lines.append(line.strip())
            # Whatever the disk says, the child must not wait for somebody to read what it said.
            with suppress(OSError):
                append_line(self.errors, shown(line.rstrip("\n")))

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.put((self, json.loads(line)))
        self.process.wait()
        # Its own children may still hold its stderr open.
        self.listeners[0].join(timeout=1.0)
        self.told.put((self, None))

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        # If the child has ended, its listener tells.
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def why_ended(self) -> str:
        """Its exit status and the last lines it said on stderr."""
        status = self.process.wait()
        said = [line for line in self.last_lines if line][-QUOTED if status < 0 else -1 :]
        return f"its process ended with status {status}" + (f": {' | '.join(said)}" if said else "")

    def end(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()
        for listener in self.listeners:
            listener.join(timeout=1.0)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                assert stream is not None
                stream.close()


class Pool:
    """Children that run ``python -m module``, each with ``threads`` threads."""

    def __init__(self, module: str, threads: int, interrupted: threading.Event) -> None:
        self.module, self.threads, self.interrupted = module, threads, interrupted
        self.told: SimpleQueue[tuple[Worker, Any]] = SimpleQueue()
        self.alive: list[Worker] = []

    def start(self, errors: Path, *arguments: str) -> Worker:
        """A new child; what it says on stderr is added to ``errors``."""
        require_own(errors)
        worker = Worker([sys.executable, "-m", self.module, *arguments], self.threads, errors, self.told)
        self.alive.append(worker)
        return worker

    def next_message(self) -> tuple[Worker, Any]:
        """Wait for a child to say something; None is its end. Ctrl-C is a KeyboardInterrupt here."""
        while True:
            if self.interrupted.is_set():
                raise KeyboardInterrupt
            # A wait without end would keep signals from being heard.
            with suppress(Empty):
                worker, message = self.told.get(timeout=1.0)
                if message is None:
                    self.alive.remove(worker)
                    worker.end()
                return worker, message


@contextmanager
def pool(module: str, jobs: int, threads: int | None = None) -> Iterator[Pool]:
    """Room for ``jobs`` children of ``threads`` threads, or an equal share of the cores; all end with the block."""
    with interruptible() as interrupted:
        made = Pool(module, threads or threads_each(jobs), interrupted)
        try:
            yield made
        finally:
            for worker in made.alive:
                worker.end()
