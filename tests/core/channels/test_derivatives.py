"""At moderate arguments: every channel and prior against autodiff, and against quadrature of its defining integral."""

from __future__ import annotations

import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest
import torch
from torch import Tensor

from .cases import CASES, Case
from .points import moderate

POINTS = 40
TOLERANCE = {"rtol": 1e-10, "atol": 1e-12}


def labelled(key: str, message: str) -> str:
    return f"{key}: {message}"


def inputs_of(name: str) -> list[Tensor]:
    points = moderate(name, POINTS, np.random.default_rng(0))
    return [torch.from_numpy(points[key]) for key in CASES[name].inputs]


def differentiated(case: Case, inputs: list[Tensor]) -> dict[str, Tensor]:
    """φ written plainly, and its derivatives by autodiff."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    phi = case.phi(*inputs)
    result = {"value": phi.detach()}
    for quantity, (key, order, factor) in case.derivatives.items():
        derivative = phi
        for _ in range(order):
            (derivative,) = torch.autograd.grad(derivative.sum(), inputs[case.inputs.index(key)], create_graph=True)
        result[quantity] = factor * derivative.detach()
    return result


def integrated(case: Case, inputs: list[Tensor]) -> dict[str, Tensor]:
    """Moments of x and z under the integrand: g = (E[z] − ω)/V and Γ = 1/V − Var[z]/V²."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(16))
    left = torch.arange(-40, 40, 0.5, dtype=torch.float64)
    z = (left[:, None] + 0.25 * (nodes + 1)).reshape(-1, 1)
    log_weight = torch.log(0.25 * weights).repeat(len(left)).unsqueeze(1)
    named = dict(zip(case.inputs, inputs, strict=True))
    if "omega" in named:
        log_weight = log_weight + torch.distributions.Normal(named["omega"], torch.sqrt(named["V"])).log_prob(z)
    assert case.branches is not None
    branches = case.branches(z, *inputs)
    log_p = torch.cat([(log_density + log_weight).expand(len(z), POINTS) for _, log_density in branches])
    x = torch.cat([x.expand(len(z), POINTS) for x, _ in branches])
    value = torch.logsumexp(log_p, dim=0)
    p = torch.exp(log_p - value)
    mean = (p * x).sum(dim=0)
    result = {"value": value, "mean": mean, "variance": (p * (x - mean) ** 2).sum(dim=0)}
    if "omega" in named:
        z, (omega, V) = z.repeat(len(branches), 1), (named["omega"], named["V"])
        z_mean = (p * z).sum(dim=0)
        result["gradient"] = (z_mean - omega) / V
        result["curvature"] = 1 / V - (p * (z - z_mean) ** 2).sum(dim=0) / V**2
    return result


@pytest.mark.parametrize("name", CASES)
def test_autodiff(name: str) -> None:
    case, inputs = CASES[name], inputs_of(name)
    got, expected = case.library(*inputs), differentiated(CASES[name], inputs)
    assert {key.removesuffix(" alone") for key in got} == set(expected)
    for key, value in got.items():
        torch.testing.assert_close(
            value, expected[key.removesuffix(" alone")], **TOLERANCE, msg=lambda m, key=key: key + m
        )


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.branches is not None])
def test_quadrature_of_the_defining_integral(name: str) -> None:
    """The library, and the high-precision formulas that judge it at the extremes."""
    case, inputs = CASES[name], inputs_of(name)
    expected = integrated(case, inputs)
    got = case.library(*inputs)
    with mp.workdps(50):
        truth = [case.exact(*map(mp.mpf, point)) for point in zip(*(x.tolist() for x in inputs), strict=True)]
    for key in truth[0]:
        torch.testing.assert_close(got[key], expected[key], **TOLERANCE, msg=partial(labelled, key))
        exact = torch.tensor([float(quantities[key]) for quantities in truth], dtype=torch.float64)
        torch.testing.assert_close(exact, expected[key], **TOLERANCE, msg=partial(labelled, key))


@pytest.mark.parametrize("name", CASES)
def test_the_high_precision_formulas_are_derivatives_of_their_own_value(name: str) -> None:
    case, inputs = CASES[name], inputs_of(name)
    with mp.workdps(50):
        for point in list(zip(*(x.tolist() for x in inputs), strict=True))[:2]:
            numbers = [mp.mpf(x) for x in point]
            quantities = case.exact(*numbers)
            for quantity, (key, order, factor) in case.derivatives.items():
                i = case.inputs.index(key)

                def phi(t: mp.mpf, i: int = i, numbers: list[mp.mpf] = numbers) -> mp.mpf:
                    return case.exact(*numbers[:i], t, *numbers[i + 1 :])["value"]

                expected = factor * mp.diff(phi, numbers[i], order)
                assert mp.almosteq(quantities[quantity], expected, 1e-20, 1e-20), quantity


def test_no_message_is_a_message_of_zero() -> None:
    """Activations are asked for their moments before anything has come down."""
    from cavity.core.channels import ACTIVATIONS, Sign
    from cavity.core.messages import Fields, Preactivation

    u = torch.linspace(-9, 9, 181, dtype=torch.float64)
    pre = Preactivation(u * math.sqrt(0.3), torch.full_like(u, 0.3))
    for channel in (Sign(0.5), *(kind() for kind in ACTIVATIONS.values())):
        zero = torch.zeros_like(u)
        told, untold = channel.moments(Fields(zero, zero), pre), channel.moments(None, pre)
        torch.testing.assert_close(told, untold, rtol=1e-12, atol=0)
