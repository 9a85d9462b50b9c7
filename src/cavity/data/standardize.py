"""From raw arrays to a ``Dataset``: x ← (x − mean)/std with the training set's own mean and std.

One mean and std for grey images, one per channel for CIFAR-10, one per feature for tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cavity.data.dataset import Dataset
from cavity.data.errors import DataError
from cavity.data.raw import Part, Raw, Statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cavity.data.raw import Samples

ROWS = 256


def _channels(raw: Raw) -> int:
    """How many groups of features have a mean and std of their own, the groups lying one after another."""
    return raw.image_shape[0] if raw.statistics == "channel" and raw.image_shape else 1


def _byte_counts(x: NDArray[np.uint8], channels: int) -> NDArray[np.int64]:
    """How often each byte occurs, (channels, 256); in slices, because bincount widens to 64 bits."""
    counts = np.zeros((channels, 256), np.int64)
    for start in range(0, len(x), ROWS):
        block = x[start : start + ROWS].reshape(-1, channels, x.shape[1] // channels)
        for channel in range(channels):
            counts[channel] += np.bincount(block[:, channel].ravel(), minlength=256)
    return counts


def _moments_of_bytes(x: NDArray[np.uint8], channels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    counts, values = _byte_counts(x, channels), np.arange(256.0)
    total = counts.sum(axis=1)
    mean = counts @ values / total
    variance = (counts * (values - mean[:, None]) ** 2).sum(axis=1) / total
    return mean, np.sqrt(variance)


def _moments(x: NDArray[np.floating], statistics: Statistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and std in float64, (1,) or (features,); 0 and 1 where nothing is to be done."""
    if statistics == "none":
        return np.zeros(1), np.ones(1)
    axis = 0 if statistics == "feature" else None
    with np.errstate(all="ignore"):
        mean = np.atleast_1d(x.mean(axis=axis, dtype=np.float64))
        std = np.atleast_1d(x.std(axis=axis, dtype=np.float64))
    lowest, highest = np.atleast_1d(x.min(axis=axis)), np.atleast_1d(x.max(axis=axis))
    # A sum of equal numbers is not exactly their multiple: without this, a constant would become noise.
    constant = lowest == highest
    return np.where(constant, lowest, mean), np.where(constant, 0.0, std)


def _without_zeros(std: NDArray[np.float64]) -> NDArray[np.float64]:
    """A constant feature gets std 1; so does one whose std vanishes in float32."""
    return np.where(std.astype(np.float32) == 0, 1.0, std)


def _transform_bytes(x: NDArray[np.uint8], mean: NDArray[np.float64], std: NDArray[np.float64]) -> NDArray[np.float32]:
    """(x − mean)/std by a table of 256 entries per channel; in slices that stay in the processor's cache."""
    table = ((np.arange(256.0) - mean[:, None]) / std[:, None]).astype(np.float32)
    grouped = x.reshape(len(x), len(mean), -1)
    out = np.empty(grouped.shape, np.float32)
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        for channel in range(len(mean)):
            out[rows, channel] = np.take(table[channel], grouped[rows, channel], mode="clip")
    return out.reshape(x.shape)


def _check_finite(x: NDArray[np.floating], name: str, reason: str) -> None:
    if not np.isfinite(x).all():
        sample, feature = np.unravel_index(np.isfinite(x).argmin(), x.shape)
        raise DataError(f"{name}: sample {sample}, feature {feature} {reason}")


def _transform(
    x: NDArray[np.floating], mean: NDArray[np.float64], std: NDArray[np.float64], name: str
) -> NDArray[np.float32]:
    """(x − mean)/std in float64, slice by slice, to float32."""
    out = np.empty(x.shape, np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), ROWS):
            out[start : start + ROWS] = (x[start : start + ROWS] - mean) / std
    _check_finite(out, name, "does not fit into float32")
    return out


def _labels(part: Part, binary_task: bool) -> NDArray[np.int64]:
    """Class indices as they are, or 2·(index mod 2) − 1: odd classes +1, even classes −1."""
    return 2 * (part.y % 2) - 1 if binary_task else part.y.astype(np.int64)


def finish(raw: Raw, *, binary_task: bool, standardize: bool) -> Dataset:
    """The tensors of a data set, its standardisation, and its labels for the task wanted."""
    import torch

    channels = _channels(raw)
    xs: list[Samples] = [raw.train.x, raw.test.x]
    as_bytes = raw.train.x.dtype == np.uint8 and raw.statistics in ("overall", "channel")
    if not as_bytes:
        xs = [x.astype(np.float32) if x.dtype == np.uint8 else x for x in xs]
        for x in xs:
            _check_finite(x, raw.name, "is not a finite number")
    if not standardize:
        mean, std = np.zeros(channels), np.full(channels, raw.scale)
    elif as_bytes:
        mean, std = _moments_of_bytes(xs[0], channels)
    else:
        mean, std = _moments(xs[0], raw.statistics)
    if not np.abs((mean, std)).max() <= np.finfo(np.float32).max:
        raise DataError(f"{raw.name}: the values are too large for a mean and std in float32")
    std = _without_zeros(std)
    if as_bytes:
        x_train, x_test = (_transform_bytes(x, mean, std) for x in xs)
    else:
        x_train, x_test = (_transform(x, mean, std, raw.name) for x in xs)
    mean, std = mean / raw.scale, std / raw.scale
    width = raw.train.x.shape[1] // channels if channels > 1 else 1
    classes = raw.classes
    if binary_task and len(classes) > 2:
        classes = ("even", "odd")
    return Dataset(
        x_train=torch.from_numpy(x_train),
        y_train=torch.from_numpy(_labels(raw.train, binary_task)),
        x_test=torch.from_numpy(x_test),
        y_test=torch.from_numpy(_labels(raw.test, binary_task)),
        image_shape=raw.image_shape,
        classes=classes,
        mean=torch.from_numpy(np.repeat(mean, width).astype(np.float32)),
        std=torch.from_numpy(np.repeat(std, width).astype(np.float32)),
        name=raw.name,
    )
