"""BP, BPI, MF and AMP on an explicit factor graph, with a Python loop over every edge.

A layer is a list of factors, one for each output unit k (and sample n); its edges name an input unit and a
weight. Dense, masked, biased and convolutional layers differ in their edges only. The four algorithms
differ in the messages on an edge: the weight's mean m_ki->n, the input's mean xhat_in->k and the slope
g_kn->i. Given these three, all of them share

    omega_kn = sum_i m_ki->n xhat_in->k      B_in = sum_k m_ki->n g_kn->i      H_ki = sum_n xhat_in->k g_kn->i

Arrays are (samples, units) for units, (rows, columns) for weights, and (samples, output units, columns) for
edges: a factor uses each weight column at most once, so (n, k, column) names an edge.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import channels
from .channels import Unit

ALGORITHMS = ("bp", "bpi", "mf", "amp")
SMALLEST_VARIANCE = float(np.finfo(np.float64).eps)


class Edge(NamedTuple):
    """One term w x of a preactivation; input None is the constant 1 that carries a bias."""

    input: int | None
    row: int
    column: int


class Graph(NamedTuple):
    """The factors of a layer: edges[k] for each output unit; alive (rows, columns) is False where masked."""

    inputs: int
    edges: list[list[Edge]]
    alive: np.ndarray


@dataclass
class Layer:
    """Weights of one layer: natural parameters, current moments, all (rows, columns), and how to update them.

    focusing is None or (y, gamma), binary weights only, and then replaces reinforcement. With threshold the last
    column holds Gaussian thresholds, whatever the other weights are; nothing reinforces them.
    """

    graph: Graph
    prior: str
    field: np.ndarray
    precision: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    rho: float = 1.0
    damping: float = 0.0
    reinforcement: float = 0.0
    focusing: tuple[float, float] | None = None
    threshold: bool = False

    def prior_of(self, column: int) -> str:
        return "gaussian" if self.is_threshold(column) else self.prior

    def is_threshold(self, column: int) -> bool:
        return self.threshold and column == self.graph.alive.shape[1] - 1

    def __post_init__(self) -> None:
        if self.focusing is not None and self.prior != "binary":
            raise ValueError(f"focusing needs prior 'binary', not {self.prior!r}")
        for name in ("field", "precision", "mean", "variance"):
            shape = np.shape(getattr(self, name))
            if shape != self.graph.alive.shape:
                raise ValueError(f"{name} has shape {shape}, the graph's weights {self.graph.alive.shape}")


# ------------------------------------------------------------------------------------------------ graphs


def _alive(rows: int, columns: int, bias: bool, mask: np.ndarray | None) -> np.ndarray:
    """The mask (True: the weight exists) with the bias column, which a mask without it leaves alive."""
    alive = np.ones((rows, columns + bias), dtype=bool)
    if mask is not None:
        alive[:, : np.shape(mask)[1]] = mask
    return alive


def dense_edges(outputs: int, inputs: int, bias: bool = False, mask: np.ndarray | None = None) -> Graph:
    """Every output sees every input, through weight (k, i); the bias is the last column."""
    alive = _alive(outputs, inputs, bias, mask)
    sources = [*range(inputs), *([None] if bias else [])]
    edges = [[Edge(i, k, c) for c, i in enumerate(sources) if alive[k, c]] for k in range(outputs)]
    return Graph(inputs, edges, alive)


def conv_edges(
    in_channels: int,
    height: int,
    width: int,
    out_channels: int,
    kernel: int | tuple[int, int],
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    bias: bool = False,
    mask: np.ndarray | None = None,
) -> Graph:
    """Output unit (channel, row, column) sees a window of inputs; padding has no edge.

    Inputs, outputs and the columns of the weights are all numbered (channel, row, column); the bias is last.
    """
    (kh, kw), (sh, sw), (ph, pw) = (v if isinstance(v, tuple) else (v, v) for v in (kernel, stride, padding))
    out_height, out_width = (height + 2 * ph - kh) // sh + 1, (width + 2 * pw - kw) // sw + 1
    alive = _alive(out_channels, in_channels * kh * kw, bias, mask)
    edges = []
    for channel, top, left in itertools.product(range(out_channels), range(out_height), range(out_width)):
        unit = []
        for column, (c, a, b) in enumerate(itertools.product(range(in_channels), range(kh), range(kw))):
            row, col = top * sh + a - ph, left * sw + b - pw
            if alive[channel, column] and 0 <= row < height and 0 <= col < width:
                unit.append(Edge((c * height + row) * width + col, channel, column))
        if bias and alive[channel, -1]:
            unit.append(Edge(None, channel, alive.shape[1] - 1))
        edges.append(unit)
    return Graph(in_channels * height * width, edges, alive)


def with_threshold(graph: Graph) -> Graph:
    """The same with one more column, whose weight multiplies the constant input of every unit of its row."""
    rows, columns = graph.alive.shape
    shared = len(graph.edges) // rows
    edges = [[*unit, Edge(None, number // shared, columns)] for number, unit in enumerate(graph.edges)]
    return Graph(graph.inputs, edges, np.column_stack([graph.alive, np.ones(rows, dtype=bool)]))


# ------------------------------------------------------------------------------------------- one mini-batch

Messages = dict[str, np.ndarray]


def run_minibatch(layers, activations, output, x, y, algorithm, inner_iterations):
    """One mini-batch of message passing; `layers` are left as they were.

    activations: one a hidden layer, 'sign' | 'relu' | 'identity' | ('noisy_sign', variance).
    output: 'label' | ('noisy_label', variance) | ('gaussian', variance) | 'argmax-pairwise' | 'argmax-exact'
    | ('argmax-sampled', epsilon), epsilon (draws,), (samples, draws) or (iterations, samples, draws).
    x: (samples, inputs). y: (samples, outputs) numbers, or (samples,) classes for argmax.

    Returns a list over inner iterations of {message name: list over layers of arrays}:
    - omega, V, g, Gamma of the layer's outputs; xhat, Delta, B, A of its inputs; (samples, units);
    - m, sigma: the weights' moments this iteration used; H, G: what it sent them; field, precision, mean,
      variance: what they became; all (rows, columns);
    - m_cavity, xhat_cavity, omega_cavity, g_cavity: what the algorithm put on the edges (true cavities for
      bp, its stand-ins for the others); for bp alone B_cavity, H_cavity and next_m_cavity, the m_cavity of
      the iteration to come; (samples, output units, columns), 0 without an edge.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {ALGORITHMS}, not {algorithm!r}")
    x = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    old = [_before_first_iteration(layer, len(x)) for layer in layers]
    history = []
    for tau in range(inner_iterations):
        now: list[Messages] = []
        for depth, layer in enumerate(layers):
            function = channels.activation(activations[depth - 1]) if depth else None
            below = now[depth - 1] if depth else {"xhat": x}
            now.append(_forward(layer, function, below, old[depth], algorithm))
        for depth in reversed(range(len(layers))):
            if depth == len(layers) - 1:
                _output_slopes(layers[depth], output, y, now[depth], algorithm, tau)
            else:
                function = channels.activation(activations[depth])
                _hidden_slopes(layers[depth], function, now[depth], now[depth + 1], algorithm)
            _backward(layers[depth], now[depth], algorithm)
            _update_weights(layers[depth], old[depth], now[depth])
            if algorithm == "bp":
                _next_cavity_means(layers[depth], now[depth])
        history.append({name: [messages[name] for messages in now] for name in now[0]})
        old = now
    return history


def _before_first_iteration(layer: Layer, samples: int) -> Messages:
    """Iteration 0: stored weights, all messages 0, each cavity mean the stored mean."""
    graph = layer.graph
    units, inputs = np.zeros((samples, len(graph.edges))), np.zeros((samples, graph.inputs))
    edges = np.zeros((samples, len(graph.edges), graph.alive.shape[1]))
    start = {"B": inputs, "A": inputs, "xhat": inputs, "g": units, "B_cavity": edges}
    for name in ("field", "precision", "mean", "variance"):
        start[name] = np.where(graph.alive, getattr(layer, name), 0.0)
    start["m"] = start["mean"]
    start["next_m_cavity"] = edges.copy()
    for n, k, edge in _edges(graph, samples):
        start["next_m_cavity"][n, k, edge.column] = start["mean"][edge.row, edge.column]
    return start


def _edges(graph: Graph, samples: int):
    """Every (sample, output unit, edge)."""
    for n in range(samples):
        for k, edges in enumerate(graph.edges):
            for edge in edges:
                yield n, k, edge


def _at(values: np.ndarray, n: int, edge: Edge, constant: float) -> float:
    """The value of the edge's input unit, or that of the constant input."""
    return constant if edge.input is None else values[n, edge.input]


def _forward(layer: Layer, function, below: Messages, old: Messages, algorithm: str) -> Messages:
    """Moments of the inputs, then omega and V of the outputs. function None: the inputs are data."""
    graph = layer.graph
    samples = len(below["xhat"])
    m, sigma = old["mean"], old["variance"]
    xhat, Delta = np.zeros((samples, graph.inputs)), np.zeros((samples, graph.inputs))

    def moments(n: int, i: int, B: float) -> tuple[float, float]:
        if function is None:
            return below["xhat"][n, i], 0.0
        unit: Unit = function(B, old["A"][n, i], below["omega"][n, i], below["V"][n, i])
        return unit.xhat, unit.Delta

    for n in range(samples):
        for i in range(graph.inputs):
            xhat[n, i], Delta[n, i] = moments(n, i, old["B"][n, i])

    shape = (samples, len(graph.edges), graph.alive.shape[1])
    m_cavity, xhat_cavity = np.zeros(shape), np.zeros(shape)
    omega, V = np.zeros(shape[:2]), np.zeros(shape[:2])
    for n, k, edge in _edges(graph, samples):
        w, e = (edge.row, edge.column), (n, k, edge.column)
        x_in, d_in = _at(xhat, n, edge, 1.0), _at(Delta, n, edge, 0.0)
        if algorithm == "bp":
            m_cavity[e] = old["next_m_cavity"][e]
            xhat_cavity[e] = 1.0 if edge.input is None else moments(n, edge.input, old["B_cavity"][e])[0]
        elif algorithm == "amp":
            # First order in the previous slope, which is 0 in the first iteration.
            m_cavity[e] = m[w] - _at(old["xhat"], n, edge, 1.0) * old["g"][n, k] * sigma[w]
            xhat_cavity[e] = x_in - old["m"][w] * old["g"][n, k] * d_in
        else:
            m_cavity[e], xhat_cavity[e] = m[w], x_in
        omega[n, k] += m_cavity[e] * xhat_cavity[e]
        V[n, k] += m[w] ** 2 * d_in + sigma[w] * x_in**2 + sigma[w] * d_in
    return {
        "m": m, "sigma": sigma, "xhat": xhat, "Delta": Delta, "omega": omega,
        "V": np.maximum(V, SMALLEST_VARIANCE), "m_cavity": m_cavity, "xhat_cavity": xhat_cavity,
    }  # fmt: skip


def _slopes(layer: Layer, now: Messages, algorithm: str, slope) -> None:
    """g, Gamma, omega_cavity and g_cavity of an elementwise channel slope(n, k, omega) -> (g, Gamma)."""
    samples, units = now["omega"].shape
    g, Gamma = np.zeros((samples, units)), np.zeros((samples, units))
    for n in range(samples):
        for k in range(units):
            g[n, k], Gamma[n, k] = slope(n, k, now["omega"][n, k])
    omega_cavity, g_cavity = np.zeros_like(now["m_cavity"]), np.zeros_like(now["m_cavity"])
    for n, k, edge in _edges(layer.graph, samples):
        e = (n, k, edge.column)
        omega_cavity[e] = now["omega"][n, k]
        if algorithm in ("bp", "bpi"):
            omega_cavity[e] -= now["m_cavity"][e] * now["xhat_cavity"][e]
            g_cavity[e] = slope(n, k, omega_cavity[e])[0]
        elif algorithm == "amp":
            m, x_in = now["m"][edge.row, edge.column], _at(now["xhat"], n, edge, 1.0)
            g_cavity[e] = g[n, k] + m * x_in * Gamma[n, k]
        else:
            g_cavity[e] = g[n, k]
    now.update(g=g, Gamma=Gamma, omega_cavity=omega_cavity, g_cavity=g_cavity)


def _hidden_slopes(layer: Layer, function, now: Messages, above: Messages, algorithm: str) -> None:
    """The slopes of an activation under the fields B, A that the layer above has just sent."""

    def slope(n: int, k: int, omega: float) -> tuple[float, float]:
        unit: Unit = function(above["B"][n, k], above["A"][n, k], omega, now["V"][n, k])
        return unit.g, unit.Gamma

    _slopes(layer, now, algorithm, slope)


def _output_slopes(layer: Layer, output, y, now: Messages, algorithm: str, tau: int) -> None:
    """The slopes of the output; argmax couples the units of a sample, and its slopes have no cavities."""
    name, parameter = output if isinstance(output, tuple) else (output, None)
    samples, units = now["omega"].shape
    if not name.startswith("argmax"):
        y = np.asarray(y, dtype=np.float64).reshape(samples, units)

        def slope(n: int, k: int, omega: float) -> tuple[float, float]:
            V = now["V"][n, k]
            if name == "gaussian":
                return channels.gaussian(y[n, k], omega, V, parameter)
            if name not in ("label", "noisy_label"):
                raise ValueError(f"unknown output {name!r}")
            return channels.label(y[n, k], omega, V + (parameter or 0.0))

        _slopes(layer, now, algorithm, slope)
        return

    per_sample = []
    for n in range(samples):
        arguments = (int(y[n]), now["omega"][n], now["V"][n])
        if name == "argmax-pairwise":
            per_sample.append(channels.argmax_pairwise(*arguments))
        elif name == "argmax-exact":
            per_sample.append(channels.argmax_exact(*arguments))
        elif name == "argmax-sampled":
            per_sample.append(channels.argmax_sampled(*arguments, _draws(parameter, tau, n)))
        else:
            raise ValueError(f"unknown output {name!r}")
    g, Gamma = (np.array(values) for values in zip(*per_sample, strict=True))
    omega_cavity, g_cavity = np.zeros_like(now["m_cavity"]), np.zeros_like(now["m_cavity"])
    for n, k, edge in _edges(layer.graph, samples):
        omega_cavity[n, k, edge.column] = now["omega"][n, k]
        g_cavity[n, k, edge.column] = g[n, k]
    now.update(g=g, Gamma=Gamma, omega_cavity=omega_cavity, g_cavity=g_cavity)


def _draws(epsilon: np.ndarray, tau: int, n: int) -> np.ndarray:
    """The draws of one iteration and sample, where epsilon may be common to iterations, or to samples too."""
    epsilon = epsilon[tau] if np.ndim(epsilon) == 3 else epsilon
    return epsilon[n] if np.ndim(epsilon) == 2 else epsilon


def _backward(layer: Layer, now: Messages, algorithm: str) -> None:
    """Fields on the inputs (B, A) and on the weights (H, G); A and G take the non-cavity m, xhat and g."""
    graph = layer.graph
    samples = len(now["omega"])
    B, A = np.zeros((samples, graph.inputs)), np.zeros((samples, graph.inputs))
    H, G = np.zeros(graph.alive.shape), np.zeros(graph.alive.shape)
    for n, k, edge in _edges(graph, samples):
        w, e = (edge.row, edge.column), (n, k, edge.column)
        m, sigma, g, Gamma = now["m"][w], now["sigma"][w], now["g"][n, k], now["Gamma"][n, k]
        x_in, d_in = _at(now["xhat"], n, edge, 1.0), _at(now["Delta"], n, edge, 0.0)
        H[w] += now["xhat_cavity"][e] * now["g_cavity"][e]
        G[w] += (x_in**2 + d_in) * Gamma - d_in * g**2
        if edge.input is not None:
            B[n, edge.input] += now["m_cavity"][e] * now["g_cavity"][e]
            A[n, edge.input] += (m**2 + sigma) * Gamma - sigma * g**2
    now.update(B=B, A=A, H=H, G=G)
    if algorithm == "bp":
        B_cavity, H_cavity = np.zeros_like(now["m_cavity"]), np.zeros_like(now["m_cavity"])
        for n, k, edge in _edges(graph, samples):
            e = (n, k, edge.column)
            H_cavity[e] = H[edge.row, edge.column] - now["xhat_cavity"][e] * now["g_cavity"][e]
            if edge.input is not None:
                B_cavity[e] = B[n, edge.input] - now["m_cavity"][e] * now["g_cavity"][e]
        now.update(B_cavity=B_cavity, H_cavity=H_cavity)


def _update_weights(layer: Layer, old: Messages, now: Messages) -> None:
    """Fields after the iteration and damped moments.

    Binary and ternary damp the distribution, so the second moment mixes as the mean does; a Gaussian damps
    its mean only.
    """
    alpha = layer.damping
    field, precision, mean, variance = (np.zeros(layer.graph.alive.shape) for _ in range(4))
    for w in zip(*np.nonzero(layer.graph.alive), strict=True):
        field[w] = layer.rho * layer.field[w] + now["H"][w]
        precision[w] = layer.rho * layer.precision[w] + now["G"][w]
        prior = layer.prior_of(w[1])
        if layer.is_threshold(w[1]):
            pass
        elif layer.focusing is not None:
            field[w] = channels.focused(field[w], *layer.focusing)
        else:
            field[w] += layer.reinforcement * old["field"][w]
            precision[w] += layer.reinforcement * old["precision"][w]
        new_mean, new_variance = channels.weight_moments(prior, field[w], precision[w])
        mean[w] = alpha * old["mean"][w] + (1 - alpha) * new_mean
        if prior == "binary":
            variance[w] = 1 - mean[w] ** 2
        elif prior == "gaussian":
            variance[w] = new_variance
        else:
            old_square, new_square = old["variance"][w] + old["mean"][w] ** 2, new_variance + new_mean**2
            variance[w] = alpha * old_square + (1 - alpha) * new_square - mean[w] ** 2
    now.update(field=field, precision=precision, mean=mean, variance=variance)


def _next_cavity_means(layer: Layer, now: Messages) -> None:
    """BP's m_ki->n of the next iteration: the family's mean without this factor's own message, damped."""
    next_m_cavity = np.zeros_like(now["m_cavity"])
    for n, k, edge in _edges(layer.graph, len(now["omega"])):
        w, e = (edge.row, edge.column), (n, k, edge.column)
        without = now["field"][w] - now["xhat_cavity"][e] * now["g_cavity"][e]
        mean, _ = channels.weight_moments(layer.prior_of(edge.column), without, now["precision"][w])
        next_m_cavity[e] = layer.damping * now["m_cavity"][e] + (1 - layer.damping) * mean
    now["next_m_cavity"] = next_m_cavity
