"""The series against exact evaluation of the same cavity sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import cavity
from cavity.core.algorithms.base import Factor, Series
from cavity.core.algorithms.edges import Sums, exact_sums
from cavity.core.algorithms.series import coefficients, horner, largest_edge, nodes, series_sums, worst_factors
from cavity.core.couplings import Conv2d, Coupling, Dense
from cavity.core.messages import Fields, Preactivation, Target
from cavity.engine.arithmetic import Evaluation
from cavity.engine.fusion import EAGER
from cavity.engine.looking import CAREFUL_REACH, SHARES, careful_reach, choose, relative_error

TOLERANCE = 1e-3
CHANNELS = [cavity.Sign(), cavity.Sign(noise=3.0), cavity.ReLU(), cavity.Identity()]
OUTPUTS = [cavity.Label(), cavity.Label(noise=2.0), cavity.GaussianOutput()]


def magnetisations(shape: tuple[int, int], q: float, generator: torch.Generator) -> torch.Tensor:
    """m = tanh(c·𝒩(0,1)) with c such that the mean of m² is q."""
    z = torch.randn(shape, generator=generator, dtype=torch.float64)
    low, high = 0.0, 1e4
    for _ in range(100):
        middle = (low * high) ** 0.5 if low else high / 2
        low, high = (middle, high) if torch.tanh(middle * z).square().mean() < q else (low, middle)
        if high - low < 1e-9 * high:
            break
    return torch.tanh(high * z).float()


def hidden_factor(coupling: Coupling, m: torch.Tensor, x: torch.Tensor, strength: float, seed: int) -> Factor:
    """A sign layer on top of certain inputs x, with fields of the given size coming down."""
    generator = torch.Generator().manual_seed(seed)
    omega, V = coupling.apply(m, x), coupling.apply(1 - m.square(), x.square()).clamp_min(1e-4)
    B = strength * torch.randn(omega.shape, generator=generator)
    return Factor(cavity.Sign(), Fields(B, None), Preactivation(omega, V))


def errors(coupling: Coupling, factor: Factor, m: torch.Tensor, x: torch.Tensor, series: Series | None) -> Sums:
    exact = exact_sums(coupling, factor, m, x, True, EAGER)
    guess = exact if series is None else series_sums(coupling, factor, m, x, series, True)
    assert guess.inputs is not None
    assert exact.inputs is not None
    return Sums(
        torch.tensor(relative_error(guess.inputs, exact.inputs)),
        torch.tensor(relative_error(guess.weights, exact.weights)),
    )


@pytest.fixture(params=[False, True], ids=["full", "half"])
def half(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether bfloat16 counts as faster: processors that have no instructions for it compute the same slowly."""
    for place in ("looking", "arithmetic"):
        monkeypatch.setattr(f"cavity.engine.{place}.half_pays", lambda x, _: request.param and x.dtype == torch.float32)
    return request.param


@pytest.mark.parametrize("strength", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("q", [0.1, 0.4, 0.75, 0.87, 0.96, 0.986, 0.996, 0.999])
def test_the_chosen_series_holds_the_tolerance_from_unpolarised_to_polarised(
    q: float, strength: float, half: bool
) -> None:
    generator = torch.Generator().manual_seed(int(1000 * q))
    coupling = Dense(784, 60)
    m = magnetisations((60, 784), q, generator)
    x = torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
    factor = hidden_factor(coupling, m, x, strength, seed=1)
    series = choose(coupling, factor, m, x, True, TOLERANCE)
    on_inputs, on_weights = errors(coupling, factor, m, x, series)
    assert float(on_inputs) <= TOLERANCE
    assert float(on_weights) <= TOLERANCE
    if q <= 0.87 and strength <= 1:
        assert series is not None
        assert series.order <= 4, "an unpolarised layer needs only a few products"


def test_the_error_falls_with_the_order() -> None:
    generator = torch.Generator().manual_seed(0)
    coupling = Dense(300, 20)
    m, x = magnetisations((20, 300), 0.8, generator), torch.randn(32, 300, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=2)
    found = [float(errors(coupling, factor, m, x, Series(order)).weights) for order in (1, 2, 3, 4, 6)]
    assert all(worse > 2 * better for worse, better in pairwise(found)), found


def test_a_few_exact_factors_save_a_polarised_layer() -> None:
    generator = torch.Generator().manual_seed(3)
    coupling = Dense(400, 50)
    m, x = magnetisations((50, 400), 0.999, generator), torch.randn(64, 400, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=3)
    plain = float(errors(coupling, factor, m, x, Series(4)).weights)
    helped = float(errors(coupling, factor, m, x, Series(4, share=0.2)).weights)
    assert helped < 1e-3 * plain, (plain, helped)


def test_a_layer_whose_edges_reach_its_variances_always_has_exact_factors(half: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    coupling, reaches = Dense(784, 40), []
    for q in (0.5, 0.93):
        m, x = magnetisations((40, 784), q, generator), torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
        factor = hidden_factor(coupling, m, x, 0.05, seed=4)
        reaches.append(float(largest_edge(m, x, False) / factor.pre.variance.min().sqrt()))
        series = choose(coupling, factor, m, x, True, 0.9)
        # Order 1 alone would do for so generous a tolerance.
        share = 0.0 if reaches[-1] < CAREFUL_REACH else SHARES[1]
        assert series == Series(1, share, half), (q, reaches)
    assert reaches[0] < CAREFUL_REACH < reaches[1]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6, 8])
def test_coefficients_interpolate_at_the_nodes(order: int) -> None:
    pre = Preactivation(torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None], torch.ones(7, 1, dtype=torch.float64))
    message, reach = Fields(torch.full((7, 1), 0.7, dtype=torch.float64), None), torch.tensor(0.9, dtype=torch.float64)
    c = coefficients(cavity.Sign().gradient, message, pre, reach, order)
    for z in nodes(order):
        there = cavity.Sign().gradient(message, Preactivation(pre.mean - reach * z, pre.variance))
        torch.testing.assert_close(horner(z, c), there, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("channel", [*CHANNELS, *OUTPUTS], ids=lambda channel: type(channel).__name__)
@pytest.mark.parametrize(
    "make", [lambda bias: Dense(90, 8, bias), lambda bias: Conv2d((9, 7, 6), 8, 3, stride=2, padding=1, bias=bias)]
)
def test_every_channel_and_coupling(make, channel, share: float, bias: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    coupling = make(bias)
    m = magnetisations((coupling.outputs, coupling.columns), 0.3, generator)
    x = torch.randn(12, *coupling.input_shape, generator=generator).clamp(-1, 2)
    omega, V = coupling.apply(m, x), coupling.apply(1 - m.square(), x.square())
    if isinstance(channel, tuple(type(output) for output in OUTPUTS)):
        message = Target(torch.where(omega > 0.3, 1.0, -1.0), None)
    else:
        message = Fields(torch.randn(omega.shape, generator=generator), 0.02 * torch.ones_like(omega))
    factor = Factor(channel, message, Preactivation(omega, V))
    on_inputs, on_weights = errors(coupling, factor, m, x, Series(8, share))
    assert float(on_inputs) < 2e-3
    assert float(on_weights) < 2e-3


def test_no_tensor_of_all_edges_exists() -> None:
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for part in result if isinstance(result, tuple | list) else (result,):
                if isinstance(part, torch.Tensor):
                    Largest.elements = max(Largest.elements, part.numel())
            return result

    generator = torch.Generator().manual_seed(0)
    coupling = Dense(200, 100)
    m, x = magnetisations((100, 200), 0.5, generator), torch.randn(256, 200, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=0)
    with Largest():
        series_sums(coupling, factor, m, x, Series(4), True)
    assert 256 * 200 <= Largest.elements <= 256 * 200 + 1, Largest.elements


def test_double_precision_and_small_layers_are_exact_by_default() -> None:
    sites = {
        accuracy: cavity.mlp(784, (60,), 1).sites([1, 1], [0, 0], evaluations=[Evaluation(accuracy)] * 2)
        for accuracy in (None, "exact", 5)
    }

    def planned(accuracy: object, number: int, x: torch.Tensor) -> Series | None:
        site = sites[accuracy][number]
        return site.evaluation.plan(site, x).series

    x = torch.zeros(64, 784)
    assert planned(None, 0, x.double()) is None
    assert planned(None, 0, x) is not None
    assert planned(None, 1, x) is None, "60 weights"
    assert planned("exact", 0, x) is None
    assert planned(5, 1, x) == Series(5)


def test_half_precision_is_used_while_it_is_good_enough(half: bool) -> None:
    coupling, generator = Dense(784, 60), torch.Generator().manual_seed(2)
    x = torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
    m = magnetisations((60, 784), 0.6, generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=2)
    series = choose(coupling, factor, m, x, True, TOLERANCE)
    assert series == Series(series.order, half=half)
    full = errors(coupling, factor, m, x, series._replace(half=False)).weights
    rounded = errors(coupling, factor, m, x, series._replace(half=True)).weights
    assert float((full - rounded).abs()) > 0, "the products really are rounded"
    assert float((full - rounded).abs()) < 0.2 * TOLERANCE
    # A tolerance that eight bits cannot hold.
    strict = choose(coupling, factor, m, x, True, 1e-5)
    assert strict is not None
    assert not strict.half


def test_first_order_algorithms_have_nothing_to_choose_but_the_precision(half: bool) -> None:
    (site, _) = cavity.mlp(784, (60,), 10).sites([1, 1], [0, 0], evaluations=[Evaluation(), Evaluation()])
    x = torch.zeros(64, 784)
    assert site.evaluation.plan(site, x, cavities=False) == (Series(1, half=half), False)
    assert site.evaluation.plan(site, x.double(), cavities=False) == (Series(1), False)
    for accuracy in ("exact", 3, 1e-4):
        assert Evaluation(accuracy).plan(site, x, cavities=False) == (Series(1), False)


def test_amp_in_half_precision_is_amp(half: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(256, 300, generator=generator), torch.randint(10, (256,), generator=generator)
    fields = []
    for accuracy in (None, "exact"):
        net = cavity.mlp(300, (101, 51), 10, seed=1)
        trainer = cavity.Trainer(net, "amp", accuracy=accuracy, compile=False)
        trainer.step(x, y)
        fields.append([layer.field for layer in net.weighted()])
    gaps = [relative_error(guess, exact) for guess, exact in zip(*fields, strict=True)]
    assert (max(gaps) > 0) is half, gaps
    assert max(gaps) < 3e-4, gaps


def test_a_series_in_half_precision_is_taken_in_full_where_that_is_faster(half: bool) -> None:
    (site, _) = cavity.mlp(784, (60,), 10).sites([1, 1], [0, 0], evaluations=[Evaluation(), Evaluation()])
    site.evaluation.load_state_dict({"calls": 3, "series": [2, 0.01, True], "recent": [[2, 0.01, True]]})
    assert site.evaluation.plan(site, torch.zeros(64, 784)).series == Series(2, 0.01, half)


@pytest.mark.parametrize("accuracy", [0, -1, 0.0, 1.0, 2.5, float("nan"), "fast", True])
def test_bad_accuracy(accuracy) -> None:
    with pytest.raises(ValueError, match="accuracy must be"):
        cavity.Trainer(cavity.mlp(3, (), 1), "bp", accuracy=accuracy)


def test_looks_are_rare() -> None:
    evaluation = Evaluation(1e-3)
    due = []
    for call in range(600):
        evaluation.calls = call
        if evaluation._due():
            due.append(call)
    assert due == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_the_costliest_of_the_last_looks_is_used(monkeypatch) -> None:
    chosen = [Series(2), Series(4), None, *[Series(2)] * 9]
    monkeypatch.setattr("cavity.engine.arithmetic.choose", lambda *_: chosen.pop(0))
    (site,) = cavity.mlp(784, (), 1).sites([1], [0], evaluations=[Evaluation()])
    used = [site.evaluation.look(site, None, None, None, None) for _ in range(12)]
    # Exact evaluation serves once, order 4 for seven more looks.
    assert used == [Series(2), Series(4), None, *[Series(4)] * 7, Series(2), Series(2)]
    other = Evaluation()
    other.load_state_dict(site.evaluation.state_dict())
    assert (other.series, other.recent) == (site.evaluation.series, site.evaluation.recent)


def test_half_precision_serves_once_all_of_the_last_looks_allow_it(monkeypatch) -> None:
    half, full, cheaper = Series(2, 0.01, True), Series(2, 0.01, False), Series(1, 0.01, False)
    chosen = [half, cheaper, half, full, *[half] * 8]
    monkeypatch.setattr("cavity.engine.arithmetic.choose", lambda *_: chosen.pop(0))
    (site,) = cavity.mlp(784, (), 1).sites([1], [0], evaluations=[Evaluation()])
    used = [site.evaluation.look(site, None, None, None, None) for _ in range(12)]
    # A cheaper series needed full precision because it had less room for rounding, this one may have it.
    assert used == [half, half, half, *[full] * 8, half]


def test_a_series_with_exact_factors_stays_until_a_change_pays(monkeypatch) -> None:
    chosen = [Series(4, 0.03), *[Series(6, 0.01)] * 9, *[Series(2, 0.003)] * 8, Series(8, 0.1)]
    monkeypatch.setattr("cavity.engine.arithmetic.choose", lambda *_: chosen.pop(0))
    (site,) = cavity.mlp(784, (), 1).sites([1], [0], evaluations=[Evaluation()])
    used = [site.evaluation.look(site, None, None, None, None) for _ in range(19)]
    # Costs in products: 12, 11.4, 5.6, 27.3.
    assert used == [*[Series(4, 0.03)] * 17, Series(2, 0.003), Series(8, 0.1)]


def test_nodes_span_the_range() -> None:
    for order in (3, 4, 6, 8):
        assert np.isclose(max(nodes(order)), 1)
        assert np.isclose(min(nodes(order)), -1)


@pytest.mark.parametrize("accuracy", [1, 2, 4, None])
def test_edges_that_are_all_zero_are_no_trouble(accuracy: float | None) -> None:
    """Means of 0 (ε = 0), and inputs of 0."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn((64, 784), generator=generator), torch.randn(64, generator=generator).sign()
    for inputs in (x, torch.zeros_like(x)):
        moved = []
        for chosen in (accuracy, "exact"):
            net = cavity.mlp(784, (101,), 1, init=0.0)
            with torch.no_grad():
                net.layers[1].field.fill_(0.5)
            cavity.Trainer(net, "bp", accuracy=chosen).step(inputs, y)
            moved.append([layer.field for layer in net.layers])
        for series, exact in zip(*moved, strict=True):
            assert torch.isfinite(series).all()
            assert (series - exact).abs().max() <= TOLERANCE * exact.abs().max()


@pytest.mark.parametrize("shape", [(64, 501), (300, 48)])
@pytest.mark.parametrize("share", [1e-6, 0.001, 0.003, 0.2])
def test_the_worst_factors_are_those_of_a_full_sort(shape: tuple[int, int], share: float) -> None:
    misfits = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    # One sample with many of the worst, and one with none.
    misfits[3, :40] += 1.0
    misfits[5] = 0.0
    found = worst_factors(misfits, share)
    wanted = torch.topk(misfits.reshape(-1), max(1, int(share * misfits.numel()))).indices
    assert sorted(found.tolist()) == sorted(wanted.tolist())


def test_one_factor_matters_less_in_a_large_mini_batch() -> None:
    assert careful_reach(16) == careful_reach(128) == CAREFUL_REACH
    assert careful_reach(1024) == pytest.approx(CAREFUL_REACH * 2**0.5)
