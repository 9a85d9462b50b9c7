"""How well a stream is learnt: running sums over its last samples, judged like the end of a fit.

Only Bayesian predictions count: weights of a few values become certain in time, and until then the most probable ones
may say little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cavity.analysis.metrics import BestConstant, Measurement
from cavity.training.watch import Level, trouble

#: Samples that are remembered, and the most of one call that are looked at: a constant needs a few of each class to be
#: compared with, and what went well long ago must not hide what goes wrong now.
REMEMBERED = 256


@dataclass
class Stream:
    """Sums over the last samples of a stream, old ones fading. No sample is kept.

    ``labels`` are (Σy, Σy²) of real targets, or how often each class occurred; ``losses`` are the sums of the wrong
    answers or squared residuals and of the negative log-likelihood, after the samples were learnt."""

    real: bool
    samples: float
    labels: Tensor
    losses: Tensor

    @classmethod
    def of(cls, classes: int | None) -> Stream:
        """An empty one, of real targets where ``classes`` is None."""
        sums = torch.zeros(2 if classes is None else classes, dtype=torch.float64)
        return cls(classes is None, 0.0, sums, torch.zeros(2, dtype=torch.float64))

    def add(self, found: Measurement, y: Tensor) -> None:
        """Add what was measured on samples with labels y."""
        n, y = len(y), y.double()
        fade = max(0.0, 1 - n / REMEMBERED)
        here = torch.stack([y.sum(), y.square().sum()]) if self.real else torch.bincount(y.long()).double()
        loss = found.error_bayes * (found.error_bayes if self.real else 0.01)
        self.labels = fade * self.labels
        self.labels[: len(here)] += here
        self.losses = fade * self.losses + n * torch.tensor([loss, found.nll], dtype=torch.float64)
        self.samples = fade * self.samples + n

    def with_classes(self, rows: Sequence[int | None]) -> Stream:
        """The same where class k is the old class rows[k], or a new one where that is None."""
        labels = torch.stack([self.labels.new_zeros(()) if row is None else self.labels[row] for row in rows])
        return replace(self, labels=labels)

    def trouble(self) -> str | None:
        """What is wrong with the network, in words; None if nothing is."""
        share, (loss, nll) = self.labels / self.samples, (self.losses / self.samples).tolist()
        if self.real:
            spread = float((share[1] - share[0].square()).clamp_min(0).sqrt())
            constant, error = BestConstant(spread, real=True), loss**0.5
        else:
            constant = BestConstant(100 * (1 - float(share.max())), float(torch.special.entr(share).sum()))
            error = 100 * loss
        return trouble(constant, self.samples, [Level(error, error, nll)], "the stream is not learnt")
