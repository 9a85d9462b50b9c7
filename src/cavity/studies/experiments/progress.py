"""How far a grid is: bars in a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from cavity.studies.experiments.experiment import Cell
from cavity.studies.progress import JobBars

#: Elsewhere than in a terminal, seconds between two lines about a running cell.
QUIET_SECONDS = 60.0


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
