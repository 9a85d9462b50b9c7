"""What a network must know of its data: kept in the checkpoint, read back with suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cavity.analysis.metrics import is_number
from cavity.data.encoding import Encoding
from cavity.data.fingerprint import Codes, Fingerprint

if TYPE_CHECKING:
    from cavity.data import Dataset


@dataclass(frozen=True, eq=False)
class Task:
    """What a network must know of its data to be of use without them; mean and std as in ``Dataset``."""

    inputs: int
    classes: tuple[str, ...]
    image_shape: tuple[int, int, int] | None
    mean: Tensor
    std: Tensor
    #: Which samples the network was trained on; None for generated data, and in what older versions wrote.
    fingerprint: Fingerprint | None = None
    #: What was done with the columns of a table.
    encoding: Encoding | None = None
    #: Of regression, mean and std of the labels.
    target: tuple[float, float] | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Task:
        shape, moments = dataset.image_shape, (dataset.mean, dataset.std)
        classes, of_table = dataset.classes, {"encoding": dataset.encoding, "target": dataset.target}
        return cls(dataset.n_features, classes, shape, *moments, dataset.fingerprint, **of_table)  # type: ignore[arg-type]

    def standardize(self, x: Tensor) -> Tensor:
        """Samples (samples, features) in their own units → as the network was trained on them."""
        return (x - self.mean) / self.std

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values that a checkpoint holds, each by name."""
        tensors = {"mean": self.mean, "std": self.std}
        about: dict[str, Any] = {"inputs": self.inputs, "classes": self.classes, "image_shape": self.image_shape}
        if self.encoding is not None:
            about["table"] = self.encoding.as_values()
        if self.target is not None:
            about["target"] = list(self.target)
        if self.fingerprint is not None:
            about["labels"] = self.fingerprint.classes
            for part, codes in (("train", self.fingerprint.train), ("test", self.fingerprint.test)):
                tensors |= {f"data.{part}.{name}": torch.from_numpy(values) for name, values in codes._asdict().items()}
        return tensors, about

    @classmethod
    def from_parts(cls, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Task:
        """What ``parts`` gave, or a stranger wrote; ValueError or the like where it makes no sense."""
        inputs, shape = _size(about["inputs"]), about["image_shape"]
        shape = None if shape is None else (_size(shape[0]), _size(shape[1]), _size(shape[2]))
        if shape is not None and math.prod(shape) != inputs:
            raise ValueError(f"images of shape {shape} do not have {inputs} pixels")
        mean, std = (_statistic(tensors[name], inputs) for name in ("mean", "std"))
        known = _fingerprint(about["labels"], tensors) if "labels" in about else None
        table = about.get("table")
        encoding = None if table is None else Encoding.from_values(table)
        if encoding is not None and encoding.width != inputs:
            raise ValueError(f"the table has {encoding.width} features, the network {inputs}")
        target = None if about.get("target") is None else _target(about["target"])
        return cls(inputs, tuple(map(str, about["classes"])), shape, mean, std, known, encoding, target)


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"a size is {str(value)[:40]!r}, expected a whole number from 1")
    return value


def _statistic(values: Tensor, inputs: int) -> Tensor:
    """Mean or std of the data: one number, or one for each input."""
    if values.shape not in ((1,), (inputs,)) or not values.is_floating_point():
        raise ValueError(f"mean and std are {values.dtype} of shape {tuple(values.shape)}, for {inputs} inputs")
    return values


def _target(values: Any) -> tuple[float, float]:
    """Mean and std of labels that are numbers."""
    if len(values) != 2 or not all(is_number(value) and math.isfinite(value) for value in values) or values[1] <= 0:
        raise ValueError(f"mean and std of the labels are {str(values)[:40]}")
    return float(values[0]), float(values[1])


def _fingerprint(classes: Any, tensors: Mapping[str, Tensor]) -> Fingerprint:
    """The codes of the samples, if they are of the kinds and lengths that they must have."""
    parts = []
    for part in ("train", "test"):
        rows, labels = (tensors[f"data.{part}.{name}"] for name in Codes._fields)
        if (rows.dtype, labels.dtype) != (torch.int64, torch.int32) or not rows.ndim == labels.ndim == 1:
            raise ValueError(f"the codes of the samples are of {rows.dtype} and {labels.dtype}")
        if len(rows) != len(labels) or len(rows) == 0:
            raise ValueError(f"there are codes of {len(rows)} samples and of {len(labels)} labels")
        parts.append(Codes(rows.numpy(), labels.numpy()))
    return Fingerprint(parts[0], parts[1], tuple(map(str, classes)))
