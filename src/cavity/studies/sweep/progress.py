"""How far a sweep is: bars in a terminal, a line for each trial everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cavity.studies.progress import JobBars
from cavity.studies.sweep.folder import number
from cavity.studies.sweep.running import Listener
from cavity.studies.sweep.table import shown_values

if TYPE_CHECKING:
    from cavity.studies.sweep.plan import Plan
    from cavity.studies.sweep.study import Trial


class Display(Listener):
    """Shows a sweep of which ``done`` trials are over."""

    def __init__(self, console: Console, plan: Plan, done: int) -> None:
        self.plan, self.done, self.bars = plan, done, JobBars(console)

    @contextmanager
    def shown(self) -> Iterator[Display]:
        with self.bars.shown("trials", self.plan.trials, self.done):
            yield self

    def begin(self, number: int, values: dict[str, Any]) -> None:
        self.bars.begin(str(number), f"trial {number}", shown_values(values))

    def advance(self, number: int, epoch: int) -> None:
        self.bars.advance(str(number), epoch / self.plan.config.epochs)

    def end(self, trial: Trial, best: Trial | None) -> None:
        self.done += 1
        self.bars.end(str(trial.number))
        self.bars.say(
            "  ".join(part for part in (self._line(trial), self._best(trial, best), self.bars.left()) if part)
        )

    def _line(self, trial: Trial) -> str:
        words = {
            "complete": number(self.plan, trial.value),
            "pruned": f"{number(self.plan, trial.value)}, pruned after {max(trial.curve, default=0)} epochs",
            "diverged": f"diverged: {trial.reason}",
            "failed": f"FAILED: {trial.reason}",
        }
        over = f"({self.done}/{self.plan.trials})"
        return f"trial {trial.number} {over}  {words[trial.state]}  {shown_values(trial.values)}"

    def _best(self, trial: Trial, best: Trial | None) -> str:
        if best is None:
            return ""
        return "best so far" if best.number == trial.number else f"best {number(self.plan, best.value)}"
