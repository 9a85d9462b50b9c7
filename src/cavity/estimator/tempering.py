"""How sure a network of real weights may be: the temperature of its readout, chosen on held-out samples.

A posterior that counts every sample several times fits well and is too sure of itself on noisy data. Bayesian
prediction takes that of the last layer to the power 1/T, which leaves the means alone and multiplies the variances by
T. Where everything is fitted at once it may also be too modest, and T < 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.core.network import Network

#: What is tried.
TEMPERATURES = tuple(2.0 ** (power / 2) for power in range(-6, 13))
#: log T is expected to be of this size for classes, where one wrong label outweighs many right ones, and for numbers.
EXPECTED, EXPECTED_OF_NUMBERS = math.log(1.5), math.log(4)
#: With fewer held-out samples than this, T is 1.
FEWEST = 10


@torch.no_grad()
def choose_temperature(net: Network, x: Tensor, y: Tensor) -> None:
    """Set T of the last layer to where log P(y | x, T) − ½(log T/τ)² is largest, τ as expected; x (samples,
    features)."""
    readout, tau = net.weighted()[-1], EXPECTED_OF_NUMBERS if net.output.curvature_stays else EXPECTED
    scores = [_log_likelihood(net, x, y, T) - 0.5 * (math.log(T) / tau) ** 2 for T in TEMPERATURES]
    readout.temper(TEMPERATURES[scores.index(max(scores))])


def _log_likelihood(net: Network, x: Tensor, y: Tensor, T: float) -> float:
    """log P(y | x, T) of all samples together."""
    net.weighted()[-1].temper(T)
    pre = net.predict_moments(x)
    return float(net.output.value(net.output.target(y, pre, None), pre).sum())
