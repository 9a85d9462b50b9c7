"""How good a trained network is on labelled samples.

run = open_run("runs/first"); data = run.load_dataset()
evaluate(run.load_network(), data.x_test, data.y_test, data.classes).accuracy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from cavity.analysis.metrics import class_index, measure
from cavity.core.network import Network


@dataclass(frozen=True)
class Evaluation:
    """Accuracies in percent; NLL, ECE and Brier score of the Bayesian probabilities; ``confusion[t][p]`` counts the
    samples of class t that the posterior takes for class p."""

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
    )
