"""Every channel and prior as one function of numbers, in four guises: the library's, mpmath's, torch's, and its
integral.

A case takes its inputs in one fixed order and answers with named quantities: ``value`` (φ or ψ), ``mean`` and
``variance`` (first and second derivative in B or h), ``gradient`` and ``curvature`` (first and minus second derivative
in ω; one of each per class for an ArgMax output).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import mpmath as mp
import torch
from torch import Tensor
from torch.special import log_ndtr

from cavity.core import channels, priors
from cavity.core.channels.argmax import Method
from cavity.core.messages import Fields, Preactivation, Target

from . import exact

CLASSES = 3
WINNER = 1
NOISE = 0.7
ATOMS = ((-1.5, 0.25, 1.0, 1.5), (1.0, 0.5, 2.0, 3.0))


@dataclass(frozen=True)
class Case:
    """One channel or prior; ``library`` takes tensors (points,), ``exact`` mpmath numbers, ``phi`` differentiable
    tensors."""

    inputs: tuple[str, ...]
    library: Callable[..., dict[str, Tensor]]
    exact: Callable[..., exact.Quantities]
    phi: Callable[..., Tensor]
    #: quantity → (input, order, factor): factor · ∂^order φ / ∂ input^order
    derivatives: Mapping[str, tuple[str, int, float]]
    #: The defining integral over z, in branches: x(z) and the log of the integrand, without the 𝒩(z; ω, V) of a
    #: channel. None where φ is not defined by an integral, or ``phi`` is that integral.
    branches: Callable[..., list[tuple[Tensor, Tensor]]] | None = None
    #: Numbers that the function is made of; ``exact`` takes them after its inputs, if they are rounded too.
    constants: tuple[float, ...] = ()


IN_FIELD = {"mean": ("B", 1, 1.0), "variance": ("B", 2, 1.0)}
IN_OMEGA = {"gradient": ("omega", 1, 1.0), "curvature": ("omega", 2, -1.0)}
IN_WEIGHT = {"mean": ("h", 1, 1.0), "variance": ("h", 2, 1.0)}


# ------------------------------------------------------------------------------------------------- activations


def run_activation(
    channel: channels.Activation, B: Tensor, A: Tensor | None, omega: Tensor, V: Tensor
) -> dict[str, Tensor]:
    message, pre = Fields(B, A), Preactivation(omega, V)
    mean, variance = channel.moments(message, pre)
    gradient, curvature = channel.response(message, pre)
    assert variance is not None
    return {
        "value": channel.value(message, pre),
        "mean": mean,
        "variance": variance,
        "gradient": gradient,
        "curvature": curvature,
        "gradient alone": channel.gradient(message, pre),
    }


def sign_phi(noise: float, B: Tensor, omega: Tensor, V: Tensor) -> Tensor:
    u = omega / torch.sqrt(V + noise)
    return torch.logaddexp(B + log_ndtr(u), log_ndtr(-u) - B)


def sign_branches(noise: float, z: Tensor, B: Tensor, omega: Tensor, V: Tensor) -> list[tuple[Tensor, Tensor]]:
    def log_likelihood(x: float) -> Tensor:
        return log_ndtr(x * z / math.sqrt(noise)) if noise else torch.where(x * z > 0, 0.0, -math.inf)

    return [(torch.full_like(z, x), B * x + log_likelihood(x)) for x in (-1.0, 1.0)]


def gaussian_phi(B: Tensor, A: Tensor, omega: Tensor, V: Tensor) -> Tensor:
    r = 1 + A * V
    return ((omega / torch.sqrt(V) + B * torch.sqrt(V)) ** 2 / r - omega**2 / V - torch.log(r)) / 2


def piecewise_phi(channel: channels.PiecewiseLinear, B: Tensor, A: Tensor, omega: Tensor, V: Tensor) -> Tensor:
    """Each piece is a Gaussian integral in z, times the mass between its ends."""
    V = V + channel.noise
    logs = []
    for (low, high), a, b in zip(intervals(channel), channel.slopes, channel.offsets, strict=True):
        field, precision = a * (B - A * b), a * a * A
        mu, sigma = (omega + field * V) / (1 + precision * V), torch.sqrt(V / (1 + precision * V))
        if math.isinf(low):
            log_mass = log_ndtr((high - mu) / sigma) if math.isfinite(high) else 0.0
        elif math.isinf(high):
            log_mass = log_ndtr((mu - low) / sigma)
        else:
            log_mass = torch.log(torch.special.ndtr((high - mu) / sigma) - torch.special.ndtr((low - mu) / sigma))
        logs.append(B * b - A * b * b / 2 + gaussian_phi(field, precision, omega, V) + log_mass)
    return torch.logsumexp(torch.stack(logs), dim=0)


def intervals(channel: channels.PiecewiseLinear) -> list[tuple[float, float]]:
    return list(pairwise((-math.inf, *channel.edges, math.inf)))


def sign_case(noise: float) -> Case:
    channel = channels.Sign(noise)
    return Case(
        inputs=("B", "omega", "V"),
        library=lambda B, omega, V: run_activation(channel, B, None, omega, V),
        exact=lambda B, omega, V: exact.sign(B, omega, V + noise),
        phi=partial(sign_phi, noise),
        derivatives=IN_FIELD | IN_OMEGA,
        branches=partial(sign_branches, noise),
    )


def identity_case() -> Case:
    return Case(
        inputs=("B", "A", "omega", "V"),
        library=partial(run_activation, channels.Identity()),
        exact=exact.identity,
        phi=gaussian_phi,
        derivatives=IN_FIELD | IN_OMEGA,
        branches=lambda z, B, A, omega, V: [(z, B * z - 0.5 * A * z**2)],
    )


def piecewise_case(channel: channels.PiecewiseLinear) -> Case:
    """The mean of a hard tanh and the gradient of an absolute value vanish at ω = 0 by symmetry of the pieces: their
    digits there are those of the edges and slopes, which are rounded as the inputs are."""
    symmetric = isinstance(channel, channels.HardTanh | channels.Absolute)

    def branches(z: Tensor, B: Tensor, A: Tensor, omega: Tensor, V: Tensor) -> list[tuple[Tensor, Tensor]]:
        x = channel.forward(z)
        return [(x, B * x - 0.5 * A * x**2)]

    def truth(B: mp.mpf, A: mp.mpf, omega: mp.mpf, V: mp.mpf, *constants: mp.mpf) -> exact.Quantities:
        edges, slopes, offsets = split(constants or numbers(channel), channel)
        ends = (-mp.inf, *edges, mp.inf)
        lines = [exact.Line(*line) for line in zip(ends[:-1], ends[1:], slopes, offsets, strict=True)]
        return exact.piecewise(lines, B, A, omega, V + channel.noise)

    return Case(
        inputs=("B", "A", "omega", "V"),
        library=partial(run_activation, channel),
        exact=truth,
        phi=partial(piecewise_phi, channel),
        derivatives=IN_FIELD | IN_OMEGA,
        branches=None if channel.noise else branches,
        constants=numbers(channel) if symmetric else (),
    )


def numbers(channel: channels.PiecewiseLinear) -> tuple[float, ...]:
    """What declares the function: edges, slopes, offsets."""
    return (*channel.edges, *channel.slopes, *channel.offsets)


def split(constants: Sequence[mp.mpf], channel: channels.PiecewiseLinear) -> list[list[mp.mpf]]:
    found = iter(map(mp.mpf, constants))
    return [[next(found) for _ in part] for part in (channel.edges, channel.slopes, channel.offsets)]


# ----------------------------------------------------------------------------------------------------- outputs


def run_output(channel: channels.Output, labels: Tensor, omega: Tensor, V: Tensor) -> dict[str, Tensor]:
    message, pre = Target(labels, None), Preactivation(omega, V)
    gradient, curvature = channel.response(message, pre)
    return {
        "value": channel.value(message, pre),
        "gradient": gradient,
        "curvature": curvature,
        "gradient alone": channel.gradient(message, pre),
    }


def label_case(y: int, noise: float) -> Case:
    channel = channels.Label(noise)

    def branches(z: Tensor, omega: Tensor, V: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [sign_branches(noise, z, torch.zeros(()), omega, V)[(y + 1) // 2]]

    return Case(
        inputs=("omega", "V"),
        library=lambda omega, V: run_output(channel, torch.full_like(omega, y), omega, V),
        exact=lambda omega, V: exact.label(y, omega, V + noise),
        phi=lambda omega, V: log_ndtr(y * omega / torch.sqrt(V + noise)),
        derivatives=IN_OMEGA,
        branches=branches,
    )


def gaussian_output_case() -> Case:
    channel = channels.GaussianOutput(NOISE)

    def branches(z: Tensor, y: Tensor, omega: Tensor, V: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(z, -((y - z) ** 2) / (2 * NOISE) - 0.5 * math.log(2 * math.pi * NOISE))]

    return Case(
        inputs=("y", "omega", "V"),
        library=partial(run_output, channel),
        exact=lambda y, omega, V: exact.gaussian_output(y, omega, V + NOISE),
        phi=lambda y, omega, V: torch.distributions.Normal(omega, torch.sqrt(V + NOISE)).log_prob(y),
        derivatives=IN_OMEGA,
        branches=branches,
    )


def run_argmax(method: Method, *inputs: Tensor) -> dict[str, Tensor]:
    """Inputs ω_0 … ω_{C−1}, V_0 … V_{C−1} and, if sampled, the draw of each sample."""
    omega, V = torch.stack(inputs[:CLASSES], dim=1), torch.stack(inputs[CLASSES : 2 * CLASSES], dim=1)
    noise = inputs[-1].unsqueeze(1) if method == "sampled" else None
    channel = channels.ArgMax(method)
    message, pre = Target(torch.full((len(omega),), WINNER), noise), Preactivation(omega, V)
    gradient, curvature = channel.response(message, pre)
    result = {"value": channel.value(message, pre)}
    for k in range(CLASSES):
        result |= {f"gradient_{k}": gradient[:, k], f"curvature_{k}": curvature[:, k]}
        result[f"gradient_{k} alone"] = channel.gradient(message, pre)[:, k]
    return result


def duels_exact(*inputs: exact.mp.mpf) -> exact.Quantities:
    noise = inputs[-1] if len(inputs) > 2 * CLASSES else None
    return exact.duels(WINNER, inputs[:CLASSES], inputs[CLASSES : 2 * CLASSES], noise)


def winner_exact(*inputs: exact.mp.mpf) -> exact.Quantities:
    return exact.three_classes(WINNER, inputs[:CLASSES], inputs[CLASSES:])


def duels_phi(*inputs: Tensor) -> Tensor:
    omega, V, noise = inputs[:CLASSES], inputs[CLASSES : 2 * CLASSES], inputs[2 * CLASSES :]
    total = torch.zeros_like(omega[0])
    for k in set(range(CLASSES)) - {WINNER}:
        lead = omega[WINNER] - omega[k]
        lead = lead + noise[0] * torch.sqrt(V[WINNER]) if noise else lead
        total = total + log_ndtr(lead / torch.sqrt(V[k] if noise else V[k] + V[WINNER]))
    return total


def winner_phi(*inputs: Tensor) -> Tensor:
    """log ∫ dz 𝒩(z; ω_*, V_*) Π Φ((z − ω_k)/√V_k), by the trapezoidal rule on a range for moderate arguments."""
    omega, V = inputs[:CLASSES], inputs[CLASSES:]
    z = torch.linspace(-40, 40, 8001, dtype=torch.float64).unsqueeze(1)
    log_p = torch.distributions.Normal(omega[WINNER], torch.sqrt(V[WINNER])).log_prob(z)
    for k in set(range(CLASSES)) - {WINNER}:
        log_p = log_p + log_ndtr((z - omega[k]) / torch.sqrt(V[k]))
    return torch.logsumexp(log_p, dim=0) + math.log(80 / 8000)


def argmax_case(method: Method) -> Case:
    inputs = [f"omega_{k}" for k in range(CLASSES)] + [f"V_{k}" for k in range(CLASSES)]
    derivatives: dict[str, tuple[str, int, float]] = {}
    for k in range(CLASSES):
        derivatives |= {f"gradient_{k}": (f"omega_{k}", 1, 1.0), f"curvature_{k}": (f"omega_{k}", 2, -1.0)}
    return Case(
        inputs=(*inputs, "noise") if method == "sampled" else tuple(inputs),
        library=partial(run_argmax, method),
        exact=winner_exact if method == "exact" else duels_exact,
        phi=winner_phi if method == "exact" else duels_phi,
        derivatives=derivatives,
    )


# ------------------------------------------------------------------------------------------------------ priors


def run_prior(prior: priors.Prior, h: Tensor, precision: Tensor | None = None) -> dict[str, Tensor]:
    natural = Fields(h, precision)
    mean, variance = prior.moments(natural)
    assert variance is not None
    return {"value": prior.value(natural), "mean": mean, "variance": variance}


def atoms_case(prior: priors.Prior, values: Sequence[float], base: Sequence[float]) -> Case:
    def phi(h: Tensor, precision: Tensor) -> Tensor:
        return torch.log(sum(b * torch.exp(a * h - a * a * precision / 2) for a, b in zip(values, base, strict=True)))

    return Case(
        inputs=("h", "precision"),
        library=partial(run_prior, prior),
        exact=lambda h, precision: exact.atoms(values, base, h, precision),
        phi=phi,
        derivatives=IN_WEIGHT,
    )


def binary_case() -> Case:
    return Case(
        inputs=("h",),
        library=partial(run_prior, priors.Binary()),
        exact=lambda h: exact.atoms((-1, 1), (1, 1), h, exact.mp.mpf(0)),
        phi=lambda h: torch.log(2 * torch.cosh(h)),
        derivatives=IN_WEIGHT,
    )


def gaussian_weight_case() -> Case:
    return Case(
        inputs=("h", "precision"),
        library=partial(run_prior, priors.Gaussian()),
        exact=exact.gaussian_weight,
        phi=lambda h, precision: (h**2 / precision - torch.log(precision / (2 * math.pi))) / 2,
        derivatives=IN_WEIGHT,
        branches=lambda z, h, precision: [(z, h * z - precision * z**2 / 2)],
    )


PIECEWISE = {name: kind for name, kind in channels.ACTIVATIONS.items() if issubclass(kind, channels.PiecewiseLinear)}
CASES: dict[str, Case] = {
    "sign": sign_case(0.0),
    "noisy sign": sign_case(NOISE),
    "identity": identity_case(),
    **{name: piecewise_case(kind()) for name, kind in PIECEWISE.items()},
    "noisy hard-tanh": piecewise_case(channels.HardTanh(NOISE)),
    "label +1": label_case(1, 0.0),
    "label -1": label_case(-1, 0.0),
    "noisy label": label_case(-1, NOISE),
    "gaussian output": gaussian_output_case(),
    "argmax pairwise": argmax_case("pairwise"),
    "argmax sampled": argmax_case("sampled"),
    "argmax exact": argmax_case("exact"),
    "binary": binary_case(),
    "gaussian": gaussian_weight_case(),
    "ternary": atoms_case(priors.Ternary(), (-1, 0, 1), (1, 1, 1)),
    "atoms": atoms_case(priors.Atoms(*ATOMS), *ATOMS),
}
