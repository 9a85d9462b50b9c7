"""Precisions that belong to their fields: never negative, and exact where the factors are Gaussian."""

import pytest
import torch

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.arithmetic import EXACT
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.state import LayerState, Site, Up
from cavity.core.sweep import layer_down, sweep_up

SAMPLES, OUTPUTS, INPUTS = 9, 5, 6


def normal(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def messages(algorithm, channel, fisher, A=0.5):
    """(H, G) and (B, A) of one layer of real weights below ``channel`` and above a ReLU."""
    m, x = normal(OUTPUTS, INPUTS, seed=1), normal(SAMPLES, INPUTS, seed=2).relu()
    sigma, delta = normal(OUTPUTS, INPUTS, seed=3).square(), normal(SAMPLES, INPUTS, seed=4).square()
    pre = Preactivation(normal(SAMPLES, OUTPUTS, seed=5), 0.1 + normal(SAMPLES, OUTPUTS, seed=6).square())
    below = Preactivation(normal(SAMPLES, INPUTS, seed=7), torch.ones(SAMPLES, INPUTS, dtype=torch.float64))
    message = Fields(3 * normal(SAMPLES, OUTPUTS, seed=8), torch.full((SAMPLES, OUTPUTS), A, dtype=torch.float64))
    site = Site(cavity.Dense(INPUTS, OUTPUTS), cavity.Gaussian(), cavity.ReLU(), channel, fisher)
    state = LayerState(Fields(m / sigma, 1 / sigma), Moments(m, sigma))
    up = Up(Moments(x, delta), pre, below, torch.zeros(()))
    found = layer_down(ALGORITHMS[algorithm](), site, state, up, message, EXACT, False)
    return found, m, x, channel.response(message, pre)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("channel", [cavity.ReLU(), cavity.Sign(), cavity.HardTanh()], ids=lambda c: c.name)
def test_no_precision_is_negative(algorithm, channel):
    paper, *_ = messages(algorithm, channel, fisher=False)
    fisher, *_ = messages(algorithm, channel, fisher=True)
    assert min(float(paper.fields.precision.min()), float(paper.down.precision.min())) < 0, "the printed ones are"
    assert float(fisher.fields.precision.min()) >= 0
    assert float(fisher.down.precision.min()) >= 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_messages_without_precisions_are_the_algorithms_own(algorithm):
    """±1 weights between sign units: Γ is negative in places, and Γ⁺ would be another message."""
    m, x = normal(OUTPUTS, INPUTS, seed=1).tanh(), normal(SAMPLES, INPUTS, seed=2).tanh()
    pre = Preactivation(normal(SAMPLES, OUTPUTS, seed=5), 0.1 + normal(SAMPLES, OUTPUTS, seed=6).square())
    below = Preactivation(normal(SAMPLES, INPUTS, seed=7), torch.ones(SAMPLES, INPUTS, dtype=torch.float64))
    message = Fields(3 * normal(SAMPLES, OUTPUTS, seed=8), None)
    state = LayerState(Fields(m.atanh(), None), Moments(m, 1 - m.square()))
    up = Up(Moments(x, 1 - x.square()), pre, below, torch.zeros(()))
    assert float(cavity.Sign().response(message, pre).curvature.min()) < 0
    paper, fisher = (
        layer_down(
            ALGORITHMS[algorithm](),
            Site(cavity.Dense(INPUTS, OUTPUTS), cavity.Binary(), cavity.Sign(), cavity.Sign(), projected),
            state,
            up,
            message,
            EXACT,
            False,
        )
        for projected in (False, True)
    )
    assert torch.equal(paper.fields.field, fisher.fields.field)
    assert torch.equal(paper.down.field, fisher.down.field)


@pytest.mark.parametrize("algorithm", ["mf", "amp"])
def test_the_message_is_the_factor_linearised_at_the_mean(algorithm):
    """H = D + mG with D = Σ x̂ g and G = Σ x̂² Γ⁺, and likewise B and A."""
    found, m, x, (g, gamma) = messages(algorithm, cavity.ReLU(), fisher=True)
    gamma = gamma.clamp_min(0)
    G, A = gamma.T @ x.square(), gamma @ m.square()
    torch.testing.assert_close(found.fields.precision, G)
    torch.testing.assert_close(found.fields.field, g.T @ x + m * G)
    torch.testing.assert_close(found.down.precision, A)
    torch.testing.assert_close(found.down.field, g @ m + x * A)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_algorithms_agree_where_factors_are_linear(algorithm):
    """An identity above is Gaussian: first order is all there is, Γ > 0, and mean field sends the same message."""
    found, *_ = messages(algorithm, cavity.Identity(), fisher=True)
    wanted, *_ = messages("mf", cavity.Identity(), fisher=True)
    for one, other in zip((*found.fields, *found.down), (*wanted.fields, *wanted.down), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "weights", ["gaussian", *(pytest.param(w, marks=pytest.mark.slow) for w in ("ternary", "binary"))]
)
@pytest.mark.parametrize("activation", ["relu", "identity", "sign", "leaky-relu"])
def test_every_kind_of_weight_and_unit_trains_without_diverging(weights, activation):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((400, 8), generator=generator)
    y = (x @ torch.randn((8, 3), generator=generator)).argmax(dim=1)
    for algorithm in ALGORITHMS:
        net = cavity.mlp(8, (21,), 3, weights=weights, activation=activation)
        cavity.Trainer(net, algorithm).fit((x, y), epochs=8, batch_size=32)
        error = float((net.predict(x, "bayes") != y).double().mean())
        assert error < 0.25, (algorithm, error)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("weights", ["binary", "ternary"])
def test_discrete_weights_under_a_gaussian_output_are_sent_the_bare_gradient(algorithm, weights):
    """H = Σ x̂ g and G = 0, whatever the algorithm would add."""
    x, y = normal(SAMPLES, INPUTS, seed=1).float(), normal(SAMPLES, seed=2).float()
    net = cavity.mlp(INPUTS, (OUTPUTS,), 1, weights=weights, output="gaussian")
    trainer = cavity.Trainer(net, algorithm, compile=False)
    rules = trainer.rules(trainer.place(SAMPLES))
    states = [state.begin(rule) for state, rule in zip(net.states(), rules, strict=True)]
    sites = trainer.method.sites
    ups = sweep_up(trainer.method.algorithm, sites, states, x)
    target = net.output.target(y, ups[-1].pre, None)
    down = layer_down(trainer.method.algorithm, sites[1], states[1], ups[1], target, EXACT, False)
    g = (y.unsqueeze(1) - ups[1].pre.mean) / (ups[1].pre.variance + net.output.noise)
    torch.testing.assert_close(down.fields.field, g.T @ ups[1].inputs.mean)
    assert down.fields.precision is None or not down.fields.precision.any()


@pytest.mark.parametrize(("weights", "activation"), [("binary", "gate"), ("ternary", "relu")])
@pytest.mark.parametrize("algorithm", ["mf", "bp"])
def test_discrete_regressors_do_better_than_the_mean(weights, activation, algorithm):
    """Each of these ended with predictions many times the target."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((200, 6), generator=generator)
    y = (x[:, :2].abs() @ torch.tensor([1.0, 0.5])) - 1.2
    net = cavity.mlp(6, (31,), 1, weights=weights, activation=activation, output=cavity.GaussianOutput(0.3))
    trainer = cavity.Trainer(net, algorithm, compile=False)
    # It would say that the most probable weights of so small a network are of no use.
    trainer.watch = False
    trainer.fit((x, y / y.std()), epochs=10, batch_size=20, evaluate_every=10)
    residual = y / y.std() - net.predict(x, "bayes").squeeze()
    assert float(residual.square().mean()) < float((y / y.std()).square().mean())
