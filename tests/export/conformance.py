"""Five networks, 1,000 samples of each, and what every export must say about them to the last bit.

What is expected is computed in Python's own whole numbers from the definitions in ``packed.description``,
``packed.fixed`` and ``packed.confidence``, and by none of the code that is tested. A target gives its ``Answers`` to
``vectors``. The networks fit into the 32 kB of an ATmega328P.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import torch

import cavity
from cavity.export import Inputs, Trained, describe
from cavity.packed import Confidence, Description
from cavity.packed.fitting import fit
from export.helpers import network, samples

COUNT = 1000
#: Kind → whether it is of pixels (up to the number), and what makes the network.
NETWORKS = {
    "dense": (16, lambda: network((64, 51, 10), seed=1)),
    "sparse": (255, lambda: network((49, 35, 21, 5), seed=2, density=0.4, bias=True)),
    "ternary": (255, lambda: network((49, 33, 1), seed=3, weights="ternary", threshold=True)),
    "convolutional": (255, lambda: _convolutional()),
    "table": (None, lambda: network((13, 25, 3), seed=5, threshold=True)),
}


@dataclasses.dataclass(frozen=True)
class Answers:
    """Scores (samples, outputs), classes (samples,) and confidences (samples,) from 0 to 255."""

    scores: np.ndarray
    classes: np.ndarray
    confidences: np.ndarray

    def require(self, other: Answers) -> None:
        """AssertionError that says which samples differ."""
        for name in ("scores", "classes", "confidences"):
            mine, others = (np.asarray(getattr(each, name)).astype(np.int64) for each in (self, other))
            assert mine.shape == others.shape, f"{name}: {others.shape} instead of {mine.shape}"
            differ = np.flatnonzero((mine != others).reshape(len(mine), -1).any(axis=1))
            assert len(differ) == 0, f"{name} of {len(differ)} samples differ, the first is {differ[0]}"


@functools.cache
def model(name: str) -> Trained:
    """The network of a kind, with a confidence that is now low and now high."""
    white, make = NETWORKS[name]
    net, random = make(), np.random.default_rng(7)
    features = math.prod(net.input_shape)
    if white is None:
        inputs = Inputs.real(random.normal(0, 30, features), 10.0 ** random.uniform(-3, 3, features))
    else:
        inputs = Inputs.pixels(np.float32(0.31), np.float32(0.27), white)
    # Letters of all kinds: names are part of what is exported.
    classes = tuple(f'class "{number}" \\ é?' for number in range(max(2, net.outputs)))
    trained = Trained(net, inputs, classes)
    found = expected(describe(trained), samples(inputs, features, 200))
    noisy = np.where(random.random(200) < 0.3, random.integers(0, max(2, net.outputs), 200), found.classes)
    return dataclasses.replace(trained, confidence=fit(found.scores, noisy, coverage=0.8))


@functools.cache
def vectors(name: str) -> np.ndarray:
    """1,000 samples as the exported network takes them: pixels, or numbers in their own units."""
    trained = model(name)
    return samples(trained.inputs, math.prod(trained.net.input_shape), COUNT, seed=11)


@functools.cache
def answers(name: str) -> Answers:
    """What every target must say."""
    return expected(describe(model(name)), vectors(name))


def expected(net: Description, x: np.ndarray) -> Answers:
    """The definitions, in numbers that neither round nor overflow."""
    z = np.array(integers(net, x).tolist(), object)
    for number, layer in enumerate(net.layers):
        w = np.array(layer.whole.T.tolist(), object).reshape(layer.shape[::-1])
        if number == 0:
            factors = np.array([[factor] for width, factor in net.inputs.groups for _ in range(width)], object)
            z = (z @ (w * factors)) * 2**net.shift - np.array(net.offsets.tolist(), object)
        else:
            bias = 0 if layer.bias is None else np.array(layer.bias.tolist(), object)
            z = np.where(z >= 0, 1, -1).astype(object) @ w * 2**layer.shift + bias
    rows = z.tolist()
    classes = [int(row[0] >= 0) if len(row) == 1 else row.index(max(row)) for row in rows]
    sure = [0 if net.confidence is None else _confidence(net.confidence, row) for row in rows]
    return Answers(np.array(rows), np.array(classes), np.array(sure))


def integers(net: Description, x: np.ndarray) -> np.ndarray:
    """q (samples, features)."""
    if net.inputs.fixed is None:
        return x.astype(np.int64)
    code, features = net.inputs.fixed, x.shape[1]
    bits, centre, multiplier = (np.broadcast_to(part, features) for part in (code.bits, code.centre, code.multiplier))
    rows = []
    for row in x.tolist():
        raw = [round(Fraction(v) * Fraction(2) ** int(b)) for v, b in zip(row, bits, strict=True)]
        raw = [max(-(2**31) + 1, min(2**31 - 1, r)) for r in raw]
        limits = [(2**30 - 2**15) // int(m) for m in multiplier]
        d = [max(-most, min(most, r - int(c))) for r, c, most in zip(raw, centre, limits, strict=True)]
        rows.append([(each * int(m) + 2**14) // 2**15 for each, m in zip(d, multiplier, strict=True)])
    return np.array(rows)


def _confidence(rule: Confidence, scores: list[int]) -> int:
    both = [-scores[0], scores[0]] if len(scores) == 1 else scores
    places = [min(((max(both) - score) * rule.multiplier) // 2**rule.shift, 63) for score in both]
    total = sum(round(65535 * math.exp(-((place / 12) ** 1.25))) for place in places)
    return (255 * 65535 + total // 2) // total


def _convolutional() -> cavity.Network:
    net = cavity.network("conv:6:3:1:1,pool:2,conv:9:2:1:1,dense:17", (1, 9, 9), 4, threshold=True, seed=4)
    for number, layer in enumerate(net.weighted()):
        if layer.threshold is not None:
            b = torch.randn(layer.shape[0], generator=torch.Generator().manual_seed(number))
            layer.threshold.begin(2 * b, torch.tensor(2.0), balanced=True)
    return net
