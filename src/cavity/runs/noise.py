"""The noise on labels that are numbers: it is estimated while a network is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cavity.analysis import metrics
from cavity.core.channels import GaussianOutput
from cavity.training.callbacks import Callback, OnEpoch

if TYPE_CHECKING:
    from torch import Tensor

    from cavity.analysis.metrics import EpochRecord
    from cavity.core.network import Network
    from cavity.training.trainer import Trainer

#: The least variance, in units of that of the labels: no network is certain of them.
SMALLEST = 1e-3


def following(net: Network, x: Tensor, y: Tensor) -> list[Callback]:
    """What sets the noise of a Gaussian output to the mean square of the residuals after every epoch of training on
    (x, y); nothing for other outputs."""
    output = net.output
    if not isinstance(output, GaussianOutput):
        return []
    x, y = metrics.train_sample(x, y)

    def follow(trainer: Trainer, record: EpochRecord) -> None:
        residual = y.to(net.device) - net.predict(x, "bayes")
        output.noise = max(float(residual.square().mean()), SMALLEST)

    return [OnEpoch(follow)]
