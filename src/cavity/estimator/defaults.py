"""What a parameter left at None becomes: by the kind of weights and the size of the data."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from cavity.core.priors import Gaussian, Prior
from cavity.runs.config import polarizing_rho

#: Few samples: at least so many mini-batches an epoch.
FEWEST_STEPS = 16
#: The usual mini-batch. Small ones keep Gaussian weights from overshooting.
USUAL_BATCH = 32
#: Many samples: about so many mini-batches an epoch, until the batch is large.
MANY_STEPS = 400
LARGEST_BATCH = 128
#: Gaussian weights keep a tenth of their initial precision: without it, ReLU units run away on digits.
FLOOR = 0.1


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


def batch_size(samples: int) -> int:
    """Samples of a mini-batch: n/16 up to 32, from 12,800 samples on n/400 up to 128."""
    return max(1, min(samples // FEWEST_STEPS, USUAL_BATCH), min(samples // MANY_STEPS, LARGEST_BATCH))


def prior(weights: str) -> Prior | str:
    """The prior of that name; a Gaussian one that cannot lose all its precision."""
    return Gaussian(FLOOR) if weights == "gaussian" else weights


def rho(weights: str, layers: int, steps: int) -> tuple[float, ...]:
    """ρ of each layer: 1 for Gaussian weights, which have nothing to polarise to; else what polarises within a run."""
    return (1.0,) * layers if weights == "gaussian" else polarizing_rho(layers, steps)


def bias(weights: str) -> bool:
    """Real weights can set a threshold. A ±1 bias is one vote among many and makes their number even: none."""
    return weights == "gaussian"
