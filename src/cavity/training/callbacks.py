"""What a training run tells its listeners, and the listeners everyone needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from cavity.analysis.metrics import EpochRecord


class Callback:
    """A listener of ``fit``; write the methods you need. It may read everything and set ``trainer.stop = True``."""

    def on_fit_begin(self, trainer: Any) -> None:
        """Before the first mini-batch of a call of ``fit``."""

    def on_epoch_begin(self, trainer: Any) -> None:
        """Before the first mini-batch of each epoch, and of one that is gone on with."""

    def on_step(self, trainer: Any, info: Any) -> None:
        """After each mini-batch, with its diagnostics: a ``StepInfo``, or the loss of a baseline."""

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        """After each epoch, with its record."""

    def on_fit_end(self, trainer: Any) -> None:
        """When ``fit`` returns, not where it ends in an error."""


class OnEpoch(Callback):
    """Calls a function with (trainer, record) after each epoch, e.g. ``OnEpoch(lambda t, r: print(r))``."""

    def __init__(self, function: Callable[[Any, EpochRecord], None]) -> None:
        self.function = function

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        self.function(trainer, record)


class EarlyStop(Callback):
    """Stops when ``metric`` of the record has not gone down for ``patience`` epochs."""

    METRICS: ClassVar[tuple[str, ...]] = (
        "train_error",
        "test_error",
        "train_error_bayes",
        "test_error_bayes",
        "test_nll",
    )

    def __init__(self, metric: str = "test_error", patience: int = 10) -> None:
        if metric not in self.METRICS:
            raise ValueError(f"metric must be one of {', '.join(self.METRICS)}, got {metric!r}")
        if patience < 1:
            raise ValueError(f"patience must be >= 1 epochs, got {patience}")
        self.metric, self.patience = metric, patience
        self.best, self.best_epoch = float("inf"), 0

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        if not trainer.measures:
            return
        value = getattr(record, self.metric)
        if value is None:
            needed = "training data as tensors (x, y)" if self.metric.startswith("train") else "validation data"
            raise ValueError(f"early stopping on {self.metric} needs {needed}: pass them to fit")
        # All of the history, so that a resumed run goes on waiting where it was.
        for past in trainer.history:
            reached = getattr(past, self.metric)
            if reached is not None and reached < self.best:
                self.best, self.best_epoch = reached, past.epoch
        trainer.stop = trainer.stop or record.epoch - self.best_epoch >= self.patience
