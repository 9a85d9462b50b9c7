"""The classes of a classifier: which there are, what number each label has, and which unit is whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d
from torch import Tensor

#: An argmax needs two units: with only one class in the data, the second unit stands for no class.
FEWEST_UNITS = 2
#: Of one target (samples, classes), of several a list of these, of labels that are there or not (samples, labels).
PerClass = NDArray[np.float64] | list[NDArray[np.float64]]


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


class Classes:
    """What a classifier knows of its classes; of several targets, each has its own."""

    classes_: Any
    _several: bool
    _indicator: bool

    @property
    def _classes(self) -> list[NDArray[Any]]:
        """The classes of each target."""
        if self._indicator:
            return [np.array([0, 1])] * len(self.classes_)
        known: list[NDArray[Any]] = self.classes_ if self._several else [self.classes_]
        return known

    def _name_classes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Take the classes of all targets from y, and give each label its number, (samples, targets)."""
        self._know_classes(y, [np.unique(column) for column in y.T] if y.ndim == 2 else np.unique(y))
        return self._numbers(y)

    def _know_classes(self, y: NDArray[Any], classes: Any) -> None:
        """Take the classes of all targets from a list."""
        self._several, self._indicator = y.ndim == 2, y.ndim == 2 and type_of_target(y) == "multilabel-indicator"
        if self._indicator:
            self.classes_ = np.arange(y.shape[1])
        elif self._several:
            self.classes_ = [np.unique(np.asarray(part)) for part in classes]
            if len(self.classes_) != y.shape[1]:
                raise ValueError(f"classes must have a list for each of {y.shape[1]} targets, got {len(self.classes_)}")
        else:
            self.classes_ = np.unique(column_or_1d(np.asarray(classes)))

    def _numbers(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each label among the classes that are known, (samples, targets)."""
        columns = y.reshape(len(y), -1).T
        if len(columns) != len(self._classes) or (y.ndim == 2) != self._several:
            raise ValueError(f"y must have {len(self._classes)} targets, got shape {y.shape}")
        for names, column in zip(self._classes, columns, strict=True):
            unknown = np.setdiff1d(column, names)
            if len(unknown):
                raise ValueError(f"y must only hold labels from classes {names}, got {unknown}")
        numbers = [np.searchsorted(names, column) for names, column in zip(self._classes, columns, strict=True)]
        return np.stack(numbers, axis=1).astype(np.int64)

    def _target(self, numbers: NDArray[np.int64]) -> Tensor:
        """Class numbers (samples, targets) as the output takes them."""
        target = torch.from_numpy(np.ascontiguousarray(numbers))
        return target if self._several else target.squeeze(1)

    def _labels(self, indices: Tensor) -> NDArray[Any]:
        if self._several:
            columns = [names[part.numpy()] for names, part in zip(self._classes, indices.unbind(1), strict=True)]
            return np.stack(columns, axis=1)
        # With a single class, the unit that stands for no class may win; there is only one class to predict then.
        labels: NDArray[Any] = self.classes_[indices.clamp_max(len(self.classes_) - 1).numpy()]
        return labels

    def _blocks(self, per_unit: Tensor) -> list[Tensor]:
        """The units of each target, of which there are several."""
        parts = torch.split(per_unit, self._units(), dim=1)
        return [part[:, : len(names)] for part, names in zip(parts, self._classes, strict=True)]

    def _per_class(self, per_unit: Tensor) -> PerClass:
        if self._indicator:
            return torch.stack([part[:, 1] for part in self._blocks(per_unit)], dim=1).numpy()
        return [part.numpy() for part in self._blocks(per_unit)] if self._several else per_unit.numpy()

    def _units(self) -> list[int]:
        return [max(len(names), FEWEST_UNITS) for names in self._classes]
