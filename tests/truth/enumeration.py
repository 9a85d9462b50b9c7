"""Exact posterior of a small network with ±1 weights, by summing over all configurations.

    P(W | D) ∝ Π_n P(y_n | z_n(W)) · exp(Σ_l Σ_ki θ^l_ki W^l_ki)

Hidden units are hard: sign(z) with sign(0) = +1, unless another function is given. The output is hard,
P(y|z) = [y = sign z], or noisy with variance ν, P(y|z) = Φ(yz/√ν); a noisy output gives every set of labels a
positive probability.

Flipping all weights into and out of a hidden unit leaves the likelihood as it was, so without prior fields
every exact mean of a network with hidden units is zero: draw the fields at random to have something to
compare.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

Array = NDArray[np.floating]
Function = Callable[[Array], Array]

MAX_BITS = 26
CHUNK_BITS = 15


def random_fields(sizes: Sequence[int], scale: float, rng: np.random.Generator) -> list[Array]:
    """Gaussian prior fields of standard deviation `scale`: one K×N array per layer of a network `sizes`."""
    return [scale * rng.standard_normal((k, n)) for n, k in pairwise(sizes)]


def sign(z: Array) -> Array:
    return np.where(z >= 0, 1.0, -1.0)


def posterior_means(
    x: Array, y: Array, fields: Sequence[Array], noise: float = 0.0, activation: Function = sign
) -> list[Array]:
    """Exact E[W | D] for inputs x (M×N₀), labels y (M,), prior fields K×N per layer; shapes as the fields."""
    log_p = log_posterior(x, y, fields, noise, activation)
    return unpack(bit_means(np.exp(log_p)), [f.shape for f in fields])


def log_posterior(
    x: Array, y: Array, fields: Sequence[Array], noise: float = 0.0, activation: Function = sign
) -> Array:
    """Normalised log P(W | D) of all 2ⁿ configurations; weight b is +1 where bit b of the index is set."""
    log_p = log_joint(x, y, fields, noise, activation)
    normalised: Array = log_p - logsumexp(log_p)
    return normalised


def log_evidence(x: Array, y: Array, fields: Sequence[Array], noise: float = 0.0, activation: Function = sign) -> float:
    """log P(y | x) under the normalised prior Π e^{θw}/2cosh θ."""
    norm = sum(float(np.logaddexp(f, -f).sum()) for f in fields)
    return float(logsumexp(log_joint(x, y, fields, noise, activation))) - norm


def log_joint(x: Array, y: Array, fields: Sequence[Array], noise: float, activation: Function) -> Array:
    """log P(y | x, W) + Σ θW of all 2ⁿ configurations."""
    theta = np.concatenate([f.ravel() for f in fields])
    check(x, y, fields, theta.size)
    shapes = [f.shape for f in fields]
    log_p = np.empty(2**theta.size)
    step = 2 ** min(CHUNK_BITS, theta.size)
    for start in range(0, log_p.size, step):
        w = configurations(np.arange(start, start + step), theta.size)
        z = preactivations(x, unpack(w, shapes), activation)
        log_p[start : start + step] = log_likelihood(z, y, noise) + w @ theta
    if not np.isfinite(log_p).any():
        raise ValueError("y: no weight configuration reproduces these labels; give noise > 0 or other labels")
    return log_p


def configurations(codes: NDArray[np.int64], bits: int) -> Array:
    """The ±1 weights that the integers `codes` (C,) stand for: C×bits."""
    return 2.0 * ((codes[:, None] >> np.arange(bits)) & 1) - 1.0


def bit_means(p: Array) -> Array:
    """Mean of every ±1 weight under probabilities p of all 2ⁿ configurations: (n,)."""
    bits = p.size.bit_length() - 1
    halves = [p.reshape(-1, 2, 2**b).sum(axis=(0, 2)) for b in range(bits)]
    return np.array([up - down for down, up in halves])


def unpack(w: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Cut the last axis of w (..., n) into one K×N block per layer: (..., K, N) each."""
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    parts = np.split(w, ends, axis=-1)
    return [part.reshape(*w.shape[:-1], *s) for part, s in zip(parts, shapes, strict=True)]


def preactivations(x: Array, weights: Sequence[Array], activation: Function = sign) -> Array:
    """Output preactivation z (C×M) of C networks with weights C×K×N per layer, on inputs x (M×N₀)."""
    first, *rest = weights
    z: Array = first @ x.T
    for w in rest:
        z = w @ activation(z)
    output: Array = z[:, 0, :]
    return output


def log_likelihood(z: Array, y: Array, noise: float) -> Array:
    """Σ_n log P(y_n | z_n) for z (C×M), y (M,): (C,); -inf where a hard output contradicts a label."""
    if noise > 0:
        noisy: Array = log_ndtr(y * z / np.sqrt(noise)).sum(axis=1)
        return noisy
    agrees = (np.where(z >= 0, 1.0, -1.0) == y).all(axis=1)
    return np.where(agrees, 0.0, -np.inf)


def check(x: Array, y: Array, fields: Sequence[Array], bits: int) -> None:
    """Refuse shapes that do not chain, labels other than ±1, and more weights than can be summed over."""
    if bits > MAX_BITS:
        raise ValueError(f"fields: {bits} weights have 2^{bits} configurations; at most {MAX_BITS} weights")
    widths = [x.shape[1], *(f.shape[0] for f in fields)]
    if [f.shape[1] for f in fields] != widths[:-1] or widths[-1] != 1:
        shapes = [f.shape for f in fields]
        raise ValueError(f"fields: shapes {shapes} do not lead from {x.shape[1]} inputs to 1 output")
    if y.shape != (x.shape[0],) or not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y: must be {x.shape[0]} labels of -1 or +1, was {y}")
