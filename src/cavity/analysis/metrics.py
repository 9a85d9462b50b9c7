"""How good a network is on labelled samples, and the record of it that each epoch leaves."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cavity.analysis.calibration import brier_score, expected_calibration_error, negative_log_likelihood
from cavity.core.channels import ArgMax, GaussianOutput, Label
from cavity.core.network import Network


@dataclass(frozen=True, eq=False)
class Measurement:
    """How good a network is on (x, y). Errors are in percent, or for real targets root mean squares of the residuals.

    The other fields are about the Bayesian probabilities, but for ``point``: the classes (samples,) of the most
    probable weights. ECE, Brier score, ``probabilities`` (samples, classes), ``point`` and ``labels`` (samples,),
    0…C−1, are None where y has no classes: real targets, or several labels a sample.
    """

    error: float
    error_bayes: float
    nll: float
    ece: float | None = None
    brier: float | None = None
    probabilities: Tensor | None = None
    labels: Tensor | None = None
    point: Tensor | None = None

    def confusion(self, method: Literal["bayes", "point"] = "bayes") -> NDArray[np.int64]:
        """How many samples of each class (row) are taken for each class (column) by the Bayesian predictions, or by the
        most probable weights ("point")."""
        from sklearn.metrics import confusion_matrix

        if self.probabilities is None or self.labels is None or self.point is None:
            raise ValueError("y must have classes for a confusion matrix")
        guess = self.probabilities.argmax(dim=1) if method == "bayes" else self.point
        truth, predicted = (y.numpy(force=True) for y in (self.labels, guess))
        counts: NDArray[np.int64] = confusion_matrix(truth, predicted, labels=list(range(self.probabilities.shape[1])))
        return counts


#: Training errors are measured on this many samples, always the same: all would cost a large part of an epoch.
TRAIN_SAMPLES = 2_000


def train_sample(x: Tensor, y: Tensor, samples: int = TRAIN_SAMPLES) -> tuple[Tensor, Tensor]:
    """The samples that training errors are measured on, (x, y) themselves if they are few."""
    if len(x) <= samples:
        return x, y
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:samples].to(x.device)
    return x[chosen], y[chosen]


class BestConstant(NamedTuple):
    """What a constant reaches that knows how often each class occurs, or the mean of real targets: its error as in
    ``Measurement``, and its NLL where there are classes."""

    error: float
    nll: float | None = None
    real: bool = False


def constant_of(net: Network, y: Tensor, counts: Tensor | None = None) -> BestConstant:
    """The best constant for labels y (±1, 0…C−1 or real numbers), each counted ``counts`` times (None: once)."""
    y = torch.as_tensor(y)
    columns = y.reshape(len(y), -1)
    if isinstance(net.output, GaussianOutput):
        spread = columns.double() - average(columns.double(), counts)
        return BestConstant(float(average(spread.square(), counts).mean().sqrt()), real=True)
    shares = [
        average(torch.nn.functional.one_hot(torch.unique(column, return_inverse=True)[1]).double(), counts)
        for column in columns.unbind(1)
    ]
    error = 100.0 * (1 - sum(float(share.max()) for share in shares) / len(shares))
    return BestConstant(error, float(torch.special.entr(shares[0]).sum()) if len(shares) == 1 else None)


#: What a record has one number of for each layer.
LISTED = ("polarization", "overlap")
#: Beyond it a float leaves out whole numbers.
LARGEST_WHOLE = 1 << 53


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
    train_nll: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_values(cls, values: Any) -> EpochRecord:
        """A record from what ``as_dict`` gave, or a stranger wrote: ValueError or TypeError for anything else."""
        if not isinstance(values, dict):
            raise ValueError(f"it holds {type(values).__name__}, not names and values")
        for name, value in values.items():
            if name in LISTED:
                good = isinstance(value, list) and all(map(is_number, value))
            elif name == "epoch":
                good = is_whole(value)
            elif name == "seconds":
                good = is_number(value) and 0 <= value < math.inf
            else:
                good = is_number(value) or value is None
            if not good:
                raise ValueError(f"{name} is {str(value)[:40]!r}")
        return cls(**values)


def is_whole(value: object) -> bool:
    """A whole number that a float can be equal to."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_WHOLE


def is_number(value: object) -> bool:
    """NaN and infinity are numbers: a run that diverged has them."""
    return isinstance(value, float) or is_whole(value)


def average(values: Tensor, counts: Tensor | None) -> Tensor:
    """Mean over samples (samples, …), each counted ``counts`` times (None: once)."""
    if counts is None:
        return values.mean(dim=0)
    shares = counts.to(values.dtype) / counts.to(values.dtype).sum()
    mean: Tensor = torch.tensordot(shares, values, dims=1)
    return mean


def percent_wrong(predicted: Tensor, y: Tensor, counts: Tensor | None = None) -> float:
    return 100.0 * float(average((predicted != y).double(), counts).mean())


def class_index(net: Network, y: Tensor) -> Tensor:
    """Labels as columns of ``predict_proba``: ±1 become 0 and 1."""
    return (y.reshape(-1) > 0).long() if isinstance(net.output, Label) else y


@torch.no_grad()
def measure(net: Network, x: Tensor, y: Tensor, counts: Tensor | None = None) -> Measurement:
    """Point-wise and Bayesian predictions of ``net`` on x against y (±1, 0…C−1 or real numbers). Where samples count
    several times, ``counts`` (samples,), errors and NLL do so, and ECE and Brier score are not measured."""
    y = torch.as_tensor(y).to(net.device)
    pre, point = net.predict_moments(x), net.predict(x)
    real = isinstance(net.output, GaussianOutput)
    if not real and (isinstance(net.output, ArgMax) or net.outputs == 1):
        p, labels = net.output.probabilities(pre), class_index(net, y)
        return Measurement(
            error=percent_wrong(point, y.reshape(point.shape), counts),
            error_bayes=percent_wrong(p.argmax(dim=1), labels, counts),
            nll=float(negative_log_likelihood(p, labels, counts)),
            ece=None if counts is not None else float(expected_calibration_error(p, labels)),
            brier=None if counts is not None else float(brier_score(p, labels)),
            probabilities=p,
            labels=labels,
            point=class_index(net, point),
        )
    nll = -float(average(net.output.value(net.output.target(y, pre, None), pre), counts).mean())
    if real:
        target = y.to(net.dtype).reshape(pre.mean.shape)
        squares = [(guess.reshape(target.shape) - target).square() for guess in (point, pre.mean)]
        rms = [float(average(square, counts).mean().sqrt()) for square in squares]
        return Measurement(rms[0], rms[1], nll)
    return Measurement(percent_wrong(point, y, counts), percent_wrong(net.output.decide(pre), y, counts), nll)
