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

from cavity.bench.contenders import BINARYNET

Product = Callable[[], torch.Tensor]


class LayerProducts(NamedTuple):
    """Width K and fan-in N of a layer, and how many products of each kind it needs."""

    outputs: int
    inputs: int
    up: int
    down: int
    weights: int

    @property
    def total(self) -> int:
        return self.up + self.down + self.weights


def needed(algorithm: str, sizes: Sequence[int], orders: Sequence[int]) -> list[LayerProducts]:
    """The products of one step on a network of ``sizes``, with series of these ``orders``, one for each layer."""
    layers = []
    for number, (inputs, outputs, order) in enumerate(zip(sizes, sizes[1:], orders, strict=False)):
        coupled = number == len(sizes) - 2 and sizes[-1] > 1
        terms = 1 if coupled else {"amp": 2, "bpi": order + 1, "bp": order + 1}.get(algorithm, 1)
        up = 1 if algorithm in BINARYNET else 2
        layers.append(LayerProducts(outputs, inputs, up, 0 if number == 0 else terms, terms))
    return layers


def operations(layers: Sequence[LayerProducts], batch_size: int) -> int:
    """Floating-point operations of all products."""
    return sum(2 * batch_size * layer.outputs * layer.inputs * layer.total for layer in layers)


def wait(device: torch.device) -> None:
    """Until all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class BareProducts:
    """The products of every layer and kind on random matrices, and the best time that each has taken so far.

    Algorithms differ only in how many of each they need, so one clock serves them all, whatever series they use.
    """

    def __init__(self, sizes: Sequence[int], batch_size: int, device: torch.device) -> None:
        self.device = device
        self.products: list[tuple[Product, ...]] = []
        for inputs, outputs in pairwise(sizes):
            x, g = torch.randn(batch_size, inputs, device=device), torch.randn(batch_size, outputs, device=device)
            w = torch.randn(outputs, inputs, device=device)
            self.products.append((partial(torch.mm, x, w.T), partial(torch.mm, g, w), partial(torch.mm, g.T, x)))
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
        """The least time of so many products of each kind."""
        counts = [(layer.up, layer.down, layer.weights) for layer in layers]
        pairs = zip(counts, self.best, strict=True)
        return sum(n * best for row, bests in pairs for n, best in zip(row, bests, strict=True))
