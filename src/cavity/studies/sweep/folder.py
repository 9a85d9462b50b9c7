"""A sweep's folder: ``sweep.toml`` is what was asked for, ``sweep.db`` has all trials, ``best.toml`` the best one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.studies.sweep.plan import Plan
from cavity.util.files import write_whole

if TYPE_CHECKING:
    from cavity.runs.config import Config
    from cavity.studies.sweep.study import Trial

PLAN, DATABASE, BEST, ERRORS = "sweep.toml", "sweep.db", "best.toml", "errors.txt"
#: The stem of the picture's two files.
PICTURE = "sweep"


@dataclass(frozen=True)
class Sweep:
    """A sweep in a folder, finished or not."""

    path: Path
    plan: Plan

    @property
    def trials(self) -> list[Trial]:
        """All trials so far in the order they began; one that was cut short is there only once it has begun again."""
        from cavity.studies.sweep.study import open_study

        if not (self.path / DATABASE).exists():
            return []
        with open_study(self.path / DATABASE, self.plan) as study:
            return study.trials()

    @property
    def best(self) -> Trial:
        """The complete trial with the smallest objective; ValueError where none is complete."""
        found = best(self.trials)
        if found is None:
            raise ValueError(f"{self.path} has no complete trial yet: go on with cavity sweep --resume {self.path}")
        return found

    @property
    def best_config(self) -> Config:
        """What trains the best trial's network on the whole training set: the content of ``best.toml``."""
        return self.plan.transferred(self.best.values)

    def write_plan(self) -> None:
        write_whole(self.path / PLAN, self.plan.to_toml().encode())

    def write_best(self, trial: Trial) -> None:
        """Write ``best.toml``, ready for ``cavity train --config``."""
        import tomli_w

        plan = self.plan
        text = (
            f"# The best trial of a sweep, number {trial.number}: {plan.title} {plan.shown(trial.value)} on "
            f"{plan.judged_on}. On the whole training set:\n"
            "# cavity train --config <this file> --out <a new folder>\n"
        )
        if "rho" in plan.space.search:
            text += (
                "# rho - 1 is smaller than in the trial as there are more mini-batches: their product is the same.\n"
            )
        write_whole(self.path / BEST, (text + tomli_w.dumps(plan.transferred(trial.values).as_dict())).encode())


def best(trials: list[Trial]) -> Trial | None:
    """The first of the complete trials with the smallest objective."""
    complete = [trial for trial in trials if trial.state == "complete" and trial.value is not None]
    return min(complete, key=lambda trial: trial.value or 0.0, default=None)


def open_sweep(path: str | os.PathLike[str]) -> Sweep:
    """The sweep in a folder; FileNotFoundError where there is none."""
    folder = Path(path)
    if not (folder / PLAN).is_file():
        what = f"has no {PLAN}, so it is not a sweep" if folder.is_dir() else "is not a folder"
        raise FileNotFoundError(f"{folder} {what}; a sweep is the folder that cavity sweep --out wrote")
    return Sweep(folder, Plan.from_toml(folder / PLAN))
