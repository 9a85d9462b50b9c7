"""Runs the cells of a grid: finished ones are skipped, interrupted ones go on, several run at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cavity.studies.experiments import EXPERIMENTS
from cavity.studies.experiments.cell import compute
from cavity.studies.experiments.experiment import Cell, Experiment, find
from cavity.studies.experiments.progress import Display
from cavity.studies.experiments.store import Store
from cavity.studies.pool import Pool, Worker, pool
from cavity.util.processes import interruptible

#: What a cell that failed said, in its work folder.
ERRORS = "errors.txt"


@dataclass(frozen=True)
class Failure:
    """A cell that ended with an error; ``details`` is all that it said."""

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
        with pool("cavity.studies.experiments.cell", jobs) as workers:
            return _Grid(experiment.name, store, workers, display).run(cells, jobs)
    with interruptible():
        for cell in cells:
            display.begin(cell)
            compute(experiment, cell, store, partial(display.advance, cell))
            display.end(cell)
    return []


class _Grid:
    """Cells in processes of their own, a process each."""

    def __init__(self, name: str, store: Store, workers: Pool, display: Display) -> None:
        self.name, self.store, self.workers, self.display = name, store, workers, display
        self.running: dict[Worker, Cell] = {}

    def run(self, cells: Sequence[Cell], jobs: int) -> list[Failure]:
        waiting, failures = list(reversed(cells)), []
        while waiting or self.running:
            while waiting and len(self.running) < jobs:
                self._begin(waiting.pop())
            worker, message = self.workers.next_message()
            if message is not None:
                self.display.advance(self.running[worker], *message)
            elif (failure := self._end(worker)) is not None:
                failures.append(failure)
        return failures

    def _begin(self, cell: Cell) -> None:
        self.display.begin(cell)
        errors = self.store.work_folder(cell) / ERRORS
        errors.unlink(missing_ok=True)
        worker = self.workers.start(errors, self.name, str(self.store.folder))
        worker.send(cell.as_dict())
        self.running[worker] = cell

    def _end(self, worker: Worker) -> Failure | None:
        cell = self.running.pop(worker)
        if worker.process.returncode == 0:
            self.display.end(cell)
            return None
        failure = Failure(cell, worker.why_ended(), worker.errors)
        self.display.fail(cell, failure.reason)
        return failure
