"""A trainer of samples that may count several times and may be sparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor

from cavity.analysis import metrics
from cavity.analysis.metrics import EpochRecord
from cavity.core.state import Rule
from cavity.estimator.samples import Samples
from cavity.training.batches import Batches, Pair
from cavity.training.callbacks import Callback
from cavity.training.plans import Place
from cavity.training.settings import require_visible
from cavity.training.trainer import BALANCE_SAMPLES, Trainer
from cavity.training.watch import levels, trouble


class SampleTrainer(Trainer):
    """``Trainer`` whose mini-batches say how often each of their samples counts."""

    #: Of the present mini-batch, (samples,); None: once.
    counts: Tensor | None = None

    def place(self, batch_size: int) -> Place:
        return super().place(batch_size if self.counts is None else max(1, round(float(self.counts.sum()))))

    def rules(self, place: Place) -> list[Rule]:
        rules = super().rules(place)
        return rules if self.counts is None else [rule._replace(counts=self.counts) for rule in rules]

    def fit_samples(
        self,
        samples: Samples,
        *,
        epochs: int,
        batch_size: int,
        validation: Samples | None = None,
        evaluate_every: int = 1,
        callbacks: Sequence[Callback] = (),
    ) -> list[EpochRecord]:
        """``fit`` for checked samples of the network's type, until ``epochs`` epochs are done in all."""
        source, sample = SampleBatches(samples, batch_size, self), samples.some(metrics.TRAIN_SAMPLES).dense()
        self._tune(source, epochs)
        require_visible(sample[:2])
        if not self.net.balanced:
            self.net.balance(samples.some(BALANCE_SAMPLES).dense()[0])
        held_out = None if validation is None else validation.dense()
        measured = cast(Pair, sample), cast("Pair | None", held_out)
        return self._fit(source, epochs, evaluate_every, *measured, callbacks)

    def _leave(self) -> None:
        super()._leave()
        self.counts = None

    def judge(self, samples: Samples, epochs: int | None) -> str | None:
        """What is wrong with the network after a fit to these samples, and what may help; None if nothing is. Of the
        history, the first ``epochs`` count."""
        _, y, counts = samples.some(metrics.TRAIN_SAMPLES).dense()
        wrong = trouble(metrics.constant_of(self.net, y, counts), len(y), levels(self.history[:epochs]))
        return None if wrong is None else f"{wrong}. {self.remedy}"


class SampleBatches(Batches):
    """Shuffled mini-batches of samples. The trainer is told how often those of each mini-batch count."""

    def __init__(self, samples: Samples, batch_size: int, trainer: SampleTrainer) -> None:
        numbers = torch.arange(len(samples))
        super().__init__(numbers, numbers, batch_size)
        self.samples, self.trainer = samples, trainer

    def epoch(self, order_seed: int, start: int = 0) -> Iterator[Pair]:
        """The mini-batches of the epoch that ``order_seed`` shuffles, from number ``start`` on."""
        shape, counts = self.trainer.net.input_shape, self.samples.counts
        for index, _ in super().epoch(order_seed, start):
            self.trainer.counts = None if counts is None else counts[index]
            yield self.samples.x[index].reshape(len(index), *shape), self.samples.y[index]
