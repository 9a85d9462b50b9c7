"""One problem, two engines: build the same layers for the library and for the oracle, and collect every message of
both.

The library runs through ``Trainer.step`` itself; a ``Recorder`` stands between the sweep and the algorithm and
writes down what they tell each other. Messages are numbered as the oracle numbers them: arrays (samples, units) or
(rows, columns).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import cavity
from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.couplings import Constant
from cavity.core.messages import Fields, Moments
from cavity.core.state import LayerState
from cavity.core.variances import input_precision, weight_precision

from .channels import weight_moments
from .message_passing import Graph, Layer, conv_edges, dense_edges, run_minibatch

#: What is compared after each iteration, in the oracle's names.
UNITS = ("omega", "V", "xhat", "Delta", "g", "Gamma", "B", "A")
WEIGHTS = ("H", "G", "field", "precision", "mean", "variance")

History = list[dict[str, list[np.ndarray]]]


class Recorder(Algorithm):
    """An algorithm that behaves like ``inner`` and keeps what went through it."""

    name = "recorder"
    summary = "writes down what goes through another algorithm"

    def __init__(self, inner: Algorithm) -> None:
        self.inner = inner
        self.variance_floor = inner.variance_floor  # type: ignore[misc]
        self.states: list[Any] = []
        self.thresholds: list[Any] = []
        self.downs: list[dict[str, np.ndarray]] = []

    def numbers_held(self, couplings, samples, iterations):
        return self.inner.numbers_held(couplings, samples, iterations)

    def up(self, site, state, inputs, below):
        (self.thresholds if isinstance(site.coupling, Constant) else self.states).append(state)
        return self.inner.up(site, state, inputs, below)

    def down(self, site, state, up, factor, arithmetic, remember):
        result = self.inner.down(site, state, up, factor, arithmetic, remember)
        if isinstance(site.coupling, Constant):
            # Right after the other weights of its layer: one more column.
            sent = {"H": result.weights, "G": weight_precision(site, up.inputs, factor)}
            self.downs[-1] |= {name: np.hstack([self.downs[-1][name], sent[name].numpy()]) for name in sent}
            return result
        (x, delta), (omega, V), (g, gamma) = up.inputs, up.pre, factor.response
        found = {
            "omega": omega,
            "V": V.expand_as(omega),
            "xhat": x,
            "Delta": torch.zeros_like(x) if delta is None else delta,
            "g": g,
            "Gamma": gamma,
            "A": input_precision(site, state.moments, factor),
            "G": weight_precision(site, up.inputs, factor),
            "H": result.weights,
        }
        if site.below is not None:
            found["B"] = result.inputs
        self.downs.append(
            {name: (value if name in WEIGHTS else value.flatten(1)).numpy().copy() for name, value in found.items()}
        )
        return result


@dataclass
class Problem:
    """Layers for both engines and one mini-batch. Settings are one number per layer."""

    net: cavity.Network
    layers: list[Layer]
    activations: list[Any]
    output: Any
    x: np.ndarray
    y: np.ndarray
    algorithm: str
    inner_iterations: int
    seed: int

    def oracle(self) -> History:
        output = self.output
        if output == "argmax-sampled":
            generator = torch.Generator().manual_seed(self.seed)
            draws = [
                torch.randn((len(self.x), 1), generator=generator, dtype=torch.float64)
                for _ in range(self.inner_iterations)
            ]
            output = (output, torch.stack(draws).numpy())
        return run_minibatch(
            self.layers, self.activations, output, self.x, self.y, self.algorithm, self.inner_iterations
        )

    def library(self) -> tuple[History, float]:
        """The same history from ``Trainer.step``, and the fraction of clamped entries."""
        recorder = Recorder(ALGORITHMS[self.algorithm]())
        trainer = cavity.Trainer(
            self.net,
            recorder,
            rho=[layer.rho for layer in self.layers],
            damping=[layer.damping for layer in self.layers],
            reinforcement=[layer.reinforcement for layer in self.layers],
            focusing=self.layers[0].focusing,
            inner_iterations=self.inner_iterations,
            seed=self.seed,
        )
        info = trainer.step(
            torch.tensor(self.x).reshape(len(self.x), *self.net.input_shape),
            torch.tensor(self.y),
        )
        depth = len(self.layers)
        after = [*recorder.states[depth:], *(layer.state for layer in self.net.weighted())]
        history: History = []
        for start in range(0, depth * self.inner_iterations, depth):
            downs = recorder.downs[start : start + depth][::-1]
            history.append(
                {name: [down[name] for down in downs if name in down] for name in (*UNITS, "H", "G")}
                | _state(after[start : start + depth])
            )
        return history, float(info.clamped)


def _state(layers: list[LayerState]) -> dict[str, list[np.ndarray]]:
    names = ("field", "precision", "mean", "variance")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for layer in layers:
        found = [_arrays(part) for part in (layer, layer.threshold) if part is not None]
        for name, arrays in zip(names, zip(*found, strict=True), strict=True):
            parts[name].append(np.hstack(arrays))
    return parts


def _arrays(state: LayerState) -> list[np.ndarray]:
    (field, precision), (mean, variance) = state.natural, state.moments
    assert variance is not None
    return [
        np.full(tuple(field.shape), np.nan) if tensor is None else tensor.numpy()
        for tensor in (field, precision, mean, variance)
    ]


def coupling_and_graph(kind: str, sizes: tuple, bias: bool, mask: np.ndarray | None) -> tuple[cavity.Dense, Graph]:
    """A library coupling and the oracle's edges: ("dense", (inputs, outputs)) or ("conv", (image, outputs, kernel,
    …))."""
    if kind == "dense":
        inputs, outputs = sizes
        return cavity.Dense(inputs, outputs, bias=bias), dense_edges(outputs, inputs, bias, mask)
    image, outputs, kernel, stride, padding = sizes
    coupling = cavity.Conv2d(image, outputs, kernel, stride=stride, padding=padding, bias=bias)
    return coupling, conv_edges(*image, outputs, kernel, stride, padding, bias, mask)


def random_state(
    rng: np.random.Generator, prior: str, shape: tuple[int, int], alive: np.ndarray
) -> dict[str, np.ndarray]:
    """Natural parameters, and moments of another member of the family: a damped state is not the mean of its field."""

    def naturals() -> tuple[np.ndarray, np.ndarray]:
        field = rng.normal(0, 0.7, shape)
        if prior == "gaussian":
            precision = shape[1] * rng.uniform(0.8, 2.0, shape)
            return field * np.sqrt(precision), precision
        return field, rng.uniform(-0.5, 0.5, shape)

    field, precision = naturals()
    mean, variance = np.vectorize(weight_moments)(prior, *naturals())
    state = {"field": field, "precision": precision, "mean": mean, "variance": variance}
    return {name: np.where(alive, value, 0.0 if name != "precision" else value) for name, value in state.items()}


def random_threshold(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """A column of thresholds, likewise."""
    precision = rng.uniform(5.0, 10.0, (rows, 1))
    mean, other = rng.normal(0, 0.7, (2, rows, 1))
    return {"field": other * precision, "precision": precision, "mean": mean, "variance": 0.9 / precision}


def write_state(layer: cavity.Layer, state: dict[str, np.ndarray]) -> None:
    """Put the oracle's numbers into a library layer."""
    if layer.threshold is not None:
        write_state(layer.threshold, {name: value[:, -1:] for name, value in state.items()})
        state = {name: value[:, :-1] for name, value in state.items()}
    natural = Fields(
        torch.tensor(state["field"]),
        torch.tensor(state["precision"]) if layer.prior.uses_precision else None,
    )
    layer.set_state(natural, Moments(torch.tensor(state["mean"]), torch.tensor(state["variance"])))
