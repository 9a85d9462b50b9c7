"""How well a stream is learnt: running sums over its last samples, judged like the end of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cavity.analysis.metrics import Constant, Measurement
from cavity.training.watch import Level, trouble

#: Samples that are remembered, and the most of one call that are looked at: a constant needs a few of each class to be
#: compared with, and what went well long ago must not hide what goes wrong now.
REMEMBERED = 256


@dataclass
class Stream:
    """Sums over the last samples of a stream, old ones fading. No sample is kept.

    ``labels`` are (Σy, Σy²) of real targets, or how often each class occurred; ``losses`` are the sums of the wrong
    answers or squared residuals, point-wise and Bayesian, and of the negative log-likelihood, all after the samples
    were learnt."""

    real: bool
    samples: float
    labels: Tensor
    losses: Tensor

    @classmethod
    def of(cls, classes: int | None) -> Stream:
        """An empty one, of real targets where ``classes`` is None."""
        sums = torch.zeros(2 if classes is None else classes, dtype=torch.float64)
        return cls(classes is None, 0.0, sums, torch.zeros(3, dtype=torch.float64))

    def add(self, found: Measurement, y: Tensor) -> None:
        """Add what was measured on samples with labels y."""
        n, y = len(y), y.double()
        fade = max(0.0, 1 - n / REMEMBERED)
        here = torch.stack([y.sum(), y.square().sum()]) if self.real else torch.bincount(y.long(), minlength=0).double()
        errors = [error**2 if self.real else error / 100 for error in (found.error, found.error_bayes)]
        self.labels = fade * self.labels
        self.labels[: len(here)] += here
        self.losses = fade * self.losses + n * torch.tensor([*errors, found.nll], dtype=torch.float64)
        self.samples = fade * self.samples + n

    def trouble(self) -> str | None:
        """What is wrong with the network, in words; None if nothing is."""
        share, losses = self.labels / self.samples, (self.losses / self.samples).tolist()
        if self.real:
            spread = float((share[1] - share[0].square()).clamp_min(0).sqrt())
            constant, errors = Constant(spread, real=True), [loss**0.5 for loss in losses[:2]]
        else:
            constant = Constant(100 * (1 - float(share.max())), float(torch.special.entr(share).sum()))
            errors = [100 * loss for loss in losses[:2]]
        return trouble(constant, self.samples, [Level(*errors, losses[2])])
