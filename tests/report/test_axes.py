"""Ticks and scales."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cavity.report.axes import Scale, inner_ticks, nice_ticks, tick_label

values = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda v: v == 0 or abs(v) > 1e-9)


@given(values, values, st.integers(2, 10))
def test_ticks_cover_the_data_evenly_and_are_few(a, b, intervals):
    low, high = min(a, b), max(a, b)
    if 0 < high - low < 1e-6 * max(abs(low), abs(high)):
        return
    ticks = nice_ticks(low, high, intervals)
    step = ticks[1] - ticks[0]
    slack = 1e-6 * step
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert 2 <= len(ticks) <= intervals + 2
    assert all(math.isclose(y - x, step, rel_tol=1e-6, abs_tol=1e-9 * abs(x)) for x, y in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, 13.4, [0, 5, 10, 15]), (-0.13, 0.02, [-0.15, -0.1, -0.05, 0, 0.05])],
)
def test_ticks_are_round(low, high, expected):
    assert nice_ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high"), [(2, 1), (0, math.inf), (math.nan, 1)])
def test_ticks_of_nonsense_are_an_error(low, high):
    with pytest.raises(ValueError, match="finite and in order"):
        nice_ticks(low, high)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_epochs_are_whole_and_inside(a, b):
    ticks = inner_ticks(min(a, b), max(a, b))
    assert ticks
    assert all(min(a, b) <= tick <= max(a, b) and tick == int(tick) for tick in ticks)


@pytest.mark.parametrize(
    ("value", "step", "expected"),
    [(0.15, 0.05, "0.15"), (-0.1, 0.025, "−0.100"), (-1e-17, 0.1, "0.0"), (20, 5, "20"), (3e29, 1e29, "3e+29")],
)
def test_labels_have_the_decimals_of_the_step(value, step, expected):
    assert tick_label(value, step) == expected


def test_scale_maps_ends_to_ends():
    scale = Scale(1, 5, 100, 20)
    assert (scale(1), scale(3), scale(5)) == (100, 60, 20)
