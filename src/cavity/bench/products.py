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

from collections.abc import Sequence
from typing import NamedTuple

import torch

from cavity.bench.contenders import BINARYNET


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


class BareProducts:
    """Calling it runs the products once, on random matrices, and nothing else."""

    def __init__(self, layers: Sequence[LayerProducts], batch_size: int, device: torch.device) -> None:
        self.layers = layers
        self.x = [torch.randn(batch_size, layer.inputs, device=device) for layer in layers]
        self.g = [torch.randn(batch_size, layer.outputs, device=device) for layer in layers]
        self.w = [torch.randn(layer.outputs, layer.inputs, device=device) for layer in layers]

    def __call__(self) -> None:
        for layer, x, g, w in zip(self.layers, self.x, self.g, self.w, strict=True):
            for _ in range(layer.up):
                torch.mm(x, w.T)
            for _ in range(layer.down):
                torch.mm(g, w)
            for _ in range(layer.weights):
                torch.mm(g.T, x)
