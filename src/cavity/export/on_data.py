"""What data say about a network as it is exported: how sure it may be of its answers, and how often it is right.

Samples are those that the exported network takes: pixels, or numbers in their own units; labels are class indices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cavity.analysis.metrics import class_index
from cavity.export.framing import framing
from cavity.export.integers import describe
from cavity.export.trained import ExportError, Trained
from cavity.packed.fitting import ENOUGH, fit
from cavity.packed.network import PackedNetwork

if TYPE_CHECKING:
    from cavity.data import Dataset
    from cavity.export.targets import Method

#: The share of answers that are not refused, unless one says otherwise.
COVERAGE = 0.9
#: How much the label of a training sample says about the temperature. 18 networks for digits, of three sizes and
#: trained for 4 to 30 epochs, then lose about 1 % of NLL against the best temperature for the test set, and 3.7 % at
#: most; with labels alone (1) it is 29 % on average. (Measured with an exponential table.)
SEEN = 0.75


class Labelled(NamedTuple):
    """Samples (samples, features) and class indices (samples,)."""

    x: ArrayLike
    y: ArrayLike


def calibrated(
    trained: Trained, x: ArrayLike, y: ArrayLike, coverage: float = COVERAGE, *, seen: bool = False
) -> Trained:
    """The same with a confidence: the temperature of least NLL on the samples, and a threshold that leaves at least
    ``coverage`` of them.

    Labels that the network has ``seen`` in training make it too sure. The probabilities of its posterior for the same
    samples are too modest for its scores: a label then counts for ``SEEN``, and these probabilities for the rest.
    """
    x, y = _checked(trained, x, y)
    x, y = (part[:: -(-len(part) // ENOUGH)] for part in (x, y))
    scores, wanted = PackedNetwork(describe(trained)).scores(x), y
    if seen:
        wanted = (1 - SEEN) * probabilities(trained, x)
        wanted[np.arange(len(y)), y] += SEEN
    found = fit(scores, wanted, coverage)
    return replace(trained, confidence=found)


def measured(trained: Trained, x: ArrayLike, y: ArrayLike, method: Method = "point") -> Trained:
    """The same with how many samples exactly what is exported gets right: the integers, or with ``method`` "bayes" the
    probabilities of the ONNX model."""
    x, y = _checked(trained, x, y)
    if method == "bayes":
        guess = probabilities(trained, x).argmax(axis=1)
    else:
        guess = PackedNetwork(describe(trained)).predict(x)
    return replace(trained, tested=(int((guess == y).sum()), len(y)))


def framed(trained: Trained, x: ArrayLike) -> Trained:
    """The same with how objects lie in grey images, so that a page can frame what is drawn on it; else as it was."""
    if trained.image_shape is None or trained.image_shape[0] != 1 or trained.inputs.white is None:
        return trained
    return replace(trained, framing=framing(np.asarray(x).reshape(-1, *trained.image_shape[1:]), trained.inputs.white))


@torch.no_grad()
def probabilities(trained: Trained, x: NDArray[Any]) -> NDArray[np.float64]:
    """Of the posterior, (samples, classes)."""
    v = standardised(trained, x)
    found: NDArray[np.float64] = trained.net.predict_proba(torch.from_numpy(v).to(trained.net.dtype)).double().numpy()
    return found


def standardised(trained: Trained, x: NDArray[Any]) -> NDArray[np.float64]:
    """Samples as the network itself takes them."""
    inputs = trained.inputs
    v: NDArray[np.float64] = (x / (inputs.white or 1) - inputs.mean) / inputs.std
    return v


def own_units(trained: Trained, x: Tensor) -> NDArray[Any]:
    """Standardised samples as the exported network takes them: pixels, or numbers in their own units."""
    v = x.double().numpy() * trained.inputs.std + trained.inputs.mean
    if trained.inputs.white is None:
        return v
    return np.clip(np.rint(v * trained.inputs.white), 0, trained.inputs.white).astype(np.uint8)


def part_of(trained: Trained, dataset: Dataset, part: Literal["train", "test", "all"]) -> Labelled:
    """Samples of a data set that was standardised as the network takes it."""
    parts = {"train": (dataset.x_train, dataset.y_train), "test": (dataset.x_test, dataset.y_test)}
    x, y = map(torch.cat, zip(*parts.values(), strict=True)) if part == "all" else parts[part]
    return Labelled(own_units(trained, x), class_index(trained.net, y).numpy())


def _checked(trained: Trained, x: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = np.asarray(x), np.asarray(y)
    x = x.reshape(len(x), -1)
    classes = max(2, trained.net.outputs)
    if len(x) == 0 or y.shape != (len(x),) or y.dtype.kind not in "iu":
        raise ValueError(f"y must be the class indices of {len(x)} samples, got shape {y.shape} of {y.dtype}")
    if y.min() < 0 or y.max() >= classes:
        raise ExportError(f"y must hold class indices from 0 to {classes - 1}, got {y.min()} to {y.max()}")
    return x, y
