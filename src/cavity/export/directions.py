"""What a layer's inputs have in common in the known classes, which learning new ones must leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cavity.packed.learning import DIRECTION

#: More samples than this say no more.
ENOUGH = 10_000


def directions(x: NDArray[Any], most: int) -> NDArray[np.int8]:
    """d = √(λ/(λ + λ̄)) u (directions, features) in units of 2^-7, at most that many, of inputs (samples, features).

    λ and u are the largest eigenvalues and their eigenvectors of E[x xᵀ], λ̄ the mean of all eigenvalues. A step along
    x − Σ d (d·x) moves ω of the samples themselves by 1/(1 + λ/λ̄) of what a step along x would in that direction.
    """
    x = x[:: -(-len(x) // ENOUGH)].astype(np.float64)
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    mean = max(float(values.mean()), np.finfo(float).tiny)
    largest, u = values[: -most - 1 : -1], vectors[:, : -most - 1 : -1].T
    # An eigenvector has either sign: one of them makes every build the same.
    u *= np.sign(u[np.arange(len(u)), np.abs(u).argmax(axis=1)])[:, None]
    d = u * np.sqrt(np.maximum(largest, 0) / (np.maximum(largest, 0) + mean))[:, None]
    whole: NDArray[np.int8] = np.clip(np.rint(d * (1 << DIRECTION)), -127, 127).astype(np.int8)
    return whole
