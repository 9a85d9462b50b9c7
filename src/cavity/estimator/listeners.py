"""Callbacks of a fit: keep the best state, show progress."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from cavity.core.channels import GaussianOutput
from cavity.training.callbacks import Callback, EarlyStop
from cavity.training.display import LiveDisplay, PlainDisplay, duration

if TYPE_CHECKING:
    from rich.console import Console

    from cavity.analysis.metrics import EpochRecord
    from cavity.core.network import Network
    from cavity.training.trainer import Trainer

#: Seconds before the time left is first shown, and between updates.
PATIENCE = 2.0


class KeepBest(EarlyStop):
    """Stops when the validation NLL has not improved for ``patience`` epochs; ``restore`` loads the best epoch."""

    state: dict[str, Any] | None = None
    noise: float | None = None

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        super().on_epoch(trainer, record)
        if self.best_epoch == record.epoch:
            self.state = copy.deepcopy(trainer.net.state_dict())
            self.noise = getattr(trainer.net.output, "noise", None)

    def restore(self, net: Network) -> None:
        """Give ``net`` the state, and the noise, of the best epoch."""
        if self.state is not None:
            net.load_state_dict(self.state)
            if isinstance(net.output, GaussianOutput) and self.noise is not None:
                net.output.noise = self.noise


class TellTimeLeft(Callback):
    """Prints after an epoch how long the rest will take, every few seconds."""

    def __init__(self, console: Console, epochs: int) -> None:
        self.console, self.epochs = console, epochs
        self.began = self.told = monotonic()

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        now, rest = monotonic(), self.epochs - record.epoch
        if rest and now - self.told >= PATIENCE:
            self.told = now
            self.console.print(f"{duration((now - self.began) / record.epoch * rest)} left")


@contextmanager
def display(verbose: bool, epochs: int, steps_per_epoch: int) -> Iterator[list[Callback]]:
    """Callbacks that show a live table in a terminal or notebook, or lines elsewhere; none unless ``verbose``."""
    if not verbose:
        yield []
        return
    from rich.console import Console

    console = Console()
    if console.is_terminal or console.is_jupyter:
        with LiveDisplay(console, epochs, steps_per_epoch) as live:
            yield [live]
    else:
        yield [PlainDisplay(console, epochs), TellTimeLeft(console, epochs)]
