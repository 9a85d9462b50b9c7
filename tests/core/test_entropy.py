"""The free entropy against sums over all weights and activations, closed forms, and its own derivatives.

Fields of the prior are drawn at random and outputs are noisy, so that every set of labels is possible. All errors are
errors of log P(y | x) per weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

import cavity
from cavity.core.algorithms import ALGORITHMS as ALL
from cavity.core.channels import Label, Sign
from cavity.core.entropy import fixed_point, prior_states
from cavity.core.messages import Fields, Moments
from truth import enumeration, linear_regression

Array = NDArray[np.float64]
ALGORITHMS = ["bp", "bpi", "amp", "mf"]


def holding(net: cavity.Network, fields: Sequence[Array], precisions: Sequence[Array] | None = None) -> cavity.Network:
    """The network in double precision with the given prior."""
    net = net.double()
    for place, (layer, field) in enumerate(zip(net.weighted(), fields, strict=True)):
        precision = None if precisions is None else torch.tensor(precisions[place])
        natural = Fields(torch.tensor(field), precision)
        layer.set_state(natural, layer.prior.moments(natural))
    return net


def evidence(net: cavity.Network, x: Array, y: Array, algorithm: str, **options: float) -> cavity.entropy.Evidence:
    settings = {"tolerance": 1e-5, "damping": 0.5, **options}
    return cavity.entropy.log_evidence(net, torch.tensor(x), torch.tensor(y), algorithm=algorithm, **settings)


class Unit:
    """A perceptron of n inputs, one pattern a weight and a noise of 0.3 n; labels from a ±1 teacher."""

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.noise, self.n = 0.3 * n, n
        self.x = rng.standard_normal((n, n))
        z = self.x @ rng.choice([-1.0, 1.0], n) + self.noise**0.5 * rng.standard_normal(n)
        self.y = np.where(z >= 0, 1.0, -1.0)
        self.fields = enumeration.random_fields((n, 1), 0.5, rng)
        self.exact = enumeration.log_evidence(self.x, self.y, self.fields, self.noise)

    def error(self, algorithm: str) -> float:
        net = holding(cavity.mlp(self.n, (), 1, output=Label(self.noise)), self.fields)
        return (evidence(net, self.x, self.y, algorithm).value - self.exact) / self.n


def root_mean_square(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def test_bethe_of_a_unit_is_closer_than_mean_field_and_becomes_exact() -> None:
    """BP and AMP: falling at every step, to less than a third from 5 weights to 17; mean field always below."""
    errors: dict[str, list[float]] = {"bp": [], "amp": [], "mf": []}
    for n in (5, 9, 17):
        units = [Unit(n, seed) for seed in range(8)]
        for algorithm, found in errors.items():
            each = [unit.error(algorithm) for unit in units]
            found.append(root_mean_square(each))
            if algorithm == "mf":
                assert max(each) < 0
    for algorithm in ("bp", "amp"):
        small, middle, large = errors[algorithm]
        assert small > middle > large
        assert large < small / 3
        assert all(one < 0.1 * mf for one, mf in zip(errors[algorithm], errors["mf"], strict=True))
    assert all(bp < amp for bp, amp in zip(errors["bp"], errors["amp"], strict=True))


def sum_over_everything(x: Array, y: Array, fields: Sequence[Array], hidden: float, noise: float) -> float:
    """log P(y | x) of a network with one hidden layer x = sign(z + √hidden·ξ): weights and activations, all of them."""
    shapes = [f.shape for f in fields]
    theta = np.concatenate([f.ravel() for f in fields])
    w = enumeration.configurations(np.arange(2**theta.size), theta.size)
    first, second = enumeration.unpack(w, shapes)
    z = first @ x.T
    states = np.array(list(product((-1.0, 1.0), repeat=shapes[0][0])))
    terms = [
        log_ndtr(s[:, None] * z / hidden**0.5).sum(axis=1) + log_ndtr(y * (second @ s) / noise**0.5) for s in states
    ]
    log_p = logsumexp(terms, axis=0).sum(axis=1) + w @ theta
    return float(logsumexp(log_p)) - float(np.logaddexp(theta, -theta).sum())


def test_networks_with_uncertain_activations() -> None:
    """Of 3-3-1 networks BP has less than a tenth of the error of mean field, which is always below the truth."""
    errors: dict[str, list[float]] = {algorithm: [] for algorithm in ALGORITHMS}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((6, 3)), rng.choice([-1.0, 1.0], 6)
        fields = enumeration.random_fields((3, 3, 1), 0.5, rng)
        exact = sum_over_everything(x, y, fields, 1.0, 2.0)
        for algorithm, found in errors.items():
            net = holding(cavity.mlp(3, (3,), 1, activation=Sign(1.0), output=Label(2.0)), fields)
            found.append((evidence(net, x, y, algorithm).value - exact) / 12)
    assert max(errors["mf"]) < 0
    for algorithm in ("bp", "amp", "bpi"):
        assert root_mean_square(errors[algorithm]) < 0.1 * root_mean_square(errors["mf"])


@pytest.mark.parametrize("activation", ["relu", pytest.param("leaky-relu", marks=pytest.mark.slow)])
def test_networks_with_certain_activations(activation: str) -> None:
    """Of 3-3-1 networks, where a sum of three units is no Gaussian yet: less than 0.6 of the error of taking samples
    as independent, which leaves out all learning. (With three hard signs in its place it would be no better.)"""
    unit = {"relu": lambda z: np.maximum(z, 0), "leaky-relu": lambda z: np.maximum(z, 0.1 * z)}[activation]
    errors: dict[str, list[float]] = {"bp": [], "amp": [], "independent": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, teacher = rng.standard_normal((8, 3)), [rng.choice([-1.0, 1.0], (1, k, 3)) for k in (3, 1)]
        noisy = enumeration.preactivations(x, teacher, unit)[0] + 2.0**0.5 * rng.standard_normal(8)
        y, fields = enumeration.sign(noisy), enumeration.random_fields((3, 3, 1), 0.5, rng)
        exact = enumeration.log_evidence(x, y, fields, 2.0, unit)
        alone = [enumeration.log_evidence(x[[n]], y[[n]], fields, 2.0, unit) for n in range(8)]
        errors["independent"].append(sum(alone) - exact)
        net = holding(cavity.mlp(3, (3,), 1, activation=activation, output=Label(2.0)), fields)
        for algorithm in ("bp", "amp"):
            errors[algorithm].append(evidence(net, x, y, algorithm, damping=0.7).value - exact)
    for algorithm in ("bp", "amp"):
        assert np.abs(errors[algorithm]).mean() < 0.6 * np.abs(errors["independent"]).mean()


def all_weights(shapes: Sequence[tuple[int, int]], values: Sequence[float]) -> list[Array]:
    """Every configuration of weights with the given values: one (configurations, outputs, inputs) array a layer."""
    sizes = [rows * columns for rows, columns in shapes]
    w = np.array(list(product(values, repeat=sum(sizes))))
    parts = np.split(w, np.cumsum(sizes)[:-1], axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def test_classes() -> None:
    """A hard argmax of three classes, 12 ±1 weights: a sum over 4,096 networks, most of which are impossible."""
    errors = {"bp": [], "amp": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, theta = rng.standard_normal((4, 4)), 0.5 * rng.standard_normal((3, 4))
        (w,) = all_weights([(3, 4)], (-1.0, 1.0))
        y = (rng.choice([-1.0, 1.0], (3, 4)) @ x.T).argmax(axis=0)
        fits = ((w @ x.T).argmax(axis=1) == y).all(axis=1)
        log_p = (w * theta).sum(axis=(1, 2))[fits]
        exact = logsumexp(log_p) - np.logaddexp(theta, -theta).sum()
        for algorithm, found in errors.items():
            net = holding(cavity.mlp(4, (), 3), [theta])
            found.append((evidence(net, x, y, algorithm, tolerance=1e-4).value - exact) / exact)
    assert root_mean_square(errors["bp"]) < 0.2
    assert root_mean_square(errors["amp"]) < 0.2


def test_the_way_an_argmax_is_trained_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    x, y, theta = rng.standard_normal((6, 5)), rng.integers(0, 3, 6), 0.5 * rng.standard_normal((3, 5))
    values = [
        evidence(holding(cavity.mlp(5, (), 3, output=cavity.ArgMax(method)), [theta]), x, y, "amp").value
        for method in ("quadrature", "pairwise")
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_ternary_weights(algorithm: str) -> None:
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((8, 8)), rng.choice([-1.0, 1.0], 8)
        h, precision = 0.5 * rng.standard_normal((1, 8)), 0.5 * rng.standard_normal((1, 8))
        (w,) = all_weights([(1, 8)], (-1.0, 0.0, 1.0))
        prior = (h * w - 0.5 * precision * w**2).sum(axis=(1, 2))
        log_p = log_ndtr(y * (w @ x.T)[:, 0] / 2.0**0.5).sum(axis=1) + prior
        net = holding(cavity.mlp(8, (), 1, weights="ternary", output=Label(2.0)), [h], [precision])
        errors.append((evidence(net, x, y, algorithm).value - logsumexp(log_p) + logsumexp(prior)) / 8)
    assert root_mean_square(errors) < 0.02


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_shared_and_missing_weights(algorithm: str) -> None:
    """A convolution of four weights at four places, with padding in one direction, and a bias above; one weight of its
    readout is masked: 8 weights."""
    rng = np.random.default_rng(2)
    images, y = rng.standard_normal((7, 1, 2, 3)), rng.choice([-1.0, 1.0], 7)
    coupling = cavity.Conv2d((1, 2, 3), 1, (2, 2), padding=(0, 1))
    mask = torch.tensor([[True, True, False, True, True]])
    readout = cavity.Layer(cavity.Dense(4, 1, bias=True), mask=mask)
    net = cavity.Network([cavity.Layer(coupling), "sign", readout, Label(2.0)])
    fields = [0.5 * rng.standard_normal((1, 4)), 0.5 * rng.standard_normal((1, 5)) * mask.numpy()]
    holding(net, fields)
    readout.set_state(readout.natural, Moments(readout.mean * mask, readout.variance * mask))
    first, second = all_weights([(1, 4), (1, 5)], (-1.0, 1.0))
    kept = second[:, 0, 2] == 1
    first, second = first[kept, 0], second[kept, 0] * mask.numpy()
    padded = np.pad(images, ((0, 0), (0, 0), (0, 0), (1, 1)))[:, 0]
    patches = np.stack([padded[:, :, place : place + 2].reshape(7, 4) for place in range(4)], axis=1)
    hidden = enumeration.sign(np.einsum("ci,npi->cnp", first, patches))
    z = np.einsum("cp,cnp->cn", second[:, :4], hidden) + second[:, 4:]
    prior = first @ fields[0][0] + second @ fields[1][0]
    exact = logsumexp(log_ndtr(y * z / 2.0**0.5).sum(axis=1) + prior) - logsumexp(prior)
    assert evidence(net, images, y, algorithm, damping=0.7).value == pytest.approx(exact, rel=0.1)


def regression(size: int, seed: int, algorithm: str) -> float:
    """Error per weight of the evidence of Bayesian linear regression: 2·size samples, two outputs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * size, size)) / np.sqrt(size)
    y = x @ rng.normal(size=(size, 2)) + np.sqrt(0.3) * rng.normal(size=(2 * size, 2))
    h, precision = 0.3 * rng.normal(size=(2, size)), 1 + rng.random((2, size))
    net = cavity.Network([cavity.Layer(cavity.Dense(size, 2), "gaussian"), cavity.GaussianOutput(0.3)])
    found = evidence(holding(net, [h], [precision]), x, y, algorithm, damping=0.3).value
    return (found - linear_regression.log_evidence(x, y, h, precision, 0.3)) / (2 * size)


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_linear_regression(algorithm: str) -> None:
    """The error per weight falls as 1/N, to a hundredth for 80 weights a unit."""
    small, large = (root_mean_square([regression(n, seed, algorithm) for seed in range(4)]) for n in (10, 80))
    assert large < 0.35 * small
    assert large < 0.01


def derivative_errors(net: cavity.Network, fields: Sequence[Array], x: Array, y: Array, algorithm: str) -> Array:
    """∂ log Z/∂h − m of up to four weights a layer, log Z being log P(y | x) + ψ(h), by central differences."""
    step, errors, sites = 1e-3, [], holding(net, fields).sites
    method, states = ALL.make(algorithm), prior_states(sites, net.states(), 0.5)
    point = fixed_point(method, sites, states, torch.tensor(x), torch.tensor(y), 1000, 1e-10)
    for layer in range(len(fields)):
        for place in range(min(4, fields[layer].size)):
            ends = []
            for sign in (1, -1):
                moved = [f.copy() for f in fields]
                moved[layer].flat[place] += sign * step
                found = evidence(holding(net, moved), x, y, algorithm, tolerance=1e-10, iterations=1000)
                ends.append(found.value + enumeration_norm(moved))
            mean = float(point.states[layer].moments.mean.flatten()[place])
            errors.append((ends[0] - ends[1]) / (2 * step) - mean)
    return np.array(errors)


def enumeration_norm(fields: Sequence[Array]) -> float:
    """Σ ψ(h) of ±1 weights."""
    return sum(float(np.logaddexp(f, -f).sum()) for f in fields)


def derivatives(sizes: Sequence[int], samples: int, noise: float, algorithm: str, seed: int = 0) -> float:
    """Root mean square of the errors; ±1 inputs and random labels."""
    rng = np.random.default_rng(seed)
    x, y = rng.choice([-1.0, 1.0], (samples, sizes[0])), rng.choice([-1.0, 1.0], samples)
    net = cavity.mlp(sizes[0], sizes[1:-1], 1, output=Label(noise))
    fields = [0.5 * rng.standard_normal((k, n)) for n, k in pairwise(sizes)]
    return root_mean_square(derivative_errors(net, fields, x, y, algorithm))


def test_derivatives_of_tap_are_the_means() -> None:
    """Exactly, but for the finite difference: step²/6 times a third derivative of order 1."""
    assert derivatives((9, 1), 9, 2.7, "amp") < 1e-6
    assert derivatives((33, 1), 33, 9.0, "amp") < 1e-6


@pytest.mark.slow
def test_derivatives_of_tap_are_nearly_the_means_behind_a_hidden_layer() -> None:
    """AMP has terms of higher order there which no functional has: of order 1/N."""
    small, large = (derivatives((n, n // 3, 1), n, n / 6, "amp") for n in (9, 33))
    assert large < 0.01
    assert large < small


def test_derivatives_of_bethe_approach_the_means() -> None:
    """BP's messages are second-order expansions with full variances: what is left falls with N."""
    small, large = (np.mean([derivatives((n, 1), n, 0.3 * n, "bp", s) for s in range(2)]) for n in (9, 61))
    assert large < 0.02
    assert large < 0.5 * small
    assert derivatives((33, 11, 1), 33, 5.0, "bp") < 0.01


@pytest.mark.parametrize("algorithm", ["mf", "bpi"])
def test_derivatives_of_the_others_are_the_means_only_where_samples_say_little(algorithm: str) -> None:
    """Their equations are not stationarity conditions: errors of order 1, which vanish as 1/ν."""
    strong, weak, weaker = (derivatives((9, 1), 9, noise, algorithm) for noise in (9.0, 900.0, 9000.0))
    assert strong > 0.05
    assert weak < 0.02
    assert weaker < 0.15 * weak


def test_the_chain_rule_over_batches() -> None:
    """Batches of three: the sum of their evidences is that of all, within the error of either."""
    unit = Unit(9, 3)
    net = holding(cavity.mlp(9, (), 1, output=Label(unit.noise)), unit.fields)
    whole = evidence(net, unit.x, unit.y, "bp")
    parts = evidence(net, unit.x, unit.y, "bp", batch_size=3)
    assert parts.samples.shape == whole.samples.shape == (9,)
    assert parts.value == pytest.approx(unit.exact, abs=0.05 * 9)
    assert float(parts.samples.sum() + parts.weights.sum()) == pytest.approx(parts.value)


def test_the_network_stays_as_it_is() -> None:
    unit = Unit(9, 0)
    net = holding(cavity.mlp(9, (), 1, output=Label(unit.noise)), unit.fields)
    before = [tensor.clone() for tensor in net.state_dict().values()]
    evidence(net, unit.x, unit.y, "bp")
    assert all(torch.equal(old, new) for old, new in zip(before, net.state_dict().values(), strict=True))


def test_what_has_not_converged_is_no_number() -> None:
    unit = Unit(9, 0)
    net = holding(cavity.mlp(9, (), 1, output=Label(unit.noise)), unit.fields)
    found = evidence(net, unit.x, unit.y, "bp", iterations=2)
    assert not found.converged
    assert "NOT CONVERGED" in repr(found)
    with pytest.raises(cavity.entropy.Unreliable, match="not converged in 2 iterations"):
        _ = found.value


def test_what_is_not_finite_is_no_number() -> None:
    net = holding(cavity.mlp(3, (), 1, output=Label(1.0)), [np.full((1, 3), np.nan)])
    found = evidence(net, np.ones((2, 3)), np.ones(2), "amp")
    assert not found.converged
    with pytest.raises(cavity.entropy.Unreliable):
        _ = found.value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "mf"}, "no noise"),
        ({"iterations": 0}, "iterations must be at least 1, got 0"),
        ({"damping": 1.0}, "damping must be in"),
        ({"tolerance": 0.0}, "tolerance must be > 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"algorithm": "newton"}, "newton"),
    ],
)
def test_bad_arguments(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cavity.entropy.log_evidence(cavity.mlp(3, (), 1), torch.ones(2, 3), torch.ones(2), **options)


def test_bad_labels() -> None:
    with pytest.raises(ValueError, match="-1 or"):
        cavity.entropy.log_evidence(cavity.mlp(3, (), 1), torch.ones(2, 3), torch.zeros(2))
