"""One input that is always 1: the coupling of thresholds, which add b_k to every preactivation of unit or channel k."""

from __future__ import annotations

from torch import Tensor

from cavity.core.couplings.base import Coupling


class Constant(Coupling):
    """Weights (outputs, 1) beside those of another coupling: inputs are (samples, 1), preactivations are its own."""

    def __init__(self, beside: Coupling) -> None:
        self.beside = beside
        self.bias = False
        self.outputs, self.columns = beside.outputs, 1
        self.input_shape, self.output_shape = (1,), beside.output_shape

    def __repr__(self) -> str:
        return f"Constant({self.beside!r})"

    def apply(self, w: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        z = x * w.T
        return z.reshape(*z.shape, *(1 for _ in self.output_shape[1:])).expand(-1, *self.output_shape)

    def back_to_inputs(self, w: Tensor, g: Tensor) -> Tensor:
        return self._over_positions(g) @ w

    def back_to_weights(self, g: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        return self.counted(self._over_positions(g)).T @ x

    def _over_positions(self, g: Tensor) -> Tensor:
        """Σ over the positions of each unit, (samples, outputs)."""
        return g if g.ndim == 2 else g.flatten(2).sum(dim=2)

    def gather(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.positions, dim=0)

    def scatter(self, rows: Tensor) -> Tensor:
        return rows.reshape(-1, self.positions).sum(dim=1, keepdim=True)

    def factors(self, z: Tensor) -> Tensor:
        return self.beside.factors(z)

    def preactivations(self, rows: Tensor) -> Tensor:
        return self.beside.preactivations(rows)
