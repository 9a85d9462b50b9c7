"""How far a grid is and how long it will take: bars in a terminal, a line for each event elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import TaskID

from cavity.studies.experiments.experiment import Cell
from cavity.training.display import bars, duration, say

#: Elsewhere than in a terminal, seconds between two lines about a running cell.
QUIET_SECONDS = 60.0


class Display:
    """Told of cells by several threads. Work is counted in epochs of the cells, whatever an epoch costs."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.lock = threading.Lock()
        self.bars = bars(console)

    @contextmanager
    def over(self, cells: Sequence[Cell], total: int) -> Iterator[None]:
        """While these cells are computed, of ``total`` with the finished ones."""
        self.work = {cell.key: float(cell.setup.epochs) for cell in cells}
        self.left = sum(self.work.values())
        self.gained, self.started = 0.0, time.monotonic()
        self.share: dict[str, float] = {}
        self.tasks: dict[str, TaskID] = {}
        self.said: dict[str, float] = {}
        self.say(f"{total} cells, {total - len(cells)} finished before")
        with self.bars:
            self.whole = self.bars.add_task("all cells", total=self.left or 1.0, note="")
            yield

    def say(self, text: str) -> None:
        say(self.console, text)

    def begin(self, cell: Cell) -> None:
        with self.lock:
            self.tasks[cell.key] = self.bars.add_task(cell.label, total=1.0, note=f"seed {cell.setup.seed}")
            self.said[cell.key] = time.monotonic()
            if not self.console.is_terminal:
                self.say(f"begin {cell.key}")

    def advance(self, cell: Cell, done: int, total: int) -> None:
        """``done`` of ``total`` epochs; what an interrupted cell had done before takes no time now."""
        with self.lock:
            share, before = done / total, self.share.get(cell.key)
            self.share[cell.key] = share
            gain = share - (before if before is not None else (done - 1) / total)
            self.gained += gain * self.work[cell.key]
            self.left -= (share - (before or 0.0)) * self.work[cell.key]
            self.bars.update(self.tasks[cell.key], completed=share, note=f"epoch {done}/{total}")
            self.bars.update(
                self.whole, advance=(share - (before or 0.0)) * self.work[cell.key], note=self._time_left()
            )
            now = time.monotonic()
            if not self.console.is_terminal and now - self.said[cell.key] >= QUIET_SECONDS:
                self.said[cell.key] = now
                self.say(f"epoch {done}/{total} of {cell.key}, {self._time_left()}")

    def _time_left(self) -> str:
        if self.gained <= 0:
            return ""
        return f"{duration((time.monotonic() - self.started) / self.gained * max(self.left, 0.0))} left"

    def end(self, cell: Cell) -> None:
        self._close(cell)
        self.say(f"done  {cell.key}  {self._time_left()}".rstrip())

    def fail(self, cell: Cell, reason: str) -> None:
        self._close(cell)
        self.say(f"FAILED  {cell.key}: {reason}")

    def _close(self, cell: Cell) -> None:
        """What a cell has not counted by epochs counts now."""
        with self.lock:
            rest = (1.0 - self.share.get(cell.key, 0.0)) * self.work[cell.key]
            self.gained += rest
            self.left -= rest
            self.bars.update(self.whole, advance=rest)
            self.bars.remove_task(self.tasks.pop(cell.key))
