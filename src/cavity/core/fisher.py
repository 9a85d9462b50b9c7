"""Precisions that belong to their fields and are never negative: the Fisher part of those that the paper prints.

A factor linearised at w = m says D(w − m) − ½G(w − m)², D = Σ_n x̂ g, which as a message exp(Hw − ½Gw²) is H = D + mG,
and likewise B = D + x̂A on activations. The printed equations do not keep to that where w² or x² is not constant:

- mean field sends H = D with G ≠ 0, and so does a coupled output under every algorithm: each mini-batch shrinks m by
  λ/(λ + G), and pulls every activation to 0;
- the others send H = D + mΣx̂²Γ with G = Σ((x̂² + Δ)Γ − Δg²): where Δg² wins, on samples that are badly predicted, m
grows
  in proportion to itself, and λ may become negative.

Here Γ⁺ = max(Γ, 0) and

    G_ki = Σ_n x̂² Γ⁺,    A_in = Σ_k m² Γ⁺,    H = D + mG,    B = D + x̂A

What is dropped, Δ(Γ − g²) and σ(Γ − g²), has expectation 0 under the model's own prediction: Σ_y ∂²Z(y)/∂ω² = 0 gives
E_y[g²] = E_y[Γ]. Γ ≥ 0 for every log-concave output. By induction A ≥ 0 and λ > 0, and no floor
acts. Discrete weights without λ keep the algorithm's own H.

That H = D + mΣx̂²Γ is a message: right when it is sent once. A run sends it in every epoch. The exact gradient of log Z
with respect to the mean of a ±1 weight is D + mΣx̂²(Γ − g²), on average D under the model's own prediction, so that the
term mΣx̂²Γ alone makes weights certain of what they are already, and the more often the more. A label or an argmax ends
that by itself: Γ vanishes on samples that are fitted. The Γ = 1/(V + ν) of a Gaussian output never does, and weights
become certain whatever the data say. Under such an output discrete weights get the bare gradient, H = D and G = 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.messages import Response
from cavity.core.state import Site


def positive_part(response: Response) -> Response:
    """g and Γ⁺ = max(Γ, 0)."""
    return Response(response.gradient, response.curvature.clamp_min(0))


def lacking(algorithm: Algorithm, site: Site, response: Response, gamma: Tensor) -> Tensor | None:
    """``gamma`` = Γ⁺ less the curvature that the algorithm's H = D + mΣx̂²(·) and B hold already, shaped like ω; None
    where that is all of it. Mean field and coupled outputs hold none, AMP was given Γ⁺, cavity sums hold Γ itself."""
    if not site.channel.elementwise or algorithm.corrections == "none":
        return gamma
    return None if algorithm.corrections == "first order" else (-response.curvature).clamp_min(0)


def weight_message(
    site: Site, m: Tensor, x: Tensor, H: Tensor, gamma: Tensor, lack: Tensor | None
) -> tuple[Tensor, Tensor]:
    """H = D + mG and G = Σ_n x̂² Γ⁺, (outputs, columns), from what the algorithm gives for H."""
    back, square = site.coupling.back_to_weights, x.square()
    G = back(gamma, square)
    # Where all of it is lacking, one sum does for both.
    return H if lack is None else H + m * (G if lack is gamma else back(lack, square)), G


def input_message(
    site: Site, m: Tensor, x: Tensor, B: Tensor, gamma: Tensor, lack: Tensor | None
) -> tuple[Tensor, Tensor]:
    """B = D + x̂A and A = Σ_k m² Γ⁺, (samples, *input_shape), from what the algorithm gives for B."""
    back, square = site.coupling.back_to_inputs, m.square()
    A = back(square, gamma)
    return B if lack is None else B + x.reshape(B.shape) * (A if lack is gamma else back(square, lack)), A


def bare_gradient(site: Site, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor | None]:
    """H = D = Σ_n x̂ g and G = 0 (None where w² is constant), (outputs, columns)."""
    D = site.coupling.back_to_weights(g, x)
    return D, torch.zeros_like(D) if site.prior.uses_precision else None
