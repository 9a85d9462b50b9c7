"""The notation of the library and the tuples that travel along the factor graph.

| paper        | word here                      | shape              |
|--------------|--------------------------------|--------------------|
| n, i, k      | sample, input unit, output unit|                    |
| x̂, Δ         | mean, variance of activations  | (samples, units)   |
| m, σ         | mean, variance of weights      | (outputs, inputs)  |
| ω, V         | mean, variance of preactivations| (samples, outputs)|
| B, A         | field, precision on activations| (samples, units)   |
| H, G         | field, precision on weights    | (outputs, inputs)  |
| θ            | natural parameters of the prior| (outputs, inputs)  |
| g, Γ         | response of a factor to ω      | (samples, outputs) |
| ρ            | tempering power of Posterior-as-Prior | one per layer |
| α            | damping of the weight means    | one per layer      |
| r            | internal reinforcement         | one per layer      |
| τ            | inner iteration                |                    |

Convolutional activations carry (samples, channels, height, width) in place of (samples, units). V is always a
variance, never a standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from torch import Tensor


class Moments(NamedTuple):
    """Mean and variance of an activation (x̂, Δ), a weight (m, σ) or a preactivation (ω, V).

    A variance of ``None`` means exactly zero, as for the input layer.
    """

    mean: Tensor
    variance: Tensor | None


class Preactivation(NamedTuple):
    """Mean ω and variance V of a preactivation under the messages that reach it, both (samples, outputs)."""

    mean: Tensor
    variance: Tensor


class Fields(NamedTuple):
    """A Gaussian factor exp(field·s − ½·precision·s²) on a variable s: (B, A) on activations, (H, G) on weights.

    A precision of ``None`` means that s² is constant (s = ±1), so the quadratic term has no effect.
    """

    field: Tensor
    precision: Tensor | None


class Response(NamedTuple):
    """Reaction of a factor to its preactivation: g = ∂_ω φ and Γ = −∂²_ω φ, both (samples, outputs)."""

    gradient: Tensor
    curvature: Tensor


class Target(NamedTuple):
    """What an output is given: the labels, and what else its likelihood needs (standard normal draws for a sampled
    output, the noise variance for a Gaussian one, else ``None``)."""

    labels: Tensor
    noise: Tensor | None


Incoming = TypeVar("Incoming", Fields, Target)


def relayout(message: Fields | Target, move: Callable[[Tensor], Tensor]) -> Fields | Target:
    """The same message with ``move`` applied to each of its tensors."""
    first, second = message
    return type(message)(move(first), None if second is None else move(second))
