"""An experiment from its grid to its table and plot: ``reproduce("sparsity", Request("laptop"), Path("results"))``.

Of the cells of a grid, finished ones are skipped, interrupted ones go on, and several run at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from cavity.studies.experiments import EXPERIMENTS, Request
from cavity.studies.experiments.cell import compute
from cavity.studies.experiments.experiment import Cell, Experiment, Store, find, longest
from cavity.studies.experiments.plots import save
from cavity.studies.experiments.table import groups
from cavity.studies.pool import Worker, pool
from cavity.studies.progress import JobBars
from cavity.training.display import say
from cavity.util.files import write_whole
from cavity.util.processes import interruptible
from cavity.util.regular import own_folder
from cavity.util.text import shown_lines

__all__ = ["Request", "reproduce"]

TABLE = "table.md"
#: What a cell that failed said, in its work folder.
ERRORS = "errors.txt"
#: Elsewhere than in a terminal, seconds between two lines about a running cell.
QUIET_SECONDS = 60.0


def reproduce(name: str, request: Request, out: Path, *, jobs: int = 1, tables_only: bool = False) -> list[Failure]:
    """Run one experiment, write its table and its plot, and return the cells that failed."""
    experiment, store, console = find(name), Store(out / name), Console()
    failures = []
    if not tables_only:
        say(console, f"{name}: {EXPERIMENTS[name]}")
        failures = run_grid(experiment, experiment.cells(request), store, jobs, Display(console))
    publish(experiment, store, request.scale, console)
    return failures


def publish(experiment: Experiment, store: Store, scale: str, console: Console) -> None:
    """Write ``table.md`` and the plot of the records there are of this scale."""
    records = longest(store.records(scale))
    if not records:
        say(console, f"{store.folder} has no finished cell of scale {scale}")
        return
    parts = {"": records} if experiment.datasets_beside else groups(records, lambda record: record.cell.setup.dataset)
    tables, paths = [], [own_folder(store.folder) / TABLE]
    for dataset, part in parts.items():
        head, tail = ("", "") if len(parts) == 1 else (f"Data: {dataset}.\n\n", f"-{dataset}")
        tables.append(head + experiment.table(part))
        paths += save(experiment.plot(part), store.folder / f"{experiment.name}{tail}")
    text = shown_lines("\n\n".join(tables))
    write_whole(paths[0], f"{text}\n".encode())
    say(console, text)
    say(console, "written: " + ", ".join(map(str, paths)))


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
            else:
                store.clear(cell)
    return failures


class Display:
    """Work is counted in epochs of the cells, whatever an epoch costs."""

    def __init__(self, console: Console) -> None:
        self.bars, self.plain = JobBars(console), not console.is_terminal
        self.said: dict[str, float] = {}

    @contextmanager
    def over(self, cells: Sequence[Cell], total: int) -> Iterator[None]:
        """While these cells are computed, of ``total`` with the finished ones."""
        self.bars.say(f"{total} cells, {total - len(cells)} finished before")
        with self.bars.shown("all cells", sum(cell.setup.epochs for cell in cells)):
            yield

    def begin(self, cell: Cell) -> None:
        self.bars.begin(cell.key, cell.label, f"seed {cell.setup.seed}", cell.setup.epochs)
        self.said[cell.key] = time.monotonic()
        if self.plain:
            self.bars.say(f"begin {cell.key}")

    def advance(self, cell: Cell, done: int, total: int) -> None:
        """``done`` of ``total`` epochs; the first that an interrupted cell tells of is one more than it had before."""
        self.bars.advance(cell.key, done / total, f"epoch {done}/{total}", resumed=(done - 1) / total)
        now = time.monotonic()
        if self.plain and now - self.said[cell.key] >= QUIET_SECONDS:
            self.said[cell.key] = now
            self.bars.say(f"epoch {done}/{total} of {cell.key}, {self.bars.left()}")

    def end(self, cell: Cell, failure: str = "") -> None:
        self.bars.end(cell.key)
        done = f"done  {cell.key}  {self.bars.left()}".rstrip()
        self.bars.say(f"FAILED  {cell.key}: {failure}" if failure else done)
