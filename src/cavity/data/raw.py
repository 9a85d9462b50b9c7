"""What every reader hands on: samples and labels before standardisation, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import DataError

if TYPE_CHECKING:
    from cavity.data.encoding import Encoding

# Unsigned bytes or floats, which no single NumPy type but this one covers.
Samples: TypeAlias = NDArray[Any]
# One mean and std for everything, one per channel, one per feature, or none because it is so by construction.
Statistics = Literal["overall", "channel", "feature", "none"]


@dataclass(frozen=True)
class Part:
    """Samples (samples, features), of unsigned bytes or floats, and their class indices or, for regression, numbers
    (samples,)."""

    x: Samples
    y: NDArray[Any]


@dataclass(frozen=True)
class Raw:
    """Training and test part of a data set, in the units of the source; ``scale`` divides these units.

    ``statistics`` says how to standardise; ``image_shape`` is (channels, height, width) or None; without ``classes``
    labels are numbers. ``encoding`` is what was done with the columns of a table, ``features`` are the names of what
    became of them.
    """

    name: str
    train: Part
    test: Part
    classes: tuple[str, ...]
    statistics: Statistics
    image_shape: tuple[int, int, int] | None = None
    scale: float = 1.0
    encoding: Encoding | None = None
    features: tuple[str, ...] = ()


def stratified_split(
    y: NDArray[np.int64], test_fraction: float, seed: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """Training and test indices in random order, every class divided in the same proportion.

    The fraction is rounded cumulatively, so that the test set as a whole has round(samples · fraction). Every
    class keeps a sample for training. scikit-learn's ``train_test_split`` would give other samples for the same seed:
    a run that was made with this split could not be resumed or evaluated.
    """
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction is {test_fraction}, expected a number between 0 and 1")
    random = np.random.default_rng(seed)
    train, test = [], []
    seen = given = 0
    # Sorted once and cut where the class changes: a search for each class would take classes × samples.
    order = np.argsort(y, kind="stable").astype(np.int32 if len(y) < 1 << 31 else np.int64)
    sorted_y = y[order]
    for part in np.split(order, np.flatnonzero(sorted_y[1:] != sorted_y[:-1]) + 1):
        members = random.permutation(part)
        seen += len(members)
        n_test = min(round(seen * test_fraction) - given, len(members) - 1)
        given += n_test
        test.append(members[:n_test])
        train.append(members[n_test:])
    return random.permutation(np.concatenate(train)), random.permutation(np.concatenate(test))


Indices: TypeAlias = "tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]"


def parted(y: NDArray[np.int64], test_fraction: float, seed: int) -> Indices:
    """Training and test indices of classes y, none of them empty."""
    train, test = stratified_split(y, test_fraction, seed)
    if len(test) == 0:
        raise DataError(f"{len(y)} samples are too few for a test set of {test_fraction:.0%}")
    return train, test


def parted_numbers(samples: int, test_fraction: float, seed: int) -> Indices:
    """Training and test indices at random, none of them empty."""
    return parted(np.zeros(samples, np.int64), test_fraction, seed)


def split(x: Samples, y: NDArray[np.int64], test_fraction: float, seed: int) -> tuple[Part, Part]:
    """Samples and labels in two stratified parts."""
    train, test = parted(y, test_fraction, seed)
    return Part(x[train], y[train]), Part(x[test], y[test])
