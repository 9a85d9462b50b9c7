"""How often each sample counts: ``sample_weight`` times ``class_weight``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

ClassWeight = Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None


def sample_counts(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """``sample_weight`` (samples,) as numbers of at least 0, not all of them 0; None: every sample counts once."""
    if sample_weight is None:
        return None
    counts: NDArray[np.float64] = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not counts.any():
        raise ValueError("sample_weight must not be zero for every sample")
    return counts


def class_counts(
    class_weight: ClassWeight, classes: Sequence[NDArray[Any]], y: NDArray[np.int64], counts: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The counts of the samples times the weights of their classes, for class numbers y (samples, targets).

    "balanced" gives class c of C the weight n/(C n_c), n_c the counts of its samples. Of several targets the weights
    are multiplied."""
    if class_weight is None:
        return counts
    own = np.ones(len(y)) if counts is None else counts
    many = [class_weight] * len(classes) if isinstance(class_weight, Mapping | str) else list(class_weight)
    if len(many) != len(classes):
        raise ValueError(f"class_weight must have one dict for each of {len(classes)} targets, got {len(many)}")
    total = own.copy()
    for number, (weights, names) in enumerate(zip(many, classes, strict=True)):
        total *= _by_class(weights, names, y[:, number], own)[y[:, number]]
    return total


def _by_class(
    weights: Mapping[Any, float] | str, names: NDArray[Any], y: NDArray[np.int64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The weight of each class."""
    if isinstance(weights, str):
        if weights != "balanced":
            raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {weights!r}")
        here = np.bincount(y, weights=counts, minlength=len(names))
        present = here > 0
        fair = np.ones(len(names))
        fair[present] = here.sum() / (present.sum() * here[present])
        return fair
    unknown = sorted(map(repr, set(weights) - set(names.tolist())))
    if unknown:
        raise ValueError(f"class_weight names {', '.join(unknown)}, which is no class; there are {names.tolist()}")
    found = np.array([float(weights.get(name, 1.0)) for name in names.tolist()])
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"class_weight must be finite numbers of at least 0, got {dict(weights)}")
    return found
