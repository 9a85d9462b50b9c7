"""The interface of a coupling.

Weights are (outputs, columns) with one column per input of a unit and, if there is a bias, a last column that
multiplies a constant input. Activations are (samples, *input_shape), preactivations (samples, *output_shape).

Message passing needs sums over the edges of each factor. For any functions w of the weights and x of the inputs, each
sum is one of three contractions:

    apply            z_kn = Σ_i w_ki x_in
    back_to_inputs   x_in = Σ_k w_ki g_kn
    back_to_weights  w_ki = Σ_n x_in g_kn

``constant`` is the value of x at the constant input: 1 for x̂ and its powers, 0 for the variance Δ. For values per
edge, ``gather`` lays the inputs out as one row per factor, (factors, columns), and ``scatter`` is its transpose. One
sample has several factors per unit when weights are shared over positions.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from numbers import Integral
from typing import Self

import torch
from torch import Tensor


class Coupling(ABC):
    """Connectivity only: it holds shapes, never weights."""

    bias: bool
    #: Number of units, or of output channels: the rows of the weights.
    outputs: int
    #: Inputs of one unit, including the constant input of the bias: the columns of the weights.
    columns: int
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    #: How often each sample counts in sums over samples, (samples,); None: once.
    counts: Tensor | None = None

    def counting(self, counts: Tensor) -> Self:
        """The same edges, where each sample counts that often in ``back_to_weights``: n times is as good as n copies
        of it, and what it is told about its own inputs stays that of one."""
        other = copy.copy(self)
        other.counts = counts
        return other

    def counted(self, g: Tensor) -> Tensor:
        """g of each sample (samples, …), or of each factor (factors, …), as often as it counts."""
        if self.counts is None:
            return g
        counts = self.counts.to(g.dtype)
        if len(g) != len(counts):
            counts = counts.repeat_interleave(self.positions)
        return g * counts.reshape(-1, *(1 for _ in g.shape[1:]))

    @property
    def positions(self) -> int:
        """Factors of one sample that share a weight."""
        return math.prod(self.output_shape[1:])

    @abstractmethod
    def apply(self, w: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        """Σ_i w_ki x_in: (outputs, columns), (samples, *input_shape) → (samples, *output_shape)."""

    def apply_to_constant(self, w: Tensor, value: float) -> Tensor:
        """``apply`` to one sample whose inputs are all ``value`` (the bias's is 1): (1, *output_shape)."""
        # Not a row sum: at the border of an image a unit sees fewer inputs.
        return self.apply(w, w.new_full((1, *self.input_shape), value))

    @abstractmethod
    def back_to_inputs(self, w: Tensor, g: Tensor) -> Tensor:
        """Σ_k w_ki g_kn: (outputs, columns), (samples, *output_shape) → (samples, *input_shape)."""

    @abstractmethod
    def back_to_weights(self, g: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        """Σ_n g_kn x_in: (samples, *output_shape), (samples, *input_shape) → (outputs, columns)."""

    @abstractmethod
    def gather(self, x: Tensor) -> Tensor:
        """(samples, *input_shape) → (factors, inputs of a unit), without the constant input; padding gives 0."""

    @abstractmethod
    def scatter(self, rows: Tensor) -> Tensor:
        """The transpose of gather: (factors, inputs of a unit) → (samples, *input_shape), summed."""

    @abstractmethod
    def factors(self, z: Tensor) -> Tensor:
        """(samples, *output_shape) → (factors, outputs)."""

    @abstractmethod
    def preactivations(self, rows: Tensor) -> Tensor:
        """The inverse of factors: (factors, outputs) → (samples, *output_shape)."""

    def with_constant(self, rows: Tensor, constant: float) -> Tensor:
        """Append the constant input to the last axis if there is a bias."""
        return torch.nn.functional.pad(rows, (0, 1), value=constant) if self.bias else rows

    def without_constant(self, rows: Tensor) -> Tensor:
        """Drop the constant input from the last axis if there is a bias."""
        return rows[..., :-1] if self.bias else rows


def check_sizes(**sizes: int) -> None:
    """Each keyword must be a positive integer."""
    for name, size in sizes.items():
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a positive integer, got {size!r}")
