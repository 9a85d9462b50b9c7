"""The piecewise-linear family: fast special cases agree with it, anything can be declared, and it compiles."""

from __future__ import annotations

import math
import shutil
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from cavity.core import channels
from cavity.core.channels import relu
from cavity.core.messages import Fields, Preactivation

from .cases import CASES, NOISE, piecewise_case, run_activation
from .points import extreme, moderate
from .test_derivatives import differentiated, integrated

EXACT = {"rtol": 1e-10, "atol": 1e-12}


class SignLine(channels.PiecewiseLinear):
    """The sign, declared."""

    edges, slopes, offsets = (0.0,), (0.0, 0.0), (-1.0, 1.0)


class IdentityLine(channels.PiecewiseLinear):
    """The identity, declared."""

    edges, slopes, offsets = (), (1.0,), (0.0,)


class Zigzag(channels.PiecewiseLinear):
    """Four pieces, two jumps and a fall."""

    name: ClassVar[str] = "zigzag"
    summary: ClassVar[str] = "up and down"
    edges, slopes, offsets = (-1.0, 0.5, 1.5), (0.3, -1.0, 0.0, 2.0), (0.0, 0.5, 0.0, -1.0)


def points(name: str) -> list[Tensor]:
    drawn = [moderate(name, 40, np.random.default_rng(0)), extreme(name, 400, np.random.default_rng(3))]
    return [torch.from_numpy(np.concatenate([part[key] for part in drawn])) for key in CASES[name].inputs]


@pytest.mark.parametrize("noise", [0.0, NOISE])
def test_the_sign_is_a_line_of_the_family(noise: float) -> None:
    B, omega, V = points("sign")
    found = run_activation(channels.Sign(noise), B, None, omega, V)
    for key, expected in run_activation(SignLine(noise), B, None, omega, V).items():
        # The fast path keeps the digits of a mean that vanishes, too.
        atol = 1e-15 if key in ("value", "mean") else 1e-300
        torch.testing.assert_close(found[key], expected, rtol=1e-9, atol=atol, msg=lambda m, key=key: f"{key}: {m}")


def test_the_identity_is_a_line_of_the_family() -> None:
    B, A, omega, V = points("identity")
    found = run_activation(channels.Identity(), B, A, omega, V)
    for key, expected in run_activation(IdentityLine(), B, A, omega, V).items():
        torch.testing.assert_close(found[key], expected, rtol=1e-12, atol=0.0)
    pre = Preactivation(omega, V)
    assert int(channels.Identity().clamped(Fields(B, A), pre)) == int(IdentityLine().clamped(Fields(B, A), pre))  # type: ignore[arg-type]


def test_anything_can_be_declared() -> None:
    """Pieces with slopes and jumps: against the defining integral, and autodiff through differences of Φ."""
    case = piecewise_case(Zigzag())
    drawn = moderate("relu", 40, np.random.default_rng(0))
    inputs = [torch.from_numpy(drawn[key]) for key in case.inputs]
    found, by_autodiff, by_quadrature = case.library(*inputs), differentiated(case, inputs), integrated(case, inputs)
    for key, value in found.items():
        quantity = key.removesuffix(" alone")
        torch.testing.assert_close(value, by_autodiff[quantity], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(value, by_quadrature[quantity], **EXACT)


@pytest.mark.parametrize("name", channels.ACTIVATIONS)
def test_shapes_broadcast_and_forward_is_the_limit_of_no_variance(name: str) -> None:
    channel = channels.ACTIVATIONS[name]()
    generator = torch.Generator().manual_seed(0)
    B, A = torch.randn(3, 4, 1, generator=generator), torch.rand(3, 4, 1, generator=generator)
    omega, V = torch.randn(3, 4, 5, generator=generator), torch.rand(3, 4, 1, generator=generator) + 0.1
    pre = Preactivation(omega, V)
    whole = Preactivation(omega, V.expand(3, 4, 5).clone())
    for message in (Fields(B, A), Fields(B.expand(3, 4, 5).clone(), A.expand(3, 4, 5).clone())):
        assert channel.gradient(message, pre).shape == omega.shape
        torch.testing.assert_close(channel.gradient(message, pre), channel.gradient(message, whole))
    sharp = channel.moments(None, Preactivation(omega, torch.full_like(omega, 1e-12)))
    torch.testing.assert_close(sharp.mean, channel.forward(omega), rtol=1e-4, atol=1e-4)
    if channel.second_moment is not None:
        torch.testing.assert_close(sharp.mean.square() + sharp.variance, torch.full_like(omega, channel.second_moment))


def test_bad_arguments_are_named() -> None:
    for kind in (channels.ReLU, channels.Step, channels.HardTanh):
        with pytest.raises(ValueError, match="noise must be a finite variance >= 0, got -1"):
            kind(-1.0)
    with pytest.raises(ValueError, match="threshold must be a finite number > 0, got 0"):
        channels.Gate(threshold=0.0)
    with pytest.raises(ValueError, match="slope must be a finite number, got nan"):
        channels.LeakyReLU(slope=math.nan)


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # raised inside torch by its compiler
@pytest.mark.slow
def test_compiled_code_is_one_graph_and_as_accurate() -> None:
    """Two edges, jumps and slopes between them: all that the family has."""
    drawn = extreme("hard-tanh", 400, np.random.default_rng(5))
    B, A, omega, V = (torch.from_numpy(drawn[key]).float() for key in ("B", "A", "omega", "V"))
    units = (channels.HardTanh(), channels.Gate())

    def responses(B: Tensor, A: Tensor, omega: Tensor, V: Tensor) -> list[Tensor]:
        message, pre = Fields(B, A), Preactivation(omega, V)
        return [part for unit in units for part in unit.response(message, pre)]

    truth = responses(B.double(), A.double(), omega.double(), V.double())
    eager, compiled = responses(B, A, omega, V), torch.compile(responses, fullgraph=True)(B, A, omega, V)
    for expected, ours, theirs in zip(truth, eager, compiled, strict=True):
        assert theirs.isfinite().all()
        # As many points as without a compiler lose digits to the rounding of their inputs.
        allowed = 1e-4 * expected.abs() + 1e-30
        lost, lost_by_eager = (((got.double() - expected).abs() > allowed).sum() for got in (theirs, ours))
        assert lost <= lost_by_eager + 4


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-12)])
def test_rectified_units_are_the_same_in_both_libraries(dtype, tolerance, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    omega, B, V, A = (torch.randn(500, generator=generator, dtype=dtype) * 3 for _ in range(4))
    pre, message = Preactivation(omega, V.abs() + 0.01), Fields(B, A)
    found = []
    for few in (0, 500):
        monkeypatch.setattr(relu, "FEW", few)
        found.append([*relu.ReLU().response(message, pre), *relu.ReLU().moments(None, pre)])
    for tensors, arrays in zip(*found, strict=True):
        torch.testing.assert_close(tensors, arrays, rtol=tolerance, atol=tolerance)
