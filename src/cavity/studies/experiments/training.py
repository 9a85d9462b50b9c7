"""Training of one cell that can be cut short anywhere: a checkpoint is left, and it goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from cavity.analysis.metrics import EpochRecord, measure, percent_wrong
from cavity.core.network import Network
from cavity.data import Dataset
from cavity.runs.checkpoint import SaveCheckpoint, load_checkpoint
from cavity.runs.folder import CHECKPOINT
from cavity.studies.experiments.setup import AnyTrainer, Setup, build, load
from cavity.training.callbacks import Callback

#: Told (epochs done, epochs in all) after each epoch.
Progress = Callable[[int, int], None]
#: What is kept of every epoch, and with how many digits after the point.
CURVES = {
    "train_error": 3,
    "test_error": 3,
    "train_error_bayes": 3,
    "test_error_bayes": 3,
    "test_nll": 5,
    "test_ece": 5,
    "seconds": 2,
}
LAYER_CURVES = ("polarization", "overlap")


class _Report(Callback):
    """Tells how far training is."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.total = progress, total

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        self.progress(record.epoch, self.total)


def fit(
    trainer: AnyTrainer,
    setup: Setup,
    tasks: Sequence[tuple[Tensor, Tensor]],
    validation: tuple[Tensor, Tensor],
    folder: Path,
    progress: Progress,
) -> None:
    """Train on each of ``tasks`` (x, y) for ``setup.epochs`` epochs, on from the checkpoint in ``folder``, if any.

    Epochs are counted through, so that the trainer's own count says where in the sequence it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CHECKPOINT
    if path.exists():
        load_checkpoint(path).restore(trainer.net, trainer)
    callbacks = [SaveCheckpoint(path), _Report(progress, setup.epochs * len(tasks))]
    for number, task in enumerate(tasks, start=1):
        trainer.fit(
            task, epochs=setup.epochs * number, validation=validation, batch_size=setup.batch_size, callbacks=callbacks
        )


def trained(setup: Setup, folder: Path, progress: Progress) -> tuple[AnyTrainer, Dataset]:
    """The trainer of a setup when its epochs are done, and its data."""
    dataset = load(setup)
    trainer = build(setup, dataset)
    train, test = (dataset.x_train, dataset.y_train), (dataset.x_test, dataset.y_test)
    fit(trainer, setup, [train], test, folder, progress)
    return trainer, dataset


def summary(trainer: AnyTrainer, dataset: Dataset) -> dict[str, Any]:
    """Curves over the epochs, the last values, and the errors on the whole training set at the end."""
    history = trainer.history
    curves: dict[str, Any] = {name: [_rounded(getattr(r, name), d) for r in history] for name, d in CURVES.items()}
    curves |= {name: [[round(v, 5) for v in getattr(r, name)] for r in history] for name in LAYER_CURVES}
    final = {name: curves[name][-1] for name in CURVES if name != "seconds"}
    final["train_error"], final["train_error_bayes"] = whole_errors(trainer, dataset.x_train, dataset.y_train)
    return {"final": final, "curves": curves}


def whole_errors(trainer: AnyTrainer, x: Tensor, y: Tensor) -> tuple[float, float | None]:
    """Point-wise and Bayesian error in percent on all of (x, y); None where there is no posterior."""
    net = trainer.net
    if isinstance(net, Network):
        measured = measure(net, x, y)
        return round(measured.error, 4), round(measured.error_bayes, 4)
    bayes = net.predict(x, "bayes") if net.bayesian else None
    return round(percent_wrong(net.predict(x), y), 4), None if bayes is None else round(percent_wrong(bayes, y), 4)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
