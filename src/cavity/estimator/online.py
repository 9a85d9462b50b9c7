"""What river's classifier and regressor share: a network that grows with the features of a stream, one sample a step.

Features are standardised by the mean and variance of what has been seen so far. One that is absent counts as its mean:
it says nothing to the units, and its weights learn nothing from the sample.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cavity.core.channels import Output
from cavity.core.growth import with_inputs, with_outputs
from cavity.core.network import Network, mlp
from cavity.engine.single import SingleSweep
from cavity.engine.single.sweep import is_plain
from cavity.engine.single.units import Vector
from cavity.training.trainer import Trainer


class Running:
    """Mean and variance of each of some numbers, by Welford's rule; where memory is finite, of about the last samples
    of it."""

    def __init__(self, memory: float = math.inf) -> None:
        self.memory = memory
        self.count, self.mean, self.square = np.zeros(0), np.zeros(0), np.zeros(0)

    def widen(self, size: int) -> None:
        """Make room for more numbers, of which nothing is known."""
        more = np.zeros(size - len(self.count))
        self.count, self.mean, self.square = (np.append(a, more) for a in (self.count, self.mean, self.square))

    def add(self, values: Vector) -> None:
        """One sample; NaN where a number is absent."""
        there = np.isfinite(values)
        count = self.count + there
        gain = np.where(there, 1 / np.clip(count, 1, self.memory), 0.0)
        off = np.where(there, values - self.mean, 0.0)
        mean = self.mean + gain * off
        self.square = (1 - gain) * self.square + gain * off * np.where(there, values - mean, 0.0)
        self.count, self.mean = count, mean

    def scaled(self, values: Vector) -> Vector:
        """(values − mean)/deviation; 0 where a number is absent or has never varied."""
        deviation = np.sqrt(self.square)
        moved = np.where(np.isfinite(values), values - self.mean, 0.0)
        result: Vector = np.divide(moved, deviation, out=np.zeros_like(moved), where=deviation > 0)
        return result


class OnlineNetwork:
    """A network and all that a stream needs beside it. It pickles; what it can make again it leaves out."""

    def __init__(
        self,
        hidden: Sequence[int],
        weights: str,
        activation: str,
        algorithm: str,
        memory: float,
        output: Output | str,
        outputs: int,
        standardize: bool,
        seed: int,
    ) -> None:
        self.made_of = tuple(hidden), weights, activation, output
        self.algorithm, self.memory, self.outputs = algorithm, memory, outputs
        self.seed = seed
        #: The column of each feature.
        self.columns: dict[Hashable, int] = {}
        self.inputs = Running() if standardize else None
        self.net: Network | None = None
        self.steps = 0
        self._prepared: tuple[Trainer, SingleSweep | None, list[Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": None}

    def learn(self, x: Mapping[Hashable, Any], y: int | float) -> tuple[Vector, Vector]:
        """One step on features x with class number or value y; the (ω, V) of the outputs before it."""
        values = self.widen(x)
        if self.inputs is not None:
            self.inputs.add(values)
        row = self._row(values)
        trainer, single, rules = self.prepared()
        self.steps += 1
        if single is not None:
            target: int | Vector = int(y) if self.output_is_class else np.array([float(y)])
            omega, V = single.step(row, target, rules)
            return omega, V
        target_of = torch.tensor([int(y)]) if self.output_is_class else torch.tensor([float(y)])
        info = trainer.step(torch.from_numpy(row).unsqueeze(0), target_of)
        return info.output.mean[0].numpy(), info.output.variance[0].numpy()

    def probabilities(self, x: Mapping[Hashable, Any]) -> Vector:
        """P of each output unit for features x; those that are unknown are ignored."""
        assert self.net is not None
        row = self._row(self._values(x))
        _, single, _ = self.prepared()
        if single is not None:
            return single.probabilities(row)
        p = self.net.predict_proba(torch.from_numpy(row).unsqueeze(0))[0].double()
        shares: Vector = (p / p.sum()).numpy()
        return shares

    def preactivations(self, x: Mapping[Hashable, Any]) -> tuple[Vector, Vector]:
        """(ω, V) of the outputs for features x."""
        assert self.net is not None
        row = self._row(self._values(x))
        _, single, _ = self.prepared()
        if single is not None:
            return single.preactivations(row)
        omega, V = self.net.predict_moments(torch.from_numpy(row).unsqueeze(0))
        return omega[0].numpy(), V[0].numpy()

    @property
    def output_is_class(self) -> bool:
        return isinstance(self.made_of[3], str)

    def prepared(self) -> tuple[Trainer, SingleSweep | None, list[Any]]:
        """A trainer of the present network, the same in NumPy if it can be had, and the numbers of a step."""
        assert self.net is not None
        if self._prepared is None:
            trainer = Trainer(self.net, self.algorithm, memory=self.memory, compile=False, seed=self.seed)
            rules = trainer.rules(trainer.place(1))
            single = SingleSweep.of(self.net, trainer.method.algorithm) if all(map(is_plain, rules)) else None
            self._prepared = trainer, single, rules
        return self._prepared

    def widen(self, x: Mapping[Hashable, Any]) -> Vector:
        """Take the features of x that are new, and give its values in the order of the columns."""
        new = [name for name in x if name not in self.columns]
        if not new and self.net is not None:
            return self._values(x)
        # The order of a dict must not matter.
        for name in sorted(new, key=lambda name: (type(name).__name__, repr(name))):
            self.columns[name] = len(self.columns)
        try:
            values = self._values(x)
        except (TypeError, ValueError):
            for name in new:
                del self.columns[name]
            raise
        if self.inputs is not None:
            self.inputs.widen(len(self.columns))
        self._prepared = None
        if self.net is None:
            hidden, weights, activation, output = self.made_of
            self.net = mlp(
                max(1, len(self.columns)),
                hidden,
                self.outputs,
                weights=weights,
                activation=activation,
                output=output,
                seed=self.seed,
            )
            return values
        known = self.net.input_shape[0] if len(self.columns) > len(new) else 0
        kept = list(range(known)) if known else [0]
        fresh = max(1, len(self.columns)) - len(kept)
        self.net = with_inputs(self.net, [*kept, *[None] * fresh], seed=self.seed + self.steps)
        return values

    def more_outputs(self, outputs: int) -> None:
        """Give the network that many output units."""
        known, self.outputs = self.outputs, outputs
        if self.net is not None:
            rows = [*range(known), *[None] * (outputs - known)]
            self.net = with_outputs(self.net, rows, seed=self.seed + self.steps)
            self._prepared = None

    def _values(self, x: Mapping[Hashable, Any]) -> Vector:
        """x in the order of the columns, NaN where a feature is absent."""
        found = [x.get(name) for name in self.columns]
        try:
            values = np.array(found, dtype=np.float64)
        except (TypeError, ValueError):
            name, value = next((n, v) for n, v in x.items() if n in self.columns and not _is_number(v))
            raise TypeError(f"x[{name!r}] must be a number, got {value!r}: encode it first") from None
        absent = found.count(None)
        if len(found) - int(np.isfinite(values).sum()) != absent:
            name, value = next((n, v) for n, v in x.items() if n in self.columns and not math.isfinite(v))
            raise ValueError(f"x[{name!r}] must be finite, got {value!r}: leave out what is missing")
        return values

    def _row(self, values: Vector) -> NDArray[np.float32]:
        """Inputs of the network, in its type."""
        scaled = np.nan_to_num(values) if self.inputs is None else self.inputs.scaled(values)
        row: NDArray[np.float32] = scaled.astype(np.float32)
        return row if len(row) else np.zeros(1, np.float32)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
