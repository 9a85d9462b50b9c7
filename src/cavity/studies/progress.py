"""How far many jobs are and how long they will take: one bar for all of them, and one for each that is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import Task, TaskID

from cavity.training.display import bars, duration, say


class _Job(NamedTuple):
    task: TaskID
    work: float
    share: float


class JobBars:
    """Bars in a terminal; elsewhere only what is said is shown. Jobs are known by a key each."""

    def __init__(self, console: Console) -> None:
        self.console, self.bars = console, bars(console)
        self.jobs: dict[str, _Job] = {}

    @contextmanager
    def shown(self, title: str, total: float, done: float = 0.0) -> Iterator[None]:
        """While the jobs run that make up ``total``, of which ``done`` was done before."""
        with self.bars:
            self.whole = self.bars.add_task(title, total=total or 1.0, note="")
            self.bars.update(self.whole, completed=done)
            yield

    def say(self, text: str) -> None:
        say(self.console, text)

    def begin(self, key: str, label: str, note: str, work: float = 1.0) -> None:
        """A job begins that counts as ``work`` of the total."""
        self.jobs[key] = _Job(self.bars.add_task(label, total=1.0, note=note), work, 0.0)

    def advance(self, key: str, share: float, note: str | None = None, resumed: float = 0.0) -> None:
        """``share`` of the job is done. What was ``resumed`` takes no time now: it leaves the total."""
        job = self.jobs[key]
        if job.share == 0.0 < resumed:
            self.bars.update(self.whole, total=(self._whole().total or 0.0) - resumed * job.work)
            job = job._replace(share=resumed)
        self.bars.update(job.task, completed=share)
        if note is not None:
            self.bars.update(job.task, note=note)
        self.bars.update(self.whole, advance=(share - job.share) * job.work)
        self.jobs[key] = job._replace(share=share)

    def end(self, key: str) -> None:
        """The job is over; what it has not counted so far counts now."""
        job = self.jobs.pop(key)
        self.bars.update(self.whole, advance=(1.0 - job.share) * job.work)
        self.bars.remove_task(job.task)

    def left(self) -> str:
        """The time left in words; nothing while it is not known."""
        seconds = self._whole().time_remaining
        return "" if seconds is None else f"{duration(seconds)} left"

    def _whole(self) -> Task:
        return next(task for task in self.bars.tasks if task.id == self.whole)
