"""One mini-batch of one sample: up, down, new weights (``core/sweep.py`` for vectors).

ω = m x̂,   V = m²Δ + σE[x²],   B = mᵀg,   h ← ρh + e·g x̂ᵀ,   m = tanh h,   σ = 1 − m²
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cavity.core.algorithms.base import Algorithm
from cavity.core.algorithms.mf import MF
from cavity.core.channels import ArgMax, GaussianOutput, Output
from cavity.core.couplings import Dense
from cavity.core.floors import FIELD_BOUND, VARIANCE_FLOOR
from cavity.core.layer import Layer
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.network import Network
from cavity.core.priors import Binary
from cavity.core.state import Rule
from cavity.engine.single import argmax
from cavity.engine.single.units import Answer, SingleUnits, Vector, single_units


class _Up(NamedTuple):
    """What the way up leaves at one layer: inputs x̂ and Δ (None: known), ω and V."""

    x: Vector
    delta: Vector | None
    omega: Vector
    V: Vector


@dataclass(frozen=True)
class SingleSweep:
    """Steps and predictions of one network, one sample at a time. The network holds the state, as ever."""

    layers: tuple[Layer, ...]
    units: tuple[SingleUnits, ...]
    output: Output

    @classmethod
    def of(cls, net: Network, algorithm: Algorithm) -> SingleSweep | None:
        """The same network and algorithm in NumPy; None where it has parts that are not written out here."""
        layers, units = net.weighted(), [single_units(activation) for activation in net.activations]
        plain = all(_is_plain(layer) for layer in layers) and net.front is None and not any(net.pools)
        quadrature = type(net.output) is ArgMax and net.output.method == "quadrature"
        known = quadrature or type(net.output) is GaussianOutput
        if not (type(algorithm) is MF and plain and known and all(units) and net.device.type == "cpu"):
            return None
        return cls(tuple(layers), tuple(part for part in units if part is not None), net.output)

    def step(self, x: Vector, y: int | Vector, rules: Sequence[Rule]) -> tuple[Vector, Vector]:
        """Learn one sample x (inputs,) with class y, or real values y (outputs,), and return the (ω, V) of the outputs
        before that. The rules must be plain ones: numbers ρ and e for each layer. FloatingPointError leaves the network
        as it was."""
        ups = self._up(x)
        last = ups[-1]
        answer = self._respond(y, last.omega, last.V)
        new: list[tuple[NDArray[np.floating], NDArray[np.floating]]] = []
        for number in range(len(ups) - 1, -1, -1):
            up, layer, rule = ups[number], self.layers[number], rules[number]
            m = layer.mean.numpy()
            below = None if number == 0 else self.units[number - 1]
            sent = None if below is None else _message(below, m, up.x, answer)
            new.append(_learnt(layer, rule, answer.gradient.astype(m.dtype), up.x))
            if below is not None and sent is not None:
                answer = below.answer(*sent, ups[number - 1].omega, ups[number - 1].V)
        for number, (_, m) in enumerate(reversed(new)):
            if not np.isfinite(m).all():
                raise FloatingPointError(f"the field of layer {number} became non-finite")
        for layer, (h, m) in zip(self.layers, reversed(new), strict=True):
            moments = Moments(torch.from_numpy(m), torch.from_numpy(1 - m * m))
            layer.set_state(Fields(torch.from_numpy(h), None), moments)
        return last.omega, last.V

    def preactivations(self, x: Vector) -> tuple[Vector, Vector]:
        """ω and V of the outputs for inputs x (inputs,)."""
        last = self._up(x)[-1]
        if not (np.isfinite(last.omega).all() and np.isfinite(last.V).all()):
            raise FloatingPointError("the preactivations of the outputs are non-finite: the inputs are too large")
        return last.omega, last.V

    def probabilities(self, x: Vector) -> Vector:
        """P of each class for inputs x (inputs,)."""
        omega, V = (part.astype(np.float64) for part in self.preactivations(x))
        found = argmax.probabilities(omega, V)
        if found is not None:
            return found
        pre = (torch.from_numpy(part).unsqueeze(0) for part in (omega, V))
        carefully: Vector = self.output.probabilities(Preactivation(*pre))[0].numpy()
        return carefully

    # OpenBLAS may raise the flag for lanes of a register that no number is in (numpy/numpy#24067): numbers are looked
    # at instead.
    @np.errstate(invalid="ignore")
    def _up(self, x: Vector) -> list[_Up]:
        ups: list[_Up] = []
        delta: Vector | None = None
        square = x * x
        for number, layer in enumerate(self.layers):
            m, sigma = layer.mean.numpy(), layer.variance.numpy()
            constant = None if number == 0 else self.units[number - 1].second_moment
            V = sigma.sum(axis=1) * constant if constant is not None else sigma @ square
            if delta is not None:
                V = V + (m * m) @ delta
            # ``core.variances.variance_floor``
            mean_square = float(square.sum()) / len(square) if constant is None else constant
            floor = max(float(np.finfo(m.dtype).eps) * m.shape[1] * mean_square, VARIANCE_FLOOR)
            ups.append(_Up(x, delta, m @ x, np.maximum(V, floor)))
            if number < len(self.units):
                x, delta = (part.astype(m.dtype) for part in self.units[number].moments(*ups[-1][2:]))
                square = x * x + delta
        return ups

    def _respond(self, y: int | Vector, omega: Vector, V: Vector) -> Answer:
        omega, V = omega.astype(np.float64), V.astype(np.float64)
        if isinstance(self.output, ArgMax):
            assert isinstance(y, int)
            return argmax.respond(y, omega, V)
        spread = V + self.output.noise
        return Answer((y - omega) / spread, 1 / spread)


@np.errstate(invalid="ignore")
def _message(below: SingleUnits, m: Vector, x: Vector, answer: Answer) -> tuple[Vector, Vector | None]:
    """(B, A) on the inputs: B = mᵀg, and where A matters A = (m²)ᵀΓ⁺ and B = mᵀg + x̂A (``core/fisher.py``)."""
    B = m.T @ answer.gradient.astype(m.dtype)
    if not below.uses_precision:
        return B, None
    A = (m * m).T @ np.maximum(answer.curvature, 0).astype(m.dtype)
    return B + x * A, A


def _learnt(layer: Layer, rule: Rule, g: Vector, x: Vector) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """h ← ρh + e·g x̂ᵀ within the bound, and m = tanh h."""
    h = layer.field.numpy() * g.dtype.type(float(rule.rho))
    h += np.multiply.outer(g * g.dtype.type(float(rule.rate)), x)
    if float(np.abs(h).max()) > FIELD_BOUND:
        np.clip(h, -FIELD_BOUND, FIELD_BOUND, out=h)
    return h, np.tanh(h)


def is_plain(rule: Rule) -> bool:
    """Whether the numbers of an update are ρ and e alone."""
    others = rule.damping, rule.reinforcement, rule.relative
    return not any(others) and rule.horizon is None and rule.focusing is None and rule.counts is None


def _is_plain(layer: Layer) -> bool:
    dense = isinstance(layer.coupling, Dense) and not layer.coupling.bias
    alone = layer.mask is None and layer.threshold is None and layer.kept_mean is None
    return dense and alone and isinstance(layer.prior, Binary)
