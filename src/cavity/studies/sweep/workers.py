"""The processes that train the trials of a sweep, as the one process sees them that asks and keeps the answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from cavity.studies.sweep.worker import GO, STOP
from cavity.util.processes import threads_each

if TYPE_CHECKING:
    from cavity.runs.config import Config
    from cavity.studies.sweep.plan import Plan


class Worker:
    """One process; ``told`` receives (worker, message) for each of its messages, and (worker, None) when it ends."""

    def __init__(self, setup: dict[str, Any], threads: int, errors: int, told: SimpleQueue[Any]) -> None:
        command = [sys.executable, "-m", "cavity.studies.sweep.worker"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
        self.listener = threading.Thread(target=self._listen, args=(told,), daemon=True)
        self.listener.start()
        self._write(json.dumps(setup))

    def _listen(self, told: SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told.put((self, json.loads(line)))
        self.process.wait()
        told.put((self, None))

    def train(self, config: Config) -> None:
        self._write(json.dumps(config.as_dict()))

    def reply(self, *, go: bool) -> None:
        self._write(GO if go else STOP)

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        # Where it has ended, the listener tells so.
        with suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()
        self.listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class Workers:
    """``jobs`` processes with equal shares of the threads; what they say on stderr is added to ``errors``. Nobody waits
    for them once ``interrupted`` is set."""

    def __init__(self, plan: Plan, jobs: int, errors: int, interrupted: threading.Event) -> None:
        self.interrupted = interrupted
        self.setup = {"config": plan.config.as_dict(), "validation": plan.sizes.validation, "metric": plan.metric}
        self.threads, self.errors = plan.config.threads or threads_each(jobs), errors
        self.told: SimpleQueue[tuple[Worker, dict[str, Any] | None]] = SimpleQueue()
        self.alive: list[Worker] = []

    def start(self) -> Worker:
        worker = Worker(self.setup, self.threads, self.errors, self.told)
        self.alive.append(worker)
        return worker

    def end(self, worker: Worker) -> None:
        self.alive.remove(worker)
        worker.end()

    def next_message(self) -> tuple[Worker, dict[str, Any] | None]:
        """Wait for one of them to say something; None is its end."""
        while True:
            if self.interrupted.is_set():
                raise KeyboardInterrupt
            try:
                # A wait without end would keep signals from being heard.
                return self.told.get(timeout=1.0)
            except Empty:
                pass


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """An event that is set when Ctrl-C came. Python drops the KeyboardInterrupt if it comes in the middle of a
    destructor, of which a database has many; the event stays."""
    came = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield came
        return

    def remember(*_: object) -> None:
        came.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, remember)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def started(plan: Plan, jobs: int, errors: Path) -> Iterator[Workers]:
    """Workers that all end with the block; ``errors`` goes, too, if nothing was said."""
    with errors.open("a", encoding="utf-8") as stream, interrupts() as interrupted:
        workers = Workers(plan, jobs, stream.fileno(), interrupted)
        try:
            yield workers
        finally:
            for worker in list(workers.alive):
                workers.end(worker)
    if errors.stat().st_size == 0:
        errors.unlink()
