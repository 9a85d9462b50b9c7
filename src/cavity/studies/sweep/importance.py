"""What mattered in a sweep, and how much of that chance alone would show.

A forest learns to predict the result of a trial from its values; the importance of an option is the share of the
variance that splits by it take away. Some share falls to every option, whether it matters or not. So each one gets a
double, its own values in random order, which the forest may use as well: an option that does not beat all its doubles
has not been seen to matter. Unlike shares of the explained variance alone, this holds for a few dozen trials, too, and
for trials that a sampler has drawn to where the results are good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cavity.studies.sweep.space import Choices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cavity.studies.sweep.plan import Plan
    from cavity.studies.sweep.study import Trial

#: Fewer trials say nothing: a tree needs a few on each side of its splits.
FEWEST = 20
#: Doubles of each option, one after the other. With 40 of them and 40 trials, an option that does nothing beats all of
#: them once in 20 times.
DOUBLES = 40
#: Trees with random thresholds: those that look for the best one find it in noise, too.
TREES, SMALLEST_LEAF = 50, 3


@dataclass(frozen=True)
class Importance:
    """The share of the variance that splits by an option take away, and the largest that one of its doubles took."""

    name: str
    share: float
    chance: float

    @property
    def matters(self) -> bool:
        return self.share > self.chance


def importances(plan: Plan, trials: Sequence[Trial]) -> list[Importance]:
    """Of every option, the largest first; empty where there are too few trials, or all came to the same.

    Pruned trials count with the objective at which they were ended: without them, a value that is always pruned would
    not matter. Results enter by their ranks, so that a few very bad ones do not outweigh all others.
    """
    measured = [trial for trial in trials if trial.value is not None]
    results = _ranks([trial.value for trial in measured if trial.value is not None])
    if len(measured) < FEWEST or np.ptp(results) == 0:
        return []
    columns = []
    for axis in plan.axes:
        found = [trial.coordinates[axis.key] for trial in measured]
        columns.append([axis.words.index(word) for word in found] if isinstance(axis, Choices) else found)
    own, doubles = _shares(np.array(columns, dtype=float).T, results, plan.config.seed)
    each = zip(plan.axes, own.mean(axis=0).tolist(), doubles.max(axis=0).tolist(), strict=True)
    return sorted((Importance(axis.name, *shares) for axis, *shares in each), key=lambda item: -item.share)


def _shares(
    values: NDArray[np.float64], results: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shares of options and of their doubles, each (DOUBLES, options); values are (trials, options)."""
    from sklearn.ensemble import ExtraTreesRegressor

    options, generator = values.shape[1], np.random.default_rng(seed)
    rounds = []
    for number in range(DOUBLES):
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=SMALLEST_LEAF, random_state=number)
        forest.fit(np.hstack([values, generator.permuted(values, axis=0)]), results)
        rounds.append(forest.feature_importances_)
    shares = np.array(rounds)
    return shares[:, :options], shares[:, options:]


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """1 for the smallest; equal ones share the mean of their places."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return middle[places]
