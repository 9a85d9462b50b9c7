"""From raw arrays to a ``Dataset``: x ← (x − mean)/std with the training set's own mean and std.

One mean and std for grey images, one per channel for CIFAR-10, one per feature for tables.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from cavity.data.dataset import Dataset
from cavity.data.errors import DataError
from cavity.data.raw import Raw, Samples, Statistics

Floats: TypeAlias = NDArray[np.float64]
ROWS = 256


def _slices(x: Samples) -> list[slice]:
    """All rows, a few at a time: intermediate results stay in the processor's cache."""
    return [slice(start, start + ROWS) for start in range(0, len(x), ROWS)]


def _moments_of_bytes(x: NDArray[np.uint8], channels: int) -> tuple[Floats, Floats]:
    """Mean and std of each channel, (channels,), from how often each byte occurs in it."""
    counts, values = np.zeros((channels, 256), np.int64), np.arange(256.0)
    grouped = x.reshape(len(x), channels, -1)
    for rows in _slices(x):
        for channel in range(channels):
            counts[channel] += np.bincount(grouped[rows, channel].ravel(), minlength=256)
    total = counts.sum(axis=1)
    mean = counts @ values / total
    return mean, np.sqrt((counts * (values - mean[:, None]) ** 2).sum(axis=1) / total)


def _moments(x: NDArray[np.floating], statistics: Statistics) -> tuple[Floats, Floats]:
    """Mean and std in float64, (1,) or (features,); 0 and 1 where nothing is to be done."""
    if statistics == "none":
        return np.zeros(1), np.ones(1)
    axis = 0 if statistics == "feature" else None
    with np.errstate(all="ignore"):
        mean, std = (np.atleast_1d(moment(axis=axis, dtype=np.float64)) for moment in (x.mean, x.std))
    lowest, highest = np.atleast_1d(x.min(axis=axis)), np.atleast_1d(x.max(axis=axis))
    # A sum of equal numbers is not exactly their multiple: without this, a constant would become noise.
    constant = lowest == highest
    return np.where(constant, lowest, mean), np.where(constant, 0.0, std)


def _transform_bytes(x: NDArray[np.uint8], mean: Floats, std: Floats) -> NDArray[np.float32]:
    """(x − mean)/std by a table of 256 entries per channel."""
    table = ((np.arange(256.0) - mean[:, None]) / std[:, None]).astype(np.float32)
    grouped = x.reshape(len(x), len(mean), -1)
    out = np.empty(grouped.shape, np.float32)
    for rows in _slices(x):
        for channel in range(len(mean)):
            out[rows, channel] = np.take(table[channel], grouped[rows, channel], mode="clip")
    return out.reshape(x.shape)


def _check_finite(x: NDArray[np.floating], name: str, reason: str) -> None:
    if not np.isfinite(x).all():
        sample, feature = np.unravel_index(np.isfinite(x).argmin(), x.shape)
        raise DataError(f"{name}: sample {sample}, feature {feature} {reason}")


def _transform(x: NDArray[np.floating], mean: Floats, std: Floats, name: str) -> NDArray[np.float32]:
    """(x − mean)/std in float64, to float32."""
    out = np.empty(x.shape, np.float32)
    with np.errstate(all="ignore"):
        for rows in _slices(x):
            out[rows] = (x[rows] - mean) / std
    _check_finite(out, name, "does not fit into float32")
    return out


def _target(raw: Raw) -> tuple[float, float]:
    """Mean and standard deviation of the numbers to predict, 1 where they do not vary."""
    mean, std = float(raw.train.y.mean()), float(raw.train.y.std())
    if not (np.isfinite(mean) and np.isfinite(std)):
        raise DataError(f"{raw.name}: the labels are too large")
    return mean, std or 1.0


def finish(raw: Raw, *, binary_task: bool, standardize: bool) -> Dataset:
    """The tensors of a data set, its standardisation, and its labels for the task wanted."""
    # Each channel of a colour image has a mean and std of its own.
    channels = raw.image_shape[0] if raw.statistics == "channel" and raw.image_shape else 1
    xs: list[Samples] = [raw.train.x, raw.test.x]
    as_bytes = raw.train.x.dtype == np.uint8 and raw.statistics in ("overall", "channel")
    if not as_bytes:
        xs = [x.astype(np.float32) if x.dtype == np.uint8 else x for x in xs]
        for x in xs:
            _check_finite(x, raw.name, "is not a finite number")
    if not standardize:
        mean, std = np.zeros(channels), np.full(channels, raw.scale)
    else:
        mean, std = _moments_of_bytes(xs[0], channels) if as_bytes else _moments(xs[0], raw.statistics)
    if not np.abs((mean, std)).max() <= np.finfo(np.float32).max:
        raise DataError(f"{raw.name}: the values are too large for a mean and std in float32")
    # A constant feature, or one whose std vanishes in float32, is divided by 1.
    std = np.where(std.astype(np.float32) == 0, 1.0, std)
    done = [_transform_bytes(x, mean, std) if as_bytes else _transform(x, mean, std, raw.name) for x in xs]
    # Odd classes are +1 in the two-class task, even ones −1.
    ys = [2 * (part.y % 2) - 1 if binary_task else part.y for part in (raw.train, raw.test)]
    target = None if raw.classes else _target(raw)
    if target is None:
        ys = [y.astype(np.int64) for y in ys]
    else:
        ys = [((y - target[0]) / target[1]).astype(np.float32) for y in ys]
    width = raw.train.x.shape[1] // channels if channels > 1 else 1
    own = [np.repeat(moment / raw.scale, width).astype(np.float32) for moment in (mean, std)]
    x_train, x_test, y_train, y_test, own_mean, own_std = map(torch.from_numpy, (*done, *ys, *own))
    classes = ("even", "odd") if binary_task and len(raw.classes) > 2 else raw.classes
    return Dataset(
        x_train,
        y_train,
        x_test,
        y_test,
        raw.image_shape,
        classes,
        own_mean,
        own_std,
        raw.name,
        encoding=raw.encoding,
        target=target,
        features=raw.features,
    )
