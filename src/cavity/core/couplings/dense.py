"""Every unit sees every input."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.core.couplings.base import Coupling, check_sizes

#: Up to this many rows a product is faster with its result laid out column by column (by a quarter for 128 rows).
FEW_ROWS = 256


def laid_out(g: Tensor) -> Tensor:
    """g stored as products store their results, so that what is computed from them never changes its layout."""
    return g.T.contiguous().T if g.shape[0] <= FEW_ROWS else g


class Dense(Coupling):
    """A matrix of weights (outputs, inputs [+ 1]); inputs of any shape are flattened."""

    def __init__(self, inputs: int, outputs: int, bias: bool = False) -> None:
        check_sizes(inputs=inputs, outputs=outputs)
        self.bias = bias
        self.outputs = outputs
        self.columns = inputs + bias
        self.input_shape = (inputs,)
        self.output_shape = (outputs,)

    def __repr__(self) -> str:
        return f"Dense({math.prod(self.input_shape)}, {self.outputs}, bias={self.bias})"

    def apply(self, w: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        x, w_x = x.flatten(1), self.without_constant(w)
        z = (w_x @ x.T).T if x.shape[0] <= FEW_ROWS else x @ w_x.T
        if not self.bias or constant == 0:
            return z
        return z + (w[:, -1] if constant == 1 else constant * w[:, -1])

    def apply_to_constant(self, w: Tensor, value: float) -> Tensor:
        z = value * self.without_constant(w).sum(dim=1)
        return (z + w[:, -1] if self.bias else z).unsqueeze(0)

    def back_to_inputs(self, w: Tensor, g: Tensor) -> Tensor:
        g, w_x = laid_out(g), self.without_constant(w)
        return (w_x.T @ g.T).T if g.shape[0] <= FEW_ROWS else g @ w_x

    def back_to_weights(self, g: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        g = self.counted(g)
        fields = laid_out(g).T @ x.flatten(1)
        if not self.bias:
            return fields
        last = g.sum(dim=0, keepdim=True).T
        return torch.cat([fields, last if constant == 1 else constant * last], dim=1)

    def gather(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def scatter(self, rows: Tensor) -> Tensor:
        return rows

    def factors(self, z: Tensor) -> Tensor:
        return z

    def preactivations(self, rows: Tensor) -> Tensor:
        return rows
