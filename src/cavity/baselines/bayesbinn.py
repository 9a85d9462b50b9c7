"""BayesBiNN (Meng, Bachmann and Khan, "Training binary neural networks using the Bayesian learning rule", ICML 2020).

Each weight is ±1 with the natural parameter λ and the mean μ = tanh λ. The Bayesian learning rule descends the expected
loss of all N samples plus the divergence from a prior λ₀, along the natural gradient, which is the derivative by μ:

    λ ← (1 − α)λ − α(s − λ₀),     s = ∂/∂μ E_q[N·L],     L = cross-entropy, the mean over samples.

The expectation is that of one draw, made differentiable (Gumbel-softmax; for two values, a logistic variable): with ε
uniform and a temperature τ,

    w_r = tanh((λ + δ)/τ),     δ = ½ log(ε/(1 − ε)),     ∂w_r/∂μ = (1 − w_r²) / (τ (1 − tanh² λ)),

and w_r → ±1 as τ → 0. The gradient passes units straight through, as in BinaryNet. At first λ₀ = 0, to which λ falls
back over 1/α steps. At the end of a task, if told of it, λ₀ ← λ: the posterior of a task is the prior of the next.

Prediction is by the mode, w = sign λ ("point"), or by the mean, w = tanh λ ("bayes"); the paper's own mean averages the
predictions of drawn networks instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from cavity.baselines.binarynet import BinaryNet
from cavity.baselines.classifier import cross_entropy, require_above
from cavity.baselines.compiled import Stepper
from cavity.baselines.straight_through import Layer, layer_sums
from cavity.baselines.trainer import GradientTrainer, Optimizer
from cavity.training.schedules import Function

#: τ and N of the authors' own permuted MNIST; α is the best of three where no ends of tasks are told
#: (``docs/api/baselines.md``). The first |λ| is ours: at 10, theirs, hardly any draw in float32 flips a weight.
LR, TEMPERATURE, SAMPLES, INIT = 1e-4, 1e-2, 60_000.0, 1.0


class BayesBinaryNet(BinaryNet):
    """A BinaryNet whose ``weights`` are natural parameters λ, at first ±``init`` at random."""

    bayesian: ClassVar[bool] = True

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        activation: str = "sign",
        density: float = 1.0,
        init: float = INIT,
        seed: int = 0,
    ) -> None:
        super().__init__(inputs, hidden, outputs, activation=activation, density=density, seed=seed)
        require_above("init", init, least_too=True)
        with torch.no_grad():
            for w in self.weights:
                w.copy_(torch.copysign(torch.tensor(init), w))

    @torch.no_grad()
    def mean_weights(self) -> list[Tensor]:
        return [torch.tanh(w) * layer.magnitude for w, layer in zip(self.weights, self.layers, strict=True)]

    def bayesian_logits(self, x: Tensor) -> Tensor:
        """Logits with the weights' means."""
        return layer_sums(self.mean_weights(), self.layers, x)[-1].z * self.scales[-1]


class _Relaxed(torch.autograd.Function):
    """w_r = tanh((λ + δ)/τ), differentiable by the mean μ = tanh λ: what is returned for λ is the derivative by μ."""

    @staticmethod
    def forward(ctx: Any, natural: Tensor, delta: Tensor, temperature: float) -> Tensor:
        u = (natural + delta) / temperature
        ctx.save_for_backward(natural, u)
        ctx.temperature = temperature
        return torch.tanh(u)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        natural, u = ctx.saved_tensors
        # (1 − w_r²)/(1 − μ²) = (cosh λ/cosh u)². Both sides of the fraction vanish in float32 where |λ| exceeds 9, the
        # difference of logarithms does not.
        ratio = torch.exp(2 * (_log_cosh(natural) - _log_cosh(u)))
        return gradients[0] * ratio / ctx.temperature, None, None


def _log_cosh(x: Tensor) -> Tensor:
    """log(2 cosh x)."""
    return x.abs() + torch.log1p(torch.exp(-2 * x.abs()))


def relaxed(natural: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """w_r from λ and uniform noise ε, both (outputs, inputs); its derivative is that by μ."""
    drawn: Tensor = _Relaxed.apply(natural, 0.5 * torch.logit(noise), temperature)  # type: ignore[no-untyped-call]
    return drawn


class NaturalDescent(Optimizer):
    """λ ← (1 − α)λ − α(N·∂L/∂μ − λ₀), with α = ``lr``; slots: λ₀ of each layer."""

    def __init__(self, lr: float, samples: float) -> None:
        super().__init__(lr, math.inf)
        if lr > 1:
            raise ValueError(f"lr must be at most 1, got {lr!r}")
        require_above("samples", samples)
        self.samples = samples

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        return [torch.zeros_like(w, requires_grad=False) for w in weights]

    def update(
        self, weights: Sequence[Tensor], gradients: Sequence[Tensor], slots: Sequence[Tensor], factor: Tensor | None
    ) -> None:
        rate = self.lr if factor is None else self.lr * factor
        for natural, gradient, prior in zip(weights, gradients, slots, strict=True):
            natural.sub_(rate * (self.samples * gradient + natural - prior))


def bayes_step(
    x: Tensor,
    y: Tensor,
    natural: Sequence[Tensor],
    layers: Sequence[Layer],
    prior: Sequence[Tensor],
    optimizer: Optimizer,
    factor: Tensor | None,
    noise: Sequence[Tensor],
    temperature: float,
) -> Tensor:
    """One draw of the weights, forward, backward and update; returns the mean loss of the draw."""
    parts = zip(natural, noise, layers, strict=True)
    weights = [relaxed(field, eps, temperature) * layer.magnitude for field, eps, layer in parts]
    loss = cross_entropy(layer_sums(weights, layers, x)[-1].z * layers[-1].scale, y)
    return optimizer.descend(loss, natural, prior, factor)


class BayesBiNNTrainer(GradientTrainer):
    """Trains a BayesBinaryNet by the Bayesian learning rule; ``end_task`` makes its posterior the prior.

    Args:
        lr: α, the step size, and 1/α the steps over which λ goes to the prior.
        temperature: τ of the relaxed draw.
        samples: N, how many samples the mean loss stands for.
        schedule: a factor on α over a call of ``fit``.
        compile: the step as one graph for each new batch size.
        seed: of the batches and the draws.
    """

    net: BayesBinaryNet

    def __init__(
        self,
        net: BayesBinaryNet,
        *,
        lr: float | None = None,
        temperature: float = TEMPERATURE,
        samples: float = SAMPLES,
        schedule: str | Function | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        optimizer = NaturalDescent(LR if lr is None else lr, samples)
        super().__init__(net, optimizer, schedule=schedule, seed=seed)
        require_above("temperature", temperature)
        self.temperature = temperature
        self._step = Stepper(bayes_step, compile)

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        natural, layers = list(self.net.weights), self.net.layers
        noise = [torch.rand(w.shape, generator=self.generator, dtype=w.dtype).to(w.device) for w in natural]
        return self._step(x, y, natural, layers, self.slots, self.optimizer, self.factor, noise, self.temperature)

    @torch.no_grad()
    def end_task(self, x: Tensor, y: Tensor) -> None:
        """λ₀ ← λ; the samples are not looked at."""
        for prior, natural in zip(self.slots, self.net.weights, strict=True):
            prior.copy_(natural)
