"""The special functions against mpmath, over the whole range, in both precisions, eager and compiled.

The error is measured against |f| + Σ |x ∂f/∂x|: the value, or what a relative change of the inputs
makes of it. Results below the smallest normal number of the type may be flushed to zero.
"""

from __future__ import annotations

import math
import runpy
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import mpmath as mp
import pytest
import torch

from cavity.core import special

EPSILONS = 8  # the promise of the module: 9.5e-7 in float32, 1.8e-15 in float64,
SECOND_ORDER = {"hazard_slope", "tail_variance", "sign_response"}  # and twice that for these
DTYPES = [torch.float32, torch.float64]
SIZES = [0.0, 1e-30, 1e-8, 1e-3, 0.5, 1.0, 2.0, 30.0, 1e4, 1e8, 1e19, 1e30]


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with mp.workdps(60):
        yield


def density(x: mp.mpf) -> mp.mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def tail(x: mp.mpf) -> mp.mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2


def exact_hazard(x: mp.mpf) -> mp.mpf:
    return density(x) / tail(x)


def exact_slope(x: mp.mpf) -> mp.mpf:
    K = exact_hazard(x)
    return K * (K - x)


def exact_log_ndtr(x: mp.mpf) -> mp.mpf:
    return mp.log(tail(-x)) if x < 0 else mp.log1p(-tail(x))


def exact_gradient(B: mp.mpf, u: mp.mpf) -> mp.mpf:
    return -exact_gradient(-B, -u) if B < 0 else density(u) / (tail(-u) + 1 / mp.expm1(2 * B))


def exact_response(B: mp.mpf, u: mp.mpf) -> mp.mpf:
    kappa = exact_gradient(B, u)
    return kappa * (kappa + u)


ONE_ARGUMENT = {
    "hazard": exact_hazard,
    "hazard_excess": lambda x: exact_hazard(x) - x,
    "hazard_slope": exact_slope,
    "log_ndtr": exact_log_ndtr,
    "log_ndtr_scaled": lambda x: exact_log_ndtr(x) + min(x, 0) ** 2 / 2,
    "tail hazard": exact_hazard,
    "tail excess": lambda x: exact_hazard(x) - x,
    "tail_variance": lambda x: 1 - exact_slope(x),
    "tail log_mass": lambda x: exact_log_ndtr(-x) + max(x, 0) ** 2 / 2,
    "tanh": mp.tanh,
    "sech2": lambda x: mp.sech(x) ** 2,
    "erf": lambda x: mp.erf(x / mp.sqrt(2)),
    "erf_variance": lambda x: 4 * tail(abs(x)) * (1 - tail(abs(x))),
}


def both_signs(sizes: torch.Tensor) -> torch.Tensor:
    return torch.cat([-sizes.flip(0), sizes])


def line(dtype: torch.dtype) -> torch.Tensor:
    """0, tiny numbers, a fine grid where the functions bend, and the far tails up to 1e4."""
    fine = torch.linspace(0, 16, 161, dtype=torch.float64)
    far = torch.logspace(1.2, 4, 40, dtype=torch.float64)
    return both_signs(torch.cat([fine, torch.logspace(-30, -1, 16, dtype=torch.float64), far])).to(dtype)


def plane(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Fields B of both signs from 1e-30 to 1e4 against u of both signs up to 1e4, and the line u² = 4|B|."""
    B = both_signs(torch.logspace(-30, -1, 5, dtype=torch.float64))
    B = torch.cat([B, both_signs(torch.logspace(-0.7, 4, 12, dtype=torch.float64))])
    u = torch.cat([torch.linspace(0, 6, 13), torch.logspace(0.9, 4, 9), torch.logspace(-12, -2, 3)])
    B, u = torch.meshgrid(B, both_signs(u.double()), indexing="ij")
    edge = torch.logspace(-3, 4, 30, dtype=torch.float64)
    B, u = torch.cat([B.flatten(), edge, -edge]), torch.cat([u.flatten(), -2 * edge.sqrt(), 2 * edge.sqrt()])
    return B.to(dtype), u.to(dtype)


def value_and_scale(exact: Callable[..., mp.mpf], *point: float, eps: float) -> tuple[mp.mpf, mp.mpf]:
    """f and |f| + Σ |x ∂f/∂x|, the derivative by the larger of the two differences over one epsilon."""
    numbers = [mp.mpf(x) for x in point]
    value = exact(*numbers)
    scale = abs(value)
    for i, x in enumerate(numbers):
        moved = [exact(*numbers[:i], x * (1 + sign * eps), *numbers[i + 1 :]) for sign in (-1, 1)]
        scale += max(abs(m - value) for m in moved) / eps
    return value, scale


@cache
def truth(name: str, dtype: torch.dtype) -> list[tuple[mp.mpf, mp.mpf]]:
    """Values and scales of one function at the points of `line` or `plane`."""
    eps = torch.finfo(dtype).eps
    if name in ONE_ARGUMENT:
        return [value_and_scale(ONE_ARGUMENT[name], x, eps=eps) for x in line(dtype).tolist()]
    exact = exact_gradient if name == "sign_gradient" else exact_response
    points = zip(*(x.tolist() for x in plane(dtype)), strict=True)
    return [value_and_scale(exact, B, u, eps=eps) for B, u in points]


def allowed(name: str) -> int:
    return 2 * EPSILONS if name in SECOND_ORDER else EPSILONS


def worst_error(got: torch.Tensor, name: str, underflow: torch.Tensor) -> float:
    """The largest error in machine epsilons of the scale, `underflow` smallest normal numbers forgiven."""
    info = torch.finfo(got.dtype)
    worst = mp.mpf(0)
    exact = truth(name, got.dtype)
    for g, (value, scale), floor in zip(got.tolist(), exact, underflow.tolist(), strict=True):
        if abs(value) > info.max:
            assert g == math.copysign(math.inf, value)
            continue
        assert math.isfinite(g), f"{name} gave {g} for {mp.nstr(value, 8)}"
        worst = max(worst, (abs(mp.mpf(g) - value) - floor * info.tiny) / (scale + info.tiny))
    return float(worst) / info.eps


def line_values(x: torch.Tensor) -> dict[str, torch.Tensor]:
    pairs = zip(
        ("tanh", "sech2", "erf", "erf_variance", "tail hazard", "tail excess", "tail_variance", "tail log_mass"),
        (*special.tanh_moments(x), *special.erf_moments(x), *special.tail(x)),
        strict=True,
    )
    return dict(pairs) | {name: getattr(special, name)(x) for name in ONE_ARGUMENT if hasattr(special, name)}


def plane_values(B: torch.Tensor, u: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"sign_gradient": special.sign_gradient(B, u), "sign_response": special.sign_response(B, u)[1]}


def check(values: dict[str, torch.Tensor], u: torch.Tensor) -> None:
    """Where κ (or 𝒦) is flushed to zero, κ(κ + u) loses up to |u| times as much."""
    for name, got in values.items():
        assert worst_error(got, name, 1 + u.abs()) <= allowed(name), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_argument_functions_match_mpmath(dtype: torch.dtype) -> None:
    x = line(dtype)
    check(line_values(x), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sign_functions_match_mpmath(dtype: torch.dtype) -> None:
    B, u = plane(dtype)
    check(plane_values(B, u), u)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # raised inside torch by its compiler
def test_compiled_code_is_as_accurate_and_vectorised() -> None:
    from torch._inductor.utils import run_and_get_code

    B, u = plane(torch.float32)
    values, code = run_and_get_code(torch.compile(plane_values), B, u)
    check(values, u)
    x = line(torch.float32)
    values, more = run_and_get_code(torch.compile(line_values), x)
    check(values, x)
    for source in (*code, *more):
        assert "Vectorized<float>::loadu" in source
        assert not any(scalar in source for scalar in ("std::exp(", "std::copysign(", "std::tanh("))


def test_float32_matches_float64_at_many_random_points() -> None:
    generator = torch.Generator().manual_seed(0)
    B, u = (torch.randn(2, 200_000, generator=generator) * 3).sinh().unbind()
    info = torch.finfo(torch.float32)

    def everything(B: torch.Tensor, u: torch.Tensor) -> dict[str, torch.Tensor]:
        return line_values(u) | plane_values(B, u)

    exact = everything(B.double(), u.double())
    shifts = [
        everything(B.double() * (1 + info.eps), u.double()),
        everything(B.double(), u.double() * (1 + info.eps)),
    ]
    for name, got in everything(B, u).items():
        scale = exact[name].abs() + sum((s[name] - exact[name]).abs() for s in shifts) / info.eps
        error = (got.double() - exact[name]).abs() - info.tiny * (1 + u.abs())
        known = exact[name].abs() < info.max
        assert (error / scale)[known].max() <= allowed(name) * info.eps, name


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_outputs_of_sign_response_share_kappa(dtype: torch.dtype) -> None:
    B, u = plane(dtype)
    kappa, _ = special.sign_response(B, u)
    assert worst_error(kappa, "sign_gradient", torch.ones_like(u)) <= EPSILONS


@pytest.mark.parametrize("dtype", DTYPES)
def test_everything_is_finite_far_out(dtype: torch.dtype) -> None:
    x = both_signs(torch.tensor(SIZES, dtype=dtype))
    for name in ("hazard", "hazard_excess", "hazard_slope", "log_ndtr_scaled"):
        assert getattr(special, name)(x).isfinite().all(), name
    for name, value in special.tail(x)._asdict().items():
        assert value.isfinite().all(), name
    B = torch.cat([x, torch.tensor([-math.inf, math.inf], dtype=dtype)])
    gradient = special.sign_gradient(B[:, None], x)
    kappa, response = special.sign_response(B[:, None], x)
    assert gradient.isfinite().all()
    assert kappa.isfinite().all()
    assert response.isfinite().all()
    assert (gradient * B.sign()[:, None] >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_known_sign_is_the_hazard(dtype: torch.dtype) -> None:
    u = both_signs(torch.tensor(SIZES, dtype=dtype))
    label = torch.tensor(math.inf, dtype=dtype)
    kappa, response = special.sign_response(label, u)
    tolerance = {"rtol": EPSILONS * torch.finfo(dtype).eps, "atol": 0.0}
    torch.testing.assert_close(kappa, special.hazard(-u), **tolerance)
    torch.testing.assert_close(special.sign_gradient(label, u), special.hazard(-u), **tolerance)
    torch.testing.assert_close(response, special.hazard_slope(-u), **tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sign_functions_are_odd_and_silent_without_a_field(dtype: torch.dtype) -> None:
    B, u = plane(dtype)
    assert torch.equal(special.sign_gradient(-B, -u), -special.sign_gradient(B, u))
    assert torch.equal(special.sign_response(-B, -u)[1], special.sign_response(B, u)[1])
    zero = torch.zeros(1, dtype=dtype)
    for none in (zero, -zero):
        assert not special.sign_gradient(none, u).any()
        assert not special.sign_response(none, u)[1].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_zeros_are_the_same_point(dtype: torch.dtype) -> None:
    B = both_signs(torch.tensor([1e-8, 0.3, 2.0, 50.0], dtype=dtype))
    zero = torch.zeros(1, dtype=dtype)
    expected, rtol = math.sqrt(2 / math.pi) * B.tanh(), EPSILONS * torch.finfo(dtype).eps
    for u in (zero, -zero):
        torch.testing.assert_close(special.sign_gradient(B, u), expected, rtol=rtol, atol=0)


def test_a_prepared_field_serves_many_inputs() -> None:
    B, u = torch.randn(3, 1, 5), torch.randn(3, 4, 5)
    prepared = special.prepare_sign(B)
    assert all(part.shape == B.shape for part in prepared)
    expected = special.sign_gradient(B.expand(3, 4, 5), u)
    assert torch.equal(special.sign_gradient_prepared(prepared, u), expected)
    assert special.sign_gradient(u, B).shape == u.shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_shape_and_dtype_come_out_on_the_meta_device(dtype: torch.dtype) -> None:
    x = torch.empty(2, 3, dtype=dtype, device="meta")
    for got in (*line_values(x).values(), *plane_values(x, x).values()):
        assert (got.shape, got.dtype, got.device.type) == ((2, 3), dtype, "meta")


def test_inputs_are_left_alone() -> None:
    B, u = torch.randn(50), torch.randn(50)
    before = B.clone(), u.clone()
    line_values(u)
    plane_values(B, u)
    assert torch.equal(B, before[0])
    assert torch.equal(u, before[1])


def test_the_coefficients_are_those_of_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    script = Path(__file__).parents[2] / "scripts" / "fit_special.py"
    runpy.run_path(str(script), run_name="__main__")
    tables: dict[str, tuple[float, ...]] = {}
    exec(capsys.readouterr().out, tables)
    for name in ("MILLS_32", "MILLS_64", "NEXT_32", "NEXT_64", "TANH_P_32", "TANH_Q_32"):
        assert tables[name] == getattr(special, name), name
