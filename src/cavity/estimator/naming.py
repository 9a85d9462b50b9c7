"""Classes that nobody had named: which labels are new, and which unit becomes whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: An argmax needs two units: with only one class in the data, the second unit stands for no class.
FEWEST_UNITS = 2


def united(known: NDArray[Any], *others: ArrayLike) -> NDArray[Any]:
    """All labels, sorted; ValueError where numbers and words would be mixed, because NumPy would make words of both."""
    found = known
    for labels in map(np.asarray, others):
        if not len(labels):
            continue
        if _kind(labels) != _kind(known):
            unlike = labels[0].item() if labels.dtype.kind != "O" else labels[0]
            raise ValueError(f"y must hold labels like those of classes {known.tolist()}, got {unlike!r}")
        found = np.union1d(found, labels)
    return found


def _kind(labels: NDArray[Any]) -> str:
    """Numbers, words or objects."""
    kind = labels.dtype.kind
    return "number" if kind in "biuf" else "word" if kind in "SUT" else kind


def rows_of(
    old: Sequence[NDArray[Any]], new: Sequence[NDArray[Any]], had: Sequence[int], have: Sequence[int]
) -> list[int | None]:
    """The old unit of each new one, target by target; None where a class has none. ``had`` and ``have`` count the units
    of each target: one that stood for no class has learnt not to win, and is the first that a new class takes."""
    rows: list[int | None] = []
    start = 0
    for before, after, units, wanted in zip(old, new, had, have, strict=True):
        places = {label: start + number for number, label in enumerate(before.tolist())}
        spare = list(range(start + len(before), start + units))
        for label in after.tolist():
            rows.append(places[label] if label in places else spare.pop(0) if spare else None)
        rows += spare[: wanted - len(after)]
        start += units
    return rows
