"""At the extremes: every channel and prior against mpmath, in both precisions, and finite everywhere."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import torch
from torch import Tensor

from . import exact
from .cases import ATOMS, CASES, CLASSES
from .points import extreme

DTYPES = [torch.float64, torch.float32]
#: How many points of each case, and digits; three classes cost an integral for each of seven evaluations a point.
POINTS, DIGITS = 250, 100
POINTS_OF_INTEGRALS, DIGITS_OF_INTEGRALS = 16, 50

#: Error allowed relative to the value.
RELATIVE = {torch.float64: 1e-10, torch.float32: 1e-5}
#: Error allowed relative to what rounding every input once would change (``exact.with_rounding``): an evaluation rounds
#: more than its inputs, √V and ω/√V and their products among them.
ROUNDINGS = 2


def tensors(name: str, count: int, seed: int, dtype: torch.dtype) -> list[Tensor]:
    points = extreme(name, count, np.random.default_rng(seed))
    return [torch.from_numpy(points[key]).to(dtype) for key in CASES[name].inputs]


def sizes(name: str, point: dict[str, float]) -> tuple[float, float]:
    """How large x and ∂_ω can be at a point: what a probability multiplies before it enters a mean or a gradient."""
    if "h" in point:
        return max(map(abs, ATOMS[0])), 0.0
    if "omega_0" in point:
        widths = [math.sqrt(point[f"V_{k}"]) for k in range(CLASSES)]
        reach = max(widths) * (1 + abs(point.get("noise", 0))) + 2 * max(
            abs(point[f"omega_{k}"]) for k in range(CLASSES)
        )
        return 0.0, CLASSES * reach / min(widths) ** 2
    B, A, omega, V = (point.get(key, 0.0) for key in ("B", "A", "omega", "V"))
    if "sign" in name or "label" in name:
        return 1.0, (1 + abs(omega) / math.sqrt(V)) / math.sqrt(V)
    x = 10 * (abs(omega) + math.sqrt(V) + abs(B) * V)
    return x, abs(B) + abs(A) * x + (1 + abs(omega) / math.sqrt(V)) / math.sqrt(V)


def underflow(name: str, key: str, point: dict[str, float], tiny: float) -> float:
    """A probability below the smallest normal number counts as 0: what that can do to a quantity."""
    x, slope = sizes(name, point)
    powers = {"mean": x, "variance": x * x, "gradient": slope, "curvature": slope * slope, "value": 0.0}
    return tiny * (1 + powers[key.partition("_")[0]])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_mpmath(name: str, dtype: torch.dtype) -> None:
    """|error| ≤ RELATIVE·|f| + ROUNDINGS·(what rounding the inputs changes).

    A φ that is computed as the logarithm of a sum or an integral Z, and vanishes where Z = 1, has the error of Z
    instead: RELATIVE·max(1, |φ|). The likelihoods of a label and of duels are held to the stricter rule."""
    case, info = CASES[name], torch.finfo(dtype)
    integral = name == "argmax exact"
    inputs = tensors(name, POINTS_OF_INTEGRALS if integral else POINTS, 1, dtype)
    got = {key: value.tolist() for key, value in case.library(*inputs).items()}
    for n, point in enumerate(zip(*(x.tolist() for x in inputs), strict=True)):
        named = dict(zip(case.inputs, point, strict=True))
        with mp.workdps(DIGITS_OF_INTEGRALS if integral else DIGITS):
            truth, rounding = exact.with_rounding(case.exact, (*point, *case.constants), info.eps)
            for key, values in got.items():
                quantity = key.removesuffix(" alone")
                f = truth[quantity]
                summed = quantity == "value" and (integral or "B" in named or "h" in named)
                allowed = RELATIVE[dtype] * (max(1, abs(f)) if summed else abs(f)) + ROUNDINGS * rounding[quantity]
                allowed += underflow(name, quantity, named, info.tiny)
                assert math.isfinite(values[n]), f"{key} at {named} is {values[n]}, not {mp.nstr(f, 12)}"
                error = abs(mp.mpf(values[n]) - f)
                times = mp.nstr(error / allowed, 3)
                assert error <= allowed, f"{key} at {named} is {values[n]}, not {mp.nstr(f, 18)}: {times} × allowed"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_finite_everywhere(name: str, dtype: torch.dtype) -> None:
    count = 300 if name == "argmax exact" else 50_000
    inputs = tensors(name, count, 2, dtype)
    for key, value in CASES[name].library(*inputs).items():
        bad = ~torch.isfinite(value)
        assert not bad.any(), (key, dict(zip(CASES[name].inputs, (x[bad][0].item() for x in inputs), strict=True)))
        if key == "variance":
            assert (value >= 0).all()
