"""How far a benchmark is and how long it will take, in a terminal."""

from __future__ import annotations

import time

from rich.progress import Progress

from cavity.training.display import duration


class Turns:
    """The bar of one batch size. The time left follows from the turns so far: all contenders take turns alike."""

    def __init__(self, shown: Progress, batch_size: int, total: int) -> None:
        self.shown, self.total = shown, total
        self.started = time.monotonic()
        self.task = shown.add_task(f"batch size {batch_size}", total=total, note="warming up")

    def __call__(self, done: int) -> None:
        """``done`` turns are over; 0 when the first begins."""
        if done == 0:
            self.started = time.monotonic()
            return
        left = (time.monotonic() - self.started) / done * (self.total - done)
        self.shown.update(self.task, completed=done, note=f"{duration(left)} left" if done < self.total else "")
