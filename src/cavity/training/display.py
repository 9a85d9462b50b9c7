"""What a training run shows: a live panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cavity.core.channels import GaussianOutput
from cavity.training.callbacks import Callback
from cavity.util.text import shown_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from cavity.analysis.metrics import EpochRecord
    from cavity.core.pasp import StepInfo
    from cavity.training.trainer import Trainer

#: Seconds between two pictures: often enough to look alive, and less than a hundredth of the time.
REFRESH = 0.5
#: One mini-batch in so many counts for the error on the way.
COUNTED = 4
#: Width of the progress bar.
BAR = 20
#: Seconds of the past that the time left is estimated from: an epoch may take minutes.
LOOK_BACK = 3600.0


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} %"


def error(trainer: Trainer, value: float | None) -> str:
    """An error in percent; of numbers, in standard deviations of the labels."""
    return number(value, 3) if isinstance(trainer.net.output, GaussianOutput) else percent(value)


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def numbers(values: Sequence[float]) -> str:
    """Polarisations of the layers, from the first to the last."""
    return " ".join(f"{value:.3f}" for value in values)


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


def clamps(record: EpochRecord) -> list[str]:
    """How often a floor or the bound acted, in words; nothing if none did."""
    return [f"clamped {100 * record.clamped:.2g} %"] if record.clamped else []


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


class PlainDisplay(Callback):
    """One line for each epoch."""

    def __init__(self, console: Console, epochs: int) -> None:
        self.console, self.epochs = console, epochs
        self.running = RunningError()

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        self.running.add(trainer, info)

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        errors = [
            f"train {error(trainer, record.train_error)} (Bayes {error(trainer, record.train_error_bayes)})",
            f"test {error(trainer, record.test_error)} (Bayes {error(trainer, record.test_error_bayes)})",
        ]
        parts = [
            f"epoch {record.epoch}/{self.epochs}",
            *(errors if trainer.measures else [f"on the way {percent(self.running.percent())}"]),
            f"polarization {numbers(record.polarization)}",
            *clamps(record),
            f"{record.seconds:.1f} s",
        ]
        self.console.print("  ".join(parts), soft_wrap=True)


class LiveDisplay(Callback):
    """A table of the epochs' errors that grows, and below it the progress of all steps with the time left."""

    def __init__(self, console: Console, epochs: int, steps_per_epoch: int) -> None:
        self.epochs, self.steps_per_epoch = epochs, steps_per_epoch
        self.console, self.running = console, RunningError()
        self.progress = Progress(
            BarColumn(BAR),
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        now = time.monotonic()
        self.running.add(trainer, info)
        if self.drawn == 0.0:
            self.console.print("\n".join([HEAD, *map(row, trainer.history)]), soft_wrap=True)
        if now - self.drawn >= REFRESH:
            self.drawn = now
            self._draw(trainer, info.polarization.tolist())

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        self.console.print(row(record), soft_wrap=True)
        self._draw(trainer, record.polarization)

    def _draw(self, trainer: Trainer, polarization: Sequence[float]) -> None:
        self.progress.update(self.task, completed=trainer.steps)
        (task,) = self.progress.tasks
        left = "…" if task.time_remaining is None else duration(task.time_remaining)
        words = (
            f"step {trainer.steps}/{self.epochs * self.steps_per_epoch}, {left} left, "
            f"on the way {percent(self.running.percent())}, polarization {numbers(polarization)}"
        )
        self.progress.update(self.task, description=words, refresh=True)


HEAD = "epoch   train    test  train Bayes  test Bayes    NLL    ECE  seconds  polarization"


def row(record: EpochRecord) -> str:
    """Errors in percent, point-wise and Bayesian, calibration and polarisation of an epoch, below ``HEAD``."""
    cells = (
        f"{record.epoch:>5}",
        f"{number(record.train_error, 2):>7}",
        f"{number(record.test_error, 2):>7}",
        f"{number(record.train_error_bayes, 2):>12}",
        f"{number(record.test_error_bayes, 2):>11}",
        f"{number(record.test_nll, 3):>6}",
        f"{number(record.test_ece, 3):>6}",
        f"{record.seconds:>8.1f}",
        f" {numbers(record.polarization)}",
        *(f" {words}" for words in clamps(record)),
    )
    return " ".join(cells)
