"""How good a trained network is on labelled samples.

run = open_run("runs/first"); data = run.load_dataset()
evaluate(run.load_network(), data.x_test, data.y_test, data.classes).accuracy
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from cavity.analysis.metrics import class_index, measure
from cavity.core.network import Network


@dataclass(frozen=True)
class Evaluation:
    """Accuracies in percent; NLL, ECE and Brier score of the Bayesian probabilities; ``confusion[t][p]`` counts the
    samples of class t that the posterior takes for class p, ``confusion_point`` those of the most probable weights."""

    samples: int
    accuracy: float
    accuracy_bayes: float
    nll: float
    ece: float
    brier: float
    classes: list[str]
    confusion: list[list[int]]
    confusion_point: list[list[int]]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class NumberEvaluation:
    """How well numbers are predicted, in units of the labels: roots of the mean squared residuals of the most probable
    weights and of the posterior, the part of the variance that the posterior explains, its negative log-likelihood, and
    the part of the labels within its 90 % intervals."""

    samples: int
    rmse: float
    rmse_bayes: float
    r2: float
    nll: float
    coverage: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


#: A normal variable is within this many standard deviations in 90 % of all cases.
NINETY = 1.6449


@torch.no_grad()
def predicted_numbers(net: Network, x: Tensor, target: tuple[float, float]) -> dict[str, Tensor]:
    """In units of the labels, (samples,) each: the mean of the posterior, that of the most probable weights, and the
    standard deviation of a label, its noise included."""
    (mean, scale), pre = target, net.predict_moments(x)
    std = torch.sqrt(pre.variance.squeeze(1) + net.output.noise)
    return {
        "prediction": pre.mean.squeeze(1).double() * scale + mean,
        "pointwise": net.predict(x).double() * scale + mean,
        "std": std.double() * scale,
    }


@torch.no_grad()
def evaluate_numbers(net: Network, x: Tensor, y: Tensor, target: tuple[float, float]) -> NumberEvaluation:
    """Predictions of ``net`` on x (samples, features) against standardised labels y (samples,); ``target`` is their
    mean and standard deviation."""
    if len(x) == 0:
        raise ValueError("there is no sample to evaluate on")
    measured, pre, scale = measure(net, x, y), net.predict_moments(x), target[1]
    std = torch.sqrt(pre.variance.squeeze(1) + net.output.noise)
    residual = y.to(net.dtype) - pre.mean.squeeze(1)
    spread = float((y - y.mean()).square().mean())
    return NumberEvaluation(
        samples=len(x),
        rmse=scale * measured.error,
        rmse_bayes=scale * measured.error_bayes,
        r2=1 - float(residual.square().mean()) / spread if spread else math.nan,
        nll=measured.nll + math.log(scale),
        coverage=float((residual.abs() < NINETY * std).double().mean()),
    )


def evaluate(net: Network, x: Tensor, y: Tensor, classes: Sequence[str]) -> Evaluation:
    """Point-wise and Bayesian predictions of ``net`` on x (samples, features) against labels y (±1 or 0…C−1)."""
    if len(x) == 0:
        raise ValueError("there is no sample to evaluate on")
    largest = int(class_index(net, y).max())
    if largest >= len(classes):
        raise ValueError(f"y has class {largest}, but there are {len(classes)} classes")
    measured = measure(net, x, y)
    if measured.ece is None or measured.brier is None:
        raise ValueError(f"net must have classes to be evaluated, got the output {type(net.output).__name__}")
    return Evaluation(
        samples=len(x),
        accuracy=100 - measured.error,
        accuracy_bayes=100 - measured.error_bayes,
        nll=measured.nll,
        ece=measured.ece,
        brier=measured.brier,
        classes=list(classes),
        confusion=measured.confusion().tolist(),
        confusion_point=measured.confusion("point").tolist(),
    )
