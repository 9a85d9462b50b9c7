"""The matrix products that an algorithm cannot do without, run bare.

Per layer with weights (K, N) and M samples there are three kinds, each of 2·M·K·N operations:

    up       (M, N)·(K, N)ᵀ → (M, K)      the sums ω, and one more for V
    down     (M, K)·(K, N)  → (M, N)      the fields B on the inputs, not needed at the first layer
    weights  (M, K)ᵀ·(M, N) → (K, N)      the fields H on the weights

| algorithm     | up | down and weights, each                                                  |
|---------------|----|-------------------------------------------------------------------------|
| BinaryNet     | 1  | 1                                                                       |
| MF            | 2  | 1                                                                       |
| AMP           | 2  | 2: g and Γ                                                              |
| BPI, BP       | 2  | P + 1 for a series of order P; 1 where every edge is evaluated exactly  |

Of several on the way down all but the first may be of bfloat16 numbers (``engine/half.py``), and are timed as such.
An output that couples its units (argmax) has no cavity, so that its layer costs every algorithm what it costs MF. What
an algorithm computes beside this, looks at the series included, is not a product it needs: it lowers the share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch

from cavity.engine.half import half_pays

Product = Callable[[], torch.Tensor]


class LayerProducts(NamedTuple):
    """Width K and fan-in N of a layer, and how many products of each kind it needs, of those on the way down
    some in half precision."""

    outputs: int
    inputs: int
    up: int
    down: int
    weights: int
    half: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """Products of each kind in full precision, and in half."""
        down_half = min(self.half, self.down)
        return self.up, self.down - down_half, self.weights - self.half, 0, down_half, self.half


class Corrections(NamedTuple):
    """How many products beyond those of mean field each direction takes, and whether in half precision."""

    order: int = 0
    half: bool = False


def needed(sizes: Sequence[int], corrections: Sequence[Corrections], variances: bool) -> list[LayerProducts]:
    """The products of one step on a network of ``sizes``, with the corrections of each layer, and with ``variances`` a
    product more on the way up, as message passing needs."""
    layers = []
    for number, (inputs, outputs, (order, half)) in enumerate(zip(sizes, sizes[1:], corrections, strict=False)):
        down = 0 if number == 0 else order + 1
        layers.append(LayerProducts(outputs, inputs, 1 + variances, down, order + 1, order if half else 0))
    return layers


def operations(layers: Sequence[LayerProducts], batch_size: int) -> int:
    """Floating-point operations of all products."""
    return sum(2 * batch_size * layer.outputs * layer.inputs * sum(layer.counts) for layer in layers)


def wait(device: torch.device) -> None:
    """Until all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class BareProducts:
    """The products of every layer and kind on random matrices, in full precision and, where that is faster, in half;
    and the best time that each has taken so far.

    Algorithms differ only in how many of each they need, so one clock serves them all, whatever series they use.
    """

    def __init__(self, sizes: Sequence[int], batch_size: int, device: torch.device) -> None:
        self.device = device
        self.products: list[tuple[Product, ...]] = []
        for inputs, outputs in pairwise(sizes):
            x, g = torch.randn(batch_size, inputs, device=device), torch.randn(batch_size, outputs, device=device)
            w = torch.randn(outputs, inputs, device=device)
            kinds = [(x, w.T), (g, w), (g.T, x)]
            if half_pays(x, batch_size * w.numel()):
                kinds += [(a.bfloat16(), b.bfloat16()) for a, b in kinds]
            self.products.append(tuple(partial(torch.mm, a, b) for a, b in kinds))
        self.best = [[math.inf for _ in kinds] for kinds in self.products]

    def turn(self, repeats: int) -> float:
        """Time each product ``repeats`` times; returns the seconds of one of each."""
        total = 0.0
        for best, kinds in zip(self.best, self.products, strict=True):
            for kind, product in enumerate(kinds):
                product()
                wait(self.device)
                started = time.perf_counter()
                for _ in range(repeats):
                    product()
                wait(self.device)
                seconds = (time.perf_counter() - started) / repeats
                best[kind] = min(best[kind], seconds)
                total += seconds
        return total

    def seconds(self, layers: Sequence[LayerProducts]) -> float:
        """The least time that the products of these layers take."""
        pairs = zip((layer.counts for layer in layers), self.best, strict=True)
        return sum(n * bests[kind] for row, bests in pairs for kind, n in enumerate(row) if n)
