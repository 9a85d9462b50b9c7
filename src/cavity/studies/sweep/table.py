"""A sweep in words: how far it is, a line for each trial, and the best of them in a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from cavity.studies.progress import JobBars
from cavity.studies.sweep.folder import Sweep
from cavity.studies.sweep.importance import Importance
from cavity.studies.sweep.plan import Plan
from cavity.studies.sweep.running import Listener
from cavity.studies.sweep.space import LISTED, in_words
from cavity.studies.sweep.study import Trial

#: Rows of the table.
SHOWN = 10
#: The paper's symbols, where there are any.
TITLES = {"rho": "ρ", "last_rho": "last ρ", "damping": "damping", "init": "ε (init)", "hidden": "hidden"}
TITLES |= {"batch_size": "batch size", "epochs": "epochs"}


def shown_value(name: str, value: Any) -> str:
    """A value of a trial with as many digits as matter: ρ as its distance from 1 has them."""
    if name in LISTED:
        return in_words(value)
    if name in ("rho", "last_rho"):
        digits = next((place for place in range(3, 8) if abs(value - 1) >= 10 ** (1 - place)), 8)
        return f"{value:.{digits}f}"
    return f"{value:.3f}" if name == "damping" else f"{value:.3g}"


def shown_values(values: dict[str, Any]) -> str:
    return ", ".join(f"{TITLES[name]} {shown_value(name, value)}" for name, value in values.items())


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Complete trials from the best to the worst, then pruned ones by how far they came, then the others."""

    def place(trial: Trial) -> tuple[int, int, float]:
        if trial.state == "complete" and trial.value is not None:
            return 0, 0, trial.value
        return (1 if trial.state == "pruned" else 2), -max(trial.curve, default=0), trial.value or 0.0

    return sorted((trial for trial in trials if trial.state != "open"), key=place)


def table(plan: Plan, trials: Sequence[Trial], rows: int = SHOWN) -> str:
    """The best trials and, if it is not among them, the first, which has the usual values."""
    # Where the epochs are searched, no trial is pruned, and what they came to is what they were given.
    came_to = [] if "epochs" in plan.space.search else ["epochs"]
    head = ["trial", plan.title, *(TITLES[n] for n in plan.space.search), *came_to, ""]
    order = ranked(trials)
    lines = [head]
    for trial in order[:rows] + [trial for trial in order[rows:] if trial.number == 0]:
        values = [shown_value(name, trial.values[name]) if trial.values else "" for name in plan.space.search]
        epochs = [str(max(trial.curve, default=0))] if came_to else []
        lines.append([str(trial.number), plan.shown(trial.value), *values, *epochs, _note(plan, trial)])
    lengths = [max(len(line[place]) for line in lines) for place in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(f"{cell:>{length}}" for cell, length in zip(line, lengths, strict=False)), line[-1]]).rstrip()
        for line in lines
    )


def _note(plan: Plan, trial: Trial) -> str:
    """What is to be said about a trial: its state unless it is complete, and whether it has the usual values."""
    state = "" if trial.state == "complete" else trial.state
    usual = plan.usual()
    is_usual = trial.number == 0 and all(axis.holds(usual[axis.name]) for axis in plan.axes)
    return ", ".join(word for word in (state, "the defaults" if is_usual else "") if word)


def summary(trials: Sequence[Trial]) -> str:
    """``40 trials: 22 complete, 18 pruned``."""
    ended = [trial.state for trial in trials if trial.state != "open"]
    counts = [(state, ended.count(state)) for state in ("complete", "pruned", "diverged", "failed")]
    return f"{len(ended)} trials: " + ", ".join(f"{count} {state}" for state, count in counts if count)


def mattered(found: Sequence[Importance]) -> str:
    """What the importances say, in a clause."""
    if not found:
        return "too few trials to tell what mattered"
    strong = ", ".join(f"{TITLES[item.name]} ({item.share:.0%})" for item in found if item.matters)
    weak = ", ".join(TITLES[item.name] for item in found if not item.matters)
    parts = {"what mattered": strong, "no more than chance": weak}
    return "; ".join(f"{title}: {names}" for title, names in parts.items() if names)


def described(sweep: Sweep) -> str:
    """A sweep in a line, before it begins."""
    plan, config = sweep.plan, sweep.plan.config
    ranges = ", ".join(f"{TITLES[axis.name]} {axis.span}" for axis in plan.axes)
    epochs = "" if "epochs" in plan.space.search else f"{config.epochs} epochs, "
    return (
        f"{Path(config.dataset).name}: {plan.sizes.train} samples to train on, {plan.sizes.validation} held out, "
        f"{config.algorithm}, {epochs}{plan.trials} trials over {ranges}, in {sweep.path}"
    )


class Display(Listener):
    """Shows a sweep of which ``done`` trials are over: bars in a terminal, a line for each trial everywhere."""

    def __init__(self, console: Console, plan: Plan, done: int) -> None:
        self.plan, self.done, self.bars = plan, done, JobBars(console)
        #: Epochs of the trials that have begun.
        self.epochs = dict[int, int]()

    def shown(self) -> AbstractContextManager[None]:
        return self.bars.shown("trials", self.plan.trials, self.done)

    def begin(self, number: int, values: dict[str, Any]) -> None:
        self.epochs[number] = values.get("epochs", self.plan.config.epochs)
        self.bars.begin(str(number), f"trial {number}", shown_values(values))

    def advance(self, number: int, epoch: int) -> None:
        self.bars.advance(str(number), epoch / self.epochs[number])

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
