"""How far a sweep is: bars in a terminal, a line for each trial everywhere."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cavity.studies.progress import JobBars
from cavity.studies.sweep.running import Listener
from cavity.studies.sweep.table import shown_values

if TYPE_CHECKING:
    from cavity.studies.sweep.plan import Plan
    from cavity.studies.sweep.study import Trial


class Display(Listener):
    """Shows a sweep of which ``done`` trials are over."""

    def __init__(self, console: Console, plan: Plan, done: int) -> None:
        self.plan, self.done, self.bars = plan, done, JobBars(console)

    def shown(self) -> AbstractContextManager[None]:
        return self.bars.shown("trials", self.plan.trials, self.done)

    def begin(self, number: int, values: dict[str, Any]) -> None:
        self.bars.begin(str(number), f"trial {number}", shown_values(values))

    def advance(self, number: int, epoch: int) -> None:
        self.bars.advance(str(number), epoch / self.plan.config.epochs)

    def end(self, trial: Trial, best: Trial | None) -> None:
        self.done += 1
        self.bars.end(str(trial.number))
        result = self.plan.shown(trial.value)
        words = {
            "complete": result,
            "pruned": f"{result}, pruned after {max(trial.curve, default=0)} epochs",
            "diverged": f"diverged: {trial.reason}",
            "failed": f"FAILED: {trial.reason}",
        }
        parts = [f"trial {trial.number} ({self.done}/{self.plan.trials})", words[trial.state]]
        parts.append(shown_values(trial.values))
        if best is not None:
            parts.append("best so far" if best.number == trial.number else f"best {self.plan.shown(best.value)}")
        self.bars.say("  ".join(part for part in (*parts, self.bars.left()) if part))
