"""Numbers at the edge: whatever is stored and whatever comes, a step leaves finite numbers or an error and no trace."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.floors import FIELD_BOUND
from cavity.core.messages import Fields
from cavity.core.posterior import certainty, update_weights
from cavity.core.priors import PRIORS
from cavity.core.state import Rule
from cavity.training.callbacks import Callback
from faults.problems import PROBLEMS, Problem, snapshot, unchanged
from fuzzing import bounded

STEPS = 3


def assert_sound(net: cavity.Network) -> None:
    """Every stored number is finite and within the range of what it stands for."""
    for layer in net.weighted():
        for name, tensor in layer.state_dict().items():
            assert bool(tensor.isfinite().all()), name
        assert float(layer.variance.min()) >= 0
        if layer.prior.name != "gaussian":
            assert float(layer.mean.abs().max()) <= 1
            assert float(layer.variance.max()) <= 1


def assert_probabilities(net: cavity.Network, x: torch.Tensor) -> None:
    pre = net.predict_moments(x)
    assert float(pre.variance.min()) > 0
    if not isinstance(net.output, cavity.GaussianOutput):
        p = net.predict_proba(x)
        assert float(p.min()) >= 0
        assert float(p.max()) <= 1 + 1e-6
        assert torch.allclose(p.sum(dim=1), torch.ones_like(p[:, 0]), atol=1e-5)


@bounded()
@given(PROBLEMS)
# Each of these has been a NaN, stored or met on the way.
@example(Problem(inner_iterations=3, activation="relu", mask="half", inputs="zero", rho=1.1))
@example(Problem(prior="gaussian", algorithm="amp", activation="identity", output="gaussian", target_scale=1e30))
@example(Problem(prior="ternary", algorithm="bpi", activation="relu", output="gaussian", target_scale=1e20))
@example(Problem(state="beyond the bound", rho=1.1))
def test_a_step_leaves_sound_numbers_or_an_error_and_no_trace(problem):
    net, (x, y) = problem.network(), problem.batch()
    trainer = problem.trainer(net)
    for _ in range(STEPS):
        before = snapshot(net)
        try:
            info = trainer.step(x, y)
        except (cavity.NonFiniteField, ValueError) as error:
            refused = error
        else:
            refused = None
        if refused is not None:
            assert not problem.is_tame
            assert isinstance(refused, cavity.NonFiniteField) or str(refused).startswith("x must be within")
            assert unchanged(net, before)
            return
        assert_sound(net)
        assert 0 <= float(info.clamped) <= 1
    try:
        assert_probabilities(net, x)
    except FloatingPointError:
        assert not problem.is_tame


@bounded(0.2)
@given(
    PROBLEMS.map(lambda p: replace(p, scale=1.0, target_scale=1.0)), st.sampled_from([math.nan, math.inf, -math.inf])
)
def test_a_stored_number_that_is_not_finite_is_refused(problem, value):
    net, (x, y) = problem.network(), problem.batch()
    net.weighted()[-1].field[0, 0] = value
    before = snapshot(net)
    with pytest.raises(cavity.NonFiniteField):
        problem.trainer(net).step(x, y)
    torch.testing.assert_close(snapshot(net), before, rtol=0, atol=0, equal_nan=True)


SCALES = st.integers(-15, 40)


@bounded(0.5)
@given(
    PROBLEMS.map(lambda p: replace(p, activation="sign", bias=False, scale=1.0, prior="binary", target_scale=1.0)),
    SCALES,
)
def test_the_scale_of_inputs_means_nothing_to_signs(problem, power):
    """u = ω/√V and H = Σ x g do not change with the scale of x. By a power of 2, not a bit does; where the smallest V
    needs its floor, that is counted."""
    assume(problem.hidden)
    x, y = problem.batch()
    nets = [problem.network() for _ in range(2)]
    infos = [problem.trainer(net).step(inputs, y) for net, inputs in zip(nets, (x, x * 2.0**power), strict=True)]
    same = all(torch.equal(a.field, b.field) for a, b in zip(*(net.weighted() for net in nets), strict=True))
    assert same or any(float(info.clamped) > 0 for info in infos)


ORDINARY = {"state": "drawn", "mask": "none", "inputs": "normal", "target_scale": 1.0, "rho": 1.0, "dtype": "float32"}


@bounded(0.5)
@given(PROBLEMS.map(lambda p: replace(p, **ORDINARY)), st.sampled_from([1e-3, 1.0, 1e3]))
@example(Problem(activation="relu", inner_iterations=2), 1e-3)
def test_single_precision_agrees_with_double(problem, scale):
    """One step far from every floor: fields agree to a thousand roundings of the largest.

    Beside tiny inputs, V is that of the bias alone, 1 − m² of one weight, which rounding spoils where m nears 1."""
    single = replace(problem, scale=1.0 if problem.bias else scale)
    nets = [case.network() for case in (single, replace(single, dtype="float64"))]
    for a, b in zip(*(net.weighted() for net in nets), strict=True):
        b.set_state(
            *(type(part)(*(None if t is None else t.double() for t in part)) for part in (a.natural, a.moments))
        )
    x, y = single.batch()
    try:
        infos = [single.trainer(net).step(x.to(net.dtype), y) for net in nets]
    except cavity.NonFiniteField:
        assert single.prior == "gaussian"
        reject()
    assume(all(float(info.clamped) == 0 for info in infos))
    for a, b in zip(*(net.weighted() for net in nets), strict=True):
        for one, other in zip(a.natural, b.natural, strict=True):
            if one is not None and other is not None:
                gap = (one.double() - other).abs().max() / other.abs().max().clamp_min(1)
                assert float(gap) < 1e-4


@bounded(0.5)
@given(PROBLEMS.map(lambda p: replace(p, prior="binary", state="polarised", scale=1.0, activation="sign", mask="none")))
def test_certain_weights_predict_as_the_sign_network_they_are(problem):
    """V → 0: one forward pass in integers and double precision, by NumPy."""
    net, (x, _) = problem.network(), problem.batch()
    assume(problem.output == "label")
    z = x.double().numpy()
    for number, layer in enumerate(net.weighted()):
        inputs = z if number == 0 else np.where(z >= 0, 1.0, -1.0)
        if problem.bias:
            inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
        z = inputs @ np.sign(layer.field.double().numpy()).T
        # A sum at the threshold is neither sign: rounding decides it.
        assume(np.abs(z).min() > 1e-3)
    expected = np.where(z[:, 0] >= 0, 1, -1)
    assert net.predict(x).tolist() == net.predict(x, "bayes").tolist() == expected.tolist()
    assert net.predict_proba(x)[:, 1].round().tolist() == ((expected + 1) / 2).tolist()


RULE = Rule(rho=1.1)


def updated(prior: cavity.Prior, h: list[float], precision: list[float] | None = None):
    """The posterior of one mini-batch that says nothing, at ρ = 1.1."""
    field = torch.tensor([h])
    lam = None if precision is None else torch.tensor([precision])
    zero = Fields(torch.zeros_like(field), None if lam is None else torch.zeros_like(field))
    start = Fields(field, lam)
    return update_weights(prior, RULE, None, start, start, zero, prior.moments(start))


def test_a_binary_field_is_bounded_and_its_mean_is_not_touched():
    posterior = updated(cavity.Binary(), [0.3, -20.0, 8e17, 9.9e17, -1e30])
    free = torch.tensor([0.3, -20.0, 8e17], dtype=torch.float32) * 1.1
    assert torch.equal(posterior.natural.field[0, :3], free)
    assert posterior.natural.field[0, 3:].tolist() == pytest.approx([FIELD_BOUND, -FIELD_BOUND])
    assert torch.equal(posterior.moments.mean[0], torch.tanh(torch.tensor([0.33, -22.0, 8e17, 1e18, -1e30])))
    assert int(posterior.clamped) == 2
    assert float(posterior.largest) == pytest.approx(1.1e30)


def test_a_bound_keeps_the_mean_of_gaussian_weights():
    posterior = updated(cavity.Gaussian(), [3.0, 3e20, -2e25, 3e25], [2.0, 2e20, 4e25, 2.0])
    assert posterior.moments.mean[0].tolist() == pytest.approx([1.5, 1.5, -0.5, 1.5e25])
    assert float(posterior.natural.precision.max()) <= FIELD_BOUND
    assert int(posterior.clamped) == 2


def test_a_bound_keeps_the_value_that_a_ternary_weight_has_chosen():
    """0 beats ±1 while λ > 2|h|; bounded one by one, both would be equal and ±1 would win."""
    posterior = updated(cavity.Ternary(), [4e19, -6e19, 4e19], [1e20, 1e20, -1e20])
    assert posterior.moments.mean[0].tolist() == [0.0, -1.0, 1.0]
    assert posterior.moments.variance[0].tolist() == [0.0, 0.0, 0.0]
    assert int(posterior.clamped) == 3


@pytest.mark.parametrize("broken", [(math.inf, 1.0), (math.nan, 1.0), (1.0, math.inf), (1.0, math.nan), (3e38, 1e-9)])
@pytest.mark.parametrize("prior", [make() for make in PRIORS.values()], ids=list(PRIORS))
def test_what_is_not_finite_is_not_bounded_but_told(prior, broken):
    """The last is a mean of 3e44."""
    h, precision = broken
    posterior = updated(prior, [1.0, h], [1.0, precision] if prior.uses_precision else None)
    expected = math.isfinite(h) and (not prior.uses_precision or math.isfinite(precision))
    assert math.isfinite(float(posterior.largest)) == (expected and (h < 1e38 or prior.largest_square > 0))


def two_digits(samples: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Zeros and ones of scikit-learn's digits."""
    data = cavity.data.load("digits")
    chosen = data.y_train < 2
    return data.x_train[chosen][:samples], 2 * data.y_train[chosen][:samples] - 1


class Count(Callback):
    """The clamped fraction of every step."""

    def __init__(self):
        self.clamped = []

    def on_step(self, trainer, info):
        self.clamped.append(float(info.clamped))


def thousand_epochs(prior: str, algorithm: str, rho: float, activation: str = "sign") -> list[float]:
    """The clamped fraction of each of 1,000 full-batch epochs, at the end of which all 64 samples are learnt, and all
    weights are at the bound if ρ is 1.1, none if it is less."""
    net = cavity.mlp(64, (11,), 1, weights=prior, activation=activation, seed=1)
    trainer, count = cavity.Trainer(net, algorithm, rho=rho, compile=False, seed=1), Count()
    trainer.fit(two_digits(), epochs=1000, batch_size=None, evaluate_every=1000, callbacks=[count])
    assert_sound(net)
    assert trainer.history[-1].train_error == trainer.history[-1].train_error_bayes == 0
    sizes = [certainty(layer.prior, layer.natural) for layer in net.weighted()]
    at_the_bound = [bool((size > 0.99 * FIELD_BOUND).all()) for size in sizes]
    assert at_the_bound == [rho == 1.1] * 2
    return count.clamped


#: Weights, and weights and preactivations of all samples, of which ``clamped`` is a fraction.
WEIGHTS, ENTRIES = 65 * 11, 65 * 11 + 64 * 12


@pytest.mark.parametrize(("prior", "algorithm"), [("binary", "bp"), ("gaussian", "mf"), ("ternary", "amp")])
def test_a_thousand_epochs_at_the_largest_rho(prior, algorithm):
    """1.1^1000 is 10^41. Fields stop at their bound, which is counted, and training goes on."""
    clamped = thousand_epochs(prior, algorithm, 1.1)
    assert clamped[0] == 0
    assert clamped[-1] >= WEIGHTS / ENTRIES


@pytest.mark.slow
@pytest.mark.parametrize("rho", [1.0, 1.01, 1.1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("prior", PRIORS)
def test_a_thousand_epochs(prior, algorithm, rho):
    clamped = thousand_epochs(prior, algorithm, rho)
    assert (clamped[-1] >= WEIGHTS / ENTRIES) or rho < 1.1
