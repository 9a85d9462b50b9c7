"""The library in float64 agrees with the loop-based oracle on every message of every iteration.

Every pair of options (prior × activation, mask × output, …) appears with each algorithm. The instances are drawn such
that no floor acts, as the oracle's own messages show: AMP's floor on V is a choice of the library's that the oracle
does not make.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import cavity
from cavity.core import channels
from cavity.core.algorithms import ALGORITHMS
from cavity.core.algorithms.amp import EXPANSION_FLOOR
from oracle.bridge import (
    UNITS,
    WEIGHTS,
    History,
    Problem,
    coupling_and_graph,
    random_state,
    random_threshold,
    write_state,
)
from oracle.channels import SMALLEST_ONE_PLUS_AV, SMALLEST_PRECISION
from oracle.message_passing import Layer, with_threshold
from products import all_pairs

TOLERANCE = 1e-10
SAMPLES = 4
#: Seeds tried until the oracle meets no floor.
ATTEMPTS = 60


class Case(NamedTuple):
    """One value of each option."""

    prior: str
    activation: str
    output: str
    architecture: str
    bias: bool
    masked: bool
    tau: int
    damping: float
    rho: float
    pull: str
    threshold: bool


OPTIONS: dict[str, tuple] = {
    "prior": ("binary", "gaussian", "ternary", "mixed"),
    "activation": ("sign", "noisy sign", "relu", "identity"),
    "output": ("label", "noisy label", "argmax-pairwise", "argmax-sampled", "argmax-exact", "gaussian"),
    "architecture": ("dense 2", "dense 3", "conv 2", "conv 3"),
    "bias": (False, True),
    "masked": (False, True),
    "tau": (1, 2, 3),
    "damping": (0.0, 0.6),
    "rho": (1.0, 0.9),
    "pull": ("none", "reinforcement", "focusing"),
    "threshold": (False, True),
}

#: What a network makes of them is in the list: a relative gate becomes a gate of some threshold.
ALIASES = ("relative-gate",)
ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "sign": (cavity.Sign(), "sign"),
    "noisy sign": (cavity.Sign(noise=0.4), ("noisy_sign", 0.4)),
    "relu": (cavity.ReLU(), "relu"),
    "identity": (cavity.Identity(), "identity"),
} | {
    name: (kind(), ("piecewise", kind().edges, kind().slopes, kind().offsets))
    for name, kind in channels.ACTIVATIONS.items()
    if issubclass(kind, cavity.PiecewiseLinear) and name not in ("relu", *ALIASES)
}
OUTPUTS: dict[str, tuple[Any, Any]] = {
    "label": (cavity.Label(), "label"),
    "noisy label": (cavity.Label(noise=0.5), ("noisy_label", 0.5)),
    "argmax-pairwise": (cavity.ArgMax("pairwise"), "argmax-pairwise"),
    "argmax-sampled": (cavity.ArgMax("sampled"), "argmax-sampled"),
    "argmax-exact": (cavity.ArgMax("exact"), "argmax-exact"),
    "gaussian": (cavity.GaussianOutput(noise=0.7), ("gaussian", 0.7)),
}
CLASSES = 3
IMAGE = (2, 4, 3)
#: kind and sizes of each layer; convolutions have stride, padding, and more than one channel.
ARCHITECTURES: dict[str, list[tuple[str, tuple]]] = {
    "dense 2": [("dense", (9, 6)), ("dense", (6, CLASSES))],
    "dense 3": [("dense", (8, 7)), ("dense", (7, 6)), ("dense", (6, CLASSES))],
    "conv 2": [("conv", (IMAGE, 2, (3, 2), (1, 2), (1, 0))), ("dense", (8, CLASSES))],
    "conv 3": [
        ("conv", (IMAGE, 3, (2, 3), (2, 1), (0, 1))),
        ("conv", ((3, 2, 3), 2, 2, 1, (1, 0))),
        ("dense", (12, CLASSES)),
    ],
}


def allowed(case: dict[str, Any]) -> bool:
    """Focusing is for binary weights only."""
    return not (case.get("pull") == "focusing" and case.get("prior", "binary") != "binary")


#: The activations that are not in OPTIONS, once each.
OTHERS = [
    Case(prior, name, output, "dense 3", False, False, 2, 0.6, 0.9, "none", False)
    for name, prior, output in zip(
        sorted(ACTIVATIONS.keys() - set(OPTIONS["activation"])),
        itertools.cycle(("binary", "gaussian", "ternary")),
        itertools.cycle(("label", "argmax-pairwise")),
        strict=False,
    )
]
#: Every allowed pair of options occurs.
CASES = [Case(**case) for case in all_pairs(OPTIONS, allowed)]


def build(case: Case, algorithm: str, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    chain: list[Any] = []
    layers = []
    structure = ARCHITECTURES[case.architecture]
    for depth, (kind, sizes) in enumerate(structure):
        prior = ("gaussian", "ternary", "binary")[depth % 3] if case.prior == "mixed" else case.prior
        shape = coupling_and_graph(kind, sizes, case.bias, None)[1].alive.shape
        mask = rng.random(shape) < 0.8 if case.masked else None
        coupling, graph = coupling_and_graph(kind, sizes, case.bias, mask)
        state = random_state(rng, prior, shape, graph.alive)
        if case.threshold:
            column = random_threshold(rng, shape[0])
            state = {name: np.hstack([value, column[name]]) for name, value in state.items()}
            graph = with_threshold(graph)
        kept = None if mask is None else torch.tensor(mask)
        layer = cavity.Layer(coupling, prior, mask=kept, threshold=case.threshold)
        chain += [layer, ACTIVATIONS[case.activation][0]]
        layers.append(
            Layer(
                graph,
                prior,
                **state,
                rho=case.rho + 0.02 * depth,
                damping=case.damping * (1 - 0.2 * depth),
                reinforcement=0.2 + 0.1 * depth if case.pull == "reinforcement" else 0.0,
                focusing=(3.0, 0.8) if case.pull == "focusing" else None,
                threshold=case.threshold,
            )
        )
    output, oracle_output = OUTPUTS[case.output]
    net = cavity.Network([*chain[:-1], output]).double()
    for library, oracle in zip(net.weighted(), layers, strict=True):
        write_state(library, {name: getattr(oracle, name) for name in ("field", "precision", "mean", "variance")})
    x = rng.normal(0, 1, (SAMPLES, layers[0].graph.inputs))
    activations = [ACTIVATIONS[case.activation][1]] * (len(layers) - 1)
    return Problem(net, layers, activations, oracle_output, x, targets(case, rng), algorithm, case.tau, seed)


def targets(case: Case, rng: np.random.Generator) -> np.ndarray:
    if case.output.startswith("argmax"):
        return rng.integers(0, CLASSES, SAMPLES)
    if case.output == "gaussian":
        return rng.normal(0, 1, (SAMPLES, CLASSES))
    return rng.choice([-1.0, 1.0], (SAMPLES, CLASSES))


def is_sign(activation: str | tuple) -> bool:
    return activation == "sign" or activation[0] == "noisy_sign"


def is_quiet(problem: Problem, history: History) -> bool:
    """Whether no floor of the library acts on the oracle's messages."""
    for tau, messages in enumerate(history):
        for depth, layer in enumerate(problem.layers):
            V, alive = messages["V"][depth], layer.graph.alive
            real = [c for c in range(alive.shape[1]) if layer.prior_of(c) == "gaussian"]
            if real and messages["precision"][depth][:, real][alive[:, real]].min() < SMALLEST_PRECISION:
                return False
            largest = 0.0 if layer.prior == "gaussian" else 1.0
            power = (messages["xhat"][depth] ** 2 + messages["Delta"][depth]).mean(axis=1, keepdims=True)
            if problem.algorithm == "amp" and (EXPANSION_FLOOR * largest * power > V).any():
                return False
            if depth + 1 < len(problem.layers) and not is_sign(problem.activations[depth]):
                sent = [history[t]["A"][depth + 1] for t in (tau - 1, tau) if t >= 0]
                if any((1 + A * V < SMALLEST_ONE_PLUS_AV).any() for A in sent):
                    return False
    return True


def quiet_problem(case: Case, algorithm: str) -> tuple[Problem, History]:
    for seed in range(ATTEMPTS):
        problem = build(case, algorithm, seed)
        history = problem.oracle()
        if is_quiet(problem, history):
            return problem, history
    raise AssertionError(f"each of {ATTEMPTS} instances of {case} met a floor")


def compare(problem: Problem, found: History, expected: History) -> None:
    assert len(found) == len(expected) == problem.inner_iterations
    for tau, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        for name in (*UNITS, *WEIGHTS):
            # The library sends no B to the data.
            first = 1 if name == "B" else 0
            for depth, (a, b) in enumerate(zip(ours[name], theirs[name][first:], strict=True), start=first):
                error = np.abs(a - b) / (1 + np.abs(b))
                layer = problem.layers[depth]
                if name == "precision" and layer.prior == "binary":
                    binary = np.array([not layer.is_threshold(c) for c in range(a.shape[1])])
                    assert np.isnan(a[:, binary]).all()
                    error[:, binary] = 0
                if name in ("H", "G", "precision"):
                    error = error[layer.graph.alive]
                assert error.max() < TOLERANCE, f"{name} of layer {depth} at iteration {tau + 1}: {error.max():.1e}"


def test_every_activation_is_compared():
    assert {case.activation for case in CASES + OTHERS} >= set(channels.ACTIVATIONS) - set(ALIASES)


def test_every_pair_of_options_is_covered():
    for a, b in itertools.combinations(OPTIONS, 2):
        found = {(getattr(case, a), getattr(case, b)) for case in CASES}
        assert found == {(u, v) for u, v in itertools.product(OPTIONS[a], OPTIONS[b]) if allowed({a: u, b: v})}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", CASES + OTHERS, ids=lambda case: "-".join(str(value) for value in case))
def test_every_message(case, algorithm):
    problem, expected = quiet_problem(case, algorithm)
    found, clamped = problem.library()
    assert clamped == 0
    compare(problem, found, expected)
