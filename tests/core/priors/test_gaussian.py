"""The floor of Gaussian weights: what it holds, and that it holds nothing by default."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.core.floors import PRECISION_FLOOR
from cavity.core.messages import Fields

FIELDS = Fields(torch.tensor([[2.0, 2.0, 2.0, 2.0]]), torch.tensor([[-3.0, 0.1, 1.0, 40.0]]))


def test_the_floor_is_a_fraction_of_the_precision_that_weights_start_from() -> None:
    held = cavity.Gaussian(floor=0.25)
    mean, variance = held.moments(FIELDS)
    assert variance[0].tolist() == pytest.approx([1.0, 1.0, 1.0, 1 / 40])
    assert mean[0].tolist() == pytest.approx([2.0, 2.0, 2.0, 2 / 40])
    assert int(held.clamped(FIELDS)) == 2
    start = held.initial((3, 4), 1.0, torch.Generator().manual_seed(0))
    assert start.precision.tolist() == [[4.0] * 4] * 3


def test_without_a_floor_precision_is_only_kept_positive() -> None:
    variance = cavity.Gaussian().moments(FIELDS).variance
    assert variance[0, :2].tolist() == pytest.approx([1 / PRECISION_FLOOR, 10.0])
    assert int(cavity.Gaussian().clamped(FIELDS)) == 1


@pytest.mark.parametrize("floor", [-0.1, 1.5, float("nan")])
def test_a_floor_outside_the_fractions_is_named(floor: float) -> None:
    with pytest.raises(ValueError, match=r"floor must be a fraction of the initial precision, in \[0, 1\]"):
        cavity.Gaussian(floor)
