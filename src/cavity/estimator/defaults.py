"""What parameters may be, and what those left at None become: by the kind of weights and the size of the data."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from cavity.core.priors import PRIORS, Prior


def positive(name: str, value: object) -> int:
    """``value`` as an int, NumPy's too; ValueError by ``name`` if it is no whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def widths(hidden: object) -> tuple[int, ...]:
    """The hidden layers as a tuple; ValueError if they are no sequence of widths."""
    if isinstance(hidden, str) or not isinstance(hidden, Sequence | np.ndarray):
        raise ValueError(f"hidden must be a sequence of widths such as (501,), got {hidden!r}")
    return tuple(positive("a width in hidden", width) for width in hidden)


def prior(weights: Any) -> Prior:
    """The prior of that name."""
    return PRIORS.make(weights, "weights")


def bias(prior: Prior) -> bool:
    """Real weights can set a threshold. A ±1 bias is one vote among many and makes their number even: none."""
    return not prior.polarizes
