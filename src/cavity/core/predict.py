"""Point-wise and Bayesian prediction of a network.

Point-wise: the most probable weights, one ordinary forward pass. Bayesian: one pass of the moments (m, σ) gives the
last preactivations as independent normals 𝒩(ω, V), and the output's own integral turns them into probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cavity.core.algorithms.mf import MF
from cavity.core.channels import Sign
from cavity.core.messages import Preactivation
from cavity.core.sweep import sweep_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cavity.core.network import Network

#: Samples that go through the network at once: few enough that what they make of themselves stays in the cache.
BATCH = 512
#: Rounding errors of a sum relative to ε‖x‖, with a margin of two over the largest seen at a sum of 0.
ROUNDING = 8.0
#: Inputs may be this part of the root of the largest number: a sum of 10⁸ squares is finite.
SUM_OF_SQUARES = 1e-4


def checked_inputs(network: Network, x: Tensor) -> Tensor:
    """x as a tensor (samples, *input_shape) of the network's type; ValueError or TypeError says what is wrong."""
    _check_precision(network)
    x = torch.as_tensor(x)
    if not x.is_floating_point():
        raise TypeError(f"x must be floating point (standardise integers first), got {x.dtype}")
    shape = network.input_shape
    size = torch.Size(shape).numel()
    if x.ndim < 2 or (tuple(x.shape[1:]) != shape and x.shape[1:].numel() != size):
        raise ValueError(f"x must have shape (samples, {', '.join(map(str, shape))}), got {tuple(x.shape)}")
    if len(x) == 0:
        raise ValueError("x must hold at least one sample, got none")
    if x.device.type == "cpu":
        _check_size(x, network.dtype)
    return x.to(device=network.device, dtype=network.dtype).reshape(len(x), *shape)


def _check_precision(network: Network) -> None:
    """Tails and differences need more digits than half precision has."""
    if network.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"message passing needs a network in float32 or float64, got {network.dtype}: use net.float()")
    if network.device.type != "meta" and torch.is_autocast_enabled(network.device.type):
        raise TypeError("message passing needs float32 or float64 throughout: leave torch.autocast")


def _check_size(x: Tensor, dtype: torch.dtype) -> None:
    """Squares of x, summed over the inputs of a unit, must be finite in the network's type."""
    largest = math.sqrt(torch.finfo(dtype).max) * SUM_OF_SQUARES
    low, high = map(float, torch.aminmax(x))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("x must be finite, it holds NaN or infinity")
    if max(-low, high) > largest:
        raise ValueError(f"x must be within ±{largest:.1g} for {dtype}, got {low:.3g} to {high:.3g}: standardise it")


def forward(network: Network, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Last preactivations (samples, outputs) of the network with known weights."""
    return network.weighted()[-1].apply_known(weights[-1], below_last(network, weights, x))


def below_last(network: Network, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Inputs of the last layer, for known weights of the others."""
    layers, x = network.weighted(), network.prepared(x)
    parts = zip(layers, weights, network.activations, network.pools, strict=False)
    for number, (layer, w, activation, pool) in enumerate(parts):
        z = layer.apply_known(w, x)
        x = activation.forward(settled(z, x) if number == 0 and isinstance(activation, Sign) else z)
        x = x if pool is None else pool.forward(x)
    return x


def settled(z: Tensor, x: Tensor) -> Tensor:
    """z with 0 where it is 0 up to rounding, |z| < 8ε‖x‖, so that sign(0) = +1 whatever the order of summation.

    Weights ±1 that sum to 0 make exact zeros of integer pixels, about 30 among 10,000 images and 500 units."""
    tolerance = ROUNDING * torch.finfo(z.dtype).eps * x.flatten(1).norm(dim=1)
    return z.masked_fill(z.abs() < tolerance.reshape(-1, *(1 for _ in z.shape[1:])), 0.0)


def point_preactivations(network: Network, x: Tensor) -> Tensor:
    """Last preactivations of the most probable weights."""
    weights = [layer.point() for layer in network.weighted()]
    parts = [forward(network, weights, part) for part in torch.split(checked_inputs(network, x), BATCH)]
    return _finite(torch.cat(parts))


def bayesian_preactivations(network: Network, x: Tensor) -> Preactivation:
    """ω and V of the last layer, (samples, outputs), from one sweep up with the current (m, σ)."""
    sites, states = network.sites, [layer.posterior for layer in network.weighted()]
    parts = torch.split(checked_inputs(network, x), BATCH)
    tops = [sweep_up(MF(), sites, states, network.prepared(part))[-1].pre for part in parts]
    return Preactivation(*(_finite(torch.cat(parts)) for parts in zip(*tops, strict=True)))


def balance(network: Network, x: Tensor) -> None:
    """Start the whitening, then all thresholds, layer by layer, from what samples x make of the layers below."""
    x, sites = checked_inputs(network, x), network.sites
    if network.front is not None and not bool(network.front.fitted):
        network.front.fit(x)
    x = network.prepared(x)
    for number, layer in enumerate(network.weighted(), start=1):
        if layer.threshold is not None:
            layer.threshold.balance(sweep_up(MF(), sites[:number], network.states()[:number], x)[-1].pre)


def _finite(z: Tensor) -> Tensor:
    """z, looked at on the CPU only: what has overflowed must not pass for a prediction."""
    if z.device.type == "cpu" and not bool(torch.isfinite(z).all()):
        raise FloatingPointError(
            f"the preactivations of x are not finite in {z.dtype}: the weights have diverged, or x is too large"
        )
    return z


def predict(network: Network, x: Tensor, method: str) -> Tensor:
    """Labels, classes or values of the most probable weights or of the mean preactivation's distribution."""
    if method == "point":
        return network.output.predict(point_preactivations(network, x))
    if method == "bayes":
        return network.output.decide(bayesian_preactivations(network, x))
    raise ValueError(f"method must be 'point' or 'bayes', got {method!r}")
