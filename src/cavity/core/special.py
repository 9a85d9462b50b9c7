"""Gaussian tail functions: elementwise, float32 and float64, any device, no branch on a value.

N is the standard normal density, Q(x) = ½ erfc(x/√2) its upper tail. Everything but tanh rests on two polynomials
made by `scripts/fit_special.py`, one in r = 1/(4 + a), one in y = 8r − 1; each covers all a ≥ 0 at once:

    Mills ratio      R(a) = Q(a)/N(a) = r · MILLS(r)
    next remainder   J(a) = r · NEXT(y),  where R = 1/(a + 1/(a + J)) and J ≈ 2/a

J makes it possible to form analytically the differences that would cancel in the tails, and exp is the only
transcendental function on the hot path. Temporaries are reused in place, so autograd is not supported.

What is most in use on small tables takes an `Array` of PyTorch or NumPy (``arrays.py`` says why), and returns the same.

Errors are below 8 machine epsilons of |f| + Σ |x ∂f/∂x|, the value and what a relative change of the inputs
makes of it; below 16 for `hazard_slope`, the variance of `tail` and the second output of `sign_response`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import erfcx
from torch import Tensor

from cavity.core.arrays import Array, indicator, kept, library, negative, pick, select

SQRT_2 = math.sqrt(2)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
SQRT_2PI = math.sqrt(2 * math.pi)
SQRT_HALF_PI = math.sqrt(math.pi / 2)

# The only clamp. In float32 u² is inf from |u| = 2e19 on, and inf − inf would be NaN where B is infinite too.
# e^{u²/2} overflows from u² = 1500 on even in float64, so no finite result changes.
LARGEST_SQUARE = 1e38

# fmt: off
# degree 9, relative error of the fit below 6.3e-8
MILLS_32 = (
    5.29279810e+4, -5.41052848e+4, 1.61128111e+4, -1.39532589e+3, 6.66121770e+2, 1.50460638e+2, 5.24026930e+1,
    1.49934835e+1, 4.00004056, 9.99999959e-1,
)
# degree 22, relative error of the fit below 2.0e-16
MILLS_64 = (
    -3.1232825287293841e+11, 8.8843181648874525e+11, -1.1583898556559985e+12, 9.1316317612201998e+11,
    -4.8340713657733876e+11, 1.8079362409530919e+11, -4.9193936793357770e+10, 1.0003504597811448e+10,
    -1.5766811353996003e+9, 1.9717932619835352e+8, -1.8566973229241880e+7, 1.4316990457704954e+6,
    -1.4065730006486667e+5, -1.3258420163666500e+4, -2.1605591618399593e+3, 1.1842253082551518e+3,
    9.6091479702841963e+2, 4.4400120895632497e+2, 1.6299998861809456e+2, 5.2000000065021097e+1,
    1.4999999999805772e+1, 4.0000000000002264, 9.9999999999999996e-1,
)
# degree 13, relative error of the fit below 5.6e-8
NEXT_32 = (
    5.83614230e-4, -2.03573173e-3, -3.72541910e-3, 1.16150789e-2, 1.34775682e-2, -3.51912715e-2, -4.14838974e-2,
    8.13982773e-2, 1.29919740e-1, -1.58520192e-1, -4.45735297e-1, 1.49491997e-1, 1.85359198, 3.45987003,
)
# degree 28, relative error of the fit below 3.8e-16
NEXT_64 = (
    -3.3580103417047309e-7, -4.2448980318145698e-7, 3.4245886360631630e-6, 4.1112369454063897e-6,
    -1.7718012812575579e-5, -1.9889159792951398e-5, 6.4401851111263987e-5, 6.6255470225207963e-5,
    -1.9229913934031988e-4, -1.7783206252793177e-4, 5.1639201716373607e-4, 4.2612592781410827e-4,
    -1.3071330150477298e-3, -9.7961065193897099e-4, 3.1819161996605524e-3, 2.2774057042451611e-3,
    -7.5090846614213346e-3, -5.5693478485959445e-3, 1.7242780884559343e-2, 1.4672874508421164e-2,
    -3.8496386040941892e-2, -4.1927798060398614e-2, 8.2457150214833377e-2, 1.3000728131276838e-1,
    -1.5868676442788905e-1, -4.4574305574038017e-1, 1.4950199498857652e-1, 1.8535921784840184,
    3.4598699349849465,
)
# degree 4 over degree 4, relative error of the quotient below 2.3e-8
TANH_P_32 = (
    1.31773534e-8, 2.04810600e-5, 3.48780325e-3, 1.33744686e-1, 9.99999977e-1,
)
TANH_Q_32 = (
    7.70397538e-7, 3.27290747e-4, 2.58473589e-2, 4.67077824e-1, 1.00000000,
)
# fmt: on
#: Of fewer numbers than this the number of calls counts more than that of operations.
FEW = 32768
#: Of fewer than this one slow function of SciPy's is faster than a polynomial.
FEWEST = 1024
# From here on float32 has nothing between tanh and 1.
TANH_RANGE = 9.1


def hazard(x: Tensor) -> Tensor:
    """The paper's 𝒦(x) = N(x)/Q(x), the hazard rate of the standard normal: x for x → ∞, N(x) for x → −∞."""
    return _hazard_parts(x, _next_remainder(x.abs()))[0]


def hazard_excess(x: Tensor) -> Tensor:
    """𝒦(x) − x > 0, the mean excess of a standard normal over x: 1/x for x → ∞, −x for x → −∞."""
    return _hazard_parts(x, _next_remainder(x.abs()))[1]


def hazard_slope(x: Tensor) -> Tensor:
    """𝒦'(x) = 𝒦(x)(𝒦(x) − x), between 0 and 1."""
    K, excess, _, _ = _hazard_parts(x, _next_remainder(x.abs()))
    return K * excess


class Tail(NamedTuple):
    """A standard normal restricted to (x, ∞); all have the shape of x."""

    hazard: Tensor  # 𝒦(x), its density at x
    excess: Tensor  # 𝒦(x) − x, its mean distance from x
    variance: Tensor  # 1 − 𝒦'(x)
    log_mass: Tensor  # log Q(x) + ½ max(x, 0)²


def tail(x: Tensor) -> Tail:
    """All about the tail at once. The variance is 1/x² for x → ∞: with h = 𝒦 − x = 1/(x + J), 1 − (x + h)h = h(J − h),
    and J ≈ 2h leaves nothing to cancel."""
    J = _next_remainder(x.abs())
    K, excess, R, inverse_density = _hazard_parts(x, J)
    negative = x < 0
    return Tail(
        K,
        excess,
        select(negative, 1 - K * excess, excess * (J - excess)),
        select(negative, torch.log1p(-R / inverse_density), -torch.log(K * SQRT_2PI)),
    )


class UpperTail(NamedTuple):
    """``Tail`` with the mass itself, Q(x) e^{½ max(x, 0)²}."""

    hazard: Array
    excess: Array
    variance: Array
    mass: Array


def upper_tail(x: Array) -> UpperTail:
    """``tail`` without a logarithm."""
    xp, left = library(x), negative(x)
    a = xp.abs(x)
    J = _next_remainder(a)
    h = xp.reciprocal(a + J)
    lower = kept(left, x)
    # N on the left, and on the right N(0): with R that makes Q, or Q without its decay.
    falls = xp.exp(lower * lower * -0.5) * (1 / SQRT_2PI)
    mass = xp.abs(indicator(left, x) - falls / (a + h))
    K = falls / mass
    excess = pick(left, K + a, h)
    return UpperTail(K, excess, pick(left, 1 - K * excess, h * (J - h)), mass)


def lower_tail(a: Array) -> tuple[Array, Array]:
    """E[max(0, t − a)] = Q(a)(𝒦(a) − a) of a standard normal t, for a ≥ 0, and J(a)."""
    xp = library(a)
    J = _next_remainder(a)
    h = xp.reciprocal(a + J)
    T = xp.exp(a * a * -0.5)
    T *= h * (1 / SQRT_2PI)
    T /= a + h
    return T, J


def log_ndtr_scaled(x: Tensor) -> Tensor:
    """log Φ(x) + ½ min(x, 0)²: the logarithm of Φ without its Gaussian decay, log R/√(2π) or log(1 − N R)."""
    R = mills_ratio(x.abs()).mul_(1 / SQRT_2PI)
    return select(x < 0, R.log(), torch.log1p(-(x * x).mul_(-0.5).exp_() * R))


def log_ndtr(x: Tensor) -> Tensor:
    """log Φ(x), accurate in both tails."""
    return log_ndtr_scaled(x) - 0.5 * x.clamp_max(0.0).square()


class PreparedSign(NamedTuple):
    """The part of `sign_gradient` that depends on B, computed once for many u; both have the shape of B."""

    scale: Tensor  # sign(B) √(2π)/(1 − e^{−2|B|}) = √(π/2) (1/tanh B + sign B)
    twice: Tensor  # 2B


def prepare_sign(B: Tensor) -> PreparedSign:
    """Prepare B for `sign_gradient`; B = ±inf is a known sign (a label), B = 0 an unknown one."""
    # Not by expm1, which compiled code on the CPU computes as e^x − 1: 0 for small x.
    return PreparedSign(_coth(B).add_(_side(B)).mul_(SQRT_HALF_PI), 2 * B)


def sign_gradient(B: Tensor, u: Tensor) -> Tensor:
    """κ(B, u) = ∂_u log Σ_{x=±1} e^{Bx} Φ(xu), which is √V g of a sign unit at u = ω/√V; B and u broadcast.

    κ = N(u)/(Φ(u) + 1/(e^{2B} − 1)) = 2N(u) tanh B/(1 + tanh B erf(u/√2)),  κ(−B, −u) = −κ(B, u)
    """
    return sign_gradient_prepared(prepare_sign(B), u)


def sign_gradient_prepared(prepared: PreparedSign, u: Tensor) -> Tensor:
    """κ(B, u) of `sign_gradient`, given `prepare_sign(B)`: one exponential, two divisions.

    Φ(u) = [u ≥ 0] − sign(u) N(u) R(|u|), so dividing by N leaves

        κ = 1/(E − sign(u) R(|u|)),  E = scale · e^{u²/2 + min(2B sign(u), 0)}

    If u and B differ in sign, the two terms add; if they agree, |E| ≥ 2R and no digits are lost. Where E
    overflows, κ is 0.
    """
    side = _side(u)
    R = mills_ratio(u.abs()).mul_(side)
    return _inverse_density(prepared, u, side).sub_(R).reciprocal_()


def sign_response(B: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """κ(B, u) and κ(κ + u) = −∂_u κ: √V g and V Γ of a sign unit at u = ω/√V.

    With a = |u|, h = 1/(a + J), R = 1/(a + h): κ + u is |κ| + a where u and B agree in sign, and where they
    disagree |κ| = 1/(|E| + R) and |κ| − a = |κ|(1 − aR − a|E|) = |κ| hR − a|κE|, up to the sign of B. The last
    difference is a true change of sign, as badly conditioned as the function itself.
    """
    side = _side(u)
    a = u.abs()
    h = (a + _next_remainder(a)).reciprocal_()
    R = (a + h).reciprocal_()
    E = _inverse_density(prepare_sign(B), u, side)
    kappa = (E - side * R).reciprocal_()
    # An infinite E makes κ = 0, and their product must be too.
    E, size = E.abs_().clamp_max_(torch.finfo(u.dtype).max), kappa.abs()
    disagreeing = size * R * h - a * (size * E)
    return kappa, size * select(side * B < 0, disagreeing, size + a)


def tanh(h: Tensor) -> Tensor:
    """tanh h; in compiled float32 code h P(h²)/Q(h²), several times faster than the compiler's own."""
    if h.dtype == torch.float64 or not torch.compiler.is_compiling():
        return torch.tanh(h)
    numerator, denominator = _tanh_quotient(h)
    return (numerator / denominator).clamp(-1.0, 1.0)


def _coth(h: Tensor) -> Tensor:
    """1/tanh h, for one division."""
    if h.dtype == torch.float64 or not torch.compiler.is_compiling():
        return torch.tanh(h).reciprocal_()
    numerator, denominator = _tanh_quotient(h)
    return denominator / numerator


def _tanh_quotient(h: Tensor) -> tuple[Tensor, Tensor]:
    near = h.clamp(-TANH_RANGE, TANH_RANGE)
    s = near * near
    return near * _polynomial(s, TANH_P_32), _polynomial(s, TANH_Q_32)


def tanh_moments(h: Tensor) -> tuple[Tensor, Tensor]:
    """tanh h and sech² h = 4e/(1 + e)², e = e^{−2|h|}: mean and variance of a ±1 variable with field h."""
    e = torch.exp(-2 * h.abs())
    return tanh(h), 4 * e / (1 + e).square()


def erf_moments(u: Tensor) -> tuple[Tensor, Tensor]:
    """x̂ = erf(u/√2) and Δ = 1 − x̂², mean and variance of sign(z) for z ~ 𝒩(u, 1), from one exponential:

        1 − |x̂| = 2Q(|u|) = 2N(u) R(|u|),    x̂ = √(2/π) (u − u³/6 + u⁵/40 − u⁷/336 + u⁹/3456 − …)

    The series is for float32 below |u| = 0.5, where leading digits of 1 − 2Q cancel. Outside compiled code torch's
    own functions are faster: they make one pass each instead of one per operation.
    """
    if not torch.compiler.is_compiling():
        tail = torch.special.erfc(u.abs() / SQRT_2)
        return torch.erf(u / SQRT_2), tail * (2 - tail)
    tail = (u * u).mul_(-0.5).exp_().mul_(SQRT_2_OVER_PI) * mills_ratio(u.abs())
    variance = tail * (2 - tail)
    if u.dtype == torch.float64:
        return torch.erf(u / SQRT_2), variance
    s = u * u
    near = SQRT_2_OVER_PI * u * (1 + s * (-1 / 6 + s * (1 / 40 + s * (-1 / 336 + s / 3456))))
    return select(s < 0.25, near, torch.copysign(1 - tail, u)), variance


def _polynomial(z: Array, coefficients: tuple[float, ...]) -> Array:
    """Horner's rule, highest power first, in one temporary."""
    tensor = isinstance(z, Tensor)
    if tensor and z.numel() < FEW and z.device.type == "cpu" and not torch.compiler.is_compiling():
        first, *rest = _constants(coefficients, z.dtype)
        total = torch.addcmul(rest[0], z, first)
        for constant in rest[1:]:
            total = torch.addcmul(constant, total, z)
        return total
    total = z * coefficients[0]
    for c in coefficients[1:-1]:
        total += c
        total *= z
    total += coefficients[-1]
    return total


@lru_cache
def _constants(coefficients: tuple[float, ...], dtype: torch.dtype) -> list[Tensor]:
    """The numbers as 0-dimensional tensors."""
    return [torch.tensor(c, dtype=dtype) for c in coefficients]


def mills_ratio(a: Array) -> Array:
    """R(a) = Q(a)/N(a) for a ≥ 0, from √(π/2) at 0 down to 1/a."""
    if isinstance(a, np.ndarray) and a.size < FEWEST:
        return erfcx(a / SQRT_2) * SQRT_HALF_PI
    r = library(a).reciprocal(a + 4)
    R = _polynomial(r, _of_type(a, MILLS_32, MILLS_64))
    R *= r
    return R


def _next_remainder(a: Array) -> Array:
    """J(a) of R = 1/(a + 1/(a + J)) for a ≥ 0, from √(π/2) at 0 down to 2/a."""
    s = a + 4
    J = _polynomial((4 - a) / s, _of_type(a, NEXT_32, NEXT_64))
    J /= s
    return J


def _of_type(a: Array, single: tuple[float, ...], double: tuple[float, ...]) -> tuple[float, ...]:
    return double if a.dtype in (torch.float64, np.float64) else single


def _hazard_parts(x: Tensor, J: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """𝒦(x), 𝒦(x) − x, R(|x|) and 1/N(x), for J at a = |x|. With h = 1/(a + J) the first are a + h and h for x ≥ 0;
    below, 𝒦 = 1/(1/N − R)."""
    a = x.abs()
    h = (a + J).reciprocal_()
    K = a + h
    R, inverse_density = K.reciprocal(), (x * x).mul_(0.5).exp_().mul_(SQRT_2PI)
    below = (inverse_density - R).reciprocal_()
    negative = x < 0
    return select(negative, below, K), select(negative, below + a, h), R, inverse_density


def _side(u: Tensor) -> Tensor:
    """±1 by the sign bit of u, −1 for −0: outside compiled code faster to multiply by than to select."""
    return torch.copysign(u.new_ones(()), u)


def _inverse_density(prepared: PreparedSign, u: Tensor, side: Tensor) -> Tensor:
    """E = scale · e^{u²/2 + min(2B sign(u), 0)}; for B = ∞ and u > 0 this is 1/N(u)."""
    loss = (side * prepared.twice).clamp_(max=0)
    square = (u * u).clamp_(max=LARGEST_SQUARE)
    return torch.add(loss, square, alpha=0.5).exp_().mul_(prepared.scale)
