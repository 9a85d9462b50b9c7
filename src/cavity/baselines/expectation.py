"""Expectation Backpropagation (Soudry, Hubara and Meir 2014), without biases as in the paper's appendix.

One sample (x, y) changes a factorised belief about the weights of a network of sign units by Bayes' rule,

    log q'(W_ki) = log q(W_ki) + log P(y | x, W_ki) + const,

averaging over all other weights. With many inputs the pre-activations are Gaussian, u_k ~ 𝒩(μ_k, σ_k²). Going up,

    μ_k = Σ_i m_ki v̂_i,     σ_k² = Σ_i (E[W_ki²] E[v_i²] − m_ki² v̂_i²),     v̂_k = E[sign u_k] = 2Φ(μ_k/σ_k) − 1

and P(y | x) = Π_k Φ(y_k μ_k/σ_k) at the output. A single weight shifts μ_k by (W_ki − m_ki) v̂_i, one part in √N: to
first order log P(y | x, W_ki) = δ_k v̂_i W_ki + const, with δ_k = ∂ log P(y | x)/∂μ_k given by the chain rule,

    δ_k = y_k 𝒩(0; μ_k, σ_k²)/Φ(y_k μ_k/σ_k) at the output,     δ_i = 2 𝒩(0; μ_i, σ_i²) Σ_k m_ki δ_k below.

A term linear in W adds δ_k v̂_i to the natural parameter h_ki: m = tanh h for weights ±1; for Gaussian weights m = s² h,
and their variance s² does not change. The samples of a mini-batch are treated as independent: their terms add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from cavity.baselines.classifier import Classifier, require_above, require_one
from cavity.baselines.trainer import BaselineTrainer
from cavity.core.special import hazard, log_ndtr

WEIGHTS = ("binary", "gaussian")
#: Least σ² relative to the number of inputs: fully polarised weights and units have none left.
VARIANCE_FLOOR = 1e-6


class _Up(NamedTuple):
    """Results of the upward pass of a layer: v̂ of its inputs (samples, inputs), μ and σ (samples, outputs)."""

    inputs: Tensor
    mu: Tensor
    sigma: Tensor


class ExpectationBackpropagation(Classifier):
    """A perceptron ``inputs``-``hidden``-``outputs`` of sign units, with a belief about each weight.

    ``weights`` is "binary" or "gaussian". ``init`` sets the first beliefs: h = init·𝒩(0, 1) for binary weights, mean
    s·𝒩(0, 1) and standard deviation s = init/√N for Gaussian ones. Several outputs are one ±1 unit per class.
    """

    bayesian: ClassVar[bool] = True

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        weights: str = "binary",
        init: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(inputs, hidden, outputs)
        require_one("weights", weights, WEIGHTS)
        require_above("init", init)
        self.kind = weights
        generator = torch.Generator().manual_seed(seed)
        #: s² of each layer's Gaussian weights.
        self.spreads = [init**2 / columns for _, columns in self.shapes]
        for number, shape in enumerate(self.shapes):
            scale = init if weights == "binary" else 1 / math.sqrt(self.spreads[number])
            self.register_buffer(f"field_{number}", scale * torch.randn(shape, generator=generator))

    @property
    def fields(self) -> list[Tensor]:
        """h (outputs, inputs) of each layer, shared with the network."""
        return [self.get_buffer(f"field_{number}") for number in range(len(self.spreads))]

    def moments(self) -> list[tuple[Tensor, Tensor]]:
        """m and E[W²] (outputs, inputs) of each layer's weights."""
        if self.kind == "binary":
            return [(torch.tanh(h), torch.ones_like(h)) for h in self.fields]
        means = [s2 * h for s2, h in zip(self.spreads, self.fields, strict=True)]
        return [(m, m.square() + s2) for m, s2 in zip(means, self.spreads, strict=True)]

    def point_weights(self) -> list[Tensor]:
        if self.kind == "binary":
            return [torch.copysign(torch.ones_like(h), h) for h in self.fields]
        return self.mean_weights()

    def mean_weights(self) -> list[Tensor]:
        return [m for m, _ in self.moments()]

    def logits(self, x: Tensor) -> Tensor:
        """Pre-activations of the most probable weights, over √N."""
        *lower, last = self.point_weights()
        for w in lower:
            z = x @ w.T
            x = torch.where(z >= 0, 1.0, -1.0).to(z.dtype)
        return x @ last.T / math.sqrt(last.shape[1])

    def bayesian_logits(self, x: Tensor) -> Tensor:
        """log Φ(a) − log Φ(−a) of a = μ/σ: the log-odds of each output unit."""
        top = self.up(x, self.moments())[-1]
        a = top.mu / top.sigma
        return log_ndtr(a) - log_ndtr(-a)

    def up(self, x: Tensor, moments: Sequence[tuple[Tensor, Tensor]]) -> list[_Up]:
        """The upward pass of inputs x (samples, inputs). They are known, so their mean square is their square."""
        passed: list[_Up] = []
        square = x.square()
        for m, second in moments:
            mu = x @ m.T
            variance = square @ second.T - x.square() @ m.square().T
            sigma = variance.clamp_min(VARIANCE_FLOOR * m.shape[1]).sqrt()
            passed.append(_Up(x, mu, sigma))
            x = torch.erf(mu / (sigma * math.sqrt(2.0)))
            square = torch.ones_like(x)
        return passed

    def targets(self, y: Tensor) -> Tensor:
        """±1 of each output unit, (samples, outputs)."""
        if self.outputs == 1:
            return y.reshape(-1, 1).to(self.dtype)
        return torch.where(y.unsqueeze(1) == torch.arange(self.outputs, device=y.device), 1.0, -1.0).to(self.dtype)

    def evidence(self, x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Mean −log P(y | x), and Σ_n δ_kn v̂_in (outputs, inputs) of each layer, of a mini-batch."""
        moments = self.moments()
        passed = self.up(x, moments)
        sign, top = self.targets(y), passed[-1]
        a = sign * top.mu / top.sigma
        delta = sign * hazard(-a) / top.sigma
        terms: list[Tensor] = []
        for number in reversed(range(len(passed))):
            terms.append(delta.T @ passed[number].inputs)
            if number > 0:
                _, mu, sigma = passed[number - 1]
                normal = torch.exp(-0.5 * (mu / sigma).square()) / (sigma * math.sqrt(2 * math.pi))
                delta = 2 * normal * (delta @ moments[number][0])
        return -log_ndtr(a).sum(dim=1).mean(), terms[::-1]


class ExpectationTrainer(BaselineTrainer):
    """One Bayesian update for each mini-batch. The only thing to tune is the batch size; about 10 works well."""

    net: ExpectationBackpropagation

    def __init__(self, net: ExpectationBackpropagation, seed: int = 0) -> None:
        super().__init__(seed)
        self.net = net

    @torch.no_grad()
    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        loss, terms = self.net.evidence(x, y)
        for h, term in zip(self.net.fields, terms, strict=True):
            h.add_(term)
        return loss
