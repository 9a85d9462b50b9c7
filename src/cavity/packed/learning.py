"""One step of mean field in whole numbers: what ``net_learn`` of an exported network does, bit for bit.

The state is a field h of each ±1 weight, in units of 2^-12 (int16), of a network with one hidden layer of sign units
and an argmax. A sample x with label y moves it by (``core/sweep.py``, with ρ = 1 and the pairwise argmax)

    m = tanh h,   σ = 1 − m²
    hidden    ω = Σ m x,   V = Σ σ x²,      u = ω/√V,   x̂ = erf(u/√2)
    readout   ω = Σ m x̂,  V = Σ (1 − m²x̂²),   a_k = (ω_k − ω_y)/√(V_k + V_y)
              g_k = −K(a_k)/√(V_k + V_y),   g_y = −Σ_k g_k
    hidden    B = Σ_k m_k g_k,   t = tanh B,   g = 2𝒩(u) t/(1 + t x̂)/√V
    h ← h + e g x,   |h| ≤ 3

It does so only where some a_k reaches −margin: a network that went on learning what it knows would forget what it is
not shown. For the same reason x of a layer's step is what is left of its inputs without directions d that the known
classes use most, x ← x − d (d·x), one after the other. Signs of h are the weights of a 1-bit network. Every
intermediate result fits into 32 bits; divisions are of numbers ≥ 0, and right shifts round down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cavity.packed.gaussian import COARSE, DENSITY, ERF, FINE, HAZARD, LIMIT, MEAN, REACH

Whole = NDArray[np.int64]
Fields = NDArray[np.int16]

#: The largest |x| of a standardised input, and the largest |g| in units of 2^-12.
LARGEST_INPUT, LARGEST_MESSAGE = 8, (1 << 15) - 1
#: The largest rate; the largest |e g|, in units of 2^-16, that can be multiplied by an input in 32 bits.
LARGEST_RATE, LARGEST_STEP = 2, 1 << 19
#: Fraction bits of directions.
DIRECTION = 7
#: The least √V of hidden units and of pairs of classes, in units of 2^-8.
HIDDEN_FLOOR, OUTPUT_FLOOR = 1 << COARSE - 2, 1 << COARSE
#: Samples predicted at once.
AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Learning:
    """What a device needs in order to learn, beyond the tables.

    x_i = (slope·q_i + centre) >> shift in units of 2^-bits, for pixels q from 0 to ``white``; ``thresholds``
    (features + 1,): a hidden unit with n weights +1 is +1 where Σ w q ≥ thresholds[n]. ``rate`` of the hidden layer and
    ``class_rates`` (classes,) of the readout are e in units of 2^-16, ``margin`` is one of a in units of 2^-8 and
    ``directions`` of both layers, (directions, features) and (directions, hidden), are d in units of 2^-7; there may be
    none. ``start`` are the first fields, (hidden, features) and (classes, hidden).
    """

    white: int
    slope: int
    centre: int
    shift: int
    bits: int
    thresholds: NDArray[np.int32]
    rate: int
    class_rates: NDArray[np.int32]
    margin: int
    directions: tuple[NDArray[np.int8], NDArray[np.int8]]
    start: tuple[Fields, Fields]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Inputs, hidden units and classes."""
        (hidden, features), classes = self.start[0].shape, len(self.start[1])
        return features, hidden, classes

    def inputs(self, q: Whole) -> Whole:
        """x of pixels, in units of 2^-bits."""
        most = (LARGEST_INPUT << self.bits) - 1
        x: Whole = np.clip((self.slope * q + self.centre) >> self.shift, -most, most)
        return x


class Sweep(NamedTuple):
    """What the way up leaves: inputs x; x̂, 2𝒩(u) and √V of the hidden units; ω and V of the classes."""

    x: Whole
    unit: Whole
    density: Whole
    scale: Whole
    omega: Whole
    variance: Whole


class Learner:
    """A network that learns one sample at a time; ``fields`` are its state."""

    def __init__(self, learning: Learning) -> None:
        self.learning = learning
        self.fields = [start.copy() for start in learning.start]

    def __repr__(self) -> str:
        return f"Learner({'-'.join(map(str, self.learning.sizes))})"

    def learn_one(self, sample: ArrayLike, label: int) -> bool:
        """Learn that ``sample`` (features,), pixels from 0 to white, is of class ``label``, unless that leads by the
        margin; returns whether there was anything to learn."""
        classes = self.learning.sizes[2]
        if not 0 <= label < classes:
            raise ValueError(f"label must be a class from 0 to {classes - 1}, got {label}")
        up = self._up(self._pixels(np.asarray(sample)[None])[0])
        a, s = _leads(up.omega, up.variance, label)
        if np.delete(a, label).max() < -self.learning.margin:
            return False
        g = _class_messages(a, s, label)
        t = mean_of(np.clip(g @ (mean_of(self.fields[1]) >> 4) >> COARSE, -LIMIT, LIMIT))
        gain = np.maximum(((1 << FINE) + (t * up.unit >> COARSE)) * up.scale >> COARSE, 1)
        g_hidden = np.sign(t) * np.minimum(up.density * np.abs(t) // gain, LARGEST_MESSAGE)
        self._move(1, g, self.learning.class_rates, up.unit, COARSE)
        self._move(0, g_hidden, self.learning.rate, up.x, self.learning.bits)
        return True

    def _up(self, q: Whole) -> Sweep:
        """The way up of one sample, or of many (samples, features)."""
        bits = self.learning.bits
        x, m, m_readout = self.learning.inputs(q), mean_of(self.fields[0]), mean_of(self.fields[1])
        omega = x @ m.T
        V = (x * x >> bits) @ ((1 << FINE) - (m * m >> FINE)).T
        s = np.maximum(_root(V >> bits - 4), HIDDEN_FLOOR)
        u = np.minimum((np.abs(omega) >> bits + 4 << COARSE) // s, REACH) + 4 >> 3
        unit, density = np.where(omega < 0, -1, 1) * ERF[u].astype(np.int64), DENSITY[u].astype(np.int64)
        part = unit[..., None, :] * m_readout >> COARSE
        variance = ((1 << 2 * FINE) - part * part >> FINE).sum(axis=-1)
        return Sweep(x, unit, density, s, part.sum(axis=-1), variance)

    def _move(self, layer: int, g: Whole, rate: int | NDArray[np.int32], x: Whole, bits: int) -> None:
        """h ← h + e g x, within the limit, with what is left of x (inputs,) without the layer's directions."""
        x = steered(x, self.learning.directions[layer], (LARGEST_INPUT << bits) - 1)
        step = np.clip((g >> 2) * rate + 512 >> 10, -LARGEST_STEP, LARGEST_STEP)
        moved = self.fields[layer] + (np.outer(step, x) + (1 << bits + 3) >> bits + 4)
        self.fields[layer] = np.clip(moved, -LIMIT, LIMIT).astype(np.int16)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Classes (samples,) of samples (samples, features), by the means m; the first of equals wins."""
        q = self._pixels(np.asarray(X))
        parts = [self._up(q[start : start + AT_ONCE]).omega.argmax(axis=1) for start in range(0, len(q), AT_ONCE)]
        return np.concatenate(parts)

    def predict_signs(self, X: ArrayLike) -> NDArray[np.int64]:
        """The same by the signs of the fields alone: the packed network of these weights."""
        hidden, readout = (np.where(fields >= 0, 1, -1) for fields in self.fields)
        least = self.learning.thresholds[(hidden > 0).sum(axis=1)]
        z = np.where(self._pixels(np.asarray(X)) @ hidden.T >= least, 1, -1)
        winners: Whole = (z @ readout.T).argmax(axis=1)
        return winners

    def _pixels(self, X: NDArray[Any]) -> Whole:
        features, white = self.learning.sizes[0], self.learning.white
        if X.ndim != 2 or X.shape[1] != features:
            raise ValueError(f"samples must have {features} pixels each, got shape {X.shape}")
        q = X.astype(np.int64)
        if (q != X).any() or (q < 0).any() or (q > white).any():
            raise ValueError(f"samples must be whole numbers from 0 to {white}, got {X.min()} to {X.max()}")
        return q


def steered(x: Whole, directions: NDArray[np.int8], most: int) -> Whole:
    """What is left of x (inputs,) without the directions (directions, inputs), between −most and most."""
    half = 1 << DIRECTION - 1
    for d in directions.astype(np.int64):
        along = d @ x + half >> DIRECTION
        x = np.clip(x - (d * along + half >> DIRECTION), -most, most)
    return x


def mean_of(h: NDArray[Any]) -> Whole:
    """m = tanh h, in units of 2^-12."""
    h = h.astype(np.int64)
    m: Whole = np.where(h < 0, -1, 1) * MEAN[np.abs(h) + 32 >> 6]
    return m


def _leads(omega: Whole, V: Whole, label: int) -> tuple[Whole, Whole]:
    """a_k of the classes (classes,), and √(V_k + V_y)."""
    s = np.maximum(_root(V + V[label] << 4), OUTPUT_FLOOR)
    lead = omega - omega[label]
    return np.sign(lead) * np.minimum((np.abs(lead) << 4) // s, 2 * REACH), s


def _class_messages(a: Whole, s: Whole, label: int) -> Whole:
    """g_k of the classes (classes,)."""
    g: Whole = -np.minimum((hazard_of(a) << COARSE) // s, LARGEST_MESSAGE)
    g[label] = 0
    g[label] = min(-int(g.sum()), LARGEST_MESSAGE)
    return g


def hazard_of(a: Whole) -> Whole:
    """K(a) for a in units of 2^-8, in units of 2^-12: nothing below the table, a straight line above it."""
    inside = HAZARD[np.clip(a, -REACH, REACH) + REACH + 4 >> 3].astype(np.int64)
    return np.where(a < -REACH, 0, inside + (np.maximum(a - REACH, 0) << FINE - COARSE))


def _root(values: Whole) -> Whole:
    """⌊√v⌋ of whole numbers below 2^52, which float64 gets right."""
    return np.floor(np.sqrt(values.astype(np.float64))).astype(np.int64)
