"""The free entropy of networks with thresholds, pools and whitening, and of every kind of network there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr, logsumexp

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.channels import ACTIVATIONS, OUTPUTS, Label, Sign
from cavity.core.channels.base import Activation
from cavity.core.entropy import fixed_point, free_entropy, prior_states
from cavity.core.messages import Fields
from cavity.core.pools import POOLS
from cavity.core.priors import PRIORS

NOISE = 2.0


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def written(layer: cavity.Layer, field: torch.Tensor, precision: torch.Tensor | None = None) -> None:
    natural = Fields(field, precision)
    layer.set_state(natural, layer.prior.moments(natural))


def evidence(
    net: cavity.Network, x: torch.Tensor, y: torch.Tensor, algorithm: str, tolerance: float = 1e-9
) -> cavity.entropy.Evidence:
    options = {"damping": 0.7, "tolerance": tolerance, "iterations": 2000}
    return cavity.entropy.log_evidence(net, x, y, algorithm=algorithm, **options)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_threshold_is_a_real_weight_on_an_input_of_ones(algorithm: str) -> None:
    """The evidence of a layer of Gaussian weights, of which the last is the threshold, in two layers: to rounding."""
    x, y = normal(9, 6), torch.where(normal(9, seed=4) < 0, -1, 1)
    field, precision, upper = normal(5, 7, seed=1), 3 + normal(5, 7, seed=2).square(), normal(1, 5, seed=3)
    found = []
    for threshold in (False, True):
        first = cavity.Layer(cavity.Dense(6 if threshold else 7, 5), "gaussian", threshold=threshold)
        last = cavity.Layer(cavity.Dense(5, 1))
        net = cavity.Network([first, Sign(1.0), last, Label(NOISE)]).double()
        written(last, upper)
        if first.threshold is None:
            written(first, field, precision)
        else:
            written(first, field[:, :-1], precision[:, :-1])
            written(first.threshold, field[:, -1:], precision[:, -1:])
        found.append(evidence(net, x if threshold else torch.cat([x, torch.ones(9, 1)], dim=1), y, algorithm))
    one, two = found
    assert two.value == pytest.approx(one.value, rel=1e-7)
    torch.testing.assert_close(two.weights, one.weights, rtol=1e-6, atol=1e-7)
    assert one.thresholds == (None, None)
    torch.testing.assert_close(two.thresholds[0].field, one.posterior[0].field[:, -1:], rtol=1e-6, atol=1e-6)


class Unit:
    """One unit of ±1 weights and a threshold b ~ 𝒩(b₀, s²), noisy labels: all weights are summed over, and b is
    integrated on a grid."""

    def __init__(self, inputs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.noise, self.centre, self.spread = 0.3 * inputs, rng.normal(), 1.5
        self.x, self.fields = rng.standard_normal((inputs, inputs)), rng.normal(0, 0.5, inputs)
        z = self.x @ rng.choice([-1.0, 1.0], inputs) + rng.normal(0, 1.5) + self.noise**0.5 * rng.normal(size=inputs)
        self.y = np.where(z >= 0, 1.0, -1.0)
        b = self.centre + self.spread * np.linspace(-8, 8, 161)
        weights = np.array(list(itertools.product((-1.0, 1.0), repeat=inputs)))
        sums = (weights @ self.x.T)[:, None, :] + b[:, None]
        prior = (weights @ self.fields)[:, None] - 0.5 * ((b - self.centre) / self.spread) ** 2
        log_p = log_ndtr(self.y * sums / self.noise**0.5).sum(axis=2) + prior
        self.exact = float(logsumexp(log_p) - logsumexp(prior))

    def network(self, centre: float | None = None) -> cavity.Network:
        layer = cavity.Layer(cavity.Dense(self.x.shape[1], 1), threshold=True)
        net = cavity.Network([layer, Label(self.noise)]).double()
        written(layer, torch.from_numpy(self.fields).unsqueeze(0))
        precision = torch.full((1, 1), self.spread**-2, dtype=torch.float64)
        written(layer.threshold, (self.centre if centre is None else centre) * precision, precision)
        return net

    def error(self, algorithm: str) -> float:
        """Per weight."""
        found = evidence(self.network(), torch.from_numpy(self.x), torch.from_numpy(self.y), algorithm, 1e-5).value
        return (found - self.exact) / len(self.fields)


def test_thresholds_against_quadrature() -> None:
    """BP and AMP have a twentieth of the slack of mean field, which is always below the truth."""
    units = [Unit(9, seed) for seed in range(6)]
    errors = {name: np.array([unit.error(name) for unit in units]) for name in ("bp", "amp", "mf")}
    assert errors["mf"].max() < 0
    for algorithm in ("bp", "amp"):
        assert np.abs(errors[algorithm]).mean() < 0.05 * np.abs(errors["mf"]).mean()


@pytest.mark.parametrize(("algorithm", "tolerance"), [("amp", 1e-6), ("bp", 0.1)])
def test_the_derivative_by_the_field_of_a_threshold_is_its_mean(algorithm: str, tolerance: float) -> None:
    """∂ log Z/∂h = m, with log Z = log P + ψ(h, λ): exact for TAP, and as close as for weights of few inputs for
    Bethe."""
    unit, step = Unit(9, 1), 1e-3
    x, y = torch.from_numpy(unit.x), torch.from_numpy(unit.y)
    ends = []
    for centre in (unit.centre + step, unit.centre - step):
        net = unit.network(centre)
        threshold = net.weighted()[0].threshold
        psi = float(threshold.prior.value(threshold.natural))
        ends.append(evidence(net, x, y, algorithm).value + psi)
    found = evidence(unit.network(), x, y, algorithm)
    h, precision = found.thresholds[0]
    in_h = step * unit.spread**-2
    assert (ends[0] - ends[1]) / (2 * in_h) == pytest.approx(float(h / precision), abs=tolerance)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_value_of_a_window_is_the_sum_over_its_states(noise: float) -> None:
    pool, sign, B = cavity.MaxPool((1, 3)), Sign(noise), 3 * normal(2, 1, 1, 1, seed=2)
    omega, V = 2 * normal(2, 1, 1, 3), 0.5 + normal(2, 1, 1, 3, seed=1).square()
    pre = cavity.core.messages.Preactivation(omega, V)
    found = pool.units(sign).value(Fields(B, None), pool.up(sign, pre)).flatten()
    states = np.array(list(itertools.product((-1, 1), repeat=3)))
    u = (omega / torch.sqrt(V + noise)).numpy().reshape(2, 1, 3)
    exact = logsumexp(log_ndtr(states * u).sum(axis=2) + B.numpy().reshape(2, 1) * states.max(axis=1), axis=1)
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-10)


@pytest.mark.parametrize("name", POOLS)
def test_pooled_moments_of_independent_units(name: str) -> None:
    """By summing over four ±1 units."""
    means = torch.tanh(normal(1, 1, 2, 2))
    mean, variance = POOLS[name](2).combine(cavity.core.messages.Moments(means, 1 - means.square()))
    states = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4)), dtype=torch.float64)
    p = (0.5 * (1 + states * means.flatten())).prod(dim=1)
    values = POOLS[name](2).forward(states.reshape(-1, 1, 2, 2)).flatten()
    expected = (p * values).sum()
    torch.testing.assert_close(mean.flatten()[0], expected)
    torch.testing.assert_close(variance.flatten()[0], (p * values.square()).sum() - expected.square())


class Pooled:
    """Images of 1 by 5, two filters of 1 by 2 at four places, noisy signs, windows of two, a readout: 8 weights and,
    of each sample, 8 units are all summed over."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.pool, self.x, self.y = POOLS[kind]((1, 2)), rng.standard_normal((7, 1, 1, 5)), rng.choice([-1.0, 1.0], 7)
        self.fields = [0.5 * rng.standard_normal((2, 2)), 0.5 * rng.standard_normal((1, 4))]
        signs = [np.array(list(itertools.product((-1.0, 1.0), repeat=4))) for _ in range(2)]
        units = np.array(list(itertools.product((-1.0, 1.0), repeat=8))).reshape(-1, 2, 4)
        tops = self.pool.forward(torch.from_numpy(units[:, :, None])).numpy().reshape(-1, 4)
        patches = np.stack([self.x[:, 0, 0, place : place + 2] for place in range(4)], axis=1)
        labels = log_ndtr(self.y[:, None, None] * (tops @ signs[1].T) / NOISE**0.5)
        log_p = []
        for filters in signs[0].reshape(-1, 2, 2):
            z = np.einsum("ci,npi->ncp", filters, patches)
            each = log_ndtr(units * z[:, None]).sum(axis=(2, 3))
            below = logsumexp(each[:, :, None] + labels, axis=1).sum(axis=0)
            log_p.append(below + (filters * self.fields[0]).sum() + signs[1] @ self.fields[1][0])
        self.exact = float(logsumexp(log_p)) - sum(float(np.logaddexp(f, -f).sum()) for f in self.fields)

    def error(self, algorithm: str) -> float:
        """Per weight."""
        layers = cavity.Layer(cavity.Conv2d((1, 1, 5), 2, (1, 2))), cavity.Layer(cavity.Dense(4, 1))
        net = cavity.Network([layers[0], Sign(1.0), self.pool, layers[1], Label(NOISE)]).double()
        for layer, field in zip(layers, self.fields, strict=True):
            written(layer, torch.from_numpy(field))
        found = evidence(net, torch.from_numpy(self.x), torch.from_numpy(self.y), algorithm, 1e-5).value
        return (found - self.exact) / 8


@pytest.mark.parametrize("kind", POOLS)
def test_pools_against_enumeration(kind: str) -> None:
    """An error of a fortieth of a nat a weight, in sums of two and four terms; mean field is always below the
    truth."""
    networks = [Pooled(kind, seed) for seed in range(2)]
    for algorithm in ("bp", "amp", "bpi"):
        assert np.mean(np.abs([network.error(algorithm) for network in networks])) < 0.025
    assert max(network.error("mf") for network in networks) < 0


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_window_of_one_unit_is_no_pool(kind: str, algorithm: str) -> None:
    """To rounding for a maximum; a mean counts as Gaussian, so that it is only for units that are (and have no noise
    for mean field to bound by)."""
    if kind == "average" and algorithm == "mf":
        pytest.skip("linear units have no noise")
    activation: Activation = Sign(1.0) if kind == "max" else cavity.core.channels.Identity()
    x, y, found = normal(8, 1, 3, 3), torch.where(normal(8, seed=1) < 0, -1, 1), []
    for pools in ([], [POOLS[kind](1)]):
        layers = cavity.Layer(cavity.Conv2d((1, 3, 3), 3, 2)), cavity.Layer(cavity.Dense(12, 1))
        net = cavity.Network([layers[0], activation, *pools, layers[1], Label(NOISE)], seed=3).double()
        found.append(evidence(net, x, y, algorithm).value)
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_whitened_inputs_are_inputs(algorithm: str) -> None:
    net = cavity.network("white:3:2,conv:2:2,dense:3", (1, 5, 5), 2, activation=Sign(1.0), output=Label(NOISE))
    x, y = normal(8, 1, 5, 5).float(), torch.where(normal(8, 2, seed=1) < 0, -1, 1)
    net.balance(x)
    bare = cavity.network("conv:2:2,dense:3", (3, 4, 4), 2, activation=Sign(1.0), output=Label(NOISE))
    bare.load_state_dict({name: t for name, t in net.state_dict().items() if not name.startswith("front.")})
    found = [
        evidence(one.double(), z, y, algorithm) for one, z in ((net, x), (bare, net.double().prepared(x.double())))
    ]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-6)


def chain(coupling: str, prior: str, activation: Activation, output: cavity.core.channels.Output) -> cavity.Network:
    """A network with one hidden layer of that kind of weights."""
    if coupling in ("conv2d", *POOLS):
        first = cavity.Layer(cavity.Conv2d((1, 3, 4), 4, 2), prior)
    else:
        mask = None if coupling != "masked" else torch.arange(60).reshape(5, 12) % 3 > 0
        layer = cavity.Dense(12, 5, bias=coupling == "bias")
        first = cavity.Layer(layer, prior, mask=mask, threshold=coupling == "threshold")
    pools = [POOLS[coupling]((2, 1))] if coupling in POOLS else []
    units = {"max": 12, "average": 12, "conv2d": 24}.get(coupling, 5)
    return cavity.Network([first, activation, *pools, cavity.Layer(cavity.Dense(units, 3), prior), output])


def labels(output: str, samples: int) -> torch.Tensor:
    if output == "gaussian":
        return normal(samples, 3, seed=9)
    return torch.arange(samples) % 3 if output == "argmax" else torch.where(normal(samples, 3, seed=9) < 0, -1, 1)


COUPLINGS = ["dense", "masked", "bias", "threshold", "conv2d", *POOLS]


def combinations() -> list[object]:
    """All of them; those that differ in more than one part from the usual network are slow."""
    usual = "dense", "binary", "sign"
    return [
        pytest.param(*parts, marks=[] if sum(map(str.__ne__, parts, usual)) <= 1 else pytest.mark.slow)
        for parts in itertools.product(COUPLINGS, PRIORS, ACTIVATIONS)
        if parts[0] != "max" or parts[2] == "sign"
    ]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(("coupling", "prior", "activation"), combinations())
def test_every_network_has_an_evidence_or_says_why_not(coupling: str, prior: str, activation: str, output: str) -> None:
    """A probability, so that a finite value is below 0 for discrete labels; or it has not converged, and says so; or
    mean field has nothing to bound by, and says so. A few iterations are enough for either."""
    noisy = {} if activation == "identity" else {"noise": 1.0}
    top = OUTPUTS[output](**({} if output == "argmax" else {"noise": 1.0}))
    net = chain(coupling, prior, ACTIVATIONS[activation](**noisy), top)
    y, shape = labels(output, 6), net.input_shape
    x = normal(6, 12, seed=8).float().reshape(6, *shape)
    for algorithm in ALGORITHMS:
        bounded = algorithm == "mf" and ("identity" in activation or output == "argmax")
        if bounded:
            with pytest.raises(ValueError, match="has no noise"):
                cavity.entropy.log_evidence(net, x, y, algorithm=algorithm)
            continue
        found = cavity.entropy.log_evidence(net, x, y, algorithm=algorithm, iterations=4, damping=0.3, tolerance=0.1)
        if found.converged:
            assert np.isfinite(found.value)
            assert found.value < 0 or output == "gaussian"
        else:
            with pytest.raises(cavity.entropy.Unreliable):
                _ = found.value
        assert found.samples.shape == (6,)
        assert len(found.weights) == 2


@pytest.mark.parametrize("algorithm", ["bp", "bpi"])
@torch.no_grad()
def test_large_layers_are_taken_to_second_order(algorithm: str) -> None:
    """Against all edges one by one, of the same messages: 64-51-10 and 64 samples, and every layer so."""
    net, x = cavity.mlp(64, (51,), 10), normal(64, 64).float()
    y, sites, method = cavity.mlp(64, (51,), 10, seed=7).predict(x), net.sites, ALGORITHMS.make(algorithm)
    point = fixed_point(method, sites, prior_states(sites, net.states(), 0.7), x, y, 200, 1e-3)
    assert point.converged
    exact, second = (
        sum(float(part.double().sum()) for part in free_entropy(method, sites, point.states, point.pres, x, y, most))
        for most in (float("inf"), 0)
    )
    assert second != exact
    assert second == pytest.approx(exact, rel=5e-3)
