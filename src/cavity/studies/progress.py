"""How far many jobs are and how long they will take: one bar for all of them, and one for each that is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Task, TaskID

from cavity.training.display import bars, duration, say


class JobBars:
    """Bars in a terminal; elsewhere only what is said is shown. Jobs are known by a key each."""

    def __init__(self, console: Console) -> None:
        self.console, self.bars = console, bars(console)
        self.jobs: dict[str, TaskID] = {}

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
        self.jobs[key] = self.bars.add_task(label, total=1.0, note=note, work=work)

    def advance(self, key: str, share: float, note: str | None = None, resumed: float = 0.0) -> None:
        """``share`` of the job is done. What was ``resumed`` takes no time now: it leaves the total."""
        job, whole = self._task(self.jobs[key]), self._task(self.whole)
        if job.completed == 0.0 < resumed:
            self.bars.update(whole.id, total=(whole.total or 0.0) - resumed * job.fields["work"])
            job.completed = resumed
        self.bars.update(whole.id, advance=(share - job.completed) * job.fields["work"])
        self.bars.update(job.id, completed=share, note=job.fields["note"] if note is None else note)

    def end(self, key: str) -> None:
        """The job is over; what it has not counted so far counts now."""
        job = self._task(self.jobs.pop(key))
        self.bars.update(self.whole, advance=(1.0 - job.completed) * job.fields["work"])
        self.bars.remove_task(job.id)

    def left(self) -> str:
        """The time left in words; nothing while it is not known."""
        seconds = self._task(self.whole).time_remaining
        return "" if seconds is None else f"{duration(seconds)} left"

    def _task(self, wanted: TaskID) -> Task:
        return next(task for task in self.bars.tasks if task.id == wanted)
