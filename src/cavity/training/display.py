"""What a training run shows: a live panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cavity.core.channels import GaussianOutput
from cavity.training.callbacks import Callback
from cavity.training.epochs_table import RUNNING, clamps, fitting, head, joined, number, numbers, percent, row
from cavity.util.text import shown_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from cavity.analysis.metrics import EpochRecord
    from cavity.core.pasp import StepInfo
    from cavity.training.epochs_table import Column
    from cavity.training.trainer import Trainer

#: Seconds between two pictures: often enough to look alive, and less than a hundredth of the time.
REFRESH = 0.5
#: One mini-batch in this many counts for the running training error.
COUNTED = 4
#: Width of the progress bar, and below this many columns that of a shorter one.
BAR, SHORT_BAR, WIDE = 20, 10, 80
#: Seconds of the past that the time left is estimated from: an epoch may take minutes.
LOOK_BACK = 3600.0


def error(trainer: Trainer, value: float | None) -> str:
    """An error in percent; of numbers, in standard deviations of the labels."""
    return number(value, 3) if isinstance(trainer.net.output, GaussianOutput) else percent(value)


def duration(seconds: float) -> str:
    """``1:02:03``, or ``2:03`` below an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def bars(console: Console) -> Progress:
    """Bars with the time left and a note each, in a terminal alone."""
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
    columns = texts[0], BarColumn(30), TimeRemainingColumn(compact=True), texts[1]
    return Progress(*columns, console=console, disable=not console.is_terminal, speed_estimate_period=LOOK_BACK)


def say(console: Console, text: str) -> None:
    """Text as it is: names in it are not to be taken for markup, nor for commands to the terminal."""
    console.print(shown_lines(text), soft_wrap=True, markup=False, highlight=False)


class RunningError:
    """How many samples of the current epoch were predicted wrongly before they were learnt, by every few mini-batches:
    training has made the prediction anyway."""

    def __init__(self) -> None:
        self.seen = 0
        self.wrong: Tensor | None = None

    def add(self, trainer: Trainer, info: StepInfo) -> None:
        """Count the mini-batch if it is its turn; nothing waits for the device."""
        if trainer.batch == 1:
            self.seen, self.wrong = 0, None
        if trainer.batch % COUNTED != 1 or isinstance(trainer.net.output, GaussianOutput):
            return
        decided = trainer.net.output.predict(info.output.mean)
        wrong = (decided != info.labels.reshape(decided.shape)).sum()
        self.seen += decided.numel()
        self.wrong = wrong if self.wrong is None else self.wrong + wrong

    def percent(self) -> float | None:
        return None if self.wrong is None else 100 * float(self.wrong) / self.seen

    def words(self) -> str:
        return f"{RUNNING} {percent(self.percent())}"


class PlainDisplay(Callback, AbstractContextManager["PlainDisplay"]):
    """One line for each epoch."""

    def __init__(self, console: Console, epochs: int) -> None:
        self.console, self.epochs = console, epochs
        self.running = RunningError()

    def __exit__(self, *exception: object) -> None:
        """Nothing is left to clear away."""

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        self.running.add(trainer, info)

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        errors = [
            f"train {error(trainer, record.train_error)} (Bayes {error(trainer, record.train_error_bayes)})",
            f"test {error(trainer, record.test_error)} (Bayes {error(trainer, record.test_error_bayes)})",
        ]
        parts = [
            f"epoch {record.epoch}/{self.epochs}",
            *(errors if trainer.measures else [self.running.words()]),
            f"polarization {numbers(record.polarization)}",
            *clamps(record),
            f"{record.seconds:.1f} s",
        ]
        self.console.print("  ".join(parts), soft_wrap=True)


class LiveDisplay(Callback, AbstractContextManager["LiveDisplay"]):
    """A table of the epochs' errors that grows, and below it the progress of all steps with the time left, both as wide
    as the terminal."""

    def __init__(self, console: Console, epochs: int, steps_per_epoch: int) -> None:
        self.epochs, self.steps_per_epoch = epochs, steps_per_epoch
        self.console, self.running = console, RunningError()
        self.bar = BAR if console.width >= WIDE else SHORT_BAR
        self.progress = Progress(
            BarColumn(self.bar),
            TextColumn("{task.description}"),
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            speed_estimate_period=LOOK_BACK,
        )
        self.task = self.progress.add_task("", total=epochs * steps_per_epoch)
        self.drawn = 0.0

    def __enter__(self) -> LiveDisplay:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        now = time.monotonic()
        self.running.add(trainer, info)
        if self.drawn == 0.0:
            columns, width = self._columns(trainer)
            rows = [row(columns, record, width) for record in trainer.history]
            self.console.print("\n".join([head(columns), *rows]), soft_wrap=True)
        if now - self.drawn >= REFRESH:
            self.drawn = now
            self._draw(trainer, info.polarization.tolist())

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        columns, width = self._columns(trainer)
        self.console.print(row(columns, record, width, self.running.percent()), soft_wrap=True)
        self._draw(trainer, record.polarization)

    def _columns(self, trainer: Trainer) -> tuple[list[Column], int]:
        """The columns of the table and the letters of a line; the window may have changed its size."""
        width = self.console.width
        return fitting(width, len(trainer.net.layers)), width

    def _draw(self, trainer: Trainer, polarization: Sequence[float]) -> None:
        self.progress.update(self.task, completed=trainer.steps)
        (task,) = self.progress.tasks
        left = "…" if task.time_remaining is None else duration(task.time_remaining)
        parts = (
            f"step {trainer.steps}/{self.epochs * self.steps_per_epoch}",
            f"{left} left",
            self.running.words(),
            f"polarization {numbers(polarization)}",
        )
        words = joined(parts, (1, 2, 0, 3), self.console.width - self.bar - 1)
        self.progress.update(self.task, description=words, refresh=True)
