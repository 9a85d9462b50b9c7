"""How good a trained network is on labelled samples.

run = open_run("runs/first"); data = run.load_dataset()
evaluate(run.load_network(), data.x_test, data.y_test, data.classes).accuracy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from cavity.analysis.calibration import brier_score, expected_calibration_error, negative_log_likelihood
from cavity.analysis.metrics import class_index
from cavity.core.network import Network


@dataclass(frozen=True)
class Evaluation:
    """Accuracies in percent; NLL, ECE and Brier score of the Bayesian probabilities.

    ``confusion[t][p]`` counts the samples of class t that the posterior takes for class p.
    """

    samples: int
    accuracy: float
    accuracy_bayes: float
    nll: float
    ece: float
    brier: float
    classes: list[str]
    confusion: list[list[int]]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def evaluate(net: Network, x: Tensor, y: Tensor, classes: Sequence[str]) -> Evaluation:
    """Point-wise and Bayesian predictions of ``net`` on x (samples, features) against labels y (±1 or 0…C−1)."""
    if len(x) == 0:
        raise ValueError("there is no sample to evaluate on")
    truth = class_index(net, y.to(net.device))
    if int(truth.max()) >= len(classes):
        raise ValueError(f"y has class {int(truth.max())}, but there are {len(classes)} classes")
    probabilities = net.predict_proba(x)
    guess = probabilities.argmax(dim=1)
    point = class_index(net, net.predict(x))
    count = len(classes)
    confusion = torch.bincount(truth * count + guess, minlength=count * count).reshape(count, count)
    return Evaluation(
        samples=len(x),
        accuracy=100 * float((point == truth).double().mean()),
        accuracy_bayes=100 * float((guess == truth).double().mean()),
        nll=float(negative_log_likelihood(probabilities, truth)),
        ece=float(expected_calibration_error(probabilities, truth)),
        brier=float(brier_score(probabilities, truth)),
        classes=list(classes),
        confusion=confusion.tolist(),
    )
