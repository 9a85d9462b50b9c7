"""What a page shows of a run: numbers and arrays only, so that drawing needs neither a network nor a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.runs.entropy import Entropies

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LayerSummary:
    """The posterior means m of one layer: a histogram of ``shares`` (bins,) between ``edges`` (bins + 1,).

    ``bound`` is the largest |m| that the kind of weight allows, None for weights without a bound; ``committed`` is the
    share of weights beyond 0.9 of it (0.9 where there is none).
    """

    name: str
    kind: str
    free_weights: int
    bound: float | None
    edges: Floats
    shares: Floats
    committed: float
    polarization: float


@dataclass(frozen=True, eq=False)
class Bins:
    """Test samples by the confidence of their prediction, (bins,) each; NaN where a bin is empty."""

    share: Floats
    confidence: Floats
    accuracy: Floats


@dataclass(frozen=True, eq=False)
class Example:
    """One test sample; ``pixels`` is (height, width) or (height, width, 3) of bytes, None where there is no image."""

    index: int
    truth: str
    predicted: str
    probability: float
    pixels: NDArray[np.uint8] | None

    @property
    def is_right(self) -> bool:
        return self.truth == self.predicted


@dataclass(frozen=True, eq=False)
class TestSummary:
    """Bayesian predictions on the test set; ``confusion`` has a row for each truth, a column for each prediction."""

    __test__ = False  # its name would make pytest collect it

    samples: int
    classes: tuple[str, ...]
    confusion: NDArray[np.int64]
    bins: Bins
    ece: float
    brier: float
    most_certain: tuple[Example, ...]
    least_certain: tuple[Example, ...]
    certain_mistakes: tuple[Example, ...]


@dataclass(frozen=True, eq=False)
class NumbersSummary:
    """Predictions of numbers on the test set, in units of the labels: (samples,) each of the labels, the posterior
    means and the standard deviations of a label. ``r2`` is the part of the variance that the posterior explains,
    ``coverage`` the part of the labels within its 90 % intervals."""

    truth: Floats
    predicted: Floats
    spread: Floats
    rmse: float
    rmse_bayes: float
    r2: float
    coverage: float


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """Posterior means of some units of the first layer, (units, channels, height, width), within ±``bound``;
    ``whitened`` if the layer stands on a whitening and these are its weights on the pixels through that."""

    means: Floats
    bound: float
    total: int
    whitened: bool = False


@dataclass(frozen=True, eq=False)
class FeatureMaps:
    """Posterior means (images, channels, height, width) of the units of some channels of a convolution, of ``total``,
    on test images with these ``indices``; ``units`` says what they are, pooled or not."""

    name: str
    units: str
    indices: tuple[int, ...]
    maps: Floats
    total: int


@dataclass(frozen=True, eq=False)
class RunSummary:
    """One run; ``data`` is the name of its data set. Errors are in ``percent``, or else root mean squares."""

    name: str
    data: str | None
    config: tuple[tuple[str, str], ...]
    records: Sequence[EpochRecord]
    percent: bool
    layers: tuple[LayerSummary, ...]
    test: TestSummary | None
    first_layer: FirstLayer | None
    notes: tuple[str, ...] = ()
    #: What was trained, how, where and with what: names and values.
    facts: tuple[tuple[str, str], ...] = ()
    #: The settings that are not their defaults; None where nobody knows.
    chosen: frozenset[str] | None = None
    #: Of convolutions, on ``map_images``: (height, width) or (height, width, 3) of bytes.
    maps: tuple[FeatureMaps, ...] = ()
    map_images: tuple[NDArray[np.uint8], ...] = ()
    #: Of regression, in the place of ``test``.
    numbers: NumbersSummary | None = None
    #: Whether all epochs are done.
    finished: bool = True
    #: Where ``cavity entropy`` has been run.
    entropies: Entropies | None = None
