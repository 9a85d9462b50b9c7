"""Where a network's doubt comes from: the entropy of its predictions, split by draws of its weights.

    H[E_w p(y|x,w)]  =  E_w H[p(y|x,w)]  +  I[y; w]
        total             aleatoric          epistemic

The outputs here are hard: y is the sign or the argmax of the last preactivations, so that a draw of all weights decides
every label with certainty and leaves nothing aleatoric. It is the last layer that carries the noise of the labels, and
message passing keeps it broad for that reason. So w above are the weights below the last layer, and p(y|x,w) integrates
over the last one: z ~ 𝒩(Σ m x, Σ σ x²). A network of one layer has no such w, and all its doubt counts as aleatoric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from cavity.analysis.calibration import entropy
from cavity.core.couplings.base import check_sizes
from cavity.core.messages import Preactivation
from cavity.core.predict import BATCH, below_last, checked_inputs, forward

if TYPE_CHECKING:
    from cavity.core.network import Network

#: Least variance of a last preactivation relative to the largest mean's square: below it the integral is a step in any
#: case. And the least at all, where all means are 0 too.
LEAST_RATIO, LEAST_VARIANCE = 1e-10, 1e-30


Values = TypeVar("Values")


class Uncertainty(NamedTuple, Generic[Values]):
    """Entropies in nats, (samples,); total = aleatoric + epistemic."""

    total: Values
    aleatoric: Values
    epistemic: Values


def draw_weights(network: Network, n: int, generator: torch.Generator) -> list[list[Tensor]]:
    """``n`` draws of the weights of every layer from the posterior, each (outputs, columns [+ 1 threshold])."""
    check_sizes(n=n)
    return [[layer.sample(generator) for layer in network.weighted()] for _ in range(n)]


def predict_with(network: Network, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Labels, classes or values of the network with the given weights, one tensor (outputs, columns [+ 1
    threshold]) a layer."""
    parts = _parts(network, weights, x)
    return network.output.predict(torch.cat([forward(network, weights, part) for part in parts]))


def probabilities_below_last(network: Network, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Class probabilities (samples, classes) with the given weights below the last layer, integrated over the last."""
    parts = _parts(network, weights, x)
    return torch.cat([network.output.probabilities(_last(network, weights, part)) for part in parts])


def predictive_entropy(network: Network, x: Tensor, n: int, generator: torch.Generator) -> Uncertainty[Tensor]:
    """Entropy of the predictions on x, and its aleatoric and epistemic parts, from ``n`` draws of the weights."""
    check_sizes(n=n)
    mean, inner = torch.zeros((), device=network.device), torch.zeros((), device=network.device)
    for _ in range(n):
        p = probabilities_below_last(network, draw_weights(network, 1, generator)[0], x)
        mean, inner = mean + p / n, inner + entropy(p) / n
    total = entropy(mean)
    aleatoric = torch.minimum(inner, total)
    return Uncertainty(total, aleatoric, total - aleatoric)


def _last(network: Network, weights: Sequence[Tensor], x: Tensor) -> Preactivation:
    """ω = Σ m x and V = Σ σ x² of the last layer, for activations x that the drawn weights decide."""
    x, last = below_last(network, weights, x), network.weighted()[-1]
    omega, V = (last.apply_known(part, y) for part, y in zip(last.known_moments(), (x, x.square()), strict=True))
    largest = omega.square().amax(dim=1, keepdim=True)
    return Preactivation(omega, torch.maximum(V, LEAST_RATIO * largest).clamp_min(LEAST_VARIANCE))


def _parts(network: Network, weights: Sequence[Tensor], x: Tensor) -> Sequence[Tensor]:
    """Checked x in batches, for weights of the network's shapes."""
    shapes, given = [layer.known_shape for layer in network.weighted()], [tuple(w.shape) for w in weights]
    if shapes != given:
        raise ValueError(f"weights must have the shapes {shapes}, got {given}")
    return torch.split(checked_inputs(network, x), BATCH)
