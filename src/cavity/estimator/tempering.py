"""How sure a network of real weights may be: the temperature of its readout, chosen on held-out samples.

A posterior that counts every sample several times fits well and is too sure of itself on noisy data. Bayesian
prediction takes that of the last layer to the power 1/T, which leaves the means alone and multiplies the variances by
T. Where everything is fitted at once it may also be too modest, and T < 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.core.messages import Preactivation
from cavity.core.network import Network

#: What is tried.
TEMPERATURES = tuple(2.0 ** (power / 2) for power in range(-6, 13))
#: log T is expected to be of this size for classes, where one wrong label outweighs many right ones, and for numbers.
EXPECTED, EXPECTED_OF_NUMBERS = math.log(1.5), math.log(4)
#: With fewer held-out samples than this, T is 1.
FEWEST = 10
#: A temperature up to this is that of a readout alone. Beyond it the whole network counts its samples too often; it
#: counts them at least this part of the times.
HARMLESS, LEAST = 8**0.5, 0.1


def choose_temperature(net: Network, x: Tensor, y: Tensor, counts: Tensor | None = None) -> None:
    """Set T of the last layer to what held-out samples want; x (samples, features), and how often each counts (once:
    None)."""
    net.weighted()[-1].temper(wanted_temperature(net, x, y, counts))


def wanted_count(net: Network, x: Tensor, y: Tensor, counts: Tensor | None = None) -> float:
    """The factor (T₀/T)³ on how often all layers count a sample, where held-out samples want T > T₀. A readout that is
    to be so much more modest after a fifth of the epochs sits on layers that fit noise."""
    return max(LEAST, min(1.0, HARMLESS / wanted_temperature(net, x, y, counts)) ** 3)


@torch.no_grad()
def wanted_temperature(net: Network, x: Tensor, y: Tensor, counts: Tensor | None = None) -> float:
    """Where log P(y | x, T) − ½(log T/τ)² of held-out samples is largest, τ as expected."""
    tau = EXPECTED_OF_NUMBERS if net.output.curvature_stays else EXPECTED
    likelihood = _log_likelihoods(net, x, y, counts)
    scores = [value - 0.5 * (math.log(T) / tau) ** 2 for T, value in zip(TEMPERATURES, likelihood, strict=True)]
    return float(TEMPERATURES[scores.index(max(scores))])


def _log_likelihoods(net: Network, x: Tensor, y: Tensor, counts: Tensor | None) -> list[float]:
    """log P(y | x, T) of all samples together at each temperature. V of the last layer is a + bT, so that two of them
    say what the others are."""
    readout = net.weighted()[-1]
    before = readout.temperature
    readout.temper(TEMPERATURES[0])
    low = net.predict_moments(x)
    readout.temper(TEMPERATURES[-1])
    high = net.predict_moments(x)
    readout.temperature = before
    b = (high.variance - low.variance) / (TEMPERATURES[-1] - TEMPERATURES[0])
    times = b.new_tensor([T - TEMPERATURES[0] for T in TEMPERATURES]).reshape(-1, 1, 1)
    all_T = Preactivation(low.mean.repeat(len(TEMPERATURES), 1), (low.variance + b.clamp_min(0) * times).flatten(0, 1))
    labels = y.repeat(len(TEMPERATURES), *(1 for _ in y.shape[1:]))
    values = net.output.value(net.output.target(labels, all_T, None), all_T).reshape(len(TEMPERATURES), len(x), -1)
    totals: list[float] = (values if counts is None else values * counts.reshape(1, -1, 1)).sum(dim=(1, 2)).tolist()
    return totals
