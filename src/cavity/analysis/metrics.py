"""What is measured after each epoch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.analysis.calibration import expected_calibration_error, negative_log_likelihood
from cavity.core.channels import ArgMax, GaussianOutput, Label
from cavity.core.network import Network


class Scores(NamedTuple):
    """Errors in percent (root mean square of the residuals for regression); None where they make no sense."""

    error: float
    error_bayes: float
    nll: float
    ece: float | None


#: Training errors are measured on so many samples, always the same: all of them would cost a large part of an epoch.
TRAIN_SAMPLES = 2_000


def train_sample(x: Tensor, y: Tensor, samples: int = TRAIN_SAMPLES) -> tuple[Tensor, Tensor]:
    """The samples that training errors are measured on, (x, y) themselves if they are few."""
    if len(x) <= samples:
        return x, y
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:samples].to(x.device)
    return x[chosen], y[chosen]


@dataclass(frozen=True)
class EpochRecord:
    """One line of ``metrics.jsonl``; errors in percent, training errors on ``TRAIN_SAMPLES`` samples, seconds of
    training alone. Nothing was measured where all errors are None. ``clamped`` is the fraction of variances, gains and
    weights that needed a floor or the bound (``core/floors.py``), over all steps of the epoch; None: there are none."""

    epoch: int
    train_error: float | None
    test_error: float | None
    train_error_bayes: float | None
    test_error_bayes: float | None
    test_nll: float | None
    test_ece: float | None
    seconds: float
    polarization: list[float]
    overlap: list[float]
    clamped: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def percent_wrong(predicted: Tensor, y: Tensor) -> float:
    return 100.0 * float((predicted != y).double().mean())


def class_index(net: Network, y: Tensor) -> Tensor:
    """Labels as columns of ``predict_proba``: ±1 become 0 and 1."""
    return (y.reshape(-1) > 0).long() if isinstance(net.output, Label) else y


def score(net: Network, x: Tensor, y: Tensor) -> Scores:
    """Point-wise and Bayesian error, NLL and ECE of the Bayesian probabilities on (x, y)."""
    y = torch.as_tensor(y).to(net.device)
    pre = net.predict_moments(x)
    point = net.predict(x)
    if isinstance(net.output, GaussianOutput):
        target = y.to(net.dtype).reshape(pre.mean.shape)
        nll = -net.output.value(net.output.target(y, pre, None), pre).mean()
        rms = [(guess.reshape(target.shape) - target).square().mean().sqrt() for guess in (point, pre.mean)]
        return Scores(float(rms[0]), float(rms[1]), float(nll), None)
    if isinstance(net.output, ArgMax) or pre.mean.shape[1] == 1:
        probabilities, labels = net.output.probabilities(pre), class_index(net, y)
        bayes = percent_wrong(probabilities.argmax(dim=1), labels)
        nll, ece = (
            negative_log_likelihood(probabilities, labels),
            expected_calibration_error(probabilities, labels),
        )
        return Scores(percent_wrong(point, y.reshape(point.shape)), bayes, float(nll), float(ece))
    nll = -net.output.value(net.output.target(y, pre, None), pre).mean()
    bayes = percent_wrong(net.output.decide(pre), y)
    return Scores(percent_wrong(point, y), bayes, float(nll), None)
