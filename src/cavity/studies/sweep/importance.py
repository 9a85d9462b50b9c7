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

import numpy as np

from cavity.studies.sweep.plan import Plan
from cavity.studies.sweep.space import Choices
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
    from sklearn.ensemble import ExtraTreesRegressor

    measured = [trial for trial in trials if trial.value is not None]
    _, places, counts = np.unique([trial.value for trial in measured], return_inverse=True, return_counts=True)
    if len(measured) < FEWEST or len(counts) == 1:
        return []
    # Equal results share the mean of their places.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    columns = []
    for axis in plan.axes:
        found = [trial.coordinates[axis.key] for trial in measured]
        columns.append([axis.words.index(word) for word in found] if isinstance(axis, Choices) else found)
    values = np.array(columns, dtype=float).T
    generator, rounds = np.random.default_rng(plan.config.seed), []
    for number in range(DOUBLES):
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=SMALLEST_LEAF, random_state=number)
        forest.fit(np.hstack([values, generator.permuted(values, axis=0)]), ranks)
        rounds.append(forest.feature_importances_)
    # (DOUBLES, options) each.
    own, doubles = np.hsplit(np.array(rounds), 2)
    each = zip(plan.axes, own.mean(axis=0).tolist(), doubles.max(axis=0).tolist(), strict=True)
    return sorted((Importance(axis.name, *shares) for axis, *shares in each), key=lambda item: -item.share)
