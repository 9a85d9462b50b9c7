"""Runs the cells of a grid: finished ones are skipped, interrupted ones go on, several run at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cavity.studies.experiments import EXPERIMENTS
from cavity.studies.experiments.cell import compute
from cavity.studies.experiments.experiment import Cell, Experiment, find
from cavity.studies.experiments.progress import Display
from cavity.studies.experiments.store import Store
from cavity.util.processes import threads_each

#: What a cell that failed said, in its work folder.
ERRORS = "errors.txt"


@dataclass(frozen=True)
class Failure:
    """A cell that ended with an error, and the last line it said."""

    cell: Cell
    reason: str
    details: Path


def siblings(experiment: Experiment, store: Store) -> list[Store]:
    """The folders of the other experiments that make a record as this one does."""
    others = [find(name) for name in EXPERIMENTS if name != experiment.name]
    return [Store(store.folder.parent / other.name) for other in others if other.result is experiment.result]


def run_grid(experiment: Experiment, cells: Sequence[Cell], store: Store, jobs: int, display: Display) -> list[Failure]:
    """Compute what is not finished, ``jobs`` cells at a time (0: one by one in this process); returns what failed."""
    others = siblings(experiment, store)
    with store.only_writer():
        open_cells = [cell for cell in cells if not (store.is_finished(cell) or store.adopt(cell, others))]
        with display.over(open_cells, len(cells)):
            return _compute(experiment, open_cells, store, jobs, display)


def _compute(experiment: Experiment, cells: Sequence[Cell], store: Store, jobs: int, display: Display) -> list[Failure]:
    if jobs > 0:
        return _Processes(experiment.name, store, jobs, display).run(cells)
    for cell in cells:
        display.begin(cell)
        compute(experiment, cell, store, partial(display.advance, cell))
        display.end(cell)
    return []


class _Processes:
    """Cells in processes of their own, all ended when this one is."""

    def __init__(self, name: str, store: Store, jobs: int, display: Display) -> None:
        self.name, self.store, self.jobs, self.display = name, store, jobs, display
        self.running: set[subprocess.Popen[str]] = set()
        self.stopping = threading.Event()
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads_each(jobs))}

    def run(self, cells: Sequence[Cell]) -> list[Failure]:
        with ThreadPoolExecutor(self.jobs) as pool:
            pending = {pool.submit(self._one, cell) for cell in cells}
            failures = []
            try:
                while pending:
                    # A wait without end would keep signals from being heard.
                    done, pending = wait(pending, timeout=1.0, return_when=FIRST_COMPLETED)
                    failures += [failure for future in done if (failure := future.result()) is not None]
            except BaseException:
                self.stopping.set()
                for process in list(self.running):
                    process.terminate()
                raise
        return failures

    def _one(self, cell: Cell) -> Failure | None:
        if self.stopping.is_set():
            return None
        self.display.begin(cell)
        details = self.store.work_folder(cell) / ERRORS
        with details.open("w", encoding="utf-8") as errors:
            status = self._process(cell, errors.fileno())
        if status == 0:
            self.display.end(cell)
            return None
        if self.stopping.is_set():
            return None
        lines = details.read_text(encoding="utf-8").strip().splitlines()
        failure = Failure(cell, lines[-1] if lines else f"ended with status {status}", details)
        self.display.fail(cell, failure.reason)
        return failure

    def _process(self, cell: Cell, errors: int) -> int:
        command = [sys.executable, "-m", "cavity.studies.experiments.cell", self.name, str(self.store.folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=self.environment
        ) as process:
            self.running.add(process)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(cell.as_dict()) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    done, total = map(int, line.split())
                    self.display.advance(cell, done, total)
                return process.wait()
            finally:
                self.running.discard(process)
