"""A run with its data and its trainer: what happens while it trains, and how it goes on from its checkpoint."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cavity.runs.checkpoint import CheckpointError, SaveCheckpoint
from cavity.runs.folder import CHECKPOINT, CONFIG, Run
from cavity.runs.noise import following
from cavity.runs.origin import present, write_origin
from cavity.runs.task import Task
from cavity.training.augmentation import Augmentation
from cavity.training.callbacks import Callback, OnEpoch
from cavity.training.trainer import Trainer
from cavity.util.files import only_writer

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.core.pasp import StepInfo
    from cavity.data import Dataset

#: Steps between two occasions on which several processes agree whether to stop.
AGREE_EVERY = 16
#: Options that may change when a run is resumed: where training ends, and where its data lie.
FREE = ("epochs", "data_dir")


class StopWhen(Callback):
    """Ends training after the step at which ``asked`` says so; the run can be resumed from there.

    Several processes must stop at the same step: they ask each other at every few, and when an epoch ends.
    """

    def __init__(self, asked: Callable[[], bool]) -> None:
        self.asked = asked

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        if trainer.team is None or trainer.steps % AGREE_EVERY == 0:
            self.on_occasion(trainer)

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        self.on_occasion(trainer)

    def on_occasion(self, trainer: Trainer) -> None:
        asked = self.asked()
        trainer.stop = trainer.stop or (asked if trainer.team is None else trainer.team.any(asked))


@dataclass(frozen=True)
class Session:
    """A run with its data and its trainer, ready to train."""

    run: Run
    dataset: Dataset
    trainer: Trainer
    #: What is to be said about the data.
    notes: tuple[str, ...] = ()

    @property
    def steps_per_epoch(self) -> int:
        assert self.run.config.batch_size is not None
        return len(self.dataset.x_train) // self.run.config.batch_size

    @property
    def leads(self) -> bool:
        """Whether this process writes the run: the first, where there are several."""
        return self.trainer.team is None or self.trainer.team.leads

    def fit(self, callbacks: Sequence[Callback] = (), checkpoint_seconds: float = 30.0) -> Run:
        """Train from the last checkpoint, or from the beginning, until all epochs are done or a callback stops it."""
        config, data, trainer = self.run.config, self.dataset, self.trainer
        saver = SaveCheckpoint(
            self.run.path / CHECKPOINT, seconds=checkpoint_seconds, config=config.as_dict(), task=Task.of(data)
        )
        team, leads = trainer.team, self.leads
        with only_writer(self.run.path) if leads else contextlib.nullcontext(), threads(config.threads):
            self.restore()
            if team is not None:
                # Nobody writes before everybody has read.
                team.wait()
            if leads:
                self.run.write_config()
                self.run.write_records(trainer.history)
                if len(trainer.history) < config.epochs:
                    origin = present(len(trainer.history), str(trainer.net.device), torch.get_num_threads())
                    write_origin(self.run.path, origin)
                # The checkpoint comes first: metrics are never ahead of it.
                callbacks = (
                    *following(trainer.net, data.x_train, data.y_train),
                    saver,
                    OnEpoch(lambda _, record: self.run.append_record(record)),
                    *callbacks,
                )
            trainer.fit(
                (data.x_train, data.y_train),
                epochs=config.epochs,
                validation=(data.x_test, data.y_test),
                batch_size=config.batch_size,
                evaluate_every=config.evaluate_every or 1,
                callbacks=callbacks,
                augment=Augmentation.of(config.augment, data.image_shape),
            )
            if leads and trainer.batch > 0:
                saver.save(trainer)
        return self.run

    def restore(self) -> None:
        """Take the state of the run's checkpoint, if it has one; it must be of the same configuration."""
        # A link to nothing is not the beginning: what it led to may be on a disk that is not there now.
        if not os.path.lexists(self.run.path / CHECKPOINT):
            return
        checkpoint, config = self.run.load_checkpoint(), self.run.config
        for name in config.differing(checkpoint.config, but=FREE):
            theirs, ours = config.as_before(checkpoint.config).get(name), config.as_dict().get(name)
            raise CheckpointError(
                f"{checkpoint.path}: was trained with {name} = {theirs!r}, but {CONFIG} has {ours!r}: put it back, or "
                "start a new run"
            )
        checkpoint.restore(self.trainer.net, self.trainer)


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """That many threads in torch: sums are rounded in an order that depends on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
