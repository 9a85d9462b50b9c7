"""The temperature of a ``Confidence``, fitted on scores and what was right, and its threshold for a wanted coverage.

What is minimised is the NLL of the integer rule itself, over all pairs (multiplier, shift) in order of
multiplier/2^shift, from coarse to fine. A label y counts as (1 − ε) of y and ε/classes of each class, with
ε = 1/(samples + 1): a few samples that are all right are no proof of certainty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cavity.packed.confidence import LARGEST_MULTIPLIER, LARGEST_SHIFT, Confidence

#: Every rate multiplier/2^shift with 8 significant bits, from the lowest: one in 128 parts of an octave.
HALF = (LARGEST_MULTIPLIER + 1) // 2
RATES = [
    (multiplier, shift) for shift in range(LARGEST_SHIFT, -1, -1) for multiplier in range(HALF, LARGEST_MULTIPLIER + 1)
]
#: Strides of the search, each reaching beyond the neighbours of the one before.
STRIDES, REACH = (256, 64, 16, 4, 1), 5
#: More samples than this say no more.
ENOUGH = 20_000


def fit(
    scores: NDArray[np.int64], targets: NDArray[np.integer] | NDArray[np.floating], coverage: float = 0.9
) -> Confidence:
    """The confidence of scores (samples, outputs) whose right classes are known: ``targets`` are indices (samples,), or
    probabilities (samples, classes). At least ``coverage`` of the samples are not refused by it."""
    if len(scores) == 0 or len(scores) != len(targets):
        raise ValueError(f"scores and targets must be of the same samples, got {len(scores)} and {len(targets)}")
    some = slice(None, None, -(-len(scores) // ENOUGH))
    wanted = _smoothed(np.asarray(targets), max(2, scores.shape[1]))[some]
    losses: dict[int, float] = {}
    best = 0
    for stride in STRIDES:
        reach = REACH * stride if losses else len(RATES)
        for place in range(best - reach, best + reach + 1, stride):
            if 0 <= place < len(RATES) and place not in losses:
                losses[place] = loss(Confidence(*RATES[place]), scores[some], wanted)
        best = min(losses, key=losses.__getitem__)
    return Confidence(*RATES[best]).covering(scores, coverage)


def loss(confidence: Confidence, scores: NDArray[np.int64], wanted: NDArray[np.float64]) -> float:
    """The mean of −Σ_k wanted_k log p_k in nats; ``wanted`` is (samples, classes)."""
    return -float((wanted * np.log(confidence.probabilities(scores))).sum(axis=1).mean())


def _smoothed(targets: NDArray[np.integer] | NDArray[np.floating], classes: int) -> NDArray[np.float64]:
    p = np.eye(classes)[targets] if targets.ndim == 1 else targets.astype(np.float64)
    epsilon = 1 / (len(p) + 1)
    return (1 - epsilon) * p + epsilon / classes
