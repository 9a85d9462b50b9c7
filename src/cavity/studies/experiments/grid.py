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
from cavity.studies.pool import Worker, pool
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
            if jobs > 0:
                return _in_processes(experiment.name, open_cells, store, jobs, display)
            with interruptible():
                for cell in open_cells:
                    display.begin(cell)
                    compute(experiment, cell, store, partial(display.advance, cell))
                    display.end(cell)
            return []


def _in_processes(name: str, cells: Sequence[Cell], store: Store, jobs: int, display: Display) -> list[Failure]:
    """Each cell in a process of its own."""
    waiting, failures = list(reversed(cells)), []
    running: dict[Worker, Cell] = {}
    with pool("cavity.studies.experiments.cell", jobs) as workers:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop()
                display.begin(cell)
                errors = store.work_folder(cell) / ERRORS
                errors.unlink(missing_ok=True)
                worker = workers.start(errors, name, str(store.folder))
                worker.send(cell.as_dict())
                running[worker] = cell
            worker, message = workers.next_message()
            if message is not None:
                display.advance(running[worker], *message)
                continue
            cell = running.pop(worker)
            reason = "" if worker.process.returncode == 0 else worker.why_ended()
            display.end(cell, reason)
            if reason:
                failures.append(Failure(cell, reason, worker.errors))
    return failures
