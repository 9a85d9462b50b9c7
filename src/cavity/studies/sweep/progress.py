"""How far a sweep is and how long it will take: bars in a terminal, a line for each trial everywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import TaskID

from cavity.studies.sweep.folder import number
from cavity.studies.sweep.table import shown_values
from cavity.training.display import bars, duration, say

if TYPE_CHECKING:
    from cavity.studies.sweep.plan import Plan
    from cavity.studies.sweep.study import Trial


class Display:
    """A listener of a sweep. The time left follows from what a trial has taken so far, pruned or not."""

    def __init__(self, console: Console, plan: Plan, done: int) -> None:
        self.console, self.plan = console, plan
        self.total, self.done_before, self.done = plan.trials, done, done
        self.started = time.monotonic()
        self.shares: dict[int, float] = {}
        self.tasks: dict[int, TaskID] = {}
        self.bars = bars(console)

    @contextmanager
    def shown(self) -> Iterator[Display]:
        with self.bars:
            self.whole = self.bars.add_task("trials", total=self.total, completed=self.done, note="")
            yield self

    def begin(self, number: int, values: dict[str, Any]) -> None:
        self.shares[number] = 0.0
        self.tasks[number] = self.bars.add_task(f"trial {number}", total=1.0, note=shown_values(values))

    def advance(self, number: int, epoch: int) -> None:
        self.shares[number] = epoch / self.plan.config.epochs
        self.bars.update(self.tasks[number], completed=self.shares[number])
        self._update()

    def end(self, trial: Trial, best: Trial | None) -> None:
        self.done += 1
        self.shares.pop(trial.number)
        self.bars.remove_task(self.tasks.pop(trial.number))
        self._update()
        self.say("  ".join(part for part in (self._line(trial), self._best(trial, best), self._left()) if part))

    def say(self, text: str) -> None:
        say(self.console, text)

    def _line(self, trial: Trial) -> str:
        words = {
            "complete": number(self.plan, trial.value),
            "pruned": f"{number(self.plan, trial.value)}, pruned after {max(trial.curve, default=0)} epochs",
            "diverged": f"diverged: {trial.reason}",
            "failed": f"FAILED: {trial.reason}",
        }
        return f"trial {trial.number} ({self.done}/{self.total})  {words[trial.state]}  {shown_values(trial.values)}"

    def _best(self, trial: Trial, best: Trial | None) -> str:
        if best is None:
            return ""
        return "best so far" if best.number == trial.number else f"best {number(self.plan, best.value)}"

    def _update(self) -> None:
        self.bars.update(self.whole, completed=self.done + sum(self.shares.values()), note=self._left())

    def _left(self) -> str:
        """The time left by the trials that are over, or by the epochs of the first while none is."""
        over = self.done - self.done_before
        gained = over + sum(self.shares.values())
        left = self.total - self.done - sum(self.shares.values())
        if gained <= 0:
            return ""
        return f"{duration((time.monotonic() - self.started) / gained * max(left, 0.0))} left"
